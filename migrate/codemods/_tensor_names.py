"""T2: which names of a function are tensors, by what the function asks of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from ..facts.arguments import argument, argument_at, is_static
from ..facts.arrays import is_array
from ..facts.loops import MODEL_NAME
from ..facts.nodes import walk
from ..facts.placed import LIKE
from ..facts.plain import VARIABLE
from ..facts.script import Facts
from ..facts.tensor_makers import TAKES_DEVICE
from ..facts.uses import Uses, uses
from ._kept_networks import is_kept_as_network

TENSOR_USE = {
    "size", "shape", "view", "device", "dtype", "dim", "float", "mean", "sum", "unsqueeze", "squeeze", "reshape",
    "permute", "cuda", "to", "new_zeros", "new_ones", "transpose", "t", "contiguous", "clone", "detach", "type_as",
    "expand",
    "ndim",
    "flatten", "norm", "pow", "requires_grad", "repeat", "chunk", "split", "argmax", "softmax", "is_cuda", "type",
}  # fmt: skip
# what an array of numpy is not asked for
NO_ARRAY_USE = {"size", "view", "unsqueeze", "permute", "cuda", "to", "new_zeros", "new_ones", "contiguous", "clone"}
PROPERTIES = {"shape", "device", "dtype", "ndim", "requires_grad", "is_cuda"}
OF_MODULES = {"to", "cuda", "float", "type", "device", "dtype", "norm"}  # attributes that a module may have as well

# what makes a tensor of numbers that are none yet
FROM_NUMBERS = {"torch.from_numpy", "torch.tensor", "torch.as_tensor", "torch.Tensor"}
FROM_NUMBERS |= {f"torch.{kind}Tensor" for kind in "Long Float Double Int Short Byte Bool Half".split()}

COUNTS = {"range", "torch.manual_seed", "torch.cuda.manual_seed"}
NO_TENSORS = {"int", "float", "bool", "str", "list", "tuple", "dict", "List", "Tuple", "Dict", "Sequence", "ndarray"}
OF_ARRAYS_ALONE = {"astype", "copy", "tobytes"}  # methods that arrays have, and lists, and tensors do not
WORD = re.compile(r"[A-Za-z_]\w*")
DEPTH = 3  # of functions that hand a name on

Function = ast.FunctionDef | ast.Lambda


def is_tensor(facts: Facts, f: Function, name: str, call: ast.expr) -> bool:
    if _is_none_by_default(f, name) or uses(f).as_container(name):
        return False
    if is_made_tensor_of(facts, f, name) and not _is_moved_before(facts, f, name, call):
        return False
    if isinstance(f, ast.FunctionDef) and (_is_said_otherwise(f, name) or _is_used_as_array(f, name)):
        return False
    scope = facts.scopes.by_node[f]
    if facts.placed.is_called(name, scope):
        return False  # a loss or a model, which may have no device of its own
    if name in scope.params and any(
        getattr(s, "lineno", 0) < call.lineno and not _still_tensor(facts, s, name) for s in scope.stores.get(name, ())
    ):
        return False
    of_options = {"device", "dtype"} if facts.devices.options.has(name) else set[str]()  # `cfg.device` is an option
    of_tensors = TENSOR_USE - of_options
    if MODEL_NAME.search(name) or is_kept_as_network(facts, f, name):
        of_tensors = of_tensors - OF_MODULES
    made = (c for c in uses(f).given_to.get(name, ()) if facts.names.resolve(c.func) in {VARIABLE, *LIKE})
    taken = any(getattr(argument_at(c, "data", 0), "id", None) == name for c in made)  # torch.ones_like(y)
    taken = taken or (name in scope.params and _is_operand(facts, f, name))
    if not (taken or used(uses(f), name) & of_tensors or _is_said(facts, f, name)):
        return False
    return not (isinstance(f, ast.FunctionDef) and is_array(facts, f, name))


def _is_operand(facts: Facts, f: Function, name: str) -> bool:
    """`F.linear(a, w)`, which takes tensors alone; `a @ b` in a module's forward."""
    forward = getattr(f, "name", "") == "forward" and facts.classes.holder(f) in facts.classes.modules
    products = (n for n in walk(f, ast.BinOp) if isinstance(n.op, ast.MatMult)) if forward else ()
    if any(is_named(side, name) for n in products for side in (n.left, n.right)):
        return True
    calls = (c for c in uses(f).given_to.get(name, ()) if is_named(c.args[0], name))
    return any((facts.names.resolve(c.func) or "").startswith("torch.nn.functional.") for c in calls)


def of_comprehension(facts: Facts, call: ast.Call) -> str | None:
    """The tensor that a comprehension around has at hand: `[torch.zeros(x.size(0)).cuda() for x in xs]`."""
    child: ast.AST = call
    for up in facts.scopes.ancestors(call):
        if isinstance(up, (ast.stmt, ast.Lambda)):
            return None
        if isinstance(up, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)) and child not in up.generators:
            own = uses(up)
            names = (n.id for g in up.generators for n in walk(g.target, ast.Name))
            found = next((n for n in names if used(own, n) & NO_ARRAY_USE and not own.as_container(n)), None)
            if found is not None:
                return found
        child = up
    return None


def _still_tensor(facts: Facts, store: ast.AST, name: str) -> bool:
    up = facts.scopes.parents.get(store)
    return isinstance(up, ast.Assign) and any(n.id == name for n in walk(up.value, ast.Name))


def is_made_tensor_of(facts: Facts, f: Function, name: str) -> bool:
    """`torch.LongTensor(name)`, `numpy.tile(name[0].T, 2)`: an array or a list, which is on no device."""
    made = (full for call in uses(f).made_of.get(name, ()) for full in _called(facts, call.func))
    return any(full.startswith("numpy.") or full in FROM_NUMBERS for full in made)


def _is_moved_before(facts: Facts, f: Function, name: str, call: ast.expr) -> bool:
    """Whether a name was last given a tensor that moves, above the call: `x = torch.FloatTensor(x).to(device)`."""
    last = max(facts.scopes.by_node[f].stores.get(name, ()), key=lambda n: getattr(n, "lineno", 0), default=None)
    s = facts.scopes.parents.get(last) if last is not None else None
    if not isinstance(s, ast.Assign) or facts.scopes.parents.get(s) is not f or not isinstance(s.value, ast.Call):
        return False
    return (s.end_lineno or s.lineno) < call.lineno and facts.devices.moved(s.value) is not None


def _called(facts: Facts, f: ast.expr) -> Iterator[str]:
    """The full name of a function, or of the types of tensors that a name is for: `Tensor = torch.cuda.FloatTensor`."""
    if (full := facts.names.resolve(f)) is not None:
        yield full.replace("torch.cuda.", "torch.")
    elif isinstance(f, ast.Name) and (home := facts.scopes.scope_of(f).lookup(f.id)) is not None:
        given = (n for v in facts.devices.assigned(f.id, home) or () for n in walk(v))
        kinds = ((facts.names.resolve(n) or "").replace("torch.cuda.", "torch.") for n in given)
        yield from (kind for kind in kinds if kind in FROM_NUMBERS)


def may_be_tensor(facts: Facts, f: ast.FunctionDef, name: str) -> bool:
    """Whether nothing that a function does with its one parameter says that this is no tensor."""
    if uses(f).as_container(name) or name in uses(f).gone_through:  # a list, or a tensor
        return False
    return not is_made_tensor_of(facts, f, name) and not is_number_or_list(facts, f, name)


def is_number_or_list(facts: Facts, f: ast.FunctionDef, name: str, depth: int = 0) -> bool:
    """Whether a name is written down as none of a tensor, or says how many or how large: `torch.randn(n, 8)`.

    Also where it is handed on to a function of this file, or another method, that uses it so.
    """
    if _is_said_otherwise(f, name) or _is_used_as_array(f, name):
        return True
    for n in walk(f):
        if isinstance(n, ast.Slice) and any(is_named(b, name) for b in (n.lower, n.upper, n.step)):
            return True
        if isinstance(n, ast.Call) and any(is_named(s, name) for s in _sizes(facts, n)):
            return True
    calls = walk(f, ast.Call) if depth < DEPTH else ()
    handed = (to for c in calls for to in handed_to(facts, f, c, lambda value: is_named(value, name)))
    return any(is_number_or_list(facts, g, own, depth + 1) for g, own in handed)


def handed_to(
    facts: Facts, f: ast.AST, call: ast.Call, is_it: Callable[[ast.expr | None], bool]
) -> Iterator[tuple[ast.FunctionDef, str]]:
    """The parameters that get a value which a function of this file, another method or a layer of it is called with."""
    own = facts.classes.holder(f)
    of_object = isinstance(call.func, ast.Attribute) and own is not None and facts.classes.is_self(call.func.value)
    made: list[ast.AST | None] = [facts.devices.function_of(call)]
    if isinstance(call.func, ast.Attribute) and own is not None and of_object:
        made = [facts.classes.methods(own).get(call.func.attr) or _forward(facts, call.func.attr)]
    for g in made:
        if isinstance(g, ast.FunctionDef):
            bound = of_object and not is_static(g)
            names = (a.arg for a in (*g.args.posonlyargs, *g.args.args, *g.args.kwonlyargs))
            yield from ((g, name) for name in names if is_it(argument(call, g, name, bound)))


def _forward(facts: Facts, attribute: str) -> ast.AST | None:
    """What is called where a layer is, one of a class of this file alone: `self.conv = Conv(3)`, `self.conv(x)`."""
    made = facts.devices.attribute_values.get(attribute, [])
    names = {v.func.id if isinstance(v, ast.Call) and isinstance(v.func, ast.Name) else None for v in made}
    found = [facts.classes.methods(c).get("forward") for c in facts.classes.modules if c.name in names]
    return found[0] if len(names) == 1 and len(found) == 1 else None


def _sizes(facts: Facts, call: ast.Call) -> Iterator[ast.expr]:
    """What says how often, or how large a tensor is made."""
    full = facts.names.resolve(call.func) or (call.func.id if isinstance(call.func, ast.Name) else None)
    if full in COUNTS | TAKES_DEVICE:
        for a in (*call.args, *(k.value for k in call.keywords if k.arg == "size")):
            parts = a.elts if isinstance(a, (ast.Tuple, ast.List)) else [a]
            yield from (part.value if isinstance(part, ast.Starred) else part for part in parts)


def _is_said_otherwise(f: ast.FunctionDef, name: str) -> bool:
    """Whether an annotation or a docstring says that a parameter is, or may be, no tensor: `image (np.ndarray)`."""
    every = (*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs)
    written = next((a.annotation for a in every if a.arg == name), None)
    if written is not None and not NO_TENSORS.isdisjoint(WORD.findall(ast.unparse(written))):
        return True
    said = ast.get_docstring(f, clean=False) or ""
    kind = rf"\b{name}\b`?\s*(\([^)]*|:\s*[\w.`~]*)\bndarray\b"
    return "ndarray" in said and re.search(kind, said) is not None


def _is_said(facts: Facts, f: Function, name: str) -> bool:
    """Whether an annotation says that a parameter is a tensor: `edge_index: torch.Tensor`."""
    every = (*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs)
    said = next((a.annotation for a in every if a.arg == name), None)
    return said is not None and facts.names.resolve(said) == "torch.Tensor"


def _is_used_as_array(f: ast.FunctionDef, name: str) -> bool:
    """Whether a name is asked for what no tensor can: `image.astype("float32")`, `image[:, :, ::-1]`."""
    own = uses(f)
    if own.methods.get(name, set()) & OF_ARRAYS_ALONE:
        return True
    slices = (n for i in own.indices.get(name, ()) for n in getattr(i, "elts", [i]) if isinstance(n, ast.Slice))
    steps = (n.step for n in slices)
    return any(isinstance(step, ast.UnaryOp) and isinstance(step.op, ast.USub) for step in steps)


def is_named(node: ast.AST | None, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_none_by_default(f: Function, name: str) -> bool:
    positional = [*f.args.posonlyargs, *f.args.args]
    with_default = {a.arg for a in positional[len(positional) - len(f.args.defaults) :]}
    pairs = zip(f.args.kwonlyargs, f.args.kw_defaults, strict=True)
    return name in with_default | {a.arg for a, default in pairs if default is not None}


def used(own: Uses, name: str) -> set[str]:
    """What is asked of a name: properties, and methods that are called, or `options.cuda` would be a tensor's."""
    return (own.attributes.get(name, set()) & PROPERTIES) | own.methods.get(name, set())
