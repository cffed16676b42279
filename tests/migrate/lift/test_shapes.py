"""Shapes that are brought into the lift's own first: what each becomes, run before and after."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_same_run import FUNCTIONS, HEAD, NESTED
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

FULL_BATCH = (
    HEAD
    + """
for epoch in range(args.epochs + 3):
    t = time.time()
    model.train()
    optimizer.zero_grad()
    out = model(xs)
    loss = criterion(out, ys)
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        right = (model(xs).argmax(1) == ys).sum().item()
    print(epoch, loss.item(), right)
    if right > 30:
        break
print(epoch, right)
"""
)

BY_INDEX = (
    HEAD
    + """
def shuffled(x, y):
    order = torch.randperm(len(x))
    return x[order], y[order]

best = None
for epoch in range(1, args.epochs + 1):
    px, py = shuffled(xs, ys)
    total = 0.0
    for start in range(0, len(px), 8):
        x, y = px[start:start + 8], py[start:start + 8]
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        total += loss.item()
        if start and start % 16 == 0:
            print('|', epoch, start, total)
    if best is None or total < best:
        best = total
print(best)
"""
)

GENERATOR_OF_BATCHES = BY_INDEX.replace(
    "for start in range(0, len(px), 8):", "for start in batches(epoch, len(px)):"
).replace(
    "best = None",
    """def batches(epoch, n):
    print('batches of', epoch)
    for i in torch.randperm(n // 8).tolist():
        yield i * 8

best = None""",
)

STEPS_WITHOUT_END = (
    HEAD
    + """
def get_batch():
    i = torch.randint(0, len(xs), (6,))
    return xs[i].to(device), ys[i].to(device)

step, smooth = 0, None
x, y = get_batch()
while True:
    for group in optimizer.param_groups:
        group['lr'] = args.lr / (1 + step)
    for micro in range(2):
        loss = criterion(model(x), y) / 2
        x, y = get_batch()
        loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    smooth = loss.item() if smooth is None else 0.9 * smooth + 0.1 * loss.item()
    if step % 2 == 0:
        print(step, smooth)
    step += 1
    if step > 6:
        break
print(step, smooth)
"""
)

WHILE_IN_AN_EPOCH = (
    HEAD
    + """
def train(epoch):
    i, total = 0, 0.0
    hidden = torch.zeros(7)
    while i < len(xs) - 1:
        size = 5 if i % 2 else 6
        out = model[3](torch.relu(model[0](xs[i:i + size]) + hidden))
        hidden = hidden.detach() * 0.5 + out.mean().detach()
        loss = criterion(out, ys[i:i + size])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        i += size
    return total

for epoch in range(args.epochs):
    print(epoch, train(epoch))
"""
)

NAMED_BAR = (
    NESTED.replace("import time\n", "import time\nfrom tqdm import tqdm\n")
    .replace(
        "    for i, (x, y) in enumerate(train_loader):",
        "    bar = tqdm(train_loader, disable=True)\n    for i, (x, y) in enumerate(bar):",
    )
    .replace("        if (i + 1) % 2", "        bar.set_postfix(loss=loss.item())\n        if (i + 1) % 2")
)

BAR_IN_A_WITH = (
    HEAD.replace("import time\n", "import time\nfrom tqdm import tqdm\n")
    + """
for epoch in range(args.epochs):
    with tqdm(total=len(xs), disable=True) as bar:
        for x, y in train_loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            bar.update(len(x))
    print(epoch, bar.n, loss.item())
"""
)

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

EARLY_STOPPING = (
    FUNCTIONS.replace(
        "    if right > best:", "    if epoch == 2:\n        print('enough')\n        break\n    if right > best:"
    )
    .replace("print('best of all', best)", "print('best of all', best, epoch)")
    .replace("range(1, args.epochs + 1)", "range(1, args.epochs + 4)")
)

ADJUST = """def adjust(optimizer, epoch):
    for group in optimizer.param_groups:
        group['lr'] = args.lr * 0.5 ** epoch

"""
LR_BY_HAND = NESTED.replace("for epoch in", f"{ADJUST}for epoch in").replace(
    "    for i, (x", "    adjust(optimizer, epoch)\n    for i, (x"
)

ONE_PASS = (
    HEAD
    + """
seen = 0
for x, y in train_loader:
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    seen += len(x)
print(seen, loss.item())
"""
)

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

INDEX_FROM_ONE = NESTED.replace("enumerate(train_loader)", "enumerate(train_loader, 1)").replace(
    "print('done'", "print(i)\nprint('done'"
)

IN_MAIN = FUNCTIONS.replace(
    "for epoch in range(1, args", "def main():\n  best = 0\n  for epoch in range(1, args"
).replace(
    "    total = train(epoch)\n    right = test()\n    scheduler.step()\n    if right > best:\n        best = right\n"
    "        print('best', best, 'of epoch', epoch)\nprint('best of all', best)",
    "    total = train(epoch)\n    right = test()\n    scheduler.step()\n    if right > best:\n        best = right\n"
    "        print('best', best, 'of epoch', epoch)\n  print('best of all', best)\n\nmain()",
)

FOLDS = (
    HEAD
    + """
scores = []
for fold in range(3):
    net = nn.Linear(5, 3); opt = torch.optim.SGD(net.parameters(), lr=0.1)
    best = 0
    for epoch in range(2):
        for x, y in train_loader:
            opt.zero_grad(); l = criterion(net(x), y); l.backward(); opt.step()
        acc = (net(xs).argmax(1) == ys).sum().item()
        best = max(best, acc)
    scores.append(best)
    print(fold, best, l.item())
print(scores)
"""
)

TWO_LOADERS = (
    HEAD
    + """
other = DataLoader(TensorDataset(xs, ys), batch_size=5)
for epoch in range(2):
    for (x, y), (u, v) in zip(train_loader, other):
        optimizer.zero_grad(); l = criterion(model(x), y) + criterion(model(u), v); l.backward(); optimizer.step()
    print(epoch, l.item())
"""
)

ENDLESS_LOADER = (
    HEAD
    + """
def cycle(dl):
    while True:
        for b in dl: yield b
it = cycle(train_loader)
for step in range(9):
    x, y = next(it)
    optimizer.zero_grad(); l = criterion(model(x), y); l.backward(); optimizer.step()
    if step % 3 == 0: print(step, l.item())
"""
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

PATIENCE = (
    HEAD
    + """
best, bad, patience = float('inf'), 0, 1
for epoch in range(10):
    model.train(); tl = []
    for x, y in train_loader:
        optimizer.zero_grad(); l = criterion(model(x), y); l.backward(); optimizer.step(); tl.append(l.item())
    model.eval(); vl = []
    with torch.no_grad():
        for x, y in test_loader:
            vl.append(criterion(model(x), y).item())
    v = sum(vl)/len(vl)
    print(epoch, sum(tl)/len(tl), v)
    if v < best: best, bad = v, 0
    else:
        bad += 1
        if bad > patience:
            print('stop'); break
print(best, epoch)
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
    "a loop over folds": (FOLDS, "module"),
    "two loaders at once": (TWO_LOADERS, "module"),
    "an endless loader": (ENDLESS_LOADER, "module"),
    "functions inside main": (FUNCTIONS_IN_MAIN, "module"),
    "patience": (PATIENCE, "module"),
    "an epoch that is an attribute": (EPOCH_IS_AN_ATTRIBUTE, "module"),
    "names that meet when a step is written in": (NAMES_MEET, "manual"),
    "main with globals": (IN_MAIN, "module"),
    "an index that counts from one, read afterwards": (INDEX_FROM_ONE, "module"),
    "phases": (PHASES, "module"),
    "a writer that is not always made": (A_WRITER_SOMETIMES, "module"),
    "a step function": (STEP_FUNCTION, "module"),
    "a trainer class": (TRAINER_CLASS, "module"),
    "a trainer class, epochs outside": (EPOCHS_OUTSIDE_THE_CLASS, "module"),
    "the full batch": (FULL_BATCH, "module"),
    "batches by index": (BY_INDEX, "module"),
    "a generator of batches": (GENERATOR_OF_BATCHES, "module"),
    "steps without end": (STEPS_WITHOUT_END, "manual"),
    "a while loop and a hidden state": (WHILE_IN_AN_EPOCH, "manual"),
    "a bar with a name": (NAMED_BAR, "module"),
    "a bar in a with": (BAR_IN_A_WITH, "module"),
    "a global best": (BEST_IS_GLOBAL, "module"),
    "the value of a pass in an expression": (VALUE_IN_AN_EXPRESSION, "module"),
    "early stopping": (EARLY_STOPPING, "module"),
    "learning rates by hand": (LR_BY_HAND, "module"),
    "one pass": (ONE_PASS, "module"),
    "carried state": (
        NESTED.replace(
            "out = model(x)", "h = 0.5 * h + x.mean() if i else x.mean()\n        out = model(x) + h.detach()"
        ),
        "module",
    ),
    "the batch size by name": (
        NESTED.replace("batch_size=8", "batch_size=args.epochs").replace(
            "        loss =", "        out = out[:args.epochs]\n        loss ="
        ),
        "module",
    ),
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
    "a list over the evaluation": (
        FUNCTIONS.replace("loss, right = 0., 0", "loss, right, all_ = 0., 0, []")
        .replace("            right +=", "            all_.append(out)\n            right +=")
        .replace("    loss /= len", "    print(len(all_))\n    loss /= len"),
        "module",
    ),
}


@pytest.mark.parametrize(("text", "plan"), LIFTED.values(), ids=LIFTED.keys())
def test_a_shape_is_lifted_and_runs_the_same(text, plan):
    check_same(text, plan)


WHOLE = ["the full batch", "batches by index", "steps without end", "carried state", "the batch size by name"]


@pytest.mark.parametrize("shape", WHOLE)
def test_what_needs_whole_batches_says_so(shape):
    result = check_same(*LIFTED[shape])
    assert "divide_batches = False" in result and ".share" not in result


def test_an_evaluation_that_cannot_be_added_up_is_not_divided():
    result = check_same(*LIFTED["a list over the evaluation"])
    assert "divide_validation = False" in result and "divide_batches" not in result


def test_the_names_of_a_script_are_not_taken():
    result = check_same(TRAINER_CLASS, "module")
    assert "from ptmigrate.runtime import" in result and "Trainer as RuntimeTrainer" in result


COLLECTS = FUNCTIONS.replace(
    "    total = 0\n    for batch", "    total, losses, rights = 0, [], []\n    for batch"
).replace(
    "        total += loss.item()\n",
    "        total += loss.item()\n        losses.append(loss.item())\n        rights.append(int(loss.argmax()))\n",
)


def test_a_list_of_losses_gets_those_of_whole_batches():
    result = check_same(COLLECTS, "module")
    assert "self.losses.append(self.batch_mean(loss.item()))" in result
    assert "divide_batches" not in result


def test_a_list_of_other_values_that_decides_something_needs_whole_batches():
    text = COLLECTS.replace("    return total", "    total = total if sum(rights) > 3 else total + 1\n    return total")
    result = check_same(text, "module")
    assert "divide_batches = False" in result


def test_a_list_of_other_values_that_is_only_shown_is_told_of():
    result = migrate_text(COLLECTS.replace("    return total", "    print(rights)\n    return total"))
    assert "divide_batches" not in result.text
    assert any(n.code == "PTM703" and "`rights`" in n.message for n in result.attention)


CONTRASTS = NESTED.replace(
    "loss = criterion(out, y)",
    "sim = out @ out.T\n        loss = criterion(sim, torch.arange(len(x))) + criterion(out, y)",
)


def test_a_loss_that_compares_samples_gets_whole_batches():
    assert "divide_batches = False" in check_same(CONTRASTS, "module")


def test_batch_norm_on_shares_is_told_of():
    result = migrate_text(NESTED.replace("nn.ReLU(),", "nn.ReLU(), nn.BatchNorm1d(7),"))
    assert any("batch norm" in n.message for n in result.attention)


@pytest.mark.parametrize("shown", ["", "            print('saved')\n"])
def test_a_file_is_opened_for_saving_by_rank_0_alone(shown):
    text = FUNCTIONS.replace(
        "        best = right\n",
        f"        best = right\n        with open('/dev/null', 'wb') as f:\n{shown}            torch.save(best, f)\n",
    )
    result = check_same(text, "module")
    lines = [line.strip() for line in result.splitlines()]
    assert lines[lines.index("with open('/dev/null', 'wb') as f:") - 1] == "if self.trainer.is_global_zero:"


def test_a_loss_of_another_file_that_compares_samples_gets_whole_batches():
    text = NESTED.replace("import time\n", "import time\nfrom losses import SupConLoss\n").replace(
        "nn.CrossEntropyLoss().to(device)", "SupConLoss(temperature=0.1)"
    )
    assert "divide_batches = False" in migrate_text(text).text
