"""Steps as text, and as what they compute on a whole batch and on its parts."""

import textwrap

import torch
from helpers import check_unchanged, migrated
from torch.utils._pytree import tree_map

HEAD = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
import ptmigrate.runtime as pl


class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(6, 5)
        self.soft = nn.Softmax(dim=0)
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, x):
        return self.encoder(x)

"""


def step(body: str, kind: str = "training", arguments: str = "self, batch, batch_idx") -> str:
    return f"    def {kind}_step({arguments}):\n{textwrap.indent(textwrap.dedent(body).strip(), ' ' * 8)}\n"


def end(body: str, crossing: str, kind: str = "training") -> str:
    docstring = '        """The whole batch, put together again on dp and ddp2."""\n'
    text = textwrap.indent(textwrap.dedent(body).strip(), " " * 8)
    return f"\n    def {kind}_step_end(self, {crossing}):\n{docstring}{text}\n"


def net(source):
    space: dict = {}
    exec(source, space)
    return space["Net"]()


def gathered(outputs):
    """What dp makes of its parts: tensors one after another, dictionaries by their keys."""
    if isinstance(outputs[0], dict):
        return {k: gathered([o[k] for o in outputs]) for k in outputs[0]}
    if isinstance(outputs[0], tuple | list):
        return type(outputs[0])(gathered(list(parts)) for parts in zip(*outputs, strict=True))
    return torch.cat(outputs)


def losses(source: str, result: str, batch: tuple) -> tuple:
    """The loss of the step as it was, as it is on one device, and as it is on two, with the parameters' gradients."""
    torch.manual_seed(1)
    whole, parts = net(source), net(result)
    parts.load_state_dict(whole.state_dict())
    expected = whole.training_step(batch, 0)
    halves = [tree_map(lambda t, i=i: t.chunk(2)[i], batch) for i in (0, 1)]
    loss = parts.training_step_end(gathered([parts.training_step(half, 0) for half in halves]))
    one = parts.training_step_end(parts.training_step(batch, 0))
    expected, one, loss = (o["loss"] if isinstance(o, dict) else o for o in (expected, one, loss))
    expected.backward()
    loss.backward()
    pairs = zip(whole.parameters(), parts.parameters(), strict=True)
    return expected, one, loss, [(a.grad, b.grad) for a, b in pairs]


def check_split(source: str, batch: tuple, exact: bool = True) -> None:
    """The step is split, once, and the whole batch has the loss and gradients that it had: `exact` on one device."""
    result = migrated(source, "PTM430")
    assert "training_step_end" in result.text and not result.attention, result.attention
    assert migrated(result.text, "PTM430").text == result.text
    expected, one, loss, gradients = losses(source, result.text, batch)
    torch.testing.assert_close(one, expected)
    assert torch.equal(one, expected) or not exact, "on one device, bit for bit"
    torch.testing.assert_close(loss, expected)
    for a, b in gradients:
        assert (a is None) == (b is None)
        if a is not None:
            torch.testing.assert_close(a, b)


def check_adds_up(source: str, batch: tuple, halves: list[tuple]) -> None:
    """The step stays as it is, and the mean of its losses on halves is that of the whole batch."""
    check_unchanged(source, [], select="PTM430")
    torch.manual_seed(1)
    module = net(source)
    whole = module.training_step(batch, 0)
    torch.testing.assert_close(sum(module.training_step(half, 0) for half in halves) / 2, whole)
