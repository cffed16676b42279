"""A script whose training does not show: it hands its optimizer on, and no file of its project takes a gradient.

`loss_scaler(loss, optimizer)` of timm, `engine.train(step, loader, epochs, optimizer)` of torchnet.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from .other_files import found_there

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .script import Facts

GRADIENTS = re.compile(r"backward\b|Trainer\b|autograd\b|\bgrad\(|value_and_grad|\bvjp\(|training_step")
BACKWARD = re.compile(r"backward\b|Trainer\b|training_step")  # what is lifted, or run by a Trainer
_GRAD = re.compile(r"\bautograd\.grad\(|\bgrad\(|value_and_grad")
_OPTIMIZER = re.compile(r"(\A|_)optimi[sz]er(_?\w{1,2})?\Z", re.IGNORECASE)
_TRAINS = re.compile(r"(\A|_)(train\w*|fit|learn|engine|step|run|scaler)(_|\Z)", re.IGNORECASE)
_KEEPS = re.compile(r"save|load|checkpoint|resume|state", re.IGNORECASE)  # `save_training_state(net, optimizer)`


def trained_out_of_sight(facts: Facts) -> str | None:
    """The call that hands the optimizer of such a training to what is not in these files, as it is written."""
    if _takes_gradients(facts.text.text) or any(o.once(_takes_gradients) for o in facts.others):
        return None
    there = [o.facts() for o in facts.others if "optimi" in o.text]
    for f in (facts, *there):
        if f is not None:
            f.others = facts.others
            for call in _handed_on(f):
                return f.short(call)
    return None


def steps_without_backward(facts: Facts) -> bool:
    """Whether a project's files take gradients and step by them, and none calls backward(): no loop of it is lifted or
    gets a Runtime, and nothing but the script places what it trains. `p.grad = g` of `torch.autograd.grad(...)`.
    """
    texts = [facts.text.text, *(o.text for o in facts.others)]
    if any(map(BACKWARD.search, texts)):
        return False
    return any(map(_GRAD.search, texts)) and any(".step(" in t for t in texts)


def _takes_gradients(text: str) -> bool:
    return GRADIENTS.search(text) is not None


def _handed_on(facts: Facts) -> Iterator[ast.Call]:
    if "optimi" not in facts.text.text:
        return
    for call in facts.walk(ast.Call):
        given = (*call.args, *(k.value for k in call.keywords))
        trains = any(map(_TRAINS.search, _names(call.func))) and not _KEEPS.search(_last(call.func))
        if trains and any(_OPTIMIZER.search(_last(g)) for g in given):
            ours = facts.devices.function_of(call) or found_there(facts, call.func)
            if not (ours or (facts.names.resolve(call.func) or "").startswith("torch.")):
                yield call


def _last(e: ast.AST) -> str:
    return e.attr if isinstance(e, ast.Attribute) else getattr(e, "id", "")


def _names(func: ast.expr) -> list[str]:
    """Of `engine.train`: both."""
    return [_last(func), *([_last(func.value)] if isinstance(func, ast.Attribute) else ())]
