"""`fit` and its like in processes of their own (torch.multiprocessing's spawn, or fork), which start when it is called
and end with it; what rank 0 changed comes back to the process that called.
"""

from __future__ import annotations

import contextlib
import inspect
import multiprocessing
import os
import pickle
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ..callbacks.best import Best
from ..checkpoint import randomness
from ..collectives import on_host
from ..environment import PREFIX
from ..errors import ConfigurationError
from ..printing import keep_lines_whole
from . import pickling
from .ended import how_it_ended
from .script import meeting, ranks_of
from .threads import thread_variables

if TYPE_CHECKING:
    from ..trainer import Trainer

GRACE = 3.0  # seconds between asking a process to end and ending it
TRAINER = ("should_stop", "stop_agreed")
METRICS = ("callback", "logged", "bar")
LOOP = ("epoch", "batch_idx", "before_epoch", "global_step", "logged_steps", "batches", "length", "phase")
PLAIN = (int, float, str, bool, type(None), list, dict, tuple, set, torch.Tensor, Best)


class ProcessFailed(RuntimeError):
    """A process that fit started has failed; the message holds its rank and its traceback."""


def call(run: Callable[..., Any], args: tuple, kwargs: dict[str, Any], method: str) -> Any:
    """Call `run`, a method of a Trainer, on every rank of this node; returns what rank 0's call returned.

    `method`: "spawn" or "fork". Raises ConfigurationError for what cannot be sent, ProcessFailed when a rank fails.
    """
    trainer: Trainer = run.__self__  # type: ignore[attr-defined]
    strategy, settings = trainer.runtime.strategy, trainer.runtime.settings
    work = (trainer, run.__name__, args, kwargs)
    context: Any = multiprocessing.get_context(method)
    with tempfile.TemporaryDirectory(prefix="ptmigrate-") as folder:
        payload: Any = work
        if method == "spawn":
            pickling.check_guard(strategy.name)
            pickling.check(strategy.name, {**_named(run, args, kwargs), "trainer": trainer})
            payload = Path(folder, "work")
            payload.write_bytes(pickle.dumps((*work, torch.initial_seed(), randomness.capture())))
        shared = {**meeting(settings), PREFIX + "LAUNCHER": method, PREFIX + "LAUNCHER_PID": str(os.getpid())}
        count = settings.place.local_world_size
        with variables(thread_variables(count)):
            processes = [
                context.Process(
                    target=_child, args=(payload, folder, {**shared, **ranks_of(rank, settings)}), name=f"rank-{rank}"
                )
                for rank in range(count)
            ]
            for process in processes:
                process.start()
        _wait(processes, folder)
        with open(Path(folder, "outcome"), "rb") as file:
            outcome = torch.load(file, map_location="cpu", weights_only=False)
    return bring_back(trainer, outcome, given_model(args, trainer))


def _named(run: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments under the names that a user knows; `run` may be given the method that it runs, and then those."""
    at = next((i for i, arg in enumerate(args) if inspect.ismethod(arg)), None)
    if at is not None:
        run, args = args[at], args[at + 1 :]
    known = {"train": "train_dataloaders", "loaders": "dataloaders"}
    given = inspect.signature(run).bind(*args, **kwargs).arguments
    return {known.get(name, name): value for name, value in given.items() if not isinstance(value, (str, type(None)))}


def given_model(args: tuple, trainer: Trainer) -> Any:
    return next((arg for arg in args if isinstance(arg, torch.nn.Module)), trainer.module)


@contextlib.contextmanager
def variables(values: dict[str, str]) -> Iterator[None]:
    """Environment variables for processes that are started inside."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


# -- in the new processes -----------------------------------------------------------------------------------------


def _child(payload: Any, folder: str, environment: dict[str, str]) -> None:
    """One rank: everything is as in the process that called, but for the rank."""
    from . import watch

    os.environ.update(environment)
    keep_lines_whole()
    watch.die_with_parent()
    rank = int(environment["RANK"])
    try:
        trainer, name, args, kwargs = _unpacked(payload)
        trainer.runtime.join()
        returned = getattr(trainer, name)(*args, **kwargs)
        outcome = changes(trainer, returned)
        if int(environment["LOCAL_RANK"]) == 0:
            with open(Path(folder, "outcome"), "wb") as file:
                torch.save(on_host(outcome) if trainer.runtime.device.type == "xla" else outcome, file)
        trainer.runtime.barrier()
    except BaseException as error:
        if watch.is_lost_peer(error):
            time.sleep(watch.PATIENCE)
        if isinstance(error, ConfigurationError):
            Path(folder, f"refused.{environment['LOCAL_RANK']}").write_text(str(error))
        where = f" at {watch.failed_at}" if watch.failed_at else ""
        told = f"rank {rank} stopped{where}:\n{traceback.format_exc()}"
        Path(folder, f"error.{environment['LOCAL_RANK']}").write_text(told)
        watch.leave_at_once()


def _unpacked(payload: Any) -> tuple:
    if isinstance(payload, tuple):  # forked: this process's own memory already
        torch.set_num_threads(1)  # OpenMP's threads did not come along, and waiting for them would not end
        return payload
    *work, seed, generators = pickle.loads(payload.read_bytes())
    torch.manual_seed(seed)
    randomness.restore(generators)
    return tuple(work)


def changes(trainer: Trainer, returned: Any) -> dict[str, Any]:
    """What the calling process is to know: all ranks call this."""
    from ..checkpoint import state

    module = trainer.module
    assert module is not None
    ended = trainer.fit_loop.global_step > 0 and trainer.optimizers
    return {
        "returned": returned,
        "checkpoint": state.collect(trainer) if ended else None,
        "module": dict(module.named_parameters()) | dict(module.named_buffers()),
        "modes": [part.training for part in module.modules()],
        "attributes": plain(module),
        "trainer": {name: getattr(trainer, name) for name in TRAINER},
        "metrics": {name: getattr(trainer.metrics, name) for name in METRICS},
        "loop": {name: getattr(trainer.fit_loop, name) for name in LOOP},
        "others": [plain(other) for other in (*trainer.callbacks, *trainer.loggers)],
        "generators": randomness.capture(),
    }


def plain(owner: Any) -> dict[str, Any]:
    """An object's attributes that are numbers, texts, tensors and containers of such."""
    found = {}
    for name, value in getattr(owner, "__dict__", {}).items():
        if type(value) in PLAIN and not (isinstance(owner, torch.nn.Module) and name.startswith("_")):
            with contextlib.suppress(Exception):
                found[name] = pickle.loads(pickle.dumps(value))
    return found


# -- back in the calling process ----------------------------------------------------------------------------------


def _wait(processes: list[Any], folder: str) -> None:
    """Until all have ended well; when one fails, end the others and raise with its traceback."""
    try:
        while any(process.is_alive() for process in processes):
            if any(process.exitcode for process in processes):
                break
            time.sleep(0.05)
    finally:
        end_all(processes)
    failed = [rank for rank, process in enumerate(processes) if process.exitcode]
    if not failed:
        return
    refused = next(iter(sorted(Path(folder).glob("refused.*"))), None)
    if refused is not None:
        raise ConfigurationError(refused.read_text())
    told = sorted(Path(folder).glob("error.*"), key=lambda file: file.stat().st_mtime)
    first = int(told[0].suffix[1:]) if told else failed[0]
    text = told[0].read_text() if told else f"{how_it_ended(first, processes[first].exitcode)}."
    raise ProcessFailed(f"{text.rstrip()}\nrank {first} failed; the other ranks were ended.")


def end_all(processes: list[Any]) -> None:
    """No process outlives the call. Those that have nothing left to do get a moment."""
    well = all(process.exitcode in (0, None) for process in processes) and sys.exc_info()[0] is None
    for process in processes:
        if well:
            process.join(GRACE)
        if process.is_alive():
            process.terminate()
    for process in processes:
        process.join(GRACE)
        if process.is_alive():
            process.kill()
            process.join()


def bring_back(trainer: Trainer, outcome: dict[str, Any], module: Any) -> Any:
    """Give the caller's module, trainer, callbacks and loggers what rank 0's have; returns what its call returned."""
    here = dict(module.named_parameters()) | dict(module.named_buffers())
    with torch.no_grad():
        for name, value in outcome["module"].items():
            if name in here:
                here[name].copy_(value) if here[name].shape == value.shape else here[name].set_(value)
                if isinstance(value, torch.nn.Parameter):
                    here[name].requires_grad = value.requires_grad
    for part, mode in zip(module.modules(), outcome["modes"], strict=False):
        part.training = mode
    trainer.module = module
    module.trainer = trainer
    for owner, values in (
        (module, outcome["attributes"]),
        (trainer, outcome["trainer"]),
        (trainer.metrics, outcome["metrics"]),
        (trainer.fit_loop, outcome["loop"]),
        *zip((*trainer.callbacks, *trainer.loggers), outcome["others"], strict=False),
    ):
        owner.__dict__.update(values)
    if outcome["checkpoint"] is not None:
        trainer.runtime.strategy.last_checkpoint = outcome["checkpoint"]  # type: ignore[attr-defined]
    randomness.restore(outcome["generators"])
    return outcome["returned"]
