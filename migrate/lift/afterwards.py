"""Where a script without devices works with its networks once they are trained: the Trainer gives them back to the CPU.

    p = Predictor(net)                           trainer = Trainer(max_epochs=3, back_on_cpu=True)
    for epoch in range(3): ...                   trainer.fit(NetModule(net), loader)
    print(p.predict(torch.ones(3, 4)))           print(p.predict(torch.ones(3, 4)))

Whatever reads a network there, or something that was made with one, may meet tensors of the script. What is known not
to: loops over loaders, whose batches go where the network is, and what shows, counts, saves or loads it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Set

from ..facts.arguments import argument
from ..facts.classes import Function
from ..facts.in_course import callers_of, function_around
from ..facts.nodes import FUNCTIONS, walk
from ..facts.other_files import found_there
from ..facts.scopes import Comprehension
from ..facts.script import Facts
from .chunks import given_arguments
from .modes import after_the_loop
from .own_makers import makes_inside
from .recipe import Recipe
from .worked_with import in_a_loop, is_network_there, read_from, runs_outside_loops

DEPTH = 4  # of functions that call functions
MET, KEPT, RETURNED, HARMLESS = "met", "kept", "returned", ""
# attributes and methods that are numbers or texts, or that change a network in place
ENDS = set(
    """numel size dim ndim shape dtype requires_grad training item keys __class__ __name__ load_state_dict
    zero_grad in_features out_features in_channels out_channels""".split()
)
ADDS = {"append", "add", "insert", "extend", "update", "setdefault"}  # to what they are called of
SHOW = {"print", "len", "type", "isinstance", "id", "repr", "str", "callable", "hasattr", "bool", "rank_zero_print"}
PASS = set(
    """zip enumerate list tuple set dict iter next sorted reversed sum max min any all getattr vars copy.copy
    copy.deepcopy torch.compile""".split()
)  # what they give holds what they are given
SAVE = ("torch.save", "pickle.dump", "joblib.dump", "wandb.watch", "torch.optim.", "torch.nn.utils.clip_grad")
CHAINED = set(
    """eval train requires_grad_ parameters named_parameters buffers named_buffers state_dict modules children
    named_modules named_children items values detach norm sum mean std abs pow square""".split()
)
THROUGH = ast.Tuple | ast.List | ast.Set | ast.Dict | ast.IfExp | ast.BoolOp | ast.Starred | ast.keyword | Comprehension


def met_afterwards(facts: Facts, recipe: Recipe, networks: Set[str], held: Set[str]) -> ast.expr | None:
    """The first read of a network after its training that may meet tensors of the script, or of what holds one.

    `networks`: the loop's names of them; `held`: all names of the loop, for networks that its object holds.
    """
    body = recipe.trunk.body if recipe.trunk is not None else facts.tree.body
    loop = {*walk(recipe.epoch_loop)}
    found = Names(facts, body, networks, loop).met(after_the_loop(facts, recipe))
    return found or _by_callers(facts, recipe.trunk, networks, loop) or _by_owners(facts, recipe, held, loop)


def _by_callers(
    facts: Facts, f: ast.AST | None, networks: Set[str], loop: Set[ast.AST], gives: bool = False, depth: int = 0
) -> ast.expr | None:
    """By who calls the loop's function, and gives it the network or gets it back: `train(net, loader)`, `net(x)`.

    `gives`: whether it returns what another function gives that does.
    """
    if not isinstance(f, ast.FunctionDef) or depth > DEPTH:
        return None
    returned = {n.id for r in walk(f, ast.Return) if r.value is not None for n in walk(r.value, ast.Name)}
    for call in callers_of(facts, f):
        given = given_arguments(f, call)
        named = {n.id for name in networks & given.keys() for n in walk(given[name], ast.Name)}
        s, up = facts.scopes.statement_of(call), facts.scopes.parents.get(call)
        targets = s.targets if isinstance(s, ast.Assign) else [up.target] if isinstance(up, ast.NamedExpr) else []
        given_back = [n for t in targets for n in walk(t, ast.Name)]
        named |= {n.id for n in given_back if gives or returned & networks or is_network_there(facts, n)}
        on = isinstance(s, ast.Return) and (gives or bool(returned & networks))
        found = _met_beside(facts, call, named, loop)
        found = found or _by_callers(facts, function_around(facts, call), named, loop, on, depth + 1)
        if found is not None:
            return found
    return None


def _by_owners(facts: Facts, recipe: Recipe, held: Set[str], loop: Set[ast.AST]) -> ast.expr | None:
    """By the other methods of the loop's object, by who reads it of that, and by who gave it: `learner.net(x)`."""
    f = function_around(facts, recipe.epoch_loop)
    c = facts.classes.holder(f) if f is not None else None
    if c is None or c in facts.classes.modules:
        return None
    names = Names(facts, [], set(), loop)
    for attribute in sorted(n for n in held if facts.loops.is_model_name(n)):
        for read in facts.attributes.get(attribute, ()):
            asked = isinstance(read.ctx, ast.Load) and read not in loop
            if asked and names.use(read) == MET and runs_outside_loops(facts, read, c, loop):
                return read
    for made in facts.alone.calls_of(c.name):
        given = {a.id for a in made.args if isinstance(a, ast.Name) and is_network_there(facts, a)}
        found = _met_beside(facts, made, given, loop)
        if found is not None:
            return found
    return None


def _met_beside(facts: Facts, call: ast.Call, names: Set[str], loop: Set[ast.AST]) -> ast.expr | None:
    """The first such read where a call stands: in the statements of its function, or of the file."""
    around = function_around(facts, call)
    body = around.body if around is not None else facts.tree.body
    return Names(facts, body, names, loop).met(s for s in body if not isinstance(s, (*FUNCTIONS, ast.ClassDef)))


class Names:
    """The names of a body that hold networks, or what was made with one, and what the reads of them may meet.

    `names`: those of networks; `without`: the nodes of the loop, which the Module has; `outer`: of what calls the body.
    """

    def __init__(
        self, facts: Facts, body: list[ast.stmt], names: Set[str], without: Set[ast.AST], outer: Names | None = None
    ) -> None:
        self.facts, self.without = facts, without
        self.depth: int = 0 if outer is None else outer.depth + 1
        self.uses: dict[ast.AST, str] = {} if outer is None else outer.uses
        self.known: dict[tuple[ast.AST, frozenset[str]], str] = {} if outer is None else outer.known
        self.names, self.run = set(names), set[str]()  # `run`: functions that meet something whenever they do
        pairs = [p for s in body for p in self._pairs(s)] if names else []
        self.names |= {t for s in body for t in self._kept_in_loop(s)} if names else set()
        functions = [n for s in body for n in walk(s) if isinstance(n, FUNCTIONS)] if names else []
        more = True
        while more:
            found = {t for targets, value in pairs if self._holds(value) for t in targets} - self.names
            runs = {f.name for f in functions if f.name not in self.run and self._meets_inside(f)}
            self.names, self.run = self.names | found, self.run | runs
            more = bool(found or runs)

    def met(self, statements: Iterable[ast.stmt]) -> ast.expr | None:
        """The first read of them that may meet a tensor of the script, in what stands in no function."""
        for s in statements if self.names or self.run else ():
            for n in self._reads(s):
                if not in_a_loop(self.facts, n) and (n.id in self.run or self.use(n) == MET):
                    return n
        return None

    def _kept_in_loop(self, s: ast.stmt) -> Iterator[str]:
        """What the loop keeps of a network: `best = copy.deepcopy(net)`, `state = net.state_dict()`."""
        for n in (n for n in walk(s, ast.Assign) if n in self.without):
            reads = (r for r in walk(n.value, ast.Name) if r.id in self.names and isinstance(r.ctx, ast.Load))
            if any(self.use(r) == KEPT for r in reads):
                yield from (x for t in n.targets for x in _roots(t))

    def _pairs(self, s: ast.stmt) -> Iterator[tuple[set[str], ast.expr]]:
        """What is given a value, and the value: assignments, loops, `with`, and what a list gets appended."""
        for n in (n for n in walk(s) if n not in self.without):
            if isinstance(n, ast.Assign):
                yield {x for t in n.targets for x in _roots(t)}, n.value
            elif isinstance(n, (ast.AnnAssign, ast.NamedExpr)) and n.value is not None:
                yield _roots(n.target), n.value
            elif isinstance(n, (ast.For, ast.AsyncFor)):
                yield _roots(n.target), n.iter
            elif isinstance(n, ast.withitem) and n.optional_vars is not None:
                yield _roots(n.optional_vars), n.context_expr
            elif isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in ADDS:
                yield from ((_roots(n.func.value), a) for a in n.args)

    def _reads(self, node: ast.AST) -> Iterator[ast.Name]:
        """The reads of them in a node, but for those in functions below it."""
        known, at = self.names | self.run, function_around(self.facts, node)
        for n in walk(node, ast.Name):
            asked = n.id in known and isinstance(n.ctx, ast.Load) and n not in self.without
            if asked and function_around(self.facts, n) is at:
                yield n

    def _holds(self, value: ast.expr) -> bool:
        """Whether what a value is made of stays in it, as in `[net]`, `Predictor(net)`, `lambda x: net(x)`."""
        return any(n.id in self.run or self.use(n) in (KEPT, MET) for n in self._reads(value))

    def _meets_inside(self, f: ast.AST) -> bool:
        """Whether a function reads them from outside, and meets something."""
        own = self.facts.scopes.by_node[f]
        known = [*self.run, *(name for name in self.names if not own.binds(name))]
        free = [n for name in known for n in own.loads.get(name, ())]
        return any(
            n not in self.without and not in_a_loop(self.facts, n) and (n.id in self.run or self.use(n) == MET)
            for n in free
        )

    # -- what becomes of one read --------------------------------------------------------------------------------

    def use(self, node: ast.AST) -> str:
        """MET, where a value may meet tensors of the script; KEPT and RETURNED where it goes on by another name."""
        if node not in self.uses:
            self.uses[node] = HARMLESS  # while it is asked: methods may call themselves
            self.uses[node] = self._use(node)
        return self.uses[node]

    def _use(self, node: ast.AST) -> str:
        up = self.facts.scopes.parents.get(node)
        if isinstance(up, ast.Attribute):
            return self._attribute(up)
        if isinstance(up, ast.Call):
            return MET if up.func is node else self._given(up, node)
        if isinstance(up, ast.Subscript):
            return self.use(up) if up.value is node else MET
        if isinstance(up, ast.comprehension):
            inside = (n for n in walk(self.facts.scopes.parents[up], ast.Name) if isinstance(n.ctx, ast.Load))
            uses = {self.use(n) for n in inside if self.facts.scopes.generator_of(n) is up}
            return MET if MET in uses else next((u for u in (KEPT, RETURNED) if u in uses), HARMLESS)
        if isinstance(up, ast.Lambda):
            return MET if self.use(up) in (MET, KEPT) else HARMLESS
        if isinstance(up, THROUGH):
            return self.use(up)
        if isinstance(up, (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.For, ast.withitem)):
            return KEPT
        if isinstance(up, (ast.Return, ast.Yield, ast.YieldFrom)):
            return RETURNED
        if isinstance(up, ast.Compare) and all(isinstance(o, (ast.Is, ast.IsNot)) for o in up.ops):
            return HARMLESS
        if isinstance(up, ast.FormattedValue):  # of a tensor the text tells where it is
            return HARMLESS if isinstance(node, ast.Name) else MET
        return HARMLESS if isinstance(up, (ast.Expr, ast.If, ast.While)) else MET

    def _attribute(self, read: ast.Attribute) -> str:
        """`net.eval()` is the network, `net.f.weight` a part of it; another method runs it, but for those that show."""
        call = self.facts.scopes.parents.get(read)
        if read.attr in ENDS:
            return HARMLESS
        if not (isinstance(call, ast.Call) and call.func is read):
            return self.use(read)
        if read.attr in CHAINED:
            return self.use(call)
        used = self._method(read)
        return self.use(call) if used == RETURNED else used

    def _method(self, read: ast.Attribute) -> str:
        """MET where a method works with the network, in a loop over no loader, or makes tensors for it."""
        facts, uses, found = self.facts, set[str](), False
        for c in self._classes_of(read.value):
            methods = {name: f for k in reversed(facts.classes.kin(c)) for name, f in facts.classes.methods(k).items()}
            if read.attr in methods:
                uses |= self._uses_in(c, methods, read)
                found = True
        return MET if MET in uses or not found else RETURNED if RETURNED in uses else HARMLESS

    def _uses_in(self, c: ast.ClassDef, methods: dict[str, Function], read: ast.Attribute) -> set[str]:
        """The same of a method, and those that it calls, of one class."""
        own, uses = c in self.facts.classes.modules, set[str]()
        kept = set() if own else self._kept_by(c, read.value)
        for f in (methods[name] for name in sorted(read_from(self.facts, methods, read.attr) & methods.keys())):
            if own and isinstance(f, ast.FunctionDef) and makes_inside(self.facts, f):
                return {MET}
            for n in self._of_object(f, methods, own):
                if not isinstance(n, ast.Attribute) or own or n.attr in kept:
                    used = self.use(n)
                    outside = used != MET or runs_outside_loops(self.facts, n, c, self.without)
                    uses |= {used} if outside and (used != RETURNED or f.name == read.attr) else set()
        return uses

    def _of_object(self, f: ast.AST, methods: dict[str, Function], own: bool) -> Iterator[ast.expr]:
        """The reads of an object's attributes in a method; of a network those of itself, too: `self(x)`."""
        for n in walk(f, ast.Attribute):
            of_it = isinstance(n.ctx, ast.Load) and self.facts.classes.is_self(n.value)
            of_above = own and of_it and isinstance(n.value, ast.Call) and n.attr == "forward"  # super().forward(x)
            if of_it and (n.attr not in methods or of_above):
                yield n
        for name in walk(f, ast.Name) if own else ():
            whole = not isinstance(self.facts.scopes.parents.get(name), ast.Attribute)
            if whole and isinstance(name.ctx, ast.Load) and self.facts.classes.is_self(name):
                yield name

    def _kept_by(self, c: ast.ClassDef, value: ast.expr) -> set[str]:
        """The attributes that an object has of what it is made with; where that is a network, and shows, of that."""
        found = set()
        for k in self.facts.classes.kin(c):
            init = self.facts.classes.methods(k).get("__init__")
            given = {a.arg for a in (*init.args.args[1:], *init.args.kwonlyargs)} if init is not None else set()
            made = self._made(value)
            if k is c and isinstance(made, ast.Call) and isinstance(init, ast.FunctionDef):
                values = {name: argument(made, init, name, bound=True) for name in given}
                given = {n for n, v in values.items() if v is not None and any(True for _ in self._reads(v))}
            for s in walk(init, ast.Assign) if init is not None else ():
                if any(n.id in given for n in walk(s.value, ast.Name)):
                    found |= {t.attr for t in s.targets if isinstance(t, ast.Attribute)}
        return found

    def _made(self, node: ast.expr) -> ast.expr | None:
        """The call that gives a name its value."""
        if not isinstance(node, ast.Name):
            return node
        home = self.facts.scopes.scope_of(node).lookup(node.id)
        values = self.facts.devices.unpacked(node.id, home) if home is not None else None
        return values[0] if values is not None and len(values) == 1 else None

    def _classes_of(self, node: ast.expr) -> list[ast.ClassDef]:
        """The class of this file that an object is of; where that does not show, those of networks."""
        made = self._made(node)
        name = made.func.id if isinstance(made, ast.Call) and isinstance(made.func, ast.Name) else None
        own = [c for c in self.facts.walk(ast.ClassDef) if c.name == name]
        return own or [*self.facts.classes.modules]

    def _given(self, call: ast.Call, node: ast.AST) -> str:
        """What a function does with what it is given."""
        full = self.facts.names.resolve(call.func) or ast.unparse(call.func)
        plain = not isinstance(node, ast.Attribute) or self.facts.classes.is_self(node.value)
        if full in SHOW:
            return HARMLESS if plain else MET
        tells = full.endswith((".log", ".info")) and not full.startswith(("torch.", "numpy.", "math."))
        if full == "torch.optim.swa_utils.AveragedModel":
            return self.use(call)
        if tells or full.endswith(".load_state_dict") or (full.startswith(SAVE) and ".swa_utils." not in full):
            return HARMLESS
        if full in PASS or (full.startswith("torch.nn.") and full.rpartition(".")[2][:1].isupper()):
            return self.use(call)
        if isinstance(call.func, ast.Attribute) and call.func.attr in ADDS:
            return KEPT
        return self._by_function(call, node)

    def _by_function(self, call: ast.Call, node: ast.AST) -> str:
        facts, f = self.facts, self.facts.devices.function_of(call)
        name = call.func.id if isinstance(call.func, ast.Name) else None
        c = next((c for c in facts.walk(ast.ClassDef) if c.name == name), None)
        there = found_there(facts, call.func) if f is None and c is None and facts.others else None
        if there is not None:
            facts, f = there[1], there[2] if isinstance(there[2], ast.FunctionDef) else None
        if c is not None:
            return self.use(call)
        if not isinstance(f, ast.FunctionDef) or self.depth > DEPTH:
            return MET
        top: ast.AST = node
        while self.facts.scopes.parents[top] is not call:
            top = self.facts.scopes.parents[top]
        value = top.value if isinstance(top, ast.keyword) else top
        names = frozenset(name for name, v in given_arguments(f, call).items() if v is value)
        if (f, names) not in self.known:
            self.known[f, names] = self._inside(facts, f, names)
        known = self.known[f, names]
        return self.use(call) if known == RETURNED else known

    def _inside(self, facts: Facts, f: ast.FunctionDef, names: frozenset[str]) -> str:
        """What a function does with these parameters."""
        inside = Names(facts, f.body, names, self.without, self)
        if not names or inside.met(f.body) is not None:
            return MET
        reads = (n for r in walk(f, ast.Return) for n in inside._reads(r))
        return RETURNED if any(inside.use(n) == RETURNED for n in reads) else HARMLESS


def _roots(target: ast.expr) -> set[str]:
    """The names that a target binds, or whose parts it does: `nets` of `nets["a"] = net`."""
    return {n.id for n in walk(target, ast.Name)}
