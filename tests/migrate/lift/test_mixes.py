"""A step that mixes the samples of its batch keeps whole batches on several processes; others are divided."""

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text
from ptmigrate.migrate.project import collect, migrate_all

from tests.migrate.lift.test_same_run import NESTED
from tests.migrate.running import check_same

LOSS = "        loss = criterion(out, y)\n"
HELPER = """
def nt_xent(z, y):
    z = F.normalize(z, dim=1)
    similarity = z @ z.t()
    return F.cross_entropy(similarity, torch.arange(len(z)))

for epoch in"""

CENTRES = "centres = torch.zeros(3, 3)\nfor epoch in"
OF_CENTRES = NESTED.replace("for epoch in", CENTRES).replace(
    LOSS, "        CHANGE\n        loss = criterion(out, y) + (out - centres[y]).pow(2).mean()\n"
)

MIXES = {
    "a part of what the loss reads": OF_CENTRES.replace("CHANGE", "centres[0] = 0.1 * out.detach()[y == 0].mean(0)"),
    "in place": OF_CENTRES.replace("CHANGE", "centres[1].mul_(0.9).add_(out.detach()[y == 1].mean(0))"),
    "added to a part": OF_CENTRES.replace("CHANGE", "centres[0] += out.detach().mean(0)"),
    "copied": OF_CENTRES.replace("CHANGE", "centres.copy_(out.detach().mean(0).expand(3, 3))"),
    "a product with itself": NESTED.replace(LOSS, "        loss = (out @ out.t()).mean() + criterion(out, y)\n"),
    "softmax over the samples": NESTED.replace(LOSS, "        loss = criterion(out.softmax(dim=0), y)\n"),
    "a mean that is subtracted": NESTED.replace(LOSS, "        loss = criterion(out - out.mean(0), y)\n"),
    "distances": NESTED.replace(LOSS, "        loss = torch.cdist(out, out).mean() + criterion(out, y)\n"),
    "in a helper": NESTED.replace("\nfor epoch in", HELPER).replace(LOSS, "        loss = nt_xent(out, y)\n"),
    "the hardest of the batch": NESTED.replace(
        LOSS, "        l = F.cross_entropy(out, y, reduction='none')\n        loss = l.topk(3)[0].mean()\n"
    ),
    "places that the mean of the batch says": NESTED.replace(
        LOSS, "        best = out.mean(0).topk(1)[1]\n        loss = criterion(out, y) + out[:, best].mean()\n"
    ),
    "the one that a sample says": NESTED.replace(LOSS, "        loss = criterion(out, y) + out[:, y[0]].mean()\n"),
    "one half against the other": NESTED.replace(
        LOSS, "        n = len(out) // 2\n        loss = F.mse_loss(out[:n], out[n : 2 * n]) + criterion(out, y)\n"
    ),
    "rows by two": NESTED.replace(
        LOSS, "        a, b = out.view(2, -1, 3)\n        loss = F.mse_loss(a, b) + criterion(out, y)\n"
    ),
    "in the order of the batch": NESTED.replace(LOSS, "        loss = criterion(out.sort(dim=0)[0], y)\n"),
}
MIXES_NOT = {
    "another entry of what holds the loss": NESTED.replace("for epoch in", "stats = {}\nfor epoch in").replace(
        LOSS,
        "        stats['spread'] = out.detach().std(0).mean()\n        stats['loss'] = criterion(out, y)\n"
        "        loss = stats['loss']\n",
    ),
    "a part of what the loss does not read": NESTED.replace("for epoch in", CENTRES).replace(
        LOSS, LOSS + "        centres[0] = out.detach()[y == 0].mean(0)\n"
    ),
    "plain": NESTED,
    "places that the step says": NESTED.replace(
        LOSS, "        k = len(out.shape)\n        loss = criterion(out[:, [0, k, 1]], y)\n"
    ),
    "places that each sample says": NESTED.replace(
        LOSS, "        loss = criterion(out, y) + out[torch.arange(len(y)), out.argmax(1)].mean()\n"
    ),
    "softmax over the classes": NESTED.replace(LOSS, "        loss = F.nll_loss(out.log_softmax(dim=1), y)\n"),
    "a mean of everything": NESTED.replace(LOSS, "        loss = (out - F.one_hot(y, 3)).pow(2).mean()\n"),
    "a product with a weight": NESTED.replace(LOSS, "        loss = criterion(out @ torch.eye(3), y)\n"),
    "parts of each sample": NESTED.replace(
        LOSS, "        loss = criterion(out.view(-1, 3, 1).repeat(1, 1, 2).mean(-1), y)\n"
    ),
    "an accuracy": NESTED.replace(LOSS, LOSS + "        hits = (out.argmax(1) == y).float().mean()\n"),
    "in a helper": NESTED.replace("\nfor epoch in", HELPER.replace("z @ z.t()", "z * 2").replace(
        "torch.arange(len(z))", "y")).replace(LOSS, "        loss = nt_xent(out, y)\n"),
}  # fmt: skip


@pytest.mark.parametrize("text", MIXES.values(), ids=MIXES.keys())
def test_batches_stay_whole_and_the_report_says_why(text):
    result = migrate_text(text)
    assert result.plan == "module" and "divide_batches = False" in result.text
    assert any(n.code == "PTM703" and "mixes the samples of a batch" in n.message for n in result.attention)


@pytest.mark.parametrize("text", MIXES_NOT.values(), ids=MIXES_NOT.keys())
def test_others_are_divided(text):
    result = migrate_text(text)
    assert result.plan == "module" and "divide_batches" not in result.text


def test_one_process_is_the_same_run():
    check_same(MIXES["in a helper"], "module")


@pytest.mark.parametrize(
    ("imported", "mixed", "whole"),
    [
        ("from utils import mixup_data", "out, y = mixup_data(out, y)", True),
        ("from timm.data import Mixup\nmixup_fn = Mixup(0.8)", "out, y = mixup_fn(out, y)", True),
        ("import utils", "out, y = utils.CutMix(out, y)", True),
        ("from utils import mixup_criterion", "out = out + mixup_criterion(out, y)", False),
        ("from utils import mixup_data", "lam = mixup_data(0.5)", False),
        ("from utils import mixed_precision", "out = mixed_precision(out)", False),
        ("def mixup_data(x, y):\n    return x * 2, y\n", "out, y = mixup_data(out, y)", False),
    ],
)
def test_mixup_of_another_file_goes_by_its_name(imported, mixed, whole):
    text = NESTED.replace("import torch\n", f"import torch\n{imported}\n", 1).replace(LOSS, f"        {mixed}\n{LOSS}")
    assert ("divide_batches = False" in migrate_text(text).text) is whole


IMPORTED = """
import torch
from torch.utils.data import DataLoader
from losses import SegLoss
from nets import make

model = make()
criterion = SegLoss()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(2):
    for x, y in DataLoader(torch.utils.data.TensorDataset(torch.randn(8, 2), torch.ones(8)), 4):
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
"""


@pytest.mark.parametrize("given", ["ignore_index=-1", "ignore_label=255", "aux=True, weight=make()"])
def test_a_loss_of_another_file_that_is_told_which_targets_count(given):
    result = migrate_text(IMPORTED.replace("SegLoss()", f"SegLoss({given})"))
    assert "divide_batches = False" in result.text
    assert any("which targets count" in n.message for n in result.attention)


@pytest.mark.parametrize(
    "new", ["SegLoss()", "SegLoss(weight=0.5)", "SegLoss(ignore_index=None, weight=None)", "SegLoss(aux=True)"]
)
def test_one_that_is_not_does_not_show_either(new):
    result = migrate_text(IMPORTED.replace("SegLoss()", new))
    (note,) = [n for n in result.attention if n.code == "PTM703"]
    assert "nothing shows whether" in note.message and "divide_batches = False" in result.text


def test_a_meter_that_leaves_targets_out_is_no_loss():
    meter = IMPORTED.replace("SegLoss()", "SegLoss()\nmeter = Meter(ignore_index=-1)")
    result = migrate_text(meter.replace("import SegLoss", "import Meter, SegLoss"))
    (note,) = [n for n in result.attention if n.code == "PTM703"]
    assert "nothing shows whether" in note.message


NETWORK = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3))

    def forward(self, x):
        h = self.inner(x)
        return h


model = Net().to(device)
"""
SEQUENTIAL = "model = nn.Sequential(nn.Linear(5, 7), nn.Dropout(0.2), nn.ReLU(), nn.Linear(7, 3)).to(device)\n"


def in_a_network(operation, network=NETWORK):
    """A script whose own network computes something of `h`, a row a sample."""
    at = network.rindex("        return h\n")
    return NESTED.replace(SEQUENTIAL, f"{network[:at]}        return {operation}{network[at + 16 :]}")


@pytest.mark.parametrize(
    "operation",
    ["h.softmax(0)", "h @ (h.t() @ h)", "h - h.mean(0)", "h / h.std(dim=0)", "h + torch.cdist(h, h).mean()",
     "h[torch.randperm(len(h))]", "F.normalize(h, dim=0)", "F.softmax(self.inner(x), dim=0)",
     "(h.T @ h).sum() * h"],
)  # fmt: skip
@pytest.mark.parametrize("series", ["", "nn.LSTM(3, 3)"])
def test_a_network_of_the_file_that_mixes_takes_whole_batches(operation, series):
    text = in_a_network(operation)
    if series:
        text = text.replace("        self.inner =", f"        self.cell = {series}\n        self.inner =")
    result = migrate_text(text)
    assert result.plan == "module" and "divide_batches = False" in result.text
    told = [n.message for n in result.attention if n.code == "PTM703"]
    assert any("`model(x)` mixes the samples of a batch: `" in m and "in Net.forward()" in m for m in told)


@pytest.mark.parametrize(
    "operation",
    ["h.softmax(1)", "h - h.mean(1, keepdim=True)", "h @ self.inner[2].weight[:, :3]", 
     "h * torch.ones(3, 3).softmax(0)[0]", "torch.stack([h, h]).mean(0)", 
     "h.view(len(h), 3, 1).transpose(1, 2).flatten(1)",
     "h.unsqueeze(0).softmax(0).squeeze(0)"],
)  # fmt: skip
def test_a_network_that_keeps_its_samples_apart_is_divided(operation):
    text = in_a_network(operation)
    result = migrate_text(text)
    assert result.plan == "module" and "divide_batches" not in result.text


def test_a_network_in_a_network_and_one_that_a_trainer_keeps():
    inner = NETWORK.replace("class Net", "class Inner").split("\n\nmodel")[0].replace("return h", "return h.softmax(0)")
    outer = NETWORK.replace("nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3))", "Inner()")
    result = migrate_text(NESTED.replace(SEQUENTIAL, inner + "\n" + outer))
    assert "divide_batches = False" in result.text
    assert any("`h.softmax(0)` in Inner.forward()" in n.message for n in result.attention)


SERIES = {
    "the steps first": ("nn.LSTM(5, 3)", "h = self.cell(x[:, None].transpose(0, 1))[0]", "h.mean(0)"),
    "attention over the steps": (
        "nn.GRU(5, 3)", "h = self.cell(x[:, None].permute(1, 0, 2))[0]", "(h * h.softmax(0)).sum(0)",
    ),
    "the last state": ("nn.LSTM(5, 3, batch_first=True)", "h = self.cell(x[:, None])[1][0]", "h[-1]"),
    "the last step": ("nn.LSTM(5, 3)", "h = self.cell(x[:, None].transpose(0, 1))[0]", "h[-1]"),
    "heads first": (
        "nn.Embedding(9, 3)",
        "h = self.cell(x.long().clamp(0, 8)).view(len(x), 5, 1, 3).permute(2, 0, 1, 3).contiguous().view(-1, 5, 3)",
        "torch.bmm(torch.bmm(h, h.transpose(1, 2)).softmax(2), h).mean(1)",
    ),
    "sorted by length": (
        "nn.LSTM(5, 3, batch_first=True)",
        "n, i = torch.sort(torch.full((x.size(0),), 1), descending=True)\n        h = self.cell(x[i][:, None])[1][0]",
        "h[-1][i.sort()[1]]",
    ),
    "the longest step": ("nn.GRU(5, 3, batch_first=True)", "h = self.cell(x[:, None])[0]", "h.max(1)[0]"),
}  # fmt: skip


@pytest.mark.parametrize("name", SERIES)
def test_what_a_network_makes_of_the_steps_of_a_series_is_divided(name):
    cell, line, operation = SERIES[name]
    text = in_a_network(operation).replace("        h = self.inner(x)\n", f"        {line}\n")
    text = text.replace("        self.inner =", f"        self.cell = {cell}\n        self.inner =")
    result = migrate_text(text)
    assert result.plan == "module" and "divide_batches" not in result.text


HEADS = "self.cell(x[:, None].expand(-1, 6, 5)).{view}(len(x), 6, 3, 2, 4).permute({order})"
ATTENDS = "(q @ k.transpose(-2, -1)).softmax(-1) @ v"
BY_SUMS = "torch.einsum('bhij,bhjd->bhid', torch.einsum('bhid,bhjd->bhij', q, k).softmax(-1), v)"
TAKEN = {
    "unpacked": "q, k, v = {heads}",
    "unpacked by a name": "qkv = {heads}\n        q, k, v = qkv",
    "by numbers": "qkv = {heads}\n        q, k, v = qkv[0], qkv[1], qkv[2]",
    "unbound": "q, k, v = {heads}.unbind(0)",
    "unbound by a name": "qkv = {heads}\n        q, k, v = torch.unbind(qkv, 0)",
}


def attending(taken, order="2, 0, 3, 1, 4", attends=ATTENDS, view="view"):
    line = TAKEN[taken].format(heads=HEADS.format(order=order, view=view))
    text = in_a_network("h").replace("        h = self.inner(x)\n", f"        {line}\n        HEAD\n")
    text = text.replace("HEAD", f"h = ({attends}).transpose(1, 2).reshape(len(x), 6, 8).mean(1)[:, :3] + self.inner(x)")
    return text.replace("        self.inner =", "        self.cell = nn.Linear(5, 24)\n        self.inner =")


@pytest.mark.parametrize("taken", TAKEN)
@pytest.mark.parametrize("attends", [ATTENDS, BY_SUMS, "F.scaled_dot_product_attention(q, k, v)"])
def test_attention_to_the_other_parts_of_a_sample_is_divided(taken, attends):
    text = attending(taken, attends=attends)
    assert "divide_batches" not in check_same(text, "module")


@pytest.mark.parametrize(
    ("taken", "left"),
    [
        ("a, b = torch.broadcast_tensors(h, h * 2)", "a.sum(0)"),  # two tensors, and no parts of one
        ("a, b = h[:4].view(2, 2, len(x), 3)", "a.mean(0)"),
    ],
)
def test_what_else_is_unpacked_keeps_its_dimensions(taken, left):
    lines = f"h = self.cell(x[:, :, None]).permute(1, 0, 2)\n        {taken}\n        h = {left}"
    text = in_a_network("h").replace("        h = self.inner(x)\n", f"        {lines} + self.inner(x)\n")
    text = text.replace("        self.inner =", "        self.cell = nn.Linear(1, 3)\n        self.inner =")
    assert "divide_batches" not in check_same(text, "module")


def test_samples_that_were_rows_and_come_first_again():
    turned = "q = self.cell(x[:, None].expand(-1, 6, 5)).view(len(x), 6, 6, 4).permute(1, 2, 0, 3).transpose(0, 2)"
    text = attending("unpacked").replace(
        TAKEN["unpacked"].format(heads=HEADS.format(order="2, 0, 3, 1, 4", view="view")), turned
    )
    text = text.replace(ATTENDS, "(q @ q.transpose(-2, -1)).softmax(-1) @ q").replace("len(x), 6, 8)", "len(x), 6, 24)")
    assert "divide_batches" not in check_same(text, "module")


@pytest.mark.parametrize("taken", TAKEN)
@pytest.mark.parametrize("attends", [ATTENDS, BY_SUMS, "F.scaled_dot_product_attention(q, k, v)"])
def test_attention_to_the_other_samples_is_not(taken, attends):
    text = attending(taken, order="2, 3, 1, 0, 4", attends=attends).replace(
        ".transpose(1, 2).reshape", ".permute(2, 1, 0, 3).reshape"
    )
    assert "divide_batches = False" in check_same(text, "module")


BY_METHOD = NETWORK.replace(
    "\n\nmodel = ", "\n    def scored(self, x, y):\n        return F.cross_entropy(GIVEN, y)\n\n\nmodel = "
)
GIVEN = ["self(x)", "self.forward(x)", "self.inner(x).softmax(0)", "self.inner(x) - self.inner(x).mean(0)"]


def by_method(given, mixes):
    network = BY_METHOD.replace("return h", "return h.softmax(0)") if mixes else BY_METHOD
    text = NESTED.replace(SEQUENTIAL, network.replace("GIVEN", given))
    return text.replace("        out = model(x)\n", "").replace(LOSS, "        loss = model.scored(x, y)\n")


@pytest.mark.parametrize("given", GIVEN)
def test_a_method_of_a_network_that_mixes_takes_whole_batches(given):
    result = migrate_text(by_method(given, mixes="(x)" in given[-10:]))
    assert "divide_batches = False" in result.text
    assert any("`model.scored(x, y)` mixes the samples of a batch" in n.message for n in result.attention)


KL = "self(x) * D.kl_divergence(D.Normal(self(x), 1.0), D.Normal(0.0, 1.0)).sum(-1, keepdim=True)"


@pytest.mark.parametrize("given", ["self(x)", "self.inner(x).softmax(1)", KL.replace("D.", "torch.distributions.")])
def test_one_that_does_not_is_divided_by_a_method(given):
    assert "divide_batches" not in migrate_text(by_method(given, mixes=False)).text


@pytest.mark.parametrize(("given", "whole"), [("self(x)", True), ("self.inner(x).softmax(1)", False)])
def test_a_method_of_a_network_of_another_file(tmp_path, given, whole):
    text = by_method(given, mixes=whole)
    start, end = text.index("class Net"), text.index("model = Net()")
    (tmp_path / "nets.py").write_text(f"from torch import nn\nimport torch.nn.functional as F\n\n\n{text[start:end]}")
    (tmp_path / "train.py").write_text(f"{text[:start]}from nets import Net\n\n{text[end:]}")
    done = {m.path.stem: m.data.decode() for m in migrate_all(collect([tmp_path / "train.py"]), Options())}
    assert ("divide_batches = False" in done["train"]) is whole


def test_a_metric_of_what_a_network_mixes_divides():
    text = in_a_network("h.softmax(0)").replace(
        "out = model(x)", "out = nn.functional.linear(x, model.inner[0].weight[:3])\n        seen = model(x)"
    )
    result = migrate_text(text)
    assert "divide_batches" not in result.text


GRAPHS = """
import torch
import torch.nn.functional as F
from torch_geometric.datasets import PPI
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCNConv, global_mean_pool

loader = DataLoader(PPI("data"), batch_size=4, shuffle=True)
net = GCNConv(3, 4)
optimizer = torch.optim.Adam(net.parameters())
for epoch in range(3):
    for data in loader:
        optimizer.zero_grad()
        out = net(data.x, data.edge_index)
        loss = F.mse_loss(out, data.y)
        loss.backward()
        optimizer.step()
        print(loss.item() * data.num_graphs)
"""
OF_NODES = {
    "nothing puts nodes together": GRAPHS.replace(", global_mean_pool", ""),
    "what says which node is whose goes": GRAPHS.replace(", global_mean_pool", "").replace(
        "        optimizer.zero_grad()\n", "        data.batch = None\n        optimizer.zero_grad()\n"
    ),
}
OF_GRAPHS = {
    "a pool": GRAPHS.replace("F.mse_loss(out, ", "F.mse_loss(global_mean_pool(out, data.batch), "),
    "a network that is told": GRAPHS.replace(", global_mean_pool", "").replace(
        "edge_index)", "edge_index, data.batch)"
    ),
    "another loader": GRAPHS.replace(", global_mean_pool", "").replace("torch_geometric.loader", "torch.utils.data"),
}


@pytest.mark.parametrize("text", OF_NODES.values(), ids=OF_NODES)
def test_a_mean_over_nodes_is_none_over_the_graphs_of_a_share(text):
    result = migrate_text(text)
    assert result.plan == "module" and "divide_batches = False" in result.text
    assert "nodes of its own number" in "".join(n.message for n in result.attention if n.code == "PTM703")


@pytest.mark.parametrize("text", OF_GRAPHS.values(), ids=OF_GRAPHS)
def test_graphs_are_divided_as_other_samples_are(text):
    result = migrate_text(text)
    assert result.plan == "module" and "divide_batches" not in result.text


FIELD = """
from torchdiffeq import odeint, odeint_adjoint

def field(t, z):
    return -z

"""


@pytest.mark.parametrize(
    ("solved", "whole"),
    [
        ("odeint(field, out, times)[-1]", True),
        ("odeint_adjoint(field, out, times, method='dopri5')[-1]", True),
        ("odeint(field, out, times, method='rk4')[-1]", False),
    ],
)
def test_a_solver_that_chooses_its_steps_takes_whole_batches(solved, whole):
    """The steps go by the error of all samples: a share's gave another loss, of a loose tolerance by two percent."""
    text = NESTED.replace("\nfor epoch in", FIELD + "\nfor epoch in", 1).replace(
        LOSS, f"        loss = criterion({solved}, y)\n"
    )
    result = migrate_text(text)
    assert ("divide_batches = False" in result.text) is whole
    assert any("mixes the samples of a batch" in n.message for n in result.attention) is whole
