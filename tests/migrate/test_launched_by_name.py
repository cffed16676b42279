"""T9: a script that asks for a launcher's variables and makes no group: with a DistributedSampler it is one of several
processes; of another it is told, as it may mean one process of a sweep.
"""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_same, on_one_and_two

SOURCE = """
import os
import torch
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

ABOVE
torch.manual_seed(0)
data = TensorDataset(torch.randn(40, 3), torch.randn(40, 1))
loader = LOADER
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=RATE)
for epoch in range(2):
    BEGINS
    for x, y in loader:
        loss = (net(x) - y).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    if GUARD:
        print(epoch, loss.item())
"""
PLAIN = {"ABOVE": "", "LOADER": "DataLoader(data, 8)", "RATE": "0.1", "BEGINS": "pass", "GUARD": "epoch >= 0"}
WORLD = 'world = int(os.environ.get("WORLD_SIZE", "1"))'
IN_A_DICTIONARY = """\
several = int(os.environ.get("WORLD_SIZE", 1)) > 1
data = TensorDataset(torch.ones(40, 3), torch.ones(40, 1))
options = {"batch_size": 8, "shuffle": True}
if several:
    options["sampler"] = DistributedSampler(data)
    options["shuffle"] = False
"""
OF_A_FUNCTION = """\
def build(data, several):
    if several:
        sampler = DistributedSampler(data, shuffle=True)
    else:
        sampler = None
    return DataLoader(data, 8, sampler is None, sampler), sampler

"""
SCRIPTS = {
    "a sampler in a dictionary": {
        "ABOVE": IN_A_DICTIONARY, "LOADER": "DataLoader(data, **options)",
        "BEGINS": "if several:\n        options['sampler'].set_epoch(epoch)",
    },
    "a sampler that a function gives": {
        "ABOVE": OF_A_FUNCTION, "LOADER": "None",
        "BEGINS": "loader, sampler = build(data, int(os.getenv('WORLD_SIZE', 1)) > 1)\n"
        "    if sampler is not None:\n        sampler.set_epoch(epoch)",
    },
}  # fmt: skip


def source(parts):
    text = SOURCE
    for name, part in {**PLAIN, **parts}.items():
        text = text.replace(name, part)
    return text


@pytest.mark.parametrize("parts", SCRIPTS.values(), ids=SCRIPTS)
def test_it_is_the_same_run_on_one_and_two(tmp_path, parts):
    text = source(parts)
    result = check_same(text, "module")
    assert "environ" not in result and "getenv" not in result and "0 == 0" not in result
    on_one_and_two(tmp_path, text, result)


@pytest.mark.parametrize(
    "parts",
    [
        {"ABOVE": WORLD, "RATE": "0.1 * world"},
        {"LOADER": "DataLoader(data, 8 // int(os.environ['WORLD_SIZE']))"},
        {"ABOVE": 'torch.manual_seed(int(os.getenv("LOCAL_RANK", 0)))'},
    ],
)
def test_without_one_it_stays_and_is_told(parts):
    result = migrate_text(source(parts))
    told = [n.message for n in result.attention if "several processes have it from their launcher" in n.message]
    assert len(told) == 1 and not [e for e in result.edits if e.code == "PTM420"]


@pytest.mark.parametrize(
    "parts",
    [
        {"GUARD": 'int(os.environ.get("RANK", 0)) == 0'},
        {"ABOVE": 'os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"'},
        {"ABOVE": 'threads = int(os.environ.get("OMP_NUM_THREADS", 1))'},
        {"ABOVE": 'task = int(os.environ.get("SLURM_PROCID", 0))  # of a sweep', "RATE": "(0.1, 0.01)[task]"},
        {"ABOVE": 'RANK = 4  # of the factors\nhome = os.environ["HOME"]'},
        {"ABOVE": 'columns = {"RANK": 3}\nhome = os.environ[next(iter(os.environ))]', "RATE": '0.1 * columns["RANK"]'},
    ],
)
def test_others_stay(parts):
    result = migrate_text(source(parts))
    assert parts.get("ABOVE", "") in result.text and parts.get("GUARD", "") in result.text
    assert not [e for e in (*result.edits, *result.attention) if e.code == "PTM420"]
