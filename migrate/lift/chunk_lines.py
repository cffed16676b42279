"""The lines that a chunk of the script has in its method: its statements as they are written, and what they need."""

from __future__ import annotations

import ast

from ..facts.nodes import walk
from .chunks import Chunk, Variable
from .comments_below import above_return, below_pass, comments_below
from .counters import counter_of
from .modes import drops_mode
from .nodes import walk_here
from .recipe import CannotLift
from .rewriting import Rewriter
from .totals import Where


class ChunkLines(Rewriter):
    """Writes the bodies of methods, at no indentation."""

    def chunk_lines(self, chunk: Chunk) -> list[str]:
        """All of them, without what the Trainer does itself."""
        lines: list[str] = []
        dropped = (
            set(self.own_device.dropped)
            | set(self.recipe.optimization.dropped)
            | set(drops_mode(self.facts, self.recipe, chunk))
        )
        lines += self._brought_together(chunk)
        lines += self._alias_lines(chunk)
        lines += self._optimizer_lines(chunk)
        lines += self._comments_of_pass(chunk)
        last = chunk.statements[-1] if chunk.statements else None
        p = chunk.passing
        under = below_pass(self.facts, self.splice, p) if p is not None else []
        follows = p is not None and not all(map(_deletes_names, p.after))
        if p is not None and chunk.statements is p.after and follows:
            lines += under
        returned: str | None = None
        for s in chunk.statements:
            goes = s in dropped or _deletes_names(s) or s is self.recipe.optimization.backward
            below = comments_below(self.facts, self.splice, s) if goes and s is not last else []
            if isinstance(s, ast.Global) or _deletes_names(s):  # the method declares what it writes itself
                lines += below
                continue
            if s is self.recipe.optimization.backward:
                returned = self._expression(self.recipe.optimization.losses[0], chunk)
                if self._needs_own_name(s, chunk):
                    lines.append(f"batch_loss = {returned}")
                    returned = "batch_loss"
                lines += below
                continue
            if s in dropped:
                lines += below
                continue
            if lines and self._blank_above(s):
                lines.append("")
            lines += self._render(s, chunk)
            lines = self._with_share(s, chunk, lines)
        last = last if lines or returned is not None else None
        if last is not None and (last in dropped or last is self.recipe.optimization.backward or _deletes_names(last)):
            lines += self._comments_below(last)
        if p is not None and chunk.statements is p.body and not follows and lines:
            lines += under
        if returned is not None:
            lines.append(f"return {returned}")
        if chunk.passing is not None and chunk.statements is chunk.passing.after:
            lines += self._result_lines(chunk)
        return [] if len(_comments(lines)) == len(list(filter(None, lines))) else lines  # which are no body

    def _comments_of_pass(self, chunk: Chunk) -> list[str]:
        """The comments right above the loop of which a chunk is the step, and above the call of its function."""
        p = chunk.passing
        if p is None or chunk.statements is not p.body:
            return []
        texts: list[str] = []
        for s in ([self.facts.scopes.statement_of(p.call)] if p.call is not None else []) + [p.loop]:
            first, _ = self.splice.with_comments(s, self._floor(s))
            texts += [self.facts.text.lines[n - 1].strip() for n in range(first, s.lineno)]
        return [t for t in texts if t.startswith("#")]

    def _comments_below(self, s: ast.stmt) -> list[str]:
        """The comments that end the block of a statement that goes itself."""
        below = range((s.end_lineno or 1) + 1, self.splice.to_the_end(s) + 1)
        texts = (self.facts.text.lines[n - 1].strip() for n in below)
        return [t for t in texts if t]

    def _blank_above(self, s: ast.stmt) -> bool:
        first, _ = self.splice.with_comments(s, self._floor(s))
        a, b = self.facts.text.line_span(max(first - 1, 1), max(first - 1, 1))
        return not self.facts.text.text[a:b].strip()

    def _with_share(self, s: ast.stmt, chunk: Chunk, lines: list[str]) -> list[str]:
        """`total += loss.item()` in training adds this rank's share of the batch's mean."""
        if not (isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name) and chunk.hook.endswith("_step")):
            return lines
        var = self.binder.variable(s.target)
        counter = counter_of(self.counters, var, chunk.passing)
        if counter is None or not counter.by_share:
            return lines
        value = self._expression(s.value, chunk)
        value = f"({value})" if isinstance(s.value, (ast.BinOp, ast.IfExp, ast.BoolOp, ast.Compare)) else value
        target = f"self.{self.variables.attributes[var]}"  # type: ignore[index]
        op = "+=" if isinstance(s.op, ast.Add) else "-="
        _, stop = self.facts.text.span(s)
        _, line_end = self.facts.text.line_span(s.end_lineno or 1, s.end_lineno or 1)
        behind = self.facts.text.text[stop:line_end].rstrip()
        comment = behind if behind.lstrip().startswith("#") else ""  # and no other statement: `total += x; print(x)`
        kept = self._render(s, chunk)
        return [*lines[: len(lines) - len(kept)], *_comments(kept), f"{target} {op} {value} * self.share{comment}"]

    def _brought_together(self, chunk: Chunk) -> list[str]:
        """What the ranks have parts of, brought together before it is read."""
        lines, attributes = [], self.variables.attributes
        if chunk.passing is not None and chunk.statements is chunk.passing.after:
            for var, counter in self.counters:
                if counter.reduced and counter.where is Where.ONCE and counter.passing is chunk.passing:
                    lines.append(f"self.{attributes[var]} = self.all_reduce(self.{attributes[var]})")
        for v, how in self._together(chunk).items():
            op = ', "max"' if v == self.lasting.number else ""
            lines.append(f"{v.name} = self.{how}(self.{attributes[v]}{op})")
        return lines

    def _alias_lines(self, chunk: Chunk) -> list[str]:
        """Parameters that the call gave an expression: `lr = args.lr * 2`."""
        lines = []
        used = {n.id for n in [*names_in(chunk.statements), *returned_names(chunk)] if n not in self.own_device.unread}
        for var, value in self.variables.aliases.items():
            if var.owner == chunk.owner and var.name in used and not isinstance(value, ast.Constant):
                lines.append(f"{var.name} = {self._expression(value, None)}")
            elif var.owner == chunk.owner and var.name in used:
                lines.append(f"{var.name} = {self.facts.text.get(value)}")
        return lines

    def given_lines(self, names: list[ast.Name], known: set[str]) -> list[str]:
        """Parameters that only the loader's expression reads: `print_freq = 10` for `log(loader, print_freq)`."""
        given = {n.id: value for n in names if isinstance(value := self.binder.variable(n), ast.expr)}
        return [f"{name} = {self._expression(value, None)}" for name, value in given.items() if name not in known]

    def _optimizer_lines(self, chunk: Chunk) -> list[str]:
        """A manual step takes its optimizers by the names that the script gave them."""
        if not self._has_optimizer_lines(chunk) or not self.configured.moved or not self.configured.optimizers:
            return []
        return [f"{', '.join(self.configured.optimizers)} = self.optimizers()"]

    def _result_lines(self, chunk: Chunk) -> list[str]:
        p = chunk.passing
        if p is None or p.result is None:
            return []
        if p.returns is None and not isinstance(p.result, ast.Name):
            raise CannotLift(p.call, "the value of a function that returns nothing is used")
        targets = []
        for t in p.result.elts if isinstance(p.result, ast.Tuple) else [p.result]:
            if not isinstance(t, ast.Name):
                raise CannotLift(p.call, "the value of the pass is unpacked in an unusual way")
            attribute = self.variables.attributes.get(Variable("", t.id))
            targets.append(f"self.{attribute}" if attribute else t.id)
        if p.returns is None:  # `_ = train(loader)`
            return [f"{t} = None" for t in targets if t.startswith("self.")]
        above = above_return(self.facts, self.splice, p.returns)
        below = self.splice.ending(p.function) if p.function is not None else []
        value = self._expression(p.returns, chunk)
        given = [f"{', '.join(targets)} = {value}"] if targets != [value] else []  # `model = train(model)`
        return [*above, *given, *below]


def returned_names(chunk: Chunk) -> list[ast.Name]:
    """The names in what a pass returns, where the statements after its loop end with that."""
    p = chunk.passing
    if p is None or p.returns is None or p.result is None or chunk.statements is not p.after:
        return []
    return list(walk(p.returns, ast.Name))


def names_in(statements: list[ast.stmt]) -> list[ast.Name]:
    """The names of statements, those of nested functions left out."""
    return [n for s in statements for n in walk_here(s) if isinstance(n, ast.Name)]


def _comments(lines: list[str]) -> list[str]:
    return [line for line in lines if line.lstrip().startswith("#")]


def _deletes_names(s: ast.stmt) -> bool:
    """`del loss, output`, which a method does at its end; `del saved[:]` empties a list."""
    return isinstance(s, ast.Delete) and not any(isinstance(n, (ast.Attribute, ast.Subscript)) for n in walk(s))
