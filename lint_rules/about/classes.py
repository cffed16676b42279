"""Which classes of a file are modules, data sets or Lightning modules, through other classes of the file too."""

from __future__ import annotations

import ast
import re
from functools import cached_property

from ptmigrate.migrate.facts.names import Names
from ptmigrate.migrate.facts.nodes import FUNCTIONS, Function, Nodes, walk

LIGHTNING = ("pytorch_lightning.", "lightning.", "ptmigrate.runtime.")
MODULES = {"torch.nn.Module", "torch.nn.Sequential", "torch.nn.ModuleList", "torch.jit.ScriptModule"}
DATASETS = {
    "torch.utils.data.Dataset",
    "torch.utils.data.IterableDataset",
    "torch.utils.data.TensorDataset",
    "torchvision.datasets.VisionDataset",
    "torchvision.datasets.ImageFolder",
}
# What a base class is called that another file defines, and the method that shows the same.
FOREIGN_MODULE = re.compile(r"(Model|Module|Net|Network|Layer|Block|Encoder|Decoder|Head|Loss|Backbone)(Base|Mixin)?$")
STEPS = ("training_step", "validation_step", "test_step", "predict_step")
# Methods that a module runs for each batch.
BATCH_METHODS = {"forward", *STEPS}


class Classes:
    def __init__(self, nodes: Nodes, names: Names) -> None:
        self.nodes = nodes
        self.names = names

    @cached_property
    def kinds(self) -> dict[ast.ClassDef, str]:
        """ "module", "lightning", "dataset" or "datamodule" for each class that is one."""
        found: dict[ast.ClassDef, str] = {}
        by_name: dict[str, str] = {}
        own = {c.name for c in self.nodes.of(ast.ClassDef)}
        pending = [c for c in self.nodes.of(ast.ClassDef) if c.bases]
        grew = True
        while grew:
            grew = False
            for c in pending:
                if c in found:
                    continue
                kind = next(filter(None, (self._kind(base, by_name) for base in c.bases)), None)
                kind = kind or self._kind_by_shape(c, own)
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
        if full.startswith(LIGHTNING):
            return {"LightningModule": "lightning", "Module": "lightning", "LightningDataModule": "datamodule"}.get(
                last
            )
        if full in DATASETS or (full.startswith("torchvision.datasets.") and last[:1].isupper()):
            return "dataset"
        if full in MODULES or (full.startswith("torch.nn.") and "." not in full[9:] and last[:1].isupper()):
            return "module"
        return None

    def _kind_by_shape(self, c: ast.ClassDef, own: set[str]) -> str | None:
        """The kind of a class whose base another file defines, by the base's name and what the class has."""
        for base in c.bases:
            name = _last(base.value if isinstance(base, ast.Subscript) else base) or ""
            full = self.names.resolve(base) or ""
            if name in own or full.startswith(("torch.", "tensorflow.", "keras.", "flax.")):
                continue
            methods = {s.name: s for s in c.body if isinstance(s, FUNCTIONS)}
            if "training_step" in methods and "configure_optimizers" in methods:
                return "lightning"
            if "validation_step" in methods and name.endswith(("LightningModule", "LitModule", "PLModule")):
                return "lightning"
            if "forward" in methods and len(methods["forward"].args.args) > 1 and FOREIGN_MODULE.search(name):
                return "module"
            if "training_step" in methods and FOREIGN_MODULE.search(name):
                return "lightning"
            if "__getitem__" in methods and name.endswith("Dataset"):
                return "dataset"
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

    def reached_from(self, method: Function, roots: set[str]) -> str | None:
        """The first of some methods that is the method or calls it as `self.name(...)`, through others of the class."""
        holder = self.nodes.parents.get(method)
        if not isinstance(holder, ast.ClassDef):
            return None
        pending, seen = [method.name], {method.name}
        while pending:
            name = pending.pop()
            if name in roots:
                return name
            for caller in sorted(self._callers(holder).get(name, ())):
                if caller not in seen:
                    seen.add(caller)
                    pending.append(caller)
        return None

    def _callers(self, holder: ast.ClassDef) -> dict[str, set[str]]:
        """For each name that methods of a class call on `self`, the methods that do."""
        if holder not in self._callers_of:
            found: dict[str, set[str]] = {}
            for method in holder.body:
                if isinstance(method, FUNCTIONS):
                    for n in walk(method, ast.Call):
                        if isinstance(n.func, ast.Attribute) and _is_self(n.func.value):
                            found.setdefault(n.func.attr, set()).add(method.name)
            self._callers_of[holder] = found
        return self._callers_of[holder]

    @cached_property
    def _callers_of(self) -> dict[ast.ClassDef, dict[str, set[str]]]:
        return {}

    @cached_property
    def instances(self) -> dict[str, ast.ClassDef]:
        """The classes by name."""
        return {c.name: c for c in self.nodes.of(ast.ClassDef)}


def _last(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"
