"""What the rules about DataLoaders share: their options, and which of them evaluate."""

from __future__ import annotations

import ast
import re

from ptmigrate.migrate.facts.nodes import walk

from ..file import File, argument, argument_node, last_part, passes_unknown

POSITIONS = {
    name: i
    for i, name in enumerate(
        (
            "dataset",
            "batch_size",
            "shuffle",
            "sampler",
            "batch_sampler",
            "num_workers",
            "collate_fn",
            "pin_memory",
            "drop_last",
            "timeout",
            "worker_init_fn",
        )
    )
}
EVALUATION = re.compile(
    r"(^|_)(val|valid|validation|test|eval|evaluation|dev|infer|inference)(_|$|set|loader|data|dl)", re.I
)
# data sets that are made up, for tests and demonstrations, or that an agent fills while it trains
MADE_UP = re.compile(
    r"(Random|Dummy|Fake|Mock|Toy|Synthetic|Boring|Replay|Rollout|Experience|RL)[A-Z]\w*|^(random|dummy|fake|mock|toy)_"
)
TRAINING = re.compile(r"(^|_)train", re.I)


def is_loader(call: ast.Call, file: File) -> bool:
    return file.resolve(call.func) == "torch.utils.data.DataLoader"


def option(call: ast.Call, name: str) -> ast.expr | None:
    return argument(call, POSITIONS.get(name, 99), name)


def option_node(call: ast.Call, name: str) -> ast.expr | ast.keyword | None:
    """The same with its `name=`, where it has one."""
    return argument_node(call, POSITIONS.get(name, 99), name)


def is_left_out(call: ast.Call, name: str) -> bool:
    """Whether an option is certainly not given."""
    return option(call, name) is None and not passes_unknown(call)


def is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def serves_evaluation(call: ast.Call, file: File) -> bool:
    """Whether the loader is for validation or tests, by what it is called or what it loads."""
    names = [_assigned_name(call, file), last_part(option(call, "dataset") or call)]
    function = file.nodes.function_of(call)
    holder = file.nodes.parents.get(call)
    while isinstance(holder, (ast.List, ast.ListComp, ast.Tuple)):
        holder = file.nodes.parents.get(holder)
    if function is not None and isinstance(holder, ast.Return):
        names.append(function.name)
    if any(name and TRAINING.search(name) for name in names):
        return False
    return any(name and EVALUATION.search(name) for name in names)


def _assigned_name(call: ast.Call, file: File) -> str | None:
    parent = file.nodes.parents.get(call)
    if isinstance(parent, ast.Assign):
        return last_part(parent.targets[0])
    if isinstance(parent, ast.keyword):
        return parent.arg
    if isinstance(parent, ast.Dict) and call in parent.values:
        key = parent.keys[parent.values.index(call)]
        return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None
    return None


def holds_tensors(call: ast.Call, file: File) -> bool:
    """Whether the data set is in memory already, so that workers would only copy it."""
    dataset = option(call, "dataset")
    if isinstance(dataset, ast.Name):
        values = file.tensors.assigned(dataset)
        return any(isinstance(v, ast.Call) and _is_in_memory(v, file) for v in values)
    if isinstance(dataset, ast.Attribute) and MADE_UP.search(dataset.attr):
        return True
    return isinstance(dataset, (ast.List, ast.ListComp)) or (
        isinstance(dataset, ast.Call) and _is_in_memory(dataset, file)
    )


def _is_in_memory(call: ast.Call, file: File) -> bool:
    full = file.resolve(call.func) or last_part(call.func) or ""
    last = full.rpartition(".")[2]
    if last in ("TensorDataset", "zip", "list", "range", "FakeData") or MADE_UP.search(last):
        return True
    c = file.classes.instances.get(last)
    return c is not None and _only_indexes(c, file)


def _only_indexes(c: ast.ClassDef, file: File) -> bool:
    """A data set of this file whose `__getitem__` indexes what it holds, and calls torch at most."""
    for method in c.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__getitem__":
            calls = [n for s in method.body for n in walk(s, ast.Call)]
            names = [file.resolve(call.func) or "" for call in calls]
            return all(name.startswith("torch.") and name != "torch.load" for name in names)
    return False
