"""`--select CODES`: the edits of those codes alone, and a result that runs as before."""

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text

from tests.migrate.running import run

SCRIPT = """
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.ones(4).to(device)
        self.last = nn.Linear(4, 2)
    def forward(self, x):
        return self.last(x * self.scale)
net = Net().to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda", enabled=False)
train = DataLoader(TensorDataset(torch.randn(32, 4), torch.randint(0, 2, (32,))), batch_size=8, shuffle=True)
for epoch in range(2):
    for x, y in train:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x + torch.zeros(len(x), 4).to(device)), y)
        loss.backward()
        optimizer.step()
        print(loss.item())
"""


def selected(text, *codes, **options):
    result = migrate_text(text, Options(select=codes, **options))
    before, after = run(text), run(result.text)
    assert before.losses == after.losses and before.output == after.output
    return result


@pytest.mark.parametrize("code", ["PTM101", "PTM104", "PTM105"])
def test_what_holds_in_a_lifted_loop_alone_is_done_with_the_lift(code):
    result = selected(SCRIPT, code, "PTM700")
    assert result.plan == "module" and {e.code for e in result.edits} == {code, "PTM700"}


def test_a_group_has_all_of_it():
    codes = {"PTM101", "PTM102", "PTM104", "PTM105", "PTM700"}
    assert codes == {e.code for e in selected(SCRIPT, "PTM1", "PTM700").edits}


@pytest.mark.parametrize(("code", "edits"), [("PTM410", True), ("PTM702", True), ("PTM102", False), ("PTM114", False)])
def test_others_leave_the_loop(code, edits):
    result = selected(SCRIPT, code)
    assert result.plan == "loop" and {e.code for e in result.edits} == ({code} if edits else set())
    assert edits or result.text == SCRIPT


@pytest.mark.parametrize("options", [{}, {"plan": "loop"}, {"ignore": ("PTM700",)}])
def test_where_the_loop_is_kept_it_is_told_that_they_stay(options):
    result = selected(SCRIPT, "PTM101", **options)
    assert result.text == SCRIPT
    says = "stays, as the loop does: no Trainer places what is in it, and the script does"
    more = "" if "plan" in options else "; PTM700, selected too, lifts the loop"
    assert [n.message for n in result.attention] == [f"`x, y = x.to(device), y.to(device)` {says}{more}"]


@pytest.mark.parametrize("options", [{}, {"ignore": ("PTM700",)}, {"plan": "loop"}])
def test_nothing_is_told_of_moves_where_nothing_was_selected(options):
    assert not any("stays, as the loop does" in n.message for n in migrate_text(SCRIPT, Options(**options)).attention)
