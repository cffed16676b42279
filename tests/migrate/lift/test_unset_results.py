"""Names that only some runs give a value in the loop, and that are read, or given one, below it."""

import pytest

from tests.migrate.running import check_same

TEXT = """
import argparse
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument('--early', action='store_true')
args = parser.parse_args()
torch.manual_seed(0)
xs = torch.randn(16, 4)
loader = torch.utils.data.DataLoader(xs, batch_size=4)
net = nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x in loader:
        loss = (net(x) - x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if args.early:
        best = {k: v.clone() for k, v in net.state_dict().items()}
    last = epoch
if not args.early:
    best = net.state_dict()
print(sorted(best), last, f'{loss.item():.5f}')
"""


@pytest.mark.parametrize("asked", [[], ["--early"]])
def test_one_that_no_epoch_gave_a_value_has_none(asked):
    result = check_same(TEXT, "module", *asked)
    assert '\nbest = getattr(module, "best", None)\n' in result and "\nlast = module.last\n" in result


def test_one_that_is_given_a_value_above_is_read_as_it_is():
    assert "\nbest = module.best\n" in check_same(TEXT.replace("for epoch", "best = {}\nfor epoch"), "module")


IN_A_FUNCTION = (
    TEXT[: TEXT.index("for epoch")]
    + """
def train(early):
    if early:
        best = None
    for epoch in range(2):
        for x in loader:
            loss = (net(x) - x).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if loss.item() < 10:
            best = {k: v.clone() for k, v in net.state_dict().items()}
    return best

print(sorted(train(args.early)))
"""
)


@pytest.mark.parametrize("asked", [[], ["--early"]])
def test_one_that_only_some_runs_give_a_value_above_the_loop_may_have_none_there(asked):
    assert "\n    best = None\n    if early" in check_same(IN_A_FUNCTION, "module", *asked)
