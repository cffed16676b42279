"""Lists and dictionaries of what a network computes above the loop, where no Trainer has placed it yet.

    style = [gram_matrix(y) for y in vgg(image)]

Their tensors go where the Module is when the fit starts; the list stays the same one.
"""

from __future__ import annotations

import ast

from ..codemods.back_on_cpu import brought
from ..facts.nodes import walk
from ..facts.scopes import Scope
from ..facts.script import Facts
from .chunks import Binder, Variable, Variables
from .computed import given_above, is_output
from .own_device import OWN

GO_THROUGH = ("zip", "enumerate", "reversed", "list", "tuple", "items", "values")
LEAVES = ("cpu", "numpy", "item", "tolist")
DEPTH = 4  # of lists that are made of one another


def computed_lists(facts: Facts, binder: Binder, variables: Variables, loop: ast.stmt) -> list[str]:
    """`self.style[:] = self.transfer_batch_to_device(self.style, self.device, 0)`"""
    lines = []
    for name in variables.constructor:
        if Variable("", name) not in variables.attributes:
            continue
        kinds = {_kind(facts, s, name) for s in given_above(facts, name, binder.trunk_scope, loop)}
        own = f"self.{variables.attributes[Variable('', name)]}"
        moved = f"self.transfer_batch_to_device({own}, {OWN}, 0)"
        if kinds == {"list"}:
            lines.append(f"{own}[:] = {moved}")
        elif kinds == {"dict"}:
            lines.append(f"{own}.update({moved})")
    return lines


def _kind(facts: Facts, s: ast.stmt, name: str) -> str | None:
    """Whether a statement gives a name a list, or a dictionary, of what networks compute."""
    if not isinstance(s, ast.Assign) or not any(isinstance(t, ast.Name) and t.id == name for t in s.targets):
        return None
    if isinstance(s.value, (ast.Dict, ast.DictComp)):
        return "dict" if _of_outputs(facts, s.value, 0) else None
    if isinstance(s.value, ast.List) and not s.value.elts:
        scope = facts.scopes.scope_of(s).lookup(name)
        return "list" if scope is not None and _is_filled(facts, name, scope) else None
    return "list" if isinstance(s.value, (ast.List, ast.ListComp)) and _of_outputs(facts, s.value, 0) else None


def _is_filled(facts: Facts, name: str, scope: Scope) -> bool:
    held = facts.tensors.filled.held(name, scope)
    return held is not None and bool(held.elements) and all(_is_left(facts, e) for e in held.elements)


def _is_left(facts: Facts, element: ast.expr) -> bool:
    """Whether an element is what a network gives, where that is."""
    return is_output(facts, element, 0) and not _leaves(facts, element)


def _leaves(facts: Facts, element: ast.expr) -> bool:
    return brought(facts, element) or any(n.attr in LEAVES for n in walk(element, ast.Attribute))


def _of_outputs(facts: Facts, made: ast.List | ast.Dict | ast.ListComp | ast.DictComp, depth: int) -> bool:
    if isinstance(made, (ast.List, ast.Dict)):
        written = made.elts if isinstance(made, ast.List) else made.values
        return bool(written) and all(_is_left(facts, e) for e in written)
    element = made.value if isinstance(made, ast.DictComp) else made.elt
    if _leaves(facts, element):
        return False
    return is_output(facts, element, 0) or any(_goes_through_outputs(facts, g.iter, depth) for g in made.generators)


def _goes_through_outputs(facts: Facts, node: ast.expr, depth: int) -> bool:
    """`vgg(image)`, `zip(layers, outputs)`, `features.items()`"""
    if depth > DEPTH or _leaves(facts, node):
        return False
    if isinstance(node, ast.Name):
        scope = facts.scopes.scope_of(node).lookup(node.id)
        values = facts.devices.assigned(node.id, scope) if scope is not None and node.id not in scope.params else None
        return bool(values) and all(_goes_through_outputs(facts, v, depth + 1) for v in values or ())
    if isinstance(node, (ast.List, ast.Dict, ast.ListComp, ast.DictComp)):
        return _of_outputs(facts, node, depth + 1)
    if isinstance(node, ast.Call):
        f = node.func
        if isinstance(f, ast.Attribute) and f.attr in GO_THROUGH and not node.args:
            return _goes_through_outputs(facts, f.value, depth)
        if isinstance(f, ast.Name) and f.id in GO_THROUGH:
            return any(_goes_through_outputs(facts, a, depth) for a in node.args)
    return is_output(facts, node, 0)
