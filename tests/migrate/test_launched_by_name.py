"""T9: a script that asks for a launcher's variables, and makes no group of its own, sees none of them.

Under the runtime's launcher it would take its branches of several processes, and scale what it scales.
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
    "a rate": {"ABOVE": WORLD, "RATE": "0.1 * world"},
    "a batch size": {"ABOVE": WORLD, "LOADER": "DataLoader(data, 8 // world)"},
    "a guard": {"GUARD": 'int(os.environ.get("RANK", 0)) == 0'},
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
    "above",
    [
        'os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"',
        'threads = int(os.environ.get("OMP_NUM_THREADS", 1))',
        'RANK = 4  # of the factors\nhome = os.environ["HOME"]',
        'titles = {"title": "RANKS"}\nhome = os.environ[next(iter(os.environ))]',
    ],
)
def test_other_variables_stay(above):
    result = migrate_text(source({"ABOVE": above}))
    assert above in result.text
    assert not [e for e in result.edits if e.code == "PTM420"]
