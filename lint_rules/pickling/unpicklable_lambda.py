"""PTM201: a lambda where it has to be pickled: workers and processes that are spawned cannot be given it."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from ..file import File
from ..rule import Finding, Rule
from .carried import ADD, carried


class UnpicklableLambda(Rule):
    code = "PTM201"
    name = "unpicklable-lambda"
    why = (
        "Pickle stores functions by name, and a lambda has none: spawned workers and processes fail to start with it, "
        "and an object that holds one cannot be saved. Define a function at the top of the module."
    )

    fix = "unsafe"
    settled_by = "name_lambdas"
    BAD = (
        """
        from torch.utils.data import DataLoader
        loader = DataLoader(dataset, collate_fn=lambda batch: batch)
        """,
        """
        import torch
        from torchvision import transforms
        double = transforms.Lambda(lambda x: 2 * x)
        """,
        """
        from torch import nn
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.activation = lambda x: x * x
        """,
        """
        from torch.optim.lr_scheduler import LambdaLR
        scheduler = LambdaLR(optimizer, lambda epoch: 0.95 ** epoch)
        """,
        """
        from torch.utils.data import DataLoader
        merge = lambda batch: batch
        loader = DataLoader(dataset, collate_fn=merge)
        """,
        """
        from torch.utils.data import DataLoader, Dataset
        class Data(Dataset):
            def __init__(self, steps):
                self.steps = steps
        steps = []
        steps.append(lambda x: 2 * x)
        loader = DataLoader(Data(steps))
        """,
        """
        from torch import nn
        class Net(nn.Module):
            def __init__(self, act=lambda x: x):
                super().__init__()
                self.act = act
        """,
        """
        from torch import nn
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(2, 2)
                self.fc.register_forward_hook(lambda m, i, o: 2 * o)
        """,
        """
        import torch
        from multiprocessing import Pool
        with Pool(4) as pool:
            tensors = pool.map(lambda path: torch.load(path, map_location="cpu"), paths)
        """,
        """
        import torch.multiprocessing as mp
        watch = mp.Process(target=lambda: print("on"))
        """,
        """
        from torch import nn
        class Net(nn.Module):
            def __init__(self, scales):
                super().__init__()
                self.steps = []
                for scale in scales:
                    self.steps.append(lambda x: scale * x)
        """,
    )
    GOOD = (
        """
        from torch.utils.data import DataLoader
        def keep(batch):
            return batch
        loader = DataLoader(dataset, collate_fn=keep)
        """,
        """
        import torch
        ordered = sorted(torch.load("a.pt", map_location="cpu"), key=lambda x: x.sum())
        """,
        """
        import threading
        import torch
        class Plain:
            def __init__(self):
                self.f, self.all = lambda x: x, []
                self.all.append(lambda x: 2 * x)
        watch = threading.Thread(target=lambda: print("on"))
        """,
        """
        from torch import nn
        class Net(nn.Module):
            def __init__(self, key=lambda x: x):
                super().__init__()
                self.names = sorted(NAMES, key=key)
        """,
        """
        import torch
        def seen(model, outputs):
            return model.fc.register_forward_hook(lambda m, i, o: outputs.append(o))
        """,
        """
        import torch
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor() as pool:
            tensors = pool.map(lambda path: torch.load(path, map_location="cpu"), paths)
        """,
    )

    def check_file(self, file: File) -> Iterator[Finding]:
        if not file.nodes.of(ast.Lambda):
            return
        named, several = _named(file)
        for value, what in carried(file):
            found = [value] if isinstance(value, ast.Lambda) else []
            if isinstance(value, ast.Name):
                found = named.get(value.id, []) + several.get(value.id, [])
            elif isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name):
                found = several.get(value.value.id, [])
            for lambda_ in found:
                f = file.nodes.parents[up] if isinstance(up := file.nodes.parents[lambda_], ast.arguments) else None
                if f is not None and f not in file.nodes.ancestors(value):
                    continue  # the default of another function's parameter
                yield self.finding(lambda_, f"a lambda in {what} cannot be pickled", file)


def _named(file: File) -> tuple[dict[str, list[ast.Lambda]], dict[str, list[ast.Lambda]]]:
    """The lambdas that each name is given last, and those that a list or dictionary of the name is given."""
    named: dict[str, list[ast.Lambda]] = {}
    several: defaultdict[str, list[ast.Lambda]] = defaultdict(list)
    for node in file.nodes.of(ast.Lambda):
        up, within = file.nodes.parents[node], False
        while isinstance(up, (ast.List, ast.Tuple, ast.Dict)):
            up, within = file.nodes.parents[up], True
        target: ast.AST | None = None
        if isinstance(up, ast.Assign):
            target = up.targets[0]
        elif isinstance(up, ast.AugAssign):
            target, within = up.target, True
        elif isinstance(up, ast.arguments):  # act=lambda x: x, which is kept as `self.act`
            names = [name for name, default in _defaults(up) if default is node]
            several[names[0] if names else ""].append(node)
        elif isinstance(up, ast.Call) and isinstance(up.func, ast.Attribute) and up.func.attr in ADD:
            target, within = up.func.value, True
        if isinstance(target, ast.Subscript):
            target, within = target.value, True
        if isinstance(target, ast.Name) and within:
            several[target.id].append(node)
        elif isinstance(target, ast.Name):
            named[target.id] = [node]
    return named, several


def _defaults(given: ast.arguments) -> Iterator[tuple[str, ast.expr | None]]:
    positional = [a.arg for a in (*given.posonlyargs, *given.args)]
    yield from zip(reversed(positional), reversed(given.defaults), strict=False)
    yield from zip((a.arg for a in given.kwonlyargs), given.kw_defaults, strict=True)
