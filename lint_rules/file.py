"""One file as the rules see it: its facts, each worked out when the first rule asks."""

from __future__ import annotations

import ast
from functools import cached_property

from ptmigrate.migrate.facts.loops import Hot, Loops
from ptmigrate.migrate.facts.names import Names
from ptmigrate.migrate.facts.nodes import Nodes

from .about.classes import Classes
from .about.ranks import Ranks
from .about.tensors import Tensors
from .rule import Finding, Rule


class File:
    def __init__(self, text: str, tree: ast.Module) -> None:
        self.text = text
        self.tree = tree
        self.nodes = Nodes(tree)
        self.names = Names(tree, self.nodes)
        self._ascii = text.isascii()
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
    def global_devices(self) -> set[str]:
        """Names of the module that are given a device: `device = torch.device(...)`."""
        found: set[str] = set()
        for statement in self.tree.body:
            if isinstance(statement, ast.Assign):
                makes = any(
                    isinstance(n, ast.Call) and self.resolve(n.func) == "torch.device"
                    for n in ast.walk(statement.value)
                ) or any(isinstance(n, ast.Constant) and n.value == "cuda" for n in ast.walk(statement.value))
                found.update(t.id for t in statement.targets if isinstance(t, ast.Name) and makes)
        return found

    def hot(self, node: ast.AST) -> Hot | None:
        return self.loops.hot(node)

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

    def finding(self, node: ast.AST, rule: Rule, message: str) -> Finding:
        line, end_line = node.lineno, node.end_lineno  # type: ignore[attr-defined]
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.If | ast.For | ast.While):
            # the header alone, not the whole block
            end_line, end_column = line, len(self.lines[line - 1].rstrip()) + 1
        else:
            end_column = self.column(end_line, node.end_col_offset)  # type: ignore[attr-defined]
        column = self.column(line, node.col_offset)  # type: ignore[attr-defined]
        return Finding(rule.code, rule.name, line, column, end_line, end_column, message, rule.fix)

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
        if isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return node


def is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"
