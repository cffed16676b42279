"""How long the parts of a run take: `Trainer(profiler="simple")`.

What is measured is decided before the loops, so that a run without a profiler has nothing of it in its steps.
"""

from __future__ import annotations

import cProfile
import io
import os
import pstats
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from .errors import ConfigurationError, unknown_name
from .gone import missing


class Profiler:
    """Nothing is measured. Subclasses fill `start`, `stop` and `summary`; `profile` is for a step's own parts."""

    measures = False

    def __init__(self, dirpath: Any = None, filename: str | None = None):
        self.dirpath, self.filename = dirpath, filename
        self.stage: str | None = None
        self.log_dir: str | None = None

    def setup(self, stage: str | None = None, local_rank: int | None = None, log_dir: str | None = None) -> None:
        """A run begins; `log_dir`: where a file goes that has no folder."""
        self.stage, self.log_dir = stage, log_dir

    def start(self, action_name: str) -> None: ...
    def stop(self, action_name: str) -> None: ...

    def summary(self) -> str:
        return ""

    def profile(self, action_name: str) -> AbstractContextManager:
        return measured(self, action_name) if self.measures else nullcontext()

    def describe(self) -> None:
        """The summary, to the file that was named or to the terminal."""
        text = self.summary()
        if text and self.filename:
            folder = self.dirpath or self.log_dir or "."
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, "-".join(filter(None, (self.stage, self.filename))) + ".txt"), "w") as file:
                file.write(text + "\n")
        elif text:
            print(text, file=sys.stderr)


class PassThroughProfiler(Profiler):
    """Lightning's name for none."""


class SimpleProfiler(Profiler):
    """Seconds and calls of each part."""

    measures = True

    def __init__(self, dirpath: Any = None, filename: str | None = None, extended: bool = True):
        super().__init__(dirpath, filename)
        self.current_actions: dict[str, float] = {}
        self.recorded_durations: dict[str, list[float]] = defaultdict(list)
        self.begun = time.monotonic()

    def start(self, action_name: str) -> None:
        if action_name in self.current_actions:
            raise ValueError(f"profiler: {action_name!r} has been started and not stopped")
        self.current_actions[action_name] = time.monotonic()

    def stop(self, action_name: str) -> None:
        if action_name not in self.current_actions:
            raise ValueError(f"profiler: {action_name!r} has not been started")
        self.recorded_durations[action_name].append(time.monotonic() - self.current_actions.pop(action_name))

    def summary(self) -> str:
        whole = time.monotonic() - self.begun
        rows = sorted(((sum(taken), len(taken), name) for name, taken in self.recorded_durations.items()), reverse=True)
        lines = [
            f"{name:50.50}  {total / calls:12.6f}  {calls:8}  {total:10.4f}  {100 * total / whole:6.1f}"
            for total, calls, name in rows
        ]
        return "\n".join([f"{'part':50}  {'mean (s)':>12}  {'calls':>8}  {'total (s)':>10}  {'%':>6}", *lines])


class AdvancedProfiler(Profiler):
    """Python's own profile of each part, `line_count_restriction` lines of it (a number, or a share of them)."""

    measures = True

    def __init__(self, dirpath: Any = None, filename: str | None = None, line_count_restriction: float = 1.0, **_: Any):
        super().__init__(dirpath, filename)
        self.lines = line_count_restriction
        self.profiled: dict[str, cProfile.Profile] = {}
        self.running: list[str] = []

    def start(self, action_name: str) -> None:
        """Python has one profile at a time: the part around this one waits."""
        if self.running:
            self.profiled[self.running[-1]].disable()
        self.running.append(action_name)
        self.profiled.setdefault(action_name, cProfile.Profile()).enable()

    def stop(self, action_name: str) -> None:
        if not self.running or self.running[-1] != action_name:
            raise ValueError(f"profiler: {action_name!r} is not what was started last")
        self.profiled[self.running.pop()].disable()
        if self.running:
            self.profiled[self.running[-1]].enable()

    def summary(self) -> str:
        texts = []
        for name, profile in self.profiled.items():
            text = io.StringIO()
            pstats.Stats(profile, stream=text).strip_dirs().sort_stats("cumulative").print_stats(self.lines)
            texts.append(f"Profile of {name}:\n{text.getvalue().rstrip()}")
        return "\n".join(texts)


def __getattr__(name: str) -> Any:
    raise missing(__name__, name)


NAMES: dict[str, type[Profiler]] = {"simple": SimpleProfiler, "advanced": AdvancedProfiler}


def choose_profiler(asked: Any) -> Any:
    """None, "simple", "advanced", or an object with Lightning's methods. Raises ConfigurationError."""
    if asked in (None, False):
        return Profiler()
    if asked is True:
        return SimpleProfiler()
    if asked in ("pytorch", "xla"):
        raise ConfigurationError(f"profiler={asked!r} is not here: use torch.profiler around trainer.fit")
    if isinstance(asked, str):
        if asked not in NAMES:
            raise unknown_name("profiler", asked, NAMES)
        return NAMES[asked]()
    if not hasattr(asked, "profile"):
        raise ConfigurationError(f"profiler={asked!r}: 'simple', 'advanced', or a profiler is needed")
    return asked


@contextmanager
def measured(profiler: Any, name: str) -> Iterator[None]:
    profiler.start(name)
    try:
        yield
    finally:
        profiler.stop(name)


def around(profiler: Any, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, measured under `name`; the very same where nothing is measured."""
    if not getattr(profiler, "measures", True):
        return function

    def call(*args: Any, **kwargs: Any) -> Any:
        with profiler.profile(name):
            return function(*args, **kwargs)

    return call


def through(profiler: Any, name: str, items: Any) -> Any:
    """`items`, each `next` measured under `name`."""
    if not getattr(profiler, "measures", True):
        return items
    following = around(profiler, name, iter(items).__next__)
    return iter_until_stop(following)


def iter_until_stop(following: Callable[[], Any]) -> Iterator[Any]:
    while True:
        try:
            item = following()
        except StopIteration:
            return
        yield item
