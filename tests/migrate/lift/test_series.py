"""Layers for series without `batch_first` take the first dimension for the steps: there the samples meet."""

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text
from ptmigrate.migrate.project import collect, migrate_all

SCRIPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 8)
        self.cell = {cell}
        self.out = nn.Linear(8, 3)

    def forward(self, x):
        {forward}
        return self.out(h)


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(22, 5, 6), torch.randint(0, 3, (22,))), batch_size=4, shuffle=True)
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
LSTM, LAYER = "nn.LSTM(8, 8)", "nn.TransformerEncoderLayer(8, 2, 16, 0.0)"
MIXES = {
    "as the batch came": (LSTM, "h = self.cell(self.inner(x))[0].mean(1)"),
    "with its states": ("nn.GRU(6, 8)", "o, state = self.cell(x)\n        h = o[:, -1]"),
    "of one step a sample": (LSTM, "h = self.cell(self.inner(x[:, 0]).unsqueeze(1))[0].squeeze(1)"),
    "rows of a sample, by their number": ("nn.RNN(30, 8)", "h = self.cell(x.view(x.size(0), -1))[0]"),
    "turned behind the samples": ("nn.LSTM(5, 8)", "h = self.cell(x.permute(0, 2, 1))[0][:, -1]"),
    "words": (f"{LSTM}\n        self.words = nn.Embedding(9, 8)", "h = self.cell(self.words(x.long()))[0].mean(1)"),
    "attention": (LAYER, "h = self.cell(self.inner(x)).mean(1)"),
    "attention of its own": (
        "nn.MultiheadAttention(8, 2)", "x = torch.relu(self.inner(x))\n        h = self.cell(x, x, x)[0].mean(1)"
    ),
    "in a function of the network": (
        LSTM,
        "h = self.encode(x)\n        return self.out(h)\n\n    def encode(self, x):\n"
        "        h = self.cell(self.inner(x))[0].mean(1)\n        return h\n\n    def other(self, h):\n        pass",
    ),
}  # fmt: skip
APART = {
    "batch_first": ("nn.LSTM(6, 8, batch_first=True)", "h = self.cell(x)[0][:, -1]"),
    "turned": (LSTM, "h = self.cell(self.inner(x).transpose(0, 1))[0][-1]"),
    "turned by permute": ("nn.GRU(6, 8)", "h = self.cell(x.permute(1, 0, 2))[0].mean(0)"),
    "attention, batch_first": (f"{LAYER[:-1]}, batch_first=True)", "h = self.cell(self.inner(x)).mean(1)"),
    "attention, turned": (LAYER, "h = self.cell(self.inner(x).transpose(0, 1))[0]"),
    "as many steps as a view says": (LSTM, "h = self.cell(self.inner(x).view(5, -1, 8))[0][-1]"),
    "a shape that nothing shows": (LSTM, "h = self.cell(self.inner(x).view(*self.shape))[0][-1]"),
    "turned by what nothing shows": (
        LSTM,
        "import einops\n        h = self.cell(einops.rearrange(self.inner(x), 'b t c -> t b c'))[0][-1]",
    ),
    "a step at a time": ("nn.LSTMCell(6, 8)", "h, c = self.cell(x[:, 0])"),
    "an order that nothing shows": ("nn.LSTM(6, 8, batch_first=FIRST)", "h = self.cell(x)[0][:, -1]"),
}


@pytest.mark.parametrize("cell, forward", MIXES.values(), ids=MIXES)
def test_what_takes_the_samples_for_steps_has_them_all(cell, forward):
    result = migrate_text(SCRIPT.format(cell=cell, forward=forward))
    assert result.plan == "module" and "divide_batches = False" in result.text
    (told,) = [n.message for n in result.attention if n.code == "PTM703"]
    assert "`net(x)` mixes the samples of a batch: `self.cell(" in told


@pytest.mark.parametrize("cell, forward", APART.values(), ids=APART)
def test_samples_that_stay_apart_are_divided(cell, forward):
    result = migrate_text(SCRIPT.format(cell=cell, forward=forward))
    assert result.plan == "module" and "divide_batches" not in result.text


@pytest.mark.parametrize("kind, whole", [(MIXES["as the batch came"], True), (APART["turned"], False)])
@pytest.mark.parametrize("made", ["Net()", "net.Net().train()"])
def test_a_network_of_another_file_is_followed(tmp_path, kind, whole, made):
    text = SCRIPT.format(cell=kind[0], forward=kind[1])
    at, end = text.index("class Net"), text.index("torch.manual")
    (tmp_path / "net.py").write_text(f"import torch\nfrom torch import nn\n\n\n{text[at:end]}")
    head = "import net\n" if "net." in made else "from net import Net\n"
    body = text[:at] + text[end:].replace("Net()", made)
    (tmp_path / "train.py").write_text(head + (body.replace("net = ", "model = ").replace("net(x)", "model(x)").replace(
        "net.parameters", "model.parameters") if "net." in made else body))  # fmt: skip
    done = {m.path.name: m for m in migrate_all(collect([tmp_path / "train.py"]), Options())}["train.py"]
    assert done.report.plan == "module" and ("divide_batches = False" in done.result.text) is whole
    told = [n.message for n in done.report.attention if n.code == "PTM703"]
    assert any("in Net.forward() of net.py" in m for m in told) is whole


@pytest.mark.parametrize("operation, whole", [("h.softmax(0) * h", True), ("h.softmax(1) * h", False)])
def test_what_a_network_of_another_file_does_with_the_samples_is_seen(tmp_path, operation, whole):
    text = SCRIPT.format(cell="nn.Identity()", forward=f"h = self.inner(x.mean(1))\n        h = {operation}")
    at, end = text.index("class Net"), text.index("torch.manual")
    (tmp_path / "nets.py").write_text(f"import torch\nfrom torch import nn\n\n\n{text[at:end]}")
    (tmp_path / "train.py").write_text(f"from nets import Net\n{text[:at]}{text[end:]}")
    done = {m.path.name: m for m in migrate_all(collect([tmp_path / "train.py"]), Options())}["train.py"]
    assert ("divide_batches = False" in done.result.text) is whole
