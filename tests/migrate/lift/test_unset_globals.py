"""A global that only one branch makes: the Module is given None where it was not made, as its steps do not read it."""

import pytest

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_same

MADE_IN_A_BRANCH = (
    HEAD
    + """
def main():
    global content, net, opt
    if args.no_cuda:
        content = nn.Linear(3, 2)
    net = nn.Linear(5, 3)
    opt = torch.optim.SGD(net.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        train(opt, net, epoch)

def train(opt, net, epoch):
    net.train()
    for x, y in train_loader:
        out = net(x)
        loss = criterion(out, y)
        if args.no_cuda:
            loss = loss + content(out).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, f'{loss.item():.6f}')

main()
"""
)
OF_THE_MODULE = MADE_IN_A_BRANCH.replace(
    "def main():\n    global content, net, opt\n    if args.no_cuda:\n        content = nn.Linear(3, 2)\n",
    "if args.no_cuda:\n    content = nn.Linear(3, 2)\n\ndef main():\n    global net, opt\n",
)
DECORATED = MADE_IN_A_BRANCH.replace("def main", "@torch.enable_grad()\ndef main")
BOTH = MADE_IN_A_BRANCH.replace("(3, 2)\n    net", "(3, 2)\n    else:\n        content = nn.Linear(3, 1)\n    net")
FIRST_NONE = MADE_IN_A_BRANCH.replace("def main", "content = None\n\ndef main")
BY_A_FUNCTION = MADE_IN_A_BRANCH.replace(
    "def main():\n    global content, net, opt\n    if args.no_cuda:\n        content = nn.Linear(3, 2)\n",
    "def make():\n    global content\n    content = nn.Linear(3, 2)\n\ndef main():\n    global net, opt\n    make()\n",
)
READ_BY_EVERY_STEP = MADE_IN_A_BRANCH.replace("        if args.no_cuda:\n            loss", "        loss").replace(
    "    if args.no_cuda:\n        content", "    if args.epochs:\n        content"
)


@pytest.mark.parametrize("given", [(), ("--no-cuda",)], ids=["not made", "made"])
@pytest.mark.parametrize("text", [MADE_IN_A_BRANCH, OF_THE_MODULE, DECORATED], ids=["in main", "module", "decorated"])
def test_a_global_that_may_have_no_value_is_none_first(text, given):
    result = check_same(text, "module", *given)
    assert "\ncontent = None\n" in result


@pytest.mark.parametrize(
    "text", [BOTH, FIRST_NONE, BY_A_FUNCTION, READ_BY_EVERY_STEP], ids=["both", "none", "function", "every step"]
)
def test_a_global_that_has_a_value_is_left_to_it(text):
    result = check_same(text, "module", "--no-cuda")
    assert result.count("content = None") == text.count("content = None")
