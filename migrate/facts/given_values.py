"""What a name, a parameter or an option may be in a world: the expressions that give it its value where it runs."""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .arguments import argument, argument_at, default_of
from .environment import is_environment
from .nodes import walk
from .options import Option
from .options import options as options_of
from .process_names import FLAG_NAME, OF_A_NODE, RANK_NAME, WORLD_NAME, D
from .world import DEAD, PLAIN, Known, World

if TYPE_CHECKING:
    from .worlds import Worlds

CONVERSIONS = {"int", "float", "str", "abs", "max", "min"}
COUNTS = {"input", "len", "next", "ord", "sum", "round", "sorted"}


class GivenValues:
    def __init__(self, worlds: Worlds) -> None:
        self.worlds, self.facts = worlds, worlds.facts

    def may_be_a_process(self, name: str, scope: Any, world: World) -> bool:
        """Whether nothing shows that a name, as `rank`, means another thing than it says."""
        parents = self.facts.scopes.parents
        made = [parents.get(s) for s in scope.stores.get(name, ())]
        made = [parents.get(m) if isinstance(m, ast.Tuple) else m for m in made]
        plain = [m for m in made if isinstance(m, ast.Assign)]
        if len(plain) < len(made):
            return False  # a loop's variable, an import, a definition
        if plain and not any(self.may_be_asked(m.value) for m in plain):
            return False
        if name in scope.params:
            if isinstance(scope.node, ast.Lambda):
                return False
            given = self._given(scope, name, world) or ()
            if any(isinstance(v, ast.expr) and not self.may_be_asked(v) for v in given):
                return False
            if not given and self._of_a_layer(scope.node):
                return False
        return not self.sizes_something(name, scope)

    def _of_a_layer(self, f: ast.AST) -> bool:
        """`def __init__(self, rank)` of a module that is told of no world: the rank of a matrix."""
        holder = self.facts.classes.holder(f) if isinstance(f, ast.FunctionDef) else None
        if holder is None or holder not in self.facts.classes.modules:
            return False
        return not any(WORLD_NAME.match(a.arg) for a in walk(f, ast.arg))

    def may_be_asked(self, value: ast.expr, depth: int = 0) -> bool:
        """Not for what shows another meaning: `rank = torch.linalg.matrix_rank(a)`, `rank = i + 1`, `rank = len(a)`."""
        if isinstance(value, ast.Constant):
            return value.value in (None, -1, 0, 1, True, False)
        if isinstance(value, ast.BinOp):
            parts = [p for p in (value.left, value.right) if not isinstance(p, ast.Constant)]
            names = (getattr(n, "attr", getattr(n, "id", "")) for n in walk(value))
            return any(map(RANK_NAME.match, names)) or all(self.may_be_asked(p, depth) for p in parts)
        if isinstance(value, ast.Subscript):  # ranks[j]
            return isinstance(value.slice, ast.Constant) or is_environment(self.facts, value.value)
        if isinstance(value, ast.Name):
            return not self._counts(value) and self._is_given_such(value, depth)
        if isinstance(value, ast.Call):
            return self._may_be_called(value, depth)
        return True

    def _may_be_called(self, call: ast.Call, depth: int) -> bool:
        if not isinstance(call.func, ast.Name):
            full = self.facts.names.resolve(call.func) or ""
            return full.startswith((D, "os.", "torch.cuda."))
        if self.facts.scopes.scope_of(call).lookup(call.func.id) is None:
            if call.func.id in CONVERSIONS:
                return any(self.may_be_asked(a, depth) for a in call.args)
            return call.func.id not in COUNTS
        return True

    def _is_given_such(self, name: ast.Name, depth: int) -> bool:
        """Whether none of the values that plain assignments give a name shows another meaning."""
        home = self.facts.scopes.scope_of(name).lookup(name.id)
        made = (self.facts.devices.assigned(name.id, home) if home is not None and depth < 4 else None) or []
        return all(isinstance(v, ast.Constant) or self.may_be_asked(v, depth + 1) for v in made)

    def _counts(self, value: ast.expr) -> bool:
        """The variable of a loop: what it counts is not this process."""
        if not isinstance(value, ast.Name):
            return False
        if self.facts.scopes.generator_of(value) is not None:
            return True
        home = self.facts.scopes.scope_of(value).lookup(value.id)
        made = home.stores.get(value.id, ()) if home is not None else ()
        ups = [self.facts.scopes.parents.get(s) for s in made]
        ups = [self.facts.scopes.parents.get(u) if isinstance(u, ast.Tuple) else u for u in ups]
        return bool(ups) and all(isinstance(u, ast.For) for u in ups)

    def sizes_something(self, name: str, scope: Any) -> bool:
        """A name that is given to layers or tensors as a size: the rank of a matrix."""
        for read in self.facts.scopes.reads(name, scope):
            up = self.facts.scopes.parents.get(read)
            if self._divides(read):
                return True
            if isinstance(up, ast.Call) and read in up.args:
                full = self.facts.names.resolve(up.func) or ""
                if full.startswith("torch.nn.") and "parallel" not in full.lower():
                    return True
                if full.rpartition(".")[2] in ("zeros", "ones", "randn", "rand", "empty", "eye", "full"):
                    return True
        return False

    def _divides(self, read: ast.Name) -> bool:
        """`1 / rank`, `1 / (rank + 1)`: a place in a list."""
        up, node = self.facts.scopes.parents.get(read), read
        while isinstance(up, ast.BinOp) and isinstance(up.op, ast.Add):
            up, node = self.facts.scopes.parents.get(up), up  # type: ignore[assignment]
        return isinstance(up, ast.BinOp) and isinstance(up.op, ast.Div) and up.right is node

    def of_name(self, name: str, scope: Any, world: World) -> list[ast.expr | Known] | None:
        values: list[ast.expr | Known] = []
        for store in scope.stores.get(name, ()):
            parent = self.facts.scopes.parents.get(store)
            plain = isinstance(parent, ast.AnnAssign) or (isinstance(parent, ast.Assign) and store in parent.targets)
            if scope is self.facts.scopes.module and store.lineno < self.facts.named_by_text:
                return None
            if isinstance(parent, ast.Tuple) and (parts := self._unpacked(parent, store, world)) is not None:
                values += parts
                continue
            if not plain or parent.value is None:  # type: ignore[union-attr]
                return None
            if self.worlds.reached.live(parent, world):  # type: ignore[arg-type]
                values.append(parent.value)  # type: ignore[union-attr]
            else:
                values.append(Known(DEAD, True))
        if name in scope.params:
            given = self._given(scope, name, world)
            if given is None:
                return None
            values += given
        return values

    def _unpacked(self, target: ast.Tuple, store: ast.AST, world: World) -> list[ast.expr | Known] | None:
        """What `rank, world = setup()` gives one of its names, where a function of the file gives a tuple."""
        s, devices = self.facts.scopes.parents.get(target), self.facts.devices
        if not isinstance(s, ast.Assign) or len(s.targets) != 1:
            return None
        parts = devices.elements(target, store, s.value)
        if parts is None or not self.worlds.reached.live(s, world):
            return None if parts is None else [Known(DEAD, True)]
        values: list[ast.expr | Known] = []
        for part in parts:
            given = next((u for u in self.facts.scopes.ancestors(part) if isinstance(u, ast.stmt)), s)
            values.append(part if given is s or self.worlds.reached.live(given, world) else Known(DEAD, True))
        return values

    def _given(self, scope: Any, name: str, world: World) -> list[ast.expr | Known] | None:
        """What callers pass for a parameter where they run; a spawned function is given its rank first."""
        f = scope.node
        if not isinstance(f, ast.FunctionDef):
            return None
        default = default_of(f, name)
        values: list[ast.expr | Known] = []
        for use in self._uses(f):
            if not isinstance(use, ast.Call):
                spawn = self.facts.scopes.parents.get(use)
                spawn = self.facts.scopes.parents.get(spawn) if isinstance(spawn, ast.keyword) else spawn
                if not (isinstance(spawn, ast.Call) and self._spawns(spawn)):
                    return None
                passed = self._spawned_argument(spawn, f, name, world)
            elif f.name == "__init__":
                passed = _of_instance(use, f, name) or default
            else:
                passed = argument(use, f, name) or default
            if passed is None:
                return None
            values.append(passed if self.worlds.reached.live(use, world) else Known(DEAD, True))
        return values

    def unsaid(self, scope: Any, name: str) -> bool:
        """Whether a parameter is None by default, and what its callers give it does not show, or shows no more."""
        f = scope.node
        default = default_of(f, name) if isinstance(f, ast.FunctionDef) else None
        if not (isinstance(default, ast.Constant) and default.value is None):
            return False
        given = self._given(scope, name, PLAIN)
        return not given or any(isinstance(v, ast.Constant) and v.value is None for v in given)

    def _uses(self, f: ast.FunctionDef) -> list[ast.AST]:
        holder = self.facts.scopes.parents.get(f)
        if f.name == "__init__" and isinstance(holder, ast.ClassDef):  # what instances are made with
            home = self.facts.scopes.scope_of(holder)
            reads = list(self.facts.scopes.reads(holder.name, home))
            return [
                up if isinstance(up, ast.Call) and up.func is r else r
                for r in reads
                for up in [self.facts.scopes.parents.get(r)]
            ]
        return self.facts.devices.uses_of_function(f)

    def _spawns(self, call: ast.Call) -> bool:
        return self.facts.names.resolve(call.func) == "torch.multiprocessing.spawn"

    def _spawned_argument(self, spawn: ast.Call, f: ast.FunctionDef, name: str, world: World) -> Any:
        parameters = [a.arg for a in (*f.args.posonlyargs, *f.args.args)]
        if name not in parameters:
            return None
        at = parameters.index(name)
        if at == 0:
            return Known(world.rank, True)
        given = argument_at(spawn, "args", 1)
        if isinstance(given, (ast.Tuple, ast.List)) and at - 1 < len(given.elts):
            passed, n = given.elts[at - 1], argument_at(spawn, "nprocs", 2)
            counts = n is not None and not isinstance(n, ast.Constant) and ast.unparse(n) == ast.unparse(passed)
            return Known(world.size, True) if counts else passed
        return default_of(f, name)

    @cached_property
    def stored(self) -> dict[str, list[tuple[ast.Attribute, ast.Assign | None]]]:
        found: dict[str, list[tuple[ast.Attribute, ast.Assign | None]]] = {}
        for a in self.facts.walk(ast.Attribute):
            if not isinstance(a.ctx, ast.Load):
                up = self.facts.scopes.parents.get(a)
                found.setdefault(a.attr, []).append((a, up if isinstance(up, ast.Assign) else None))
        return found

    @cached_property
    def options(self) -> dict[str, Option]:
        return {o.name: o for o in options_of(self.facts)}

    def of_attribute(self, name: str, world: World) -> list[ast.expr | Known] | None:
        values: list[ast.expr | Known] = []
        for _, s in self.stored.get(name, ()):
            if s is None or isinstance(s.targets[0], ast.Tuple):
                return None
            values.append(s.value if self.worlds.reached.live(s, world) else Known(DEAD, True))
        option = self.options.get(name)
        if option is None:
            return values
        if RANK_NAME.match(name):
            values += filter(None, [self._of_option(option, world)])
        elif FLAG_NAME.match(name) and option.is_flag:
            values.append(Known(world.launched, True))
        elif not values:
            return None  # the user's own
        else:
            values.append(by_name(name, world) or Known(None, False))
            if not WORLD_NAME.match(name):
                return None
        return values

    def in_its_own_assignment(self, node: ast.Attribute) -> bool:
        """`args.rank = int(os.environ.get("RANK", args.rank))`, where nothing else assigns it."""
        stores = self.stored.get(node.attr, ())
        if len(stores) != 1 or stores[0][1] is None or not RANK_NAME.match(node.attr):
            return False
        return isinstance(node.ctx, ast.Load) and stores[0][1] in self.facts.scopes.ancestors(node)

    def before_it(self, name: str, world: World) -> Known | None:
        option = self.options.get(name)
        return None if option is None else self._of_option(option, world)

    def _of_option(self, option: Option, world: World) -> Known | None:
        """What a launcher gives the option of a rank, or its default."""
        if world.launched:
            return rank_by_name(option.name, world)
        default = self.worlds.value(option.given, world) if option.given is not None else Known(0, False)
        return None if default is None else Known(default.value, True)


def rank_by_name(name: str, world: World) -> Known:
    """Which rank a name speaks of: that of all processes, or of those of one machine."""
    return Known(world.on_node if OF_A_NODE.search(name) else world.rank, True)


def by_name(name: str, world: World) -> Known | None:
    """What the name says, where no value shows."""
    if RANK_NAME.match(name):
        return rank_by_name(name, world)
    if WORLD_NAME.match(name):
        return Known(world.size, True)
    return None


def _of_instance(call: ast.Call, init: ast.FunctionDef, name: str) -> ast.expr | None:
    parameters = [a.arg for a in (*init.args.posonlyargs, *init.args.args)][1:]
    if name in parameters:
        at = parameters.index(name)
        if at < len(call.args) and not any(isinstance(a, ast.Starred) for a in call.args[: at + 1]):
            return call.args[at]
    return next((k.value for k in call.keywords if k.arg == name), None)
