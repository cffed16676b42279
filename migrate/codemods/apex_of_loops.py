"""T10: a lifted loop's apex.amp is the Trainer's `precision=`, which scales the loss and unscales before it clips.

    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()

Level O1 alone: it keeps the weights as they are, as autocast does. The others make weights of half precision, and stay.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.nodes import walk
from ..facts.operands import ATOM, closed, joined
from ..facts.script import Facts
from .base import Change, Codemod
from .precision_of_loops import WHY, Mixed
from .rewrites import body_only, else_only, source

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
            if [ast.unparse(a) for a in call.args] != [optimizer] or not _has_all(facts, optimizer, model):
                raise Mixed
            says = f"`{facts.short(call)}` is `{model}.parameters()`: {WHY}"
            yield Change(call, self.edit(facts, call, says), source(f"{model}.parameters()"), (call,))
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
        for k in call.keywords:
            if getattr(k.value, "value", None) not in NO_MATTER.get(k.arg or "", ()):
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
        read = next(n for inner in s.body for n in walk(inner) if isinstance(n, ast.Name))
        return [Change(s, edit, body_only, (call,)), Change(read, edit, source(new), told=False)]

    def _chosen(self, facts: Facts, s: ast.stmt, otherwise: list[str]) -> ast.stmt:
        """The statement, or `if args.fp16:` around it, whose other branch is the same without apex."""
        up = facts.scopes.parents.get(s)
        if not isinstance(up, ast.If):
            self.conditions.add("")
            return s
        asked = (ast.Name, ast.Attribute, ast.expr_context)
        plain = all(isinstance(n, asked) for n in walk(up.test))
        if up.body != [s] or [ast.unparse(o) for o in up.orelse] != otherwise or not plain:
            raise Mixed
        self.conditions.add(facts.text.get(up.test))
        return up

    def _precision(self, facts: Facts) -> str:
        torch = next((a.asname or a.name for i in facts.walk(ast.Import) for a in i.names if a.name == "torch"), None)
        if torch is None:
            raise Mixed
        when = [c for c in self.conditions if c]
        there = joined([*when, f"{torch}.cuda.is_available()"], "and") if when else f"{torch}.cuda.is_available()"
        return f'"16-mixed" if {there} else "32-true"'


def _has_all(facts: Facts, optimizer: str, model: str) -> bool:
    """Whether an optimizer is only ever made of all parameters of the model."""
    made = [
        s.value
        for s in facts.walk(ast.Assign)
        if [ast.unparse(t) for t in s.targets] == [optimizer] and isinstance(s.value, ast.Call)
    ]
    return bool(made) and all(c.args and ast.unparse(c.args[0]) == f"{model}.parameters()" for c in made)
