"""Run a script's text in this process, as `python script.py ARGS`; gives back losses, final parameters and output."""

from __future__ import annotations

import contextlib
import io
import random
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy
import torch
from ptmigrate.migrate.migrate import Options, migrate_text
from ptmigrate.migrate.project import collect, migrate_all

from tests import forked

CARD = Path(__file__).parents[1] / "simulated_card.py"


@dataclass
class Ran:
    losses: list[float]
    parameters: list[torch.Tensor]
    output: str


def run(text: str, *args: str) -> Ran:
    losses: list[float] = []
    optimizers: list[torch.optim.Optimizer] = []
    backward, init, argv = torch.Tensor.backward, torch.optim.Optimizer.__init__, sys.argv
    scale = torch.amp.GradScaler.scale

    def watched_backward(self, *a, **k):
        loss = self.__dict__.get("_before_scaling", self)
        losses.append(float(loss.detach().double().sum()))
        return backward(self, *a, **k)

    def watched_scale(self, outputs):
        scaled = scale(self, outputs)
        if isinstance(scaled, torch.Tensor) and scaled is not outputs:
            scaled._before_scaling = outputs
        return scaled

    def watched_init(self, *a, **k):
        init(self, *a, **k)
        optimizers.append(self)

    random.seed(0)
    numpy.random.seed(0)
    torch.manual_seed(0)
    out = io.StringIO()
    torch.Tensor.backward, torch.optim.Optimizer.__init__, sys.argv = (
        watched_backward,
        watched_init,
        ["script.py", *args],
    )
    torch.amp.GradScaler.scale = watched_scale
    try:
        with contextlib.redirect_stdout(out):
            exec(compile(text, "script.py", "exec"), {"__name__": "__main__"})
    finally:
        torch.Tensor.backward, torch.optim.Optimizer.__init__, sys.argv = backward, init, argv
        torch.amp.GradScaler.scale = scale
    parameters = [p.detach().clone() for o in optimizers for g in o.param_groups for p in g["params"]]
    return Ran(losses, parameters, out.getvalue())


def check_same(text: str, plan: str, *args: str, output: bool = True) -> str:
    """Migrate, run both, compare bit for bit (the output too, where asked); gives back the migrated text."""
    result = migrate_text(text)
    assert result.plan == plan, result.attention
    again = migrate_text(result.text)
    assert again.text == result.text, "a second run changed something"
    before, after = run(text, *args), run(result.text, *args)
    assert before.losses and after.losses == before.losses
    assert len(after.parameters) == len(before.parameters)
    for a, b in zip(before.parameters, after.parameters, strict=True):
        assert torch.equal(a, b)
    if output:
        ours = [line for line in after.output.splitlines() if not line.startswith("ptmigrate:")]
        assert ours == before.output.splitlines()
    return result.text


def check_on_card(folder: Path, text: str, *args: str) -> str:
    """Migrate, run both where CUDA is a simulated card, compare what they print; gives back the migrated text."""
    result = migrate_text(text)
    (folder / "old.py").write_text(text)
    (folder / "new.py").write_text(result.text)
    _check_alike(*(forked.run(CARD, file, *args, cwd=folder) for file in ("old.py", "new.py")))
    return result.text


def check_project_on_card(folder: Path, **texts: str) -> dict[str, str]:
    """The same of a script, `main`, and the files that it imports; gives back the texts that they migrate to."""
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    old = forked.run(CARD, "main.py", cwd=folder)
    done = migrate_all(collect([folder / "main.py"]), Options())
    for m in done:
        m.path.write_bytes(m.data)
    _check_alike(old, forked.run(CARD, "main.py", cwd=folder))
    return {m.path.stem: m.path.read_text() for m in done}


def _check_alike(old: Any, new: Any) -> None:
    assert old.returncode == new.returncode == 0, old.stderr + new.stderr
    assert old.stdout
    assert [line for line in new.stdout.splitlines() if not line.startswith("ptmigrate")] == old.stdout.splitlines()


def on_one_and_two(folder: Path, before: str, after: str) -> tuple[Path, Path]:
    """Run a script on one process and its result on two, each in a folder of its own; gives back both folders."""
    two = ("--accelerator", "cpu", "--devices", "2", "--global-batch")
    for name, text, start in (("one", before, forked.run), ("two", after, partial(forked.ptrun, *two))):
        (folder / name).mkdir()
        (folder / name / "train.py").write_text(text)
        done = start("train.py", cwd=folder / name)
        assert done.returncode == 0, done.stderr
    return folder / "one", folder / "two"
