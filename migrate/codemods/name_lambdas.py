"""T7: a lambda that has to be pickled becomes a named function; what it takes from around it is bound with partial.

Pickling meets the functions given to data loaders, transforms and schedulers, and those that a module keeps.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator

from ..facts.arguments import default_of
from ..facts.nodes import walk
from ..facts.script import Facts
from ..facts.source import is_expression
from ..facts.text import lines_of
from ..report import Note
from ._bound_names import CELLS, unbindable
from .base import Change, Codemod, Insertion
from .rewrites import bare, source

KEYWORDS = {"collate_fn", "worker_init_fn", "lr_lambda", "target_transform", "transform"}
OF_LOADERS = {"collate_fn", "worker_init_fn", "lr_lambda"}  # as keys of options, too
TAKES = {
    "torchvision.transforms.Lambda", "torchvision.transforms.v2.Lambda", "torch.optim.lr_scheduler.LambdaLR",
    "torch.optim.lr_scheduler.MultiplicativeLR", "torchvision.transforms.Compose", "torchvision.transforms.v2.Compose",
    "torchvision.transforms.RandomApply", "torchvision.transforms.RandomChoice",
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
            if why is None and not _can_be_moved(facts, node):
                why = "its lines cannot be moved as they are"
            if why is None and free and (node.args.vararg or node.args.kwonlyargs or node.args.kwarg):
                why = f"`{free[0]}` is no argument that it has room for"
            if why is not None:
                self._tell(facts, node, why)
                continue
            name = free_name(base, taken | facts.new_names)
            facts.new_names.add(name)
            new = name
            if free:
                partial = partial or self._partial(facts)
                new = f"{partial}({name}, {', '.join(f'{n}={n}' for n in free)})"
            says = f"`{facts.short(node)}` became {name}(): a lambda cannot be pickled"
            definition = self._definition(facts, node, name, free)
            imports = ["import functools"] if free and partial == "functools.partial" and not has else []
            yield Change(
                node,
                self.edit(facts, node, says),
                bare(new) if _is_set_off(facts, node) else source(new),
                (),
                Insertion(self._top(facts, node), definition, imports),
            )

    def notes(self, facts: Facts) -> Iterator[Note]:
        yield from self.left

    def _tell(self, facts: Facts, node: ast.AST, why: str) -> None:
        line, column, _, _ = facts.text.key(node)
        says = f"`{facts.short(node)}` cannot be pickled, and is not rewritten: {why}"
        self.left.append(Note(line, column + 1, self.code, says))

    def pickled_as(self, facts: Facts, node: ast.expr) -> str | None:
        """The name of the function that a lambda becomes where pickling meets it."""
        if facts.in_formatted_string(node):
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
        if isinstance(up, ast.keyword):
            if up.arg in KEYWORDS:
                return f"_{up.arg}"
            up = facts.scopes.parents.get(up)
        if isinstance(up, ast.Call) and up.func is not node:
            return self._given_to(facts, up, node, depth)
        if isinstance(up, ast.AugAssign):
            return self._by_name(facts, up.target, depth, True)
        target = up.targets[0] if isinstance(up, ast.Assign) and len(up.targets) == 1 else None
        if isinstance(target, ast.Subscript):
            key = getattr(target.slice, "value", None)
            if key in OF_LOADERS:
                return f"_{key}"  # options["collate_fn"] = node
            return self._by_name(facts, target.value, depth, True)
        if isinstance(target, ast.Name):
            return self._by_name(facts, target, depth, up.value is not node)  # type: ignore[union-attr]
        if isinstance(target, ast.Attribute):
            holder = next((u for u in facts.scopes.ancestors(target) if isinstance(u, ast.ClassDef)), None)
            kept = holder in facts.classes.modules or _is_data_set(facts, holder)
            part = target.value
            while isinstance(part, ast.Attribute):
                part = part.value
            if isinstance(part, ast.Name) and part.id == "self":
                return f"_{target.attr.lstrip('_')}" if kept else None
            if target.attr in KEYWORDS or _is_kept(facts, target.value):
                return f"_{target.attr.lstrip('_')}"  # data.transform = node
        return None

    def _given_to(self, facts: Facts, up: ast.Call, node: ast.expr, depth: int) -> str | None:
        """What to call a function that is an argument of a call."""
        full = facts.names.resolve(up.func) or ""
        if full == "functools.partial" and up.args[0] is node:
            return self._place(facts, up, depth)
        if isinstance(up.func, ast.Name) and up.func.id == "setattr" and _is_kept_by(facts, up, node):
            return "_kept"
        if full in TAKES:
            return "_lr_lambda" if "lr_scheduler" in full else "_transform"
        if _is_data_set(facts, _class_named(facts, up.func)):
            return "_transform"
        if full == "torch.utils.data.DataLoader" and node in up.args[6:]:
            return "_collate_fn" if node is up.args[6] else "_worker_init_fn"
        f = up.func
        if isinstance(f, ast.Attribute) and f.attr in ("append", "insert", "extend") and depth < 3:
            return self._by_name(facts, f.value, depth, True)
        if isinstance(f, ast.Attribute) and f.attr == "setdefault" and up.args[1:] == [node]:
            key = getattr(up.args[0], "value", None)
            return f"_{key}" if key in OF_LOADERS else None
        return "_hook" if is_hook_of_module(facts, up) else None

    def _by_name(self, facts: Facts, target: ast.expr, depth: int, within: bool) -> str | None:
        """`warm = lambda e: ...` that is given to a schedule or a loader by its name; `within` for one of several."""
        scope = facts.scopes.scope_of(target).lookup(target.id) if isinstance(target, ast.Name) else None
        if scope is None or not isinstance(target, ast.Name) or depth > 2:
            return None
        if not within and len(scope.stores[target.id]) != 1:
            return None
        for read in facts.scopes.reads(target.id, scope):
            up = facts.scopes.parents.get(read)
            at = up if isinstance(up, ast.Subscript) and up.value is read and within else read
            if isinstance(at.ctx, ast.Load) and self._place(facts, at, depth + 1) is not None:
                return f"_{target.id.lstrip('_')}"
        return None

    def _by_default(self, facts: Facts, given: ast.arguments, node: ast.AST, depth: int) -> str | None:
        """`def __init__(self, act=lambda x: x):` and what becomes of `act`."""
        f = facts.scopes.parents.get(given)
        if depth > 2 or not isinstance(f, ast.FunctionDef):
            return None
        name = next((a for a in facts.scopes.by_node[f].params if default_of(f, a) is node), None)
        reads = facts.scopes.reads(name, facts.scopes.by_node[f]) if name is not None else []
        kept = any(self._place(facts, read, depth + 1) is not None for read in reads)
        return f"_{name.lstrip('_')}" if kept and name is not None else None

    def _free(self, facts: Facts, node: ast.Lambda) -> tuple[str | None, list[str]]:
        """What it takes from the functions around it, and why it cannot be moved."""
        own = {a.arg for a in walk(node.args) if isinstance(a, ast.arg)}
        inner = {n.id for n in walk(node.body) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
        if any(isinstance(n, ast.Lambda | ast.Yield | ast.Await | ast.NamedExpr) for n in walk(node.body)):
            return "there is more in it than a value", []
        around = facts.scopes.scope_of(node)
        for n in [m for d in node.args.defaults for m in walk(d)]:
            home = around.lookup(n.id) if isinstance(n, ast.Name) else None
            unknown = isinstance(n, ast.Name) and home is None and not hasattr(builtins, n.id)
            if unknown or (home is not None and home is not facts.scopes.module):
                return "its defaults take values from around it", []
        found: list[str] = []
        for n in walk(node.body):
            if not isinstance(n, ast.Name) or n.id in own | inner or n.id in found:
                continue
            scope = around.lookup(n.id)
            if n.id in ("self", *CELLS):
                return f"it reads `{n.id}`", []
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

    def _definition(self, facts: Facts, node: ast.Lambda, name: str, free: list[str]) -> str:
        given = facts.text.get(node.args) if hasattr(node.args, "lineno") else self._parameters(facts, node)
        bound = ", ".join(free)
        parameters = f"{given}, *, {bound}" if given and bound else (given or (f"*, {bound}" if bound else ""))
        return f"def {name}({parameters}):\n{facts.indentation}return {_body(facts, node)}\n"

    def _parameters(self, facts: Facts, node: ast.Lambda) -> str:
        """The text between `lambda` and the colon before its body."""
        whole, body = facts.text.get(node), facts.text.get(node.body)
        head = whole[: len(whole) - len(body)] if whole.endswith(body) else ast.unparse(node.args) + ":"
        return head.removeprefix("lambda").rstrip().rstrip("(").rstrip().removesuffix(":").strip()

    def _top(self, facts: Facts, node: ast.AST) -> int:
        """The first line of the statement of the module that holds it."""
        last: ast.AST = node
        for up in facts.scopes.ancestors(node):
            if up is facts.tree:
                break
            last = up
        decorators = getattr(last, "decorator_list", None)
        return min([last.lineno, *(d.lineno for d in decorators or [])])  # type: ignore[attr-defined]


def _can_be_moved(facts: Facts, node: ast.Lambda) -> bool:
    """Whether its lines, if it has several, mean the same at another margin, and no comment stands around its body."""
    if node.lineno == node.end_lineno:
        return True
    head = facts.text.get(node).replace(facts.text.get(node.body), "")
    texts = (n for n in walk(node) if isinstance(n, ast.Constant | ast.JoinedStr))
    begins = all(n.end_lineno == node.lineno for n in walk(node.args) if isinstance(n, ast.arg | ast.expr))
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
    """`dict(relu=node)`, and `defaultdict(node)`, which keeps what makes its values."""
    if isinstance(up, ast.keyword):
        call = facts.scopes.parents.get(up)
        return up.arg not in KEYWORDS and isinstance(call, ast.Call) and getattr(call.func, "id", "") == "dict"
    called = facts.names.resolve(up.func) if isinstance(up, ast.Call) else None
    return called == "collections.defaultdict" and up.args[:1] == [node]  # type: ignore[union-attr]


def _made(facts: Facts, node: ast.expr) -> ast.Call | None:
    """The call that gives a name its only value."""
    scope = facts.scopes.scope_of(node).lookup(node.id) if isinstance(node, ast.Name) else None
    given = facts.devices.assigned(node.id, scope) if scope is not None else None  # type: ignore[attr-defined]
    made = given[0] if given and len(given) == 1 else None
    return made if isinstance(made, ast.Call) else None


def _is_chosen(node: ast.AST, up: ast.AST | None) -> bool:
    """`{"relu": f, "none": lambda x: x}[name]`"""
    return isinstance(up, ast.Subscript) and up.value is node and isinstance(node, ast.Dict | ast.List | ast.Tuple)


def _is_kept_by(facts: Facts, call: ast.Call, node: ast.expr) -> bool:
    """`setattr(self, name, node)` in a module or a data set, `setattr(data, name, node)` of one."""
    if call.args[-1] is not node:
        return False
    holder = next((u for u in facts.scopes.ancestors(call) if isinstance(u, ast.ClassDef)), None)
    if isinstance(call.args[0], ast.Name) and call.args[0].id == "self":
        return holder in facts.classes.modules or _is_data_set(facts, holder)
    return _is_kept(facts, call.args[0])


def _is_kept(facts: Facts, owner: ast.expr) -> bool:
    """Whether the owner of an attribute is shown to be a data set, which is pickled with it."""
    made = _made(facts, owner)
    return made is not None and _is_data_set(facts, _class_named(facts, made.func))


def _is_data_set(facts: Facts, c: ast.ClassDef | None) -> bool:
    return c is not None and any((facts.names.resolve(b) or "").startswith("torch.utils.data.") for b in c.bases)


def _class_named(facts: Facts, func: ast.expr) -> ast.ClassDef | None:
    """The class of this file that a call makes an instance of."""
    name = func.id if isinstance(func, ast.Name) else ""
    return next((c for c in facts.walk(ast.ClassDef) if c.name == name), None)
