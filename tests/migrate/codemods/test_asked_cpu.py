"""What an object is asked to keep on the CPU is told of, where its moves go."""

import pytest
from helpers import migrated

HEAD = """\
import torch
from copy import deepcopy
class Average(torch.nn.Module):
    def __init__(self, model, device=None):
        super(Average, self).__init__()
        self.device = device
        self.net = deepcopy(model)
        if device is not None:
            self.net.to(device=device)
model = torch.nn.Linear(2, 2).cuda()
"""
LOOP = "for x, y in loader:\n    model(x.cuda())\n"


def told(made: str) -> list[str]:
    return [n.message for n in migrated(HEAD + made + LOOP).attention if "on the CPU" in n.message]


@pytest.mark.parametrize(
    "made",
    [
        "kept = Average(model, device='cpu')\n",
        "kept = Average(model, 'cpu')\n",
        "kept = Average(model, device='cpu' if args.force_cpu else None)\n",
        "kept = Average(model, device='' if args.on_card else 'cpu')\n",
    ],
)
def test_told(made):
    (note,) = told(made)
    assert note.startswith("`Average(model") and "is placed with the model now" in note


@pytest.mark.parametrize(
    "made",
    [
        "kept = Average(model)\n",
        "kept = Average(model, device='cuda')\n",
        "kept = Average(model, device='cuda' if torch.cuda.is_available() else 'cpu')\n",
        "kept = Average(model, device=device)\n",
        "kept = Other(model, device='cpu')\n",
    ],
)
def test_not_told(made):
    assert told(made) == []
