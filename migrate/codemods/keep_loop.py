"""T14: a loop that cannot be lifted stays as it is written, on the handle `Runtime`.

Every process computes every batch whole, from the same random numbers, so that the run is the same on any number of
them; gradients are averaged when `runtime.backward` returns. What the script places it still places, on the rank's own
device.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ..facts.arguments import given_to
from ..facts.nodes import walk
from ..facts.of_inputs import is_of_inputs
from ..facts.optimizers_made import is_stepped, makes_optimizer
from ..facts.own_methods import own_methods
from ..facts.placed import LIKE, MAKES_TENSORS
from ..facts.refusals import takes_gradients
from ..facts.script import Facts
from ..facts.storages import is_storage
from ..facts.written_devices import may_be_text
from .argument_rewrites import to_argument
from .base import Change, Codemod

CUDA_CALLS = ("cuda", "xpu")


class KeepLoop(Codemod):
    code = "PTM702"
    name = "keep-loop"

    def __init__(self, handle: str = "runtime") -> None:
        self.handle = handle  # what the result calls its Runtime

    def plan(self, facts: Facts) -> Iterator[Change]:
        yield from self._backwards(facts)
        yield from self._optimizers(facts)
        yield from self._devices(facts)

    def _backwards(self, facts: Facts) -> Iterator[Change]:
        for call in facts.walk(ast.Call):
            f = call.func
            if isinstance(f, ast.Attribute) and f.attr == "backward" and facts.names.resolve(f) is None:
                if isinstance(f.value, ast.Name) and f.value.id in ("self", self.handle):
                    continue  # a method of the script's own class, or done already
                if takes_gradients(call) or own_methods(facts, f) or is_of_inputs(facts, call):
                    continue  # told of, a method of the script's own, or of what each process has itself
                if isinstance(f.value, ast.Call) and ast.unparse(f.value.func) == "super":
                    continue
                says = f"`{facts.short(call)}` became `{self.handle}.backward(...)`: gradients are averaged over ranks"
                yield Change(call, self.edit(facts, call, says), _through(self.handle))

    def _optimizers(self, facts: Facts) -> Iterator[Change]:
        for call in facts.walk(ast.Call):
            if (makes_optimizer(facts, call) or is_stepped(facts, call)) and not is_of_inputs(facts, call):
                says = f"{self.handle}.setup_optimizer: ranks start from rank 0's weights and average these gradients"
                yield Change(
                    call, self.edit(facts, call, says), _wrapped(self.handle, "setup_optimizer", _models(call))
                )

    def _devices(self, facts: Facts) -> Iterator[Change]:
        inside: set[ast.AST] = set()
        for node in _outermost_devices(facts):
            if node in inside:
                continue
            inside.update(walk(node))
            says = f"`{facts.short(node)}`: on an accelerator, this rank's own"
            yield Change(node, self.edit(facts, node, says), _wrapped(self.handle, "own_device", []))
        for node in _device_texts(facts):
            if node not in inside:
                says = f"`{facts.short(node)}`: on an accelerator, this rank's own"
                yield Change(node, self.edit(facts, node, says), _wrapped(self.handle, "own_device", []))
        for call in facts.walk(ast.Call):
            f = call.func
            if (
                isinstance(f, ast.Attribute)
                and f.attr in CUDA_CALLS
                and facts.names.resolve(f) is None
                and facts.devices.moved(call) is not None
            ):
                by_name = "device=" if is_storage(facts, f.value) else ""
                says = f"`{facts.short(call)}` became `.to({by_name}{self.handle}.device)`"
                yield Change(call, self.edit(facts, call, says), _to_device(self.handle, bool(by_name)))


def _outermost_devices(facts: Facts) -> Iterator[ast.expr]:
    """The expressions that make a device: `torch.device(...)` and what chooses between two, outermost first."""
    for node in facts.walk(ast.IfExp):
        if _makes_device(facts, node) and _is_value(facts, node):
            yield node
    for call in facts.walk(ast.Call):
        if _makes_device(facts, call) and not _in_context(facts, call):
            yield call


def _device_texts(facts: Facts) -> Iterator[ast.expr]:
    """Devices that are texts or numbers ("cuda:0", a rank, a name that is given those), where they place something."""
    for call in facts.walk(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "to" and facts.names.resolve(call.func) is None:
            places = [*call.args[:1], *(k.value for k in call.keywords if k.arg == "device")]
        elif (facts.names.resolve(call.func) or "") in MAKES_TENSORS | LIKE:
            places = [k.value for k in call.keywords if k.arg == "device"]
        else:
            continue
        yield from (p for p in places if facts.devices.is_number(p))  # `.to(rank)`: a number is an accelerator's
        for node in places:
            written = facts.devices.is_text(node) or may_be_text(facts, node)
            if written and facts.devices.is_device(node) and not _all_cpu(node):
                yield node


def _makes_device(facts: Facts, node: ast.expr) -> bool:
    if isinstance(node, ast.IfExp):
        made = any(isinstance(n, ast.Call) and _makes_device(facts, n) for n in (node.body, node.orelse))
        return made and facts.devices.is_device(node) and not _all_cpu(node)
    if isinstance(node, ast.Call):
        if facts.names.resolve(node.func) == "torch.device":
            return not _all_cpu(node)
        return facts.devices.is_device(node)
    return False


def _all_cpu(node: ast.AST) -> bool:
    texts = [n.value for n in walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return bool(texts) and all(t.startswith("cpu") for t in texts)


def _is_value(facts: Facts, node: ast.expr) -> bool:
    """Assigned, or an argument of device= : not the argument of torch.device itself, which is wrapped whole."""
    parent = facts.scopes.parents.get(node)
    return not (isinstance(parent, ast.Call) and facts.names.resolve(parent.func) == "torch.device")


def _in_context(facts: Facts, node: ast.AST) -> bool:
    """Inside `map_location=` or a comparison a device is only looked at."""
    parent = facts.scopes.parents.get(node)
    return isinstance(parent, ast.Compare) or (isinstance(parent, ast.keyword) and parent.arg == "map_location")


def _models(call: ast.Call) -> list[str]:
    """The sources of X for every `X.parameters()` in the arguments of an optimizer."""
    found: dict[str, None] = {}
    for argument in given_to(call):
        comprehended = {n.id for c in walk(argument, ast.comprehension) for n in walk(c.target, ast.Name)}
        for n in walk(argument, ast.Call):
            if (
                isinstance(n.func, ast.Attribute)
                and n.func.attr in ("parameters", "named_parameters")
                and not any(x.id in comprehended for x in walk(n.func.value, ast.Name))
                and not walk(n.func.value, ast.Call)
            ):
                found[ast.unparse(n.func.value)] = None
    return list(found)


def _through(handle: str) -> Any:
    """`loss.backward(...)` to `runtime.backward(loss, ...)`."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        loss = updated.func.value
        comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")) if updated.args else cst.MaybeSentinel.DEFAULT
        func = cst.Attribute(cst.Name(handle), cst.Name("backward"))
        return updated.with_changes(func=func, args=[cst.Arg(loss, comma=comma), *updated.args])

    return rewrite


def _wrapped(handle: str, method: str, more: list[str]) -> Any:
    """`x` to `runtime.method(x, ...)`."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        args = [cst.Arg(updated), *(cst.Arg(cst.parse_expression(m)) for m in more)]
        return cst.Call(cst.Attribute(cst.Name(handle), cst.Name(method)), args)

    return rewrite


def _to_device(handle: str, by_name: bool) -> Any:
    """`x.cuda()` to `x.to(runtime.device)`."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        kept = [a for a in updated.args if a.keyword is not None and a.keyword.value == "non_blocking"]
        device = to_argument(cst.Attribute(cst.Name(handle), cst.Name("device")), by_name)
        return updated.with_changes(func=updated.func.with_changes(attr=cst.Name("to")), args=[device, *kept])

    return rewrite
