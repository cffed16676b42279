"""What layers of torch make of a value: how many dimensions it has, and how wide its last one is."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .arguments import argument_at, is_none
from .batch_values import Value, replace
from .batch_views import last_name

if TYPE_CHECKING:
    from .script import Facts

# modules of torch whose output has as many dimensions as their input; what others have, however many they are given
SAME_RANK = set(
    "Linear LazyLinear Identity Dropout LayerNorm RMSNorm BatchNorm1d BatchNorm2d GroupNorm InstanceNorm2d ReLU "
    "LeakyReLU PReLU ReLU6 ELU SELU GELU SiLU Mish Tanh Sigmoid Softplus Softmax LogSoftmax Hardswish MaxPool1d "
    "AvgPool1d".split()
)
RANKS = {
    "TransformerEncoder": 3, "TransformerEncoderLayer": 3, "TransformerDecoder": 3,
    "TransformerDecoderLayer": 3, "MultiheadAttention": 3, "Conv1d": 3, "Conv2d": 3, "Conv3d": 3, "ConvTranspose2d": 3,
    "MaxPool2d": 3, "AvgPool2d": 3, "AdaptiveAvgPool2d": 3, "Upsample": 3,
}  # fmt: skip
RECURRENT = {"LSTM", "GRU", "RNN"}
# where `batch_first` stands
ORDER_AT = {
    "LSTM": 4, "GRU": 4, "RNN": 5, "MultiheadAttention": 8, "TransformerEncoderLayer": 6, "TransformerEncoder": 6,
}  # fmt: skip


def reads_as_series(facts: Facts, made: ast.Call, given: Value) -> bool:
    """Whether a layer for series is given the samples as one series: without `batch_first`, or by `z[None]` with it.

    Where the dimensions show: of two, all of them are those of one series. What comes straight from the loop has its
    samples first, or the batches are of steps, and no part of one is a series.
    """
    kind = (facts.names.resolve(made.func) or "").rpartition(".")[2]
    if kind not in ORDER_AT or given.holds or given.picked or given.kind != "batch":
        return False
    if given.rank == 2 and given.dim == 0:
        return True
    if kind == "TransformerEncoder":
        layer = made.args[0] if made.args else None
        scope = facts.scopes.scope_of(layer).lookup(layer.id) if isinstance(layer, ast.Name) else None
        values = facts.devices.assigned(layer.id, scope) if scope is not None else [layer]  # type: ignore[union-attr]
        layer = values[0] if values and len(values) == 1 else None
        if not isinstance(layer, ast.Call):
            return False
        made, kind = layer, "TransformerEncoderLayer"
    first = argument_at(made, "batch_first", ORDER_AT[kind])
    if first is not None and not isinstance(first, ast.Constant):
        return False
    if any(k.arg is None for k in made.keywords):
        return False
    if first is not None and first.value:
        return given.dim == 1
    return given.dim == 0 and (given.apart or given.rank == 3 or given.straight)


def normalises_by_batch(call: ast.Call) -> bool:
    """`F.batch_norm(x, None, None)`, or with `training=True`: by what the batch itself has."""
    mean, training = argument_at(call, "running_mean", 1), argument_at(call, "training", 5)
    return (mean is not None and is_none(mean)) or (isinstance(training, ast.Constant) and training.value is True)


def layered(facts: Facts, made: ast.Call, given: Value, found: Value) -> Value:
    """`found`, with what shows of a layer that was given a value."""
    kind = (facts.names.resolve(made.func) or "").rpartition(".")[2]
    if kind == "Embedding":
        rank = min(given.rank + 1, 3) if given.rank else 2 if given.flat else 0
        return replace(found, rank=rank, straight=given.straight)
    if kind in SAME_RANK:
        wide = argument_at(made, "out_features", 1) if kind == "Linear" else None
        width = last_name(wide) if wide is not None else "" if kind == "Linear" else given.width
        return replace(found, rank=given.rank, width=width, merged=given.merged, straight=given.straight)
    if kind == "Flatten":
        return replace(found, rank=2 if not made.args and not made.keywords else 0)
    if kind in RECURRENT:
        return _of_series(replace(found, rank=3, picked=False), kind)
    return replace(found, rank=RANKS.get(kind, 0))


def _of_series(output: Value, kind: str) -> Value:
    """`output, (h, c)`: in the last states the samples are counted behind the layers."""
    output = replace(output, loose=False)
    state = replace(output, dim=1)
    states = replace(state, holds=True, items=((0, state), (1, state))) if kind == "LSTM" else state
    return replace(output, holds=True, items=((0, output), (1, states)))
