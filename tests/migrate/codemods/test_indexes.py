"""PTM114: what a batch gives as indexes of arrays, and of tensors that stay on the CPU."""

import pytest
from helpers import check, check_unchanged

HEAD = "import numpy as np\nimport torch\nkept, weights = torch.zeros(9), np.ones(9)\n"
LOOP = HEAD + "for x, y, i in train_loader:\n    x = x.cuda()\n    loss = model(x)\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("kept[i] = loss.detach().cpu()", "kept[i.cpu()] = loss.detach().cpu()"),
        ("kept[i] += loss.detach().cpu()", "kept[i.cpu()] += loss.detach().cpu()"),
        ("kept[i.view(-1), 0] = loss.data.cpu()", "kept[i.view(-1).cpu(), 0] = loss.data.cpu()"),
        ("kept[i, y] = loss.detach().to('cpu')", "kept[i.cpu(), y.cpu()] = loss.detach().to('cpu')"),
        ("old = kept[i]\n    kept[i] = loss.data.cpu()", "old = kept[i.cpu()]\n    kept[i.cpu()] = loss.data.cpu()"),
        ("w = weights[i]", "w = weights[i.cpu()]"),
        ("weights[i] = 2.0", "weights[i.cpu()] = 2.0"),
        ("w = torch.from_numpy(weights[i, :])", "w = torch.from_numpy(weights[i.cpu(), :])"),
    ],
)
def test_they_are_brought_there(before, after):
    check(LOOP + f"    {before}\n", LOOP + f"    {after}\n", select="PTM114")


@pytest.mark.parametrize(
    "step",
    [
        "kept[i] = loss.detach()",
        "kept[x] = loss.detach().cpu()",
        "kept[3] = loss.detach().cpu()[0]",
        "kept[:4] = loss.detach().cpu()",
        "kept[i.cpu()] = loss.detach().cpu()",
        "kept[i.tolist()] = loss.detach().cpu()",
        "w = weights[0]",
        "w = weights[i.tolist()]",
        "w = x[i]",
        "w = kept[i]",
        "n = int(i[0])\n    w = weights[n]",
    ],
)
def test_unchanged(step):
    check_unchanged(LOOP + f"    {step}\n", select="PTM114")


def test_unchanged_out_of_loops_over_batches():
    check_unchanged(HEAD + "def f(i):\n    kept[i] = net(i).cpu()\n    return weights[i]\n", select="PTM114")
