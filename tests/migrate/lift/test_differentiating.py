"""An evaluation that asks for gradients stays as it is written: a Trainer evaluates without, and the result raised."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_same

SCRIPT = (
    HEAD
    + """
def attack(x, y):
    x = x.clone().requires_grad_(True)
    g, = torch.autograd.grad(criterion(model(x), y), x)
    return (x + 0.1 * g.sign()).detach()


@torch.enable_grad()
def own(x, y):
    return attack(x, y)


def twice(x, y):
    return attack(attack(x, y), y)


def look(x):
    return (x.detach() ** 2).sum()


class Attack:
    def __call__(self, x, y):
        return attack(x, y)

    def perturbed(self, x, y):
        with torch.enable_grad():
            return attack(x, y)


class Search:
    def step(self, x, y):
        return attack(x, y)


class Force(nn.Module):
    def forward(self, x):
        x = x.requires_grad_(True)
        return torch.autograd.grad(model(x).sum(), x)[0]


attacks, searches, force = Attack(), Search(), Force()
for epoch in range(2):
    model.train()
    for x, y in train_loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    right = 0
    for x, y in test_loader:
        EACH
        right += (model(x).argmax(1) == y).sum().item()
    print(epoch, loss.item(), right)
"""
)
NO_GRAD = """    with torch.no_grad():
        for x, y in test_loader:
            EACH
            right += (model(x).argmax(1) == y).sum().item()
"""
ASKED = [
    "x = attack(x, y)",
    "x = twice(x, y)",
    "x = attacks(x, y)",
    "x = x + force(x).detach()",
    "x = searches.step(x, y)",
    "x.requires_grad_(True); x = x + torch.autograd.grad(model(x).sum(), x)[0]",
]


@pytest.mark.parametrize("each", ASKED)
def test_it_stays_as_it_is_written(each):
    text = SCRIPT.replace("EACH", each)
    assert "def validation_step" not in check_same(text, "module")
    assert any("asks for gradients" in n.message for n in migrate_text(text).attention)


@pytest.mark.parametrize("each", ["x = own(x, y)", "x = attacks.perturbed(x, y)", "look(x)", "x = x.detach() + 1"])
def test_what_needs_none_or_switches_them_on_itself_is_lifted(each):
    assert "def validation_step" in check_same(SCRIPT.replace("EACH", each), "module")


@pytest.mark.parametrize("each", ["x = own(x, y)", "with torch.enable_grad(): x = attack(x, y)"])
def test_without_gradients_around_it_nothing_changes(each):
    loop = SCRIPT[SCRIPT.index("    for x, y in test_loader") : SCRIPT.index("    print(epoch")]
    text = SCRIPT.replace(loop, NO_GRAD).replace("EACH", each)
    assert "def validation_step" in check_same(text, "module")
