"""T1: a batch that the script left on the CPU is where the model is now; where it meets the CPU it is brought there.

`(predicted.cpu() == y).sum()` of a y that nothing moved; `.numpy()` of what the runtime places, which raises on a GPU;
lengths that `pack_padded_sequence` is given; what indexes an array. On the CPU `.cpu()` is the tensor itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from ..facts.always_before import last_of
from ..facts.arguments import argument, given_to
from ..facts.arrays import is_of_numbers
from ..facts.comprehended import draws_part, in_comprehension, in_loop, moves_batches
from ..facts.cpu_types import cast_on_cpu
from ..facts.drawn import draw_of
from ..facts.gone_through import elements_of, gone_through
from ..facts.hosts import names_no_device
from ..facts.loops import LOOPS
from ..facts.nodes import walk
from ..facts.plain import VARIABLE
from ..facts.script import Facts, once_a_file
from ..facts.spelled import spelled
from ..facts.tensor_methods import METHODS as TENSOR_METHODS
from ..facts.tensor_methods import VIEWS
from ..report import Note
from ._given_to_arrays import from_batches, given_to_arrays, left_to_arrays
from ._indexes import indexes_there, is_collated, is_of_loader
from ._kept_parts import if_tensor, is_surely_tensor, may_be_texts
from ._left_beyond import left_beyond, moved_on, moves_itself
from ._lengths import as_on_cpu, in_file, is_tensor, lengths_given
from ._met_on_cpu import read_as_arrays
from .base import Change, Codemod

# of a tensor: another one on the same device
METHODS = TENSOR_METHODS - {"cpu", "cuda", "to", "type", "type_as"}
OF_TORCH = ("torch", "torchvision", "torchaudio", "torchmetrics", "tqdm")
OPERATIONS = (ast.Compare, ast.BinOp)
DEPTH = 6  # of names that are made of names
CALLS = 2  # of functions that are called for each batch


class BackOnCpu(Codemod):
    code = "PTM114"
    name = "back-on-cpu"

    def __init__(self) -> None:
        self.left: list[Note] = []

    def notes(self, facts: Facts) -> Iterable[Note]:
        return self.left

    def plan(self, facts: Facts) -> Iterator[Change]:
        taken: set[ast.AST] = set()
        yield from self._of_lengths(facts, taken)
        for read in read_as_arrays(facts):
            yield from self._changed(facts, read, taken, "an array is of the CPU, and a buffer moves with its module")
        without = names_no_device(facts)  # what moves its batches itself hands on what is its own there
        bare = "backward" in facts.attributes and without
        if not (facts.loops.hot_loops or bare) or "tensorflow" in facts.text.text:
            return
        for a in facts.attributes.get("numpy", ()):
            call = facts.scopes.parents.get(a)
            if not isinstance(call, ast.Call) or call.func is not a or call.args or call.keywords:
                continue
            read = a.value
            if brought(facts, read):
                continue
            step = (_for_each_batch(facts, call) or from_batches(facts, read, False)) and facts.placed.by_runtime(read)
            if step or (bare and _is_in_training(facts, call)) or _is_collected(facts, read):
                yield from self._changed(facts, read, taken, "an array is of the CPU")
        arrays = given_to_arrays(facts, is_left, _is_there) if without else left_to_arrays(facts, is_left, moves_itself)
        for call, read in arrays:
            why = f"`{facts.short(call.func)}` takes arrays, of the CPU"
            if may_be_texts(facts, call, read):
                yield from self._if_tensor(facts, read, taken, why)
            elif is_collated(facts) or is_tensor(facts, read) or not is_of_loader(facts, read):
                yield from self._changed(facts, read, taken, why)
            elif read not in taken and not facts.is_fixed(read):
                taken.add(read)
                yield self._or_list(facts, read, why)
        for a in (*facts.attributes.get("append", ()), *facts.attributes.get("extend", ())):
            for kept in _left_in_list(facts, a):
                yield from self._kept(facts, kept, taken, a.value)
        for kept, name in left_beyond(facts, is_left):
            yield from self._kept(facts, kept, taken, name)
        for node in _meetings(facts):
            together = _left_together(facts, node)
            for read in together:
                line, column, _, _ = facts.text.key(read)
                says = f"`{facts.short(read)}` is where the model is now, and what it meets in `{facts.short(node)}`"
                self.left.append(Note(line, column + 1, self.code, f"{says} on the CPU"))
            for read in _left_there(facts, node) if not together else ():
                yield from self._changed(facts, read, taken, f"what it meets in `{facts.short(node)}` is there")
        yield from self._of_indexes(facts, taken)
        for call, read in _handed_out(facts):
            yield from self._changed(facts, read, taken, f"`{facts.short(call.func)}` got it there")

    def _of_lengths(self, facts: Facts, taken: set[ast.AST]) -> Iterator[Change]:
        for given in lengths_given(facts):
            why = "packing takes lengths there alone"
            if is_tensor(facts, given):
                yield from self._changed(facts, given, taken, why)
            else:
                yield self._or_list(facts, given, why)

    def _of_indexes(self, facts: Facts, taken: set[ast.AST]) -> Iterator[Change]:
        collated = is_collated(facts)
        for index, held in indexes_there(facts, is_left, brought):
            why = f"`{held}` is there"
            if collated or is_tensor(facts, index):
                yield from self._changed(facts, index, taken, why)
            elif index not in taken and not facts.is_fixed(index):
                yield self._or_list(facts, index, why)

    def _or_list(self, facts: Facts, given: ast.expr, why: str) -> Change:
        name, needed = in_file(facts)
        says = f"`{facts.short(given)}` is on the CPU, or a list: {why}"
        return Change(given, self.edit(facts, given, says), as_on_cpu(name), insertion=needed)

    def _kept(self, facts: Facts, read: ast.expr, taken: set[ast.AST], held: ast.expr) -> Iterator[Change]:
        """What a list or a name keeps: of a batch, where that may be a list of names, which has no `.cpu()`."""
        why = f"`{facts.short(held)}` keeps it there"
        if is_surely_tensor(facts, read, held):
            yield from self._changed(facts, read, taken, why)
        else:
            yield from self._if_tensor(facts, read, taken, why)

    def _if_tensor(self, facts: Facts, read: ast.expr, taken: set[ast.AST], why: str) -> Iterator[Change]:
        if read not in taken and not facts.is_fixed(read):
            taken.add(read)
            name, needed = in_file(facts)
            says = f"`{facts.short(read)}` is brought to the CPU, where the script left it, if it is a tensor: {why}"
            yield Change(read, self.edit(facts, read, says), if_tensor(name), insertion=needed)

    def _changed(self, facts: Facts, read: ast.expr, taken: set[ast.AST], why: str) -> Iterator[Change]:
        if read in taken or facts.is_fixed(read):
            return
        taken.add(read)
        says = f"`{facts.short(read)}` is brought to the CPU, where the script left it: {why}"
        yield Change(read, self.edit(facts, read, says), _on_cpu)


def _on_cpu(original: Any, updated: Any) -> Any:
    import libcst as cst

    return cst.Call(cst.Attribute(updated, cst.Name("cpu")))


def _handed_out(facts: Facts) -> Iterator[tuple[ast.Call, ast.expr]]:
    """The x of `imshow(x[0])` in a loop that only moves it for the model, `net(x.to(device))`, and the call.

    Only what is imported, and not torch's: that may be drawn or counted by what knows of no device.
    """
    moved: dict[ast.AST, set[str]] = {}
    for call in facts.walk(ast.Call):
        receiver = facts.devices.moved(call)
        if isinstance(receiver, ast.Name) and (loop := _loop_of(facts, call)) is not None:
            moved.setdefault(loop, set()).add(receiver.id)
    for loop, names in moved.items():
        for call in (n for n in walk(loop, ast.Call)):
            full = facts.names.resolve(call.func) or ""
            if "." in full and full.partition(".")[0] not in OF_TORCH and _only_shows(facts, call):
                for given in given_to(call):
                    if {n.id for n in walk(given, ast.Name)} & names and is_left(facts, given):
                        yield call, given


def _only_shows(facts: Facts, call: ast.Call) -> bool:
    """`plt.imshow(x)`, `writer.add_figure("x", drawn(x))`: nothing of it comes back to what is computed."""
    for up in facts.scopes.ancestors(call):
        if isinstance(up, ast.stmt):
            return isinstance(up, ast.Expr)
        if not isinstance(up, (ast.Call, ast.keyword)) or (isinstance(up, ast.Call) and facts.devices.moved(up)):
            return False
    return False


def _loop_of(facts: Facts, node: ast.AST) -> ast.AST | None:
    return next((up for up in facts.scopes.ancestors(node) if up in facts.loops.hot_loops), None)


def _is_in_training(facts: Facts, node: ast.AST) -> bool:
    """Whether a loop around takes gradients: what a script makes for it becomes a part of the Module, and is placed."""
    loops = {up for up in facts.scopes.ancestors(node) if isinstance(up, LOOPS)}
    return any(up in loops for a in facts.attributes.get("backward", ()) for up in facts.scopes.ancestors(a))


def _left_in_list(facts: Facts, append: ast.Attribute) -> list[ast.expr]:
    """The y of `labels.append(y)`, and of `pairs.append((out.cpu(), y))`, in a loop that moves other parts of its
    batches: the list is one of the CPU.
    """
    call = facts.scopes.parents.get(append)
    if not (isinstance(call, ast.Call) and call.func is append and len(call.args) == 1):
        return []
    hot, given = facts.loops.hot(call), call.args[0]
    kept = [e for e in (given.elts if isinstance(given, ast.Tuple) else [given]) if is_left(facts, e)]
    if not kept or hot is None or not moves_itself(facts, hot.loop) or _is_moved_whole(facts, append.value):
        return []
    return kept


def _is_moved_whole(facts: Facts, held: ast.expr) -> bool:
    """`torch.cat(labels).to(device)` of a list: what is in it may be there as well."""
    scope = facts.scopes.scope_of(held).lookup(held.id) if isinstance(held, ast.Name) else None
    reads = facts.scopes.reads(held.id, scope) if scope is not None and isinstance(held, ast.Name) else ()
    return any(moved_on(facts, n) for n in reads)


def _is_collected(facts: Facts, node: ast.expr) -> bool:
    """`torch.cat(outputs)`, of a list to which a loop over batches adds what stays where the runtime placed it."""
    names = {n.id for n in walk(node, ast.Name)}
    for n in list(walk(node, ast.Name)):
        names |= {m.id for v in _values(facts, n) if v is not None for m in walk(v, ast.Name)}
    for a in facts.attributes.get("append", ()):
        if not (isinstance(a.value, ast.Name) and a.value.id in names and _same_function(facts, a, node)):
            continue
        call = facts.scopes.parents.get(a)
        if isinstance(call, ast.Call) and len(call.args) == 1 and facts.loops.hot(call):
            given = call.args[0]
            placed = facts.placed.by_runtime(given) and not brought(facts, given)
            return placed and not _is_number(given) and not _left_in_list(facts, a)
    return False


def _is_there(facts: Facts, node: ast.expr) -> bool:
    """Whether a value of a loop over batches is where the runtime places it."""
    if _is_number(node) or brought(facts, node):
        return False
    step = (_for_each_batch(facts, node) or from_batches(facts, node)) and facts.placed.by_runtime(node)
    return step or _is_collected(facts, node)


def _same_function(facts: Facts, a: ast.AST, b: ast.AST) -> bool:
    return facts.scopes.scope_of(a) is facts.scopes.scope_of(b)


def _is_number(node: ast.expr) -> bool:
    """`loss.item()`, `y.tolist()`"""
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("item", "tolist", "size", "numel")


def _meetings(facts: Facts) -> Iterator[ast.expr]:
    """The comparisons, operations and calls that hold something that was brought to the CPU, innermost first."""
    found: set[ast.AST] = set()
    for name in ("cpu", "numpy", "to", "type"):
        for a in facts.attributes.get(name, ()):
            call = facts.scopes.parents.get(a)
            if not (isinstance(call, ast.Call) and call.func is a and _goes_there(facts, call)):
                continue
            for node in _with_names(facts, call):
                for up in facts.scopes.ancestors(node):
                    if isinstance(up, (ast.stmt, ast.Lambda)):
                        break
                    if isinstance(up, (ast.Compare, ast.BinOp, ast.Call)) and up not in found and up is not call:
                        found.add(up)
                        if _for_each_batch(facts, up):
                            yield up


def _for_each_batch(facts: Facts, node: ast.AST, depth: int = 0) -> bool:
    if facts.loops.hot(node) is not None or in_comprehension(facts, node) or in_loop(facts, node):
        return True
    f = next((up for up in facts.scopes.ancestors(node) if isinstance(up, ast.FunctionDef)), None)
    uses = facts.classes.uses_of(f) if f is not None and depth < CALLS else ()
    return any(isinstance(u, ast.Call) and _for_each_batch(facts, u, depth + 1) for u in uses)


def _with_names(facts: Facts, call: ast.Call) -> Iterator[ast.expr]:
    """A call and the reads of the names that get what is made of it."""
    yield call
    s = facts.scopes.statement_of(call)
    if not isinstance(s, ast.Assign):
        return
    for n in (n for t in s.targets for n in walk(t, ast.Name) if isinstance(n.ctx, ast.Store)):
        scope = facts.scopes.scope_of(n).lookup(n.id)
        for read in facts.scopes.reads(n.id, scope) if scope is not None else ():
            yield read
            yield from elements_of(facts, read)


def _left_there(facts: Facts, node: ast.expr) -> list[ast.expr]:
    """The parts of batches that nothing moves, among what meets there, beside something that was brought to the CPU."""
    found = [p for part in parts(node) for p in _operands(part)]
    return [p for p in found if is_left(facts, p)] if any(brought(facts, p) for p in found) else []


def _operands(node: ast.expr) -> list[ast.expr]:
    """Those of `(guess == 1) & (y == 1)`, where the comparisons meet."""
    if isinstance(node, ast.UnaryOp):
        return _operands(node.operand)
    return [p for part in parts(node) for p in _operands(part)] if isinstance(node, OPERATIONS) else [node]


def _left_together(facts: Facts, node: ast.expr) -> list[ast.expr]:
    """Those of a call that gets several tensors together, `update(outputs, targets)`: they may be several, too."""
    there = [p for p in parts(node) if brought(facts, p)] if isinstance(node, ast.Call) else []
    if not there or not all(_holds_several(facts, p) for p in there) or _goes_through(node):
        return []
    return [p for p in parts(node) if is_left(facts, p)]


def _goes_through(call: ast.expr) -> bool:
    """`zip(outputs, targets)`, where nothing meets."""
    return isinstance(call, ast.Call) and getattr(call.func, "id", "") in ("zip", "enumerate", "list", "tuple", "len")


def parts(node: ast.expr) -> list[ast.expr]:
    """What is compared, computed with, or handed on to a call."""
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    assert isinstance(node, ast.Call)
    of = [node.func.value] if isinstance(node.func, ast.Attribute) else []
    return [] if _goes_through(node) else [*of, *node.args, *(k.value for k in node.keywords)]


def _goes_there(facts: Facts, node: ast.expr) -> bool:
    """`x.cpu()`, `x.to("cpu")`, `x.numpy()`, `x.type(torch.FloatTensor)` of what was moved."""
    f = node.func if isinstance(node, ast.Call) else None
    if not (isinstance(node, ast.Call) and isinstance(f, ast.Attribute)):
        return False
    if f.attr == "to":
        return bool(node.args) and facts.devices.is_host(node.args[0])
    if f.attr == "type":
        return cast_on_cpu(facts, node) is not None and not is_left(facts, f.value)
    return f.attr in ("cpu", "numpy")


@once_a_file
def _any_goes_there(facts: Facts) -> bool:
    """Whether anything in the file may be brought to the CPU."""
    if not facts.attributes.keys().isdisjoint(("cpu", "numpy", "type")):
        return True
    return any(call.args and facts.devices.is_host(call.args[0]) for call in facts.calls_of("to"))


def brought(facts: Facts, node: ast.expr, depth: int = 0) -> bool:
    """Whether a value was brought to the CPU, or is made of one that was."""
    if depth > DEPTH or (depth == 0 and not _any_goes_there(facts)):
        return False
    if isinstance(node, ast.Call):
        if _goes_there(facts, node) or facts.devices.moved(node) is not None:
            return _goes_there(facts, node)
        if facts.names.resolve(node.func) is None and isinstance(node.func, ast.Attribute):
            if _follows(node):
                return False
            return brought(facts, node.func.value, depth + 1)
        # a function of torch takes no tensors of two devices; what the script calls may: `net(x, lengths.cpu())`
        given = node.args if facts.names.resolve(node.func) is not None else node.args[:1]
        return any(brought(facts, a, depth + 1) for a in given)
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        return brought(facts, node.value, depth + 1)
    if isinstance(node, ast.UnaryOp):
        return brought(facts, node.operand, depth + 1)
    if isinstance(node, ast.BinOp):
        return any(brought(facts, p, depth + 1) for p in (node.left, node.right))
    if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.DictComp)):
        return brought(facts, node.value if isinstance(node, ast.DictComp) else node.elt, depth + 1)
    if not isinstance(node, ast.Name):
        return False
    over = gone_through(facts, node)
    values = [over] if over is not None else [*_values(facts, node), *_given(facts, node)]
    return bool(values) and all(v is not None and brought(facts, v, depth + 1) for v in values)


def _follows(call: ast.Call) -> bool:
    """`d.to(x.device)`, `d.type_as(x)`: where another is."""
    of = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    where = call.args[0] if call.args else None
    return of == "type_as" or (of == "to" and isinstance(where, ast.Attribute) and where.attr == "device")


def _holds_several(facts: Facts, node: ast.expr) -> bool:
    """`[out.cpu() for out in outputs]`, and a name of it."""
    if isinstance(node, ast.Name) and gone_through(facts, node) is None:
        return any(
            v is not None and not isinstance(v, ast.Name) and _holds_several(facts, v) for v in _values(facts, node)
        )
    return isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.DictComp))


def is_left(facts: Facts, node: ast.expr, depth: int = 0) -> bool:
    """Whether a value is a part of a batch as its loader gave it, which nothing moved."""
    if depth > DEPTH:
        return False
    if isinstance(node, ast.Call):
        if draw_of(node) is not None:
            return facts.placed.by_runtime(node)
        f = node.func
        if facts.names.resolve(f) == VARIABLE and node.args:
            return is_left(facts, node.args[0], depth + 1)
        same = isinstance(f, ast.Attribute) and (f.attr in METHODS or cast_on_cpu(facts, node) is not None)
        return isinstance(f, ast.Attribute) and same and is_left(facts, f.value, depth + 1)
    if isinstance(node, ast.Subscript):
        return is_left(facts, node.value, depth + 1)
    if isinstance(node, ast.Attribute):
        part = node.attr in VIEWS or _is_moved_beside(facts, node)
        return part and is_left(facts, node.value, depth + 1)
    if not isinstance(node, ast.Name) or is_of_numbers(facts, node):
        return False
    over = gone_through(facts, node)
    if over is not None and isinstance(over, ast.Name) and facts.loops.hot(node):
        return is_left(facts, over, depth + 1)
    values = _values(facts, node)
    if not values and (given := _given(facts, node)):  # count(net, batch)
        return all(v is not None and is_left(facts, v, depth + 1) for v in given)
    drawn = facts.placed.by_runtime(node)
    return bool(values) and all(drawn if v is None else is_left(facts, v, depth + 1) for v in values)


def _is_moved_beside(facts: Facts, node: ast.Attribute) -> bool:
    """`batch.label`, where `batch.label.to(device)` shows elsewhere that it is a tensor."""
    same = (a for a in facts.attributes.get(node.attr, ()) if a is not node and spelled(a) == spelled(node))
    calls = (facts.scopes.parents.get(up) for a in same if isinstance(up := facts.scopes.parents.get(a), ast.Attribute))
    return any(isinstance(c, ast.Call) and facts.devices.moved(c) is not None for c in calls)


def _values(facts: Facts, node: ast.Name) -> list[ast.expr | None]:
    """What a name is given where it is read: None for what is drawn of batches; empty where that is not plain."""
    if facts.scopes.generator_of(node) is not None:
        return [None] if draws_part(facts, node) else []
    scope = facts.scopes.scope_of(node).lookup(node.id)
    if scope is None or node.id in scope.params:
        return []
    found: list[ast.expr | None] = []
    for store in last_of(facts, node, facts.placed.reaching(node, scope)):
        child, up = store, facts.scopes.parents.get(store)
        while isinstance(up, (ast.Tuple, ast.List)):
            child, up = up, facts.scopes.parents.get(up)
        if isinstance(up, ast.For) and up.target is child and (up in facts.loops.hot_loops or moves_batches(facts, up)):
            found.append(None)
        elif isinstance(up, ast.Assign):
            found.append(_part(up.value, child, store))
        else:
            return []
    return found


def _given(facts: Facts, node: ast.Name) -> list[ast.expr | None]:
    """What the calls of the function around give a parameter that nothing binds anew."""
    scope = facts.scopes.scope_of(node).lookup(node.id)
    f = scope.node if scope is not None else None
    if scope is None or not isinstance(f, ast.FunctionDef) or node.id not in scope.params or node.id in scope.stores:
        return []
    bound = facts.classes.holder(f) is not None
    return [argument(u, f, node.id, bound) if isinstance(u, ast.Call) else None for u in facts.classes.uses_of(f)]


def _part(value: ast.expr, target: ast.AST, store: ast.AST) -> ast.expr:
    """Of `a, b = x, y` the one that a name gets."""
    if isinstance(value, ast.Tuple) and isinstance(target, ast.Tuple) and len(value.elts) == len(target.elts):
        return next((v for v, t in zip(value.elts, target.elts, strict=True) if t is store), value)
    return value
