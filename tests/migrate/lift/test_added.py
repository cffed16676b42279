"""A backward() of what a step calls, as an attack's: its gradients are cleared before the step's own, or they count."""

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text
from ptmigrate.migrate.project import collect, migrate_all

from tests.migrate.running import check_on_card, check_same, on_one_and_two

HEAD = """\
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

"""
MADE = """
def attack(model, x, y):
    delta = torch.zeros_like(x)
    delta.requires_grad = True
    for _ in range(2):
        F.cross_entropy(model(x + delta), y).backward()
        delta.data = torch.clamp(delta + 0.02 * torch.sign(delta.grad.detach()), -0.1, 0.1)
        delta.grad.zero_()
    return delta.detach()
"""
GIVEN = """
def attack(model, x, y):
    x.requires_grad_()
    F.cross_entropy(model(x), y).backward()
    found = 0.1 * x.grad.sign()
    x.requires_grad_(False)
    return found
"""
OF_A_CLASS = """
class Attack:
    def __init__(self, model):
        self.model = model

    def search(self, x, y):
        delta = torch.zeros_like(x, requires_grad=True)
        F.cross_entropy(self.model(x + delta), y).backward()
        return 0.1 * delta.grad.sign()


def attack(model, x, y):
    return Attack(model).search(x, y)
"""
LOOP = """

def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(torch.randn(20, 4), torch.randint(0, 3, (20,))), batch_size=4)
    model = nn.Linear(4, 3)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        total = 0
        for x, y in loader:
            # first
            x = x + attack(model, x, y)
            opt.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            opt.step()
            total += loss.item() * len(x)
        with open("total", "w") as file:
            print(f"{total:.4f}", file=file)


main()
"""


@pytest.mark.parametrize("attack", [MADE, GIVEN, OF_A_CLASS])
def test_one_that_searches_inputs_is_a_helper_of_the_step(attack, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script = HEAD + attack + LOOP
    one, two = on_one_and_two(tmp_path, script, check_same(script, "module"))
    assert (one / "total").read_text() == (two / "total").read_text() != ""


@pytest.mark.parametrize(
    "old, new",
    [
        ("# first", "opt.zero_grad()"),
        ("opt.step()\n", "opt.step()\n            opt.zero_grad()\n"),
        ("opt.step()\n", "opt.step()\n            opt.zero_grad()\n            attack(model, x, y)\n"),
        ("opt.step()\n", "attack(model, x, y)\n            opt.step()\n            opt.zero_grad()\n"),
    ],
)
def test_gradients_that_it_leaves_are_the_steps(old, new, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    loop = LOOP.replace("            opt.zero_grad()\n", "").replace(old, new)
    text = check_same(HEAD + MADE + loop, "loop")
    assert "Trainer" not in text
    assert any(
        "may leave gradients in what is trained" in n.message for n in migrate_text(HEAD + MADE + loop).attention
    )


ROBUST = """
def robust(model, loader):
    right = 0
    for x, y in loader:
        right += (model(x + attack(model, x, y)).argmax(1) == y).sum().item()
    return right

"""


@pytest.mark.parametrize("attack", [MADE, GIVEN, OF_A_CLASS])
def test_what_tests_by_it_below_the_training_goes_where_that_was(attack, tmp_path):
    """Where the network is on a card, the batches are too: no loop is a training for an attack in it."""
    script = HEAD + attack + ROBUST + LOOP.replace("\n\nmain()\n", "\n    print(robust(model, loader))\n\n\nmain()\n")
    text = check_on_card(tmp_path, script)
    assert "Trainer(" in text and "x_given" not in text


HANDED = {
    "by a parameter": LOOP.replace("def main():", "def main(search=attack):").replace("attack(model", "search(model"),
    "by another name": LOOP.replace("        total = 0\n", "        total, search = 0, [attack][0]\n")
    .replace("attack(model", "search(model"),
}  # fmt: skip


@pytest.mark.parametrize("loop", HANDED.values(), ids=HANDED)
@pytest.mark.parametrize(("zero", "plan"), [(True, "module"), (False, "loop")])
def test_one_that_is_called_by_another_name(loop, zero, plan, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if not zero:
        loop = loop.replace("            opt.zero_grad()\n", "").replace("# first", "opt.zero_grad()")
    check_same(HEAD + MADE + loop, plan)


def test_one_of_a_class_of_another_file(tmp_path):
    """Its gradients are added where it is called as a method of what the script has made."""
    (tmp_path / "attacks.py").write_text(HEAD + OF_A_CLASS.split("\n\ndef attack")[0])
    made = LOOP.replace("    opt = ", "    search = Attack(model)\n    opt = ").replace(
        "attack(model, x, y)", "search.search(x, y)"
    )
    for zero, plan in ((True, "module"), (False, "loop")):
        loop = made if zero else made.replace("            opt.zero_grad()\n", "").replace("# first", "opt.zero_grad()")
        (tmp_path / "main.py").write_text(HEAD + "from attacks import Attack\n" + loop)
        done = {m.path.stem: m for m in migrate_all(collect([tmp_path / "main.py"]), Options())}
        assert done["main"].report.plan == plan


TRADES = MADE.replace("def attack(model, x, y):", "def attack(model, x, y, opt=None):").replace(
    "    return delta.detach()", "    {}.zero_grad()\n    return delta.detach()"
)


@pytest.mark.parametrize(("given", "zeroed"), [("model, x, y, opt", "opt"), ("model, x, y", "model")])
def test_one_that_clears_what_it_leaves_itself(given, zeroed, tmp_path, monkeypatch):
    """As https://github.com/yaodongyu/TRADES does, with the optimizer that it is given."""
    monkeypatch.chdir(tmp_path)
    loop = LOOP.replace("            opt.zero_grad()\n", "").replace("# first", "opt.zero_grad()")
    script = HEAD + TRADES.format(zeroed) + loop.replace("attack(model, x, y)", f"attack({given})")
    one, two = on_one_and_two(tmp_path, script, check_same(script, "module"))
    assert (one / "total").read_text() == (two / "total").read_text() != ""


def test_gradients_between_the_epochs_that_the_first_step_clears(tmp_path, monkeypatch):
    """Another backward() of the step may come first: it is the step that takes them."""
    monkeypatch.chdir(tmp_path)
    loop = LOOP.replace("            x = x + attack(model, x, y)\n", "            (model(x) * 0.5).sum().backward()\n")
    loop = loop.replace(
        '        with open("total"', '        shown = attack(model, x, y).sum()\n        with open("total"'
    )
    check_same(HEAD + MADE + loop, "manual")


def test_methods_of_networks_are_not_those_of_another_file(tmp_path):
    """`model.train()` in a step is torch's own, whatever class of the project has a method of that name."""
    (tmp_path / "attacks.py").write_text(
        HEAD + OF_A_CLASS.split("\n\ndef attack")[0].replace("def search", "def train")
    )
    loop = LOOP.replace("            opt.zero_grad()\n", "").replace("attack(model, x, y)", "0.1")
    loop = loop.replace("# first", "opt.zero_grad()\n            model.train()")
    (tmp_path / "main.py").write_text(HEAD + "from attacks import Attack\n" + loop)
    done = {m.path.stem: m for m in migrate_all(collect([tmp_path / "main.py"]), Options())}
    assert done["main"].report.plan == "module"
