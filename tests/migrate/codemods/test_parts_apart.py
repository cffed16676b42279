"""T1: parts of a network that its class puts on several devices: all is on the runtime's one, and that is told."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_on_card

TEXT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self, first=None, second=None, dtype=torch.float32):
        super().__init__()
        self.emb = nn.Embedding(10, 2)EMB
        self.fc = nn.Linear(2, 1)FC

    def forward(self, i):
        return self.fc(self.emb(i)OUT)

net = Net(GIVEN)NET
opt = torch.optim.SGD(net.parameters(), 0.1)
for i, in DataLoader(TensorDataset(torch.arange(10)), 4):
    loss = net(iIN).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
"""


def text(emb="", fc="", i="i", out="", given="", net=".to(device)", to=".to(device)"):
    source = TEXT.replace("2)EMB", f"2){emb}").replace("1)FC", f"1){fc}").replace("emb(i)OUT", f"emb({i}){out}")
    return source.replace("(GIVEN)NET", f"({given}){net}").replace("iIN", f"i{to}")


def told(source):
    return [n.message for n in migrate_text(source).attention if "on one device" in n.message]


@pytest.mark.parametrize("host", [".cpu()", '.to("cpu")', '.to(torch.device("cpu"))'])
def test_a_part_on_the_cpu_is_where_the_rest_is_and_so_is_its_input(tmp_path, host):
    source = text(host, ".to(device)", f"i{host}", ".to(device)", net="", to="")
    result = check_on_card(tmp_path, source)
    assert "self.fc(self.emb(i))" in result
    (message,) = told(source)
    assert message.startswith(f"`nn.Embedding(10, 2){host}` puts a part on the CPU; the runtime has all of a network")


def test_parts_that_go_where_the_class_is_told():
    source = text(".to(first)", ".to(second)", "i.to(self.first)", ".to(self.second)", '"cuda:0", "cuda:1"', net="")
    (message,) = told(source)
    assert "`nn.Embedding(10, 2).to(first)` puts a part on `first`, others on `second`" in message


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"emb": ".to(dtype)"},
        {"emb": ".to(dtype)", "fc": ".to(device)"},
        {"emb": ".to(first)", "fc": ".to(first)", "given": "device"},
        {"emb": ".to(device)", "fc": ".to(device)"},
        {"out": ".to(self.fc.weight.device)"},
    ],
)
def test_parts_that_are_together(given):
    assert not told(text(**given))


def test_what_comes_to_the_cpu_for_other_parts_stays():
    source = text(".cpu()", i="i.cpu()", out=".cpu()")
    result = migrate_text(source).text
    assert "self.fc(self.emb(i).cpu())" in result
    assert "self.emb(i.cpu())" in migrate_text(text(i="i.cpu()")).text
