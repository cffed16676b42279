"""What a training step prints, logs, or puts in a meter: where ranks hold shares of the batch, values of the whole one.

A mean or a sum over the samples is brought together in the call that shows it. Of anything else (a maximum, a
prediction) a process shows what its own share gives, which is told.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from typing import TypeGuard

from ..facts.arguments import given_to
from ..facts.nodes import COMPREHENSIONS, children, walk
from ..facts.placed import MAKES_TENSORS
from ..facts.script import Facts
from .as_given import as_given
from .called_networks import is_network
from .chunks import given_arguments
from .nodes import local_function, walk_here
from .owned import class_there
from .recipe import DataPass, Recipe
from .self_named import names_itself
from .sums import Sums

SHOWS = (
    "print", "log", "info", "write", "writerow", "display", "debug", "warning", "flush",
    "echo", "secho", "cprint", "pprint", "rule", "success", "error",
)  # fmt: skip
METERS = ("append", "update", "push", "record")
PICTURES = {
    "save_image", "add_image", "add_images", "add_figure", "add_histogram", "add_video", "add_audio", "add_embedding",
    "imshow", "imsave", "imwrite",
}  # fmt: skip
SAVES = ("torch.save", "numpy.save", "numpy.savez", "numpy.savetxt", "json.dump", "pickle.dump")
LIBRARIES = ("torch", "F", "math", "np", "numpy")
LOGARITHMS = ("log_softmax", "log_prob", "log_likelihood", "log_abs_det_jacobian", "log_sigmoid", "log_normal_", "log_")
OF_VALUES = ("tensor", "as_tensor", "from_numpy", "load")
NUMBERS = (
    "item",
    "detach",
    "numpy",
    "tolist",
    "argmax",
    "eq",
    "ne",
    "gt",
    "lt",
    "ge",
    "le",
    "size",
    "numel",
    "nelement",
)


def shows(call: ast.Call) -> bool:
    """A call that keeps or shows what it gets: a list's append(), a meter's update(), a writer's add_scalar()."""
    last = _last(call)
    says = last in (*SHOWS, *METERS) or last.startswith(("add_scalar", "log_", "set_post", "set_desc"))
    return says and not (last.startswith("log") and _computes_log(call))


def _computes_log(call: ast.Call) -> bool:
    """`torch.log(x)`, `x.log()`, `F.log_softmax(x, 1)`, `normal.log_prob(x)`: not a log that is written."""
    of_library = isinstance(call.func, ast.Attribute) and getattr(call.func.value, "id", "") in LIBRARIES
    return of_library or _last(call) in LOGARITHMS or not given_to(call)


def keeps(call: ast.Call) -> bool:
    return _last(call) in METERS


def is_picture(call: ast.Call) -> bool:
    """A call that shows samples themselves: save_image(), a writer's add_images()."""
    return _last(call) in PICTURES


def is_print(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "print"


class Shown:
    """Asked for calls of the training step that every rank comes by."""

    def __init__(self, facts: Facts, recipe: Recipe, reduction: str) -> None:
        self.facts, self.recipe, self.reduction = facts, recipe, reduction

    @cached_property
    def sums(self) -> Sums:
        return Sums(self.facts, self.recipe, self.recipe.train, self.reduction)

    def of_call(self, call: ast.Call) -> dict[ast.AST, str]:
        """The largest expressions among the arguments that are a mean or a sum over the samples, and which of both."""
        given = given_to(call)
        if not shows(call) and not self._is_meter(call):
            losses = {f"{x.id}.item()" for x in self.recipe.optimization.differentiated if isinstance(x, ast.Name)}
            handed = self._handed(call)
            within = {n for e in handed for n in walk(e)}
            brought = {e: self.reduction for g in given for e in walk(g) if _is_one_of(e, losses) and e not in within}
            return {**brought, **handed}
        found = [pair for g in given for pair in self._largest(g)]
        if is_print(call):
            return dict(found)
        if keeps(call) or not shows(call):  # what is kept may be differentiated later on
            found = [(e, kind) for e, kind in found if shows_number(self.sums, e)]
        values = [e for e, _ in found if not self.sums.is_size(e)]
        counted = _last(call) == "update"  # by a bar, of what this process has seen
        return dict(found) if values or not counted else {}

    def _is_meter(self, call: ast.Call) -> bool:
        """`m.add(acc.item(), len(x))`, `m["loss"].feed(loss)`: an object of the script's is given it."""
        method = at = call.func
        if not isinstance(method, ast.Attribute) or self.facts.names.resolve(method) is not None:
            return False
        while isinstance(at, (ast.Attribute, ast.Subscript)):
            at = at.value
        alone = isinstance(self.facts.scopes.parents.get(call), ast.Expr)
        alone = alone and not self._is_network(method.value)  # net.reset(len(x)) is of its own samples
        return alone and isinstance(at, ast.Name) and at.id not in self.sums.own

    def _is_network(self, node: ast.expr) -> bool:
        """Whether an object is a network, and no meter that is a module to be moved with one: it has a forward()."""
        if not is_network(self.facts, node):
            return False
        there, c = self.facts, self.facts.devices.own_movers.class_of(node)
        if c is None and isinstance(node, ast.Name):
            there, c = class_there(self.facts, node)
        above = there.classes.above(c) if c is not None else []
        bases = {there.names.resolve(b) for d in above for b in d.bases} - {"torch.nn.Module"}
        layer = any((full or "").startswith("torch.nn.") for full in bases)
        return c is None or layer or any("forward" in there.classes.methods(d) for d in above)

    def _handed(self, call: ast.Call) -> dict[ast.AST, str]:
        """What a function of the script's own gets: means that are numbers, and whatever it does no more than show."""
        found: dict[ast.AST, str] = {}
        for e, own in self._parameters(call):
            only_shown = bool(own) and all(self._is_shown(n) for n in own)
            for value, kind in self._largest(e):
                if only_shown or (kind == "mean" and shows_number(self.sums, value)):
                    found[value] = kind
        return found

    def tells(self, call: ast.Call) -> list[ast.expr]:
        """What a call shows of its arguments, itself or in the function of the script's own that it calls."""
        if shows(call) or is_picture(call) or self.facts.names.resolve(call.func) in SAVES:
            return [] if keeps(call) else [call]
        return [e for e, own in self._parameters(call) if any(self._is_shown(n) or self._is_pictured(n) for n in own)]

    def _parameters(self, call: ast.Call) -> Iterator[tuple[ast.expr, list[ast.Name]]]:
        """The arguments of a function of this file, each with the places that read it there."""
        f = local_function(self.facts, call.func) if isinstance(call.func, ast.Name) else None
        if f is None or any(isinstance(a, ast.Starred) for a in call.args):
            return
        for name, e in (*given_arguments(f, call).items(), *_given_beyond(f, call)):
            if self.sums.of_the_samples(e):
                own = [n for s in f.body for n in walk(s, ast.Name) if n.id == name]
                yield e, own if all(isinstance(n.ctx, ast.Load) for n in own) else []

    def _is_shown(self, n: ast.Name) -> bool:
        """Whether a name is read for what is printed, logged, or made into a text."""
        for up in self.facts.scopes.ancestors(n):
            if isinstance(up, ast.JoinedStr) or (isinstance(up, ast.Call) and shows(up) and not keeps(up)):
                return True
            if isinstance(up, ast.stmt):
                break
        return False

    def _is_pictured(self, n: ast.Name) -> bool:
        return any(isinstance(up, ast.Call) and is_picture(up) for up in self.facts.scopes.ancestors(n))

    def of_text(self, s: ast.stmt) -> dict[ast.AST, str]:
        """The same of a line that is made to be shown: `text = f"loss {loss.item()}"`."""
        value = s.value if isinstance(s, ast.Assign) else None
        if isinstance(value, ast.BinOp) and not (isinstance(value.op, ast.Mod) and _is_text(value.left)):
            return {}
        if isinstance(value, ast.Call):
            formats = isinstance(value.func, ast.Attribute) and value.func.attr == "format"
            if not (formats and _is_text(value.func.value)):  # type: ignore[attr-defined]
                return {}
        if not isinstance(value, (ast.JoinedStr, ast.BinOp, ast.Call)):
            return {}
        return dict(self._largest(value))

    def of_value(self, value: ast.expr) -> dict[ast.AST, str]:
        """The same of any expression."""
        return dict(self._largest(value))

    def _largest(self, node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
        if isinstance(node, ast.Lambda) or node.__class__ in COMPREHENSIONS:
            return
        if isinstance(node, ast.FormattedValue) and names_itself(self.facts, node):
            return
        if isinstance(node, ast.Call) and _is_made_by_size(self.facts, node):
            return
        if isinstance(node, (ast.Call, ast.BinOp, ast.Name, ast.UnaryOp, ast.Subscript)):
            kind = self.sums.kind(node) if self.sums.of_the_samples(node) else None
            if kind is not None and not (kind == "mean" and _is_cut(node)):
                yield node, kind
                return
        if _computes(node) and not self._all_brought(node):
            # a size of the whole batch beside what is of this process's part would be a number of nothing
            yield from (
                (e, kind) for side in (node.left, node.right) for e, kind in self._largest(side) if kind == "mean"
            )
            return
        below: list[ast.AST] = list(children(node))
        if isinstance(node, ast.IfExp) and not self.sums.alike(node.test):
            below = [node.test]
        elif isinstance(node, ast.BoolOp):
            below = below[:2]
        for child in below:
            yield from self._largest(child)

    def _all_brought(self, node: ast.BinOp) -> bool:
        """Whether both sides of a computation are the same on every rank, or brought together as a whole."""
        return all(
            self.sums.alike(e) or self.sums.kind(e) is not None or (_computes(e) and self._all_brought(e))
            for e in (node.left, node.right)
        )


def _is_made_by_size(facts: Facts, call: ast.Call) -> bool:
    """`torch.zeros(len(x), 6)`, `x.new_zeros(len(x), 6)`: the samples are this process's."""
    full = facts.names.resolve(call.func)
    if full is not None:
        return full in MAKES_TENSORS and full.rpartition(".")[2] not in OF_VALUES
    return isinstance(call.func, ast.Attribute) and call.func.attr.startswith("new_") and call.func.attr != "new_tensor"


def _given_beyond(f: ast.FunctionDef, call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """What a call gives `*args` and `**kwargs`, and their names."""
    named = [a.arg for a in (*f.args.args, *f.args.kwonlyargs)]
    if f.args.vararg is not None:
        yield from ((f.args.vararg.arg, e) for e in call.args[len(f.args.posonlyargs) + len(f.args.args) :])
    if f.args.kwarg is not None:
        yield from ((f.args.kwarg.arg, k.value) for k in call.keywords if k.arg is not None and k.arg not in named)


def shows_number(sums: Sums, e: ast.expr) -> bool:
    """Whether nothing can be differentiated through a value."""
    if isinstance(e, (ast.Constant, ast.Compare)) or sums.alike(e) or sums.is_size(e):
        return True
    if isinstance(e, ast.BinOp):
        return shows_number(sums, e.left) and shows_number(sums, e.right)
    if isinstance(e, ast.UnaryOp):
        return shows_number(sums, e.operand)
    if isinstance(e, ast.Attribute):
        return e.attr == "data" or shows_number(sums, e.value)
    if isinstance(e, ast.Subscript):
        return shows_number(sums, e.value)
    if isinstance(e, ast.Name):
        made = sums.made(e)
        if made is None:
            handed = sums.handed(e)
            return bool(handed) and all(shows_number(*each) for each in handed)
        return shows_number(sums, made)
    return isinstance(e, ast.Call) and _gives_number(sums, e)


def _gives_number(sums: Sums, call: ast.Call) -> bool:
    entered = sums.entered(call)
    if entered and all(shows_number(*each) for each in entered):
        return True
    if isinstance(call.func, ast.Name):
        given = as_given(sums.facts, call)
        return call.func.id in ("float", "int") or (given is not None and shows_number(sums, given))
    if not isinstance(call.func, ast.Attribute) or call.func.attr in NUMBERS:
        return isinstance(call.func, ast.Attribute)
    of = [call.func.value] if sums.of_the_samples(call.func.value) else []
    return bool(of or call.args) and all(shows_number(sums, e) for e in (*of, *call.args))


def of_the_batch(train: DataPass, whole: set[str], brought: dict[ast.AST, str]) -> set[str]:
    """Names of a step that hold what the batch gives. `whole`: what is brought together wherever it is read."""
    given = {n.id for n in walk(train.target, ast.Name)} - {train.index}
    return spread(train.body, given, whole, brought)


def spread(body: list[ast.stmt], names: set[str], whole: set[str], brought: dict[ast.AST, str]) -> set[str]:
    """The names, and those that the statements give a value by them."""
    giving = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr, ast.For)
    gives = [n for s in body for n in walk_here(s) if isinstance(n, giving)]
    found, size = set(names), -1
    while size != len(found):
        size = len(found)
        for n in gives:
            value = n.iter if isinstance(n, ast.For) else n.value
            if isinstance(value, ast.expr) and reads_part(value, found, brought) is not None:
                targets = n.targets if isinstance(n, ast.Assign) else [n.target]
                found |= {x.id for t in targets for x in walk(t, ast.Name)} - whole
    return found


def reads_part(node: ast.AST, part: set[str], brought: dict[ast.AST, str]) -> ast.AST | None:
    """The first name below a node that holds what this process's share gives, and is not brought together."""
    if node in brought or isinstance(node, ast.Lambda):
        return None
    if isinstance(node, ast.Call) and _last(node) in ("len", "time", "type", "id"):
        return None
    if isinstance(node, ast.Name):
        return node if node.id in part else None
    if isinstance(node, ast.Attribute) and node.attr in ("shape", "dtype", "device"):
        return None
    found = (reads_part(child, part, brought) for child in children(node))
    return next((n for n in found if n is not None), None)


def _last(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _is_one_of(e: ast.AST, texts: set[str]) -> bool:
    return isinstance(e, ast.Call) and ast.unparse(e) in texts


def _is_text(e: ast.expr) -> bool:
    return isinstance(e, ast.JoinedStr) or (isinstance(e, ast.Constant) and isinstance(e.value, str))


def _computes(node: ast.AST) -> TypeGuard[ast.BinOp]:
    """Arithmetic, and no text that is formatted or put together."""
    return isinstance(node, ast.BinOp) and not any(_is_text(e) for e in (node.left, node.right))


def _is_cut(e: ast.expr) -> bool:
    """`int(mean)`: the mean of what was cut off is another."""
    return isinstance(e, ast.Call) and isinstance(e.func, ast.Name) and e.func.id == "int"
