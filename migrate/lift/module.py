"""T14: a raw training loop becomes a Module and a Trainer.

Statements move as they are written; only what the Trainer does itself is left out (zero_grad, backward, step, modes),
and names that live longer than one method become attributes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..facts.nodes import walk
from ..facts.operands import FACTOR, closed
from ..facts.script import Facts
from ..report import Edit, Note
from .chunks import Chunk, Variable
from .configure import Configured
from .contained import registered
from .counters import counter_of
from .cpu_only import needs_cpu
from .draws import drawn
from .epochs import epoch_expression
from .imports import imported_as
from .kept_networks import kept_networks
from .modes import drops_mode, mode_hooks
from .nodes import names_of, walk_here
from .own_device import CODE as PLACED
from .own_device import OWN
from .recipe import LIFTED_FROM, CannotLift, Recipe
from .rewriting import Rewriter
from .settings import settings_of
from .splice import indent
from .totals import Where
from .trunk import Trunk

CODE = "PTM700"
UNREAD = "PTM102"


@dataclass
class Lifted:
    """The pieces of the new text, and what is told of them."""

    class_lines: list[str]
    trunk_lines: list[str]
    configured: Configured
    removed: list[ast.FunctionDef]
    unbound: list[str]
    edits: list[Edit]
    attention: list[Note]


class ModuleBuilder(Rewriter):
    """Puts the class, the Trainer and the report together."""

    def __init__(self, facts: Facts, recipe: Recipe, accelerator: str | None, places: bool = True) -> None:
        super().__init__(facts, recipe, places)
        self.accelerator = accelerator
        self.unit = facts.indentation
        self.edits: list[Edit] = []
        self.attention: list[Note] = []
        self.name = self._class_name()

    # -- the class ----------------------------------------------------------------------------------------------

    def build(self) -> Lifted:
        lines = [
            f"class {self.name}({imported_as(self.facts, 'Module')}):",
            f'{self.unit}"""{LIFTED_FROM} {self._sources()}."""',
        ]
        settings, told = settings_of(
            self.facts, self.recipe, self.collected, self.lasting, self.parts, self._sample_sums(), self.reduction
        )
        self.attention += told
        if self.recipe.whole is None:
            self.attention += drawn(self.facts, self.recipe.train)
        if settings:
            lines += ["", *indent(settings, self.unit)]
        for block in (self._constructor(), self._configure_optimizers(), *self._methods()):
            if block:
                lines += ["", *indent(block, self.unit)]
        removed = [
            p.function
            for p in (self.recipe.train, self.recipe.evaluate)
            if p is not None and p.function is not None and self._only_called_here(p.function)
        ]
        for f in removed:
            self._say(f, f"{f.name}() became methods of {self.name}")
        self._say_own_device(removed)
        self._say(self.recipe.epoch_loop, f"the epoch loop became Trainer.fit with {self.name}")
        why = self.recipe.optimization.why
        if why is not None:
            self._say(
                why.node or self.recipe.train.loop, f"manual optimization, the step keeps its order: {why.reason}"
            )
        unbound = self.variables.unbound
        self._stays_on_cpu()
        trunk = Trunk(self, self.name, self.accelerator).lines()
        return Lifted(lines, trunk, self.configured, removed, unbound, self.edits, self.attention)

    def _say(self, node: ast.AST, message: str, code: str = CODE) -> None:
        line, column, _, _ = self.facts.text.key(node)
        self.edits.append(Edit(line, column + 1, code, message))

    def _stays_on_cpu(self) -> None:
        """A script without devices that works with the model on tensors of its own: it has to stay with them."""
        if self.accelerator is None and self.facts.without_devices:
            why = needs_cpu(self)
            if why is not None:
                self.accelerator = '"cpu"'
                says = "the script names no device, and nothing moves"
                self._warn(why[0], f"`{self.facts.short(why[0])}`: {says} {why[1]}: it runs on the CPU, as before")

    def _say_own_device(self, removed: list[ast.FunctionDef]) -> None:
        for call, chunk in self.own_device.chunks.items():
            f = chunk.passing.function if chunk.passing is not None else None
            if f is not None and f not in removed:
                continue  # it stands in the script too, where it stays told of
            self._say(call, f"`{self.facts.short(call)}` goes where the Module is: `{OWN}`", PLACED)
        for call in self._made_with_own_device(removed):
            self._say(call, f"`{self.facts.short(call)}` goes where the Module is: `{OWN}`", PLACED)
        for call in self.configured.unmoved:
            self._say(call, f"`{self.facts.short(call)}` goes where the Module is, and with it", PLACED)
        for s in self.own_device.dropped:
            self._say(s, f"`{self.facts.short(s)}` removed: nothing reads it any more", UNREAD)

    def _made_with_own_device(self, removed: list[ast.FunctionDef]) -> Iterator[ast.Call]:
        """Tensors made before the loader is there, with a device that a method reads as its Module's."""
        for chunk in self.chunks:
            f = chunk.passing.function if chunk.passing is not None else None
            if chunk.hook != "train_dataloader" or (f is not None and f not in removed):
                continue
            for call in (n for s in chunk.statements for n in walk(s) if isinstance(n, ast.Call)):
                where = [k.value for k in call.keywords if k.arg == "device" and isinstance(k.value, ast.Name)]
                if any(self.configured.reads.get(n.id) == OWN for n in where):
                    yield call

    def _warn(self, node: ast.AST, message: str) -> None:
        line, column, _, _ = self.facts.text.key(node)
        self.attention.append(Note(line, column + 1, CODE, message))

    def _sample_sums(self) -> tuple[str, ...]:
        """What a step only adds to, sample by sample: a rank whose share is empty may not."""
        train = self.recipe.train
        set_again = {n.id for s in train.body for n in walk(s) if isinstance(n, ast.Name) and self._is_given(n)}
        own = [v for v, c in self.counters if c.passing is train and c.reduced and not c.by_share]
        return tuple(sorted(self.variables.attributes[v] for v in own if v.name not in set_again))

    def _is_given(self, n: ast.Name) -> bool:
        holder = self.facts.scopes.parents.get(n)
        return not isinstance(n.ctx, ast.Load) and not isinstance(holder, ast.AugAssign)

    def _sources(self) -> str:
        names = [
            f"{p.function.name}()"
            for p in (self.recipe.train, self.recipe.evaluate)
            if p is not None and p.function is not None
        ]
        names.append(f"{self.recipe.trunk.name}()" if self.recipe.trunk is not None else "the script's own loop")
        return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

    def _class_name(self) -> str:
        taken = {n for s in self.facts.scopes.by_node.values() for n in (*s.stores, *s.params)}
        base = self.configured.model_class or "Training"
        name = f"{base}Module"
        while name in taken:
            name = f"Lifted{name}"
        return name

    def _only_called_here(self, f: ast.FunctionDef) -> bool:
        return len(self.facts.devices.uses_of_function(f)) == 1

    def _constructor(self) -> list[str]:
        names = [n for n in self.variables.constructor if n not in self.configured.handled]
        if not names and not self.recipe.optimization.manual:
            return []
        taken = ["owner" if n == "self" else n for n in names]
        lines = [f"def __init__({', '.join(['self', *taken])}):", f"{self.unit}super().__init__()"]
        if self.recipe.optimization.manual:
            lines.append(f"{self.unit}self.automatic_optimization = False")
        for n in names:
            attribute = self.variables.attributes[Variable("", n)]
            if n in self.configured.tensors:
                lines.append(f'{self.unit}self.register_buffer("{attribute}", {n}, persistent=False)')
            else:
                lines.append(f"{self.unit}self.{attribute} = {'owner' if n == 'self' else n}")
                own = registered(self.facts, n, self.binder.trunk_scope, attribute, self.unit, names)
                if own and self.recipe.evaluate is not None and not self._own_switches():
                    why = f"the Trainer would switch the modes of the networks in `{n}` with those of the others"
                    raise CannotLift(self.recipe.evaluate.loop, why)
                lines += [f"{self.unit}{line}" for line in own]
        return lines

    def _own_switches(self) -> bool:
        return "on_validation_model_eval" in mode_hooks(self.facts, self.recipe, self.chunks)[0]

    def _placed(self) -> list[str]:
        """What goes to the device once that is known, and is no buffer."""
        names = [n for n in self.variables.constructor if n in self.configured.placed - self.configured.handled]
        kept = [self.variables.attributes[Variable("", n)] for n in names]
        return [
            *(f"self.{a} = self.{a}.to({OWN})" for a in kept),
            *kept_networks(self.facts, self.binder, self.variables),
        ]

    def _configure_optimizers(self) -> list[str]:
        if not self.configured.optimizers:
            return ["def configure_optimizers(self):", f"{self.unit}return None  # the step itself changes the weights"]
        lines = ["def configure_optimizers(self):"]
        for s in self.configured.moved:
            lines += indent(self._render(s, None, trunk=True), self.unit)
        return [*lines, f"{self.unit}return {self.configured.returned}"]

    # -- the methods --------------------------------------------------------------------------------------------

    def _methods(self) -> list[list[str]]:
        order = [
            "on_fit_start",
            "train_dataloader",
            "on_train_epoch_start",
            "training_step",
            "on_train_batches_end",
            "on_validation_epoch_start",
            "on_validation_model_eval",
            "validation_step",
            "on_validation_model_train",
            "on_validation_epoch_end",
            "on_train_epoch_end",
        ]
        bodies: dict[str, list[str]] = {"on_fit_start": placed} if (placed := self._placed()) else {}
        used_epoch: set[str] = set()
        declared: dict[str, set[str]] = {}
        for chunk in self.chunks:
            lines = self._chunk(chunk)
            if lines:
                bodies.setdefault(chunk.hook, []).extend(lines)
                if self._reads_epoch(chunk):
                    used_epoch.add(chunk.hook)
                declared.setdefault(chunk.hook, set()).update(self._globals_written(chunk))
        if self.recipe.reloads:
            loader = self.recipe.train.loader
            whole = self.binder.variable(loader) if isinstance(loader, ast.Name) else None
            loader = whole if isinstance(whole, ast.expr) else loader
            value = self._expression(loader, None if loader is whole else self.chunks[1])
            given = self._given_lines(names_of(loader), {n.id for n in _names(self.chunks[1].statements)})
            bodies.setdefault("train_dataloader", []).extend([*given, f"return {value}"])
            if self._reads_epoch_in(names_of(loader)):
                used_epoch.add("train_dataloader")
        if self.lasting.number is not None:
            number = f"self.{self.variables.attributes[self.lasting.number]} = -1  # a process may be given no batch"
            bodies.setdefault("on_validation_epoch_start", []).append(number)
        hooks, left_on = mode_hooks(self.facts, self.recipe, self.chunks)
        bodies.update(hooks)
        if left_on is not None and self.recipe.evaluate is not None:
            self._warn(self.recipe.evaluate.loop, left_on)
        if self.epoch_seen:  # by functions that stay: every epoch sets the global, which the other methods read too
            bodies.setdefault("on_train_epoch_start", [])
            used_epoch = {"on_train_epoch_start"}
            declared.setdefault("on_train_epoch_start", set()).add(self.epoch_name)
        methods = []
        for hook in order:
            if hook in bodies:
                methods.append(self._method(hook, bodies[hook], hook in used_epoch, sorted(declared.get(hook, ()))))
        return methods

    def _method(self, hook: str, body: list[str], uses_epoch: bool, writes: list[str]) -> list[str]:
        passing = self.recipe.evaluate if "validation" in hook else self.recipe.train
        head: list[str] = []
        if hook.endswith("_step") and passing is not None:
            batch, unpack = "batch", []
            target = passing.target
            if (
                isinstance(target, ast.Name)
                and Variable(self._owner(passing), target.id) not in self.variables.attributes
                and target.id != "batch_idx"
            ):
                batch = target.id
            else:
                unpack = [f"{self._target(passing)} = batch"]
            index = passing.index or "batch_idx"
            var = Variable(self._owner(passing), passing.index or "")
            kept = self.variables.attributes.get(var) if passing.index is not None else None
            if passing.index is not None and (passing.index_start is not None or kept is not None or index == batch):
                index = "batch_idx"
                first = passing.index_start
                start = f" + {closed(self.facts.text.get(first), FACTOR)}" if first is not None else ""
                unpack.append(f"{f'self.{kept}' if kept is not None else passing.index} = batch_idx{start}")
            signature = f"def {hook}(self, {batch}, {index}):"
            head = unpack
        elif hook == "on_train_batches_end" and not self.facts.ours:  # Lightning has no such hook
            signature = "def on_train_batch_end(self, outputs, batch, batch_idx):"
        else:
            signature = f"def {hook}(self):"
        if uses_epoch:
            head = [f"{self.epoch_name} = {epoch_expression(self._first_epoch())}", *head]
        lines = [*([f"global {', '.join(writes)}"] if writes else []), *head, *body]
        if hook == "on_train_batches_end" and not self.facts.ours:
            lines = ["if self.trainer.is_last_batch:", *indent(lines, self.unit)]
        return [signature, *indent(lines, self.unit)]

    def _first_epoch(self) -> str | None:
        first = self.recipe.first_epoch
        return self._expression(first, None) if first is not None else None

    def _target(self, passing: object) -> str:
        target = passing.target  # type: ignore[attr-defined]
        text = self.facts.text.get(target)
        start, _ = self.facts.text.span(target)
        if isinstance(target, ast.Tuple) and start < self.facts.text.span(target.elts[0])[0]:
            text, start = text[1:-1], start + 1  # its own parentheses
        edits = []
        for n in walk(target):
            if isinstance(n, ast.Name):
                var = Variable(self._owner(passing), n.id)
                if var in self.variables.attributes:
                    a, b = self.facts.text.span(n)
                    edits.append((a - start, b - start, f"self.{self.variables.attributes[var]}"))
        for a, b, new in sorted(edits, reverse=True):
            text = text[:a] + new + text[b:]
        return text

    def _owner(self, passing: object) -> str:
        f = passing.function  # type: ignore[attr-defined]
        return f.name if f is not None else ""

    def _globals_written(self, chunk: Chunk) -> set[str]:
        """What a function declares global and these statements write: the method has to say so too."""
        scopes, found = self.facts.scopes, set()
        for n in _names(chunk.statements):
            written = not isinstance(n.ctx, ast.Load) and n.id in scopes.scope_of(n).globals
            if written and self.binder.variable(n) not in self.variables.attributes:
                found.add(n.id)
        return found

    def _reads_epoch(self, chunk: Chunk) -> bool:
        return self._reads_epoch_in(_names(chunk.statements))

    def _reads_epoch_in(self, names: Iterable[ast.Name]) -> bool:
        for n in (n for n in names if isinstance(n.ctx, ast.Load)):
            var = self.binder.variable(n)
            if var == Variable("", self.recipe.epoch):
                return True
            if isinstance(var, ast.expr) and self.recipe.epoch in {x.id for x in walk(var) if isinstance(x, ast.Name)}:
                return True
        return False

    def _chunk(self, chunk: Chunk) -> list[str]:
        lines: list[str] = []
        dropped = (
            set(self.own_device.dropped)
            | set(self.recipe.optimization.dropped)
            | set(drops_mode(self.facts, self.recipe, chunk))
        )
        lines += self._brought_together(chunk)
        lines += self._alias_lines(chunk)
        lines += self._optimizer_lines(chunk)
        returned: str | None = None
        for s in chunk.statements:
            if isinstance(s, ast.Delete | ast.Global):  # the method declares what it writes itself
                continue
            if s is self.recipe.optimization.backward:
                returned = self._expression(self.recipe.optimization.losses[0], chunk)
                if self._needs_own_name(s, chunk):
                    lines.append(f"batch_loss = {returned}")
                    returned = "batch_loss"
                continue
            if s in dropped:
                continue
            if lines and self._blank_above(s):
                lines.append("")
            lines += self._render(s, chunk)
            lines = self._with_share(s, chunk, lines)
        if returned is not None:
            lines.append(f"return {returned}")
        if chunk.passing is not None and chunk.statements is chunk.passing.after:
            lines += self._result_lines(chunk)
        return lines

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
        value = f"({value})" if isinstance(s.value, ast.BinOp | ast.IfExp | ast.BoolOp | ast.Compare) else value
        target = f"self.{self.variables.attributes[var]}"  # type: ignore[index]
        op = "+=" if isinstance(s.op, ast.Add) else "-="
        _, stop = self.facts.text.span(s)
        _, line_end = self.facts.text.line_span(s.end_lineno or 1, s.end_lineno or 1)
        comment = self.facts.text.text[stop:line_end].rstrip()
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
        used = {n.id for n in _names(chunk.statements) if n not in self.own_device.unread}
        for var, value in self.variables.aliases.items():
            if var.owner == chunk.owner and var.name in used and not isinstance(value, ast.Constant):
                lines.append(f"{var.name} = {self._expression(value, None)}")
            elif var.owner == chunk.owner and var.name in used:
                lines.append(f"{var.name} = {self.facts.text.get(value)}")
        return lines

    def _given_lines(self, names: list[ast.Name], known: set[str]) -> list[str]:
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
        if p.returns is None:
            raise CannotLift(p.call, "the value of a function that returns nothing is used")
        targets = []
        for t in p.result.elts if isinstance(p.result, ast.Tuple) else [p.result]:
            if not isinstance(t, ast.Name):
                raise CannotLift(p.call, "the value of the pass is unpacked in an unusual way")
            attribute = self.variables.attributes.get(Variable("", t.id))
            targets.append(f"self.{attribute}" if attribute else t.id)
        value = self._expression(p.returns, chunk)
        return [f"{', '.join(targets)} = {value}"]


def _names(statements: list[ast.stmt]) -> list[ast.Name]:
    return [n for s in statements for n in walk_here(s) if isinstance(n, ast.Name)]


def _comments(lines: list[str]) -> list[str]:
    return [line for line in lines if line.lstrip().startswith("#")]
