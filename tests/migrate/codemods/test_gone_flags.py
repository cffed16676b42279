"""An option that goes from the parser: its edit says which words of a command line go with it."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

SCRIPT = """import argparse
import torch
parser = argparse.ArgumentParser()
parser.add_argument(FLAGS, type=int, default=0, help="-x")
args = parser.parse_args()
net = torch.nn.Linear(4, 2).cuda(args.gpu)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.utils.data.DataLoader(torch.randn(8, 4), batch_size=4):
    loss = net(x.cuda(args.gpu)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("flags", "said"), [('"--gpu"', "--gpu"), ('"-g", "--gpu"', "-g or --gpu")])
def test_the_words_are_named(flags, said):
    told = [e.message for e in migrate_text(SCRIPT.replace("FLAGS", flags)).edits if "add_argument" in e.message]
    assert [m.partition("; ")[2] for m in told] == [f"a command line that gives {said} ends in an error now"]
