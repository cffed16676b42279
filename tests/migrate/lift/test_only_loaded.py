"""Tensors that the loop reads for its loader alone stay where the script made them: its batches are moved."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_on_card, check_same, on_one_and_two

SOURCE = """
import numpy
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset


class Rolled(Dataset):
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return torch.from_numpy(numpy.roll(self.x[i].numpy(), 1)), self.y[i]


def build(x, y, n):
    return DataLoader(Rolled(x, y), n)


def batches(x, y, n):
    for i in range(0, len(x), n):
        yield x[i : i + n], y[i : i + n]


DEVICE
torch.manual_seed(0)
X = torch.randn(40, 6)
Y = (X.sum(1) > 0).long()
net = nn.Linear(6, 2)MOVE
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in LOADER:
        loss = nn.functional.cross_entropy(net(xMOVE), yMOVE)MORE
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
"""
PLACES = 'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")'
LOADERS = [
    "build(X, Y, 8)",
    "DataLoader(TensorDataset(X, Y), batch_size=8)",
    "DataLoader(Rolled(X, Y), 8)",
    "batches(X, Y, 8)",
]


def source(loader, places=True, more=""):
    text = SOURCE.replace("LOADER", loader).replace("MORE", more).replace("DEVICE", PLACES if places else "")
    return text.replace("MOVE", ".to(device)" if places else "")


@pytest.mark.parametrize("loader", LOADERS)
def test_they_are_no_buffers(tmp_path, loader):
    result = check_on_card(tmp_path, source(loader))
    assert "self.X = X" in result and "register_buffer" not in result


@pytest.mark.parametrize("loader", LOADERS)
def test_they_keep_no_script_without_devices_on_the_cpu(tmp_path, loader):
    text = source(loader, places=False)
    result = check_same(text, "module")
    assert 'accelerator="cpu"' not in result
    assert not [n for n in migrate_text(text).attention if "names no device" in n.message]
    on_one_and_two(tmp_path, text, result)


def test_what_a_step_reads_too_is_moved_there(tmp_path):
    result = check_on_card(tmp_path, source("build(X, Y, 8)", more=" + X.to(device).mean()"))
    assert "self.X = X" in result and "self.X.to(self.device).mean()" in result


@pytest.mark.parametrize("stays", ["weights", "weights * torch.ones(2)"])
def test_what_a_function_of_the_script_gets_stays(tmp_path, stays):
    text = source("DataLoader(TensorDataset(X, Y), 8)", more=" + scaled(weights, 2).mean()")
    text = text.replace(
        "class Rolled", f"def scaled(weights, n):\n    return ({stays}).to(device) * n\n\n\nclass Rolled"
    )
    result = check_on_card(tmp_path, text.replace("net = nn", "weights = torch.ones(2)\nnet = nn"))
    assert "self.weights = weights" in result


@pytest.mark.parametrize("more", [" * weights.to(device).mean()", " * torch.mean(weights.to(device)) * len(weights)"])
def test_what_a_step_moves_is_a_buffer(tmp_path, more):
    text = source("DataLoader(TensorDataset(X, Y), 8)", more=more)
    result = check_on_card(tmp_path, text.replace("net = nn", "weights = torch.ones(2)\nnet = nn"))
    assert 'self.register_buffer("weights", weights, persistent=False)' in result


def test_what_the_step_reads_too_keeps_a_script_without_devices_on_the_cpu():
    more = " + (Y[:8] - 1).float().mean()"
    assert 'accelerator="cpu"' in check_same(source("build(X, Y, 8)", places=False, more=more), "module")
