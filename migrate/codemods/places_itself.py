"""T1: a script that trains nothing has no Trainer that places its networks: where an input's move stays, theirs do.

`print(net(torch.randn(3, 4).to(device)))` below `net.to(device)`. Where all moves can go, all is on the CPU together.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from ..facts.nodes import walk
from ..facts.out_of_sight import steps_without_backward, trained_out_of_sight
from ..facts.placed import LIKE
from ..facts.script import Facts
from .base import Change
from .every import outermost, plan_all
from .left_cuda import goes_with_networks
from .place_like_inputs import PlaceLikeInputs
from .register_buffers import RegisterBuffers
from .remove_device_calls import RemoveDeviceCalls

# what is given a device and places nothing, or nothing but what load_state_dict reads
PLACES_NOTHING = ("print", "str", "repr", "format", "torch.device", "torch.load", "isinstance", "torch.autocast")
MOVES_BY_NAME = re.compile(r"(^|_)(to|2)_?(cuda|gpu|device)\Z", re.IGNORECASE)  # move_to_cuda(batch), of another file
OF_DEVICES = ("torch.cuda.", "torch.backends.", "torch.amp.", "logging.")


def places_itself(facts: Facts, changes: list[Change], wants: Callable[[str], bool]) -> list[Change]:
    """The changes; of a script that trains nothing those of a file that places itself, where a move of it stays, and
    of all files where it has several.
    """
    if facts.by_hand or facts.classes.run_by_trainer:
        return changes
    if not (facts.untrained or trained_out_of_sight(facts) or steps_without_backward(facts)):
        networks = any(c.edit.code == RemoveDeviceCalls.code for c in changes)
        if not networks or facts.is_library or facts.others or not _leaves_placed(facts, changes):
            return changes
    own = [c for c in changes if _is_of_modules(facts, c, changes)]
    return outermost(facts, [*plan_all(facts, wants, kept=True), *own])


def _leaves_placed(facts: Facts, changes: list[Change]) -> bool:
    """Whether the result would still put something on a device that nothing else puts it on."""
    gone: set[ast.AST] = {part for c in changes for part in (*c.gone, *((c.node,) if c.rewrite is None else ()))}
    handled = {c.node for c in changes}
    for call in facts.walk(ast.Call):
        moves = facts.devices.moved(call) is not None or _moves_by_name(facts, call)
        where = [a for a in (*call.args, *(k.value for k in call.keywords)) if _says_where(facts, a)]
        if not (moves or where) or call in handled or _places_nothing(facts, call) or goes_with_networks(facts, call):
            continue
        if not gone.intersection((call, *where, *facts.scopes.ancestors(call))):
            return True
    return False


def _moves_by_name(facts: Facts, call: ast.Call) -> bool:
    """Whether what a call gives to a function of another file is moved there, by its name."""
    full = facts.names.resolve(call.func) or ""
    return bool(call.args) and MOVES_BY_NAME.search(full.rpartition(".")[2]) is not None


def _says_where(facts: Facts, given: ast.expr) -> bool:
    return facts.devices.is_device(given) and not facts.devices.is_host(given)


def _places_nothing(facts: Facts, call: ast.Call) -> bool:
    """What prints a device, asks of one, or hands it to a function of the file, whose own moves count."""
    if facts.devices.function_of(call) is not None:
        return True
    full = facts.names.resolve(call.func) or ast.unparse(call.func)
    return full in PLACES_NOTHING or full.startswith(OF_DEVICES) or full.endswith((".format", ".add_argument"))


def _is_of_modules(facts: Facts, change: Change, changes: list[Change]) -> bool:
    """Whether it makes a network follow what it is given, or its own weights, that moves nothing given itself."""
    c = next((up for up in facts.scopes.ancestors(change.node) if up in facts.classes.modules), None)
    if not isinstance(c, ast.ClassDef) or not _follows(facts, change):
        return False
    within = set(walk(c))
    moves = (o for o in changes if o.edit.code == RemoveDeviceCalls.code and o.node in within)
    if not all(_follows(facts, o) for o in moves):
        return False
    if facts.classes.weight(c) is not None:
        return True  # the script moves it, or what it is a part of
    sets_up = any(facts.classes.sets_up(up) for up in facts.scopes.ancestors(change.node))
    return change.edit.code != RegisterBuffers.code and not sets_up


def _follows(facts: Facts, change: Change) -> bool:
    """A tensor made where another is, or a buffer; `torch.zeros_like(x).to(device)`, which is where x is anyway."""
    if change.edit.code != RemoveDeviceCalls.code:
        return change.edit.code in (PlaceLikeInputs.code, RegisterBuffers.code)
    of = facts.devices.moved(change.node) if isinstance(change.node, ast.Call) else None
    if not isinstance(of, ast.Call):
        return False
    new = isinstance(of.func, ast.Attribute) and of.func.attr.startswith("new_")
    return new or facts.names.resolve(of.func) in LIKE
