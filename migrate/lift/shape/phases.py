"""`for phase in ["train", "val"]:` around the batch loop is written out: one pass for training, one for evaluation.

In each copy the phase is known, so what asks for it (`if phase == "train":`, `set_grad_enabled(phase == "train")`) is
answered.
"""

from __future__ import annotations

import ast

from ...facts.script import Facts
from ...facts.text import lines_of
from ..nodes import is_call_of, walk_here
from ..splice import indent
from .edits import Edits, block_lines

MOST = 4  # copies of a loop that a person would write out


def write_out_phases(facts: Facts) -> str | None:
    """The text with one loop over phases written out; None where there is none."""
    for loop in facts.walk(ast.For):
        phases = _phases(facts, loop)
        if phases is None:
            continue
        copies: list[str] = []
        for phase in phases:
            lines = _Phase(facts, loop, phase).lines(loop.body)
            copies += ([""] if copies else []) + lines
        edits = Edits(facts)
        first = facts.text.line_of(facts.text.span(loop)[0])
        edits.replace_lines(first, loop.end_lineno or first, indent(copies, facts.text.margin(loop)))
        return edits.done()
    return None


def _phases(facts: Facts, loop: ast.For) -> list[str] | None:
    """The texts that a loop around a batch loop goes through."""
    if not isinstance(loop.iter, ast.List | ast.Tuple) or not isinstance(loop.target, ast.Name) or loop.orelse:
        return None
    texts = [e.value for e in loop.iter.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)]
    if len(texts) != len(loop.iter.elts) or not 1 < len(texts) <= MOST or facts.text.margin(loop).strip():
        return None
    name = loop.target.id
    for n in walk_here(loop):
        if isinstance(n, ast.Break | ast.Continue) and _nearest_loop(facts, n) is loop:
            return None
        if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) and n is not loop.target:
            return None
    scope = facts.scopes.scope_of(loop)
    if any(loop not in facts.scopes.ancestors(read) for read in facts.scopes.reads(name, scope)):
        return None
    trains = any(isinstance(n, ast.For) and any(is_call_of(x, "backward") for x in ast.walk(n)) for n in loop.body)
    return texts if trains else None


def _nearest_loop(facts: Facts, n: ast.AST) -> ast.AST | None:
    return next((up for up in facts.scopes.ancestors(n) if isinstance(up, ast.For | ast.While)), None)


class _Phase:
    """The loop's statements as they read in one phase."""

    def __init__(self, facts: Facts, loop: ast.For, phase: str) -> None:
        self.facts, self.phase = facts, phase
        assert isinstance(loop.target, ast.Name)
        self.name = loop.target.id

    def lines(self, statements: list[ast.stmt]) -> list[str]:
        found: list[str] = []
        for s in statements:
            found += self._statement(s)
        return found

    def _statement(self, s: ast.stmt) -> list[str]:
        if isinstance(s, ast.If):
            answer = self._answer(s.test)
            if answer is True:
                return self.lines(s.body)
            if answer is False:
                return self.lines(s.orelse)
        if isinstance(s, ast.With) and len(s.items) == 1 and s.items[0].optional_vars is None:
            call = s.items[0].context_expr
            if isinstance(call, ast.Call) and self.facts.names.resolve(call.func) == "torch.set_grad_enabled":
                answer = self._answer(call.args[0]) if call.args else None
                if answer is True:
                    return self.lines(s.body)
                if answer is False:
                    return ["with torch.no_grad():", *indent(self.lines(s.body), self.facts.indentation)]
        if self._asks(s) and isinstance(s, ast.For | ast.With | ast.While) and not getattr(s, "orelse", []):
            return [*self._head(s), *indent(self.lines(s.body), self.facts.indentation)]
        return block_lines(self.facts, [s], self._replaced(s))

    def _asks(self, s: ast.stmt) -> bool:
        return any(isinstance(n, ast.Name) and n.id == self.name for n in ast.walk(s))

    def _head(self, s: ast.For | ast.With | ast.While) -> list[str]:
        """The line that opens a block, up to its colon."""
        text = self.facts.text
        start, _ = text.span(s)
        stop, _ = text.span(s.body[0])
        head = text.text[start:stop]
        for (a, b), new in sorted(self._replaced(s).items(), reverse=True):
            if start <= a and b <= stop:
                head = head[: a - start] + new + head[b - start :]
        return [line.rstrip() for line in lines_of(head.rstrip())]

    def _replaced(self, s: ast.stmt) -> dict[tuple[int, int], str]:
        found = {}
        for n in ast.walk(s):
            if isinstance(n, ast.BoolOp | ast.Compare) and (answer := self._answer(n)) is not None:
                found[self.facts.text.span(n)] = str(answer)
            elif isinstance(n, ast.Name) and n.id == self.name:
                quote = '"' if self._in_single_quotes(n) else "'"
                found[self.facts.text.span(n)] = f"{quote}{self.phase}{quote}"
        return found

    def _in_single_quotes(self, n: ast.AST) -> bool:
        """Inside an f-string that is written with single quotes."""
        around = next((u for u in self.facts.scopes.ancestors(n) if isinstance(u, ast.JoinedStr)), None)
        return around is not None and self.facts.text.get(around)[1:2] == "'"

    def _answer(self, test: ast.expr) -> bool | None:
        """What a test is in this phase; None where it depends on something else."""
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            return self._comparison(test)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self._answer(test.operand)
            return None if inner is None else not inner
        if isinstance(test, ast.BoolOp):
            parts = [self._answer(v) for v in test.values]
            final = isinstance(test.op, ast.Or)
            if final in parts:
                return final
            return (not final) if all(p is not None for p in parts) else None
        return None

    def _comparison(self, test: ast.Compare) -> bool | None:
        left, op, right = test.left, test.ops[0], test.comparators[0]
        if not (isinstance(left, ast.Name) and left.id == self.name):
            return None
        if isinstance(right, ast.Constant) and isinstance(op, ast.Eq | ast.NotEq):
            return (self.phase == right.value) is isinstance(op, ast.Eq)
        if isinstance(right, ast.List | ast.Tuple | ast.Set) and isinstance(op, ast.In | ast.NotIn):
            values = [e.value for e in right.elts if isinstance(e, ast.Constant)]
            return (self.phase in values) is isinstance(op, ast.In) if len(values) == len(right.elts) else None
        return None
