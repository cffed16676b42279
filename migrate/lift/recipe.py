"""What a raw training loop is made of: the trunk that holds the epoch loop, and the passes over the data.

There is a pass for training and may be one for evaluation, each written in place or as a function.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, TypeVar

from ..facts.arguments import argument_at

if TYPE_CHECKING:
    from ..facts.script import Facts

T = TypeVar("T")

LIFTED_FROM = "Lifted from"  # begins the docstring of a lifted class, by which a result is known again


class CannotLift(Exception):
    """The facts do not show that the lift is the same program."""

    def __init__(self, node: ast.AST | None, reason: str) -> None:
        super().__init__(reason)
        self.node = node
        self.reason = reason
        self.line = getattr(node, "lineno", 1)  # of the text that was looked at; the pipeline maps it to the original
        self.shared = ""  # the name of the loop that a function which stays reads, or changes
        self.of_loops = False  # whether the loops themselves are no training loop, whatever stands in them

    @property
    def alone(self) -> CannotLift:
        """To be kept: where it was raised is what holds it, and all that was looked at, in a cycle."""
        return self.with_traceback(None)


@dataclass
class DataPass:
    """One pass over a loader: what comes before the batch loop, in it, and after it."""

    loop: ast.For
    loader: ast.expr
    target: ast.expr
    index: str | None
    index_start: ast.expr | None
    before: list[ast.stmt]
    body: list[ast.stmt]
    after: list[ast.stmt]
    function: ast.FunctionDef | None = None
    call: ast.Call | None = None
    result: ast.expr | None = None  # what the caller assigns the function's value to
    returns: ast.expr | None = None
    no_grad: bool = False


def once_a_pass(question: Callable[[Facts, DataPass], T]) -> Callable[[Facts, DataPass], T]:
    """Keeps the answer to a question of a pass: its loop stays the same."""

    @wraps(question)
    def asked(facts: Facts, passing: DataPass) -> T:
        key = (question, passing.loop)
        if key not in facts.answers:
            facts.answers[key] = question(facts, passing)
        answer: T = facts.answers[key]
        return answer

    return asked


@dataclass
class Optimization:
    """How a batch becomes a step.

    Automatic: the Trainer does the steps; `backward` is the statement that returns the loss, `dropped` what goes.
    Manual: the batch loop's body stays as it is, with `self.manual_backward`; `why` it is not automatic.
    """

    losses: list[ast.expr]
    optimizers: list[str]
    backward: ast.stmt | None = None
    dropped: list[ast.stmt] = field(default_factory=list)
    clip: ast.expr | None = None  # the norm, or the value, that gradients are clipped to
    clip_algorithm: str = "norm"
    step: ast.stmt | None = None
    batch_scheduler: str | None = None
    manual: bool = False
    why: CannotLift | None = None

    @property
    def differentiated(self) -> list[ast.expr]:
        """The losses without what scales them for half precision: the x of `scaler.scale(x).backward()`."""
        return [_unscaled(e) for e in self.losses]


def _unscaled(e: ast.expr) -> ast.expr:
    scales = isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute) and e.func.attr == "scale"
    one = isinstance(e, ast.Call) and len(e.args) + len(e.keywords) == 1
    inner = argument_at(e, "outputs", 0) if isinstance(e, ast.Call) and scales and one else None
    return e if inner is None else inner


@dataclass
class Recipe:
    trunk: ast.FunctionDef | None  # None: the module level, or the main guard
    trunk_body: list[ast.stmt]  # the block that holds the epoch loop
    epoch_loop: ast.For
    epoch: str
    first_epoch: ast.expr | None
    last_epoch: ast.expr | None  # None: it ends by a break
    train: DataPass
    evaluate: DataPass | None
    before: list[ast.stmt]  # statements of the epoch loop before the training pass
    between: list[ast.stmt]
    after: list[ast.stmt]
    optimization: Optimization
    schedulers: list[tuple[str, ast.Call]]  # stepped once an epoch
    monitored: dict[ast.stmt, str] = field(default_factory=dict)  # steps on a metric: the Trainer's, by this log
    whole: CannotLift | None = None  # why a step needs whole batches; they are then not divided over processes
    signed: ast.AST | None = None  # where the step takes the sign of a gradient of its samples
    decided_late: bool = False  # whether the training loader is a DataLoader shows when the script runs
    whole_evaluation: CannotLift | None = None
    in_order: set[ast.stmt] = field(default_factory=set)  # of the evaluation's step: fillings that every rank makes
    reloads: bool = False  # what the batch loop goes over is made anew in every epoch
    taken_for: dict[ast.AugAssign, str] = field(default_factory=dict)  # sums of what does not show, and as what
    unlifted: CannotLift | None = None  # why the evaluation stays as the script wrote it
    shared: set[str] = field(default_factory=set)  # names of the loop that stay the globals that functions read
    own_modes: bool = False  # whether the script switches modes as no Trainer does
