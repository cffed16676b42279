"""T10: a lifted loop's apex.amp is the Trainer's `precision=`, which scales the loss and unscales before it clips.

    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()

Level O1 alone: it keeps the weights as they are, as autocast does. The others make weights of half precision, and stay;
where an option says the level, and O1 is what it says of itself, the others are told of.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.nodes import walk
from ..facts.operands import ATOM, closed, joined
from ..facts.options import options
from ..facts.script import Facts
from ..report import Note
from .base import Change, Codemod
from .branch_rewrites import body_only, else_only
from .precision_of_loops import WHY, Mixed
from .rewrites import source

APEX = "apex.amp."
NAMES = ("initialize", "scale_loss", "master_params")
NO_MATTER = {"opt_level": ("O1",), "loss_scale": ("dynamic",), "verbosity": (0, 1), "num_losses": (1,)}


class ApexOfLoops(Codemod):
    code = "PTM605"
    name = "apex-of-loops"
    keeps = False  # the script has no scaler of its own
    by_hand = True  # whether an optimizer that is stepped by hand does the same: it does not unscale to clip

    def changes(self, facts: Facts) -> tuple[list[Change], str] | None:
        """The changes, and the source of the Trainer's `precision=`; None where it cannot all be the Trainer's."""
        try:
            changes = list(self.plan(facts))
            return changes, self._precision(facts)
        except Mixed:
            return None

    def plan(self, facts: Facts) -> Iterator[Change]:
        self.conditions: set[str] = set()
        calls = [c for c in facts.walk(ast.Call) if (facts.names.resolve(c.func) or "").startswith(APEX)]
        of = {name: [c for c in calls if facts.names.resolve(c.func) == APEX + name] for name in NAMES}
        backwards = {c for c in facts.walk(ast.Call) if isinstance(c.func, ast.Attribute) and c.func.attr == "backward"}
        if sum(map(len, of.values())) < len(calls) or len(of["initialize"]) != 1 or not of["scale_loss"]:
            raise Mixed
        model, optimizer, change = self._initialized(facts, of["initialize"][0])
        yield change
        for call in of["scale_loss"]:
            changes = self._scaled(facts, call, optimizer)
            backwards.difference_update(walk(changes[0].node))
            yield from changes
        if backwards or len(self.conditions) > 1:
            raise Mixed  # the Trainer's precision is that of every step
        for call in of["master_params"]:
            alike = self._clipped_alike(facts, call, optimizer, model)
            if alike is not None:
                yield alike
                continue
            if [ast.unparse(a) for a in call.args] != [optimizer] or not _has_all(facts, optimizer, model):
                raise Mixed
            says = f"`{facts.short(call)}` is `{model}.parameters()`: {WHY}"
            yield Change(call, self.edit(facts, call, says), source(f"{model}.parameters()"), (call,))
        yield from self._imports(facts)
        clips = (c.func.attr for c in facts.walk(ast.Call) if isinstance(c.func, ast.Attribute))
        self.by_hand = not any(name.startswith("clip_grad") for name in clips)

    def _initialized(self, facts: Facts, call: ast.Call) -> tuple[str, str, Change]:
        """`model, optimizer = amp.initialize(model, optimizer, opt_level="O1")`"""
        s = facts.scopes.parents.get(call)
        targets = s.targets[0] if isinstance(s, ast.Assign) and len(s.targets) == 1 else None
        given = [facts.devices.moved(a) or a if isinstance(a, ast.Call) else a for a in call.args]
        if not (isinstance(targets, ast.Tuple) and len(given) == 2 and isinstance(s, ast.Assign)):
            raise Mixed
        model, optimizer = (ast.unparse(t) for t in targets.elts)
        if [ast.unparse(g) for g in given] != [model, optimizer]:
            raise Mixed
        self.level: ast.expr | None = None
        for k in call.keywords:
            if k.arg == "opt_level" and isinstance(k.value, ast.Attribute) and _begins_at_o1(facts, k.value.attr):
                self.level = k.value
            elif getattr(k.value, "value", None) not in NO_MATTER.get(k.arg or "", ()):
                raise Mixed
        node = self._chosen(facts, s, [])
        return (
            model,
            optimizer,
            Change(node, self.edit(facts, call, f"`{facts.short(call)}` removed: {WHY}"), None, (s,)),
        )

    def _scaled(self, facts: Facts, call: ast.Call, optimizer: str) -> list[Change]:
        """`with amp.scale_loss(loss, optimizer) as scaled_loss:` around its backward."""
        item = facts.scopes.parents.get(call)
        s = facts.scopes.parents.get(item) if isinstance(item, ast.withitem) else None
        if not (isinstance(s, ast.With) and len(s.items) == 1 and len(call.args) == 2 and not call.keywords):
            raise Mixed
        name, loss = s.items[0].optional_vars, call.args[0]
        if ast.unparse(call.args[1]) != optimizer or not isinstance(name, ast.Name):
            raise Mixed
        if [ast.unparse(inner) for inner in s.body] != [f"{name.id}.backward()"]:
            raise Mixed
        new = closed(facts.text.get(loss), ATOM)
        node = self._chosen(facts, s, [f"{closed(ast.unparse(loss), ATOM)}.backward()"])
        edit = self.edit(facts, call, f"`with {facts.short(call)}:` is `{new}.backward()`: {WHY}")
        if isinstance(node, ast.If):
            return [Change(node, edit, else_only, (node.test, s))]
        read = next(n for inner in s.body for n in walk(inner, ast.Name))
        return [Change(s, edit, body_only, (call,)), Change(read, edit, source(new), told=False)]

    def _chosen(self, facts: Facts, s: ast.stmt, otherwise: list[str]) -> ast.stmt:
        """The statement, or `if args.fp16:` around it, whose other branch is the same without apex."""
        up = facts.scopes.parents.get(s)
        if not isinstance(up, ast.If):
            self.conditions.add("")
            return s
        asked = (ast.Name, ast.Attribute, ast.expr_context)
        plain = all(isinstance(n, asked) for n in walk(up.test))
        body = [inner for inner in up.body if not _imports_apex(facts, inner)]
        if body != [s] or [ast.unparse(o) for o in up.orelse] != otherwise or not plain:
            raise Mixed
        self.conditions.add(facts.text.get(up.test))
        return up

    def _clipped_alike(self, facts: Facts, call: ast.Call, optimizer: str, model: str) -> Change | None:
        """`if fp16: clip(amp.master_params(optimizer), 1.0)`, where the other branch clips `model.parameters()`."""
        s = facts.scopes.statement_of(call)
        up = facts.scopes.parents.get(s)
        if not (isinstance(up, ast.If) and up.body == [s] and len(up.orelse) == 1):
            return None
        new = ast.unparse(s).replace(ast.unparse(call), f"{model}.parameters()")
        given = [ast.unparse(a) for a in call.args] == [optimizer] and facts.text.get(up.test) in self.conditions
        if not given or ast.unparse(up.orelse[0]) != new:
            return None
        says = f"`{facts.short(call)}` is `{model}.parameters()`: {WHY}"
        return Change(up, self.edit(facts, call, says), else_only, (up.test, s))

    def _imports(self, facts: Facts) -> Iterator[Change]:
        """`if args.fp16: from apex import amp`, with nothing else in it."""
        for s in facts.walk(ast.If):
            held = [inner for inner in s.body if _imports_apex(facts, inner)]
            if len(held) == len(s.body) and not s.orelse and facts.text.get(s.test) in self.conditions:
                yield Change(s, self.edit(facts, s, f"`{facts.short(held[0])}` removed: {WHY}"), None, (s,))

    def told(self, facts: Facts) -> Iterator[Note]:
        """What a user's own choice of a level no longer does."""
        if self.level is not None:
            line, column, _, _ = facts.text.key(self.level)
            says = (
                f"`opt_level={facts.short(self.level)}`: levels O2 and O3 train as O1 does, whose weights stay float32"
            )
            yield Note(line, column + 1, self.code, says)

    def _precision(self, facts: Facts) -> str:
        torch = next((a.asname or a.name for i in facts.walk(ast.Import) for a in i.names if a.name == "torch"), None)
        if torch is None:
            raise Mixed
        when = [c for c in self.conditions if c]
        if self.level is not None:
            when.append(f'{facts.text.get(self.level)} != "O0"')
        there = joined([*when, f"{torch}.cuda.is_available()"], "and") if when else f"{torch}.cuda.is_available()"
        return f'"16-mixed" if {there} else "32-true"'


def _imports_apex(facts: Facts, s: ast.stmt) -> bool:
    """`from apex import amp`, also in a `try` that raises where there is none."""
    if isinstance(s, ast.Try):
        raises = all(isinstance(inner, ast.Raise) for h in s.handlers for inner in h.body)
        return raises and not s.orelse and not s.finalbody and all(_imports_apex(facts, inner) for inner in s.body)
    return isinstance(s, ast.ImportFrom) and s.module == "apex" and [a.name for a in s.names] == ["amp"]


def _begins_at_o1(facts: Facts, option: str) -> bool:
    """Whether the parser's option of that name is level O1 where nobody asks for another."""
    return any(o.name == option and o.default == "O1" for o in options(facts))


def _has_all(facts: Facts, optimizer: str, model: str) -> bool:
    """Whether an optimizer is only ever made of all parameters of the model."""
    made = [
        s.value
        for s in facts.walk(ast.Assign)
        if [ast.unparse(t) for t in s.targets] == [optimizer] and isinstance(s.value, ast.Call)
    ]
    return bool(made) and all(c.args and ast.unparse(c.args[0]) == f"{model}.parameters()" for c in made)
