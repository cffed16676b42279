"""Whether a tensor that a function is given holds measurements (floats) or numbers of things (tokens, labels, masks).

Its uses decide: what only floats can do, and what only whole numbers are for; without a sign its name does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .nodes import walk
from .script import once_a_file

if TYPE_CHECKING:
    from .script import Facts

Function = ast.FunctionDef | ast.AsyncFunctionDef

INTEGRAL = re.compile(
    r"(^|_)(idx|index|indices|ids?|tokens?|labels?|targets?|mask|words?|chars?|seq|inds?|src|trg|tgt|source|sentences?"
    r"|texts?|captions?|lengths?|lens|t|timesteps?|steps?|keep|valid)(_|s?$)"
)
FLOATING = re.compile(
    r"(^|_)(x\d?|xs|z\d?|h|q|k|v|im|imgs?|images?|pixels?|mu|logvar|logits?|feats?|features?|embs?|embeddings?|hidden"
    r"|outs?|outputs?|preds?|predictions?|real|fake|noise|samples?|waveforms?|audio|scores?|probs?|latents?)(_|s?$)"
)
# numbers of other precisions than float32, which a tensor that is made as that does not take from its input
OTHERS = re.compile(
    r"autocast|\bapex\b|\.half\(|bfloat16|float16|\bprecision\s*=\s*[\"']?(bf)?16"
    r"|\.double\(|torch\.(double|float64)\b|set_default_dtype"
)
DEPTH = 3  # of functions that are handed it on, and of other names
# methods that give the same numbers in another shape
SAME = set(
    "detach view view_as reshape flatten unflatten squeeze unsqueeze t transpose permute swapaxes expand expand_as "
    "contiguous narrow cuda cpu clone".split()
)
CASTS = {"long", "int", "bool", "byte", "float", "double", "half", "bfloat16", "type", "short"}
# what torch does with floats alone
ONLY_FLOATS = {
    "mean", "softmax", "log_softmax", "sigmoid", "tanh", "exp", "log", "sqrt", "rsqrt", "std", "var", "norm", "relu",
    "requires_grad_", "normalize", "layer_norm", "dropout", "gelu", "conv1d", "conv2d", "interpolate", "silu",
    "grid_sample", "leaky_relu", "elu", "erf", "cos", "sin", "avg_pool2d", "max_pool2d", "binary_cross_entropy",
}  # fmt: skip
OF_WHOLE_NUMBERS = re.compile(r"embed|one_hot|gather|emb$|wte$|wpe$|scatter|index_select|lookup")
EMBEDDINGS = {"Embedding", "EmbeddingBag"}
WITHOUT_FLOATS = {*EMBEDDINGS, "Sequential", "ModuleList", "ModuleDict", "Parameter", "Identity"}


def is_floating(facts: Facts, f: Function | ast.For, name: str) -> bool:
    """Whether the tensor of that name in the function is one of floats, as far as it shows."""
    if INTEGRAL.search(name):
        return False
    said = list(_said(facts, f, name, 0))
    # a letter says something of what a module or a loop over batches gets, nothing of what a function does
    letter = len(name) == 1 and not isinstance(f, ast.For) and facts.classes.holder(f) is None
    by_name = FLOATING.search(name) is not None and not letter
    return False not in said and (True in said or (None not in said and by_name))


def _said(facts: Facts, f: Function | ast.For, name: str, depth: int) -> Iterator[bool | None]:
    """What the uses of a name in a function say: True of floats, False of whole numbers, None where nothing shows."""
    for read in walk(f, ast.Name) if depth < DEPTH else ():
        if read.id == name:
            yield from _says(facts, f, read, depth)


def _says(facts: Facts, f: Function | ast.For, read: ast.Name, depth: int) -> Iterator[bool | None]:
    """What one use says, of a part or a view of it too: `self.embed(x[order].t())`."""
    node: ast.AST = read
    up = facts.scopes.parents.get(node)
    while isinstance(up, (ast.Subscript, ast.Attribute)):
        if isinstance(up, ast.Subscript) and up.value is not node:
            yield False  # an index
            return
        call = facts.scopes.parents.get(up)
        if isinstance(up, ast.Attribute):
            if up.attr in CASTS or up.attr in ONLY_FLOATS:
                yield up.attr not in CASTS
                return
            if up.attr in SAME and isinstance(call, ast.Call) and call.func is up:
                up = call
            elif up.attr not in ("T", "data"):
                return
        node, up = up, facts.scopes.parents.get(up)
    inverts = isinstance(up, ast.UnaryOp) and isinstance(up.op, ast.Invert)
    if inverts or (isinstance(up, ast.Compare) and any(isinstance(op, (ast.Eq, ast.NotEq)) for op in up.ops)):
        yield False
    elif isinstance(up, (ast.Assign, ast.For, ast.comprehension)):
        target = up.targets[0] if isinstance(up, ast.Assign) else up.target
        if isinstance(target, ast.Name) and target.id != read.id:  # words = x[:, 0], for word in x:
            yield from _said(facts, f, target.id, depth + 1)
    elif isinstance(up, ast.Call) or (isinstance(up, ast.keyword) and up.arg is not None):
        call = up if isinstance(up, ast.Call) else facts.scopes.parents[up]
        if isinstance(call, ast.Call) and node is not call.func:
            yield from _says_call(facts, f, call, node, depth)


def _says_call(
    facts: Facts, f: Function | ast.For, call: ast.Call, given: ast.AST, depth: int
) -> Iterator[bool | None]:
    """What it says to be given to a layer, to a function of torch's, or to what the file itself defines."""
    called, full = ast.unparse(call.func), facts.names.resolve(call.func) or ""
    holder = facts.classes.holder(f)
    own = called.removeprefix("self.") if called.startswith("self.") else ""
    layer = facts.classes.layers(holder).get(own) if own and holder is not None else None
    first = (
        [_layer(facts, v) for v in facts.devices.attribute_values.get(own, ())] if layer == "Sequential" else [layer]
    )
    if EMBEDDINGS & {*first} or (layer is None and OF_WHOLE_NUMBERS.search(called)):
        yield False
    elif layer is not None:
        yield from (True for kind in first if kind is not None and kind not in WITHOUT_FLOATS)
    elif full.startswith("torch."):
        yield from (True for _ in (1,) if full.rpartition(".")[2] in ONLY_FLOATS)
    else:
        functions = _own(facts, call, holder, own)
        if own and not functions:
            yield None  # a network of another file
        for g in functions:
            names = [a.arg for a in (*g.args.posonlyargs, *g.args.args)][facts.classes.holder(g) is not None :]
            named = next((k.arg for k in call.keywords if k.value is given), None)
            place = next((i for i, a in enumerate(call.args) if a is given), len(names))
            name = named or (names[place] if place < len(names) else None)
            if name is not None:
                yield from _said(facts, g, name, depth + 1)


def _own(facts: Facts, call: ast.Call, holder: ast.ClassDef | None, own: str) -> list[ast.FunctionDef]:
    """The functions of the file that a call may run: a method of the class, forward of a part of it, a function."""
    found = [facts.devices.function_of(call), facts.classes.methods(holder).get(own) if holder is not None else None]
    for made in facts.devices.attribute_values.get(own, ()) if own else ():
        name = made.func.id if isinstance(made, ast.Call) and isinstance(made.func, ast.Name) else None
        found += [facts.classes.methods(c).get("forward") for c in facts.classes.modules if c.name == name]
    return [g for g in found if isinstance(g, ast.FunctionDef)]


def _layer(facts: Facts, made: ast.expr) -> str | None:
    """The class of the first layer of `nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 2))`."""
    first = made.args[0] if isinstance(made, ast.Call) and made.args else None
    full = facts.names.resolve(first.func) or "" if isinstance(first, ast.Call) else ""
    return full.rpartition(".")[2] if full.startswith("torch.nn.") else None


@once_a_file
def has_other_precisions(facts: Facts) -> bool:
    """Whether a file of the project speaks of numbers of half the precision, or of twice."""
    texts = (facts.text.text, *(other.text for other in facts.others))
    return any(OTHERS.search(text) is not None for text in texts)
