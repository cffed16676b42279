"""Methods of a plain object that those who use it give tensors: what they move stays moved, to where the model is."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_on_card, check_project_on_card

SCRIPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Fitter:
    def __init__(self, model):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = model.to(self.device)
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def fit(self, loader, epochs):
        for e in range(epochs):
            for x, y in loader:
                x, y = x.to(self.device), y.to(self.device)
                self.opt.zero_grad()
                loss = nn.functional.mse_loss(self.model(x), y)
                loss.backward()
                self.opt.step()

    METHOD


torch.manual_seed(0)
X = torch.randn(16, 3)
y = X.sum(1, keepdim=True)
fitter = Fitter(nn.Linear(3, 1))
fitter.fit(DataLoader(TensorDataset(X, y), batch_size=8), 2)
print(USED)
"""
PREDICT = "def predict(self, x):\n        return self.model(x.to(self.device)).cpu()"
ASSIGNS = "def predict(self, x):\n        x = x.to(self.device)\n        return self.model(x).cpu()"
SCORE = (
    "def score(self, x, y):\n        out = self.model(x.to(self.device))\n"
    "        return nn.functional.mse_loss(out, y.to(self.device)).item()"
)
THERE = "x.to(next(self.model.parameters()).device)"


def script(method, used="y.sum().item()"):
    return SCRIPT.replace("METHOD", method).replace("USED", used)


@pytest.mark.parametrize("method", [PREDICT, ASSIGNS])
@pytest.mark.parametrize("given", ["X[:2]", "X", "torch.randn(2, 3)"])
def test_the_move_stays_to_where_the_model_is(tmp_path, method, given):
    assert THERE in check_on_card(tmp_path, script(method, f"fitter.predict({given}).tolist()"))


def test_of_two_tensors(tmp_path):
    result = check_on_card(tmp_path, script(SCORE, "fitter.score(X, y)"))
    assert THERE in result and "y.to(self.device)" in result


@pytest.mark.parametrize("method", [PREDICT, ASSIGNS, SCORE])
def test_one_that_nothing_here_calls_is_for_whoever_comes(method):
    result = migrate_text(script(method)).text
    assert THERE in result and ("y.to(self.device)" in result or "y.to" not in method)


OWN = "def {name}(self, x):\n        return self.model(x.to(self.device))"


def test_what_batches_alone_are_given_goes():
    text = script(OWN.format(name="_out")).replace("self.model(x), y)", "self._out(x), y)")
    assert "next(" not in migrate_text(text).text


def test_one_that_calls_no_network_goes():
    assert ".to(" not in migrate_text(script("def length(self, x):\n        return len(x.to(self.device))")).text


def test_so_does_one_of_an_object_that_trains_nothing_as_its_network_is_not_placed_either():
    head, rest = script(PREDICT).split("    def fit(")
    text = head + "    def predict" + rest.split("    def predict")[1].split("fitter.fit(")[0]
    assert "return self.model(x).cpu()" in migrate_text(text).text


NET = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(3, 1)

    def forward(self, x):
        return self.out(x)

    def sample(self, x=None):
        device = next(self.parameters()).device
        if x is not None:
            x = x.to(device)
        return self.out(x).sum().item()
"""
SHOWS = "import torch\n\nfixed = torch.ones(4, 3)\n\n\ndef show(net):\n    print(net.sample(fixed))\n"


def test_a_network_moves_what_anyone_gives_its_method(tmp_path):
    main = script(PREDICT, "show(fitter.model)").replace("nn.Linear(3, 1)", "Net()")
    main = main.replace("import torch\n", "import torch\nfrom net import Net\nfrom shows import show\n", 1)
    assert "x.to(device)" in check_project_on_card(tmp_path, main=main, net=NET, shows=SHOWS)["net"]


def test_what_its_own_methods_give_it_goes():
    text = NET.replace("return self.out(x)\n", "return self.sample(x)\n", 1).replace(".sum().item()", "")
    result = migrate_text(text, is_script=False).text
    assert "x = x.to(device)" not in result
