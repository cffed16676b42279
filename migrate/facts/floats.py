"""Whether a tensor that a function is given holds measurements (floats) or numbers of things (tokens, labels, masks).

Its uses decide: what only floats can do, and what only whole numbers are for; without a sign its name does.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from .nodes import walk
from .script import once_a_file

if TYPE_CHECKING:
    from .script import Facts

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
CASTS = {"long", "int", "bool", "byte", "float", "double", "half", "bfloat16", "type", "short"}
# what torch does with floats alone
ONLY_FLOATS = {
    "mean", "softmax", "log_softmax", "sigmoid", "tanh", "exp", "log", "sqrt", "rsqrt", "std", "var", "norm", "relu",
    "requires_grad_", "normalize", "layer_norm", "dropout", "gelu", "conv1d", "conv2d", "interpolate", "silu",
    "grid_sample", "leaky_relu", "elu", "erf", "cos", "sin", "avg_pool2d", "max_pool2d", "binary_cross_entropy",
}  # fmt: skip
OF_WHOLE_NUMBERS = re.compile(r"embed|one_hot|gather|emb$|wte$|wpe$|scatter|index_select|lookup")
WITHOUT_FLOATS = {"Embedding", "EmbeddingBag", "Sequential", "ModuleList", "ModuleDict", "Parameter", "Identity"}


def is_floating(facts: Facts, f: ast.FunctionDef | ast.For, name: str) -> bool:
    """Whether the tensor of that name in the function is one of floats, as far as it shows."""
    if INTEGRAL.search(name):
        return False
    holder = facts.classes.holder(f)
    layers = facts.classes.layers(holder) if holder is not None else {}
    floats = bool(FLOATING.search(name))
    for n in walk(f):
        if not (isinstance(n, ast.Name) and n.id == name):
            continue
        said = _says(facts, n, layers)
        if said is False:
            return False
        floats = floats or said is True
    return floats


def _says(facts: Facts, read: ast.Name, layers: dict[str, str]) -> bool | None:
    """What one use says: floats, whole numbers, or nothing."""
    up = facts.scopes.parents.get(read)
    if isinstance(up, ast.Attribute):
        return False if up.attr in CASTS else True if up.attr in ONLY_FLOATS else None
    if isinstance(up, ast.Subscript):
        return False if up.slice is read else None
    if isinstance(up, ast.UnaryOp) and isinstance(up.op, ast.Invert):
        return False
    if isinstance(up, ast.Compare):
        return False if any(isinstance(op, (ast.Eq, ast.NotEq)) for op in up.ops) else None
    if not isinstance(up, ast.Call) or read not in up.args:
        return None
    called = ast.unparse(up.func)
    layer = layers.get(called.removeprefix("self.")) if called.startswith("self.") else None
    if layer in ("Embedding", "EmbeddingBag") or OF_WHOLE_NUMBERS.search(called):
        return False
    if layer is not None:
        return True if layer not in WITHOUT_FLOATS else None
    full = facts.names.resolve(up.func) or ""
    return True if full.startswith("torch.") and full.rpartition(".")[2] in ONLY_FLOATS else None


@once_a_file
def has_other_precisions(facts: Facts) -> bool:
    """Whether a file of the project speaks of numbers of half the precision, or of twice."""
    texts = (facts.text.text, *(other.text for other in facts.others))
    return any(OTHERS.search(text) is not None for text in texts)
