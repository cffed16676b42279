"""T3: what a module keeps on the CPU, where it meets what was brought there: `self.seen += x.cpu()` is no buffer.

A buffer that is read as an array is brought to the CPU there, where the tensor was that it is made of.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from ..facts.nodes import FUNCTIONS
from ..facts.script import Facts
from ..facts.tensor_makers import is_open
from ..facts.tensor_methods import METHODS, VIEWS
from ._at_hand import meetings
from .host_reads import is_number

SAME = METHODS - {"cpu", "cuda", "to", "type", "type_as"}  # of a tensor: another one on the same device


def met_there(facts: Facts, c: ast.ClassDef, name: str, brought: Callable[[Facts, ast.expr], bool]) -> ast.expr | None:
    """What an attribute of a module's own meets on the CPU, in one operation; None where nothing shows."""
    if not {"cpu", "to", "numpy"} & facts.attributes.keys():
        return None
    for a in _own(facts, c, name):
        met = [o for holder, others in meetings(facts, a) if not _is_moved(facts, a, holder) for o in others]
        up = facts.scopes.parents.get(a)
        if isinstance(up, ast.AugAssign) and up.target is a:
            met.append(up.value)
        call = facts.scopes.parents.get(up) if isinstance(up, ast.Attribute) and up.attr in SAME - {"copy_"} else None
        if isinstance(call, ast.Call) and call.func is up:
            met += call.args
        found = next((o for o in met if brought(facts, o)), None)
        if found is not None:
            return found
    return None


def met_as_made(facts: Facts, c: ast.ClassDef, name: str) -> ast.expr | None:
    """A tensor that an attribute meets in a method that is given nothing, and so nothing that would say where the
    tensor is to be: `self.log = torch.cat((self.log, torch.zeros(1, 2)))` of a loss module's own record.
    """
    for a in _own(facts, c, name):
        f = next((up for up in facts.scopes.ancestors(a) if isinstance(up, FUNCTIONS)), None)
        if f is None or f.name == "__init__" or len(f.args.args) > 1 or f.args.vararg is not None:
            continue
        for holder, others in meetings(facts, a):
            made = (n for n in others if isinstance(n, ast.Call) and is_open(facts, n) and not is_number(n))
            if not _is_moved(facts, a, holder) and (there := next(made, None)) is not None:
                return there
    return None


def read_as_arrays(facts: Facts) -> Iterator[ast.expr]:
    """The `self.total[0]` of `self.total[0].numpy()` and of `np.log(self.total[0])`, of what has become a buffer."""
    for c, name in sorted(facts.buffers, key=lambda buffer: (buffer[0].lineno, buffer[1])):
        for a in _own(facts, c, name):
            node: ast.expr = a
            while (above := _same_place(facts, node)) is not None:
                node = above
            up = facts.scopes.parents.get(node)
            call = facts.scopes.parents.get(up) if isinstance(up, (ast.Attribute, ast.keyword)) else up
            if not isinstance(call, ast.Call):
                continue
            if isinstance(up, ast.Attribute):
                reads = up.attr == "numpy" and not call.args and not call.keywords
            else:
                reads = node is not call.func and (facts.names.resolve(call.func) or "").startswith("numpy.")
            if reads:
                yield node


def _own(facts: Facts, c: ast.ClassDef, name: str) -> Iterator[ast.Attribute]:
    for a in facts.attributes.get(name, ()):
        if facts.classes.is_self(a.value) and c in facts.scopes.ancestors(a):
            yield a


def _is_moved(facts: Facts, a: ast.Attribute, holder: ast.AST) -> bool:
    """Whether what is met is what `self.total.cpu()` gives, and so nothing that says where the total is."""
    for up in facts.scopes.ancestors(a):
        if up is holder:
            return False
        if isinstance(up, ast.Attribute) and up.attr not in SAME | VIEWS:
            return True
    return False


def _same_place(facts: Facts, node: ast.expr) -> ast.expr | None:
    """What is made of a tensor where it is: the `x[0]` of x, the `x.t()` of x."""
    up = facts.scopes.parents.get(node)
    if isinstance(up, ast.Subscript) and up.value is node:
        return up
    if isinstance(up, ast.Attribute) and up.attr in VIEWS:
        return up
    call = facts.scopes.parents.get(up) if isinstance(up, ast.Attribute) and up.attr in SAME else None
    return call if isinstance(call, ast.Call) and call.func is up else None
