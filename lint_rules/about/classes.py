"""Which classes of a file are modules, data sets or Lightning modules, through other classes of the file too."""

from __future__ import annotations

import ast
from functools import cached_property

from ptmigrate.migrate.facts.names import Names
from ptmigrate.migrate.facts.nodes import FUNCTIONS, Function, Nodes

LIGHTNING = ("pytorch_lightning.", "lightning.", "ptmigrate.runtime.")
MODULES = {"torch.nn.Module", "torch.nn.Sequential", "torch.nn.ModuleList", "torch.jit.ScriptModule"}
DATASETS = {
    "torch.utils.data.Dataset",
    "torch.utils.data.IterableDataset",
    "torch.utils.data.TensorDataset",
    "torchvision.datasets.VisionDataset",
    "torchvision.datasets.ImageFolder",
}


class Classes:
    def __init__(self, nodes: Nodes, names: Names) -> None:
        self.nodes = nodes
        self.names = names

    @cached_property
    def kinds(self) -> dict[ast.ClassDef, str]:
        """ "module", "lightning" or "dataset" for each class that is one."""
        found: dict[ast.ClassDef, str] = {}
        by_name: dict[str, str] = {}
        pending = [c for c in self.nodes.of(ast.ClassDef) if c.bases]
        grew = True
        while grew:
            grew = False
            for c in pending:
                if c in found:
                    continue
                kind = next(filter(None, (self._kind(base, by_name) for base in c.bases)), None)
                if kind:
                    found[c] = by_name[c.name] = kind
                    grew = True
        return found

    def _kind(self, base: ast.expr, by_name: dict[str, str]) -> str | None:
        if isinstance(base, ast.Subscript):
            base = base.value  # Dataset[Sample]
        full = self.names.resolve(base)
        if full is None:
            return by_name.get(base.id) if isinstance(base, ast.Name) else None
        last = full.rpartition(".")[2]
        if full.startswith(LIGHTNING) and last in ("LightningModule", "Module"):
            return "lightning"
        if full in DATASETS or (full.startswith("torchvision.datasets.") and last[:1].isupper()):
            return "dataset"
        if full in MODULES or (full.startswith("torch.nn.") and "." not in full[9:] and last[:1].isupper()):
            return "module"
        return None

    def kind_of(self, node: ast.AST) -> str | None:
        """The kind of the class whose method the node stands in."""
        holder = self.nodes.class_of(node)
        return self.kinds.get(holder) if holder is not None else None

    def is_module(self, node: ast.AST) -> bool:
        return self.kind_of(node) in ("module", "lightning")

    def method_of(self, node: ast.AST) -> Function | None:
        """The method of a class that the node stands in, through functions nested in it."""
        found = None
        for up in self.nodes.ancestors(node):
            if isinstance(up, FUNCTIONS):
                found = up
            elif isinstance(up, ast.ClassDef):
                return found
        return None

    @cached_property
    def instances(self) -> dict[str, ast.ClassDef]:
        """The classes by name."""
        return {c.name: c for c in self.nodes.of(ast.ClassDef)}
