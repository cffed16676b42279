"""`n_gpus > 0` of a number that is 0 where nothing else is said asks for a card; `n_gpus > 1` asks for processes."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

TEXT = """\
import argparse
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Training:
    def __init__(self, model, n_gpus=DEFAULT):
        self.device = "cuda" if n_gpus ASKS else "cpu"
        self.model = model.to(self.device)
        if n_gpus > 1:
            self.model = DistributedDataParallel(self.model)

    def train(self, optimizer, batches):
        for x in batches:
            loss = self.model(x.to(self.device)).sum()
            loss.backward()
            optimizer.step()
            yield loss.item()
"""
OPTION = """\
parser = argparse.ArgumentParser()
parser.add_argument("--n_gpus", type=int, default=DEFAULT)
args = parser.parse_args()
"""


def as_option(text):
    head, rest = text.split("\n\n\nclass", 1)
    text = f"{head}\n{OPTION}\n\nclass{rest}".replace(", n_gpus=DEFAULT)", ")")
    return text.replace("if n_gpus", "if args.n_gpus")


@pytest.mark.parametrize("shape", [str, as_option])
@pytest.mark.parametrize("asks", ["> 0", ">= 1", "!= 0"])
def test_the_cpu_that_no_card_means_stays(shape, asks):
    text = migrate_text(shape(TEXT).replace("ASKS", asks).replace("DEFAULT", "0")).text
    assert f'n_gpus {asks} else "cpu"' in text and "DistributedDataParallel(" not in text


@pytest.mark.parametrize(("asks", "default"), [("> 0", "1"), ("> 1", "0")])
def test_a_number_of_processes_is_one(asks, default):
    text = migrate_text(TEXT.replace("ASKS", asks).replace("DEFAULT", default)).text
    assert f"n_gpus {asks} else" not in text and "DistributedDataParallel(" not in text
