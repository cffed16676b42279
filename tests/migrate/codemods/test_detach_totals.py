"""T8: totals that stay tensors are the same numbers where they are read."""

import textwrap

import pytest
import torch
from helpers import check, check_unchanged, migrated

HEAD = "import torch\n"
LOOP = "for x, y in train_loader:\n    out = model(x)\n    loss = criterion(out, y)\n    optimizer.step()\n"


def loop(inside: str, after: str = "print(total)", start: str = "total = 0.0") -> str:
    body = "".join(f"    {line}\n" for line in inside.splitlines())
    return f"{HEAD}{start}\n{LOOP}{body}{after}\n"


@pytest.mark.parametrize(
    ("inside", "new", "read"),
    [
        ("total += loss.item()", "total += loss.detach().double()", "float"),
        ("total += loss.item() * len(x)", "total += loss.detach().double() * len(x)", "float"),
        ("total += loss.cpu().item()", "total += loss.detach().double()", "float"),
        ("total += loss.detach().item()", "total += loss.detach().double()", "float"),
        ("total += criterion(out, y).item()", "total += criterion(out, y).detach().double()", "float"),
        ("total += (out.argmax(1) == y).sum().item()", "total += (out.argmax(1) == y).sum().detach()", "int"),
        ("total += out.eq(y).sum().cpu().item()", "total += out.eq(y).sum().detach()", "int"),
    ],
)
def test_a_total_stays_a_tensor_and_is_read_as_a_number(inside, new, read):
    start = "total = 0" if read == "int" else "total = 0.0"
    check(loop(inside, start=start), loop(new, f"print({read}(total))", start), select="PTM301,PTM303")


def test_a_count_that_begins_as_a_float_stays_one():
    count = "total += (out == y).sum(){}"
    after = loop(count.format(".detach().double()"), "print(float(total), f'{total}')")
    check(loop(count.format(".item()"), "print(total, f'{total}')"), after, select="PTM301")


def test_a_count_that_begins_as_either_is_a_number():
    both = "total = 0.0\nif x:\n    total = 0"
    check_unchanged(loop("total += (out == y).sum().item()", start=both), select="PTM301")


def test_a_total_read_now_and_then():
    check(
        loop("total += loss.item()\nif i % 10 == 0:\n    print(total, f'{total / i:.2f}')\n    total = 0"),
        loop(
            "total += loss.detach().double()\n"
            "if i % 10 == 0:\n    print(float(total), f'{total / i:.2f}')\n    total = 0",
            "print(float(total))",
        ),
        select="PTM301",
    )


@pytest.mark.parametrize(
    "inside",
    [
        "print(loss.item())",
        "if loss.item() < best:\n    best = loss.item()",
        "losses.append(loss.item())",
        "total += loss.item()\nbar.set_postfix(loss=total)",
        "total += out.sum().item()",
        "total -= loss.item()",
        "total += loss.item() / x.mean().item()",
        "total += loss.item()\ntotal = smooth(total)",
        "if i % 10 == 0:\n    total += loss.item()",
    ],
)
def test_what_is_printed_or_compared_keeps_its_value(inside):
    result = migrated(loop(inside), "PTM301")
    assert result.text == loop(inside) and not result.edits
    assert all(n.code == "PTM301" for n in result.attention)
    assert bool(result.attention) == ("% 10" not in inside)


@pytest.mark.parametrize("after", ["total += loss.item()", "def f(total):\n    total += loss.item()"])
def test_outside_of_a_hot_loop(after):
    check_unchanged(HEAD + after + "\n", [], select="PTM301")


def test_where_there_is_no_double_precision():
    check_unchanged("device = 'mps'\n" + loop("total += loss.item()"), select="PTM301")


def test_what_a_step_logs_is_not_read_at_once():
    head = "import pytorch_lightning as pl\nimport torch\nclass N(pl.LightningModule):\n"
    step = (
        "    def training_step(self, b, i):\n        loss = self(b)\n        self.log('l', {})\n        return loss\n"
    )
    check(head + step.format("loss.item()"), head + step.format("loss.detach()"), select="PTM301")


@pytest.mark.parametrize(
    "item",
    [
        "(out.argmax(1).cpu().numpy() == y.numpy()).sum().item()",
        "(right == y.numpy()).sum().item()",
        "np.mean(loss_parts).item()",
        "loss_np.item()",
        "loss.detach().cpu().numpy().item()",
        "metrics.log_loss(a, b).item()",
    ],
)
def test_what_numpy_has_made_is_no_tensor(item):
    head = "import numpy as np\nfrom sklearn import metrics\nimport pytorch_lightning as pl\n"
    given = "loss_np, n = np.mean(out), 3\nright = out.argmax(1).cpu().numpy()\n"
    check_unchanged(head + loop(given + f"total += {item}"), [], select="PTM301")
    step = f"class N(pl.LightningModule):\n    def training_step(self, b, i):\n        {given.splitlines()[0]}\n"
    step += f"        {given.splitlines()[1]}\n        self.log('l', {item})\n"
    check_unchanged(head + step, [], select="PTM301")


@pytest.mark.parametrize("body", ["return 3", "return float(self.x)"])
def test_what_a_class_of_the_script_has_is_left(body):
    own = f"class Loss:\n    x = torch.ones(1)\n    def item(self):\n        {body}\nmy_loss = Loss()\n"
    check_unchanged(loop("total += my_loss.item()", start=f"{own}total = 0.0"), [], select="PTM301")
    step = "import pytorch_lightning as pl\nclass N(pl.LightningModule):\n    def training_step(self, b, i):\n"
    check_unchanged(f"{HEAD}{own}{step}        self.log('l', my_loss.item())\n", [], select="PTM301")


def test_the_sums_are_the_same_bit_for_bit():
    source = (
        HEAD
        + "def run(model, optimizer, train_loader, criterion):\n    total, right = 0.0, 0\n"
        + "".join(f"    {line}\n" for line in LOOP.splitlines())
        + "        loss.backward()\n        total += loss.item() * len(x)\n"
        + "        right += (out.argmax(1) == y).sum().item()\n    return total, right, f'{total / 7}'\n"
    )
    result = migrated(source, "PTM301")
    assert result.text.count(".detach()") == 2
    torch.manual_seed(0)
    batches = [(torch.randn(5, 4), torch.randint(0, 3, (5,))) for _ in range(40)]
    seen = []
    for text in (source, result.text):
        torch.manual_seed(1)
        model, space = torch.nn.Linear(4, 3), {}
        exec(text, space)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        seen.append(space["run"](model, optimizer, batches, torch.nn.CrossEntropyLoss()))
    assert seen[0] == seen[1] and [type(v) for v in seen[0]] == [type(v) for v in seen[1]]


@pytest.mark.parametrize(
    ("line", "new"),
    [
        ("total /= len(x) * 2", "total = float(total) / (len(x) * 2)"),
        ("total = total / len(x)", "total = float(total) / len(x)"),
        ("total *= 100.0", "total = float(total) * 100.0"),
        ("n = 2; total -= n", "n = 2; total = float(total) - n"),
    ],
)
def test_a_sum_that_becomes_another_number_below_its_loop(line, new):
    after = "if x:\n    print({})\n{}  # mean\nprint(total, f'{{total!r}}')"
    before = loop("total += loss.item()", after.format("total", line))
    check(before, loop("total += loss.detach().double()", after.format("float(total)", new)), select="PTM301")


@pytest.mark.parametrize(
    "after",
    [
        "total /= len(x)\ntotal *= 100",
        "if x:\n    total /= len(x)\nprint(total)",
        "total /= total + 1",
        "total /= (len(x) +\n    1)",
    ],
)
def test_a_sum_that_may_be_either_number_is_left(after):
    check_unchanged(loop("total += loss.item()", after), ["PTM301"], select="PTM301")


def test_a_count_that_is_a_share_below_is_read_as_one_elsewhere():
    inside = "total += (out == y).sum().item()"
    body = textwrap.indent(loop(inside, "total = 100 * total / len(x)", "total = 0").removeprefix(HEAD), "    ")
    check_unchanged(HEAD + f"for epoch in range(3):\n{body}print(total)\n", ["PTM301"], select="PTM301")
    check_unchanged(HEAD + f"for epoch in range(3):\n    if epoch: print(total)\n{body}", ["PTM301"], select="PTM301")


@pytest.mark.parametrize(
    ("inside", "kept"),
    [
        ("values.append(loss.item())", True),
        ("last = loss.item() * 2", True),
        ("if loss.item() > 5:\n    break", False),
        ("print('%.3f' % loss.item())", False),
        ("print(f'{loss.item():.3f}')", False),
        ("writer.add_scalar('loss', loss.item(), 1)", False),
    ],
)
def test_what_could_stay_a_tensor_is_told_how(inside, kept):
    result = migrated(loop(inside, after="", start="values = []"))
    (note,) = [n for n in result.attention if n.code == "PTM301"]
    assert "makes the host wait at every step" in note.message and ("`.detach()` would not" in note.message) is kept
