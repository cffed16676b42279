"""What a function or a loop does with each of its names, found in one walk."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from .matched import takes_apart
from .nodes import once_a_node, walk

OF_CONTAINERS = {"items", "keys", "append", "parameters"}
CONTAINERS = {"list", "tuple", "dict", "Sequence", "Mapping"}
# what a tensor has that is not called; other fields are those of an object that holds tensors, as a batch of graphs is
OF_TENSORS = set(
    """
    shape device dtype ndim requires_grad is_cuda data grad grad_fn T mT H mH real imag is_leaf layout itemsize nbytes
    is_sparse is_quantized is_meta is_mps is_cpu retains_grad names
""".split()
)
# what gives an array of an array, and a tensor of a tensor: `size`, `tolist` and `numpy` do not
OF_ARRAYS = set("astype clip copy flatten imag ravel real repeat reshape round squeeze swapaxes T transpose".split())


@dataclass
class Uses:
    """By name: the attributes read of it, those that are called, what it is indexed by, the calls that it is given to,
    and those that are given what is an array or a list where it is one; and names that are unpacked, or asked whether
    they are a list, gone through by a loop, or compared by `is`.
    """

    attributes: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    methods: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    indices: dict[str, list[ast.expr]] = field(default_factory=lambda: defaultdict(list))
    given_to: dict[str, list[ast.Call]] = field(default_factory=lambda: defaultdict(list))
    made_of: dict[str, list[ast.Call]] = field(default_factory=lambda: defaultdict(list))
    unpacked: set[str] = field(default_factory=set)
    compared: set[str] = field(default_factory=set)
    gone_through: set[str] = field(default_factory=set)

    def as_container(self, name: str) -> bool:
        """Whether a name is used as a dictionary, a list, a model, an object, or something that may be None."""
        if name in self.unpacked or name in self.compared or OF_CONTAINERS & self.attributes.get(name, set()):
            return True
        if self.attributes.get(name, set()) - self.methods.get(name, set()) - OF_TENSORS:
            return True
        return any(isinstance(i, ast.Constant) and isinstance(i.value, str) for i in self.indices.get(name, ()))


@once_a_node
def uses(f: ast.AST) -> Uses:
    """The uses of names in a node and below."""
    found = Uses()
    for n in walk(f):
        if isinstance(n, ast.Attribute):
            if isinstance(n.value, ast.Name):
                found.attributes[n.value.id].add(n.attr)
        elif isinstance(n, ast.Subscript):
            if isinstance(n.value, ast.Name):
                found.indices[n.value.id].append(n.slice)
        elif isinstance(n, ast.Call):
            if isinstance(n.func, ast.Attribute) and isinstance(n.func.value, ast.Name):
                found.methods[n.func.value.id].add(n.func.attr)
            for a in n.args:
                if isinstance(a, ast.Name):
                    found.given_to[a.id].append(n)
                    if a is n.args[0] and _asks_for_container(n):
                        found.unpacked.add(a.id)
                for name in parts_of_arrays(a):
                    found.made_of[name].append(n)
        elif isinstance(n, ast.Assign):
            if isinstance(n.value, ast.Name) and any(isinstance(t, ast.Tuple) for t in n.targets):
                found.unpacked.add(n.value.id)
        elif isinstance(n, (ast.For, ast.comprehension)):
            if isinstance(n.iter, ast.Name):
                found.gone_through.add(n.iter.id)
        elif isinstance(n, ast.Compare) and isinstance(n.left, ast.Name) and isinstance(n.ops[0], (ast.Is, ast.IsNot)):
            found.compared.add(n.left.id)
        elif isinstance(n, ast.Match) and isinstance(n.subject, ast.Name) and takes_apart(n):
            found.unpacked.add(n.subject.id)
    return found


def _asks_for_container(call: ast.Call) -> bool:
    """`isinstance(batch, (list, tuple))`"""
    if not isinstance(call.func, ast.Name) or call.func.id != "isinstance" or len(call.args) != 2:
        return False
    kinds = (getattr(n, "id", getattr(n, "attr", "")) for n in walk(call.args[1]))
    return not CONTAINERS.isdisjoint(kinds)


def parts_of_arrays(node: ast.expr) -> Iterator[str]:
    """The x, y and z of `[x.reshape(1, -1)[0] / 255, y, z.T]`: what it is on the CPU shows that they are."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Subscript):
        yield from parts_of_arrays(node.value)
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in OF_ARRAYS:
            yield from parts_of_arrays(node.func.value)
    elif isinstance(node, ast.Attribute):
        if node.attr in OF_ARRAYS:
            yield from parts_of_arrays(node.value)
    elif isinstance(node, ast.UnaryOp):
        yield from parts_of_arrays(node.operand)
    elif isinstance(node, ast.BinOp):
        yield from parts_of_arrays(node.left)
        yield from parts_of_arrays(node.right)
    elif isinstance(node, (ast.List, ast.Tuple)):
        for e in node.elts:
            yield from parts_of_arrays(e)
