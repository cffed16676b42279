"""Where a value is carried to another process: keywords, attributes and calls that the pickling rules share."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..data.loaders import POSITIONS, option
from ..file import File, is_self, last_part

# keywords whose value travels to the workers, or with the scheduler
KEYWORDS = {
    "collate_fn": "the DataLoader's workers",
    "worker_init_fn": "the DataLoader's workers",
    "transform": "the DataLoader's workers",
    "transforms": "the DataLoader's workers",
    "target_transform": "the DataLoader's workers",
    "lr_lambda": "a process that is given the scheduler",
}
HOLDERS = {"dataset": "data set", "datamodule": "data module"}
SCHEDULERS = ("torch.optim.lr_scheduler.LambdaLR", "torch.optim.lr_scheduler.MultiplicativeLR")
TRANSFORMS = ("torchvision.transforms.Lambda", "torchvision.transforms.v2.Lambda")
# a module keeps the hooks that it registers
HOOKS = (
    "register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook", "register_backward_hook",
    "register_full_backward_pre_hook", "register_load_state_dict_post_hook", "register_state_dict_pre_hook",
)  # fmt: skip


# a pool's methods, which pickle the function that they are given under every way of starting processes
POOLED = (
    "map", "map_async", "imap", "imap_unordered", "starmap", "starmap_async", "apply", "apply_async", "submit",
)  # fmt: skip
POOLS = ("multiprocessing.Pool", "multiprocessing.pool.Pool", "torch.multiprocessing.Pool",
         "concurrent.futures.ProcessPoolExecutor")  # fmt: skip
SPAWNS = ("torch.multiprocessing.spawn", "torch.multiprocessing.start_processes")
STARTED = ("torch.multiprocessing.Process", "multiprocessing.Process")
ADD = ("append", "insert", "extend")


def carried(file: File) -> Iterator[tuple[ast.expr, str]]:
    """Values that are pickled, and what for: arguments of loaders, data sets, transforms and schedulers, attributes."""
    for k in file.nodes.of(ast.keyword):
        if k.arg in KEYWORDS:
            call = file.nodes.parents[k]
            if isinstance(call, ast.Call) and _takes(call, k.arg, file):
                for value in _each(k.value):
                    yield value, f"`{k.arg}`, which goes to {KEYWORDS[k.arg]},"
    for call in file.calls_named("Lambda", "LambdaLR", "MultiplicativeLR", "DataLoader"):
        full = file.resolve(call.func)
        if full in TRANSFORMS and call.args and not _applied_by_hand(call, file):
            yield call.args[0], "a transform"
        elif full in SCHEDULERS and len(call.args) > 1:
            for value in _each(call.args[1]):
                yield value, "a scheduler, which keeps no such function in its state,"
        elif full == "torch.utils.data.DataLoader" and len(call.args) > POSITIONS["collate_fn"]:
            for name in ("collate_fn", "worker_init_fn"):
                given = option(call, name)
                if given is not None and given in call.args:
                    yield given, f"`{name}`, which goes to {KEYWORDS[name]},"
    yield from _processes(file)
    yield from _options(file)
    yield from _hooks(file)
    yield from _given_to_data_sets(file)
    yield from _attributes(file)


def _processes(file: File) -> Iterator[tuple[ast.expr, str]]:
    """`mp.spawn(f)`, `Process(target=f)`, and `pool.map(f, xs)` of a name that a pool of processes is given."""
    for call in file.calls_named("spawn", "start_processes"):
        fn = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "fn"), None)
        if fn is not None and file.resolve(call.func) in SPAWNS:
            yield fn, "spawned processes"
    for call in file.calls_named("Process"):
        target = next((k.value for k in call.keywords if k.arg == "target"), None)
        if target is not None and file.resolve(call.func) in STARTED:
            yield target, "the target of a process, which a spawned one is given,"
    pools = [c for c in file.calls_named("Pool", "ProcessPoolExecutor") if file.resolve(c.func) in POOLS]
    if not pools:
        return
    names = {n for c in pools for n in _names_given(c, file)}
    for method in POOLED:
        for call in file.nodes.calls.get(method, ()):
            pool = call.func.value if isinstance(call.func, ast.Attribute) else None
            if call.args and ((isinstance(pool, ast.Name) and pool.id in names) or pool in pools):
                yield call.args[0], "a pool of processes"


def _names_given(made: ast.Call, file: File) -> Iterator[str]:
    """`pool = Pool()`, `with Pool() as pool:`"""
    up = file.nodes.parents.get(made)
    targets = up.targets if isinstance(up, ast.Assign) else [getattr(up, "optional_vars", None)]
    yield from (t.id for t in targets if isinstance(t, ast.Name))


def _options(file: File) -> Iterator[tuple[ast.expr, str]]:
    """`{"collate_fn": f}`, the options of a loader."""
    for node in file.nodes.of(ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            name = key.value if isinstance(key, ast.Constant) else None
            if name in ("collate_fn", "worker_init_fn", "lr_lambda"):
                yield value, f"`{name}`, which goes to {KEYWORDS[str(name)]},"


def _hooks(file: File) -> Iterator[tuple[ast.expr, str]]:
    """What a module registers as a hook of itself or of its parts, and keeps."""
    for name in HOOKS if file.classes.kinds else ():
        for call in file.nodes.calls.get(name, ()):
            if call.args and file.classes.is_module(call):
                yield call.args[0], "a hook, which the module keeps,"


def _given_to_data_sets(file: File) -> Iterator[tuple[ast.expr, str]]:
    """What a data set of this file is given by position and keeps: `Data(root, tf)` after `self.tf = tf`."""
    kept: dict[str, dict[int, str]] = {}
    for target, value, statement in file.kept if file.classes.kinds else ():
        method, holder = file.classes.method_of(statement), file.nodes.class_of(statement)
        if (
            holder is None
            or method is None
            or method.name != "__init__"
            or file.classes.kind_of(statement) != "dataset"
        ):
            continue
        given = [a.arg for a in method.args.args[1:]]
        if isinstance(value, ast.Name) and value.id in given:
            kept.setdefault(holder.name, {})[given.index(value.id)] = target.attr
    for call in file.calls_named(*kept) if kept else ():
        places = kept[call.func.id] if isinstance(call.func, ast.Name) else {}
        for i, argument in enumerate(call.args):
            if i in places:
                for value in _each(argument):
                    yield value, f"`self.{places[i]}` of a data set"


def _takes(call: ast.Call, name: str, file: File) -> bool:
    """Whether a call may be one of a loader, a data set or a scheduler; a transform is also taken by much else."""
    last = last_part(call.func) or ""
    if last in ("partial", "add_argument", "add"):
        return False
    if "transform" not in name:
        return True
    full = file.resolve(call.func)
    return last[:1].isupper() and (full is None or "data" in full.lower())


def _applied_by_hand(call: ast.Call, file: File) -> bool:
    """`transform = Compose([..., Lambda(...)])` that is only ever called, and given to nobody."""
    statement = file.nodes.statement_of(call)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return False
    name, scope = statement.targets[0].id, file.tensors.scope(statement)
    uses = [
        n
        for n in file.nodes.of(ast.Name)
        if n.id == name and isinstance(n.ctx, ast.Load) and file.tensors.scope(n) is scope
    ]
    parents = [(n, file.nodes.parents[n]) for n in uses]
    return bool(uses) and all(isinstance(p, ast.Call) and p.func is n for n, p in parents)


def _attributes(file: File) -> Iterator[tuple[ast.expr, str]]:
    if not file.classes.kinds:
        return
    for target, value, statement in file.kept:
        kind = file.classes.kind_of(statement)
        if kind:
            for part in _each(value):
                yield part, f"`self.{target.attr}` of a {HOLDERS.get(kind, 'module')}"
    for call in (c for name in ADD for c in file.nodes.calls.get(name, ())):
        kept = call.func.value if isinstance(call.func, ast.Attribute) else None
        if isinstance(kept, ast.Attribute) and is_self(kept.value) and call.args and file.classes.kind_of(call):
            kind = HOLDERS.get(str(file.classes.kind_of(call)), "module")
            yield from ((part, f"`self.{kept.attr}` of a {kind}") for part in _each(call.args[-1]))


def _each(value: ast.expr) -> Iterator[ast.expr]:
    """What a value holds: the elements of a list, the values of a dictionary, both sides of a choice."""
    parts: list[ast.expr] = []
    if isinstance(value, (ast.List, ast.Tuple)):
        parts = value.elts
    elif isinstance(value, (ast.Dict, ast.BoolOp)):
        parts = value.values
    elif isinstance(value, ast.IfExp):
        parts = [value.body, value.orelse]
    elif isinstance(value, ast.BinOp):  # [f] * 2, steps + [f]
        parts = [value.left, value.right]
    elif isinstance(value, ast.Call) and last_part(value.func) in ("dict", "defaultdict"):
        parts = [*value.args[:1], *(k.value for k in value.keywords)]
    if not parts:
        yield value
    for part in parts:
        yield from _each(part)
