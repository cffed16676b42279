"""Whether a loss is a sum or a mean over its batch, wherever the script keeps what computes it."""

import re
import textwrap

import pytest
import torch
from ptmigrate.migrate.facts.batch_values import Flow
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.lift.loss import Reduction
from ptmigrate.migrate.migrate import migrate_text

from tests import forked
from tests.migrate.lift.test_same_run import NESTED
from tests.migrate.running import check_same

HEAD = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
xs = torch.randn(17, 4)
ys = torch.randn(17, 1)
"""
CLASS = (
    HEAD
    + """
class Squares(nn.Module):
    def forward(self, a, b):
        e = (a - b) ** 2
        return e.KIND()

class Learner:
    def __init__(self, given=None):
        self.loader = DataLoader(TensorDataset(xs, ys), batch_size=8)
        self.model = nn.Linear(4, 1)
        self.criterion = MADE
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.01)

    def error(self, a, b):
        return ((a - b) ** 2).KIND()

    def fit(self):
        for epoch in range(2):
            losses = []
            for x, y in self.loader:
                self.optimizer.zero_grad()
                loss = CALL
                loss.backward()
                self.optimizer.step()
                losses.append(loss.item())
            print(epoch, sum(losses) / len(losses))
        print(self.model.weight.tolist())

Learner(GIVEN).fit()
"""
)
WAYS = {
    "of torch": ("nn.MSELoss(reduction='KIND')", "self.criterion(self.model(x), y)", ""),
    "of torch, placed": ("nn.MSELoss(reduction='KIND').double().float()", "self.criterion(self.model(x), y)", ""),
    "given to the constructor": ("given", "self.criterion(self.model(x), y)", "nn.MSELoss(reduction='KIND')"),
    "by its keyword": ("given", "self.criterion(self.model(x), y)", "given=nn.MSELoss(reduction='KIND')"),
    "of the script's own": ("Squares()", "self.criterion(self.model(x), y)", ""),
    "a method": ("None", "self.error(self.model(x), y)", ""),
}


def learner(way, kind):
    made, call, given = WAYS[way]
    return CLASS.replace("MADE", made).replace("CALL", call).replace("GIVEN", given).replace("KIND", kind)


@pytest.mark.parametrize("way", WAYS)
def test_a_sum(way):
    result = check_same(learner(way, "sum"), "module")
    assert 'loss_reduction = "sum"' in result and "batch_mean" not in result


@pytest.mark.parametrize("way", WAYS)
def test_a_mean(way):
    result = check_same(learner(way, "mean"), "module")
    assert "loss_reduction" not in result and "batch_sum" not in result


STEP = (
    HEAD
    + """
model = nn.Linear(4, 1)
criterion = nn.MSELoss(reduction='KIND')
optimizer = torch.optim.SGD(model.parameters(), 0.01)
for epoch in range(2):
    total = 0.0
    for i, (x, y) in enumerate(DataLoader(TensorDataset(xs, ys), batch_size=8)):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        MORE
        loss.backward()
        optimizer.step()
        COUNT
        print(i, loss.item())
    print(epoch, total, loss.item())
print(model.weight.tolist())
"""
)
PENALTIES = [
    "loss = loss + 0.1 * sum(p.pow(2).sum() for p in model.parameters())",
    "loss += 0.1 * sum(p.abs().sum() for p in model.parameters())",
    "for p in model.parameters():\n            loss = loss + 0.1 * p.abs().sum()",
    "l2 = 0.0\n        for p in model.parameters():\n            l2 = l2 + p.norm()\n        loss = loss + 0.1 * l2",
    "loss = loss + 0.1 * model.weight.norm()",
]
WHOLE = "every process computes every training batch whole"


def step(kind, more="pass", count="total += loss.item()"):
    return STEP.replace("KIND", kind).replace("MORE", more).replace("COUNT", count)


@pytest.mark.parametrize("more", PENALTIES)
def test_every_process_would_add_a_penalty_to_its_sum(more):
    check_same(step("sum", more), "module")
    assert any(n.message.startswith(WHOLE) for n in migrate_text(step("sum", more)).attention)


@pytest.mark.parametrize("more", PENALTIES)
def test_a_penalty_on_a_mean_is_weighed_with_it(more):
    check_same(step("mean", more), "module")
    assert not any(n.message.startswith(WHOLE) for n in migrate_text(step("mean", more)).attention)


@pytest.mark.parametrize("more", ["loss = loss * 2", "loss = loss + criterion(model(x * 2), y)", "loss = 0.5 * loss"])
def test_what_is_no_penalty(more):
    assert 'loss_reduction = "sum"' in check_same(step("sum", more), "module")


@pytest.mark.parametrize(
    ("kind", "count", "whole"),
    [
        ("sum", "total += loss.item() * x.size(0)", True),
        ("sum", "n = len(x)\n        total += loss.item() * n", True),
        ("mean", "total += loss.item() * x.size(0)", False),
        ("sum", "total += loss.item() * 2", False),
        ("sum", "total += loss.item()", False),
    ],
)
def test_a_sum_times_a_size_is_no_sum_of_shares(kind, count, whole):
    text = step(kind, count=count)
    check_same(text, "module")
    assert any("multiplies two sums" in n.message for n in migrate_text(text).attention) is whole


BY_TWO = {
    "an empty share": step("sum"),
    "sum times size": step("sum", count="total += loss.item() * x.size(0)"),
    "a penalty": step("sum", PENALTIES[0]),
    "given": learner("given to the constructor", "sum"),
    "own": learner("of the script's own", "sum"),
}
TWO = ("--accelerator", "cpu", "--devices", "2", "--global-batch")


@pytest.mark.slow
@pytest.mark.parametrize("text", BY_TWO.values(), ids=BY_TWO)
def test_two_processes_print_what_one_does(text, tmp_path):
    """17 samples in batches of 8: of the last one a process has nothing."""
    (tmp_path / "before.py").write_text(text)
    (tmp_path / "after.py").write_text(migrate_text(text).text)
    one, two = forked.run("before.py", cwd=tmp_path), forked.ptrun(*TWO, "after.py", cwd=tmp_path)
    assert two.returncode == 0, two.stderr
    numbers = [[float(n) for n in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", p.stdout)] for p in (one, two)]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-4, abs=1e-6)


BATCH = """
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
xs, us, ys = torch.randn(16, 5), torch.randn(16, 5), torch.tensor(2 * [0, 1, 2, 3, 3, 0, 2, 1])
w = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])


class Focal(nn.Module):
    def __init__(self, reduction="mean"):
        super().__init__()
        self.reduction = reduction

    def forward(self, a, b):
        e = F.cross_entropy(a, b, reduction="none")
        if self.reduction == "mean":
            return e.mean()
        elif self.reduction == "sum":
            return e.sum()
        return e


class Pairs(nn.Module):
    def forward(self, a, b):
        return F.cross_entropy(a @ b.t(), torch.arange(len(a)))


def main():
    model = nn.Linear(5, 5)
    opt = torch.optim.SGD(model.parameters(), 0.1)
    for epoch in range(2):
        for x, u, y in DataLoader(TensorDataset(xs, us, ys), 8):
            opt.zero_grad()
            out = model(x)
            LINES
            loss.backward()
            opt.step()


main()
"""
LOSSES = """
F.cross_entropy(out, y)
F.cross_entropy(out, y, weight=w)
F.cross_entropy(out, y, w)
F.cross_entropy(out, y, weight=None)
F.cross_entropy(out, y, weight=w, reduction="sum")
F.cross_entropy(out, y, weight=w, reduction="none").mean()
F.cross_entropy(out, y, ignore_index=1)
F.binary_cross_entropy_with_logits(out, u.sigmoid(), pos_weight=w)
F.cross_entropy(out, y) / x.size(0)
F.cross_entropy(out, y) * len(x)
F.mse_loss(out, u, reduction="sum") / x.size(0)
F.mse_loss(out, u, reduction="sum") / x.size(1)
F.mse_loss(out, u, reduction="sum") / out.numel()
((out - u) ** 2).sum(1).mean()
((out - u) ** 2).sum(dim=1).sum(dim=0)
((out - u) ** 2)[y > 1].mean()
((out - u) ** 2)[y > 1].sum()
F.mse_loss(out[y > 1], u[y > 1])
F.mse_loss(input=out[y > 1], target=u[y > 1])
F.mse_loss(target=u, input=out)
F.mse_loss(input=out, target=u, reduction="sum")
nn.MSELoss()(input=out[y > 1], target=u[y > 1])
nn.CrossEntropyLoss()(target=y, input=out)
torch.mean(input=(out - u) ** 2)
torch.sum(input=(out - u) ** 2)
torch.sum(input=(out - u) ** 2, dim=1).mean()
torch.mul(input=F.mse_loss(out, u), other=F.l1_loss(out, u))
torch.div(input=F.mse_loss(out, u, reduction="sum"), other=len(x))
torch.mul(input=torch.tensor(2.0), other=F.mse_loss(out, u, reduction="sum"))
F.mse_loss(out, u, reduction="sum").div(other=len(x))
torch.add(input=F.mse_loss(out, u), other=F.l1_loss(out, u), alpha=0.5)
(out[1:] - out[:-1]).pow(2).mean()
torch.sqrt(F.mse_loss(out, u))
(out - u).norm()
torch.norm(out - u) / len(x)
torch.linalg.vector_norm(out - u) / len(x)
(out - u).norm(float("inf"))
(out - u).norm(p=1)
(out - u).norm(1) / len(x)
(out - u).norm() ** 2
(out - u).norm(p="fro").pow(2) / len(x)
torch.square(torch.norm(out - u))
(out - u).norm(dim=1).mean()
(out - u).norm(2, 1).sum()
((out - u).norm(dim=1) ** 2).mean()
F.mse_loss(out, u).log()
F.mse_loss(out, u) ** 0.5
F.mse_loss(out, u) * F.l1_loss(out, u)
(out - u).pow(2).sum().mul(0.5)
(out - u).pow(2).mean().add(out.pow(2).sum())
torch.dot(out[:, 0], u[:, 0])
torch.einsum("bi,bi->", out, u)
torch.stack([F.mse_loss(out, u), F.l1_loss(out, u)]).sum()
nn.CrossEntropyLoss(w)(out, y)
nn.CrossEntropyLoss(ignore_index=2)(out, y)
nn.MSELoss(reduction="sum")(out, u)
(lambda a, b: F.mse_loss(a, b, reduction="sum"))(out, u)
{"a": nn.MSELoss(reduction="sum")}["a"](out, u)
getattr(nn, "MSELoss")(reduction="sum")(out, u)
Focal()(out, y)
Focal("sum")(out, y)
Focal(reduction="none")(out, y).mean()
Pairs()(out, u)
F.mse_loss(out, u) if epoch else F.l1_loss(out, u, reduction="sum")
""".strip().splitlines()
SEVERAL = [
    ("criterion = Focal('sum')", "loss = criterion(out, y)"),
    ("criterion = Pairs()", "loss = criterion(out, u)"),
    ("b, d = x.shape", "loss = F.mse_loss(out, u, reduction='sum') / b"),
    ("b, d = x.shape", "loss = F.mse_loss(out, u, reduction='sum') / d"),
    ("loss = F.mse_loss(out, u, reduction='sum')", "loss /= len(x)"),
    ("loss = F.mse_loss(out, u)", "loss /= len(x)"),
    ("loss, n = F.mse_loss(out, u, reduction='sum'), len(x)", "loss = loss * 2"),
    ("losses = {'a': F.mse_loss(out, u, reduction='sum')}", "loss = sum(losses.values())"),
    ("losses = [F.mse_loss(out, u), F.l1_loss(out, u)]", "loss = sum(losses)"),
    ("mask = y > 1", "loss = F.mse_loss(out[mask], u[mask])"),
    ("at = torch.nonzero(y > 1).squeeze(1)", "loss = F.mse_loss(out[at], u[at])"),
    ("mse = F.mse_loss(out, u)", "loss = mse.sqrt()"),
    ("rows = []\nrows.extend(y.tolist())", "loss = F.mse_loss(out, u) * len(rows)"),
    ("rows = [*x]", "loss = F.mse_loss(out, u) * len(rows)"),
    ("rows = [*out]", "loss = F.mse_loss(torch.stack(rows), u, reduction='sum') / len(rows)"),
    ("steps = [out, out * 2]", "loss = sum((steps[i] - u).abs().mean() for i in range(len(steps)))"),
    (
        "steps = (out, out * 2)",
        "loss = 0.0\nfor i in range(len(steps)):\n    loss += 0.8 ** i * F.mse_loss(steps[i], u)",
    ),
    ("rows = torch.arange(len(x))", "loss = -out.log_softmax(1)[rows, y].mean()"),
]


def _of_shares(lines, sizes):
    """The loss of each share of one batch, computed by itself."""
    made = {}
    exec(BATCH.partition("def main")[0], made)
    body = textwrap.indent(f"out = model(x)\n{lines}\nreturn loss", "    ")
    exec(f"def f(model, x, u, y, epoch=1):\n{body}", made)
    torch.manual_seed(1)
    model = made["nn"].Linear(5, 5)
    parts = zip(*(made[n][: sum(sizes)].split(sizes) for n in ("xs", "us", "ys")), strict=True)
    return [float(made["f"](model, *part)) for part in parts]


@pytest.mark.parametrize("lines", [*(f"loss = {e}" for e in LOSSES), *("\n".join(two) for two in SEVERAL)])
def test_what_is_said_of_a_loss_is_so(lines):
    """Divided batches, weighed as the result says, give the whole batch's loss; else they are whole, and it is told."""
    (whole,) = _of_shares(lines, [8])
    shares = [(_of_shares(lines, sizes), sizes) for sizes in ([5, 3], [4, 4])]
    means = all((a * n + b * m) / 8 == pytest.approx(whole, rel=1e-4) for (a, b), (n, m) in shares)
    sums = all(a + b == pytest.approx(whole, rel=1e-4) for (a, b), _ in shares)
    result = migrate_text(BATCH.replace("LINES", lines.replace("\n", "\n" + " " * 12)))
    said = "sum" if 'loss_reduction = "sum"' in result.text else "mean"
    if "divide_batches = False" in result.text:
        said = "neither"
        assert any(n.message.startswith(WHOLE) for n in result.attention)
    undecided = said == "neither" and " if epoch else " in lines  # in one epoch
    assert undecided or said == ("mean" if means else "sum" if sums else "neither")


SCALED = (
    HEAD
    + """
model = nn.Linear(4, 1)
criterion = nn.MSELoss(reduction='KIND')
optimizer = torch.optim.SGD(model.parameters(), 0.01)
scaler = torch.amp.GradScaler('cuda', enabled=False)
losses = []
for epoch in range(2):
    for x, y in DataLoader(TensorDataset(xs, ys), batch_size=8):
        optimizer.zero_grad()
        with torch.autocast('cpu', enabled=False):
            out = model(x)
            loss = criterion(out, y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    print(loss.item())
print(losses)
"""
)


@pytest.mark.parametrize("kind", ["sum", "mean"])
def test_a_loss_is_what_a_scaler_scales(kind):
    result = check_same(SCALED.replace("KIND", kind), "manual")
    assert ('loss_reduction = "sum"' in result) == (kind == "sum")
    assert f"self.losses.append(self.batch_{kind}(self.loss.item()))" in result
    assert f"loss = self.batch_{kind}(self.loss)" in result


@pytest.mark.parametrize(
    "more",
    [
        "loss += 1e-3 * sum(p.abs().sum() for p in model.parameters())",
        "loss = loss + out.mean()",
        "loss *= 2",
        "terms = []\n        terms.append(loss)\n        terms.append(out.abs().mean())\n        loss = sum(terms)",
    ],
)
def test_a_loss_of_several_terms_read_after_its_batches_is_the_whole_batchs(more):
    text = SCALED.replace("KIND", "mean").replace(
        "        scaler.scale(loss)", f"        {more}\n        scaler.scale(loss)"
    )
    result = check_same(text, "manual")
    assert "loss = self.batch_mean(self.loss)" in result and "divide_batches" not in result


def test_one_that_is_added_up_over_batches_is_no_batchs_own():
    text = SCALED.replace("KIND", "mean").replace(
        "        losses.append", "        total += loss.item()\n        losses.append"
    )
    text = text.replace("    for x, y", "    total = 0.0\n    for x, y").replace("print(loss.item())", "print(total)")
    assert "total = self.all_reduce(self.total)" in check_same(text, "manual")


def test_a_loss_that_is_another_value_after_backward_is_not_that_loss():
    text = SCALED.replace("KIND", "mean").replace("        losses", "        loss = loss * len(x) ** 2\n        losses")
    assert "self.batch_mean(self.loss.item())" not in check_same(text, "manual")


def test_each_call_is_asked_once_however_often_its_name_is_bound_again(monkeypatch):
    text = "def step(net, x):\n" + "".join(f"    x = net.part{i}(x)\n" for i in range(16)) + "    return x\n"
    facts, asked, of_call = Facts(text), [], Reduction._of_call
    monkeypatch.setattr(Reduction, "_of_call", lambda self, call: asked.append(call) or of_call(self, call))
    f = facts.tree.body[0]
    assert Reduction(facts, f.body, Flow).kind(f.body[-1].value) is None
    assert len(asked) == 16


PAIR = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(27, 4), torch.randn(27, 1)), batch_size=8)
MADE
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
for epoch in range(2):
    total = first = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        out = model(x)
        a = squares(out, y)
        loss = a + errors(out, y)
        loss.backward()
        optimizer.step()
        total += loss.item()
        first += a.item()
    print(epoch, total, first)
"""
PAIRS = [
    "model = nn.Linear(4, 1)\nsquares, errors = nn.MSELoss(KIND), nn.L1Loss(KIND)",
    "model, squares, errors = nn.Linear(4, 1), nn.MSELoss(KIND), nn.L1Loss(KIND)",
    "model = nn.Linear(4, 1)\nsquares, errors = nn.MSELoss(KIND), nn.L1Loss(KIND)\nif 2:\n    errors = nn.L1Loss(KIND)",
]


@pytest.mark.parametrize("made", PAIRS)
@pytest.mark.parametrize("kind", ["sum", "mean"])
def test_criteria_that_are_made_side_by_side(kind, made):
    text = "epochs = 2\n" + PAIR.replace("MADE", made).replace("KIND", f"reduction={kind!r}")
    assert ('loss_reduction = "sum"' in check_same(text, "module")) is (kind == "sum")
    assert not any("is brought together as" in n.message for n in migrate_text(text).attention)


def test_one_of_two_that_is_not_what_the_other_is():
    made = PAIRS[0].replace("KIND", "reduction='sum'", 1).replace("KIND", "")
    told = [n.message for n in migrate_text(PAIR.replace("MADE", made)).attention]
    assert any("adds a sum over the batch to a mean" in m for m in told)


def test_what_unpacks_what_does_not_show_is_not_known():
    made = "model = nn.Linear(4, 1)\nsquares, errors = [c() for c in (nn.MSELoss, nn.L1Loss)]"
    assert "loss_reduction" not in check_same(PAIR.replace("MADE", made), "module")


def test_a_loss_that_is_summed_from_a_list_is_the_whole_batchs():
    terms = "terms = []\n        terms.append(criterion(out, y))\n        loss = sum(terms)"
    result = check_same(NESTED.replace("loss = criterion(out, y)", terms), "module")
    assert "module.batch_mean(module.loss)" in result


PENALISED = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 1)
        self.scale = nn.Parameter(torch.ones(3))
        self.seen = 0

    def forward(self, x):
        out = self.fc(x) * self.scale.mean()
        self.seen = out.detach()
        return out

    def penalty(self):
        return (self.scale - 1.5).pow(2).sum()


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(2):
    for x, y in DataLoader(TensorDataset(torch.randn(40, 4), torch.randn(40, 1)), batch_size=8):
        loss = nn.functional.mse_loss(model(x), y) + 0.1 * model.penalty()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
"""


def test_a_penalty_of_the_parameters_is_no_sum_over_the_batch():
    result = check_same("epochs = 2\n" + PENALISED, "module")
    assert "divide_batches" not in result and "loss_reduction" not in result


@pytest.mark.parametrize("of", ["(self.seen - 1).pow(2).sum()", "(self.scale.sum() * self.seen).sum()"])
def test_one_of_what_the_step_leaves_may_be(of):
    told = migrate_text(PENALISED.replace("(self.scale - 1.5).pow(2).sum()", of)).attention
    assert any("adds a sum over the batch to a mean" in n.message for n in told)


@pytest.mark.parametrize("count", ["len(y.unique())", "len(set(y.tolist()))", "y.nonzero().size(0)"])
def test_a_mean_times_a_count_of_some_is_no_sum(count):
    text = PENALISED.replace("0.1 * model.penalty()", "0").replace(
        "nn.functional.mse_loss(model(x), y) +", f"{count} * nn.functional.mse_loss(model(x), y) +"
    )
    result = migrate_text(text)
    assert "divide_batches = False" in result.text
    assert any("is for a share of the batch not what it is for the whole" in n.message for n in result.attention)
