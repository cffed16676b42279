"""What several processes draw otherwise than one is told of; what they draw alike, or each its part of, is not."""

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text

from tests.migrate.lift.test_same_run import FUNCTIONS, NESTED

AT = "        out = model(x)\n"


def step(line, before="", imports=""):
    text = NESTED.replace(AT, f"        {line}\n").replace("\nfor epoch in", f"\n{before}\nfor epoch in")
    return text.replace("import time", f"import time\n{imports}")


def data(items, **loader):
    text = NESTED.replace(
        "\nfor epoch in", f"\nclass Data:\n    def __getitem__(self, i):\n        {items}\n\nfor epoch in"
    )
    options = "".join(f", {name}={value}" for name, value in loader.items())
    return text.replace("shuffle=True)", f"shuffle=True{options})")


TRANSFORM = ("from torchvision import transforms", "crop = transforms.RandomCrop(32)")
TOLD = {
    "by value": step("out = model(x + torch.poisson(x.abs()))"),
    "by count": step("out = model(x) * np.random.permutation(x.size(0))[0]", imports="import numpy as np"),
    "by its own name": step("out = model(x) * normal(0, 1, x.size(0))[0]", imports="from numpy.random import normal"),
    "one by one": step("out = model(x) * sum(random.random() for _ in x)", imports="import random"),
    "in workers": data("return xs[i] + torch.rand(5), ys[i]", num_workers=2),
    "in workers, perhaps": data("return xs[i] + torch.rand(5), ys[i]", num_workers="args.epochs"),
    "a transform in workers": step("out = model(x)", TRANSFORM[1], TRANSFORM[0]).replace(
        "shuffle=True)", "shuffle=True, num_workers=2)"
    ),
}
NOT_TOLD = {
    "nothing": NESTED,
    "before the loop": step("out = model(x)", "w = torch.randn(5)"),
    "a generator of its own": step(
        "out = model(x + torch.rand(5, generator=g))", "g = torch.Generator().manual_seed(1)"
    ),
    "whole batches": step("out = model(x + torch.randn(5)).softmax(0)"),
    "noise": step("out = model(x + torch.randn(x.size(0), 5))"),
    "in place": step("out = model(x + torch.empty_like(x).normal_())"),
    "in a helper": step("out = model(noisy(x))", "def noisy(x):\n    return x + torch.randn_like(x)\n"),
    "numpy": step("out = model(x + np.random.normal(0, 1, (x.size(0), 5)))", imports="import numpy as np"),
    "a coin": step("out = model(x if random.random() < 0.5 else -x)", imports="import random"),
    "without workers": data("return xs[i] + torch.rand(5), ys[i]"),
    "without workers, said": data("return xs[i] + torch.rand(5), ys[i]", num_workers=0),
    "a transform without workers": step("out = model(x)", TRANSFORM[1], TRANSFORM[0]),
    "a fixed transform": step("out = model(x)", "crop = transforms.CenterCrop(32)", TRANSFORM[0]).replace(
        "shuffle=True)", "shuffle=True, num_workers=2)"
    ),
}


@pytest.mark.parametrize("text", TOLD.values(), ids=TOLD.keys())
def test_told(text):
    result = migrate_text(text)
    (note,) = [n for n in result.attention if n.code == "PTM706"]
    assert result.plan in ("module", "manual") and "on several processes other numbers" in note.message


@pytest.mark.parametrize("text", NOT_TOLD.values(), ids=NOT_TOLD.keys())
def test_not_told(text):
    assert not [n for n in migrate_text(text).attention if n.code == "PTM706"]


CROPS = "import torch\nfrom torchvision import transforms\ncrop = transforms.RandomCrop(32)\n"
DATA = "import torch, random\nclass Data(torch.utils.data.Dataset):\n    def __getitem__(self, i):\n        {}\n"
LOADER = "def load(data, n):\n    return torch.utils.data.DataLoader(data, 8{})\n"
OF_OTHERS = {
    "a transform": CROPS,
    "a transform of its loader": CROPS + LOADER.format(", num_workers=n"),
    "a data set": DATA.format("return self.xs[i] + torch.rand(5)"),
    "Python's generator": DATA.format("return self.xs[random.randrange(5)]"),
}
NOT_OF_OTHERS = {
    "no workers": CROPS + LOADER.format(""),
    "a fixed transform": CROPS.replace("RandomCrop", "CenterCrop"),
    "a data set that draws nothing": DATA.format("return self.xs[i]"),
    "made once": DATA.format("return self.xs[i]") + "noise = torch.rand(5)\n",
}


def told_of_an_imported_file(text, of_lifted=True):
    result = migrate_text(text, Options(of_lifted=of_lifted), is_script=False)
    return [n.line for n in result.attention if n.code == "PTM706"]


@pytest.mark.parametrize("text", OF_OTHERS.values(), ids=OF_OTHERS.keys())
def test_what_data_sets_of_other_files_draw_is_told(text):
    assert len(told_of_an_imported_file(text)) == 1
    assert not told_of_an_imported_file(text, of_lifted=False)


@pytest.mark.parametrize("text", NOT_OF_OTHERS.values(), ids=NOT_OF_OTHERS.keys())
def test_what_they_do_not_draw_is_not(text):
    assert not told_of_an_imported_file(text)


NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.noise = torch.randn(3)

    def forward(self, x):
        {}
        return x

scheduler"""


def evaluated(line):
    return migrate_text(FUNCTIONS.replace("\nscheduler", NET.format(line), 1)).text


@pytest.mark.parametrize("line", ["x = x + torch.randn_like(x)", "x = torch.bernoulli(x)"])
def test_an_evaluation_that_draws_leaves_no_batch_out(line):
    assert "    validation_draws = True\n" in evaluated(line)


@pytest.mark.parametrize("line", ["x = F.relu(x)", "x = x + torch.randn_like(x) if self.training else x"])
def test_an_evaluation_that_draws_nothing_is_divided(line):
    assert "validation_draws" not in evaluated(line)


ATTACK = """
class Noise:
    def on(self, x):
        return x + torch.randn_like(x) * 0.1

    def __call__(self, x):
        return self.on(x)

noise = Noise()

scheduler"""


@pytest.mark.parametrize("call, draws", [("noise.on(x)", True), ("noise(x)", True), ("x.clone()", False)])
def test_an_evaluation_that_draws_in_an_object_of_the_file(call, draws):
    text = FUNCTIONS.replace("\nscheduler", ATTACK, 1)
    text = text.replace(
        "out = model(x.to(device))\n            loss", f"out = model({call}.to(device))\n            loss"
    )
    assert ("    validation_draws = True\n" in migrate_text(text).text) is draws
