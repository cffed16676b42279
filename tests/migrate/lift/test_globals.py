"""Names that functions declare global: lifted, run before and after."""

import pytest
from ptmigrate.migrate.facts.script import Facts

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_same

MADE_IN_MAIN = (
    HEAD
    + """
best = 0

def train(epoch):
    net.train()
    total = 0
    for x, y in train_loader:
        opt.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        opt.step()
        total += loss.item()
    print(epoch, f'{total / len(train_loader):.6f}')

def test():
    global best
    net.eval()
    right = 0
    with torch.no_grad():
        for x, y in test_loader:
            right += (net(x).argmax(1) == y).sum().item()
    if right > best:
        best = right
    print(right, best)

def main():
    global net, opt
    net = nn.Linear(5, 3)
    opt = torch.optim.SGD(net.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        train(epoch)
        test()
    print(best)

main()
"""
)

READ_BEFORE_THE_PASS = (
    HEAD
    + """
log, seen = None, 0

def train():
    global log
    global seen
    model.train()
    for x, y in train_loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += 1
    log.append(seen)

def main():
    global log
    log = []
    for epoch in range(args.epochs):
        log.append(epoch)
        train()
    print(log, seen)

main()
"""
)

HANDED_ON = MADE_IN_MAIN.replace("def train(epoch):", "def train(loader, opt, net, epoch):")
HANDED_ON = HANDED_ON.replace("train(epoch)\n", "train(train_loader, opt, net, epoch)\n")
HANDED_ON = HANDED_ON.replace("in train_loader", "in loader")

READS_THE_EPOCH = (
    HEAD
    + """
def told(name, value):
    print(f'{name} in epoch {epoch}: {value:.6f}')

def test():
    right = sum((model(x).argmax(1) == y).sum().item() for x, y in test_loader)
    told('right', right)

for epoch in range(1, args.epochs + 1):
    for i, (x, y) in enumerate(train_loader):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 2 == 0:
            told(f'step {i} of {epoch}', loss.item())
    test()
print(epoch)
"""
)
IN_THE_GUARD = READS_THE_EPOCH.replace("for epoch", "if __name__ == '__main__':\n  for epoch").replace(
    "\nprint(", "\n  print("
)
IN_THE_GUARD = IN_THE_GUARD.replace("    for i,", "      for i,").replace("    test()", "      test()")
IN_THE_GUARD = IN_THE_GUARD.replace("\n        ", "\n          ")
ENCLOSED = (
    "def main():\n" + "".join(f"    {line}\n" for line in READS_THE_EPOCH[len(HEAD) :].splitlines()) + "\nmain()\n"
)

CASES = {
    "a function reads the epoch": (READS_THE_EPOCH, "module"),
    "a function reads the epoch of the main guard": (IN_THE_GUARD, "module"),
    "a function reads the epoch of the function around it": (HEAD + ENCLOSED, "loop"),
    "made global in main(), and given to the pass": (HANDED_ON, "module"),
    "the model and its optimizer, made in main()": (MADE_IN_MAIN, "module"),
    "read before the function that declares it, counted in the step": (READ_BEFORE_THE_PASS, "module"),
    "declared under a condition": (
        READ_BEFORE_THE_PASS.replace("    global seen\n", "    if args.epochs:\n        global seen\n"),
        "module",
    ),
}


@pytest.mark.parametrize(("text", "plan"), CASES.values(), ids=CASES.keys())
def test_globals_keep_their_values(text, plan):
    check_same(text, plan)


@pytest.mark.parametrize("text", [MADE_IN_MAIN, HANDED_ON], ids=["read", "given to the pass"])
def test_the_module_holds_the_model_that_main_makes_global(text):
    result = check_same(text, "module")
    assert "self.net" in result and "divide_batches" not in result
    assert "global best" in result and "global net, opt" in result


def test_a_step_declares_what_it_counts_above_everything_else():
    result = check_same(READ_BEFORE_THE_PASS, "module")
    assert "def training_step(self, batch, batch_idx):\n        global seen\n" in result


SCOPES = """
def outer():
    global g
    g = inner_made = 1

    def inner():
        nonlocal inner_made
        inner_made = 2

    inner()
    return inner_made

print(g)
"""


def test_an_assignment_belongs_to_the_scope_that_its_declaration_names():
    scopes = Facts("import torch\n" + SCOPES).scopes
    outer, inner = (s for s in scopes.by_node.values() if getattr(s.node, "name", "") in ("outer", "inner"))
    assert len(scopes.module.stores["g"]) == 1 and "g" not in outer.stores
    assert "inner_made" in outer.stores and "inner_made" not in scopes.module.stores
    assert "inner_made" in inner.stores and inner.lookup("inner_made") is outer  # nonlocal: written where it stands


def test_every_epoch_sets_the_number_that_a_function_reads():
    result = check_same(READS_THE_EPOCH, "module")
    assert "        global epoch\n        epoch = self.current_epoch + 1\n" in result
    assert result.count("self.current_epoch") == 1 and "trainer.current_epoch" not in result


STEP = (
    HEAD
    + """
seen, best = 0, 100.0

def train_step(x, y):
    global seen, best
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    seen += len(x)
    best = min(best, loss.item())
    return loss

for epoch in range(args.epochs):
    for x, y in train_loader:
        loss = train_step(x, y)
    print(epoch, seen, f'{best:.6f}', f'{loss.item():.6f}')
"""
)


def test_a_step_of_the_module_keeps_its_globals():
    text = check_same(STEP, "module")
    assert "global" not in text and "self.seen += " in text


def test_a_step_that_main_calls_is_kept_with_its_globals():
    """A local of main() of that name would be another one."""
    head, step = STEP.split("for epoch in range")
    main = (
        "def main():\n" + "".join(f"    {line}\n" for line in ("for epoch in range" + step).splitlines()) + "main()\n"
    )
    check_same(head + main, "loop")
