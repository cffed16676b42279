"""`optimizer.train()` and `data.eval()` switch no network; an evaluation above the loop leaves the network's mode."""

import pytest

from tests.migrate.lift.test_same_run import FUNCTIONS
from tests.migrate.running import check_same

CLASSES = """
class Data(torch.utils.data.Dataset):
    def __init__(self):
        self.noisy = False

    def train(self):
        self.noisy = True

    def eval(self):
        self.noisy = False

    def __len__(self):
        return len(xs)

    def __getitem__(self, i):
        return xs[i] + self.noisy, ys[i]


class ScheduleFree(torch.optim.SGD):
    factor = 1.0

    def train(self):
        self.factor = 1.0

    def eval(self):
        self.factor = 0.0

    def step(self, closure=None):
        if self.factor:
            return super().step(closure)


data = Data()
"""
SCRIPT = (
    FUNCTIONS.replace("train_loader = DataLoader(TensorDataset(xs, ys)", f"{CLASSES}train_loader = DataLoader(data")
    .replace("torch.optim.SGD(model", "ScheduleFree(model")
    .replace("class ScheduleFree(model", "class ScheduleFree(torch.optim.SGD")
)
SWITCHES = {
    "a data set": ("data.train()", "data.eval()"),
    "an optimizer": ("optimizer.train()", "optimizer.eval()"),
    "both": ("data.train()\n    optimizer.train()", "optimizer.eval()\n    data.eval()"),
}


@pytest.mark.parametrize(("train", "evaluate"), SWITCHES.values(), ids=SWITCHES)
def test_what_is_no_network_is_switched_by_the_script(train, evaluate):
    text = SCRIPT.replace("model.train()", f"model.train()\n    {train}").replace(
        "model.eval()", f"model.eval()\n    {evaluate}"
    )
    result = check_same(text, "module")
    for line in (*train.split(), *evaluate.split()):
        assert line.replace("optimizer", "optimizers()") in result


def test_an_evaluation_above_the_loop_leaves_its_mode():
    result = check_same(FUNCTIONS.replace("for epoch in range(1", "test()\nfor epoch in range(1"), "module")
    assert "self.model.train()" in result


@pytest.mark.parametrize(
    "above",
    [
        "if args.epochs > 9:\n    test()\n    raise SystemExit\n",
        "if args.epochs > 9:\n    print(1)\n    if args.lr:\n        test()\n    exit()\n",
    ],
)
def test_one_that_ends_the_run_does_not(above):
    result = check_same(FUNCTIONS.replace("for epoch in range(1", f"{above}for epoch in range(1"), "module")
    assert "self.model.train()" not in result


def test_one_below_the_loop_does_not():
    result = check_same(FUNCTIONS + "test()\n", "module")
    assert "self.model.train()" not in result
