"""The proof: original and result run on the CPU with the same seeds, and their losses and parameters are compared.

Rungs: the result parses; it runs; it has the same losses, bit for bit; it runs on N processes; it has the same losses
there, to rounding. A rung that cannot be tried says why.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from .beside import beside
from .reasons import Lack, lack
from .runs import Run, Watch, ptrun, python, run

TOLERANCE = 1e-5  # of losses on several processes, relative to the larger of 1 and the loss
DRIFT = 10  # times what the original drifts by itself, once its weights change by their last bit
LIMIT = 600.0  # seconds a run may take, unless the user says otherwise
ROOM = 60.0  # seconds that a result may take beyond ten times the original's time

Show = Callable[[str, float], None]  # what is running, and how much of it is done (0 to 1)


@dataclass
class Rung:
    name: str
    result: str  # "yes", "no" or "not tried"
    detail: str = ""


@dataclass
class Ladder:
    rungs: list[Rung]
    missing: Lack | None = None  # why the original does not run here

    @property
    def original(self) -> str:
        return "yes" if self.missing is None else self.missing.reason

    @property
    def proven(self) -> bool:
        return self.missing is None and all(r.result == "yes" for r in self.rungs)

    def as_json(self) -> dict[str, Any]:
        told = {"missing": self.missing.as_json()} if self.missing is not None else {}
        rungs = [asdict(r) for r in self.rungs]
        return {"original_runs": self.original, **told, "rungs": rungs, "proven": self.proven}


def climb(
    original: Path,
    result: Path,
    args: list[str],
    devices: int = 1,
    *,
    limit: float = LIMIT,
    show: Show | None = None,
    carried: bool = True,
    root: Path | None = None,
) -> Ladder:
    """Run what has to be run and compare; `result` is the migrated copy of `original`.

    `limit`: seconds for each run. `carried`: the result runs on ptmigrate's runtime, so that ptrun can distribute it.
    `root`: the project's folder, for scripts that look for their data beside themselves.
    """
    with tempfile.TemporaryDirectory() as logs:
        return _Climb(original, result, args, devices, limit, show, carried, root, Path(logs)).climb()


def refused(reason: str, devices: int) -> Ladder:
    """The ladder of a script that was not migrated."""
    return Ladder([Rung(n, "not tried", reason) for n in ["parses", "runs", "same losses", *_names(devices)]])


class _Climb:
    def __init__(
        self, original: Path, result: Path, args: list[str], devices: int, limit: float, show: Show | None,
        carried: bool, root: Path | None, logs: Path,
    ) -> None:  # fmt: skip
        self.original, self.result, self.args, self.devices = original, result, args, devices
        self.limit, self.show, self.carried, self.root, self.logs = limit, show, carried, root, logs
        self.size = 0  # of the original's record, once it is known

    def climb(self) -> Ladder:
        parses = _parses(self.result)
        after = ["runs", "same losses", *_names(self.devices)]
        if parses.result != "yes":
            return Ladder([parses] + [Rung(n, "not tried") for n in after])
        first = self._original()
        if not first.ok:
            rest = [Rung(n, "not tried", "the original does not run here") for n in after]
            return Ladder([parses, *rest], lack(first, self.limit))
        self.limit = min(self.limit, 10 * first.seconds + ROOM)
        one, says = self._one()
        rungs = [parses, Rung("runs", "yes", says) if one.ok else Rung("runs", "no", one.reason)]
        rungs.append(_same(first, one) if one.ok else Rung("same losses", "not tried"))
        if self.devices > 1:
            rungs += self._distributed(first) if self.carried else _not_carried(self.devices)
        return Ladder(rungs)

    def _run(self, what: str, launcher: list[str], script: Path, log: str, **options: bool) -> Run:
        watch: Watch | None = None
        if self.show is not None:
            show, size = self.show, self.size
            show(what, 0.0)

            def watch(written: int) -> None:
                show(what, min(1.0, written / size) if size else 0.0)

        return run(launcher, script, self.args, self.logs / log, self.limit, watch=watch, **options)

    def _original(self, still: bool = False) -> Run:
        log = "still" if still else "original"
        first = self._run("the original", python(), self.original, log, still=still)
        if not first.ok and lack(first, self.limit).kind == "launcher":
            first = self._run("the original", python(), self.original, f"{log}-launched", still=still, launched=True)
        self.size = self.size or first.size
        return first

    def _one(self) -> tuple[Run, str]:
        """The result on one process; where it misses files that lie beside the original, once more among them."""
        one = self._run("the result", python(), self.result, "one")
        if one.ok or self.root is None or lack(one, self.limit).kind != "data":
            return one, ""
        root, alone = Path(os.path.abspath(self.root)), one.error
        inside = os.path.relpath(os.path.abspath(self.original), root)
        output = Path(os.path.abspath(self.result)[: -len(inside)])
        beside(root, output, self.logs / "beside")
        self.result = self.logs / "beside" / inside
        one = self._run("the result, among the original's files", python(), self.result, "one-beside")
        return one, f"among the files that lie beside the original: alone it does not find them ({alone})"

    def _distributed(self, first: Run) -> list[Rung]:
        runs, same = _names(self.devices)
        many = self._run(f"the result on {self.devices}", ptrun(self.devices), self.result, "many")
        if not many.ok or len(many.losses) != self.devices:
            return [Rung(runs, "no", many.reason), Rung(same, "not tried")]
        close, says = _close(first.mean_losses(), many.mean_losses())
        if not close:
            close, says = self._drifted(first, many, says)
        if not close:
            close, says = self._stilled(says)
        return [Rung(runs, "yes"), Rung(same, "yes" if close else "no", says)]

    def _drifted(self, first: Run, many: Run, before: str) -> tuple[bool, str]:
        """Training may make much of a rounding: as much, to an order of magnitude, as of one in the original itself."""
        nudged = self._run(
            "the original, its weights rounded otherwise", python(), self.original, "nudged", nudged=True
        )
        want, got, alone = first.mean_losses(), many.mean_losses(), nudged.mean_losses()
        if not nudged.ok or not len(want) == len(got) == len(alone):
            return False, before
        if not drifts_as_far(want, got, alone):
            return False, before
        worst = max(map(_difference, want, alone))
        return True, f"{before}; the original drifts by {worst:.1e} itself when its weights change by their last bit"

    def _stilled(self, before: str) -> tuple[bool, str]:
        """Dropout draws for each share and batch norm measures each share: once more without them, where they are."""
        first = self._original(still=True)
        if not first.ok or not first.stilled:
            return False, before
        what = f"the result on {self.devices}, without {' and '.join(first.stilled)}"
        many = self._run(what, ptrun(self.devices), self.result, "many-still", still=True)
        close, says = _close(first.mean_losses(), many.mean_losses())
        if not (many.ok and close):
            return False, before
        return True, f"{says}; without {' and '.join(first.stilled)}, which each process has to itself"


def _parses(result: Path) -> Rung:
    try:
        compile(result.read_bytes(), str(result), "exec", dont_inherit=True)
    except (SyntaxError, ValueError, OSError) as e:
        return Rung("parses", "no", str(e))
    return Rung("parses", "yes")


def _names(devices: int) -> list[str]:
    return [f"runs on {devices}", f"same losses on {devices}"] if devices > 1 else []


def _not_carried(devices: int) -> list[Rung]:
    says = "Lightning gives each process batches of its own: there is no run of the same batches to compare with"
    return [Rung(n, "not tried", says) for n in _names(devices)]


def _close(want: list[float], got: list[float]) -> tuple[bool, str]:
    """Whether losses agree to rounding, and in how far."""
    if len(want) != len(got):
        return False, f"{len(want)} losses became {len(got)}"
    off = [_difference(a, b) for a, b in zip(want, got, strict=True)]
    worst = max(off)
    says = f"{len(want)} losses, largest difference {worst:.1e}"
    if worst <= TOLERANCE:
        return True, says
    at = next(i for i, d in enumerate(off) if d > TOLERANCE)
    return False, f"{says}; first at step {at}: {want[at]:.8g} became {got[at]:.8g}"


def drifts_as_far(want: list[float], got: list[float], alone: list[float]) -> bool:
    """Whether losses leave those wanted no earlier, and no further, than a run does of which a rounding was changed."""
    reached = accumulate((_difference(a, b) for a, b in zip(want, alone, strict=True)), max)
    off = (_difference(a, b) for a, b in zip(want, got, strict=True))
    return all(d <= max(TOLERANCE, DRIFT * own) for d, own in zip(off, reached, strict=True))


def _difference(a: float, b: float) -> float:
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0
    off = abs(a - b) / max(1.0, abs(a))
    return math.inf if math.isnan(off) else off


def _same(first: Run, one: Run) -> Rung:
    """Bit for bit; an original that itself runs several processes is met to rounding."""
    if len(first.losses) > 1:
        close, says = _close(first.mean_losses(), one.mean_losses())
        return Rung("same losses", "yes" if close else "no", f"{says}; the original runs {len(first.losses)} processes")
    want, got = first.losses[0], one.losses.get(0, [])
    if len(want) != len(got):
        return Rung("same losses", "no", f"{len(want)} losses became {len(got)}")
    different = next((i for i, (a, b) in enumerate(zip(want, got, strict=True)) if repr(a) != repr(b)), None)
    if different is not None:
        return Rung("same losses", "no", f"at step {different}, {want[different]!r} became {got[different]!r}")
    if sorted(p["digest"] for p in first.parameters) != sorted(p["digest"] for p in one.parameters):
        return Rung("same losses", "no", "the losses are the same, the final parameters are not")
    says = f"{len(want)} losses and {len(first.parameters)} parameters, bit for bit"
    if first.ordered:
        says += "; the DistributedSampler's order drawn as shuffle=True draws it"
    return Rung("same losses", "yes", says)
