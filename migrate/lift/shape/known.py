"""Statements as they read where some names have one known value: what asks for them is answered."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from ...facts.nodes import walk
from ...facts.scopes import Scope
from ...facts.script import Facts
from ...facts.text import lines_of
from ..splice import Splice, indent

GIVEN = object()  # the value of a name that holds something: not None, not empty
GRAD_MODES = {"torch.enable_grad": True, "contextlib.nullcontext": True, "torch.no_grad": False}
# a test of these does nothing but answer
PLAIN = (ast.Name, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.cmpop, ast.boolop, ast.unaryop, ast.Load)
LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


class Known:
    """`values`: what names of `scope` hold: a constant, or GIVEN."""

    def __init__(self, facts: Facts, scope: Scope, values: Mapping[str, object]) -> None:
        self.facts, self.scope, self.values = facts, scope, dict(values)
        self.splice = Splice(facts.text)

    def lines(self, statements: list[ast.stmt]) -> list[str]:
        """The statements at no indentation, without branches that are never taken and what follows a `return`."""
        found: list[str] = []
        for s in statements:
            written = self._statement(s)
            if found and written and self.splice.is_parted(s):
                found.append("")
            found += written
            if self._leaves(s):
                break
        return found

    def answer(self, test: ast.expr) -> bool | None:
        """What a test is; None where it depends on something else."""
        if isinstance(test, ast.Name):
            return bool(self.values[test.id]) if self._has(test) else None
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            return self._comparison(test)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self.answer(test.operand)
            return None if inner is None else not inner
        if isinstance(test, ast.BoolOp):
            parts = [self.answer(v) for v in test.values]
            final = isinstance(test.op, ast.Or)
            if final in parts:
                return final
            return (not final) if all(p is not None for p in parts) else None
        return None

    def head(self, s: ast.stmt) -> list[str]:
        """The line that opens a block, up to its colon."""
        text = self.facts.text
        start, _ = text.span(s)
        parts = [n for n in ast.iter_child_nodes(s) if not isinstance(n, ast.stmt)]
        stop = text.text.index(":", max(text.span(n)[1] for p in parts for n in walk(p) if hasattr(n, "lineno"))) + 1
        lines = [line.rstrip() for line in lines_of(self._text(parts, start, stop))]
        return [lines[0].removeprefix("el"), *lines[1:]] if self._is_elif(s) else lines

    def _statement(self, s: ast.stmt) -> list[str]:
        written = self._rewritten(s)
        if written is None:
            replaced = self._replaced(s) if self._asks(s) else {}
            if not self._is_elif(s):
                return self.splice.render(s, replaced, self.splice.floor(s))
            lines = self.splice.render(s, replaced)
            at = next(i for i, line in enumerate(lines) if line.startswith("elif"))  # what stands above is another's
            return [lines[at].removeprefix("el"), *lines[at + 1 :]]
        return [*self._comments(s), *written] if written else []

    def _rewritten(self, s: ast.stmt) -> list[str] | None:
        """The lines of a statement that is answered, or holds one that is; None where it stays as it stands."""
        unit = self.facts.indentation
        if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name) and self._has(s.targets[0]):
            return []  # every read of it is answered
        if (mode := self._mode(s)) is not None:
            return [mode]
        if isinstance(s, ast.If):
            answer = self.answer(s.test)
            if answer is not None:
                return self.lines(s.body if answer else s.orelse)
        if isinstance(s, ast.With) and (answer := self._grad_enabled(s)) is not None:
            inner = self.lines(s.body)
            return inner if answer or not inner else ["with torch.no_grad():", *indent(inner, unit)]
        if isinstance(s, (ast.For, ast.With, ast.While, ast.If)) and self._asks(s):
            body, orelse = self.lines(s.body), self.lines(getattr(s, "orelse", []))
            if not (body or orelse) and isinstance(s, ast.If) and all(isinstance(n, PLAIN) for n in walk(s.test)):
                return []  # nothing is left that it decides
            block = [*self.head(s), *indent(body or ["pass"], unit)]
            if getattr(s, "orelse", []):
                block += ["else:", *indent(orelse or ["pass"], unit)]
            return block
        return None

    def _is_elif(self, s: ast.stmt) -> bool:
        return isinstance(s, ast.If) and self.facts.text.get(s).startswith("elif")

    def _comments(self, s: ast.stmt) -> list[str]:
        """The comments above a statement, with the empty lines between them."""
        first, _ = self.splice.with_comments(s, self.splice.floor(s))
        a, b = self.facts.text.line_span(first, s.lineno - 1) if first < s.lineno and not self._is_elif(s) else (0, 0)
        return [line.strip() for line in lines_of(self.facts.text.text[a:b].rstrip())] if b else []

    def _mode(self, s: ast.stmt) -> str | None:
        """`model.train(training)` as `model.train()` or `model.eval()`."""
        call = s.value if isinstance(s, ast.Expr) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "train":
            return None
        answer = self.answer(call.args[0]) if len(call.args) == 1 and not call.keywords else None
        if answer is None:
            return None
        return f"{self.facts.text.get(call.func.value)}.{'train' if answer else 'eval'}()"

    def _grad_enabled(self, s: ast.With) -> bool | None:
        """Whether a block whose flag is answered has gradients."""
        call = s.items[0].context_expr
        chosen = self.answer(call.test) if isinstance(call, ast.IfExp) else None
        if isinstance(call, ast.IfExp) and chosen is not None:
            call = call.body if chosen else call.orelse
        if len(s.items) > 1 or s.items[0].optional_vars is not None or not isinstance(call, ast.Call):
            return None
        if chosen is not None and not call.args:
            return GRAD_MODES.get(self.facts.names.resolve(call.func) or "")
        if self.facts.names.resolve(call.func) != "torch.set_grad_enabled" or not call.args:
            return None
        return self.answer(call.args[0])

    def _leaves(self, s: ast.stmt) -> bool:
        """Whether nothing after the statement runs."""
        if isinstance(s, ast.If) and (answer := self.answer(s.test)) is not None:
            return any(self._leaves(n) for n in (s.body if answer else s.orelse))
        return isinstance(s, LEAVES)

    def _asks(self, s: ast.AST) -> bool:
        return bool(self.values) and any(self._has(n) for n in walk(s, ast.Name))

    def _has(self, name: ast.Name) -> bool:
        return name.id in self.values and self.facts.scopes.scope_of(name).lookup(name.id) is self.scope

    def _text(self, nodes: Sequence[ast.AST], start: int, stop: int) -> str:
        """What stands there, of which `nodes` are parts, with what is known in it."""
        found = self.facts.text.text[start:stop]
        replaced = {span: new for node in nodes if self._asks(node) for span, new in self._replaced(node).items()}
        for (a, b), new in sorted(replaced.items(), reverse=True):
            found = found[: a - start] + new + found[b - start :]
        return found

    def _replaced(self, node: ast.AST) -> dict[tuple[int, int], str]:
        """The answers and values by place, none inside another."""
        span = self.facts.text.span
        if isinstance(node, ast.IfExp) and (answer := self.answer(node.test)) is not None:
            branch = node.body if answer else node.orelse
            return {span(node): self._text([branch], *span(branch))}
        if isinstance(node, (ast.BoolOp, ast.Compare, ast.UnaryOp)) and (answer := self.answer(node)) is not None:
            return {span(node): str(answer)}
        if isinstance(node, ast.BoolOp) and 0 < len(open_parts := self._open_parts(node)) < len(node.values):
            word = " and " if isinstance(node.op, ast.And) else " or "
            return {span(node): word.join(map(self._operand, open_parts))}
        if isinstance(node, ast.Name):
            value = self.values.get(node.id, GIVEN)
            if value is GIVEN or not isinstance(node.ctx, ast.Load) or not self._has(node):
                return {}
            return self._written_out(node, value)
        found: dict[tuple[int, int], str] = {}
        for child in ast.iter_child_nodes(node):
            found.update(self._replaced(child))
        if isinstance(node, ast.JoinedStr) and self._loses_fields(node):
            start, _ = span(node)
            found[start, start + 1] = ""
        return found

    def _open_parts(self, node: ast.BoolOp) -> list[ast.expr]:
        """What is not answered of `phase == "val" and acc > best`; the last part stays where it is a value."""
        if "#" in self.facts.text.get(node):  # a comment of one of them
            return node.values
        up = self.facts.scopes.parents.get(node)
        asked = isinstance(up, (ast.If, ast.While)) and up.test is node
        return [v for i, v in enumerate(node.values) if self.answer(v) is None or not (asked or node.values[i + 1 :])]

    def _operand(self, part: ast.expr) -> str:
        found = self._text([part], *self.facts.text.span(part))
        return f"({found})" if isinstance(part, (ast.BoolOp, ast.IfExp, ast.Lambda, ast.NamedExpr)) else found

    def _written_out(self, name: ast.Name, value: object) -> dict[tuple[int, int], str]:
        """The value in the place of a name; `{phase}` of an f-string as a part of the string."""
        a, b = self.facts.text.span(name)
        if not isinstance(value, str):
            return {(a, b): repr(value)}
        string = next((u for u in self.facts.scopes.ancestors(name) if isinstance(u, ast.JoinedStr)), None)
        if string is None:
            return {(a, b): f"'{value}'"}
        if self._becomes_text(name, value):
            return {(a - 1, b + 1): value}
        quote = '"' if self.facts.text.get(string)[1:2] == "'" else "'"
        return {(a, b): f"{quote}{value}{quote}"}

    def _becomes_text(self, name: ast.Name, value: str) -> bool:
        """Whether a name is a field of its own in an f-string: `{phase}`."""
        (a, b), text = self.facts.text.span(name), self.facts.text.text
        field = isinstance(self.facts.scopes.parents[name], ast.FormattedValue)
        return field and text[a - 1] + text[b] == "{}" and value.isidentifier()

    def _loses_fields(self, node: ast.JoinedStr) -> bool:
        """Whether all fields of an f-string, in one piece, become text: it is a plain string then."""
        source, fields = self.facts.text.get(node), [v for v in node.values if isinstance(v, ast.FormattedValue)]
        if source[:1] not in ("f", "F") or source[1] in source[2:-1] or "{{" in source or "}}" in source:
            return False
        names = [v.value for v in fields if isinstance(v.value, ast.Name) and self._has(v.value)]
        known = [n for n in names if isinstance(v := self.values[n.id], str) and self._becomes_text(n, v)]
        return 0 < len(fields) == len(known)

    def _comparison(self, test: ast.Compare) -> bool | None:
        left, op, right = test.left, test.ops[0], test.comparators[0]
        if not (isinstance(left, ast.Name) and self._has(left)):
            return None
        value: Any = self.values[left.id]
        if isinstance(right, ast.Constant) and isinstance(op, (ast.Is, ast.IsNot)):
            same = value is right.value if value is not GIVEN else None if right.value is not None else False
            return None if same is None else same is isinstance(op, ast.Is)
        if value is GIVEN:
            return None
        if isinstance(right, ast.Constant) and isinstance(op, (ast.Eq, ast.NotEq)):
            return (value == right.value) is isinstance(op, ast.Eq)
        if isinstance(right, (ast.List, ast.Tuple, ast.Set)) and isinstance(op, (ast.In, ast.NotIn)):
            values = [e.value for e in right.elts if isinstance(e, ast.Constant)]
            return (value in values) is isinstance(op, ast.In) if len(values) == len(right.elts) else None
        return None
