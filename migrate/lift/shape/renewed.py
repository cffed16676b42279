"""An optimizer that every epoch makes anew is one optimizer that every epoch gives the state of a new one.

`optimizer = SGD(net.parameters(), lr=rate(epoch))` in a pass over the data becomes that optimizer above the epochs, and
`optimizer.load_state_dict(SGD(net.parameters(), lr=rate(epoch)).state_dict())`: no momentum, the epoch's own options.
"""

from __future__ import annotations

import ast

from ...facts.nodes import walk
from ...facts.scopes import Scope
from ...facts.script import Facts
from ..chunks import given_arguments
from .calls import enclosing_function, only_call
from .edits import Edits
from .loops import nearest_loop, step_loop

USED = ("step", "zero_grad", "param_groups")
OF_MODELS = ("parameters", "named_parameters")
FROZEN = ("requires_grad", "requires_grad_", "add_module", "register_parameter")


def keep_one_optimizer(facts: Facts) -> str | None:
    """The text with one such optimizer made once; None where there is none."""
    batches = step_loop(facts)
    if not isinstance(batches, ast.For):
        return None
    f, around = enclosing_function(facts, batches), nearest_loop(facts, batches)
    call = only_call(facts, f) if around is None and f is not None else None
    epochs = around if call is None else nearest_loop(facts, call)
    block = f.body if call is not None and f is not None else getattr(epochs, "body", [])
    if not isinstance(epochs, ast.For) or batches not in block or nearest_loop(facts, epochs) is not None:
        return None
    for s in block[: block.index(batches)]:
        made = _made(facts, s, f if call is not None else None)
        if made is not None:
            return _Once(facts, s, made, epochs, call, f).text()
    return None


def _made(facts: Facts, s: ast.stmt, f: ast.FunctionDef | None) -> ast.Name | None:
    """The name of an optimizer of torch that a statement makes, where nothing but the steps works with it."""
    if not isinstance(s, ast.Assign) or len(s.targets) > 1 or not isinstance(s.value, ast.Call):
        return None
    target, full = s.targets[0], facts.names.resolve(s.value.func) or ""
    if not isinstance(target, ast.Name):
        return None
    scope = facts.scopes.scope_of(target)
    if not full.startswith("torch.optim.") or "lr_scheduler" in full or target.id in (*scope.params, *scope.globals):
        return None
    inside = set(walk(f)) if f is not None else None
    for read in facts.scopes.reads(target.id, scope):
        up = facts.scopes.parents.get(read)
        if not (isinstance(up, ast.Attribute) and up.attr in USED) or (inside is not None and read not in inside):
            return None
    return target if len(scope.stores[target.id]) == 1 else None


class _Once:
    def __init__(
        self,
        facts: Facts,
        s: ast.stmt,
        name: ast.Name,
        epochs: ast.For,
        call: ast.Call | None,
        f: ast.FunctionDef | None,
    ) -> None:
        self.facts, self.s, self.name, self.epochs, self.call, self.f = facts, s, name.id, epochs, call, f
        self.trunk: Scope = facts.scopes.scope_of(epochs)
        self.given = given_arguments(f, call) if f is not None and call is not None else {}

    def text(self) -> str | None:
        value: ast.Call = self.s.value  # type: ignore[attr-defined]
        made = self._above(value)
        handed = self.call is not None and self.trunk.node is not self.facts.tree
        taken = self.call is not None and (self.name in self.trunk.stores or self.trunk.lookup(self.name) is not None)
        a = self.f.args if self.f is not None else None
        if made is None or taken or (handed and a is not None and (a.vararg or a.kwarg or a.kwonlyargs or not a.args)):
            return None
        edits = Edits(self.facts)
        line = self.epochs.lineno
        edits.replace_lines(line, line - 1, [f"{self.facts.text.margin(self.epochs)}{self.name} = {made}"])
        again = f"{self.name}.load_state_dict({self.facts.text.get(value)}.state_dict())"
        edits.replace_node(self.s, again)
        if handed and self.f is not None and self.call is not None:
            for node in ([*self.f.args.args, *self.f.args.defaults], [*self.call.args, *self.call.keywords]):
                if not node:
                    return None
                at = max(self.facts.text.span(n)[1] for n in node)
                more = f", {self.name}={self.name}" if node[0] not in self.f.args.args else self._parameter()
                edits.replace(at, at, more)
        return edits.done()

    def _parameter(self) -> str:
        return f", {self.name}=None" if self.f is not None and self.f.args.defaults else f", {self.name}"

    def _above(self, value: ast.Call) -> str | None:
        """What makes it above the epochs: of the same parameters, with those options that are plain there."""
        if not value.args or len(value.args) > 1 or any(k.arg is None for k in value.keywords) or self._thaws():
            return None
        trained = self._trained(value.args[0])
        if trained is None:
            return None
        options = [f"{k.arg}={self.facts.text.get(k.value)}" for k in value.keywords if self._is_plain(k.value)]
        return f"{self.facts.text.get(value.func)}({', '.join([trained, *options])})"

    def _thaws(self) -> bool:
        """Whether other parameters may be trained in another epoch."""
        for n in self.facts.walk(ast.Attribute):
            holder = enclosing_function(self.facts, n)
            built = holder is not None and holder.name == "__init__"
            if n.attr in FROZEN and not built and not (n.attr == "requires_grad" and isinstance(n.ctx, ast.Load)):
                return True
        return False

    def _trained(self, node: ast.expr) -> str | None:
        """The parameters, in the names of the trunk; of groups without their options. None where that is not shown."""
        if isinstance(node, (ast.List, ast.Tuple)):
            parts = [self._group(e) for e in node.elts]
            return f"[{', '.join(filter(None, parts))}]" if parts and None not in parts else None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "filter":
            plain = len(node.args) == 2 and isinstance(node.args[0], ast.Lambda) and self.trunk.lookup("filter") is None
            of = self._trained(node.args[1]) if plain else None
            return f"filter({self.facts.text.get(node.args[0])}, {of})" if of is not None else None
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in OF_MODELS):
            return None
        owner = node.func.value
        while isinstance(owner, ast.Attribute):
            owner = owner.value
        if not isinstance(owner, ast.Name) or node.args or node.keywords:
            return None
        there = self._in_trunk(owner)
        text = self.facts.text.get(node)
        return there + text[len(owner.id) :] if there is not None else None

    def _group(self, node: ast.expr) -> str | None:
        if not isinstance(node, ast.Dict):
            return None
        of = [
            v
            for k, v in zip(node.keys, node.values, strict=True)
            if isinstance(k, ast.Constant) and k.value == "params"
        ]
        text = self._trained(of[0]) if len(of) == 1 else None
        return f'{{"params": {text}}}' if text is not None else None

    def _in_trunk(self, name: ast.Name) -> str | None:
        """A name of the pass as the trunk has it, with the same value above the epochs."""
        given = self.given.get(name.id)
        home = self.facts.scopes.scope_of(name).lookup(name.id)
        if given is not None and home is not None and name.id not in home.stores:
            name_there = given.id if isinstance(given, ast.Name) else None
        else:
            name_there = name.id if home in (self.trunk, self.facts.scopes.module) else None
        if name_there is None:
            return None
        place = self.trunk.lookup(name_there)
        stores = place.stores.get(name_there, ()) if place is not None else ()
        around = set(walk(self.epochs)) | (set(walk(self.f)) if self.f is not None else set())
        return name_there if not any(s in around for s in stores) else None

    def _is_plain(self, node: ast.expr) -> bool:
        """A constant, or a name or attribute that has its value above the epochs."""
        if isinstance(node, ast.Constant):
            return True
        if isinstance(node, (ast.Tuple, ast.List)):
            return all(map(self._is_plain, node.elts))
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and self._in_trunk(node) == node.id
