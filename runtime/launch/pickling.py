"""What cannot be sent to a spawned process, found before one is started, with the path by which a user reaches it."""

from __future__ import annotations

import ast
import functools
import io
import pickle
import sys
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ..environment import interactive
from ..errors import ConfigurationError

SHOWN = 5


class Fault(NamedTuple):
    path: str
    reason: str


def check(strategy: str, roots: Mapping[str, Any]) -> None:
    """Raise ConfigurationError with the path and the reason of everything in `roots` that does not pickle, or that a
    process which imports the script will not find there.
    """
    faults: list[Fault] = []
    seen: set[int] = set()
    guarded = names_under_guard()
    for name, value in roots.items():
        faults += _faults(name, value, guarded, seen)
    if faults:
        shown = "; ".join(f"{fault.path}: {fault.reason}" for fault in faults[:SHOWN])
        more = f"; and {len(faults) - SHOWN} more" if len(faults) > SHOWN else ""
        other = "ddp_fork" if interactive() else "ddp"
        raise ConfigurationError(
            f"strategy {strategy!r} sends everything to its processes, and this cannot be sent: {shown}{more}. "
            f"Or use strategy {other!r}, which sends nothing"
        )


def check_guard(strategy: str) -> None:
    """Raise ConfigurationError where a spawned process, which imports the script, would come to this call again."""
    frame: Any = sys._getframe()
    main = sys.modules["__main__"].__dict__
    while frame is not None and not (frame.f_code.co_name == "<module>" and frame.f_globals is main):
        frame = frame.f_back
    tree = _main_tree()
    if frame is None or tree is None:
        return
    for node in ast.walk(tree):
        if is_guard(node) and node.lineno <= frame.f_lineno <= (node.end_lineno or node.lineno):  # type: ignore[attr-defined]
            return
    raise ConfigurationError(
        f"strategy {strategy!r} imports the script again in each of its processes: put line {frame.f_lineno}, which "
        "starts them, under `if __name__ == '__main__':` (or in a function that is called there)"
    )


# -- the walk -----------------------------------------------------------------------------------------------------


class _Probe(pickle.Pickler):
    """Pickles into nothing, without the data of tensors."""

    def __init__(self, guarded: frozenset[str] | None):
        super().__init__(io.BytesIO())
        self.guarded = guarded

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, torch.Tensor):
            if obj.requires_grad and not obj.is_leaf:
                raise pickle.PicklingError("a tensor with a history; detach() it")
            return int, ()
        if isinstance(obj, (type, types.FunctionType)):
            reason = _not_found(obj, self.guarded)
            if reason is not None:
                raise pickle.PicklingError(reason)
        return NotImplemented


def _not_found(obj: Any, guarded: frozenset[str] | None) -> str | None:
    """Why a process that imports the module of this class or function does not find it there."""
    kind, name = ("class" if isinstance(obj, type) else "function"), obj.__qualname__
    if "<lambda>" in name:
        return "a lambda; give it a name with def at the top of a module"
    if "<locals>" in name:
        return f"{kind} {obj.__name__} is defined inside {name.split('.<locals>')[0]}(); move it to the top of a module"
    if obj.__module__ == "__main__":
        if guarded is None:
            return f"{kind} {name} is defined in an interactive session; put it into a file"
        if name.split(".")[0] in guarded:
            return f"{kind} {name} is defined under `if __name__ == '__main__'`; move it above"
    return None


def _faults(path: str, obj: Any, guarded: frozenset[str] | None, seen: set[int]) -> Iterator[Fault]:
    error = _error(obj, guarded)
    if error is None or id(obj) in seen:
        return
    seen.add(id(obj))
    found = False
    for name, child in _children(obj):
        for fault in _faults(path + name, child, guarded, seen):
            found = True
            yield fault
    if not found and not _was_seen(obj, guarded, seen):
        yield Fault(path, _reason(obj, error))


def _was_seen(obj: Any, guarded: frozenset[str] | None, seen: set[int]) -> bool:
    """Is a part of it to blame that has been named already?"""
    return any(id(child) in seen and _error(child, guarded) is not None for _, child in _children(obj))


def _error(obj: Any, guarded: frozenset[str] | None) -> Exception | None:
    try:
        _Probe(guarded).dump(obj)
    except Exception as error:
        return error
    return None


def _reason(obj: Any, error: Exception) -> str:
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    if isinstance(obj, (type, types.FunctionType, torch.Tensor)):
        return text
    return f"a {type(obj).__module__}.{type(obj).__qualname__} ({text})".replace("builtins.", "")


def _children(obj: Any) -> Iterator[tuple[str, Any]]:
    """The parts of an object, each with how one writes the way to it."""
    if isinstance(obj, (str, bytes, int, float, torch.Tensor, type, types.FunctionType, types.ModuleType)):
        return
    if isinstance(obj, Mapping):
        yield from ((f"[{key!r}]", value) for key, value in obj.items())
        yield from ((f" (key {key!r})", key) for key in obj)
    elif isinstance(obj, (list, tuple, set, frozenset)):
        yield from ((f"[{number}]", value) for number, value in enumerate(obj))
    elif isinstance(obj, functools.partial):
        yield ".func", obj.func
        yield from ((f".args[{number}]", value) for number, value in enumerate(obj.args))
        yield from ((f".keywords[{key!r}]", value) for key, value in obj.keywords.items())
    elif isinstance(obj, types.MethodType):
        yield ".__self__", obj.__self__
    state = _state(obj)
    for name, value in state.items():
        if isinstance(obj, torch.nn.Module) and name in ("_modules", "_parameters", "_buffers"):
            yield from ((f"[{key}]" if key.isdigit() else f".{key}", part) for key, part in value.items())
        else:
            yield f".{name}", value
    if "<locals>" in type(obj).__qualname__ or type(obj).__module__ == "__main__":
        yield "'s class", type(obj)


def _state(obj: Any) -> dict[str, Any]:
    """The attributes that are pickled."""
    own = getattr(type(obj), "__getstate__", None)
    if own is not None and own is not getattr(object, "__getstate__", None):
        try:
            state = obj.__getstate__()
        except Exception:
            return {}
        return state if isinstance(state, dict) else {}
    slots = [name for kind in type(obj).__mro__ for name in getattr(kind, "__slots__", ()) if hasattr(obj, name)]
    attributes = {name: getattr(obj, name) for name in slots if isinstance(name, str) and name != "__dict__"}
    return {**attributes, **getattr(obj, "__dict__", {})}


# -- the script ---------------------------------------------------------------------------------------------------


def _main_tree() -> ast.Module | None:
    file = getattr(sys.modules["__main__"], "__file__", None)
    try:
        return ast.parse(Path(file).read_bytes()) if file else None
    except (OSError, SyntaxError, ValueError):
        return None


def is_guard(node: ast.AST) -> bool:
    """`if __name__ == "__main__":`"""
    return isinstance(node, ast.If) and any(
        isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node.test)
    )


def names_under_guard() -> frozenset[str] | None:
    """Classes and functions that the script defines under its main guard only; None where there is no script."""
    tree = _main_tree()
    if tree is None:
        return None
    inside = {name for node in tree.body if is_guard(node) for name in _defined(node.body)}  # type: ignore[attr-defined]
    outside = set(_defined([node for node in tree.body if not is_guard(node)]))
    return frozenset(inside - outside)


def _defined(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name
        else:
            for part in ("body", "orelse", "handlers", "finalbody"):
                yield from _defined(getattr(node, part, []))
