"""T7: a lambda that has to be pickled becomes a named function; what it takes from around it is bound with partial.

Pickling meets the functions given to data loaders, transforms and schedulers, and those that a module keeps.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator

from ..facts.arguments import default_of
from ..facts.held import class_named, is_data_set
from ..facts.nodes import walk
from ..facts.script import Facts
from ..facts.source import is_expression
from ..facts.text import lines_of
from ..report import Note
from ._bound_names import CELLS, mangled, unbindable
from ._keepers import is_kept, is_kept_by, is_of_torchvision, parameter_of
from ._own_defaults import first_line, own_defaults, top_of, without
from .base import Change, Codemod, Insertion
from .rewrites import bare, source

KEYWORDS = {"collate_fn", "worker_init_fn", "lr_lambda", "target_transform", "transform", "transforms"}
OF_LOADERS = {"collate_fn", "worker_init_fn", "lr_lambda"}  # as keys of options, too
TAKES = {
    "torchvision.transforms.Lambda", "torchvision.transforms.v2.Lambda", "torch.optim.lr_scheduler.LambdaLR",
    "torch.optim.lr_scheduler.MultiplicativeLR", "torchvision.transforms.Compose", "torchvision.transforms.v2.Compose",
    "torchvision.transforms.RandomApply", "torchvision.transforms.RandomChoice",
}  # fmt: skip
HAND_ON = {
    "torch.utils.data.DataLoader", "torch.optim.lr_scheduler.LambdaLR", "torch.optim.lr_scheduler.MultiplicativeLR",
}  # fmt: skip
# a module keeps the hooks that it registers
HOOKS = {
    "register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook", "register_backward_hook",
    "register_full_backward_pre_hook", "register_load_state_dict_post_hook", "register_state_dict_pre_hook",
}  # fmt: skip
# what a lambda may stand in on its way to them
HOLDERS = (ast.List, ast.Tuple, ast.Dict, ast.BinOp, ast.IfExp, ast.BoolOp, ast.ListComp, ast.DictComp)


class NameLambdas(Codemod):
    code = "PTM201"
    name = "name-lambdas"

    def plan(self, facts: Facts) -> Iterator[Change]:
        self.left: list[Note] = []
        taken = {n.id for n in facts.walk(ast.Name)} | {d.name for d in facts.walk(ast.FunctionDef)}
        taken |= {a.asname or a.name for a in facts.walk(ast.alias)} | {d.name for d in facts.walk(ast.ClassDef)}
        partial, has = None, "functools" in facts.scopes.module.stores
        for node in sorted(facts.walk(ast.Lambda), key=lambda n: (n.lineno, n.col_offset)):
            base = self.pickled_as(facts, node)
            if base is None:
                continue
            why, free = self._free(facts, node)
            own = own_defaults(facts, node, base) if why is None else {}
            if own is None:
                why, own = "its defaults take values from around it", {}
            if why is None and not _can_be_moved(facts, node):
                why = "its lines cannot be moved as they are"
            bound = own | {n: n for n in free}
            if why is None and bound and (node.args.vararg or node.args.kwonlyargs or node.args.kwarg):
                why = f"`{next(iter(bound))}` is no argument that it has room for"
            if why is not None:
                self._tell(facts, node, why)
                continue
            name = free_name(base, taken | facts.new_names)
            facts.new_names.add(name)
            new = name
            if bound:
                partial = partial or self._partial(facts)
                new = f"{partial}({name}, {', '.join(f'{n}={value}' for n, value in bound.items())})"
            says = f"`{facts.short(node)}` became {name}(): a lambda cannot be pickled"
            given = without(facts, node, own) if own else self._given(facts, node)
            definition = self._definition(facts, node, name, given, ", ".join(bound))
            imports = ["import functools"] if bound and partial == "functools.partial" and not has else []
            yield Change(
                node,
                self.edit(facts, node, says),
                bare(new) if _is_set_off(facts, node) else source(new),
                (),
                Insertion(first_line(top_of(facts, node)), definition, imports),
            )

    def notes(self, facts: Facts) -> Iterator[Note]:
        yield from self.left

    def _tell(self, facts: Facts, node: ast.AST, why: str) -> None:
        line, column, _, _ = facts.text.key(node)
        says = f"`{facts.short(node)}` cannot be pickled, and is not rewritten: {why}"
        self.left.append(Note(line, column + 1, self.code, says))

    def pickled_as(self, facts: Facts, node: ast.expr) -> str | None:
        """The name of the function that a lambda becomes where pickling meets it."""
        if facts.is_fixed(node):
            return None
        return self._place(facts, node, 0)

    def _place(self, facts: Facts, node: ast.expr, depth: int) -> str | None:
        """What to call a function that stands at a node, by itself or in what holds it; None where nothing pickles."""
        below: ast.AST = node
        up = facts.scopes.parents.get(node)
        while isinstance(up, HOLDERS) or _is_chosen(below, up) or _is_made_of(facts, below, up):
            assert up is not None
            key = _key_of(up, below) if isinstance(up, ast.Dict) else None
            if key in OF_LOADERS:
                return f"_{key}"
            below, up = up, facts.scopes.parents.get(up)
            if isinstance(up, ast.Call) and isinstance(below, ast.keyword):  # dict(relu=node)
                below, up = up, facts.scopes.parents.get(up)
        if isinstance(up, ast.arguments):
            return self._by_default(facts, up, below, depth)
        if isinstance(up, ast.NamedExpr):
            return self._place(facts, up, depth) or self._by_name(facts, up.target, depth)
        if isinstance(up, ast.Return):
            return self._by_calls(facts, up, depth)
        if isinstance(up, ast.keyword):
            if up.arg in KEYWORDS:
                return f"_{up.arg}"
            named, up = up.arg, facts.scopes.parents.get(up)
            if named == "loader" and isinstance(up, ast.Call) and is_of_torchvision(facts, up):
                return "_loader"
        if isinstance(up, ast.Call) and up.func is not node:
            return self._given_to(facts, up, node, depth) or self._by_object(facts, up, below, depth)
        if isinstance(up, ast.AugAssign):
            return self._by_name(facts, up.target, depth)
        found = (self._assigned(facts, t, depth) for t in _targets(facts, up, node))
        return next((name for name in found if name is not None), None)

    def _assigned(self, facts: Facts, target: ast.expr, depth: int) -> str | None:
        """What to call a function that is assigned to something, by itself or in what holds it."""
        if isinstance(target, ast.Subscript):
            key = getattr(target.slice, "value", None)
            if key in OF_LOADERS:
                return f"_{key}"  # options["collate_fn"] = node
            return self._by_name(facts, target.value, depth)
        if isinstance(target, ast.Name):
            return self._by_name(facts, target, depth)
        if isinstance(target, ast.Attribute):
            holder = next((u for u in facts.scopes.ancestors(target) if isinstance(u, ast.ClassDef)), None)
            kept = holder in facts.classes.modules or is_data_set(facts, holder)
            part = target.value
            while isinstance(part, ast.Attribute):
                part = part.value
            if isinstance(part, ast.Name) and part.id == "self":
                return f"_{target.attr.lstrip('_')}" if kept else None
            if target.attr in KEYWORDS or is_kept(facts, target.value):
                return f"_{target.attr.lstrip('_')}"  # data.transform = node
        return None

    def _given_to(self, facts: Facts, up: ast.Call, node: ast.expr, depth: int) -> str | None:
        """What to call a function that is an argument of a call."""
        full = facts.names.resolve(up.func) or ""
        if full == "functools.partial" and up.args[0] is node:
            return self._place(facts, up, depth)
        if isinstance(up.func, ast.Name) and up.func.id == "setattr" and is_kept_by(facts, up, node):
            return "_kept"
        if full in TAKES:
            return "_lr_lambda" if "lr_scheduler" in full else "_transform"
        if is_data_set(facts, class_named(facts, up.func)) or (node in up.args and is_of_torchvision(facts, up)):
            return "_transform"
        if full == "torch.utils.data.DataLoader" and node in up.args[6:]:
            return "_collate_fn" if node is up.args[6] else "_worker_init_fn"
        given = parameter_of(facts, up, node) if depth < 3 else None
        if given is not None and self._is_kept_as(facts, *given, depth):
            return f"_{given[1].lstrip('_')}"
        f = up.func
        if isinstance(f, ast.Attribute) and f.attr in ("append", "insert", "extend") and depth < 3:
            return self._by_name(facts, f.value, depth)
        if isinstance(f, ast.Attribute) and f.attr == "setdefault" and up.args[1:] == [node]:
            key = getattr(up.args[0], "value", None)
            return f"_{key}" if key in OF_LOADERS else None
        return "_hook" if is_hook_of_module(facts, up) else None

    def _by_object(self, facts: Facts, call: ast.Call, given: ast.AST, depth: int) -> str | None:
        """`Compose([lambda x: x * 2])` of the script's own class, which keeps them, and what becomes of the object."""
        kept = parameter_of(facts, call, given) if depth < 3 and isinstance(given, ast.expr) else None
        if kept is None or kept[0].name != "__init__":
            return None
        reads = facts.scopes.reads(kept[1], facts.scopes.by_node[kept[0]])
        ups = (facts.scopes.parents.get(r) for r in reads)
        keeps = any(isinstance(s, ast.Assign) and any(_is_own(facts, t) for t in s.targets) for s in ups)
        return self._place(facts, call, depth + 1) if keeps else None

    def _by_name(self, facts: Facts, target: ast.expr, depth: int) -> str | None:
        """`warm = lambda e: ...` that is given to a schedule or a loader by its name, or from what holds it."""
        scope = facts.scopes.scope_of(target).lookup(target.id) if isinstance(target, ast.Name) else None
        if scope is None or not isinstance(target, ast.Name) or depth > 2:
            return None
        for read in facts.scopes.reads(target.id, scope):
            at = _taken_from(facts, read)
            if at is not None and self._place(facts, at, depth + 1) is not None:
                return f"_{target.id.lstrip('_')}"
        return None

    def _by_default(self, facts: Facts, given: ast.arguments, node: ast.AST, depth: int) -> str | None:
        """`def __init__(self, act=lambda x: x):` and what becomes of `act`."""
        f = facts.scopes.parents.get(given)
        if depth > 2 or not isinstance(f, ast.FunctionDef):
            return None
        name = next((a for a in facts.scopes.by_node[f].params if default_of(f, a) is node), None)
        return f"_{name.lstrip('_')}" if name is not None and self._is_kept_as(facts, f, name, depth) else None

    def _is_kept_as(self, facts: Facts, f: ast.FunctionDef, name: str, depth: int) -> bool:
        """Whether pickling meets what a function is given for a parameter."""
        reads = facts.scopes.reads(name, facts.scopes.by_node[f])
        return any(self._place(facts, read, depth + 1) is not None for read in reads)

    def _by_calls(self, facts: Facts, given: ast.Return, depth: int) -> str | None:
        """`def warmup(steps): return lambda e: ...` and what becomes of what its calls give."""
        f = facts.scopes.scope_of(given).node
        if depth > 2 or not isinstance(f, ast.FunctionDef) or f.decorator_list:
            return None
        places = (self._place(facts, call, depth + 1) for call in facts.loops.calls_of(f))
        return next((place for place in places if place is not None), None)

    def _free(self, facts: Facts, node: ast.Lambda) -> tuple[str | None, list[str]]:
        """What it takes from the functions around it, and why it cannot be moved."""
        own = {a.arg for a in walk(node.args, ast.arg)}
        inner = {n.id for n in walk(node.body, ast.Name) if not isinstance(n.ctx, ast.Load)}
        if any(isinstance(n, (ast.Lambda, ast.Yield, ast.Await, ast.NamedExpr)) for n in walk(node.body)):
            return "there is more in it than a value", []
        private = mangled(facts, node)
        if private is not None:
            return f"`{private}` is its class's own", []
        around = facts.scopes.scope_of(node)
        found: list[str] = []
        for n in walk(node.body, ast.Name):
            if n.id in own | inner or n.id in found:
                continue
            scope = around.lookup(n.id)
            if n.id in CELLS or (n.id == "self" and not _is_handed_over(facts, node)):
                return f"it reads `{n.id}`", []
            generator = facts.scopes.generator_of(n)
            if generator is not None and node not in facts.scopes.ancestors(generator):
                return f"`{n.id}` may be another value by then", []
            if scope is None and not hasattr(builtins, n.id):
                return f"`{n.id}` comes from nowhere to be seen", []
            if scope is None or scope is facts.scopes.module:
                continue
            why = unbindable(facts, scope, n.id, node)
            if why is not None:
                return why, []
            found.append(n.id)
        return None, found

    def _partial(self, facts: Facts) -> str:
        for n in facts.walk(ast.ImportFrom):
            if n.module == "functools" and n in facts.tree.body:
                for a in n.names:
                    if a.name == "partial":
                        return a.asname or a.name
        return "functools.partial"

    def _definition(self, facts: Facts, node: ast.Lambda, name: str, given: str, bound: str) -> str:
        parameters = f"{given}, *, {bound}" if given and bound else (given or (f"*, {bound}" if bound else ""))
        return f"def {name}({parameters}):\n{facts.indentation}return {_body(facts, node)}\n"

    def _given(self, facts: Facts, node: ast.Lambda) -> str:
        """The text between `lambda` and the colon before its body."""
        whole, body = facts.text.get(node), facts.text.get(node.body)
        head = whole[: len(whole) - len(body)] if whole.endswith(body) else ast.unparse(node.args) + ":"
        return head.removeprefix("lambda").rstrip().rstrip("(").rstrip().removesuffix(":").strip()


def _is_handed_over(facts: Facts, node: ast.expr) -> bool:
    """Whether it is given to loaders and schedules alone, by a name too: what a module keeps is copied with the module,
    and in a copy a lambda goes on with the object that it was made by.
    """
    for up in facts.scopes.ancestors(node):
        if isinstance(up, ast.Call) and facts.names.resolve(up.func) in HAND_ON:
            return True
        if isinstance(up, (ast.stmt, ast.Lambda)):
            break
    target = up.targets[0] if isinstance(up, ast.Assign) and up.value is node and len(up.targets) == 1 else None
    scope = facts.scopes.scope_of(target).lookup(target.id) if isinstance(target, ast.Name) else None
    if scope is None or not isinstance(target, ast.Name) or isinstance(node, ast.Name):
        return False
    reads = list(facts.scopes.reads(target.id, scope))
    return bool(reads) and all(_is_handed_over(facts, r) for r in reads)


def _taken_from(facts: Facts, read: ast.Name) -> ast.expr | None:
    """`ACTS`, `ACTS[name]` or `ACTS.get(name)`, where a name is read; None where something is put into it."""
    up = facts.scopes.parents.get(read)
    if isinstance(up, ast.Subscript) and up.value is read:
        return up if isinstance(up.ctx, ast.Load) else None
    call = facts.scopes.parents.get(up) if isinstance(up, ast.Attribute) and up.attr == "get" else None
    return call if isinstance(call, ast.Call) and call.func is up else read


def _targets(facts: Facts, up: ast.AST | None, node: ast.AST) -> list[ast.expr]:
    """What an assignment gives a part of its value to; of `self.f, self.n = node, 3` the one in its place."""
    if isinstance(up, ast.AnnAssign):
        return [up.target]
    found: list[ast.expr] = []
    for target in up.targets if isinstance(up, ast.Assign) else ():
        value = up.value  # type: ignore[union-attr]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            around = {node, *facts.scopes.ancestors(node)}
            found += [t for t, v in zip(target.elts, value.elts, strict=True) if v in around]
        else:
            found.append(target)
    return found


def _can_be_moved(facts: Facts, node: ast.Lambda) -> bool:
    """Whether its lines, if it has several, mean the same at another margin, and no comment stands around its body."""
    if node.lineno == node.end_lineno:
        return True
    head = facts.text.get(node).replace(facts.text.get(node.body), "")
    texts = (n for n in walk(node) if isinstance(n, (ast.Constant, ast.JoinedStr)))
    begins = all(n.end_lineno == node.lineno for n in walk(node.args) if isinstance(n, (ast.arg, ast.expr)))
    return begins and not {"#", "\\"} & {*head} and all(n.lineno == n.end_lineno for n in texts)


def _body(facts: Facts, node: ast.Lambda) -> str:
    """What it gives, as it is written; over several lines at the margin of a function, and held together."""
    first, *more = lines_of(facts.text.get(node.body))
    if not more:
        return first
    at, unit = min(len(line) - len(line.lstrip()) for line in more if line.strip()), facts.indentation
    closes = more[-1].lstrip()[:1] in tuple(")]}")
    margin = unit if closes else unit * 2
    text = "\n".join([first, *(margin + line[at:] if line.strip() else line for line in more)])
    return text if is_expression(text) else f"({text})"


def _is_set_off(facts: Facts, node: ast.Lambda) -> bool:
    """Whether it has parentheses, of its own and between spaces, that a name needs no more: `f or (lambda: 0)`."""
    start, stop = facts.text.span(node)
    before, after = facts.text.text[:start], facts.text.text[stop:]
    return before.endswith((" (", "=(", ", (")) and bool(re.match(r"\)\s*([),:\]}#\n]|$| )", after))


def is_pickled(facts: Facts, node: ast.expr) -> bool:
    """Whether pickling meets a lambda, or a function by its name, where it stands."""
    return NameLambdas().pickled_as(facts, node) is not None


def is_hook_of_module(facts: Facts, call: ast.Call) -> bool:
    """`self.net.register_forward_hook(...)` in a module, which keeps what it is given."""
    if not (isinstance(call.func, ast.Attribute) and call.func.attr in HOOKS):
        return False
    holder = next((u for u in facts.scopes.ancestors(call) if isinstance(u, ast.ClassDef)), None)
    return holder in facts.classes.modules


def free_name(base: str, taken: set[str]) -> str:
    """A name that nothing has yet: `_transform`, `_transform_2`."""
    name, n = base, 2
    while name in taken:
        name, n = f"{base}_{n}", n + 1
    return name


def _key_of(made: ast.Dict, value: ast.AST) -> object:
    """The key of a value of a dictionary, where it is written down."""
    keys = (getattr(k, "value", None) for k, v in zip(made.keys, made.values, strict=True) if v is value)
    return next(keys, None)


def _is_made_of(facts: Facts, node: ast.AST, up: ast.AST | None) -> bool:
    """`dict(relu=node)`, `defaultdict(node)`, which keeps what makes its values, and `getattr(F, name, node)`."""
    if isinstance(up, ast.keyword):
        call = facts.scopes.parents.get(up)
        return up.arg not in KEYWORDS and isinstance(call, ast.Call) and getattr(call.func, "id", "") == "dict"
    if not isinstance(up, ast.Call):
        return False
    if isinstance(node, ast.Attribute) and up.func is node:
        return isinstance(node.value, ast.Dict) and node.attr == "get"
    if getattr(up.func, "id", "") == "getattr" or (isinstance(up.func, ast.Attribute) and up.func.attr == "get"):
        return node in up.args[1:] and up.args[-1] is node
    return facts.names.resolve(up.func) == "collections.defaultdict" and up.args[:1] == [node]


def _is_chosen(node: ast.AST, up: ast.AST | None) -> bool:
    """`{"relu": f, "none": lambda x: x}[name]`, `{...}.get(name)`"""
    if isinstance(up, ast.Attribute):
        return isinstance(node, ast.Dict) and up.attr == "get"
    made = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict"
    several = made or isinstance(node, (ast.Dict, ast.List, ast.Tuple))
    return isinstance(up, ast.Subscript) and up.value is node and several


def _is_own(facts: Facts, target: ast.expr) -> bool:
    return isinstance(target, ast.Attribute) and facts.classes.is_self(target.value)
