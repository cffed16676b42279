"""What an expression about processes is: in a plain script that nobody launched, and on each rank of a launched one.

Ranks, worlds and questions about the group are followed through names, options, parameters and functions of the file.
Where all ranks say the same, the plain value is the answer; where rank 0 says one thing and the others another, the
expression asks for the process that does what only one may do.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeGuard

from .arguments import default_of
from .constants_elsewhere import keys_of
from .environment import ASKING, is_environment
from .given_values import GivenValues, by_name, rank_by_name
from .nodes import children, walk
from .process_names import CARDS, LAUNCHED, RANK_NAME, RANK_VARIABLES, RANKS, WORLD_NAME, WORLD_VARIABLES, D
from .process_names import WORLDS as WORLD_CALLS
from .reached import Reached
from .world import DEAD, NEXT_NODE, PEERS, PLAIN, Known, World

if TYPE_CHECKING:
    from .script import Facts

BUILTINS: dict[str, Any] = {"int": int, "bool": bool, "float": float, "str": str, "abs": abs}
OPERATORS: dict[type, Any] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not, ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b, ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv, ast.Div: operator.truediv, ast.Mod: operator.mod,
}  # fmt: skip
# what is looked into: all else is no value that processes have to do with
WITH_VALUES = {
    ast.Constant, ast.Tuple, ast.List, ast.Set, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.BinOp, ast.IfExp, ast.Call,
    ast.Subscript, ast.Name, ast.Attribute,
}  # fmt: skip


class Worlds:
    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._memo: dict[tuple[ast.AST, World], Known | None] = {}
        self.reached = Reached(self)
        self.given = GivenValues(self)
        self._open: set[tuple[Any, ...]] = set()

    # -- what is asked ----------------------------------------------------------------------------------------

    def plain(self, node: ast.expr) -> Known | None:
        """The value in a plain script, where it follows from questions about processes and is one for all ranks."""
        known = self.value(node, PLAIN)
        if known is None or not known.asked or self.by_rank(node) is not None:
            return None
        peers = [self.value(node, w) for w in PEERS]
        if peers[0] is not None and peers[0].value == known.value and any(p is None for p in peers[1:]):
            return None  # what other ranks do is another matter
        return known

    def by_rank(self, test: ast.expr) -> bool | None:
        """True for `rank == 0`, False for `rank != 0`: what rank 0 does, or all others; None for all else."""
        values: list[bool] = []
        for world in (PLAIN, *PEERS):
            known = self.value(test, world)
            if known is None or (world is PEERS[0] and not known.asked):
                return None
            values.append(bool(known.value))
        plain, zero, *others = values
        return zero if plain == zero and all(o is not zero for o in others) else None

    def once_a_node(self, test: ast.expr) -> bool:
        """Whether `local_rank == 0`, or its opposite, means one process of every machine, and not rank 0 alone."""
        zero = self.by_rank(test)
        known = self.value(test, NEXT_NODE) if zero is not None else None
        return known is not None and bool(known.value) is zero

    # -- values -----------------------------------------------------------------------------------------------

    def value(self, node: ast.expr, world: World) -> Known | None:
        if node.__class__ not in WITH_VALUES:
            return None
        key = (node, world)
        if key in self._memo:
            return self._memo[key]
        if key in self._open:
            return None
        self._open.add(key)
        try:
            known = self._value(node, world)
        except (TypeError, ValueError, ZeroDivisionError, OverflowError):
            known = None
        finally:
            self._open.discard(key)
        self._memo[key] = known
        return known

    def _value(self, node: ast.expr, world: World) -> Known | None:
        if isinstance(node, ast.Constant):
            return Known(node.value, False)
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            parts = [self.value(e, world) for e in node.elts]
            if any(p is None for p in parts):
                return None
            return Known(tuple(p.value for p in parts), any(p.asked for p in parts))  # type: ignore[union-attr]
        if isinstance(node, ast.UnaryOp):
            return self._unary(node, world)
        if isinstance(node, ast.BoolOp):
            return self._bool(node, world)
        if isinstance(node, ast.Compare):
            return self._compare(node, world)
        if isinstance(node, ast.BinOp):
            left, right = self.value(node.left, world), self.value(node.right, world)
            if isinstance(node.op, ast.Mod) and right is not None and right.asked and right.value == 1:
                return Known(0, True) if isinstance(node.left, (ast.Name, ast.Attribute)) else left  # step % world_size
            if left is None or right is None or type(node.op) not in OPERATORS:
                return None
            return Known(OPERATORS[type(node.op)](left.value, right.value), left.asked or right.asked)
        if isinstance(node, ast.IfExp):
            test = self.value(node.test, world)
            chosen = None if test is None else self.value(node.body if test.value else node.orelse, world)
            return None if chosen is None or test is None else Known(chosen.value, chosen.asked or test.asked)
        if isinstance(node, ast.Call):
            return self._call(node, world)
        if isinstance(node, ast.Subscript):
            return self._environment(node, world)
        if isinstance(node, ast.Name):
            return self._name(node, world)
        return self._attribute(node, world) if isinstance(node, ast.Attribute) else None

    def _unary(self, node: ast.UnaryOp, world: World) -> Known | None:
        inner = self.value(node.operand, world)
        if inner is None or isinstance(node.op, ast.Invert):
            return None
        if isinstance(node.op, ast.Not):
            return Known(not inner.value, inner.asked)
        return Known(-inner.value if isinstance(node.op, ast.USub) else +inner.value, inner.asked)

    def _bool(self, node: ast.BoolOp, world: World) -> Known | None:
        """One part may decide what others are never asked."""
        stops = isinstance(node.op, ast.Or)
        parts = [self.value(v, world) for v in node.values]
        deciding = [p for p in parts if p is not None and bool(p.value) is stops]
        if deciding:
            return Known(deciding[0].value, any(p.asked for p in deciding))
        if any(p is None for p in parts):
            return None
        return Known(parts[-1].value, any(p.asked for p in parts))  # type: ignore[union-attr]

    def _compare(self, node: ast.Compare, world: World) -> Known | None:
        if len(node.ops) != 1:
            return None
        if isinstance(node.ops[0], (ast.In, ast.NotIn)) and self._is_environment(node.comparators[0]):
            key = node.left.value if isinstance(node.left, ast.Constant) else None
            if key not in RANK_VARIABLES | WORLD_VARIABLES:
                return None
            return Known(world.launched is isinstance(node.ops[0], ast.In), True)
        left, right = self.value(node.left, world), self.value(node.comparators[0], world)
        if left is None or right is None or self._may_be_none(node, world) or self._asks_for_cards(node, world):
            return None
        if left.asked and (left.value, right.value) == (-1, 0) and isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
            left = Known(0, True)  # nobody launched it: the one process does what rank 0 does
        return Known(OPERATORS[type(node.ops[0])](left.value, right.value), left.asked or right.asked)

    def _may_be_none(self, node: ast.Compare, world: World) -> bool:
        """`rank is None` of a parameter that is None where a call does not say, and of what no launcher may have set:
        the name tells nothing of that.
        """
        left, right = node.left, node.comparators[0]
        if not (isinstance(right, ast.Constant) and right.value is None):
            return False
        if isinstance(left, ast.Attribute) and not world.launched and left.attr in self.given.stored:
            option = self.given.options.get(left.attr)  # which the script may leave as it is
            return option is not None and option.default is None
        if not isinstance(left, ast.Name):
            return False
        scope = self.facts.scopes.scope_of(left).lookup(left.id)
        if scope is None:
            return False
        if left.id in scope.params and self.given.unsaid(scope, left.id):
            return True
        made = () if world.launched else self.facts.devices.assigned(left.id, scope) or ()
        return any(_gives_none(v) and self.value(v, world) is None for v in made)

    def _asks_for_cards(self, node: ast.Compare, world: World) -> bool:
        """`n_gpus > 0`, of a number that is 0 where nothing else is said: whether there is a card, and no process."""
        left, right = node.left, node.comparators[0]
        asks, than = OPERATORS[type(node.ops[0])], getattr(right, "value", None)
        if world.launched or not isinstance(than, int) or asks(0, than) is asks(1, than):
            return False
        if self.counts_cards(left):
            return True
        name = _last(left)
        if "gpu" not in name.lower() or not WORLD_NAME.match(name):
            return False
        option = self.given.options.get(name) if isinstance(left, ast.Attribute) else None
        scope = self.facts.scopes.scope_of(left).lookup(name) if isinstance(left, ast.Name) else None
        f = scope.node if scope is not None else None
        default = default_of(f, name) if isinstance(f, ast.FunctionDef) else None
        none = option.default if option is not None else default.value if isinstance(default, ast.Constant) else None
        return none == 0

    def counts_cards(self, node: ast.expr) -> bool:
        """`args.n_gpu` of `args.n_gpu = torch.cuda.device_count()`: none are there where the script runs on the CPU."""
        scope = self.facts.scopes.scope_of(node).lookup(node.id) if isinstance(node, ast.Name) else None
        values: list[ast.expr] = []
        if isinstance(node, ast.Name) and scope is not None:
            values = self.facts.devices.assigned(node.id, scope) or []
        elif isinstance(node, ast.Attribute):
            values = self.facts.devices.attribute_values.get(node.attr, [])
        return any(isinstance(v, ast.Call) and self.facts.names.resolve(v.func) in CARDS for v in values)

    def _call(self, call: ast.Call, world: World) -> Known | None:
        full = self.facts.names.resolve(call.func)
        if full in RANKS:
            return rank_by_name(full, world)
        if full in WORLD_CALLS:
            return Known(world.size, True)
        if full in LAUNCHED:
            return Known(world.launched, True)
        if full == D + "is_available" and world.launched:
            return Known(True, True)
        if full in CARDS:
            return Known(world.size, True) if self._counts_processes(call) else None
        if full in ASKING:
            return self._environment(call, world)
        if self.counts_started(call):
            return Known(world.size, True)
        if isinstance(call.func, ast.Name) and full is None:
            if call.func.id in BUILTINS and len(call.args) == 1 and not call.keywords:
                inner = self.value(call.args[0], world)
                return None if inner is None else Known(BUILTINS[call.func.id](inner.value), inner.asked)
            f = self._function(call.func)
            if f is not None:
                return self.returned(f, world)
        return self._elsewhere(call, full, world)

    def _elsewhere(self, call: ast.Call, full: str | None, world: World) -> Known | None:
        """`utils.get_rank()`, of another file of the project."""
        last = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        known = self.facts.elsewhere.get(f"{last}()")
        home = isinstance(call.func, ast.Name) and self._function(call.func) is not None
        if known is None or call.args or call.keywords or home or (full or "").startswith("torch."):
            return None
        if world not in known:
            return None
        return Known(known[world], True)

    def _counts_processes(self, call: ast.Call) -> bool:
        """`ngpus_per_node = torch.cuda.device_count()` of a script that starts a process for each."""
        up = self.facts.scopes.parents.get(call)
        if isinstance(up, ast.keyword):
            return up.arg == "nprocs"
        return isinstance(up, ast.Assign) and any(WORLD_NAME.match(_last(t)) for t in up.targets)

    def counts_started(self, node: ast.expr) -> bool:
        """`len(args.gpus.split(","))` of a script that starts so many processes, or connects them."""
        return _is_length(node) and ast.unparse(node) in self._lengths

    @cached_property
    def _lengths(self) -> set[str]:
        given = [k for c in self.facts.walk(ast.Call) for k in c.keywords if k.arg in ("nprocs", "world_size")]
        return {ast.unparse(k.value) for k in given if _is_length(k.value)}

    # -- the environment --------------------------------------------------------------------------------------

    def _is_environment(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "keys":
            node = node.func.value
        return is_environment(self.facts, node)

    def _environment(self, node: ast.Subscript | ast.Call, world: World) -> Known | None:
        key, default = None, None
        if isinstance(node, ast.Subscript):
            key = node.slice if self._is_environment(node.value) else None
        elif node.args:
            key = node.args[0]
            default = self.value(node.args[1], world) if len(node.args) > 1 else Known(None, False)
            if default is None and not world.launched:
                return None
        name = key.value if isinstance(key, ast.Constant) else None
        if name not in RANK_VARIABLES | WORLD_VARIABLES:
            return None
        if not world.launched and default is not None:
            return Known(default.value, True)  # what the script takes where no launcher has set it
        return Known(str(rank_by_name(name, world).value if name in RANK_VARIABLES else world.size), True)

    # -- names ------------------------------------------------------------------------------------------------

    def _name(self, node: ast.Name, world: World) -> Known | None:
        if self.facts.scopes.generator_of(node) is not None:
            return None
        scope = self.facts.scopes.scope_of(node).lookup(node.id)
        there = self._constant_elsewhere(node, world)
        if there is not None:
            return there
        if scope is None:
            return by_name(node.id, world)
        key = (scope, node.id, world)
        if key in self._open:
            return None
        self._open.add(key)
        try:
            known = self._all_agree(self.given.of_name(node.id, scope, world), world)
        finally:
            self._open.discard(key)
        if known is not None:
            return known
        return by_name(node.id, world) if self.given.may_be_a_process(node.id, scope, world) else None

    def _constant_elsewhere(self, node: ast.Name | ast.Attribute, world: World) -> Known | None:
        """`settings.WORLD_SIZE`, a name at the top of another file of the project."""
        keys = keys_of(self.facts, node) if self.facts.elsewhere else ()
        known = next((k for key in keys if (k := self.facts.elsewhere.get(key)) is not None), {})
        return Known(known[world], True) if world in known else None

    def _all_agree(self, values: list[ast.expr | Known] | None, world: World) -> Known | None:
        if not values:
            return None
        known = [v if isinstance(v, Known) else self.value(v, world) for v in values]
        if any(k is None for k in known):
            return None
        live = [k for k in known if k.value is not DEAD]  # type: ignore[union-attr]
        if not live or any(k.value != live[0].value for k in live):  # type: ignore[union-attr]
            return None
        return Known(live[0].value, any(k.asked for k in known))  # type: ignore[union-attr]

    # -- options and attributes -------------------------------------------------------------------------------

    def _attribute(self, node: ast.Attribute, world: World) -> Known | None:
        there = self._constant_elsewhere(node, world)
        if there is not None:
            return there
        holder = node.value.attr if _is_own(node.value) else getattr(node.value, "id", "")  # self.args.gpus
        if self.facts.names.resolve(node) is not None or not self.facts.devices.options.has(holder):
            return None
        if self.given.in_its_own_assignment(node):
            return self.given.before_it(node.attr, world)
        key = (node.attr, world)
        if key in self._open:
            return None
        self._open.add(key)
        try:
            known = self._all_agree(self.given.of_attribute(node.attr, world), world)
        finally:
            self._open.discard(key)
        if known is not None:
            return known
        option = self.given.options.get(node.attr)
        if option is not None and not (option.default in (None, 0, 1, -1) or WORLD_NAME.match(node.attr)):
            return None
        elsewhere = self.facts.elsewhere.get(node.attr)
        if node.attr not in self.given.stored and elsewhere is not None and world in elsewhere:
            return Known(elsewhere[world], True)
        out_of_sight = option is None and node.attr not in self.given.stored
        if out_of_sight and not world.launched and node.attr in self._of_none:
            return Known(-1, True)
        return by_name(node.attr, world)

    @cached_property
    def _of_none(self) -> set[str]:
        """Options that are asked for the rank of no process, which they have without a launcher: `args.rank != -1`."""
        asked = [(c.left, c.comparators[0]) for c in self.facts.walk(ast.Compare) if len(c.comparators) == 1]
        sides = [(a.attr, b) for a, b in asked if isinstance(a, ast.Attribute) and RANK_NAME.match(a.attr)]
        return {name for name, b in sides if any(ast.unparse(n) == "-1" for n in (b, *getattr(b, "elts", ())))}

    # -- functions --------------------------------------------------------------------------------------------

    def _function(self, name: ast.Name) -> ast.FunctionDef | None:
        home = self.facts.scopes.scope_of(name).lookup(name.id)
        stores = home.stores.get(name.id, []) if home is not None else []
        f = stores[0] if len(stores) == 1 else None
        return f if isinstance(f, ast.FunctionDef) and not f.decorator_list else None

    def returned(self, f: ast.FunctionDef, world: World) -> Known | None:
        key = (f, world)
        if key in self._open or any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in walk(f)):
            return None
        self._open.add(key)
        try:
            values: list[ast.expr | Known] = []
            for n in own_nodes(f):
                if isinstance(n, ast.Return) and n.value is not None:
                    values.append(n.value if self.reached.live(n, world) else Known(DEAD, True))
                elif isinstance(n, ast.Return):
                    return None
            return self._all_agree(values, world) if self.reached.block_exits(f.body, world) else None
        finally:
            self._open.discard(key)


def _gives_none(value: ast.expr) -> bool:
    """Whether a value that does not show may be None: `os.environ.get(key)`, and not `int(os.environ[key])`."""
    call = value.func if isinstance(value, ast.Call) else None
    return not isinstance(value, ast.BinOp) and not (isinstance(call, ast.Name) and call.id in BUILTINS)


def _is_length(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len"


def _is_own(node: ast.expr) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def own_nodes(f: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, not those of functions and classes in it."""
    for child in children(f):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            yield child
            yield from own_nodes(child)


def _last(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
