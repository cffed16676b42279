"""The text of moved statements: names that live elsewhere now; prints, saves, breaks and backwards in new words."""

from __future__ import annotations

import ast

from ..facts.nodes import walk
from ..facts.script import Facts
from ..facts.source import is_expression
from .as_given import as_given
from .carried import check_carried, check_matched
from .chunks import Binder, Chunk, Variable, Variables, chunks_of, resolve_variables
from .collected import collected
from .configure import configure, need_names
from .counters import Counters, alike, all_ranks_pass, counter_of, counters_of, is_counter_read
from .decisions import check_decisions
from .device_texts import as_text
from .epochs import free_epoch_name
from .functions import check_functions
from .in_order import put_in_order
from .lasting import MEAN, SUM, lasting, left_by_evaluation
from .left_attributes import left_in_attributes
from .lengths import NUMBER, Lengths
from .loss import loss_reduction
from .made_above import check_made
from .monitored import by_log, unread
from .nodes import walk_here
from .own_device import own_device
from .pools import check_pools
from .reads import stored
from .recipe import CannotLift, Recipe
from .running import brought_for
from .sample_gradients import check_gradients
from .saved import guarded_save, saves
from .self_named import spelled_out
from .shown import Shown, is_print, of_the_batch, reads_part
from .splice import Splice
from .totals import Where
from .unbound import caught_too
from .zeros import is_read


class Rewriter:
    """Renders statements and expressions of a recipe's chunks as they read inside the module."""

    def __init__(self, facts: Facts, recipe: Recipe, places: bool = True, accelerator: str | None = None) -> None:
        self.facts = facts
        self.recipe = recipe
        self.splice = Splice(facts.text)
        self.binder = Binder(facts, recipe)
        self.chunks = chunks_of(facts, recipe)
        check_matched(self.chunks)
        check_made(facts, self.chunks)
        self.epoch_name = free_epoch_name(facts, recipe)
        self._look_for_carried()
        self.own_device = own_device(facts, self.chunks if places else [], accelerator)
        self.own_device.unread.update(unread(recipe.monitored))
        self.variables: Variables = resolve_variables(facts, recipe, self.binder, self.chunks, self.own_device.unread)
        self.configured = configure(facts, recipe, self.binder, self.variables, self.chunks, places)
        if recipe.first_epoch is not None:
            need_names(self.binder, self.variables, recipe.first_epoch)
        self.reduction = self._reduction()
        recipe.whole_evaluation = recipe.whole_evaluation or left_by_evaluation(
            facts, recipe, self.binder, self.chunks, self.variables
        )
        self.counters: Counters = counters_of(facts, recipe, self.binder, self.chunks, self.variables, self.reduction)
        self.epoch_seen = check_functions(facts, recipe, self.binder, self.chunks, self.variables)
        self.shown: dict[ast.AST, str] = {}  # brought together where it is shown: a mean or a sum over the samples
        self.parts: list[ast.Call] = []  # calls that show what this process has of the batch
        self._find_shown()
        sums = {v for v, _ in self.counters}
        self.collected = collected(facts, recipe, self.binder, self.chunks, sums, set(self.shown))
        self.collected.left = left_in_attributes(facts, recipe, set(self.shown))
        if self.divided and self.collected.decides is not None:
            recipe.whole, recipe.in_order = self.collected.decides, set()
            self.counters, self.shown, self.parts = [], {}, []
        self.lasting = lasting(facts, recipe, self.binder, self.chunks, self.variables, self.counters, self.reduction)
        self.lengths = Lengths(facts, recipe, self.binder, self.chunks, self.counters, self.shown)
        self.configured.handled |= self.lengths.of_the_trainer(self.configured.moved)

    @property
    def divided(self) -> bool:
        """Whether ranks may hold shares of the training batches."""
        return self.recipe.whole is None

    def _look_for_carried(self) -> None:
        """A step that carries a value from batch to batch gets its batches whole."""
        for chunk in self.chunks:
            if not chunk.hook.endswith("_step"):
                continue
            try:
                check_carried(self.facts, self.recipe, chunk)
                if chunk.passing is self.recipe.train:
                    check_decisions(self.facts, self.recipe.train)
                    check_pools(self.facts, self.recipe.train)
                    self.recipe.signed = check_gradients(self.facts, self.recipe.train)
            except CannotLift as why:
                if chunk.passing is self.recipe.train:
                    self.recipe.whole = self.recipe.whole or why.alone
                else:
                    self.recipe.whole_evaluation = self.recipe.whole_evaluation or why.alone

    def _reduction(self) -> str:
        try:
            return loss_reduction(self.facts, self.recipe)
        except CannotLift as why:
            self.recipe.whole = self.recipe.whole or why.alone
            return "mean"

    def _render(self, s: ast.stmt, chunk: Chunk | None, trunk: bool = False) -> list[str]:
        replaced = self._replacements(s, chunk)
        return self.splice.render(s, replaced, floor=self._floor(s), ends=True)

    def _floor(self, s: ast.stmt) -> int:
        """Comments above the first statement of a block belong to it; those of the line that opens the block do not."""
        parent = self.facts.scopes.parents.get(s)
        line = getattr(parent, "lineno", 0)
        body = getattr(parent, "body", None)
        if isinstance(body, list) and body and s is not body[0] and s in body:
            line = body[body.index(s) - 1].end_lineno
        return line + 1

    def _expression(self, node: ast.expr, chunk: Chunk | None) -> str:
        text = self.facts.text.get(node)
        start, _ = self.facts.text.span(node)
        for (a, b), new in sorted(self._replacements(node, chunk).items(), reverse=True):
            text = text[: a - start] + new + text[b - start :]
        return text if "\n" not in text or is_expression(text) else f"({text})"

    def _replacements(self, node: ast.AST, chunk: Chunk | None) -> dict[tuple[int, int], str]:
        found: dict[tuple[int, int], str] = {}
        reduced = set(self._together(chunk)) if chunk is not None else set()
        weighed = {value for _, c in self.counters for value in c.weighed}
        for n in walk(node):
            if n in self.own_device.unread and chunk is not None:
                continue
            if n in self.own_device.opened and chunk is not None:
                found.update((span, "") for span in self.own_device.opened[n])
            if n in self.own_device.calls and chunk is not None:
                found.update([self.own_device.calls[n]])
            if n in self.lengths.unread and chunk is not None:
                continue
            if n in self.lengths.found and chunk is not None:
                found[self.facts.text.span(n)] = NUMBER
                continue
            if chunk is not None and chunk.hook == "training_step":
                self._bring_or_weigh(n, weighed, found)
            if n in self.recipe.in_order and chunk is not None:
                found.update(put_in_order(self.facts, n))
            if n in self.recipe.monitored and chunk is not None:
                found.update(by_log(self.facts, n, self.recipe.monitored[n]))
            if isinstance(n, ast.NamedExpr) and self.binder.variable(n.target) in self.variables.attributes:
                raise CannotLift(n, f"`{self.facts.short(n)}` in an expression gives a name that other methods read")
            if isinstance(n, ast.Name):
                new = self._replacement(n, chunk, reduced)
                if new is not None:
                    found[self.facts.text.span(n)] = new
            elif isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "print":
                if chunk is not None and self.facts.scopes.scope_of(n.func).lookup("print") is None:
                    found[self.facts.text.span(n.func)] = "self.print"
            elif isinstance(n, ast.Break) and chunk is not None:
                found.update(self._break(n, chunk) if chunk.hook.endswith("_step") else self._break_epochs(n, chunk))
            elif isinstance(n, ast.Continue) and chunk is not None:
                step = chunk.hook.endswith("_step")
                found.update(self._continue(n, chunk) if step else self._continue_epochs(n, chunk))
            elif isinstance(n, (ast.Return, ast.Yield, ast.YieldFrom)) and chunk is not None and not chunk.owner:
                if not self._in_inner_function(n):
                    raise CannotLift(n, "the loop is left by return, or yields")
            elif isinstance(n, ast.Call) and self.recipe.optimization.manual and self._is_backward(n):
                found.update(self._manual_backward(n))
            elif isinstance(n, (ast.Global, ast.Nonlocal)):
                found.update(self._global(n))
            elif isinstance(n, ast.ExceptHandler):
                found.update(caught_too(self.facts, n, self._is_kept))
            elif isinstance(n, (ast.Expr, ast.With)) and chunk is not None and saves(self.facts, n):
                found.update(guarded_save(self.facts, self.splice, n))
        for shown in walk(node, ast.FormattedValue) if found else ():
            found.update(spelled_out(self.facts, shown, found))
        return found

    def _is_kept(self, name: ast.Name) -> bool:
        return self.binder.variable(name) in self.variables.attributes

    def _bring_or_weigh(self, n: ast.AST, weighed: set[ast.AST], found: dict[tuple[int, int], str]) -> None:
        if n in self.shown:
            self._bring(n, found)
        if n in weighed:
            self._weigh(n, found)

    def _weigh(self, value: ast.AST, found: dict[tuple[int, int], str]) -> None:
        """A mean that is added to an element counts as the share of the batch that it was taken over."""
        start, stop = self.facts.text.span(value)
        if isinstance(value, (ast.BinOp, ast.IfExp)):
            found[(start, start)] = "("
        found[(stop, stop)] = (")" if (start, start) in found else "") + " * self.share"

    def _find_shown(self) -> None:
        """What the training step shows of its samples, and what is only this process's part of it."""
        if not self.divided:
            return
        train, shown, same = self.recipe.train, Shown(self.facts, self.recipe, self.reduction), alike(self.counters)
        nodes = [n for s in train.body for n in walk_here(s)]
        parents = self.facts.scopes.parents
        calls = [n for n in nodes if isinstance(n, ast.Call) and (is_print(n) or isinstance(parents.get(n), ast.Expr))]
        for call in calls:
            if all_ranks_pass(self.facts, train, call, same):
                self.shown.update(shown.of_call(call))
        for s in nodes:
            self.shown.update(brought_for(shown, s))
            if isinstance(s, ast.Assign) and all_ranks_pass(self.facts, train, s.value, same, assigned=True):
                self.shown.update(shown.of_text(s))
        part = of_the_batch(train, {v.name for v, _ in self.counters}, self.shown)
        calls += [
            n for n in nodes if isinstance(n, ast.Call) and n not in calls and as_given(self.facts, n) is not None
        ]
        known = dict(self.shown)
        for n in nodes:
            if isinstance(n, ast.Name) and n.id in part and shown.sums.drawn_whole(n):
                known[n] = ""
        self.parts = [c for c in calls if any(reads_part(e, part, known) is not None for e in shown.tells(c))]

    def _bring(self, e: ast.AST, found: dict[tuple[int, int], str]) -> None:
        start, stop = self.facts.text.span(e)
        found[(start, start)] = f"self.{MEAN if self.shown[e] == 'mean' else SUM}("
        found[(stop, stop)] = ")"

    def _is_backward(self, n: ast.Call) -> bool:
        return isinstance(n.func, ast.Attribute) and n.func.value in self.recipe.optimization.losses

    def _manual_backward(self, n: ast.Call) -> dict[tuple[int, int], str]:
        """`loss.backward(...)` to `self.manual_backward(loss, ...)`."""
        assert isinstance(n.func, ast.Attribute)
        start, _ = self.facts.text.span(n)
        end, _ = self.facts.text.method_of(n)
        opened = self.facts.text.text.index("(", self.facts.text.span(n.func)[1]) + 1
        value = self.facts.text.span(n.func.value)
        before = self.facts.text.text[start : value[0]]  # parentheses around the loss
        after = self.facts.text.text[value[1] : end]
        found = {(end - len(after), opened): ", " if n.args or n.keywords else ""}
        found[(start, value[0]) if before else (start, start)] = "self.manual_backward("
        return found

    def _continue(self, n: ast.Continue, chunk: Chunk) -> dict[tuple[int, int], str]:
        assert chunk.passing is not None
        if self._in_inner_loop(n, chunk.passing.loop):
            return {}
        return {self.facts.text.span(n): "return"}

    def _break(self, n: ast.Break, chunk: Chunk) -> dict[tuple[int, int], str]:
        """`break` of the batch loop: the epoch ends after this step."""
        passing = chunk.passing
        assert passing is not None
        if self._in_inner_loop(n, passing.loop):
            return {}
        if passing is not self.recipe.train:
            raise CannotLift(n, "the evaluation loop is left early")
        backward, returned = self.recipe.optimization.backward, "return"
        if backward is not None:
            named = self._needs_own_name(backward, chunk)
            loss = self._expression(self.recipe.optimization.losses[0], chunk)
            returned = f"return {'batch_loss' if named else loss}"
        between = "; " if self.splice.shares_a_line(n) else "\n" + self.facts.text.margin(n)
        return {self.facts.text.span(n): f"self.trainer.stop_epoch(){between}{returned}"}

    def _break_epochs(self, n: ast.Break, chunk: Chunk) -> dict[tuple[int, int], str]:
        """`break` of the epoch loop: no epoch after this one."""
        if self._in_inner_loop(n, self.recipe.epoch_loop) or chunk.owner:
            return {}
        if chunk.hook != "on_train_epoch_end":
            raise CannotLift(n, "the epoch loop is left before the epoch is over")
        between = "; " if self.splice.shares_a_line(n) else "\n" + self.facts.text.margin(n)
        return {self.facts.text.span(n): f"self.trainer.should_stop = True{between}return"}

    def _continue_epochs(self, n: ast.Continue, chunk: Chunk) -> dict[tuple[int, int], str]:
        if self._in_inner_loop(n, self.recipe.epoch_loop) or chunk.owner:
            return {}
        if chunk.hook == "on_train_epoch_start":
            between = "; " if self.splice.shares_a_line(n) else "\n" + self.facts.text.margin(n)
            return {self.facts.text.span(n): f"self.trainer.skip_epoch(){between}return"}
        if chunk.hook != "on_train_epoch_end":
            raise CannotLift(n, "an epoch is left before it is over")
        return {self.facts.text.span(n): "return"}

    def _global(self, n: ast.Global | ast.Nonlocal) -> dict[tuple[int, int], str]:
        """Globals of the trunk are attributes now; others stay global, and the method declares those that it writes."""
        if isinstance(n, ast.Nonlocal):
            raise CannotLift(n, f"`{self.facts.short(n)}` in a lifted function")
        lifted = [p.function for p in (self.recipe.train, self.recipe.evaluate) if p is not None]
        if self.facts.scopes.scope_of(n).node in (self.binder.trunk_scope.node, *lifted):
            return {self.facts.text.span(n): "pass"}
        ours = self.binder.trunk_scope.node is self.facts.tree
        if not ours:
            return {}
        kept = [x for x in n.names if Variable("", x) not in self.variables.attributes]
        return {self.facts.text.span(n): f"global {', '.join(kept)}" if kept else "pass"}

    def _in_inner_function(self, n: ast.AST) -> bool:
        for up in self.facts.scopes.ancestors(n):
            if up is self.recipe.epoch_loop:
                return False
            if isinstance(up, (ast.FunctionDef, ast.Lambda)):
                return True
        return False

    def _in_inner_loop(self, n: ast.AST, loop: ast.AST) -> bool:
        for up in self.facts.scopes.ancestors(n):
            if up is loop:
                return False
            if isinstance(up, (ast.For, ast.While)):
                return True
        return False

    def _replacement(self, n: ast.Name, chunk: Chunk | None, reduced: set[Variable]) -> str | None:
        var = self.binder.variable(n)
        if isinstance(var, ast.expr) or var is None:
            return None
        if var == Variable("", self.recipe.epoch):
            return self.epoch_name if n.id != self.epoch_name else None
        special = self.configured.reads.get(var.name) if var.owner == "" else None
        if special is not None and self._has_optimizer_lines(chunk) and var.name in self.configured.optimizers:
            return var.name if var.name != n.id else None
        if special is not None and chunk is not None:
            return (
                self.configured.texts[var.name]
                if var.name in self.configured.texts and as_text(self.facts, n)
                else special
            )
        if chunk is not None and self._is_training_loader(var, n, chunk):
            return "self.trainer.train_dataloader"
        in_part = self.is_in_part(var)
        if var in reduced and (is_read(self.facts, n) or not in_part):
            return var.name if var.name != n.id else None
        attribute = self.variables.attributes.get(var)
        if attribute is not None:
            return f"self.all_reduce(self.{attribute})" if self._is_read_in_step(var, n, chunk) else f"self.{attribute}"
        return var.name if var.name != n.id else None

    def _is_read_in_step(self, var: Variable, n: ast.Name, chunk: Chunk | None) -> bool:
        """Whether a training step reads what the ranks add up share by share."""
        counter = counter_of(self.counters, var, chunk.passing) if chunk is not None else None
        if counter is None or chunk is None or chunk.hook != "training_step" or not counter.reduced:
            return False
        return is_counter_read(self.facts, n)

    def is_in_part(self, var: Variable) -> bool:
        """Whether each rank keeps its part of a value: what a method gives it goes to the attribute."""
        goes_on = any(v == var and c.reduced and c.where is Where.READ for v, c in self.counters)
        return goes_on or var in self.lasting.brought or var == self.lasting.number

    def _together(self, chunk: Chunk) -> dict[Variable, str]:
        """What the ranks bring together when a method begins, as a name there, and how."""
        if chunk.hook.endswith("_step"):
            return {}
        after = chunk.passing is not None and chunk.statements is chunk.passing.after
        names = [n for s in chunk.statements for n in walk(s, ast.Name)]
        if after and chunk.passing is not None and chunk.passing.returns is not None:
            names += list(walk(chunk.passing.returns, ast.Name))
        found = {}
        for var, counter in self.counters:
            own = after and counter.passing is chunk.passing and counter.where is Where.LOCAL
            if counter.reduced and (own or counter.where is Where.READ) and self._mentions(names, var, stores=own):
                found[var] = "all_reduce"
        if self.chunks.index(chunk) > next(i for i, c in enumerate(self.chunks) if c.hook == "training_step"):
            for var, method in self.lasting.brought.items():
                if self._mentions(names, var, stores=False):
                    found[var] = method
        number, e = self.lasting.number, self.recipe.evaluate
        evaluated = next((i for i, c in enumerate(self.chunks) if e is not None and c.statements is e.body), 0)
        if number is not None and self.chunks.index(chunk) > evaluated and self._mentions(names, number, stores=False):
            found[number] = "all_reduce"
        return found

    def _mentions(self, names: list[ast.Name], var: Variable, stores: bool) -> bool:
        return any(self.binder.variable(n) == var for n in names if stores or is_read(self.facts, n))

    def _is_training_loader(self, var: Variable, n: ast.Name, chunk: Chunk) -> bool:
        if self.recipe.reloads or chunk.passing is not self.recipe.train or not isinstance(n.ctx, ast.Load):
            return False
        loader = self.recipe.train.loader
        return isinstance(loader, ast.Name) and self.binder.variable(loader) == var

    def _needs_own_name(self, backward: ast.stmt, chunk: Chunk) -> bool:
        """Whether what is differentiated is no plain name, or one that is written again afterwards."""
        loss = self.recipe.optimization.losses[0]
        if not isinstance(loss, ast.Name):
            return True
        later = chunk.statements[chunk.statements.index(backward) + 1 :]
        return loss.id in stored([s for s in later if not isinstance(s, ast.Delete)])  # a method's end does that

    def _has_optimizer_lines(self, chunk: Chunk | None) -> bool:
        return chunk is not None and chunk.hook == "training_step" and self.recipe.optimization.manual
