"""An optimizer that an option chooses, with no branch for what else the user may say: lifted, run before and after."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_same

CHOSEN = HEAD.replace(
    "parser.add_argument('--lr'", "parser.add_argument('--opt', default='adam')\nparser.add_argument('--lr'"
)
CHOSEN = CHOSEN[: CHOSEN.index("optimizer = ")] + (
    "if args.opt == 'adam':\n    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)\n"
    "elif args.opt == 'sgd':\n    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)\n"
)
LOOP = """
for epoch in range(args.epochs):
    for i, (x, y) in enumerate(train_loader):
        FIRST
        loss = criterion(model(x), y)
        if i % 2 == 0:
            loss.backward()
            optimizer.step()
    print(epoch, f'{loss.item():.6f}')
"""


def script(first):
    return CHOSEN + LOOP.replace("FIRST", first)


@pytest.mark.parametrize(
    "first", ["optimizer.zero_grad()", "if x is None:\n            print('none')\n        optimizer.zero_grad()"]
)
@pytest.mark.parametrize("option", ["adam", "sgd"])
def test_one_that_every_batch_works_with(first, option):
    assert "optimizer may" not in check_same(script(first), "manual", "--opt", option)


@pytest.mark.parametrize(
    "first", ["model.zero_grad()", "if i > 3:\n            continue\n        optimizer.zero_grad()"]
)
def test_one_that_a_batch_may_do_without_stays(first):
    (note,) = (n for n in migrate_text(script(first)).attention if n.code == "PTM701")
    assert "`optimizer` may have no value" in note.message


SCHEDULED = """
    optimizer = OTHER
else:
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
for epoch in range(args.epochs):
    for i, (x, y) in enumerate(train_loader):
        loss = criterion(model(x), y)
        loss.backward()
        if i % 2 == 1:
            optimizer.step()
            scheduler.step()
            model.zero_grad()
    print(epoch, f'{loss.item():.6f}')
"""


@pytest.mark.parametrize(
    ("other", "gives"),
    [("Elsewhere(model)", "return [self.optimizer], [self.scheduler]"), ("torch.nn.Module()", "return None")],
)
def test_one_branchs_optimizer_is_shown(other, gives):
    """What the other branch makes does what it does; a schedule of what is no optimizer is handed over all the same."""
    branches = CHOSEN[: CHOSEN.index("if args.opt")] + "if args.opt == 'other':" + SCHEDULED.replace("OTHER", other)
    assert gives in check_same(branches, "manual")


def test_one_that_each_epoch_takes_by_a_name_of_its_own_is_not_lifted():
    turns = """
optimizers = [torch.optim.SGD(model.parameters(), lr=r) for r in (0.1, 0.2)]
def fit(epochs):
    for epoch in range(epochs):
        optimizer = optimizers[epoch % 2]
        for x, y in train_loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
fit(args.epochs)
"""
    turns = HEAD[: HEAD.index("optimizer = ")] + turns
    check_same(turns, "loop")


OWN = """
class Plain(BASE):
    def __init__(self, params, lr):
        super().__init__(params, dict(lr=lr))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group['params']:
                p.add_(p.grad, alpha=-group['lr'])


optimizer = Plain(model.parameters(), lr=args.lr)
for epoch in range(args.epochs):
    for x, y in train_loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, f'{loss.item():.6f}')
"""


def test_one_of_a_class_of_the_scripts_own_that_is_as_torchs_are():
    script = HEAD[: HEAD.index("optimizer = ")] + OWN.replace("BASE", "torch.optim.Optimizer")
    assert "divide_batches" not in check_same(script, "module")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def step(self)", "def step(self, loss)"),
        ("    @torch", "    def zero_grad(self):\n        go()\n\n    @torch"),
    ],
)
def test_one_whose_steps_are_its_own_affair_is_not(old, new):
    script = HEAD[: HEAD.index("optimizer = ")] + OWN.replace("BASE", "torch.optim.Optimizer").replace(old, new)
    assert "self.optimizers()" not in migrate_text(script).text
    assert migrate_text(script).plan == "manual"
