"""The mode that an evaluation leaves the model in: with dropout, the losses tell it. Run before and after."""

from textwrap import dedent, indent

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_same

TEXT = (
    HEAD
    + """
def evaluate():
    model.eval()
    right = 0
    with torch.no_grad():
        for x, y in test_loader:
            right += (model(x).argmax(1) == y).sum().item()
    {back}
    return right

for epoch in range(3):
    {forth}
    for x, y in train_loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    right = evaluate()
    print(f'{{right}} {{loss.item():.6f}}')
"""
)
LEFT = "evaluation mode after the first evaluation"


@pytest.mark.parametrize(
    ("back", "forth", "told"),
    [
        ("pass", "pass", True),
        ("model.train()", "pass", False),
        ("pass", "model.train()", False),
        ("model.train()", "model.train()", False),
    ],
    ids=["left on", "set back in the evaluation", "set back in the epoch", "both"],
)
def test_the_mode_is_the_scripts(back, forth, told):
    text = TEXT.format(back=back, forth=forth)
    result = check_same(text, "module")
    notes = [n for n in migrate_text(text).attention if LEFT in n.message]
    assert bool(notes) is told
    assert ("def on_validation_model_train(self):\n        pass\n" in result) is told


GIVEN_BACK = (
    HEAD
    + """
for epoch in range(3):
    for i, (x, y) in enumerate(train_loader):
        model = model.train()
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model = model.eval()
    with torch.no_grad():
        print(sum((model(x).argmax(1) == y).sum().item() for x, y in test_loader))
torch.save(model.state_dict(), os.devnull)
"""
)


def test_a_module_that_a_switch_gives_back_is_not_carried():
    text = GIVEN_BACK.replace("import torch\n", "import os\nimport torch\n", 1)
    result = check_same(text, "module")
    assert "self.model.train()\n" in result and "divide_batches" not in result


def test_what_is_not_shown_to_be_a_module_is_carried():
    text = GIVEN_BACK.replace("model = model.train()", "state = state.train()").replace(
        "for epoch", "state = State()\n\nfor epoch", 1
    )
    assert "carried from batch to batch" in str(migrate_text(text).attention)


IN_MAIN = (
    HEAD
    + """
{above}
def main():
    {inside}
    for epoch in range(3):
        {forth}
        for x, y in train_loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        right = 0
        with torch.no_grad():
            for x, y in test_loader:
                right += (model(x).argmax(1) == y).sum().item()
        print(f'{{right}} {{loss.item():.6f}}')
    {below}
    print(model(train_loader.dataset[0][0][None]).tolist())

main()
"""
)
MADE = """\
model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Dropout(0.5), torch.nn.Linear(7, 3))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
"""


@pytest.mark.parametrize("forth", ["pass", "model.train()"])
@pytest.mark.parametrize("below", ["pass", "model.eval()", "model.train(False)"])
@pytest.mark.parametrize("local", [True, False])
def test_a_mode_that_is_set_after_the_loop(local, below, forth):
    above, inside = ("", indent(MADE, "    ").strip()) if local else (MADE, "pass")
    text = IN_MAIN.format(above=above, inside=inside, forth=forth, below=below)
    check_same(text, "module")


@pytest.mark.parametrize("name", ["model", "net"])
@pytest.mark.parametrize("below", ["pass", "model.train()"])
def test_a_function_that_sets_the_mode_under_another_name(name, below):
    """What the model does below the loop it does in the mode that the last evaluation left it in."""
    inline = IN_MAIN[IN_MAIN.index("        model.eval()") : IN_MAIN.index("        print(")]
    test = f"def test({name}):\n{dedent(inline).replace('model', name)}return right\n".replace("\n", "\n    ").rstrip()
    text = IN_MAIN.replace(inline, "        right = test(model)\n")
    text = text.format(above=f"{MADE}\n{test}\n", inside="pass", forth="model.train()", below=below)
    check_same(text, "module")


@pytest.mark.parametrize(
    ("layer", "off", "whole"),
    [
        ("nn.Dropout(0.5)", "pass", True),
        ("nn.BatchNorm1d(7)", "pass", True),
        ("nn.LayerNorm(7)", "pass", False),
        ("nn.ReLU()", "pass", False),
        ("nn.Dropout(0.5)", "model.eval()", False),
        ("nn.BatchNorm1d(7)", "model.train(False)", False),
    ],
)
def test_an_evaluation_in_training_mode_is_every_process_own(layer, off, whole):
    text = TEXT.replace("    model.eval()\n", f"    {off}\n", 1).format(back="pass", forth="model.train()")
    text = text.replace("nn.Dropout(0.2)", layer)
    for end in ("", "model.eval()\nprint(model(xs[:2]).tolist())\n"):
        assert ("divide_validation = False" in check_same(text + end, "module")) is whole


TWO = """
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = torch.nn.Linear(4, 4)
head = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.Linear(4, 1))
opt = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=0.01)
loader = DataLoader(TensorDataset(torch.randn(24, 4), torch.randn(24, 1)), batch_size=8)
for epoch in range(3):
    for x, y in loader:
        loss = ((head(model(x)) - y) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    model.eval()
    head.eval()
    with torch.no_grad():
        seen = 0.0
        for x, y in loader:
            seen += head(model(x)).sum().item()
    print(seen)
    model.train()
    head.train()
    print(epoch, loss.item())
"""


def test_two_networks_that_are_switched_together():
    assert ".eval()" not in check_same(TWO, "module")


@pytest.mark.parametrize("left", ["    head.train()\n", "    head.eval()\n", "    model.train()\n"])
def test_one_of_two_networks_that_is_not_switched_with_the_other(left):
    result = check_same(TWO.replace(left, ""), "module")
    assert ".eval()" in result and "pass  # the script sets its models' modes itself" in result


def test_a_network_without_modes_need_not_be_switched():
    text = TWO.replace("    model.eval()\n", "").replace("    model.train()\n", "")
    assert ".eval()" not in check_same(text, "module")


OF_A_CLASS = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
xs = torch.randn(16, 4)


class Learner:
    def __init__(self):
        self.loader = DataLoader(TensorDataset(xs, xs.sum(1, keepdim=True)), batch_size=4)
        self.model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def train_epoch(self):
        self.model.train()
        for x, y in self.loader:
            loss = (self.model(x) - y).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def evaluate(self):
        self.model.eval()
        total = 0.0
        with torch.no_grad():
            for x, y in self.loader:
                total += (self.model(x) - y).abs().sum().item()
        return total

    def fit(self):
        for epoch in range(2):
            self.train_epoch()
            print(epoch, self.evaluate())
        AFTER


Learner().fit()
"""


@pytest.mark.parametrize(
    ("after", "own"),
    [
        ("print(self.model(xs[:2]).tolist())", True),
        ("self.model.train()\n        print(self.model(xs[:2]).tolist())", False),
        ("print([p.sum().item() for p in self.model.parameters()])", False),
    ],
)
def test_what_an_object_asks_its_model_after_the_loop_is_asked_in_the_mode_that_it_left(after, own):
    result = check_same(OF_A_CLASS.replace("AFTER", after), "module")
    assert ("self.model.eval()\n" in result.partition("class Learner")[0]) is own
