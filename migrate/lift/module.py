"""T14: a raw training loop becomes a Module and a Trainer.

Statements move as they are written; only what the Trainer does itself is left out (zero_grad, backward, step, modes),
and names that live longer than one method become attributes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..facts.hosts import speaks_in_code
from ..facts.idle_devices import places_nothing
from ..facts.loops import LOADER
from ..facts.nodes import walk
from ..facts.operands import FACTOR, closed
from ..facts.own_movers import MOVERS
from ..facts.runtime_names import imported_as
from ..facts.script import Facts
from ..report import Edit, Note
from .afterwards import met_afterwards
from .between import check_between
from .chunk_lines import ChunkLines, names_in, returned_names
from .chunks import Chunk, Variable
from .computed import left_there
from .computed_lists import computed_lists
from .configure import Configured
from .contained import registered
from .cpu_networks import cpu_networks
from .cpu_only import made_networks, needs_cpu
from .draws import drawn
from .epochs import epoch_expression
from .kept_networks import kept_networks
from .kept_weights import kept_weights
from .modes import mode_hooks
from .nodes import is_call_of, names_of
from .own_device import CODE as PLACED
from .own_device import OWN
from .own_movers import own_moves
from .owned import called_on, owned_networks
from .recipe import LIFTED_FROM, CannotLift, Recipe
from .settings import settings_of
from .shape.called_beyond import is_taken
from .splice import indent
from .step import stepped_elsewhere
from .trunk import ON_CPU, Trunk
from .unseeded import unseeded

CODE = "PTM700"
UNREAD = "PTM102"
MOVES = "PTM101"


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


class ModuleBuilder(ChunkLines):
    """Puts the class, the Trainer and the report together."""

    def __init__(self, facts: Facts, recipe: Recipe, accelerator: str | None, places: bool = True) -> None:
        super().__init__(facts, recipe, places, accelerator)
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
        self.attention += unseeded(self.facts, self.recipe.train)
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
        self._left_there()
        check_between(self)
        trunk = Trunk(self, self.name, self.accelerator, self._comes_back()).lines()
        return Lifted(lines, trunk, self.configured, removed, unbound, self.edits, self.attention)

    def _say(self, node: ast.AST, message: str, code: str = CODE) -> None:
        line, column, _, _ = self.facts.text.key(node)
        self.edits.append(Edit(line, column + 1, code, message))

    def _stays_on_cpu(self) -> None:
        """A script without devices that works with the model on tensors of its own: it has to stay with them."""
        if self.accelerator is None and self.facts.without_devices:
            why = needs_cpu(self)
            if why is not None:
                self.accelerator = ON_CPU
                idle = speaks_in_code(self.facts) and places_nothing(self.facts)
                says = f"the script {'brings nothing to a device' if idle else 'names no device'}, and nothing moves"
                self._warn(why[0], f"`{self.facts.short(why[0])}`: {says} {why[1]}: it runs on the CPU, as before")

    def _comes_back(self) -> bool:
        """Whether a script without devices works with a network once it is trained; Lightning gives all back."""
        if self.accelerator is not None or not (self.facts.without_devices and self.facts.ours):
            return False
        names = {v.name for v in self.variables.attributes if not v.owner}
        networks = {n for n in names if self.facts.loops.is_model_name(n)} | made_networks(self)
        met = met_afterwards(self.facts, self.recipe, networks, names)
        if met is not None:
            read = self.facts.short(self.facts.scopes.statement_of(met))
            self._say(met, f"`{read}`: the script names no device; after the training the network is back on the CPU")
        return met is not None

    def _left_there(self) -> None:
        """What a network gave above the loop, of which the text does not show that it is one tensor."""
        read = sorted({*self.variables.constructor, *self.variables.after} - self.configured.placed)
        at = (self.binder.trunk_scope, self.recipe.epoch_loop)
        given = [v for n in read if (v := left_there(self.facts, n, *at)) is not None]
        for value in dict.fromkeys(given if self.accelerator != ON_CPU else ()):
            says = f"`{self.facts.short(value)}`: made before the Trainer has placed the network, it stays on the CPU"
            self._warn(value, f"{says}: on a GPU, move it where it is used", MOVES)

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
            for call in (n for s in chunk.statements for n in walk(s, ast.Call)):
                where = [k.value for k in call.keywords if k.arg == "device" and isinstance(k.value, ast.Name)]
                if any(self.configured.reads.get(n.id) == OWN for n in where):
                    yield call

    def _warn(self, node: ast.AST, message: str, code: str = CODE) -> None:
        line, column, _, _ = self.facts.text.key(node)
        self.attention.append(Note(line, column + 1, code, message))

    def _sample_sums(self) -> tuple[str, ...]:
        """What a step only adds to, sample by sample: a rank whose share is empty may not."""
        train = self.recipe.train
        set_again = {n.id for s in train.body for n in walk(s, ast.Name) if self._is_given(n)}
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
        name, number = f"{base}Module", 1
        while name in taken:
            number += 1
            name = f"{base}Module{number}"
        return name

    def _only_called_here(self, f: ast.FunctionDef) -> bool:
        return len(self.facts.devices.uses_of_function(f)) == 1 and not is_taken(self.facts, f)

    def _constructor(self) -> list[str]:
        names = [n for n in self.variables.constructor if n not in self.configured.handled]
        if not names and not self.recipe.optimization.manual:
            return []
        taken = ["owner" if n == "self" else n for n in names]
        lines = [f"def __init__({', '.join(['self', *taken])}):", f"{self.unit}super().__init__()"]
        if self.recipe.optimization.manual:
            lines.append(f"{self.unit}self.automatic_optimization = False")
        called = called_on(self.facts, self.binder, self.chunks)
        for n in names:
            attribute = self.variables.attributes[Variable("", n)]
            if n in self.configured.tensors and not self._only_loaded(n):
                lines.append(f'{self.unit}self.register_buffer("{attribute}", {n}, persistent=False)')
            else:
                lines.append(f"{self.unit}self.{attribute} = {'owner' if n == 'self' else n}")
                may_miss = n in self.variables.unbound
                own = registered(self.facts, n, self.binder.trunk_scope, attribute, self.unit, names, may_miss)
                own += owned_networks(self.facts, self.binder, self.variables, n, called.get(n, []))
                if own and self.recipe.evaluate is not None and not self._own_switches():
                    why = f"the Trainer would switch the modes of the networks in `{n}` with those of the others"
                    raise CannotLift(self.recipe.evaluate.loop, why)
                lines += [f"{self.unit}{line}" for line in own]
        return lines

    def _only_loaded(self, name: str) -> bool:
        """Whether the epochs do no more with it than make a loader of it, whose data sets are on the CPU."""
        reads = [n for n in walk(self.recipe.epoch_loop, ast.Name) if n.id == name and isinstance(n.ctx, ast.Load)]
        ups = [[u for u in self.facts.scopes.ancestors(n) if isinstance(u, ast.Call)] for n in reads]
        return bool(reads) and all(any(self.facts.names.resolve(u.func) == LOADER for u in up) for up in ups)

    def _own_switches(self) -> bool:
        return "on_validation_model_eval" in mode_hooks(self.facts, self.recipe, self.chunks)[0]

    def _placed(self) -> list[str]:
        """What goes to the device once that is known, and is no buffer."""
        names = [n for n in self.variables.constructor if n in self.configured.placed - self.configured.handled]
        lines = []
        for n in names:
            own = f"self.{self.variables.attributes[Variable('', n)]}"
            moved = [f"{own} = {own}.to({OWN})"]
            unbound = n in self.variables.unbound  # then it may be None
            lines += [f"if {own} is not None:", *indent(moved, self.unit)] if unbound else moved
        lines += kept_networks(self.facts, self.binder, self.variables)
        lines += own_moves(self.facts, self.binder, self.variables)
        lines += cpu_networks(self.facts, self.binder, self.chunks, self.variables)
        lines += computed_lists(self.facts, self.binder, self.variables, self.recipe.epoch_loop)
        return [*lines, *kept_weights(self.facts, self.binder, self.variables, self.unit)]

    def _configure_optimizers(self) -> list[str]:
        if not self.configured.optimizers:
            steps = any(is_call_of(n, "step") for s in self.recipe.train.body for n in walk(s, ast.Call))
            does = "the step has its own optimizers" if steps else "the step itself changes the weights"
            if not steps and stepped_elsewhere(self.facts) is not None:
                does = "the script steps its optimizer elsewhere"
            return ["def configure_optimizers(self):", f"{self.unit}return None  # {does}"]
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
            lines = self.chunk_lines(chunk)
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
            given = self.given_lines(names_of(loader), {n.id for n in names_in(self.chunks[1].statements)})
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
        if self._moves_own_batches():
            head = "def transfer_batch_to_device(self, batch, device, dataloader_idx):"
            methods.append([head, f"{self.unit}return batch  # the step brings it there, by the batch's own method"])
        return methods

    def _moves_own_batches(self) -> bool:
        passes = [p for p in (self.recipe.train, self.recipe.evaluate) if p is not None]
        funcs = [c.func for p in passes for s in p.body for c in walk(s, ast.Call)]
        own = self.facts.devices.own_movers.batches
        return any(own.has(f.value, f.attr) for f in funcs if isinstance(f, ast.Attribute) and f.attr in MOVERS)

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
            if passing.index is not None and (
                passing.index_start is not None or kept is not None or index in (batch, *self.recipe.shared)
            ):
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
        in_parentheses = isinstance(target, ast.Tuple) and start < self.facts.text.span(target.elts[0])[0]
        if in_parentheses and "#" not in text:
            text, start = text[1:-1], start + 1  # its own parentheses
        edits = []
        for n in walk(target, ast.Name):
            var = Variable(self._owner(passing), n.id)
            if var in self.variables.attributes:
                a, b = self.facts.text.span(n)
                edits.append((a - start, b - start, f"self.{self.variables.attributes[var]}"))
        for a, b, new in sorted(edits, reverse=True):
            text = text[:a] + new + text[b:]
        return text if "#" in text else " ".join(line.rstrip("\\").strip() for line in text.splitlines()).strip()

    def _owner(self, passing: object) -> str:
        f = passing.function  # type: ignore[attr-defined]
        return f.name if f is not None else ""

    def _globals_written(self, chunk: Chunk) -> set[str]:
        """What a function declares global and these statements write: the method has to say so too."""
        scopes, found = self.facts.scopes, set()
        if chunk.hook == "training_step" and self.recipe.train.index in self.recipe.shared:
            found.add(self.recipe.train.index)
        for n in names_in(chunk.statements):
            own = n.id in self.recipe.shared and scopes.scope_of(n) is self.binder.trunk_scope
            written = not isinstance(n.ctx, ast.Load) and (own or n.id in scopes.scope_of(n).globals)
            if written and self.binder.variable(n) not in self.variables.attributes:
                found.add(n.id)
        return found

    def _reads_epoch(self, chunk: Chunk) -> bool:
        return self._reads_epoch_in([*names_in(chunk.statements), *returned_names(chunk)])

    def _reads_epoch_in(self, names: Iterable[ast.Name]) -> bool:
        for n in (n for n in names if isinstance(n.ctx, ast.Load)):
            var = self.binder.variable(n)
            if var == Variable("", self.recipe.epoch):
                return True
            if isinstance(var, ast.expr) and self.recipe.epoch in {x.id for x in walk(var, ast.Name)}:
                return True
        return False
