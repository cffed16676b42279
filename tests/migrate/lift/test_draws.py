"""What several processes draw otherwise than one is told of; what they draw alike, or each its part of, is not."""

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text
from ptmigrate.migrate.project import collect, migrate_all

from tests.migrate.lift.test_same_run import FUNCTIONS, NESTED

AT = "        out = model(x)\n"


def step(line, before="", imports=""):
    text = NESTED.replace(AT, f"        {line}\n").replace("\nfor epoch in", f"\n{before}\nfor epoch in")
    return text.replace("import time", f"import time\n{imports}")


TOLD = {
    "by value": step("out = model(x + torch.poisson(x.abs()))"),
    "by count": step("out = model(x) * np.random.permutation(x.size(0))[0]", imports="import numpy as np"),
    "by its own name": step("out = model(x) * normal(0, 1, x.size(0))[0]", imports="from numpy.random import normal"),
    "one by one": step("out = model(x) * sum(random.random() for _ in x)", imports="import random"),
    "of torch, for each sample": step("out = model(x) * sum(torch.rand(1).item() for _ in range(len(x)))"),
    "of numpy, for each sample": step(
        "out = model(scaled(x))",
        "def scaled(x):\n    for b in range(x.shape[0]):\n        x[b] *= np.random.uniform(0.5, 2.0)\n    return x\n",
        imports="import numpy as np",
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
    "a number of times": step("out = model(x) + sum(torch.randn(x.size(0), 1) for _ in range(3))"),
    "for each layer": step(
        "out = model(x) + sum(torch.randn(x.size(0), 1) for _ in range(len(layers)))", "layers = [1, 2]"
    ),
    "for each row of a weight": step(
        "out = model(x) + sum(torch.randn(x.size(0), 1) for _ in range(model[0].weight.shape[0]))"
    ),
    "a coin": step("out = model(x if random.random() < 0.5 else -x)", imports="import random"),
}


@pytest.mark.parametrize("text", TOLD.values(), ids=TOLD.keys())
def test_told(text):
    result = migrate_text(text)
    (note,) = [n for n in result.attention if n.code == "PTM706"]
    assert result.plan in ("module", "manual") and "on several processes other numbers" in note.message


@pytest.mark.parametrize("text", NOT_TOLD.values(), ids=NOT_TOLD.keys())
def test_not_told(text):
    assert not [n for n in migrate_text(text).attention if n.code == "PTM706"]


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


HELPERS = {
    "one by one": ("return x * sum(random.random() for _ in x)", True),
    "for the batch at once": ("return x + torch.randn_like(x)", False),
    "a coin": ("return x if random.random() < 0.5 else -x", False),
}


@pytest.mark.parametrize("name", HELPERS)
@pytest.mark.parametrize("imported", ["from helpers import noisy", "import helpers"])
def test_a_helper_of_another_file(tmp_path, name, imported):
    body, told = HELPERS[name]
    called = "noisy(x)" if "from" in imported else "helpers.noisy(x)"
    (tmp_path / "helpers.py").write_text(f"import random\nimport torch\n\n\ndef noisy(x):\n    {body}\n")
    (tmp_path / "train.py").write_text(step(f"out = model({called})", imports=imported))
    done = {m.path.stem: m for m in migrate_all(collect([tmp_path / "train.py"]), Options())}
    notes = [n.message for n in done["train"].report.attention if n.code == "PTM706"]
    assert [f"`{called}` draws" in n and "`random.random()` of helpers.py" in n for n in notes] == [True] * told


NOISY = "def noisy(x, rng=None):\n    rng = rng or np.random.default_rng()\n    return x + rng.random()\n"
UNSEEDED = {
    "of a step": step("out = model(x + np.random.RandomState().rand())", imports="import numpy as np"),
    "of a function": step("out = model(noisy(x))", NOISY, imports="import numpy as np"),
    "of Python's": step("out = model(x * random.Random(None).random())", imports="import random"),
    "of the script": step("out = model(x * own.random())", "own = random.Random()", imports="import random"),
}
SEEDED = {
    "of a step": step("out = model(x + np.random.RandomState(epoch).rand())", imports="import numpy as np"),
    "of the script": step("out = model(x * own.random())", "own = random.Random(x=3)", imports="import random"),
    "of no step": step("out = model(x)", "own = random.Random().random()", imports="import random"),
    "given later": step("out = model(x * own.random())", "own = random.Random()\nown.seed(3)", imports="import random"),
}


@pytest.mark.parametrize("text", UNSEEDED.values(), ids=UNSEEDED.keys())
def test_a_generator_without_a_seed_is_each_process_s_own(text):
    (note,) = [n for n in migrate_text(text).attention if n.code == "PTM706"]
    assert "has no seed" in note.message


@pytest.mark.parametrize("text", SEEDED.values(), ids=SEEDED.keys())
def test_one_with_a_seed_is_every_process_s(text):
    assert not [n for n in migrate_text(text).attention if n.code == "PTM706"]


def test_one_of_another_file_is_told_where_the_step_comes_to_it(tmp_path):
    (tmp_path / "helpers.py").write_text(f"import numpy as np\n\n\n{NOISY}")
    (tmp_path / "train.py").write_text(step("out = model(noisy(x))", imports="from helpers import noisy"))
    done = {m.path.stem: m for m in migrate_all(collect([tmp_path / "train.py"]), Options())}
    (note,) = [n for n in done["train"].report.attention if n.code == "PTM706"]
    assert "`noisy(x)` comes to `np.random.default_rng()` of helpers.py, which has no seed" in note.message
