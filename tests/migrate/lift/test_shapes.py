"""Functions and classes in shapes that are brought into the lift's own first: run before and after."""

import pytest

from tests.migrate.lift.test_same_run import FUNCTIONS, HEAD
from tests.migrate.running import check_same

STEP_FUNCTION = (
    HEAD
    + """
def train_step(x, y, scale=1.0):
    \"\"\"One step.\"\"\"
    out = model(x.to(device))
    loss = criterion(out, y.to(device)) * scale
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    # what is shown
    shown = loss.item()
    return shown, out.argmax(1)

history = []
for epoch in range(args.epochs):
    out = 'a name of the loop'
    for i, (x, y) in enumerate(train_loader):
        value, guess = train_step(x, y, scale=2)
        history.append(value)
    print(epoch, out, value, guess.tolist())
print(len(history), sum(history))
"""
)

TRAINER_CLASS = (
    HEAD
    + """
class Trainer:
    def __init__(self, model, loader, optimizer, criterion, every=1):
        self.model, self.loader = model, loader
        self.optimizer = optimizer
        self.criterion = criterion
        self.every = every
        self.losses = []

    def _run_batch(self, x, y):
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def _run_epoch(self, epoch):
        self.model.train()
        total = 0.0
        for x, y in self.loader:
            loss = self._run_batch(x.to(device), y.to(device))
            total += loss
        print('epoch', epoch, total / len(self.loader))
        return total

    def train(self, epochs):
        for epoch in range(epochs):
            total = self._run_epoch(epoch)
            self.losses.append(total)
            if epoch % self.every == 0:
                self._report(epoch)

    def _report(self, epoch):
        print('weights', epoch, sum(p.abs().sum().item() for p in self.model.parameters()))

trainer = Trainer(model, train_loader, optimizer, criterion)
trainer.train(args.epochs)
print(trainer.losses)
"""
)

EPOCHS_OUTSIDE_THE_CLASS = TRAINER_CLASS.replace(
    "trainer.train(args.epochs)",
    """for epoch in range(args.epochs):
    loss = trainer._run_epoch(epoch)
    trainer.losses.append(loss)""",
).replace("total = self._run_epoch(epoch)", "total = 0.0")

BEST_IS_GLOBAL = (
    HEAD
    + """
best = 0

def train(epoch):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()

def test(epoch):
    global best
    model.eval()
    right = 0
    with torch.no_grad():
        for x, y in test_loader:
            right += (model(x).argmax(1) == y).sum().item()
    if right > best:
        print('best', right, epoch)
        best = right

for epoch in range(args.epochs):
    train(epoch)
    test(epoch)
print(best)
"""
)

VALUE_IN_AN_EXPRESSION = FUNCTIONS.replace(
    "    total = train(epoch)\n    right = test()\n",
    "    history.append(train(epoch))\n    total, right = history[-1], test()\n",
).replace("best = 0\n", "best, history = 0, []\n", 1)

PHASES = (
    HEAD
    + """
import copy
loaders = {'train': train_loader, 'val': test_loader}

def train_model(model, criterion, optimizer, scheduler, num_epochs=2):
    best_weights, best = copy.deepcopy(model.state_dict()), 0.0
    for epoch in range(num_epochs):
        print(f'Epoch {epoch}/{num_epochs - 1}')
        # Each epoch has two phases
        for phase in ['train', 'val']:
            if phase == 'train':
                model.train()
            else:
                model.eval()
            running, right = 0.0, 0
            for x, y in loaders[phase]:
                x = x.to(device)
                y = y.to(device)
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == 'train'):
                    out = model(x)
                    _, guess = torch.max(out, 1)
                    loss = criterion(out, y)
                    # only when training
                    if phase == 'train':
                        loss.backward()
                        optimizer.step()
                running += loss.item() * x.size(0)
                right += torch.sum(guess == y.data).item()
            if phase == 'train':
                scheduler.step()
            average, accuracy = running / len(loaders[phase].dataset), right / len(loaders[phase].dataset)
            print(f'{phase} {average:.6f} {accuracy:.4f}')
            if phase == 'val' and accuracy > best:
                best = accuracy
                best_weights = copy.deepcopy(model.state_dict())
    print('best', best)
    model.load_state_dict(best_weights)
    return model

model = train_model(model, criterion, optimizer, StepLR(optimizer, 1), num_epochs=args.epochs)
"""
)

A_WRITER_SOMETIMES = (
    FUNCTIONS.replace(
        "best = 0\n",
        """best = 0

class Writer:
    def add(self, *values):
        print('written', *values)

def main(writes):
    if writes:
        writer = Writer()
    for epoch in range(2):
        total = train(epoch)
        if writes:
            writer.add(epoch, total)

""",
        1,
    )
    .replace("for epoch in range(1, args.epochs + 1):", "main(True)\nfor epoch in range(0):")
    .replace("    total = train(epoch)\n    right", "    right")
)

IN_MAIN = FUNCTIONS.replace(
    "for epoch in range(1, args", "def main():\n  best = 0\n  for epoch in range(1, args"
).replace(
    "    total = train(epoch)\n    right = test()\n    scheduler.step()\n    if right > best:\n        best = right\n"
    "        print('best', best, 'of epoch', epoch)\nprint('best of all', best)",
    "    total = train(epoch)\n    right = test()\n    scheduler.step()\n    if right > best:\n        best = right\n"
    "        print('best', best, 'of epoch', epoch)\n  print('best of all', best)\n\nmain()",
)

FUNCTIONS_IN_MAIN = (
    HEAD
    + """
def main():
    hist = {'loss': [], 'acc': []}
    def train_one(epoch):
        model.train(); s = 0.
        for x, y in train_loader:
            optimizer.zero_grad(); l = criterion(model(x), y); l.backward(); optimizer.step(); s += l.item()*len(x)
        return s / len(train_loader.dataset)
    def evaluate():
        model.eval()
        with torch.no_grad():
            return sum((model(x).argmax(1)==y).sum().item() for x, y in test_loader)/11
    for epoch in range(3):
        hist['loss'].append(train_one(epoch)); hist['acc'].append(evaluate())
        print(epoch, hist['loss'][-1], hist['acc'][-1])
    return hist
print(main())
"""
)

EPOCH_IS_AN_ATTRIBUTE = (
    HEAD
    + """
class T:
    def __init__(self, m): 
        self.m = m; self.opt = torch.optim.Adam(m.parameters(), lr=0.01); self.best = None; self.epoch = 0
    def fit(self, loader, n):
        for self.epoch in range(n):
            run = 0
            for x, y in loader:
                self.opt.zero_grad(); l = criterion(self.m(x), y); l.backward(); self.opt.step()
                run += l.item()
            if self.best is None or run < self.best: self.best = run
            print(self.epoch, run)
t = T(model); t.fit(train_loader, 3); print(t.best)
"""
)

NAMES_MEET = (
    HEAD
    + """
loss = 'outer'
def step(x, y, model):
    x = x * 2
    loss = criterion(model(x), y)
    for p in model.parameters():
        p.grad = None
    loss.backward()
    optimizer.step()
    return loss
def main():
    total = 0
    for epoch in range(2):
        for x, y in train_loader:
            l = step(x, y, model)
            total = total + l.item()
            print(x.sum().item())
    print(total, loss)
main()
"""
)

LIFTED = {
    "functions inside main": (FUNCTIONS_IN_MAIN, "module"),
    "an epoch that is an attribute": (EPOCH_IS_AN_ATTRIBUTE, "module"),
    "names that meet when a step is written in": (NAMES_MEET, "manual"),
    "main with globals": (IN_MAIN, "module"),
    "phases": (PHASES, "module"),
    "a writer that is not always made": (A_WRITER_SOMETIMES, "module"),
    "a step function": (STEP_FUNCTION, "module"),
    "a trainer class": (TRAINER_CLASS, "module"),
    "a trainer class, epochs outside": (EPOCHS_OUTSIDE_THE_CLASS, "module"),
    "a global best": (BEST_IS_GLOBAL, "module"),
    "the value of a pass in an expression": (VALUE_IN_AN_EXPRESSION, "module"),
    "evaluation left early": (
        FUNCTIONS.replace("            right +=", "            if right > 3: break\n            right +="),
        "module",
    ),
    "evaluation now and then": (
        FUNCTIONS.replace("    right = test()\n", "    right = 0\n    if epoch % 2:\n        right = test()\n"),
        "module",
    ),
    "two evaluations": (
        FUNCTIONS.replace("    right = test()\n", "    right = test()\n    right += test()\n"),
        "module",
    ),
}


@pytest.mark.parametrize(("text", "plan"), LIFTED.values(), ids=LIFTED.keys())
def test_a_shape_is_lifted_and_runs_the_same(text, plan):
    check_same(text, plan)


def test_the_names_of_a_script_are_not_taken():
    result = check_same(TRAINER_CLASS, "module")
    assert "from ptmigrate.runtime import" in result and "Trainer as RuntimeTrainer" in result


@pytest.mark.parametrize(
    ("above", "below", "alone"),
    [
        ("", "", True),
        ("print('saved')", "", True),
        ("state = {'model': model.state_dict(), 'best': best}", "", True),
        ("state = model.state_dict()", "print(len(state))", False),
        ("state = read(model)", "", False),
    ],
    ids=["a save", "a print", "what the save is given", "what is read below", "what another function does"],
)
def test_a_file_is_opened_for_saving_by_rank_0_alone(above, below, alone):
    opened = ["with open('/dev/null', 'wb') as f:", *(f"    {s}" for s in (above, "torch.save(best, f)") if s)]
    saved = "".join(f"        {line}\n" for line in [*opened, below] if line)
    text = FUNCTIONS.replace("        best = right\n", "        best = right\n" + saved)
    text = text.replace("import torch\n", "import torch\n\n\ndef read(net):\n    return 3\n\n\n", 1)
    result = check_same(text, "module")
    lines = [line.strip() for line in result.splitlines()]
    at = next(n for n, line in enumerate(lines) if "/dev/null" in line)
    assert (lines[at - 1] == "if self.trainer.is_global_zero:") == alone
    assert ("(open)('/dev/null', 'wb')" in lines[at]) != alone
