"""What torch itself says of its operations: those that the project takes to give one tensor give one."""

import pytest
import torch
from ptmigrate.migrate.facts.tensor_methods import FUNCTIONS, METHODS
from ptmigrate.migrate.migrate import migrate_text

KNOWN = sorted(n for n in METHODS | FUNCTIONS if hasattr(torch.ops.aten, n))


def schemas(name):
    packet = getattr(torch.ops.aten, name)
    of_tensors = [getattr(packet, o)._schema for o in packet.overloads() if "out" not in o]
    return [s for s in of_tensors if s.arguments and str(s.arguments[0].type) == "Tensor"]


@pytest.mark.parametrize("name", [n for n in KNOWN if n != "where"])  # where(mask) alone gives one for each dimension
def test_an_operation_that_is_said_to_give_one_tensor_does(name):
    for schema in schemas(name):
        assert [str(r.type) for r in schema.returns] == ["Tensor"], schema


@pytest.mark.parametrize(
    "name", ["sort", "topk", "unbind", "split", "svd", "slogdet", "aminmax", "frexp", "equal", "item"]
)
def test_one_that_gives_several_or_none_is_not(name):
    assert name not in METHODS | FUNCTIONS


BUFFER = """import torch
from torch import nn
class A(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.a = {}
    def forward(self, x):
        return x * self.a
"""


@pytest.mark.parametrize(
    "made",
    [
        "torch.polar(torch.ones(n), torch.zeros(n))",
        "torch.ones(n, n).fill_diagonal_(0)",
        "torch.fft.fft(torch.ones(n))",
        "torch.ones(n).neg_().logsumexp(0)",
        "nn.functional.layer_norm(torch.ones(n), (n,))",
    ],
)
def test_what_they_make_in_a_module_is_a_buffer(made):
    assert f'self.register_buffer("a", {made})' in migrate_text(BUFFER.format(f"{made}.cuda()")).text
