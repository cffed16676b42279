"""Which loops are hot: the ones that train or evaluate, batch by batch, and what runs in them.

A hot loop is the loop whose every round is a step: a backward or an optimizer's step stands in it, or a model is called
on the batches of a loader. The loop around it (over epochs) is not hot. A function that is only called from hot loops
runs in them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

from .guards import Guards
from .in_turn import takes_in_turn
from .names import Names
from .nodes import FUNCTIONS, LOOPS, Function, Loop, Nodes

LOADER = "torch.utils.data.DataLoader"
BATCHES = ("Batches", "ptmigrate.runtime.Batches")  # what a loop cut by hand
LOADER_NAME = re.compile(
    r"(data_?)?(loader|iterator)s?\d*$|(^|_)(dl|batches|dataiter|data_iter)$|_(loader|iter)(_\w+)?$"
)
MODEL_NAME = re.compile(
    r"(^|_)(model|net|network|encoder|decoder|generator|discriminator|critic|classifier|backbone|policy|actor)s?(_?[a-z]|_?\d+)?$"
    r"|^(net|model)[A-Z]\w{0,3}$|^(?-i:G|D)(_[A-Z]+)?$|^[gd]_[A-Z]+$",
    re.IGNORECASE,
)
OPTIMIZER_NAME = re.compile(r"(optim|scaler|(^|_)opt)", re.IGNORECASE)
NO_GRAD = {"torch.no_grad", "torch.inference_mode"}
WRAPPERS = {"enumerate", "tqdm", "trange", "iter", "islice", "zip", "track", "reversed", "list", "progress_bar"}
# what a Trainer calls for every batch that it trains or evaluates on
STEP_METHODS = {
    "training_step", "training_step_end", "on_train_batch_start", "on_train_batch_end", "on_after_backward",
    "on_before_zero_grad", "on_before_optimizer_step", "optimizer_step", "validation_step", "validation_step_end",
    "on_validation_batch_start", "on_validation_batch_end", "test_step", "test_step_end", "on_test_batch_start",
    "on_test_batch_end",
}  # fmt: skip
_EVALUATES = re.compile(r"validation|test")

TRAINS, EVALUATES = "trains", "evaluates"


class Hot(NamedTuple):
    """A node runs at every step: of which loop, and whether `if step % n == 0` lets it run only now and then."""

    loop: Loop | Function
    kind: str
    guarded: bool = False

    @property
    def line(self) -> int:
        return self.loop.lineno


class Loops:
    def __init__(
        self,
        tree: ast.Module,
        names: Names,
        nodes: Nodes | None = None,
        of_inputs: Callable[[ast.Call], bool] | None = None,
    ) -> None:
        """`of_inputs`: whether a backward() is for the gradients of inputs, and trains nothing."""
        self.of_inputs = of_inputs
        self.tree = tree
        self.names = names
        self.nodes = nodes or names.nodes
        self._of_function: dict[ast.AST, Hot | None] = {}
        self._taken: dict[ast.AST, bool] = {}
        self._models: dict[str, bool] = {}  # whether a name is one of a model

    # -- what a caller asks -----------------------------------------------------------------------------------------

    def hot(self, node: ast.AST) -> Hot | None:
        """The hot loop that a node runs in at every step, wherever the loop stands; None where it runs less often."""
        if not self.hot_loops and not self._step_methods:
            return None
        guards: list[ast.expr] = []
        child, fails = node, False
        for up in self.nodes.ancestors(node):
            if isinstance(up, ast.ExceptHandler):
                fails = True  # what a step does that went wrong
            elif (isinstance(up, ast.If) and child in up.body) or (isinstance(up, ast.IfExp) and child is up.body):
                guards.append(up.test)
            elif isinstance(up, ast.BoolOp) and isinstance(up.op, ast.And) and child is not up.values[0]:
                guards.append(up.values[0])  # `step % n == 0 and print(...)`
            elif isinstance(up, LOOPS) and up in self.hot_loops and self._every_round(up, child):
                seldom = fails or self._seldom(guards) or self._skipped_before(up, node)
                return Hot(up, self.hot_loops[up], seldom)
            elif isinstance(up, FUNCTIONS):
                if not isinstance(child, ast.stmt):
                    return None
                found = self._hot_function(up)
                if found is None:
                    return None
                seldom = fails or self._seldom(guards) or self._left_before(up, node)
                return Hot(found.loop, found.kind, found.guarded or seldom)
            elif isinstance(up, ast.Lambda):
                return None
            child = up
        return None

    @cached_property
    def hot_loops(self) -> dict[ast.AST, str]:
        """The loops whose every round is a step, and whether they train or evaluate."""
        found: dict[ast.AST, str] = {}
        for loop in self.nodes.loops:
            kind = self._kind(loop)
            if kind:
                found[loop] = kind
        return found

    @property
    def around_training(self) -> set[ast.AST]:
        """The loops around those that train: over epochs, tasks, folds."""
        return self._training[1]

    def epoch_loop(self, loop: ast.AST) -> Loop | None:
        """The next loop in the same function around a hot one."""
        for up in self.nodes.ancestors(loop):
            if isinstance(up, FUNCTIONS):
                return None
            if isinstance(up, LOOPS):
                return up
        return None

    def is_loader(self, node: ast.expr) -> bool:
        """Whether iterating this yields the batches of a DataLoader, by where it comes from or by its name."""
        node = unwrapped(node)
        if isinstance(node, ast.Call):
            full = self.names.resolve(node.func)
            if full == LOADER or (full or last_part(node.func)) in BATCHES:
                return True
            last = last_part(node.func)
            named = last is not None and (bool(LOADER_NAME.search(last)) or last in self._loader_makers)
            return full is None and named
        if isinstance(node, ast.Subscript):
            node = node.value
        last = last_part(node)
        return last is not None and (bool(LOADER_NAME.search(last)) or last in self._loader_names)

    def is_model_call(self, call: ast.Call) -> bool:
        """Whether a call is `model(x)`: a module called, by how it was made or by its name."""
        last = last_part(call.func)
        if last is None or not (call.args or call.keywords) or self.names.resolve(call.func):
            return False
        return self.is_model_name(last)

    def is_model_name(self, name: str) -> bool:
        if name not in self._models:
            self._models[name] = bool(MODEL_NAME.search(name)) or name in self._module_names
        return self._models[name]

    # -- loops ------------------------------------------------------------------------------------------------------

    def _kind(self, loop: Loop) -> str | None:
        trains, around_training = self._training
        if loop in trains:
            return TRAINS
        over_loader = isinstance(loop, (ast.For, ast.AsyncFor)) and self.is_loader(loop.iter)
        if loop in around_training:
            return TRAINS if over_loader else None
        evaluates, around_evaluating = self._evaluating
        if over_loader:
            return EVALUATES if loop in evaluates or loop in around_evaluating else None
        return EVALUATES if loop in evaluates and self._under_no_grad(loop) and _draws_batches(loop) else None

    @cached_property
    def _training(self) -> tuple[set[ast.AST], set[ast.AST]]:
        """Loops with a backward or an optimizer's step in their own round (or in what they call); and those around.

        A backward alone, for each of some things that are no batches (activation functions to plot), trains nothing.
        """
        direct, around = self._loops_with(self._training_calls)
        steps, _ = self._loops_with([call for call in self._training_calls if last_part(call.func) == "step"])
        return {loop for loop in direct if loop in steps or self._may_draw_batches(loop)}, around

    def _may_draw_batches(self, loop: ast.AST) -> bool:
        """Whether a loop goes through batches or counts its rounds."""
        if not isinstance(loop, (ast.For, ast.AsyncFor)):
            return True
        source = unwrapped(loop.iter)
        counts = isinstance(source, ast.Call) and last_part(source.func) in ("range", "trange", "count")
        plain = isinstance(source, ast.Name) and not re.search(
            r"(by_name|names|fns|functions|models|layers)$", source.id
        )
        return counts or plain or self.is_loader(loop.iter)

    @cached_property
    def _evaluating(self) -> tuple[set[ast.AST], set[ast.AST]]:
        """Loops that call a model in their own round, or a function that does; and those around."""
        named = [calls for name, calls in self.nodes.calls.items() if self.is_model_name(name)]
        return self._loops_with([call for calls in named for call in calls if self.is_model_call(call)])

    def _loops_with(self, calls: list[ast.Call]) -> tuple[set[ast.AST], set[ast.AST]]:
        """The nearest loops around some calls, through the functions that they stand in; and the loops around those."""
        direct: set[ast.AST] = set()
        around: set[ast.AST] = set()
        pending: list[tuple[ast.AST, bool]] = [(call, False) for call in calls]
        seen: set[tuple[ast.AST, bool]] = set()
        while pending:
            node, in_loop = pending.pop()
            child = node
            for up in self.nodes.ancestors(node):
                if (
                    isinstance(up, LOOPS)
                    and not (isinstance(up, ast.For) and child is up.iter)
                    and not self._in_turn(up)
                ):
                    (around if in_loop else direct).add(up)
                    in_loop = True
                elif isinstance(up, FUNCTIONS):
                    if isinstance(child, ast.stmt) and (up, in_loop) not in seen:
                        seen.add((up, in_loop))
                        pending.extend((call, in_loop) for call in self.calls_of(up))
                    break
                elif isinstance(up, (ast.ClassDef, ast.Lambda)):
                    break
                child = up
        return direct, around

    def _in_turn(self, loop: ast.AST) -> bool:
        if loop not in self._taken:
            self._taken[loop] = takes_in_turn(self.nodes, loop)
        return self._taken[loop]

    @cached_property
    def _training_calls(self) -> list[ast.Call]:
        calls = [c for c in self.nodes.calls.get("backward", ()) if self._is_backward(c)]
        calls += self.nodes.calls.get("manual_backward", ())
        for call in self.nodes.calls.get("step", ()):
            if isinstance(call.func, ast.Attribute):
                owner = call.func.value
                last = last_part(owner.value if isinstance(owner, ast.Subscript) else owner)  # optimizers["g"].step()
                if last is not None and OPTIMIZER_NAME.search(last):
                    calls.append(call)
        return [c for c in calls if self.of_inputs is None or not self.of_inputs(c)]

    def _is_backward(self, call: ast.Call) -> bool:
        """A backward that starts from a loss, not one of an autograd function or of a module's own."""
        if not isinstance(call.func, ast.Attribute):
            return False
        full = self.names.resolve(call.func)
        owner = call.func.value
        is_own = isinstance(owner, ast.Call) and isinstance(owner.func, ast.Name) and owner.func.id == "super"
        return (full is None or full == "torch.autograd.backward") and not is_own

    def _under_no_grad(self, node: ast.AST) -> bool:
        for up in self.nodes.ancestors(node):
            if isinstance(up, (ast.With, ast.AsyncWith)) and any(self._is_no_grad(i.context_expr) for i in up.items):
                return True
            if isinstance(up, FUNCTIONS):
                return any(self._is_no_grad(d) for d in up.decorator_list)
        return False

    def _is_no_grad(self, node: ast.expr) -> bool:
        return self.names.resolve(node.func if isinstance(node, ast.Call) else node) in NO_GRAD

    # -- functions --------------------------------------------------------------------------------------------------

    def calls_of(self, function: Function) -> list[ast.Call]:
        """The calls of a function in this file: by its name, or `self.name(...)` and `obj.name(...)` for a method."""
        found = []
        holder = self.nodes.parents.get(function)
        is_method = isinstance(holder, ast.ClassDef)
        for call in self.nodes.calls.get(function.name, ()):
            by_name = isinstance(call.func, ast.Name)
            if by_name != is_method and (by_name or self._may_be_method(call.func, holder)):
                found.append(call)
        return found

    def _may_be_method(self, func: ast.expr, holder: ast.AST | None) -> bool:
        if not isinstance(func, ast.Attribute):
            return False
        if isinstance(func.value, ast.Name) and func.value.id in ("self", "cls"):
            return self.nodes.class_of(func) is holder
        if self.names.resolve(func):
            return False
        return len(self._methods_named.get(func.attr, ())) == 1 and func.attr not in _COMMON_METHODS

    @cached_property
    def _functions_named(self) -> dict[str, list[Function]]:
        found: dict[str, list[Function]] = {}
        for f in self.nodes.functions:
            found.setdefault(f.name, []).append(f)
        return found

    @cached_property
    def _methods_named(self) -> dict[str, list[Function]]:
        return {
            name: [f for f in functions if isinstance(self.nodes.parents.get(f), ast.ClassDef)]
            for name, functions in self._functions_named.items()
        }

    @cached_property
    def _step_methods(self) -> set[ast.AST]:
        """`training_step` and its like, which a Trainer calls at every step."""
        return {
            f
            for f in self.nodes.functions
            if f.name in STEP_METHODS and isinstance(self.nodes.parents.get(f), ast.ClassDef)
        }

    def _hot_function(self, function: Function) -> Hot | None:
        """The hot loop that a function's body runs in, one that trains first, when it is called from nowhere else."""
        if function not in self._of_function:
            self._of_function[function] = None  # a recursive call is no other caller
            self._of_function[function] = self._callers_loop(function)
        return self._of_function[function]

    def _callers_loop(self, function: Function) -> Hot | None:
        if function in self._step_methods:
            return Hot(function, EVALUATES if _EVALUATES.search(function.name) else TRAINS)
        found: list[Hot] = []
        for call in self.calls_of(function):
            if self.nodes.function_of(call) is function:
                continue
            hot = self.hot(call)
            if hot is None:
                return None
            found.append(hot)
        return min(found, key=lambda h: (h.guarded, h.kind != TRAINS, h.line), default=None)

    # -- what stands around a node -------------------------------------------------------------------------------------

    def _every_round(self, loop: Loop, child: ast.AST) -> bool:
        """Whether a direct child of a loop runs in each round (not its iterable, not its else)."""
        return child in loop.body or (isinstance(loop, ast.While) and child is loop.test)

    def _seldom(self, guards: list[ast.expr]) -> bool:
        return any(self.is_modulo(test) for test in guards)

    def is_modulo(self, test: ast.expr) -> bool:
        return self.guards.is_modulo(test)

    @cached_property
    def guards(self) -> Guards:
        return Guards(self.nodes)

    def _skipped_before(self, loop: Loop, node: ast.AST) -> bool:
        """Whether `if step % n: continue` stands before the node in the loop's own block."""
        return self._ends_before(loop.body, node, ast.Continue)

    def _left_before(self, function: Function, node: ast.AST) -> bool:
        """Whether `if step % n: return` stands before the node in the function's own block."""
        return self._ends_before(function.body, node, ast.Return)

    def _ends_before(self, body: list[ast.stmt], node: ast.AST, end: type[ast.stmt]) -> bool:
        line = node.lineno  # type: ignore[attr-defined]
        return any(
            isinstance(s, ast.If) and s.lineno < line and isinstance(s.body[-1], end) and self.is_modulo(s.test)
            for s in body
        )

    # -- what names stand for -----------------------------------------------------------------------------------------

    @cached_property
    def _loader_names(self) -> set[str]:
        """Names and attributes that are given a DataLoader anywhere in the file."""
        return self._assigned_from(
            lambda call: self.names.resolve(call.func) == LOADER or last_part(call.func) in self._loader_makers
        )

    @cached_property
    def _loader_makers(self) -> set[str]:
        """Names of `functools.partial(DataLoader, ...)`."""
        return self._assigned_from(
            lambda call: (
                self.names.resolve(call.func) == "functools.partial"
                and bool(call.args)
                and self.names.resolve(call.args[0]) == LOADER
            )
        )

    @cached_property
    def _module_names(self) -> set[str]:
        classes = {c.name for c in self.nodes.of(ast.ClassDef) if self._is_module_class(c)}
        names = self._assigned_from(
            lambda call: (
                (isinstance(call.func, ast.Name) and call.func.id in classes)
                or (self.names.resolve(call.func) or "").startswith(("torch.nn.Sequential", "torchvision.models."))
            )
        )

        def copies(call: ast.Call) -> bool:
            of = last_part(call.args[0]) if self.names.resolve(call.func) == "copy.deepcopy" and call.args else None
            return of is not None and (of in names or bool(MODEL_NAME.search(of)))

        return names | self._assigned_from(copies)

    def _is_module_class(self, c: ast.ClassDef) -> bool:
        return any((self.names.resolve(b) or "").rpartition(".")[2] in ("Module", "LightningModule") for b in c.bases)

    def _assigned_from(self, test: Callable[[ast.Call], bool]) -> set[str]:
        return {last for last, chain in self._chains if any(map(test, chain))}

    @cached_property
    def _chains(self) -> list[tuple[str, list[ast.Call]]]:
        """Names that are given calls, and those calls: two for `Net().to(device)`, the last one first."""
        found: list[tuple[str, list[ast.Call]]] = []
        for assign in self.nodes.of(ast.Assign):
            for target, value in ((t, v) for one in assign.targets for t, v in _pairs(one, assign.value)):
                chain: list[ast.Call] = []
                while isinstance(value, ast.Call):
                    chain.append(value)
                    if not isinstance(value.func, ast.Attribute):
                        break
                    value = value.func.value
                last = last_part(target) if chain else None
                if last is not None:
                    found.append((last, chain))
        return found


_COMMON_METHODS = {"forward", "step", "update", "train", "eval", "__init__", "__call__", "get", "run", "reset", "add"}


def unwrapped(node: ast.expr) -> ast.expr:
    """The iterable under `enumerate(tqdm(...))` and its like."""
    while isinstance(node, ast.Call) and node.args and last_part(node.func) in WRAPPERS:
        node = node.args[0]
    return node


def last_part(node: ast.AST) -> str | None:
    """The last part of a dotted name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def _draws_batches(loop: Loop) -> bool:
    """Under no_grad a loop that calls a model is taken for evaluation, but for one over layers, heads or constants."""
    if isinstance(loop, ast.While):
        return True
    iterable = unwrapped(loop.iter)
    if isinstance(iterable, (ast.List, ast.Tuple, ast.Set)) and all(isinstance(e, ast.Constant) for e in iterable.elts):
        return False
    last = last_part(iterable)
    return not (last is not None and re.search(r"(layers|blocks|modules|models|parameters|heads)$", last))


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """What each name of `a, b = x, y` is given."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]
