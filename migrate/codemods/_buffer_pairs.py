"""T3, several at once: `self.mean, self.std = torch.zeros(3), torch.ones(3)`, `self.a = self.b = torch.ones(2)`."""

from __future__ import annotations

import ast
from typing import Any

from ..facts.nodes import walk
from ..facts.script import Facts
from ..facts.several import taken_apart
from ._apart import apart, is_own, parts
from ._one_memory import shares_memory
from .name_lambdas import free_name


def tensors_of(facts: Facts, s: ast.stmt) -> dict[str, ast.expr]:
    """The attributes of self that a statement of several gives tensors made there."""
    if isinstance(s, ast.Assign) and len(s.targets) > 1:
        plain = all(isinstance(t, ast.Name) or is_own(t) for t in s.targets)
        alike = plain and facts.tensors.is_tensor(s.value)
        return {t.attr: s.value for t in s.targets if isinstance(t, ast.Attribute)} if alike else {}
    if of := taken_of(facts, s):
        return dict.fromkeys((t.attr for t in _taking(s) if isinstance(t, ast.Attribute)), of)
    own = [(t, v) for t, v in parts(facts, s) if is_own(t)]
    return {t.attr: v for t, v in own if isinstance(t, ast.Attribute) and facts.tensors.is_tensor(v)}


def taken_of(facts: Facts, s: ast.stmt) -> ast.Call | None:
    """The `torch.meshgrid(x, y)` of tensors made there that is taken apart, into attributes of self and names alone."""
    value = s.value if isinstance(s, ast.Assign) else None
    taking = _taking(s) if isinstance(value, ast.Call) else []
    plain = all(isinstance(e, ast.Name) or is_own(e) for e in taking) and any(map(is_own, taking))
    found = isinstance(value, ast.Call) and plain and facts.tensors.is_tensor(taken_apart(facts, value))
    return value if found and isinstance(value, ast.Call) else None


def _taking(s: ast.stmt) -> list[ast.expr]:
    """The a and b of `a, b = ...`."""
    target = s.targets[0] if isinstance(s, ast.Assign) and len(s.targets) == 1 else None
    return target.elts if isinstance(target, (ast.Tuple, ast.List)) else []


def registered_parts(facts: Facts, s: ast.Assign, persistent: bool) -> Any:
    """`a, b = torch.meshgrid(x, y)` with a statement for each part that an attribute was given."""
    scope = facts.scopes.scope_of(s)
    taken = {n.id for n in walk(scope.node, ast.Name)} | set(scope.params)
    shares, names = shares_memory(s.value), list[str]()
    for t in _taking(s):
        names.append(free_name(t.attr, taken) if isinstance(t, ast.Attribute) else ast.unparse(t))
        taken.add(names[-1])

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        targets = updated.targets[0].target
        end = cst.Semicolon(whitespace_after=cst.SimpleWhitespace(" "))
        new = [e.with_changes(value=cst.Name(n)) for e, n in zip(targets.elements, names, strict=True)]
        first = updated.targets[0].with_changes(target=targets.with_changes(elements=new))
        statements: list[Any] = [updated.with_changes(targets=[first])]
        for e, n in zip(targets.elements, names, strict=True):
            if isinstance(e.value, cst.Attribute):
                value = cst.Call(cst.Attribute(cst.Name(n), cst.Name("contiguous"))) if shares else cst.Name(n)
                statements.append(register(e.value.attr.value, value, persistent))
        statements = [one.with_changes(semicolon=end) for one in statements]
        statements[-1] = statements[-1].with_changes(semicolon=updated.semicolon)
        return cst.FlattenSentinel(statements)

    return rewrite


def registered(names: set[str], persistent: bool) -> Any:
    """A statement for each of several parts, these attributes as buffers."""

    def made(target: Any, value: Any) -> Any:
        import libcst as cst

        name = target.attr.value if isinstance(target, cst.Attribute) else None
        return register(name, value, persistent) if name in names else None

    return apart(made)


def registered_each(persistent: bool) -> Any:
    """`a = self.b = self.c = value` with what it gives attributes as buffers, all of one value."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        targets = [t.target for t in updated.targets]
        names = [t for t in targets if isinstance(t, cst.Name)]
        own = [t for t in targets if isinstance(t, cst.Attribute)]
        value, statements = updated.value, []
        if names:
            statements.append(updated.with_changes(targets=[cst.AssignTarget(n) for n in names]))
            value = names[0]
        for target in own:
            statements.append(register(target.attr.value, value, persistent))
            value = value if names else own[0]
        end = cst.Semicolon(whitespace_after=cst.SimpleWhitespace(" "))
        statements = [one.with_changes(semicolon=end) for one in statements]
        statements[-1] = statements[-1].with_changes(semicolon=updated.semicolon)
        return cst.FlattenSentinel(statements)

    return rewrite


def register(name: str, value: Any, persistent: bool) -> Any:
    """`self.register_buffer("name", value)`"""
    import libcst as cst

    method = cst.Attribute(cst.Name("self"), cst.Name("register_buffer"))
    own = [cst.Arg(cst.SimpleString(f'"{name}"')), cst.Arg(value)]
    return cst.Expr(cst.Call(method, [*own, *([] if persistent else [left_out()])]))


def left_out() -> Any:
    """`persistent=False`"""
    import libcst as cst

    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    return cst.Arg(cst.Name("False"), keyword=cst.Name("persistent"), equal=equal)


def keys(persistent: bool, several: bool = False) -> str:
    """What a buffer does to the states of its module, to be told."""
    if not persistent:
        return "not in the state dict, which is loaded or gone through as it was"
    return "new keys in the state dict" if several else "a new key in the state dict"


def is_parameter(facts: Facts, value: ast.expr | None) -> bool:
    """`nn.Parameter(...)`"""
    return isinstance(value, ast.Call) and facts.names.resolve(value.func) == "torch.nn.Parameter"
