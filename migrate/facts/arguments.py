"""What calls pass for the parameters of functions, and what a dictionary's display has under a key."""

from __future__ import annotations

import ast

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def entry(holder: ast.expr, key: str) -> ast.expr | None:
    """What a dictionary display, or `dict(...)`, has under a key."""
    if isinstance(holder, ast.Dict):
        pairs = zip(holder.keys, holder.values, strict=True)
        return next((v for k, v in pairs if isinstance(k, ast.Constant) and k.value == key), None)
    if isinstance(holder, ast.Call) and isinstance(holder.func, ast.Name) and holder.func.id == "dict":
        return next((k.value for k in holder.keywords if k.arg == key), None)
    return None


def default_of(f: Function, name: str) -> ast.expr | None:
    a = f.args
    positional = [*a.posonlyargs, *a.args]
    for arg, default in zip(reversed(positional), reversed(a.defaults), strict=False):
        if arg.arg == name:
            return default
    for arg, kw_default in zip(a.kwonlyargs, a.kw_defaults, strict=True):
        if arg.arg == name:
            return kw_default
    return None


def argument(call: ast.Call, f: Function, name: str, bound: bool = False) -> ast.expr | None:
    """The expression that a call passes for a parameter by position or keyword, None when it leaves the default.

    `bound`: the first parameter is the object's own, which no call passes.
    """
    positional = [a.arg for a in (*f.args.posonlyargs, *f.args.args)][bound:]
    if name in positional:
        i = positional.index(name)
        if i < len(call.args) and not any(isinstance(a, ast.Starred) for a in call.args[: i + 1]):
            return call.args[i]
    return next((k.value for k in call.keywords if k.arg == name), None)


def is_static(f: Function) -> bool:
    return "staticmethod" in _marks(f)


def is_bound(f: Function) -> bool:
    """Whether a method is one of an object: neither static nor the class's own."""
    return not _marks(f) & {"staticmethod", "classmethod"}


def _marks(f: Function) -> set[str]:
    decorators = () if isinstance(f, ast.Lambda) else f.decorator_list
    return {d.id for d in decorators if isinstance(d, ast.Name)}


def argument_at(call: ast.Call, name: str, place: int) -> ast.expr | None:
    """The argument of a known function by its keyword or its place."""
    found = next((k.value for k in call.keywords if k.arg == name), None)
    if found is None and len(call.args) > place and not any(isinstance(a, ast.Starred) for a in call.args[: place + 1]):
        return call.args[place]
    return found


def given_to(call: ast.Call) -> list[ast.expr]:
    """What a call is given, by place and by name."""
    return [*call.args, *(k.value for k in call.keywords)]


def is_separate(call: ast.Call) -> bool:
    """A loss that is asked for a number a sample."""
    return any(
        (k.arg == "reduction" and is_text(k.value, "none"))
        or (k.arg == "reduce" and is_false(k.value) and not is_none(k.value))
        for k in call.keywords
    )


def is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def is_text(node: ast.expr, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text


def is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value
