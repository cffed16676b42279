"""What a loader of the project's own is asked for by a method is no batch of a loop, which alone is placed."""

import pytest
from helpers import migrated

TEXT = """\
import torch

def evaluate(net, loader, device):
    net.eval()
    for split in ("train", "val"):
        data = TAKEN
        x = data["x"].to(device)
        print(net(x).sum())
"""


@pytest.mark.parametrize("taken", ["loader.get_batch(split)", "loader.next_batch(split, True)"])
def test_its_move_stays(taken):
    assert 'x = data["x"].to(device)' in migrated(TEXT.replace("TAKEN", taken)).text


def test_that_of_a_batch_goes():
    text = TEXT.replace('for split in ("train", "val"):', "for data in loader:").replace("        data = TAKEN\n", "")
    assert 'x = data["x"]\n' in migrated(text).text
