"""A module that a Trainer runs and that talks to other processes keeps that: the Trainer starts those."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

MODULE = """\
import torch
import torch.distributed as dist
import pytorch_lightning as pl


def gathered(x):
    parts = [torch.ones_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, x)
    return torch.cat(parts)


class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.enc = torch.nn.Linear(4, 4)

    def training_step(self, batch, batch_idx):
        z = self.enc(batch)
        if dist.get_rank() == 0:
            print(batch_idx)
        return (z @ gathered(z.detach()).t()).mean()
"""
BESIDE = """

class Pair(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))

    def forward(self, x):
        return self.body.module(x)
"""
STARTS = "\n\nif __name__ == '__main__':\n    dist.init_process_group('gloo')\n"


@pytest.mark.parametrize("beside", ["", BESIDE])
def test_what_its_step_asks_of_others_stays(beside):
    text = migrate_text(MODULE + beside).text
    assert text.startswith(MODULE)
    assert "DistributedDataParallel" not in text and ".module(" not in text


def test_where_the_file_starts_them_itself_it_becomes_plain():
    text = migrate_text(MODULE + BESIDE + STARTS).text
    assert "dist.all_gather" not in text and "dist.get_rank" not in text
