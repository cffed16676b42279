"""A file whose backward() is for the gradients of inputs trains nothing: it is called in the trainings of others."""

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text
from ptmigrate.migrate.project import collect, migrate_all

from tests.migrate.running import check_project_on_card, check_same

ATTACK = """\
import torch
import torch.nn.functional as F


def attack(model, x, y, iterations=3, restarts=2):
    best = torch.zeros_like(x).cuda()
    for _ in range(restarts):
        delta = torch.zeros_like(x).cuda()
        delta.requires_grad = True
        for _ in range(iterations):
            loss = F.cross_entropy(model(x + delta), y)
            loss.backward()
            delta.data = delta + 0.1 * torch.sign(delta.grad.detach())
            delta.grad.zero_()
        best = delta.detach()
    return best


def evaluate(model, loader):
    total = 0
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        total += F.cross_entropy(model(x + attack(model, x, y)), y).item()
    return round(total, 4)
"""
MAIN = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from attack import attack, evaluate

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(16, 4), torch.randint(0, 3, (16,))), batch_size=8)
model = nn.Linear(4, 3).cuda()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        loss = nn.functional.cross_entropy(model(x + attack(model, x, y)), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
best = nn.Linear(4, 3).cuda()
best.load_state_dict(model.state_dict())
print(evaluate(best, loader), evaluate(model, loader))
"""


def test_its_loops_are_kept():
    result = migrate_text(ATTACK)
    assert result.plan == "loop" and any("those of inputs" in n.message for n in result.attention)


def test_a_network_that_is_made_for_it_below_the_training_is_where_the_script_puts_it(tmp_path):
    texts = check_project_on_card(tmp_path, main=MAIN, attack=ATTACK)
    assert "Trainer(" in texts["main"] and "best = nn.Linear(4, 3).to(" in texts["main"]
    assert "model = nn.Linear(4, 3)\n" in texts["main"]


BY_HAND = """\
import torch
from torch import nn


def train(net, batches, change):
    w = {}
    for epoch in range(2):
        for x, y in batches:
            loss = ((net(x, w) - y) ** 2).mean()
            if w.grad is not None:
                w.grad.data.zero_()
            loss.backward()
            change([w])
"""


@pytest.mark.parametrize("made", ["nn.Parameter(torch.zeros(3))", "torch.nn.parameter.Parameter(torch.zeros(3))"])
def test_weights_of_the_functions_own_are_trained(made):
    assert not any("those of inputs" in n.message for n in migrate_text(BY_HAND.format(made)).attention)


# the shape of https://docs.pytorch.org/tutorials/beginner/fgsm_tutorial.html
TESTED = """\
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.rand(12, 4), torch.arange(12) % 3), batch_size=1)
model = nn.Linear(4, 3)


def test(model, loader, epsilon):
    correct = 0
    for data, target in loader:
        data.requires_grad = True
        loss = F.cross_entropy(model(data), target)
        model.zero_grad()
        loss.backward()
        changed = data + epsilon * data.grad.sign()
        correct += int(model(changed).argmax(1).item() == target.item())
    return correct / len(loader)


for epsilon in [0, 0.1]:
    print(test(model, loader, epsilon))
"""


def test_one_that_a_trained_network_is_tested_by_trains_nothing():
    result = migrate_text(TESTED)
    assert result.plan == "loop" and any("those of inputs" in n.message for n in result.attention)


def test_weights_that_are_told_to_have_gradients_are_trained():
    weights = TESTED.replace("    for data, target in loader:", "    for data in model.parameters():")
    assert not any("those of inputs" in n.message for n in migrate_text(weights).attention)


FOR_OTHERS = """\
import torch
from torch.nn import functional as F


def adversarial(model, x, y):
    d = torch.zeros_like(x).requires_grad_()
    F.cross_entropy(model(x + d), y).backward()
    step = d.grad.detach().sign()
    model.zero_grad()
    return x + 0.1 * step
"""


@pytest.mark.parametrize(("text", "told"), [(FOR_OTHERS, False), (ATTACK, True)])
def test_what_others_give_their_batches_to_says_nothing_of_whole_ones(text, told):
    """Their step may well divide them; a file with a loop over batches of its own computes those whole."""
    notes = [n.message for n in migrate_text(text).attention]
    assert any("those of inputs" in n for n in notes)
    assert any("every process computes every batch whole" in n for n in notes) is told


WEIGHTS = [
    (
        "delta.data = delta + 0.1 * torch.sign(delta.grad.detach())",
        "for p in model.parameters():\n                p.data -= p.grad",
    ),
    ("            delta.grad.zero_()\n", "            opt.step()\n"),
    ("def attack(model, x, y,", "def attack(x, y,"),
]


@pytest.mark.parametrize(("old", "new"), WEIGHTS)
def test_one_that_changes_weights_is_a_training(old, new):
    result = migrate_text(ATTACK.replace(old, new))
    assert not any("those of inputs" in n.message for n in result.attention)


@pytest.mark.parametrize(
    ("use", "whole"), [("torch.sign({})", False), ("{}.sign()", False), ("{}", True), ("{} / 2", True)]
)
def test_what_a_step_takes_of_gradients_in_another_file_decides_whether_its_batches_are_divided(tmp_path, use, whole):
    attack = ATTACK.replace("torch.sign(delta.grad.detach())", use.format("delta.grad.detach()"))
    (tmp_path / "attack.py").write_text(attack)
    (tmp_path / "main.py").write_text(MAIN)
    done = {m.path.stem: m for m in migrate_all(collect([tmp_path / "main.py"]), Options())}
    assert (b"divide_batches = False" in done["main"].data) is whole
    told = [n.message for n in done["main"].report.attention]
    assert any("in attack() of attack.py" in message for message in told) is whole


NET = """\
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 3), LAYER)

    def forward(self, x):
        return self.layers(x)
"""


@pytest.mark.parametrize(("layer", "told"), [("nn.ReLU()", False), ("nn.BatchNorm1d(3)", True)])
def test_of_a_sign_is_told_where_networks_of_another_file_have_batch_norm(tmp_path, layer, told):
    main = MAIN.replace("from attack import", "from net import Net\nfrom attack import")
    main = main.replace("nn.Linear(4, 3)", "Net()").replace("nn.functional.cross", "F.cross")
    (tmp_path / "main.py").write_text(main.replace("from torch import nn\n", "import torch.nn.functional as F\n"))
    (tmp_path / "attack.py").write_text(ATTACK)
    (tmp_path / "net.py").write_text(NET.replace("LAYER", layer))
    done = {m.path.stem: m for m in migrate_all(collect([tmp_path / "main.py"]), Options())}
    assert any("its sign is one process's" in n.message for n in done["main"].report.attention) is told


# the shape of https://github.com/yaodongyu/TRADES/blob/master/trades.py
SEARCH = """\
import torch
import torch.nn.functional as F
from torch import optim


def robust_loss(model, x, y, optimizer, steps=3):
    model.eval()
    delta = (0.1 * torch.ones_like(x)).requires_grad_()
    searching = optim.SGD([delta], lr=0.5)
    for _ in range(steps):
        searching.zero_grad()
        loss = -F.cross_entropy(model(x + delta), y)
        loss.backward()
        searching.step()
    model.train()
    optimizer.zero_grad()
    return F.cross_entropy(model(x + delta.detach()), y)


"""
TRAINS = """\
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

from search import robust_loss

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(16, 4), torch.randint(0, 3, (16,))), batch_size=8)
model = nn.Linear(4, 3).cuda()
optimizer = optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        loss = robust_loss(model, x, y, optimizer)
        loss.backward()
        optimizer.step()
    print(epoch, f"{loss.item():.5f}")
"""
ONE_FILE = TRAINS.replace("from search import robust_loss\n", SEARCH[SEARCH.index("import torch.nn.func") :])
ONE_FILE = ONE_FILE.replace("from torch import optim\n", "").replace(".cuda()", "")


def test_an_optimizer_of_inputs_searches_in_a_step(tmp_path):
    """It was taken for a training: a Trainer in each step, or gradients of each process's own input averaged."""
    texts = check_project_on_card(tmp_path, main=TRAINS, search=SEARCH)
    assert "divide_batches = False" in texts["main"] and "Trainer(" in texts["main"]
    assert "untime" not in texts["search"] and "searching = optim.SGD([delta], lr=0.5)" in texts["search"]


def test_it_does_where_a_folder_is_migrated(tmp_path):
    (tmp_path / "main.py").write_text(TRAINS)
    (tmp_path / "search.py").write_text(SEARCH)
    done = {m.path.stem: m for m in migrate_all(collect([tmp_path]), Options())}
    assert done["search"].data.decode() == SEARCH
    assert any("those of inputs" in n.message for n in done["search"].report.attention)
    assert b"Trainer(" in done["main"].data


def test_in_one_file_the_training_around_it_is_lifted():
    result = check_same(ONE_FILE, "manual")
    assert "divide_batches = False" in result and "setup_optimizer" not in result


NO_SEARCH = [
    ("optim.SGD([delta], lr=0.5)", "optim.SGD(model.parameters(), lr=0.5)"),
    ("optim.SGD([delta], lr=0.5)", "optim.SGD([delta, *model.parameters()], lr=0.5)"),
    ("optim.SGD([delta], lr=0.5)", "optim.SGD([model.weight], lr=0.5)"),
    ("optim.SGD([delta], lr=0.5)", "optimizer"),
    ("        searching.step()\n", "        searching.step()\n        optimizer.step()\n"),
    ("(0.1 * torch.ones_like(x)).requires_grad_()", "torch.nn.Parameter(torch.ones_like(x))"),
]


@pytest.mark.parametrize(("old", "new"), NO_SEARCH)
def test_what_steps_weights_is_a_training(old, new):
    assert old in ONE_FILE
    result = migrate_text(ONE_FILE.replace(old, new))
    assert result.plan == "loop" and any("stand in different loops" in n.message for n in result.attention)


def test_the_only_one_of_a_script_is_its_training():
    text = SEARCH + "print(robust_loss(torch.nn.Linear(4, 3), torch.ones(2, 4), torch.tensor([0, 1]), OPTIMIZER))\n"
    text = text.replace("OPTIMIZER", "optim.SGD([torch.ones(1)], lr=1)")
    assert not any("those of inputs" in n.message for n in migrate_text(text).attention)
