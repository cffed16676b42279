"""What gives a file's names their values, as statements that another file could have too: imports, and devices."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

from .codemods.mend_async import mend
from .facts.nodes import walk
from .facts.script import Facts
from .facts.source import read_source

# calls that give the same value wherever they are made
SAME_ANYWHERE = {
    "torch.device",
    "torch.cuda.is_available",
    "torch.backends.mps.is_available",
    "torch.cuda.device_count",
}


class Stays(Exception):
    """The script would not be the same program; the reason is told."""


def imports_of(facts: Facts, name: str, package: list[str]) -> list[str] | None:
    """The import statements that give a file's name its one value; None where something else does, or several do."""
    scopes, found = facts.scopes, []
    for store in scopes.module.stores[name]:
        holder = scopes.statement_of(store)
        if holder not in facts.tree.body or not isinstance(store, ast.alias) or store.name == "*":
            return None
        if isinstance(holder, ast.Import):
            found.append(f"import {alias(store)}")
        elif isinstance(holder, ast.ImportFrom):
            found.append(f"from {module_of(holder, package, name)} import {alias(store)}")
    found = list(dict.fromkeys(found))
    return found if len(found) == 1 or all(is_package(i, name) for i in found) else None


def module_of(s: ast.ImportFrom, package: list[str], name: str) -> str:
    """The whole name of the module that an import asks for, in a file of `package`."""
    if s.level > len(package):
        raise Stays(f"`{name}` comes from above its package")
    above = package[: len(package) - s.level + 1] if s.level else []
    return ".".join([*above, *([s.module] if s.module else [])])


def device_of(facts: Facts, name: str) -> str | None:
    """`name = torch.device(...)` where that is the name's one value and reads nothing but torch."""
    stores = facts.scopes.module.stores[name]
    s = facts.scopes.statement_of(stores[0]) if len(stores) == 1 else None
    if (
        s not in facts.tree.body
        or not isinstance(s, ast.Assign)
        or len(s.targets) != 1
        or s.targets[0] is not stores[0]
    ):
        return None
    if any(name in scope.globals for scope in facts.scopes.by_node.values()):
        return None
    calls = list(walk(s.value, ast.Call))
    read = {n.id for n in walk(s.value, ast.Name)}
    same = bool(calls) and all(facts.names.resolve(c.func) in SAME_ANYWHERE for c in calls)
    plain = read == {"torch"} and imports_of(facts, "torch", []) == ["import torch"]
    return ast.unparse(s) if same and plain else None


def starred(facts: Facts, package: list[str], find: Callable[[str], Path | None], depth: int = 0) -> dict[str, str]:
    """The names that `from module import *` gives a file, each with the import that gives it alone.

    `find`: the file of a local module. Raise Stays for a module of which the names are not known.
    """
    found: dict[str, str] = {}
    for s in facts.tree.body:
        if not (isinstance(s, ast.ImportFrom) and any(a.name == "*" for a in s.names)):
            continue
        module = module_of(s, package, "*")
        path = find(module)
        if path is None or depth > 5:
            raise Stays(f"what `from {module} import *` gives does not show")
        other = Facts(mend(read_source(path).text)[0])
        if other.scopes.module.binds("__all__"):
            raise Stays(f"what `from {module} import *` gives does not show")
        inside = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
        found |= starred(other, inside, find, depth + 1)
        for name in other.scopes.module.stores:
            if not name.startswith("_"):
                made = imports_of(other, name, inside)
                found[name] = _as_one(made, name) if made is not None else f"from {module} import {name}"
    return found


def _as_one(made: list[str], name: str) -> str:
    """One statement for a name's imports: `import torch, torch.nn`."""
    if len(made) == 1 and not is_package(made[0], name):
        return made[0]
    return "import " + ", ".join(i.removeprefix("import ") for i in made)


def renamed(statement: str, name: str, new: str) -> str | None:
    """An import that gives its value by another name; None where it cannot: `import torch.utils.data`."""
    if is_dotted(statement):
        return None
    start = statement.removesuffix(f" as {name}")
    return f"{start} as {new}"


def is_package(statement: str, name: str) -> bool:
    """Whether it binds the package alone, as `import torch.utils.data` does."""
    parts = statement.removeprefix("import ").split(", ")
    return statement.startswith("import ") and all(
        p == name or (p.startswith(f"{name}.") and " as " not in p) for p in parts
    )


def parts_of(statement: str) -> list[str]:
    """`import torch`, `import torch.nn` of `import torch, torch.nn`."""
    return [f"import {p}" for p in statement.removeprefix("import ").split(", ")]


def same_value(a: list[str] | None, b: list[str] | None, name: str) -> bool:
    """Whether two files' imports give a name the same value: by the same statements, or the package of that name."""
    if a is None or b is None:
        return False
    return a == b or all(is_package(i, name) for i in [*a, *b])


def is_dotted(statement: str) -> bool:
    """`import a.b`, which gives `a` a value and loads `a.b` too."""
    return statement.startswith("import ") and "." in statement and " as " not in statement


def alias(a: ast.alias) -> str:
    return f"{a.name} as {a.asname}" if a.asname else a.name
