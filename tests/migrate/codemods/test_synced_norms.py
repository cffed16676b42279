"""Batch norm that is synchronised by hand becomes the Trainer's sync_batchnorm=, or is told of."""

import re

import pytest
from helpers import check, check_unchanged
from ptmigrate.migrate.migrate import Options, migrate_text

SCRIPT = """\
import argparse
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sync-bn", action="store_true")
    args = parser.parse_args()
    args.distributed = dist.is_initialized()
    dist.init_process_group("nccl")
    net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
{converted}
    net = nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x = torch.randn(24, 4)
    loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4)
    for epoch in range(2):
        for a, b in loader:
            optimizer.zero_grad()
            loss = (net(a) - b).pow(2).mean()
            loss.backward()
            optimizer.step()

main()
"""
CONVERT = "net = nn.SyncBatchNorm.convert_sync_batchnorm(net)"


@pytest.mark.parametrize("framework", ["ptmigrate", "lightning"])
@pytest.mark.parametrize(
    ("converted", "asked"),
    [
        (CONVERT, "True"),
        (f"if args.sync_bn:\n        {CONVERT}", "args.sync_bn or None"),
        (f"if args.distributed and args.sync_bn:\n        {CONVERT}", "args.sync_bn or None"),
        (f"if args.distributed:\n        if args.sync_bn:\n            {CONVERT}", "args.sync_bn or None"),
        (f"if dist.get_world_size() > 1:\n        {CONVERT}", "True"),
        (f"{CONVERT} if args.sync_bn else net", "args.sync_bn or None"),
        (f"if not args.sync_bn:\n        pass\n    else:\n        {CONVERT}", "not (not args.sync_bn) or None"),
    ],
)
def test_the_trainer_is_given_it(converted, asked, framework):
    result = migrate_text(SCRIPT.format(converted="    " + converted), Options(framework=framework))
    assert re.search(rf"Trainer\(max_epochs=2, sync_batchnorm={re.escape(asked)}[,)]", result.text), result.text
    assert "convert_sync" not in result.text
    assert '"--sync-bn"' in result.text
    if converted == CONVERT:
        assert any("the Trainer's sync_batchnorm=" in e.message for e in result.edits)
    assert not [n for n in result.attention if "convert_sync" in n.message]


@pytest.mark.parametrize("guard", ['__name__ == "__main__"', '"__main__" == __name__'])
@pytest.mark.parametrize("condition", ["", " and args.sync_bn"])
def test_a_guard_of_the_script_itself_is_no_condition_of_it(guard, condition):
    head, body = SCRIPT.format(converted="    " + CONVERT).removesuffix("\nmain()\n").split("def main():\n")
    body, loop = body.split("    optimizer = ")
    start = f"if {guard}:\n" + body
    if condition:
        start = start.replace(f"    {CONVERT}", f"    if args.sync_bn:\n        {CONVERT}")
    result = migrate_text(f"{head}def train(net):\n    optimizer = {loop}\n\n{start}    train(net)\n")
    assert f"sync_batchnorm={'args.sync_bn' if condition else 'True'}" in str((result.text, result.attention))
    assert "__name__" not in str(result.attention) and ("sync_batchnorm=True" in result.text or condition)


def test_a_condition_that_the_trainer_does_not_know_is_told():
    source = SCRIPT.format(converted="    net = synced(net, args.sync_bn)").replace(
        "def main", f"def synced(net, wanted):\n    if wanted:\n        {CONVERT}\n    return net\n\ndef main"
    )
    result = migrate_text(source)
    assert "sync_batchnorm" not in result.text
    assert [n.line for n in result.attention if "sync_batchnorm=True if wanted" in n.message] == [9]


@pytest.mark.parametrize(
    "converted",
    [
        "pass",
        "net = convert_sync_batchnorm(net)",
        "text = 'nn.SyncBatchNorm.convert_sync_batchnorm(net)'",
        "# net = nn.SyncBatchNorm.convert_sync_batchnorm(net)",
        "args.sync_bn = False",
        "net = convert(net, args.sync_bn)",
        "net = mine.convert_sync_batchnorm(net)",
        "synced = any(isinstance(m, nn.SyncBatchNorm) for m in net.modules())",
        "from mine import SyncBatchNorm\n    net = SyncBatchNorm.convert_sync_batchnorm(net)",
        "net = Own().SyncBatchNorm.convert_sync_batchnorm(net)",
        "if args.sync_bn:\n        print('sync_batchnorm')",
        "net = nn.Sequential(net, nn.BatchNorm1d(1))",
        "for m in net.modules():\n        if isinstance(m, nn.BatchNorm1d):\n            m.momentum = 0.2",
        "convert = nn.utils.convert_parameters.parameters_to_vector(net.parameters())",
        "freeze(nn.modules.batchnorm._BatchNorm)",
    ],
)
def test_without_it_the_trainer_gets_nothing(converted):
    result = migrate_text(SCRIPT.format(converted="    " + converted))
    assert "sync_batchnorm=" not in result.text and not [n for n in result.attention if "sync_batchnorm" in n.message]


LIT = """\
import torch
import lightning as L

class Lit(L.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net = torch.nn.SyncBatchNorm.convert_sync_batchnorm(net)

    def training_step(self, batch, i):
        if torch.distributed.get_rank() == 0:
            print(i)
        return self.net(batch).mean()
"""


def test_a_trainer_of_the_script_is_given_it():
    after = LIT.replace("torch.nn.SyncBatchNorm.convert_sync_batchnorm(net)", "net")
    trainer = "\nL.Trainer(devices=2).fit(Lit(net))\n"
    check(LIT + trainer, after + trainer.replace("=2)", "=2, sync_batchnorm=True)"), select="PTM420")
    check(LIT, after, attention=["PTM420 line 7: "], select="PTM420")  # the rank's question stays: a Trainer runs it


@pytest.mark.parametrize("given", ["sync_batchnorm=False", "**how"])
def test_a_trainer_that_says_it_keeps_its_word(given):
    source = f"import lightning as L\ntrainer = L.Trainer({given})\n"
    check_unchanged(source, [], select="PTM420")
