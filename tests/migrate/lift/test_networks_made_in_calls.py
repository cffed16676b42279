"""Networks that are made where they are handed on, by a function, from a table, in a chain of layers: followed, too."""

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text
from ptmigrate.migrate.project import collect, migrate_all

SCRIPT = """
import copy
import functools
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Code(nn.Module):
    def __init__(self, size=4):
        super().__init__()
        self.fc = nn.Linear(size, 3)
        self.register_buffer("size", torch.zeros(3))

    def forward(self, x):
        h = self.fc(x)
        if self.training:
            self.size.mul_(0.5).add_(h.detach().sum(0), alpha=0.5)
        return h - self.size


class Plain(nn.Module):
    def __init__(self, size=4):
        super().__init__()
        self.fc = nn.Linear(size, 3)

    def forward(self, x):
        return self.fc(x)


class Within(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 4), Code())

    def forward(self, x):
        return self.layers(x)


class Around(nn.Module):
    def __init__(self, scale, *, inner):
        super().__init__()
        self.inner, self.scale = inner, scale

    def forward(self, x):
        return self.scale * self.inner(x)


NETS = {"code": Code, "plain": Plain}


def build(kind):
    net = kind(4)
    return net


def build_by_name(name):
    net = NETS[name if name in NETS else "code"]()
    return net.to(device)


def make():
    return Code()


def make_plain():
    return Plain()


def train(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(2):
        for (x,) in loader:
            x = x.to(device)
            loss = model(x).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"{epoch} {loss.item():.5f}")


torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
first = Code()
kind = NETS["code"]
net = MADE
train(GIVEN, DataLoader(TensorDataset(torch.randn(32, 4)), batch_size=8))
"""

LISTED = """
if torch.cuda.is_available():
    dropout = nn.Dropout1d
else:
    dropout = nn.Dropout


class Listed(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.dropouts = nn.Linear(4, 3), nn.ModuleList()
        for _ in range(2):
            self.dropouts.append(dropout(0.2))

    def forward(self, x):
        for dropout in self.dropouts:
            x = dropout(x)
        return self.fc(x)


"""
PAIRS = """
class Pairs(nn.Module):
    def forward(self, z):
        return (z @ z.T).mean()

    @staticmethod
    def plain(z):
        return (z @ z.T).mean()

    @classmethod
    def of_class(cls, z):
        return cls.plain(z)

    @staticmethod
    def alone(z):
        return z.pow(2).mean()


"""


def script(made: str, by_name: bool) -> str:
    return SCRIPT.replace("MADE", made if by_name else "None").replace("GIVEN", "net" if by_name else made)


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize(
    "made",
    [
        "Code().to(device)",
        "make()",
        'NETS["code"]()',
        "NETS[device if device in NETS else 'code'](4).to(device)",  # whichever it may be
        "(Code() if device else Plain())",
        "(Code if device else Plain)()",
        "copy.deepcopy(first)",
        "kind()",
        "build_by_name(device).to(device)",
        "(lambda: Code())()",
        "functools.partial(Code, 4)()",
        "nn.Sequential(nn.Linear(4, 4), Code()).to(device)",
        "Within()",
        "Around(2, inner=Code())",
        "Around(2, inner=first).to(device)",
        "Around(2, inner=Around(3, inner=make()))",
    ],
)
def test_what_mixes_its_samples_gets_whole_batches(made, by_name):
    result = migrate_text(script(made, by_name))
    assert "divide_batches = False" in result.text
    assert any("mixes the samples" in n.message for n in result.attention)


CHOSEN = "if device:\n    chosen = {}\nelse:\n    chosen = Plain\n"


@pytest.mark.parametrize(("kind", "mixes"), [("Code", True), ("Plain", False), ("lambda: Code()", True)])
@pytest.mark.parametrize("by_name", [False, True])
def test_a_class_that_branches_choose(kind, mixes, by_name):
    text = script("chosen()", by_name).replace("first = Code()\n", CHOSEN.format(kind))
    assert ("divide_batches = False" in migrate_text(text).text) is mixes


def test_one_that_a_network_keeps_in_a_list():
    text = script("Listed()", True).replace("class Within", f"{LISTED}class Within")
    result = migrate_text(text)
    assert result.plan == "module" and "divide_batches" not in result.text


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize(
    "made",
    [
        "Plain().to(device)",
        "Around(2, inner=Plain())",
        "Around(2, inner=nn.Linear(4, 3))",
        "make_plain()",
        'NETS["plain"]()',
        "nn.Sequential(nn.Linear(4, 4), Plain()).to(device)",
    ],
)
def test_what_does_not_is_divided(made, by_name):
    result = migrate_text(script(made, by_name))
    assert "divide_batches" not in result.text and not result.attention


@pytest.mark.parametrize(
    ("made", "mixes"),
    [("Pairs.plain", True), ("Pairs.of_class", True), ("Pairs().forward", True), ("Pairs.alone", False)],
)
def test_a_criterion_that_is_a_method_of_a_class(made, mixes):
    text = f"{SCRIPT.replace('MADE', 'Plain()').replace('GIVEN', 'net')}"
    text = text.replace("NETS = {", f"{PAIRS}NETS = {{").replace("model(x).pow(2).mean()", "crit(model(x))")
    result = migrate_text(text.replace("first = Code()", f"crit = {made}"))
    assert ("divide_batches = False" in result.text) is mixes
    assert any("mixes the samples" in n.message for n in result.attention) is mixes


@pytest.mark.parametrize(("kind", "mixes"), [("Code", True), ("Plain", False)])
def test_one_that_a_function_of_another_file_makes(tmp_path, kind, mixes):
    head, _, training = SCRIPT.partition("def train")
    (tmp_path / "models.py").write_text(f"{head}def get(name):\n    return {kind}(4)\n")
    imports = "import torch\nfrom torch.utils.data import DataLoader, TensorDataset\nfrom models import get\n\n\n"
    text = f"{imports}def train{training}".replace('first = Code()\nkind = NETS["code"]\n', "")
    (tmp_path / "main.py").write_text(text.replace("MADE", 'get("it").to(device)').replace("GIVEN", "net"))
    (main,) = [m for m in migrate_all(collect([tmp_path / "main.py"]), Options()) if m.path.name == "main.py"]
    told = [n.message for n in main.report.attention]
    assert any("`h.detach().sum(0)` in Code.forward() of models.py" in m for m in told) is mixes
    assert (b"divide_batches = False" in main.data) is mixes
