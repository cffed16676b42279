"""Several trainings in one script, one after the other: each becomes a Module of its own. Run before and after."""

import re
from textwrap import indent

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.printed_on_two import by_results
from tests.migrate.running import check_same, run

ONE = HEAD.replace("parse_args()", "parse_args([])")
NETS = (
    ONE
    + """
other = nn.Sequential(nn.Linear(5, 6), nn.Dropout(0.3), nn.ReLU(), nn.Linear(6, 3)).to(device)
"""
)
TEACH = """
for epoch in range(args.epochs):
    for x, y in train_loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    print('teacher', epoch, f'{loss.item():.5f}')
"""
LEARN = """
model.eval()
optimizer = torch.optim.Adam(other.parameters(), lr=0.01)
for epoch in range(args.epochs + 1):
    total = 0.0
    for x, y in train_loader:
        x, y = x.to(device), y.to(device)
        with torch.no_grad():
            goal = model(x).softmax(1)
        optimizer.zero_grad()
        loss = criterion(other(x), goal)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)
    print('student', epoch, f'{total / len(train_loader.dataset):.5f}')
"""
CHECK = """
def check(net):
    net.eval()
    right = 0
    with torch.no_grad():
        for x, y in test_loader:
            right += (net(x.to(device)).argmax(1) == y.to(device)).sum().item()
    net.train()
    return right
"""
STEPS = """
def warm(net, loader, optimizer):
    net.train()
    for x, _ in loader:
        x = x.to(device)
        optimizer.zero_grad()
        loss = net(x).pow(2).mean()
        loss.backward()
        optimizer.step()

def train(net, loader, optimizer, epoch):
    net.train()
    for i, (x, y) in enumerate(loader):
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()
        if i % 2 == 0:
            print(epoch, i, f'{loss.item():.5f}')
"""
SCRIPTS = {
    "teacher and student": NETS + TEACH + LEARN,
    "looked at in between": NETS
    + CHECK
    + TEACH
    + "print(check(model), check(other))\n"
    + LEARN
    + "print(check(other))\n",
    "two functions": ONE
    + CHECK
    + STEPS
    + """
def main():
    first = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(2):
        warm(model, train_loader, first)
    print(check(model))
    for epoch in range(args.epochs):
        train(model, train_loader, optimizer, epoch)
        print(check(model))

main()
""",
    "one optimizer for both": ONE
    + STEPS
    + """
for epoch in range(2):
    warm(model, train_loader, optimizer)
for group in optimizer.param_groups:
    group['lr'] = 0.01
for epoch in range(args.epochs):
    train(model, train_loader, optimizer, epoch)
""",
    "in every fold": NETS
    + f"""
for fold in range(2):
    torch.manual_seed(fold)
    net = nn.Linear(5, 3).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
{indent(TEACH.replace("model", "net"), "    ")}
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
{indent(TEACH.replace("model", "net").replace("teacher", "again"), "    ")}
""",
    "in the mode that an evaluation left": ONE
    + CHECK.replace("    net.train()\n", "    print(right)\n")
    + TEACH.replace("    for x, y", "    model.train()\n    for x, y").replace(
        "    print(", "    check(model)\n    print("
    )
    + TEACH.replace("teacher", "again"),
    "on from where the first stopped": ONE
    + TEACH.replace("    print(", "    if loss.item() < 1.1:\n        break\n    print(")
    + TEACH.replace("range(args.epochs)", "range(epoch + 1, epoch + 3)"),
    "two adversaries after a warm up": NETS
    + TEACH
    + """
second = torch.optim.Adam(other.parameters(), lr=0.01)
for epoch in range(2):
    for x, y in train_loader:
        second.zero_grad()
        d = criterion(other(x), y)
        d.backward()
        second.step()
        optimizer.zero_grad()
        g = criterion(model(x), other(x).argmax(1))
        g.backward()
        optimizer.step()
    print('both', epoch, f'{d.item():.5f} {g.item():.5f}')
""",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_each_is_lifted_and_runs_the_same(name):
    result = check_same(SCRIPTS[name], "manual" if "adversaries" in name else "module")
    assert result.count(".fit(") == 2 and ".backward(" not in result.replace("manual_backward(", "")


KEPT = {
    "one runs inside of the other": (
        NETS
        + """
def tune(x, y):
    second = torch.optim.Adam(other.parameters(), lr=0.01)
    for _ in range(2):
        for i in range(3):
            second.zero_grad()
            criterion(other(x), y).backward()
            second.step()

for epoch in range(2):
    for x, y in train_loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
    tune(x, y)
""",
        "inside of another",
    ),
    "one of them is in no loop": (NETS + TEACH + "criterion(other(xs), ys).backward()\n", "outside any loop"),
}


@pytest.mark.parametrize("name", KEPT)
def test_they_stay_together_where_they_are_not_apart(name):
    text, why = KEPT[name]
    result = migrate_text(text)
    assert result.plan == "loop" and why in result.attention[0].message


TURNS = (
    NETS
    + """
second = torch.optim.Adam(other.parameters(), lr=0.01)
for epoch in range(2):
    for x, y in train_loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
    for x, y in train_loader:
        second.zero_grad()
        criterion(other(x), y).backward()
        second.step()
"""
)


def test_trainings_that_share_an_epoch_are_one():
    result = migrate_text(TURNS)
    assert result.plan == "manual" and result.text.count(".fit(") == 1


@pytest.mark.slow
def test_two_processes_print_what_one_printed(tmp_path):
    texts = list(SCRIPTS.values())
    for text, after in zip(texts, by_results(tmp_path, texts), strict=True):
        before, after = ([float(n) for n in re.findall(r"\d+(?:\.\d+)?", t)] for t in (run(text).output, after))
        assert before and after == pytest.approx(before, abs=2e-5), text
