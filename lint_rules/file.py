"""One file as the rules see it: its facts, each worked out when the first rule asks."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from ptmigrate.migrate.facts.loops import EVALUATES, Hot, Loops
from ptmigrate.migrate.facts.names import Names
from ptmigrate.migrate.facts.nodes import Nodes, walk
from ptmigrate.migrate.facts.own_methods import PYTHONS

from .about.classes import Classes
from .about.ranks import Ranks
from .about.tensors import Tensors
from .rule import Finding, Rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ptmigrate.migrate.facts.script import Facts

    from .edits import Repair

COMPREHENSIONS: tuple[type[ast.ListComp] | type[ast.SetComp] | type[ast.DictComp] | type[ast.GeneratorExp], ...] = (
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)


class File:
    def __init__(self, text: str, tree: ast.Module) -> None:
        self.text = text
        self.tree = tree
        self.nodes = Nodes(tree)
        self.names = Names(tree, self.nodes)
        self._ascii = text.isascii()
        self.repairs: dict[Finding, Repair] | None = None  # a dictionary where the findings are to be mended
        self.old_async: list[ast.keyword] = []  # `async=`, which is mended before the file is parsed
        self.resolve = self.names.resolve

    @cached_property
    def loops(self) -> Loops:
        return Loops(self.tree, self.names, self.nodes)

    @cached_property
    def classes(self) -> Classes:
        return Classes(self.nodes, self.names)

    @cached_property
    def ranks(self) -> Ranks:
        return Ranks(self.nodes, self.names)

    @cached_property
    def tensors(self) -> Tensors:
        return Tensors(self.nodes, self.names, self.loops)

    @cached_property
    def facts(self) -> Facts:
        """What the migration knows of the file, for the few rules that need it."""
        from ptmigrate.migrate.facts.script import Facts

        return Facts(self.text, self.tree)

    @cached_property
    def own_methods(self) -> set[str]:
        """The names of methods of classes that derive from none of a library's, for which the facts are asked."""
        plain = [c for c in self.nodes.of(ast.ClassDef) if all(getattr(b, "id", "") in PYTHONS for b in c.bases)]
        return {s.name for c in plain for s in c.body if isinstance(s, ast.FunctionDef)}

    @cached_property
    def global_devices(self) -> set[str]:
        """Names of the module that are given a device: `device = torch.device(...)`."""
        found: set[str] = set()
        for statement in self.tree.body:
            if isinstance(statement, ast.Assign):
                makes = any(self.resolve(n.func) == "torch.device" for n in walk(statement.value, ast.Call)) or any(
                    isinstance(n, ast.Constant) and n.value == "cuda" for n in walk(statement.value)
                )
                found.update(t.id for t in statement.targets if isinstance(t, ast.Name) and makes)
        return found

    def hot(self, node: ast.AST) -> Hot | None:
        return self.loops.hot(node) or (self._hot_comprehension(node) if self._hot_comprehensions else None)

    @cached_property
    def _hot_comprehensions(self) -> set[ast.AST]:
        """Comprehensions that call a model on each batch of a loader: `[model(x).cpu() for x in loader]`."""
        return {
            c
            for kind in COMPREHENSIONS
            for c in self.nodes.of(kind)
            if self.loops.is_loader(c.generators[0].iter)
            and any(self.loops.is_model_call(n) for n in walk(c, ast.Call))
        }

    def _hot_comprehension(self, node: ast.AST) -> Hot | None:
        for up in self.nodes.ancestors(node):
            if up in self._hot_comprehensions and not self._in_first_iterable(node, up):
                return Hot(up, EVALUATES)  # type: ignore[arg-type]  # a loop, if no statement
            if isinstance(up, (ast.stmt, ast.Lambda)):
                return None
        return None

    def _in_first_iterable(self, node: ast.AST, comprehension: ast.AST) -> bool:
        first = comprehension.generators[0].iter  # type: ignore[attr-defined]
        return node is first or any(up is first for up in self.nodes.ancestors(node))

    @cached_property
    def renamed(self) -> list[tuple[str, str]]:
        """Local and original names: `from torch.utils.data import DataLoader as Loader`, `Loader = data.DataLoader`."""
        imported = [
            (a.asname, a.name)
            for node in self.nodes.of(ast.ImportFrom)
            for a in node.names
            if a.asname and a.asname != a.name
        ]
        assigned = [
            (a.targets[0].id, a.value.attr)
            for a in self.nodes.of(ast.Assign)
            if a.value.__class__ is ast.Attribute and a.targets[0].__class__ is ast.Name
        ]
        return list(dict.fromkeys(imported + [(local, name) for local, name in assigned if local != name]))

    def calls_named(self, *names: str) -> Iterator[ast.Call]:
        """The calls of what has one of these last names, also where it is imported under another."""
        wanted = dict.fromkeys([*names, *(local for local, name in self.renamed if name in names)])
        for name in wanted:
            yield from self.nodes.calls.get(name, ())

    @cached_property
    def kept(self) -> list[tuple[ast.Attribute, ast.expr, ast.stmt]]:
        """What is kept in attributes of `self`: (target, value, statement), tuples taken apart."""
        found: list[tuple[ast.Attribute, ast.expr, ast.stmt]] = []
        for assign in self.nodes.of(ast.Assign):
            for target in assign.targets:
                pairs = [(target, assign.value)]
                if isinstance(target, ast.Tuple) and isinstance(assign.value, ast.Tuple):
                    pairs = list(zip(target.elts, assign.value.elts, strict=False))
                found += [(t, v, assign) for t, v in pairs if isinstance(t, ast.Attribute) and is_self(t.value)]
        return found

    def constant(self, node: ast.AST | None) -> object:
        """The value of a literal, or of a name that the scope gives nothing but one literal; None for all else."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            values = self.tensors.assigned(node) or self.module_values.get(node.id, [])
            if len(values) == 1 and isinstance(values[0], ast.Constant):
                return values[0].value
        return None

    @cached_property
    def torch(self) -> str | None:
        """The name under which the module imports torch."""
        for statement in self.tree.body:
            for a in statement.names if isinstance(statement, ast.Import) else ():
                if a.name == "torch" or (a.name.startswith("torch.") and a.asname is None):
                    return a.asname or "torch"
        return None

    @cached_property
    def module_values(self) -> dict[str, list[ast.expr]]:
        """What the module itself gives its names, plain assignments alone."""
        found: dict[str, list[ast.expr]] = {}
        for statement in self.tree.body:
            if isinstance(statement, ast.Assign):
                for target in statement.targets:
                    if isinstance(target, ast.Name):
                        found.setdefault(target.id, []).append(statement.value)
        return found

    # -- places and texts -------------------------------------------------------------------------------------------

    @cached_property
    def lines(self) -> list[str]:
        r"""The lines as the parser counts them: at \n, \r\n and \r, nowhere else."""
        text = self.text
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        return text.split("\n")

    def column(self, line: int, utf8_column: int) -> int:
        """The column from 1, in characters."""
        if self._ascii or line > len(self.lines):
            return utf8_column + 1
        return len(self.lines[line - 1].encode("utf-8")[:utf8_column].decode("utf-8", "ignore")) + 1

    def finding(self, node: ast.AST, rule: Rule, message: str, repair: Repair | None = None) -> Finding:
        line, end_line = node.lineno, node.end_lineno  # type: ignore[attr-defined]
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.If, ast.For, ast.While)):
            # the header alone, not the whole block
            end_line, end_column = line, len(self.lines[line - 1].rstrip()) + 1
        else:
            end_column = self.column(end_line, node.end_col_offset)  # type: ignore[attr-defined]
        column = self.column(line, node.col_offset)  # type: ignore[attr-defined]
        fix = rule.fix if rule.settled_by or repair is not None else None
        finding = Finding(rule.code, rule.name, line, column, end_line, end_column, message, fix)
        if repair is not None and self.repairs is not None:
            self.repairs[finding] = repair
        return finding

    def source(self, node: ast.AST, width: int = 50) -> str:
        """The node's source on one line, cut to a readable width."""
        lines = self.lines[node.lineno - 1 : node.end_lineno]  # type: ignore[attr-defined]
        if not self._ascii:
            encoded = [line.encode("utf-8") for line in lines]
            encoded[-1] = encoded[-1][: node.end_col_offset]  # type: ignore[attr-defined]
            encoded[0] = encoded[0][node.col_offset :]  # type: ignore[attr-defined]
            lines = [line.decode("utf-8", "replace") for line in encoded]
        elif len(lines) == 1:
            lines = [lines[0][node.col_offset : node.end_col_offset]]  # type: ignore[attr-defined]
        else:
            lines = [lines[0][node.col_offset :], *lines[1:-1], lines[-1][: node.end_col_offset]]  # type: ignore[attr-defined]
        one = " ".join(" ".join(lines).split())
        return one if len(one) <= width else one[: width - 3] + "..."


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """The value of a keyword argument."""
    for k in call.keywords:
        if k.arg == name:
            return k.value
    return None


def passes_unknown(call: ast.Call) -> bool:
    """Whether `*args` or `**kwargs` may hold arguments that are not seen."""
    return any(k.arg is None for k in call.keywords) or any(isinstance(a, ast.Starred) for a in call.args)


def argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    """An argument by position or by keyword."""
    if position < len(call.args) and not any(isinstance(a, ast.Starred) for a in call.args[: position + 1]):
        return call.args[position]
    return keyword(call, name)


def argument_node(call: ast.Call, position: int, name: str) -> ast.expr | ast.keyword | None:
    """The same with its `name=`, where it has one."""
    given = next((k for k in call.keywords if k.arg == name), None)
    return given or argument(call, position, name)


def is_constant(node: ast.AST | None, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def last_part(node: ast.AST) -> str | None:
    """The last part of a dotted name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def root(node: ast.AST) -> ast.AST:
    """What a chain of attributes, subscripts and calls starts from."""
    while True:
        if isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return node


def is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"
