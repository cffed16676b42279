"""Functions and classes of the project's other files: what a step calls there may mix the samples of its batch, too."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from .classes import Function
from .nodes import LOOPS

if TYPE_CHECKING:
    from .script import Facts

    Found = tuple["OtherFile", Facts, ast.FunctionDef | ast.ClassDef]

T = TypeVar("T")
_DEFINED = re.compile(r"^(?:async +def|def|class) +(\w+)", re.MULTILINE)


class OtherFile:
    """A file, which is parsed when something that it defines is asked for."""

    def __init__(self, stem: str, text: str, folder: str = "") -> None:
        """`folder`: the name of the one that it lies in, where that is known."""
        self.stem, self.text, self.folder = stem, text, folder
        self.names = frozenset(_DEFINED.findall(text))
        self._answers: dict[Callable[[str], object], object] = {}

    def once(self, ask: Callable[[str], T]) -> T:
        """What a function says of the text, which every file of a project asks for: answered once."""
        if ask not in self._answers:
            self._answers[ask] = ask(self.text)
        return self._answers[ask]  # type: ignore[return-value]

    def facts(self) -> Facts | None:
        from .script import facts_of  # which has this one

        try:
            return facts_of(self.text)
        except (SyntaxError, RecursionError):
            return None


class There(NamedTuple):
    """A function, or a class's forward, of another file."""

    file: OtherFile
    facts: Facts
    f: Function | ast.Lambda
    holder: ast.ClassDef | None


def name_there(facts: Facts, func: ast.expr) -> str | None:
    """The name that another file has for it, where an import gives it: a relative one or a star, too."""
    full = facts.names.resolve(func)
    root, attributes = func, ""
    while full is None and isinstance(root, ast.Attribute):
        attributes = f".{root.attr}{attributes}"
        root = root.value
    if full is not None or not isinstance(root, ast.Name):
        return full
    home = facts.scopes.scope_of(root).lookup(root.id)
    if home is None:
        stars = [s.module for s in facts.walk(ast.ImportFrom) if any(a.name == "*" for a in s.names)]
        of_one = f"{stars[0]}." if len(stars) == 1 and stars[0] is not None else ""
        return f"{of_one}{root.id}{attributes}" if stars else None
    stores = [s for s in home.stores.get(root.id, []) if not _is_given_by(facts, s, root)]
    of = facts.scopes.parents.get(stores[0]) if len(stores) == 1 else None
    if not isinstance(of, (ast.Import, ast.ImportFrom)) or not isinstance(stores[0], ast.alias):
        return None
    if isinstance(of, ast.Import):
        return f"{stores[0].name}{attributes}" if stores[0].asname or "." not in stores[0].name else None
    return f"{of.module + '.' if of.module else ''}{stores[0].name}{attributes}"


def _is_given_by(facts: Facts, store: ast.AST, read: ast.Name) -> bool:
    """`model = model.Net()`, once: what it reads is still what was imported."""
    s = facts.scopes.parents.get(store)
    once = isinstance(s, ast.Assign) and not any(isinstance(up, LOOPS) for up in facts.scopes.ancestors(s))
    return once and facts.scopes.statement_of(read) is s and facts.scopes.scope_of(read) is facts.scopes.scope_of(s)


def defined_there(facts: Facts, func: ast.expr) -> There | None:
    """What a name of another file stands for: a function, or a class by what its objects run when they are called."""
    found = found_there(facts, func)
    if found is None:
        return None
    file, there, own = found
    if isinstance(own, ast.FunctionDef):
        return There(file, there, own, None)
    f = there.classes.method(own, "forward" if own in there.classes.modules else "__call__")
    return There(file, there, f, own) if f is not None else None


def is_module_there(facts: Facts, func: ast.expr) -> bool:
    """Whether a name stands for a network's class of another file."""
    found = found_there(facts, func) if facts.others else None
    return found is not None and found[2] in found[1].classes.modules


def found_there(facts: Facts, func: ast.expr) -> Found | None:
    """The function or the class of another file that a name stands for."""
    full = name_there(facts, func)
    parts = (full or "").split(".")
    if full is None or parts[0] in ("torch", "numpy"):
        return None
    found = [o for o in facts.others if parts[-1] in o.names]
    by_name = [o for o in found if len(parts) > 1 and o.stem == parts[-2]]
    found = by_name or found
    there = found[0].facts() if len(found) == 1 else None
    if there is None:
        return None
    there.others = facts.others
    own = [s for s in there.tree.body if isinstance(s, (ast.FunctionDef, ast.ClassDef)) and s.name == parts[-1]]
    return (found[0], there, own[0]) if len(own) == 1 else None
