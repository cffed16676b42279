import pytest
from helpers import check, check_unchanged

from tests.migrate.running import check_on_card, check_same

HEAD = "import numpy as np\nimport torch\nfrom sklearn.metrics import accuracy_score\n"
HEAD += "from torch.utils.data import DataLoader\n"
LOOP = HEAD + "for x, y in test_loader:\n    p = model(x).argmax(1)\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("n += accuracy_score(y, p)", "n += accuracy_score(y.cpu(), p.cpu())"),
        ("n += accuracy_score(y_pred=p, y_true=y)", "n += accuracy_score(y_pred=p.cpu(), y_true=y.cpu())"),
        ("n += accuracy_score(y, model(x).argmax(1))", "n += accuracy_score(y.cpu(), model(x).argmax(1).cpu())"),
        ("n += accuracy_score(y[y > 0], p[y > 0])", "n += accuracy_score(y[y > 0].cpu(), p[y > 0].cpu())"),
        ("seen.append(np.array(p))", "seen.append(np.array(p.cpu()))"),
        ("pass\nprint(accuracy_score(y, p))", "pass\nprint(accuracy_score(y.cpu(), p.cpu()))"),
        ("pass\nprint(p.numpy())", "pass\nprint(p.cpu().numpy())"),
    ],
)
def test_what_arrays_are_made_of_is_brought_to_the_cpu(before, after):
    check(LOOP + f"    {before}\n", LOOP + f"    {after}\n", select="PTM114")


@pytest.mark.parametrize(
    "line",
    [
        "n += accuracy_score(y.cpu(), p.cpu())",
        "n += accuracy_score(y.tolist(), p.tolist())",
        "n += np.sqrt(p.sum().item())",
        "n += np.mean([1, 2])",
        "n += np.zeros(p.shape).sum() + np.ones(len(y)).sum()",
        "n += accuracy_score(y, model.answers(x))",  # none of which shows that it is a tensor
        "n += torch.sum(p == y)",
        "n += p.sum()",
    ],
)
def test_what_needs_no_other_place(line):
    check_unchanged(LOOP + f"    {line}\n", select="PTM114")


@pytest.mark.parametrize(
    "text",
    [
        "for x, y in rows:\n    p = x.argmax(1)\n    n += accuracy_score(y, p)\n",  # rows of its own, which stay
        "p = torch.ones(3).argmax(0)\nprint(accuracy_score(y, p), p.numpy())\n",
        "model.eval()\nprint(np.array(model(data).argmax(1)))\n",
    ],
)
def test_what_is_of_no_batch(text):
    check_unchanged(HEAD + "rows = [(a, b), (c, d)]\n" + text, select="PTM114")


def test_a_part_of_a_batch_may_be_a_list_where_the_script_puts_them_together():
    head = LOOP.replace(
        "for x, y", "def collate(b):\n    return torch.stack([x for x, _ in b]), [y for _, y in b]\n\n\nfor x, y"
    )
    head = head.replace("test_loader", "DataLoader(data, collate_fn=collate)")
    step = "    n += accuracy_score({}, {})\n"
    there = step.format('torch.as_tensor(y, device="cpu")', "p.cpu()")
    check(head + step.format("y", "p"), head + there, select="PTM114")


def test_the_last_value_below_a_loop():
    check("p = []\n" + LOOP + "print(p.numpy())\n", "p = []\n" + LOOP + "print(p.cpu().numpy())\n", select="PTM114")


LISTS = HEAD + "{made}\nfor x, y in test_loader:\n    p = model(x).argmax(1)\n    {add}\n{below}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("ps.extend(p); ys.extend(y)", "ps.extend(p.cpu()); ys.extend(y.cpu())"),
        ("ps.extend(list(p)); ys.extend(y.tolist())", "ps.extend(list(p.cpu())); ys.extend(y.tolist())"),
        ("ps += p; ys += y", "ps += p.cpu(); ys += y.cpu()"),
    ],
)
def test_what_a_list_gets_that_is_handed_on(before, after):
    parts = {"made": "n, ps, ys = 0, [], []", "below": "print(accuracy_score(ys, ps))"}
    check(LISTS.format(add=before, **parts), LISTS.format(add=after, **parts), select="PTM114")


def test_what_a_list_gets_beside_such_a_call():
    before = "seen.extend(p); n += accuracy_score(y, p)"
    after = "seen.extend(p.cpu()); n += accuracy_score(y.cpu(), p.cpu())"
    parts = {"made": "n, seen = 0, []", "below": "print(seen)"}
    check(LISTS.format(add=before, **parts), LISTS.format(add=after, **parts), select="PTM114")


@pytest.mark.parametrize(
    ("made", "below"),
    [
        ("ps, ys = [], []", "print(len(ps), len(ys))"),
        ("ps, ys = [], []", "print(torch.stack(ps) == torch.stack(ys))"),
        ("ps, ys = held.ps, held.ys", "print(accuracy_score(ys, ps))"),
    ],
)
def test_lists_of_which_no_array_is_made(made, below):
    check_unchanged(LISTS.format(made=made, add="ps.extend(p); ys.extend(y)", below=below), select="PTM114")


SCRIPT = """\
import numpy as np
import torch
from sklearn.metrics import accuracy_score, f1_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(24, 4), torch.randint(0, 3, (24,)))
loader = DataLoader(data, batch_size=6, shuffle=True)
valid = DataLoader(data, batch_size=6)
net = nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()


def test(model, loader):
    model.eval()
    right, seen, total = [], [], 0
    with torch.no_grad():
        for x, y in loader:
            p = model(x).argmax(-1)
            seen.extend(p)
            right.extend(y)
            total += f1_score(y, p, average="macro")
    print(total / len(loader), accuracy_score(right, seen))


for epoch in range(2):
    net.train()
    for x, y in loader:
        loss = criterion(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(loss.item())
    test(net, valid)

net.eval()
with torch.no_grad():
    for x, y in valid:
        p = net(x).argmax(-1)
    print(list(map(int, p.detach().numpy())))
"""


def test_a_script_without_devices_that_counts_with_sklearn(tmp_path):
    """Its result goes to the card, where there is one: each of these calls ended it there."""
    pytest.importorskip("sklearn")
    check_same(SCRIPT, "module")
    check_on_card(tmp_path, SCRIPT)


MOVING = """\
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(16, 6), torch.randint(0, 3, (16,)))
loader, test_loader = DataLoader(data, 8), DataLoader(data, 8)
rows = [1, 2]
model = nn.Linear(6, 3).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
n = 0
with torch.no_grad():
    for x, y in test_loader:
        p = model(x.cuda()).argmax(1).cpu().numpy()
        n += {value}
print(n)
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(p == np.array(y)).sum()", "(p == np.array(y.cpu())).sum()"),
        ("np.reshape(y[:4], [2, 2])[0].sum() - p[0]", "np.reshape(y[:4].cpu(), [2, 2])[0].sum() - p[0]"),
        ("np.append([], y).sum() + p[0]", "np.append([], y.cpu()).sum() + p[0]"),
    ],
)
def test_what_a_loop_leaves_that_moves_other_parts_of_its_batches(tmp_path, before, after):
    assert f"n += {after}\n" in check_on_card(tmp_path, MOVING.format(value=before))


@pytest.mark.parametrize("value", ["np.array(y.cpu()).sum()", "np.zeros(len(y)).sum()", "np.array(rows).sum()"])
def test_what_it_brings_there_or_has_from_elsewhere_stays(tmp_path, value):
    assert f"n += {value}\n" in check_on_card(tmp_path, MOVING.format(value=value))
