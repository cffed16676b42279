"""Loops in shapes that are brought into the lift's own first: run before and after."""

import pytest

from tests.migrate.lift.test_same_run import FUNCTIONS, HEAD, NESTED
from tests.migrate.running import check_same

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

INDEX_FROM_ONE = NESTED.replace("enumerate(train_loader)", "enumerate(train_loader, 1)").replace(
    "print('done'", "print(i)\nprint('done'"
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

LIFTED = {
    "a loop over folds": (FOLDS, "module"),
    "two loaders at once": (TWO_LOADERS, "module"),
    "an endless loader": (ENDLESS_LOADER, "module"),
    "patience": (PATIENCE, "module"),
    "an index that counts from one, read afterwards": (INDEX_FROM_ONE, "module"),
    "the full batch": (FULL_BATCH, "module"),
    "batches by index": (BY_INDEX, "module"),
    "a generator of batches": (GENERATOR_OF_BATCHES, "module"),
    "steps without end": (STEPS_WITHOUT_END, "manual"),
    "a while loop and a hidden state": (WHILE_IN_AN_EPOCH, "manual"),
    "a bar with a name": (NAMED_BAR, "module"),
    "a bar in a with": (BAR_IN_A_WITH, "module"),
    "early stopping": (EARLY_STOPPING, "module"),
    "learning rates by hand": (LR_BY_HAND, "module"),
    "one pass": (ONE_PASS, "module"),
}


@pytest.mark.parametrize(("text", "plan"), LIFTED.values(), ids=LIFTED.keys())
def test_a_shape_is_lifted_and_runs_the_same(text, plan):
    check_same(text, plan)


@pytest.mark.parametrize("shape", ["the full batch", "batches by index", "steps without end"])
def test_what_needs_whole_batches_says_so(shape):
    result = check_same(*LIFTED[shape])
    assert "divide_batches = False" in result and ".share" not in result


@pytest.mark.parametrize(
    ("target", "unpacked"),
    [
        ("(i,\n         (x,\n          y))", "x, y = batch\n"),
        ("i, \\\n            (x, y)", "x, y = batch\n"),
        ("i, (x, \\\n            y)", "x, y = batch\n"),
        ("i, (x,  # the samples\n            y)", "(x,  # the samples\n"),
    ],
)
def test_a_target_over_several_lines(target, unpacked):
    text = NESTED.replace("for i, (x, y) in enumerate(train_loader)", f"for {target} in enumerate(train_loader)")
    assert text != NESTED
    assert f"        {unpacked}" in check_same(text, "module")
