"""Which values the runtime moves to their device by itself: modules, batches, and what is computed from them.

Where a value's origin does not show, it is not taken for one of these: a call that moves it then stays, and is right.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .arguments import default_of
from .asked_beside import is_moved_beside
from .back_from_cpu import MOVES, goes_to_cpu, is_back_from_cpu, is_module_method, is_moved
from .by_hand import is_cut_by_hand
from .drawn import distributions, makers
from .given_by_callers import given_by_callers
from .given_from_outside import is_given_from_outside
from .given_to_objects import is_made_for_object
from .given_to_training import is_given_to_training, is_got_above
from .gone_through import drawn_from
from .held import gave_held, given_back, gives_held, gives_of_sizes, is_data, is_held, is_read
from .kept_copies import is_kept_copy
from .lent import is_lent, is_weighed_by_lent
from .loops import LOADER_NAME, LOOPS, MODEL_NAME, unwrapped
from .matched import matched
from .moved_once import is_moved_once
from .nodes import walk
from .passes_above import is_of_pass_above
from .placed_loops import gives_placed, is_of_tensors, may_be_any
from .plain_lists import in_plain_list
from .registered import is_registered
from .scopes import Scope
from .sizes import is_size
from .taken_once import is_taken_once
from .templates import is_template
from .tensor_methods import root
from .tested_beyond import is_tested_beyond
from .unplaced import made_in_training, meets_unplaced
from .whole_data import is_whole_data
from .works_above import works_above
from .works_apart import works_apart

if TYPE_CHECKING:
    from .script import Facts

# what these return is a tensor that nobody else will move
MAKES_TENSORS = {
    "torch." + n
    for n in (
        "tensor as_tensor from_numpy zeros ones full empty rand randn randint randperm arange linspace eye logspace "
        "Tensor FloatTensor DoubleTensor HalfTensor IntTensor LongTensor ByteTensor BoolTensor normal bernoulli load"
    ).split()
}
LIKE = {"torch." + n for n in "zeros_like ones_like rand_like randn_like full_like empty_like randint_like".split()}
# what is put together of modules alone
PARALLEL = {"torch.nn." + n for n in ("DataParallel", "parallel.DataParallel", "parallel.DistributedDataParallel")}
OF_MODULES = {"torch.nn.Sequential", "torch.nn.modules.Sequential"} | PARALLEL
OF_LIBRARIES = ("torch.", "torchvision.", "timm.", "transformers.", "numpy.")
READS = ("torch.load", "pickle.load", "joblib.load", "dill.load")
# methods that are given sizes, or dimensions: where those are says nothing of the tensor
OF_NUMBERS = set(
    "view reshape expand repeat permute transpose swapaxes narrow unflatten flatten squeeze unsqueeze split chunk "
    "unfold tile roll flip unbind sum mean std var prod cumsum cumprod argmax argmin argsort sort topk softmax "
    "log_softmax type".split()
)
MODULE_NAME = ("criterion", "loss_fn", "loss_func", "criterions")


NEVER = 1 << 30


class Placed:
    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._asked: dict[tuple[int, str], int] = {}  # names whose values are being found, in their order
        self._cut = NEVER  # the outermost of them that was asked for meanwhile
        self._known: dict[tuple[ast.expr, int, bool], bool] = {}
        self._followed: set[ast.AST] = set()  # methods whose values are being found
        self._giving: dict[ast.AST, bool] = {}
        self._given_made: dict[tuple[ast.AST, str], bool] = {}
        self._by_apex = {ast.unparse(c.args[0]) for c in facts.walk(ast.Call) if c.args and self._is_apex(c)}
        self._streams = [w for w in facts.walk(ast.With) if any(self._is_stream(i.context_expr) for i in w.items)]

    def by_runtime(self, node: ast.expr) -> bool:
        """Whether the runtime moves this value itself."""
        key = (node, len(self.facts.buffers), self.facts.lifting)
        if key not in self._known:
            before, self._cut = self._cut, NEVER
            found, cut = self._shows(node), self._cut
            self._cut = min(before, cut)
            if cut < len(self._asked):
                return found  # which may be another when it is asked by itself
            self._known[key] = found
        return self._known[key]

    def _shows(self, node: ast.expr) -> bool:
        if self.is_registered(node) or self._is_unplaced(node):
            return True
        if not (self.facts.lifting or self.facts.handle) and is_kept_copy(self.facts, node):
            return False  # a lifted script's Module takes it along; one of another file it does not see
        if self.facts.tensors.made(node) or is_back_from_cpu(self.facts, node) or self.on_a_stream(node):
            return False
        if (self._by_apex and self.is_for_apex(node)) or is_size(node) or is_moved_beside(self.facts, node):
            return False
        if made_in_training(self.facts, node) or self._is_optimized(node) or is_template(self.facts, node):
            return False
        if is_tested_beyond(self.facts, node) or is_given_to_training(self.facts, node):
            return False
        if is_of_pass_above(self.facts, node) or works_above(self.facts, node) or works_apart(self.facts, node):
            return False
        if is_moved_once(self.facts, node) or is_lent(self.facts, node) or is_weighed_by_lent(self.facts, node):
            return False
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, (ast.Subscript, ast.Attribute, ast.Starred)):
            left = is_held(self.facts, node) or is_cut_by_hand(self.facts, node) or is_whole_data(self.facts, node)
            return not left and self._part(node)
        if isinstance(node, ast.Name):
            return self._name(node)
        if isinstance(node, ast.NamedExpr):
            return self.by_runtime(node.value)
        if isinstance(node, ast.IfExp):
            return self.by_runtime(node.body) and self.by_runtime(node.orelse)
        if isinstance(node, ast.BinOp):
            return self.by_runtime(node.left) or self.by_runtime(node.right)
        if isinstance(node, ast.UnaryOp):
            return self.by_runtime(node.operand)
        if isinstance(node, ast.Compare):
            return any(self.by_runtime(n) for n in (node.left, *node.comparators) if not isinstance(n, ast.Constant))
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            return all(self.by_runtime(e) for e in node.elts)
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            return self.by_runtime(node.elt)
        if isinstance(node, ast.Dict):
            return not (node.values and all(self.facts.tensors.made(v) for v in node.values))
        return not isinstance(node, (ast.Constant, ast.JoinedStr))

    def _part(self, node: ast.Subscript | ast.Attribute | ast.Starred) -> bool:
        """`batch["x"]`, `out.logits`; `self.prior.loc` is what a distribution was made of."""
        made = distributions(self.facts, node.value) if isinstance(node, ast.Attribute) else []
        if made:
            return all(self.by_runtime(m) for m in made)
        of_others = isinstance(node, ast.Attribute) and self._is_of_others(node.value)
        return not of_others and not is_made_for_object(self.facts, node) and self.by_runtime(node.value)

    def _is_unplaced(self, node: ast.expr) -> bool:
        """What a move gives to a network that is still where it was made."""
        up = self.facts.scopes.parents.get(node) if self.facts.lifting else None
        call = self.facts.scopes.parents.get(up) if isinstance(up, ast.Attribute) and up.attr in MOVES else None
        return isinstance(call, ast.Call) and call.func is up and meets_unplaced(self.facts, call)

    def _is_optimized(self, node: ast.expr) -> bool:
        """`x = img.clone().to(device).requires_grad_()`, `LBFGS([x])`: a leaf, which nothing moves once it is made."""
        up = self.facts.scopes.parents.get(node)
        moves = isinstance(up, ast.Attribute) and up.attr in MOVES
        return moves and not self._in_loop(node) and self.facts.tensors.is_optimized(node)

    def on_a_stream(self, node: ast.expr) -> bool:
        """`with torch.cuda.stream(side):` around a move: a prefetcher, which hands out what it has moved itself."""
        return bool(self._streams) and any(up in self._streams for up in self.facts.scopes.ancestors(node))

    def is_for_apex(self, node: ast.expr) -> bool:
        """`model.cuda()` above `amp.initialize(model, optimizer)`, which takes models on a GPU alone."""
        up = self.facts.scopes.parents.get(node)
        call = self.facts.scopes.parents.get(up) if isinstance(up, ast.Attribute) and up.attr in MOVES else None
        if not isinstance(call, ast.Call):
            return False
        s = self.facts.scopes.parents.get(call)  # model = Net().cuda()
        named = {ast.unparse(n) for n in (node, call, *(s.targets if isinstance(s, ast.Assign) else ()))}
        return bool(named & self._by_apex)

    def _is_apex(self, call: ast.Call) -> bool:
        named = isinstance(call.func, ast.Attribute) and call.func.attr == "initialize"
        return named and self.facts.names.resolve(call.func) == "apex.amp.initialize"

    def _is_stream(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Call) and self.facts.names.resolve(node.func) == "torch.cuda.stream"

    def is_registered(self, node: ast.expr) -> bool:
        return is_registered(self.facts, node)

    def _call(self, call: ast.Call) -> bool:
        full = self.facts.names.resolve(call.func)
        if isinstance(call.func, ast.Name) and call.func.id == "next":
            return self._is_drawn(call, call.args[0] if call.args else call)
        if full == "torch.utils.data.DataLoader":
            return True
        if full in MAKES_TENSORS or is_read(self.facts, call):
            return False
        if full is None and isinstance(call.func, ast.Attribute):
            return self._method(call, call.func)
        if self.is_module(call):
            wrapped = call.args[0] if full in PARALLEL and call.args else None  # nn.DataParallel(torch.load(path))
            loaded = wrapped is not None and isinstance(wrapped, ast.Name) and self.facts.tensors.made(wrapped)
            return not loaded and not in_plain_list(self.facts, call)
        of_torch = call.keywords if (full or "").startswith("torch.") else ()  # torch.cat(tensors=xs, dim=0)
        given = [*call.args, *(k.value for k in of_torch)]
        if isinstance(call.func, ast.Name) and call.func.id == "map" and given:
            given = [given[0].body] if isinstance(given[0], ast.Lambda) else given[1:]
        if not is_of_tensors(self.facts, call.func):
            given = [a for a in given if not may_be_any(self.facts, a)]
        return any(self.by_runtime(a) for a in given)

    def _method(self, call: ast.Call, method: ast.Attribute) -> bool:
        if self._makes_anew(method) or goes_to_cpu(self.facts, call) or (_asks_loader(method) and not _draws(call)):
            return False
        values = () if method.attr in OF_NUMBERS else call.args
        given = any(self.by_runtime(a) and not may_be_any(self.facts, a) for a in values)
        if gives_held(self.facts, method):
            return given
        if _draws(call):
            return self._is_drawn(call, method.value)
        made = distributions(self.facts, method.value)
        if made:
            return all(self.by_runtime(m) for m in made)  # its methods get sizes
        back = [] if method in self._followed else given_back(self.facts, method)
        if back and all(self.facts.tensors.made(v) for v in back):
            return False
        if given or not back:
            of_others = gives_of_sizes(call, method) or self._is_of_others(method.value)
            return given or (not of_others and self.by_runtime(method.value))
        self._followed.add(method)
        try:
            return all(self.by_runtime(v) for v in back)
        finally:
            self._followed.discard(method)

    def _is_of_others(self, node: ast.expr) -> bool:
        """`corpus = Corpus()`, of a class that another file has, and that nothing here uses as a module; a file may
        have kept it.
        """
        scope = self.facts.scopes.scope_of(node).lookup(node.id) if isinstance(node, ast.Name) else None
        if scope is None or not isinstance(node, ast.Name) or self.used_as_module(node.id, scope):
            return False
        values = self.facts.devices.assigned(node.id, scope) or []
        made = [self.facts.names.resolve(v.func) if isinstance(v, ast.Call) else None for v in values]
        made = [m for m in made if m not in READS]
        return bool(made) and all(m is not None and not m.startswith(OF_LIBRARIES) for m in made)

    def _is_drawn(self, call: ast.Call, iterator: ast.expr) -> bool:
        """`next(it)`, in a loop, of `it = iter(loader)`: a batch as the loader has it, which is placed there.

        A lifted loop has to know the loader, which it asks to place them.
        """
        if not self._in_loop(call) or not self.by_runtime(iterator):
            return False
        return not self.facts.lifting or bool(makers(self.facts, iterator))

    def _makes_anew(self, func: ast.Attribute) -> bool:
        """Whether a method of a module gives tensors that it makes from numbers: `model.init_hidden(batch_size)`."""
        made = [
            m for c in self.facts.classes.modules if (m := self.facts.classes.methods(c).get(func.attr)) is not None
        ]
        return bool(made) and all(self._gives_made(f) for f in made)

    def _gives_made(self, f: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        if f not in self._giving:
            returned = [n.value for n in walk(f, ast.Return)]
            parts = [p for v in returned for p in (v.elts if isinstance(v, (ast.Tuple, ast.List)) else [v])]
            self._giving[f] = bool(parts) and all(p is not None and self.facts.tensors.is_tensor(p) for p in parts)
        return self._giving[f]

    def is_module(self, call: ast.Call) -> bool:
        """A call that makes a module: of torch.nn, torchvision, or a class of this file that is one."""
        full = self.facts.names.resolve(call.func)
        if full is not None:
            parts = full.split(".")
            if full.startswith(("torchvision.models.", "timm.", "transformers.")):
                return True
            if full.startswith("torch.nn."):
                return parts[-1][:1].isupper()  # and not torch.nn.functional.relu, torch.nn.utils.rnn.pad_sequence
            return not full.startswith(("torch.", "numpy.")) and parts[-1][:1].isupper()
        name = call.func
        if isinstance(name, ast.Name):
            scope = self.facts.scopes.scope_of(name).lookup(name.id)
            made = scope.stores.get(name.id, []) if scope is not None else []
            if any(isinstance(m, ast.ClassDef) for m in made):
                return True
            return not made and name.id[:1].isupper()
        return False

    def _name(self, node: ast.Name) -> bool:
        generator = self.facts.scopes.generator_of(node)
        if generator is not None:
            return self._iterated(generator.iter)
        scope = self.facts.scopes.scope_of(node).lookup(node.id)
        if scope is not None and isinstance(scope.node, ast.Lambda):
            call = self.facts.scopes.parents.get(scope.node)
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "map" and call.args[0] is scope.node:
                return all(self._iterated(a) for a in call.args[1:])
        if scope is not None and (self.is_given_made(node.id, scope) or is_made_for_object(self.facts, node)):
            return False
        if scope is None or (node.id in scope.params and node.id not in scope.stores):
            return scope is None or not self._is_made_by_default(scope, node.id)
        key = (id(scope), node.id)
        if key in self._asked:
            self._cut = min(self._cut, self._asked[key])
            return True  # what a value is computed from itself says nothing
        self._asked[key] = len(self._asked)
        try:
            stores = self.reaching(node, scope)
            moving = [s for s in stores if not self._is_none(s)]
            return self.used_as_module(node.id, scope) or all(self._given(s) for s in moving or stores)
        finally:
            del self._asked[key]

    def _is_made_by_default(self, scope: Scope, name: str) -> bool:
        """`def loss(self, x, weight=torch.ones(3)):`, which is made once, before anything is placed."""
        f = scope.node
        default = default_of(f, name) if isinstance(f, (ast.FunctionDef, ast.Lambda)) else None
        return default is not None and self.facts.tensors.made(default)

    def is_given_made(self, name: str, scope: Scope) -> bool:
        """Whether a function of the file gets tensors by a parameter that the script makes, beside others that the
        runtime places, or for its training, or in another file: its move is theirs.
        """
        f = scope.node
        if name not in scope.params or not isinstance(f, (ast.FunctionDef, ast.Lambda)):
            return False
        if (f, name) not in self._given_made:
            self._given_made[f, name] = False  # while it is found: a function may hand on what it is given
            bound = self.facts.classes.holder(f) is not None
            made = [v is not None and self._is_left(v) for v in given_by_callers(self.facts, f, name)]
            works = "backward" in self.facts.attributes or bool(self.facts.classes.run_by_trainer)
            works = works or self.facts.is_library  # it does for others
            place = (getattr(f, "name", ""), list(scope.params).index(name))
            own = (any(made) and (works or not all(made))) or is_given_from_outside(self.facts, f, name)
            self._given_made[f, name] = own or (not bound and place in self.facts.given_made_elsewhere)
        return self._given_made[f, name]

    def reaching(self, node: ast.Name, scope: Scope) -> list[ast.AST]:
        """The bindings of a name that a read may see: not those below it in a loop that binds the name itself, as its
        target or in a statement of its own above the read: `x, y = batch`.
        """
        stores = [s for s in scope.stores.get(node.id, ()) if not isinstance(getattr(s, "ctx", None), ast.Del)]
        inner: set[ast.AST] = set()
        for up in self.facts.scopes.ancestors(node):
            if isinstance(up, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
                break
            if isinstance(up, ast.For) and any(n.id == node.id for n in walk(up.target, ast.Name)):
                own, here = set(walk(up)), self.facts.scopes.statement_of(node).lineno
                return [s for s in stores if s in own and (s in inner or getattr(s, "lineno", 0) < here)]
            if isinstance(up, (ast.For, ast.While)) and len(stores) > 1 and not inner:
                here = self.facts.scopes.statement_of(node).lineno
                anew = {id(s) for s in up.body if isinstance(s, ast.Assign) and s.lineno < here}
                if any(id(self.facts.scopes.statement_of(s)) in anew for s in stores):
                    own = set(walk(up))
                    stores = [s for s in stores if s not in own or getattr(s, "lineno", 0) < here]
            if isinstance(up, LOOPS):
                inner.update(walk(up))
        return stores

    def _is_left(self, node: ast.expr) -> bool:
        """Whether nothing but the function moves what it is given: made here, handed on, or taken of data once."""
        if isinstance(node, (ast.Starred, ast.ListComp)):
            return self._is_left(node.value if isinstance(node, ast.Starred) else node.elt)
        if isinstance(node, ast.Call) and self._gives_left(node):
            return True
        if gave_held(self.facts, node):
            return True
        made = self.facts.tensors.made(node) or self._hands_on_made(node) or self._is_made_anew(node)
        made = made or is_given_to_training(self.facts, node) or is_got_above(self.facts, node)
        return made or is_taken_once(self.facts, node) or is_whole_data(self.facts, node)

    def _gives_left(self, call: ast.Call) -> bool:
        """`collect()`, of a function of this file that gives tensors which it makes, or lists of them."""
        f = self.facts.devices.function_of(call)
        if f is None or f in self._followed:
            return False
        returned = [n.value for n in walk(f, ast.Return) if n.value is not None]
        parts = [p for v in returned for p in (v.elts if isinstance(v, (ast.Tuple, ast.List)) else [v])]
        self._followed.add(f)
        try:
            return bool(parts) and all(isinstance(p, (ast.ListComp, ast.Call)) and self._is_left(p) for p in parts)
        finally:
            self._followed.discard(f)

    def _is_made_anew(self, node: ast.expr) -> bool:
        """`scores = model.inference(graph)`, a method that fills a tensor of its own: where that is made, it stays."""
        if not isinstance(node, ast.Name):
            return False
        scope = self.facts.scopes.scope_of(node).lookup(node.id)
        values = self.facts.devices.assigned(node.id, scope) if scope is not None else None
        return bool(values) and all(
            isinstance(v, ast.Call) and isinstance(v.func, ast.Attribute) and self._makes_anew(v.func)
            for v in values or ()
        )

    def _hands_on_made(self, node: ast.expr) -> bool:
        """`move(x.unsqueeze(0))` in a function that is given such an x itself; `move(corpus.train)`."""
        if isinstance(node, ast.Attribute) and self._is_of_others(node.value):
            return True
        name = root(node)
        scope = self.facts.scopes.scope_of(name).lookup(name.id) if name is not None else None
        if scope is None or name is None:
            return False
        stores = scope.stores.get(name.id, [])
        if not stores:
            return self.is_given_made(name.id, scope)
        over = [up.iter if isinstance(up := self.facts.scopes.parents.get(s), ast.For) else None for s in stores]
        return all(
            isinstance(x, ast.Name) and not scope.stores.get(x.id) and self.is_given_made(x.id, scope) for x in over
        )

    def used_as_module(self, name: str, scope: Scope) -> bool:
        """Whether a name says that it is a module or a loader, or is called."""
        if MODEL_NAME.search(name) or (LOADER_NAME.search(name) and not is_moved(self.facts, name, scope)):
            return True
        return self.is_called(name, scope)

    def becomes_module(self, call: ast.Call) -> bool:
        """Whether a name that is asked for what only modules have, or put into one, keeps what a call gives:
        `net = make().cuda()`.
        """
        s, f = self.facts.scopes.parents.get(call), call.func
        made = f.value if isinstance(f, ast.Attribute) else None
        if not (isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name)):
            return False
        if not isinstance(made, ast.Call) or made_in_training(self.facts, made) or is_template(self.facts, made):
            return False
        if (
            is_tested_beyond(self.facts, made)
            or works_apart(self.facts, made)
            or (self._by_apex and self.is_for_apex(made))
        ):
            return False
        if (self.facts.names.resolve(made.func) or "").startswith(("torch.", "numpy.")):
            return False
        scope = self.facts.scopes.scope_of(s.targets[0]).lookup(s.targets[0].id)
        ups = (
            (self.facts.scopes.parents.get(r) for r in self.facts.scopes.reads(s.targets[0].id, scope)) if scope else ()
        )
        return any(self._is_asked_as_module(up) for up in ups)

    def _is_asked_as_module(self, up: ast.AST | None) -> bool:
        """What stands around a read of a name: `net.parameters()`, `nn.Sequential(first, net)`."""
        if isinstance(up, ast.Call):
            return self.facts.names.resolve(up.func) in OF_MODULES
        return is_module_method(self.facts.scopes.parents, up)

    def is_called(self, name: str, scope: Scope) -> bool:
        """Whether a name is used as a module or a function is, and no tensor."""
        if name in MODULE_NAME:
            return True
        for read in self.facts.scopes.reads(name, scope):
            up = self.facts.scopes.parents.get(read)
            if is_module_method(self.facts.scopes.parents, up):
                return True
            if isinstance(up, ast.Call) and up.func is read and not _is_asked_by_words(up):
                return True
        return False

    def _given(self, store: ast.AST) -> bool:
        """Whether one binding of a name gives it what the runtime places: a batch, or what `by_runtime` says."""
        parents = self.facts.scopes.parents
        child = store
        while isinstance(parents.get(child), (ast.Tuple, ast.List, ast.Starred)):
            child = parents[child]
        up = parents.get(child)
        if isinstance(up, (ast.For, ast.AsyncFor, ast.comprehension)):
            batches = self.facts.loops.hot_loops.get(up) or not is_data(self.facts, unwrapped(up.iter))
            drawn = drawn_from(self.facts, up, store)
            drawn = None if drawn is None or _is_range(drawn) else drawn
            if self.facts.tensors.keeps_made(up, store):
                return False
            return bool(batches) and drawn is not None and gives_placed(self.facts, up, drawn)
        if isinstance(up, ast.Assign):
            if child is store:
                if (filled := self._filled(store, up.value)) is not None:
                    return filled
                return _adds_to(up.value, getattr(store, "id", "")) or self.by_runtime(up.value)
            return self._unpacked(up, child, store)
        if isinstance(up, (ast.NamedExpr, ast.AnnAssign)):
            return up.value is not None and self.by_runtime(up.value)
        subject = matched(self.facts, store)
        return self.by_runtime(subject) if subject is not None else isinstance(up, ast.AugAssign)

    def _filled(self, store: ast.AST, value: ast.expr) -> bool | None:
        """Of a list that begins empty: whether the runtime places all that is put into it; None where nothing shows."""
        if not isinstance(store, ast.Name) or not isinstance(value, ast.List) or value.elts:
            return None
        held = self.facts.tensors.filled.held(store.id, self.facts.scopes.scope_of(store))
        return all(map(self.by_runtime, held.elements)) if held is not None and held.elements else None

    def _is_none(self, store: ast.AST) -> bool:
        up = self.facts.scopes.parents.get(store)
        return isinstance(up, ast.Assign) and isinstance(up.value, ast.Constant) and up.value.value is None

    def _unpacked(self, statement: ast.Assign, target: ast.AST, store: ast.AST) -> bool:
        value = statement.value
        if isinstance(value, ast.Tuple) and isinstance(target, ast.Tuple) and len(value.elts) == len(target.elts):
            if store in target.elts:
                return self.by_runtime(value.elts[target.elts.index(store)])
            return False
        if isinstance(target, ast.Tuple):
            given = self.facts.devices.elements(target, store, value) or []
            if any(self.facts.tensors.made(part) for part in given):
                return False  # a function of the script made it
        if isinstance(value, (ast.Name, ast.Subscript)) or is_whole_data(self.facts, value):
            return self.by_runtime(value)
        return self._call(value) if isinstance(value, ast.Call) else True

    def _iterated(self, node: ast.expr) -> bool:
        """Whether the runtime moves what a comprehension goes through."""
        called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        if called in ("zip", "enumerate", "reversed", "list", "tuple"):
            return all(self._iterated(a) for a in node.args)  # type: ignore[attr-defined]
        return not _is_range(node) and not is_data(self.facts, node) and self.by_runtime(node)

    def _in_loop(self, node: ast.AST) -> bool:
        return any(isinstance(u, LOOPS) for u in self.facts.scopes.ancestors(node))


def _draws(call: ast.Call) -> bool:
    """`iter(loader).next()`, which is `next(iter(loader))`."""
    return isinstance(call.func, ast.Attribute) and call.func.attr in ("next", "__next__") and not call.args


def _asks_loader(method: ast.Attribute) -> bool:
    """`loader.get_batch("val")`, which is no batch that a loop over the loader gives."""
    of = method.value
    name = of.id if isinstance(of, ast.Name) else of.attr if isinstance(of, ast.Attribute) else ""
    return method.attr != "__iter__" and LOADER_NAME.search(name) is not None


def _is_asked_by_words(call: ast.Call) -> bool:
    """`data("train_mask", "test_mask")`: texts alone, which no network is given."""
    texts = (isinstance(a, ast.Constant) and isinstance(a.value, str) for a in call.args)
    return bool(call.args) and not call.keywords and all(texts)


def _adds_to(value: ast.expr, name: str) -> bool:
    """`x = x - mean`, which is `x -= mean`: what x began as decides."""
    if isinstance(value, ast.BinOp):
        return _adds_to(value.left, name) or _adds_to(value.right, name)
    return isinstance(value, ast.Name) and value.id == name


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("range", "trange")
