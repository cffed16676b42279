"""The number that a sample has in its batch: as a weight it needs the batch whole, as a place it does not."""

import ast

import pytest
from ptmigrate.migrate.facts.batch_values import BATCH
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_printed_by_two import EPOCHS, HEAD
from tests.migrate.running import check_same

MIXES = """
l * torch.arange(len(x))
l * torch.linspace(0, 1, x.size(0))
l.mul(torch.linspace(0, 1, steps=len(x), device=x.device))
l * (torch.arange(x.shape[0], dtype=torch.float32) / 10)
l * torch.from_numpy(np.arange(len(x)) / 10).float()
l * torch.tensor([k / 10 for k in range(len(x))])
l * torch.exp(-torch.arange(len(x)).float())
torch.where(torch.arange(len(x)) > 3, l, 0 * l)
l * (torch.arange(len(x)) % 2 == 0)
torch.matmul(torch.arange(len(x)).float(), l)
l - torch.linspace(0, 1, len(x))
l.topk(int(0.75 * len(l)))[0].mean()
torch.topk(l, k=max(1, l.size(0) // 2))[0].mean()
l.kthvalue(len(x) // 2)[0] * 2
l - torch.linspace(0, len(x) - 1, len(x))
l * torch.linspace(0, len(x) - 1, len(x)).long()
out[torch.linspace(0, len(x) // 2, len(x)).long()].mean()
l * torch.ones(len(x)).cumsum(0)
l * torch.cumsum(torch.full((x.size(0),), 0.1), 0)
l * (0.9 * torch.ones(len(x))).cumprod(dim=0)
(l * torch.ones(len(x)).to(x.device).cumsum(0)).mean()
out * torch.arange(len(x))[:, None]
F.cross_entropy(out, torch.arange(len(x)))
F.binary_cross_entropy(out[:, 0], l, weight=torch.linspace(0, 1, len(x)))
""".strip().splitlines()
MIXES_NOT = """
out[torch.arange(len(x)), y]
out[torch.arange(x.size(0)).unsqueeze(1), y[:, None]]
out[range(len(x)), y] - l
out[torch.arange(len(x), device=x.device), y] - l
out[np.arange(len(x)), y] * l
out * torch.arange(x.size(1))
out * torch.linspace(0, 1, 5)
out * torch.arange(5)
y + torch.arange(len(x)) * 3
l * torch.ones(len(x))
out.topk(3)[0].mean()
out.topk(out.size(1) // 2)[0].mean()
out.topk(len(x), dim=1)[0].mean()
l * (2 * torch.ones(len(x)).float()) + torch.full((len(x),), 0.5)
l * torch.ones(5).cumsum(0)
out[torch.linspace(0, len(x) - 1, len(x)).long(), y].mean()
out[torch.linspace(0, x.size(0) - 1, steps=x.size(0)).to(torch.long), y].mean()
l * len(x)
l / torch.arange(len(x)).float().sum()
torch.tensor([0 for _ in range(len(x))]) + l
""".strip().splitlines()


def mixed(expression: str) -> bool:
    head = "import torch\nimport numpy as np\nimport torch.nn.functional as F\ndef f(x, y, out, l):\n    return "
    facts = Facts(f"{head}{expression}\n")
    f = facts.tree.body[-1]
    assert isinstance(f, ast.FunctionDef)
    return bool(facts.mixing.flow(f, dict.fromkeys("x y out l".split(), BATCH), None).mixes)


@pytest.mark.parametrize("expression", MIXES)
def test_by_its_number(expression):
    assert mixed(expression)


@pytest.mark.parametrize("expression", MIXES_NOT)
def test_not_by_its_number(expression):
    assert not mixed(expression)


@pytest.mark.parametrize(
    ("loss", "whole"),
    [
        ("w = torch.arange(len(x)) / 10; loss = (F.cross_entropy(out, y, reduction='none') * w).mean()", True),
        ("loss = -out.log_softmax(1)[torch.arange(len(x)), y].mean()", False),
        ("places = torch.arange(len(x)); loss = (out[places, y] - x[:, 0]).pow(2).mean()", False),
        ("rows = torch.arange(len(x)) * 2 % len(x); loss = out[rows].pow(2).mean()", True),
    ],
)
def test_a_lifted_step(loss, whole):
    text = HEAD + "import torch.nn.functional as F\n" + EPOCHS.replace("loss = criterion(out, y)", loss)
    for piece in ("BEFORE", "EACH", "AFTER"):
        text = text.replace(piece, "pass")
    text = text.replace("LAST", "print(loss.item())")
    assert ("divide_batches = False" in check_same(text, "module")) is whole
    assert any("mixes the samples" in n.message for n in migrate_text(text).attention) is whole
