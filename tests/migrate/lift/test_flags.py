"""One function that trains or evaluates as a flag tells: written out, lifted, and run before and after."""

import pytest
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.lift.shape.flags import write_out_flags

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_same

OPTIMIZER_OR_NONE = (
    HEAD
    + """
def run_epoch(loader, opt=None):
    training = opt is not None
    model.train(training)
    total, seen = 0.0, 0
    with torch.set_grad_enabled(training):
        for x, y in loader:
            # one batch
            loss = criterion(model(x.to(device)), y.to(device))
            if training:
                opt.zero_grad()
                loss.backward()
                opt.step()
            total += loss.item() * len(x)
            seen += len(x)
    return total / seen

for epoch in range(args.epochs):
    trained = run_epoch(train_loader, optimizer)
    tested = run_epoch(test_loader)
    print(f'{epoch} {trained:.6f} {tested:.6f}')
"""
)

BOOLEAN = (
    HEAD
    + """
def run_epoch(loader, train, name='x'):
    if train:
        model.train()
    else:
        model.eval()
    losses = []
    for i, (x, y) in enumerate(loader):
        if train:
            optimizer.zero_grad()
        with torch.set_grad_enabled(train):
            loss = criterion(model(x), y)
        if not train:
            losses.append(loss.item())
            continue
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)

for epoch in range(args.epochs):
    a = run_epoch(train_loader, True)
    b = run_epoch(test_loader, train=False, name='tested')
    print(f'{epoch} {a:.6f} {b:.6f}')
"""
)

MODE = (
    HEAD
    + """
class Runner:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer

    def run(self, loader, mode='train'):
        is_train = mode == 'train'
        self.model.train() if is_train else self.model.eval()
        right = 0
        for x, y in loader:
            with torch.set_grad_enabled(is_train):
                out = self.model(x)
                loss = criterion(out, y)
                if is_train and loss.item() > 0:
                    self.optimizer.zero_grad()
                    loss.backward()
                    self.optimizer.step()
            right += (out.argmax(1) == y).sum().item()
        print(f'{mode}: {right}')
        return right

runner = Runner(model, optimizer)
for epoch in range(args.epochs):
    runner.run(train_loader)
    runner.run(test_loader, mode='test')
"""
)

STEP = (
    HEAD
    + """
def loss_batch(model, x, y, opt=None):
    loss = criterion(model(x), y)

    if opt is not None:
        loss.backward()
        opt.step()
        opt.zero_grad()

    return loss.item(), len(x)

def fit(epochs, model, opt, train_dl, valid_dl):
    for epoch in range(epochs):
        model.train()
        for x, y in train_dl:
            loss_batch(model, x, y, opt)

        model.eval()
        with torch.no_grad():
            losses, nums = zip(*[loss_batch(model, x, y) for x, y in valid_dl])
        print(epoch, sum(l * n for l, n in zip(losses, nums)) / sum(nums))

fit(args.epochs, model, optimizer, train_loader, test_loader)
"""
)


CHOSEN_MODE = OPTIMIZER_OR_NONE.replace(
    "with torch.set_grad_enabled(training):", "with (torch.enable_grad() if training else torch.no_grad()):"
)


@pytest.mark.parametrize(
    ("text", "plan"),
    [(OPTIMIZER_OR_NONE, "module"), (CHOSEN_MODE, "module"), (BOOLEAN, "module"), (MODE, "manual"), (STEP, "module")],
    ids=["optimizer or None", "chosen mode", "boolean", "mode", "step"],
)
def test_a_flagged_function_is_lifted_and_runs_the_same(text, plan):
    check_same(text, plan)


@pytest.mark.parametrize(
    ("mode", "kept"),
    [
        ("torch.enable_grad() if training else torch.no_grad()", "with torch.no_grad():"),
        ("contextlib.nullcontext() if training else torch.no_grad()", "with torch.no_grad():"),
        ("torch.no_grad() if training else torch.enable_grad()", None),
        ("autocast() if training else torch.no_grad()", "with torch.no_grad():"),
        ("torch.enable_grad() if training else torch.inference_mode()", "with (torch.inference_mode()):"),
        (
            "torch.enable_grad() if asked else torch.no_grad()",
            "with (torch.enable_grad() if asked else torch.no_grad()):",
        ),
    ],
)
def test_the_mode_of_a_copy(mode, kept):
    text = OPTIMIZER_OR_NONE.replace("torch.set_grad_enabled(training)", f"({mode})")
    evaluates = write_out_flags(Facts("import contextlib\n" + text)).split("def run_epoch_eval(")[1].split("\n\n")[0]
    assert [line.strip() for line in evaluates.splitlines() if "with " in line] == ([kept] if kept else [])


def test_each_copy_reads_as_a_person_would_have_written_it():
    text = write_out_flags(Facts(OPTIMIZER_OR_NONE))
    trains, evaluates = text.split("def run_epoch_eval(loader, opt=None):\n")
    evaluates = evaluates.split("\n\n")[0]
    assert evaluates == (
        "    model.eval()\n"
        "    total, seen = 0.0, 0\n"
        "    with torch.no_grad():\n"
        "        for x, y in loader:\n"
        "            # one batch\n"
        "            loss = criterion(model(x.to(device)), y.to(device))\n"
        "            total += loss.item() * len(x)\n"
        "            seen += len(x)\n"
        "    return total / seen"
    )
    assert "    model.train()\n    total, seen = 0.0, 0\n    for x, y in loader:\n        # one batch\n" in trains


CHOICES = """import torch
def run(loader, train):
    # every batch
    for x in loader:
        # only in training
        if train:
            # back
            loss.backward()
            # the last comment
        elif x:
            g()
        else:
            h()
    return loss
run(a, True)
run(b, False)
"""


def test_comments_stay_and_an_elif_begins():
    trains, evaluates = write_out_flags(Facts(CHOICES)).split("def run_eval(")
    head = "    # every batch\n    for x in loader:\n        # only in training\n"
    assert f"{head}        # back\n        loss.backward()\n    return loss\n" in trains
    assert f"{head}        if x:\n            g()\n        else:\n            h()\n    return loss\n" in evaluates


UNCHANGED = {
    "one call": "def f(x, train=True):\n    if train:\n        x.backward()\nf(1)\n",
    "one value": "def f(x, train=True):\n    if train:\n        x.backward()\nf(1)\nf(2, True)\n",
    "a value that is not known": "def f(x, train):\n    if train:\n        x.backward()\nf(1, True)\nf(2, a)\n",
    "handed on": "def f(x, train):\n    if train:\n        x.backward()\nf(1, True)\nf(2, False)\ng(f)\n",
    "bound anew": "def f(x, train):\n    train = train or x\n    x.backward()\nf(1, True)\nf(2, False)\n",
    "unpacked": "def f(x, train):\n    x.backward()\nf(*a)\nf(2, False)\n",
    "recursive": "def f(x, train):\n    x.backward()\n    f(x, False)\nf(2, True)\n",
    "may be None": "def f(x, o=None):\n    if o is not None:\n        x.backward()\nf(1, pick())\nf(2)\n",
    "no training": "def f(x, train):\n    return x if train else 0\nf(1, True)\nf(2, False)\n",
    "decorated": "@timed\ndef f(x, train):\n    x.backward()\nf(1, True)\nf(2, False)\n",
}


@pytest.mark.parametrize("text", UNCHANGED.values(), ids=UNCHANGED.keys())
def test_unchanged(text):
    assert write_out_flags(Facts("import torch\n" + text)) is None


NOTHING_LEFT = """import torch
def run(loader, train, scheduler=None):
    for x in loader:
        x.backward()
    if scheduler is not None:
        if train:
            scheduler.step()
    if HELD:
        if train:
            x.backward()
    else:
        x.eval()
    while x.more():
        if train:
            x.backward()
run(a, True)
run(b, False)
"""


@pytest.mark.parametrize("held", ["x", "x.pop()"])
def test_a_branch_of_which_nothing_is_left_goes(held):
    evaluates = write_out_flags(Facts(NOTHING_LEFT.replace("HELD", held))).split("def run_train_(")[1]
    assert "scheduler is not None" not in evaluates and f"if {held}:\n        pass\n    else:\n" in evaluates
    assert "while x.more():\n        pass\n" in evaluates


def test_a_test_that_may_do_something_stays():
    text = NOTHING_LEFT.replace("scheduler is not None", "scheduler.pop()")
    evaluates = write_out_flags(Facts(text)).split("def run_train_(")[1]
    assert "    if scheduler.pop():\n        pass\n" in evaluates
