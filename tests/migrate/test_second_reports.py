"""What a second run says of a result: what the first left, and no more."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

TRAINS = """\
import torch


class Net(torch.nn.Module):
    def forward(self, x):
        return x @ torch.eye(4)[:, : len(self.names)]


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x in torch.utils.data.DataLoader(torch.ones(8, 4), batch_size=2):
        optimizer.zero_grad()
        net(x).mean().backward()
        optimizer.step()
"""


@pytest.mark.parametrize("text", [TRAINS, TRAINS.replace(".mean().backward()", ".mean().backward(inputs=f())")])
def test_what_is_left_in_a_result_is_told_again(text):
    first = migrate_text(text.replace("torch.eye(4)", "torch.eye(4).new_tensor(torch.zeros(4, 4))"))
    again = migrate_text(first.text)
    left = [n.code for n in first.attention if n.code.startswith("PTM1")]
    assert first.plan in ("module", "manual", "loop") and left
    assert again.text == first.text and [n.code for n in again.attention] == left


def test_a_clean_result_stays_clean():
    first = migrate_text(TRAINS.replace(" @ torch.eye(4)[:, : len(self.names)]", ""))
    assert not first.attention and not migrate_text(first.text).attention


@pytest.mark.parametrize("torch", ["import torch", "import torch as th"])
def test_what_goes_where_cuda_is_names_no_device(torch):
    name = torch.split()[-1]
    text = f"{torch}\n\n\ndef f(rows):\n    return [{name}.from_numpy(v).cuda() for v in rows]\n"
    first = migrate_text(text)
    assert f'.to("cuda" if {name}.cuda.is_available() else "cpu")' in first.text and not first.attention
    again = migrate_text(first.text)
    assert again.text == first.text and not again.attention


def test_a_card_by_its_number_is_told_of():
    place = '"cuda:0" if torch.cuda.is_available() else "cpu"'
    text = f"import torch\n\n\ndef f(rows):\n    return [torch.from_numpy(v).to({place}) for v in rows]\n"
    assert [n.code for n in migrate_text(text).attention] == ["PTM104"]
