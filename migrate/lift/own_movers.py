"""Networks that their class moves by its own `to()`, with what is no parameter and no buffer: it is called as training
begins. As parts of the Module they move without it: `self.grids = [g.to(device) for g in self.grids]`.
"""

from __future__ import annotations

import ast

from ..codemods.register_buffers import RegisterBuffers
from ..facts.nodes import walk_own
from ..facts.other_files import found_there
from ..facts.script import Facts
from ..report import Note
from .chunks import Binder, Variable, Variables
from .kept_networks import made_values
from .own_device import OWN
from .recipe import LIFTED_FROM


def own_moves(facts: Facts, binder: Binder, variables: Variables) -> list[str]:
    """`self.net.to(self.device)`, of what the constructor is given."""
    if not any("def to(" in text or "def cuda(" in text for text in (facts.text.text, *(o.text for o in facts.others))):
        return []
    lines = []
    for n in variables.constructor:
        if Variable("", n) not in variables.attributes:
            continue
        made = made_values(facts, n, binder.trunk_scope)
        calls = {_call_of_own(facts, v) if isinstance(v, ast.Call) else None for v in made}
        call = calls.pop() if len(calls) == 1 else None
        own = f"self.{variables.attributes[Variable('', n)]}"
        lines += [line.format(own) for line in call or ()]
    return lines


def without_moved(facts: Facts, notes: list[Note], text: str) -> list[Note]:
    """The notes but those of attributes that such a call moves, which a lifted text has."""
    told = any(n.code == RegisterBuffers.code for n in notes) and LIFTED_FROM in text
    classes = [c for c in facts.classes.modules if _own_mover(c) is not None] if told else []
    called: set[ast.ClassDef] = set()
    for s in facts.walk(ast.Assign) if classes else ():
        name = getattr(_made(s.value).func, "id", "") if isinstance(s.value, ast.Call) else ""
        of = [f"self.{t.id}" for t in s.targets if isinstance(t, ast.Name)]
        called |= {c for c in classes if c.name == name and any(_lines(c)[-1].format(n) in text for n in of)}
    moved = [(c, f"`self.{a}` ") for c in called for a in _assigned(_own_mover(c))]
    return (
        notes
        if not moved
        else [
            n
            for n in notes
            if n.code != RegisterBuffers.code
            or not any(c.lineno <= n.line <= (c.end_lineno or 0) and n.message.startswith(a) for c, a in moved)
        ]
    )


def _call_of_own(facts: Facts, made: ast.Call) -> tuple[str, ...] | None:
    """The lines that call the mover of the class that a call makes an object of."""
    made = _made(made)
    name = made.func.id if isinstance(made.func, ast.Name) else ""
    c = next((c for c in facts.classes.modules if c.name == name), None)
    if c is None and (found := found_there(facts, made.func)) is not None:
        c = found[2] if isinstance(found[2], ast.ClassDef) and found[2] in found[1].classes.modules else None
    return tuple(_lines(c)) if c is not None else None


def _made(call: ast.Call) -> ast.Call:
    """`Net()` of `Net().to(device).eval()`."""
    while isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Call):
        call = call.func.value
    return call


def _lines(c: ast.ClassDef) -> list[str]:
    mover = _own_mover(c)
    if mover is None:
        return []
    if mover.name == "to":
        return [f"{{}}.to({OWN})"]
    return [f'if {OWN}.type == "cuda":', "    {}.cuda()"]


def _own_mover(c: ast.ClassDef) -> ast.FunctionDef | None:
    """`def to(self, device)` or `def cuda(self)` that gives attributes a value, and needs no more than that."""
    for name, needs in (("to", 2), ("cuda", 1)):
        f = next((s for s in c.body if isinstance(s, ast.FunctionDef) and s.name == name), None)
        if f is not None and not f.decorator_list and _assigned(f):
            a = f.args
            needed = len([*a.posonlyargs, *a.args]) - len(a.defaults)
            required = [d for d in a.kw_defaults if d is None]
            takes = len([*a.posonlyargs, *a.args]) >= needs or a.vararg is not None
            return f if takes and needed <= needs and not required else None
    return None


def _assigned(f: ast.FunctionDef | None) -> set[str]:
    """The attributes of self that a method gives a value, or a part of one."""
    found = set()
    for s in walk_own(f.body) if f is not None else ():
        targets = s.targets if isinstance(s, ast.Assign) else [s.target] if isinstance(s, ast.AugAssign) else []
        for t in targets:
            while isinstance(t, ast.Subscript):
                t = t.value
            if isinstance(t, ast.Attribute) and isinstance(t.value, ast.Name) and t.value.id == "self":
                found.add(t.attr)
    return found
