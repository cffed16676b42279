"""T11: `.data[0]` of what goes by the name of a loss, and has more than one number, stays the first of them."""

import pytest
from helpers import check, check_unchanged

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\nfrom torch.autograd import Variable\n\n"
NONE = "F.mse_loss(a, b, reduction='none')"


@pytest.mark.parametrize(
    "made",
    [
        "losses = torch.ones(3)",
        "losses = torch.zeros(2, 3)",
        "losses = torch.zeros((3,)).cuda()",
        "losses = torch.rand(n)",
        "losses = torch.tensor([1.0, 2.0])",
        "losses = torch.stack([a, b]).detach()",
        "two = torch.cat(parts)\nlosses = two / 2",
        "losses = torch.zeros_like(torch.ones(3))",
        "losses = nn.functional.l1_loss(a, b, reduction='none').mean(1)",
        f"each = {NONE}\nlosses = each.sum(dim=1)",
        f"losses = {NONE}.view(-1)",
        "losses = given()\nprint(losses.data[1])",
        "losses = given()\nprint(losses.data[0:2])",
    ],
)
def test_more_than_one_number(made):
    check_unchanged(HEAD + made + "\nprint(losses.data[0])\n", [], select="PTM604")
    attribute = made.replace("losses", "self.losses")
    check_unchanged(HEAD + attribute + "\nprint(self.losses.data[0])\n", [], select="PTM604")
    row = HEAD + made + "\nprint(losses[0].data[0])\n"
    check_unchanged(row, [], select="PTM604") if "given" not in made else None


def test_what_callers_give():
    f = "def first(losses):\n    return losses.data[0]\n\n\n"
    check_unchanged(HEAD + f + "print(first(torch.ones(3)))\n", [], select="PTM604")
    check(
        HEAD + f + "print(first(F.mse_loss(a, b)))\n",
        HEAD + f.replace("data[0]", "item()") + "print(first(F.mse_loss(a, b)))\n",
    )


@pytest.mark.parametrize(
    "made",
    [
        "losses = given()",
        "losses = F.mse_loss(a, torch.ones(3))",
        "losses = torch.ones(3).sum()",
        "losses = torch.ones(3).norm(2)",
        "losses = torch.stack(parts).mean(0)",
        "losses = torch.mean(torch.stack(parts))",
        "losses = torch.zeros(1)",
        "losses = torch.cuda.FloatTensor([0])",
        f"losses = {NONE}.mean()",
        "losses = F.mse_loss(a, b)\nother.data[1]",
    ],
)
def test_one_number(made):
    before = HEAD + made + "\nprint(losses.data[0])\n"
    check(before, before.replace(".data[0]", ".item()"), select="PTM604")
