"""T2 in lifted code: what the script placed on a device by name goes where the Module is, `self.device`.

`torch.zeros(2).to(rank)` would be rank 0's device on every rank: to the result each process is the only one.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field, replace

from ..codemods.host_reads import is_given, names_given, stays_on_cpu
from ..codemods.place_like_inputs import PlaceLikeInputs
from ..facts.arguments import given_to
from ..facts.choice import asks_for_card
from ..facts.nodes import walk
from ..facts.other_files import found_there
from ..facts.placed import LIKE, MAKES_TENSORS
from ..facts.script import Facts
from ..facts.tensor_makers import is_open
from ..report import Edit, Note
from .chunks import Chunk
from .device_texts import as_text, asks_text
from .filled import calls_model, filled, read_by_torch
from .meets_model import beside_model, meets_brought, meets_model

CODE = PlaceLikeInputs.code
OWN = "self.device"
STEPS = ("training_step", "validation_step")
FILLED_BY = {"on_train_epoch_start": "training_step", "on_validation_epoch_start": "validation_step"}
DRAWN = {f"torch.{n}" for n in ("rand", "randn", "randint", "randperm", "normal")}


@dataclass
class OwnDevice:
    """The calls of the chunks that get `self.device`, and what nothing reads once they have."""

    calls: dict[ast.Call, tuple[tuple[int, int], str]] = field(default_factory=dict)  # span and its new text
    chunks: dict[ast.Call, Chunk] = field(default_factory=dict)
    unread: set[ast.AST] = field(default_factory=set)
    dropped: list[ast.Assign] = field(default_factory=list)  # devices of the chunks without another reader
    opened: dict[ast.AST, list[tuple[int, int]]] = field(default_factory=dict)  # what goes for a part to stand alone


def own_device(facts: Facts, chunks: list[Chunk], accelerator: str | None = None) -> OwnDevice:
    """What of the chunks is placed by a device that the script names, where the runtime does not place it anyway.

    `accelerator`: the source of the Trainer's, if any.
    """
    found = OwnDevice()
    for chunk in chunks:
        if chunk.hook == "train_dataloader":
            continue  # it is asked for before anything is placed
        passing = chunk.passing
        returned = passing.returns if passing is not None and chunk.statements is passing.after else None
        for s in [*chunk.statements, *([returned] if returned is not None else [])]:
            for call in walk(s, ast.Call):
                if facts.is_fixed(call) or _in_class(facts, call, s):
                    continue
                change = _moved(facts, call) or _made_there(facts, call) or _handed(facts, call)
                anywhere = chunk.hook in STEPS and _made_anywhere(facts, chunk, call, s)
                if change is None and (anywhere or _filled(facts, chunks, chunk, call)):
                    change = _given(facts, call)
                if change is not None:
                    span, new, parts = change
                    found.calls[call], found.chunks[call] = (span, new), chunk
                    found.unread.update(n for part in parts for n in walk(part))
    around = dict.fromkeys(up for call in found.calls for up in facts.scopes.ancestors(call))
    for branch in around:
        if isinstance(branch, ast.If):
            _open(facts, branch, found, accelerator)
        elif isinstance(branch, ast.IfExp):
            _choose(facts, branch, found, accelerator)
    _drop_unread(facts, chunks, found)
    return found


def _open(facts: Facts, branch: ast.If, found: OwnDevice, accelerator: str | None) -> None:
    """`if use_cuda: x = x.cuda()`, where x goes to the Module's device: it needs no condition."""
    up = facts.scopes.parents.get(branch)
    chained = isinstance(up, ast.If) and up.orelse == [branch]
    moves = [s for s in branch.body if _moves_to_itself(s, found)]
    if branch.orelse or chained or len(moves) < len(branch.body) or not asks_for_card(facts, branch.test, accelerator):
        return
    start, first = facts.text.span(branch)[0], branch.body[0]
    spans = [(start, facts.text.span(first)[0])]
    if first.lineno > branch.lineno:
        outer, inner = len(facts.text.margin(branch)), len(facts.text.margin(first))
        lines = [facts.text.line_span(n, n) for n in range(branch.lineno, (branch.end_lineno or first.lineno) + 1)]
        head = facts.text.line_of(facts.text.span(branch.test)[1]) - branch.lineno
        if any(facts.text.text[a : a + inner].strip() for a, _ in lines[head + 1 :]):
            return  # a comment further out, or a test that ends on another line
        spans = [(start, lines[head + 1][0] + inner), *((a + outer, a + inner) for a, _ in lines[head + 2 :])]
    found.opened[branch] = spans
    found.unread.update(walk(branch.test))


def _choose(facts: Facts, choice: ast.IfExp, found: OwnDevice, accelerator: str | None) -> None:
    """`x.cuda() if use_cuda else x`, where x goes to the Module's device: there is no choice."""
    first, last = facts.text.span(choice)
    for call, other in ((choice.body, choice.orelse), (choice.orelse, choice.body)):
        if not isinstance(call, ast.Call) or call not in found.calls or not isinstance(call.func, ast.Attribute):
            continue
        if ast.unparse(call.func.value) != ast.unparse(other):
            continue
        start, end = facts.text.span(call)
        before = call is choice.body
        test = choice.test if before else ast.UnaryOp(ast.Not(), choice.test)
        bare = start == first if before else end == last  # in no parentheses of its own
        if bare and asks_for_card(facts, test, accelerator):
            found.opened[choice] = [(end, last) if before else (first, start)]
            found.unread.update((*walk(choice.test), *walk(other)))


def _moves_to_itself(s: ast.stmt, found: OwnDevice) -> bool:
    """`x = x.cuda()`, `x, y = x.cuda(), y.cuda()`, all of it given the Module's device."""
    if not isinstance(s, ast.Assign) or len(s.targets) > 1:
        return False
    target, value = s.targets[0], s.value
    pairs = [(target, value)]
    if isinstance(target, ast.Tuple):
        if not (isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts)):
            return False
        pairs = list(zip(target.elts, value.elts, strict=True))
    for t, v in pairs:
        if not (isinstance(v, ast.Call) and v in found.calls and isinstance(v.func, ast.Attribute)):
            return False
        if ast.unparse(t) != ast.unparse(v.func.value):
            return False
    return True


def _moved(facts: Facts, call: ast.Call) -> tuple[tuple[int, int], str, list[ast.AST]] | None:
    """`torch.zeros(2).to(rank)`, `torch.zeros(2).cuda(rank, non_blocking=True)`"""
    receiver, f = facts.devices.moved(call), call.func
    if receiver is None or not isinstance(f, ast.Attribute) or _is_placed(facts, receiver):
        return None
    if f.attr == "to":
        where = facts.devices.device_arguments(call)[0]
        return _at(facts, where.value if isinstance(where, ast.keyword) else where)
    later = [k.value for k in call.keywords if k.arg == "non_blocking"] + call.args[1:]
    others = f", non_blocking={facts.text.get(later[0])}" if later else ""
    start = facts.text.span(f)[1] - len(f.attr)
    if any(not isinstance(v, ast.Constant) for v in later):
        return None  # the names in it would have to be written anew
    return (start, facts.text.span(call)[1]), f"to({OWN}{others})", [*call.args, *call.keywords]


def _is_placed(facts: Facts, value: ast.expr) -> bool:
    facts.lifting = True  # a Trainer does not know what a generator of the script gives
    try:
        return facts.placed.by_runtime(value)
    finally:
        facts.lifting = False


def _made_there(facts: Facts, call: ast.Call) -> tuple[tuple[int, int], str, list[ast.AST]] | None:
    """`torch.zeros(2, device=rank)`"""
    if facts.names.resolve(call.func) not in MAKES_TENSORS | LIKE:
        return None
    where = next((k.value for k in call.keywords if k.arg == "device"), None)
    if where is None or not facts.devices.says_where(where) or facts.devices.is_host(where):
        return None
    return _at(facts, where)


def _handed(facts: Facts, call: ast.Call) -> tuple[tuple[int, int], str, list[ast.AST]] | None:
    """`to_device(device, net)`, of a function of the script's own and a device that the file has by that name, or that
    is made there: `rate(net, torch.device(f"cuda:{rank}"))`.
    """
    own = facts.devices.function_of(call) is not None or (facts.others and found_there(facts, call.func) is not None)
    where = [a for a in given_to(call) if _is_of_file(facts, a)] if own else []
    where = [a for a in where if facts.devices.is_device(a) and not facts.devices.is_host(a)]
    if len(where) != 1:
        return None
    span, new, parts = _at(facts, where[0])
    if isinstance(name := where[0], ast.Name):
        known = bool(facts.devices.texts(name)) and as_text(facts, name)
        new += ".type" if known or asks_text(facts, name) else ""
    return span, new, parts


def _is_of_file(facts: Facts, given: ast.expr) -> bool:
    if isinstance(given, ast.Name):
        return facts.scopes.scope_of(given).lookup(given.id) is facts.scopes.module
    return isinstance(given, ast.Call) and facts.names.resolve(given.func) == "torch.device"


def _made_anywhere(facts: Facts, chunk: Chunk, call: ast.Call, s: ast.AST) -> bool:
    """`torch.zeros(2, 3)` in the step of a script that names no device: there it is where the model is.

    Not where the script brings its values together on the CPU: places in what it keeps, numbers, arrays.
    """
    if not call.args or not is_open(facts, call):
        return False
    if facts.devices.hosts.names_others and not _given_to_network(facts, call):
        return False
    if not calls_model(facts, chunk.statements) or meets_brought(facts, call):
        return False
    if meets_model(facts, call):
        return True
    for up in facts.scopes.ancestors(call):
        if isinstance(up, (ast.FunctionDef, ast.Lambda, ast.Subscript, ast.Compare, ast.If, ast.While)):
            return False
        if up is s or isinstance(up, ast.stmt):
            break
    return not stays_on_cpu(facts, call, lambda read: beside_model(facts, read))


def _given_to_network(facts: Facts, call: ast.Call) -> bool:
    """`net(torch.randn(4, 2))`, or by its name: the Trainer places the network, and no move in it is left."""
    s = facts.scopes.statement_of(call)
    names = names_given(s, call) if isinstance(s, ast.Assign) and is_given(s, call) else set()
    home = facts.scopes.scope_of(s)
    reads: list[ast.expr] = [r for n in names for r in facts.scopes.reads(n, home.lookup(n) or home)]
    calls = [(r, facts.scopes.parents.get(r)) for r in (call, *reads)]
    return any(isinstance(up, ast.Call) and r in up.args and facts.loops.is_model_call(up) for r, up in calls)


def _filled(facts: Facts, chunks: list[Chunk], chunk: Chunk, call: ast.Call) -> bool:
    """`total = torch.zeros(1)` where an epoch begins, for a step that adds to it what the model gave."""
    step = FILLED_BY.get(chunk.hook, chunk.hook)
    body = [s for c in chunks if c.hook == step for s in c.statements] if step in STEPS else []
    return filled(facts, call, body) and read_by_torch(facts, call)


def _given(facts: Facts, call: ast.Call) -> tuple[tuple[int, int], str, list[ast.AST]]:
    """The call with `device=` behind its last argument; a card would draw other numbers than the script did."""
    if facts.names.resolve(call.func) in DRAWN and not facts.without_devices:
        end = facts.text.span(call)[1]
        return (end, end), f".to({OWN})", []
    end = max(facts.text.span(a.value if isinstance(a, ast.keyword) else a)[1] for a in (*call.args, *call.keywords))
    return (end, end), f", device={OWN}", []


def _at(facts: Facts, where: ast.expr) -> tuple[tuple[int, int], str, list[ast.AST]]:
    return facts.text.span(where), OWN, [where]


def _in_class(facts: Facts, call: ast.Call, s: ast.AST) -> bool:
    """Whether `self` is another's where the call stands."""
    for up in facts.scopes.ancestors(call):
        if isinstance(up, ast.ClassDef):
            return True
        if up is s:
            return False
    return False


def _drop_unread(facts: Facts, chunks: list[Chunk], found: OwnDevice) -> None:
    """`device = torch.device(rank)` of a training function goes with its last reader."""
    lost = True
    while lost:
        lost = False
        for s in (s for c in chunks for s in c.statements if isinstance(s, ast.Assign) and s not in found.dropped):
            target = s.targets[0]
            if len(s.targets) > 1 or not isinstance(target, ast.Name) or not facts.devices.says_where(s.value):
                continue
            home = facts.scopes.scope_of(target).lookup(target.id)
            reads = list(facts.scopes.reads(target.id, home)) if home is not None else []
            if reads and all(r in found.unread for r in reads):
                found.dropped.append(s)
                found.unread.update(walk(s))
                lost = True


def settled(notes: list[Note], edits: list[Edit], lifted: Facts) -> tuple[list[Note], list[Edit]]:
    """The notes without those of what the lifted text puts where the Module is; such edits at their lines."""
    open_ = [n for n in notes if n.code == CODE]
    if not open_ or not any(e.code == CODE for e in edits):
        return notes, edits
    placed, stays = [], None
    for e in edits:
        alike = [n for n in open_ if e.code == CODE and _call_of(n) == _call_of(e)]
        there = [n for n in open_ if (n.code, n.line) == (e.code, e.line)]
        alike = alike or [n for n in there if _is_mended(n, e) or (len(there) == 1 and _is_renamed(n, e))]
        # a statement that was written into the loop has its line no more
        note = next((n for n in alike if n.line == e.line), None)
        if note is None and alike:
            stays = _staying(lifted) if stays is None else stays
            note = alike[0] if _call_of(e) not in stays else None
        if note is not None:
            open_.remove(note)
            e = replace(e, line=note.line, column=note.column)
        placed.append(e)
    return [n for n in notes if n.code != CODE or n in open_], placed


def _staying(lifted: Facts) -> set[str]:
    """The calls that the lifted text leaves as they are."""
    codemod = PlaceLikeInputs()
    for _ in codemod.plan(lifted):
        pass
    return {_call_of(n) for n in codemod.left}


def _is_mended(note: Note, edit: Edit) -> bool:
    """Whether a note's call is that of an edit, which `Variable(x).cuda()` became before, or `x[i.cpu()].cuda()`."""
    if "Variable(" not in note.message and ".cpu()" not in edit.message:
        return False
    ours = r"(\w+\.)*Variable|\.detach|\.cpu\b|[()]|\.\.\.$"
    a, b = (re.sub(ours, "", _call_of(told)) for told in (note, edit))
    return a.startswith(b) or b.startswith(a)  # each may be cut short


def _is_renamed(note: Note, edit: Edit) -> bool:
    """Whether a call is that of an edit but for names that a prefix keeps apart: `train_samples` for `samples`."""
    ours, theirs = (re.findall(r"\w+|\W", _call_of(told).removesuffix("...")) for told in (note, edit))
    return bool(theirs) and all(b == a or b.endswith(f"_{a}") for a, b in zip(ours, theirs, strict=False))


def _call_of(told: Note | Edit) -> str:
    """The call that a note of this code, or an edit, begins with."""
    return told.message.split("`")[1] if "`" in told.message else ""
