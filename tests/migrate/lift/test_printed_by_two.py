"""What a script prints of its batches, lifted: the same on one process and, with --global-batch, on two."""

import re

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.printed_on_two import by_originals, by_results
from tests.migrate.running import check_same

HEAD = """
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
xs = torch.randn(39, 8)
ys = (xs @ torch.randn(8, 3)).argmax(1)
train = DataLoader(TensorDataset(xs, ys), batch_size=8, shuffle=True)
valid = DataLoader(TensorDataset(xs[:20], ys[:20]), batch_size=8)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = torch.nn.CrossEntropyLoss()

def hits(out, y):
    return out.argmax(1).eq(y).sum().item()

def accuracy(out, y):
    guess = out.argmax(1)
    return (guess == y).float().mean().item()

def top(output, target, topk=(1,)):
    with torch.no_grad():
        _, pred = output.topk(max(topk), 1, True, True)
        correct = pred.t().eq(target.view(1, -1).expand_as(pred.t()))
        res = []
        for k in topk:
            correct_k = correct[:k].reshape(-1).float().sum(0, keepdim=True)
            res.append(correct_k.mul_(100.0 / target.size(0)))
        return res

def top_of(output, target, topk=(1,)):
    with torch.no_grad():
        correct = output.topk(max(topk), dim=1)[1].t() == target[None]
        return [correct[:k].flatten().sum(dtype=torch.float32) / len(target) for k in topk]
"""
STEP = """optimizer.zero_grad()
        out = model(x)
        loss = criterion(out, y)
        loss.backward()
        optimizer.step()"""
EVALUATION = """model.eval()
    hits = 0
    with torch.no_grad():
        for x, y in valid:
            hits += (model(x).argmax(1) == y).sum().item()
    model.train()"""
EPOCHS = f"""
for epoch in range(2):
    BEFORE
    for i, (x, y) in enumerate(train):
        {STEP}
        EACH
    AFTER
LAST
"""
# before the batches, in each step, after them, after the epochs
PIECES = {
    "divided where it stands": ("total = 0.0", "total += loss.item()", "total /= len(train); print(total)", ""),
    "divided, then an evaluation": (
        "total = 0.0",
        "total += loss.item()",
        f"total /= len(train)\n    {EVALUATION}\n    print(total, hits / 20)",
        "",
    ),
    "under the name of the loss, before an evaluation": (
        "total = 0.0",
        "total += loss.item()",
        f"loss = total / len(train)\n    {EVALUATION}\n    print(loss, hits / 20)",
        "print(loss)",
    ),
    "read after an evaluation": (
        "total = 0.0",
        "total += loss.item()",
        f"{EVALUATION}\n    print(total / len(train), hits)",
        "print(total)",
    ),
    "all begin at the top": (
        "total, n, hits = 0.0, 0, 0",
        "total += loss.item() * len(x); n += len(x)",
        f"{EVALUATION.replace('    hits = 0' + chr(10), '')}\n    print(total / n, hits)",
        "",
    ),
    "goes on over epochs": ("pass", "seen += len(x); run += loss.item()", "print(seen, run)", "print(seen, run)"),
    "begins again after it was shown": ("pass", "run += loss.item()", "print(run); run = 0.0", ""),
    "begins again in the step": (
        "pass",
        "run += loss.item()\n        if i % 2 == 1:\n            print(run); run = 0.0",
        "print(run)",
        "print(run)",
    ),
    "the last loss": ("pass", "pass", "print(loss.item()); print(f'{epoch} {loss:.4f}')", "print(float(loss))"),
    "the last loss after an evaluation": ("pass", "pass", f"{EVALUATION}\n    print(hits, loss.item())", ""),
    "the last number": ("pass", "shown = loss.item() / 2", "print(shown)", "print(shown)"),
    "the last batch's hits": ("pass", "hits = (out.argmax(1) == y).sum().item()", "print(hits)", ""),
    "the last of two terms": ("pass", "both = loss + out.pow(2).sum() / len(x)", "print(both.item())", ""),
    "left early": (
        "total = 0.0",
        "total += loss.item()\n        if i == 2:\n            break",
        f"{EVALUATION}\n    print(total, loss.item(), hits)",
        "",
    ),
    "a tensor": ("total = torch.zeros(1)", "total += loss.detach()", "total /= len(train); print(total.item())", ""),
    "sizes beside a loss": (
        "meter = []",
        "print(i * len(x), loss.item() / x.size(0)); meter.append((loss.item(), x.shape[0]))",
        "print(sum(v * n for v, n in meter) / sum(n for _, n in meter))",
        "",
    ),
    "a name of the step that is given another value": (
        "total = 0.0",
        "total += loss.item()",
        "loss = total / len(train); print(loss)",
        "print(loss)",
    ),
    "a name that the evaluation gives another value": (
        "pass",
        "pass",
        f"{EVALUATION.replace('hits +=', 'loss = 0; hits +=')}\n    print(hits, loss)",
        "",
    ),
    "what a step measures": (
        "pass",
        "acc = (out.argmax(1) == y).float().mean().item()\n        hits = (out.argmax(1) == y).sum()\n        "
        "print(acc, hits.item() / len(y), 100.0 * hits / y.size(0), out.softmax(1).mean().item())",
        "pass",
        "",
    ),
    "what a function measures of the best k": (
        "meter = []",
        "a, b = top(out, y, topk=(1, 2)); c, d = top_of(out.data, y, (1, 2))\n        "
        "meter.append((a[0], b.item(), c.item(), len(y))); print(d.item(), top(out, y)[0].item())",
        "n = sum(m[3] for m in meter); print(*[float(sum(m[i] * m[3] for m in meter) / n) for i in range(3)])",
        "",
    ),
    "what a function measures": (
        "pass",
        "print(accuracy(out, y), 'of %d: %.3f' % (len(y), accuracy(out, y)))",
        "pass",
        "",
    ),
    "a line made before it is printed": (
        "pass",
        "line = f'{loss.item():.4f} {out.mean().item():.4f}'; other = '{:.4f}'.format(accuracy(out, y))\n        "
        "print(line); print(other)",
        "pass",
        "",
    ),
    "what a meter is given beside sizes": (
        "meter = []",
        "acc = hits(out, y) / x.size(0); meter.append((acc, x.size(0)))",
        "print(sum(a * n for a, n in meter) / sum(n for _, n in meter))",
        "",
    ),
    "the last mean": ("pass", "worst = (out - 1).abs().mean()", "print(worst.item())", ""),
    "a name of the step that is given another value below its line": (
        "pass",
        "n = len(x)\n        v = loss.item(); print(v, v * n / n, 2 * v)\n        "
        "if i == 3:\n            v = 7; print(v)",
        "pass",
        "",
    ),
    "a best value": ("total = 0.0", "total += loss.item()", "best = min(best, total)", "print(best, total)"),
}
SCRIPTS = {
    name: HEAD
    + "run, seen, best = 0.0, 0, 1e9"
    + EPOCHS.replace("BEFORE", a).replace("EACH", b).replace("AFTER", c).replace("LAST", d)
    for name, (a, b, c, d) in PIECES.items()
}
ONE_LOOP = f"""
def train_epoch():
    total = 0.0
    for x, y in train:
        {STEP}
        total += loss.item()
    total = total / len(train)
    return total

"""
NUMBERS = """total = 0
    with torch.no_grad():
        for i, (x, y) in enumerate(valid, 1):
            total += criterion(model(x), y).item()
    print(i, total / i)"""
for batches, size in (("four", 5), ("one", 20)):  # of which rank 0 has not the last; or rank 1 has none
    SCRIPTS[f"an evaluation of {batches}, and how many they were"] = HEAD.replace(
        "ys[:20]), batch_size=8", f"ys[:20]), batch_size={size}"
    ) + EPOCHS.replace("BEFORE", "pass").replace("EACH", "pass").replace("AFTER", NUMBERS).replace("LAST", "print(i)")
SCRIPTS["a loop that is called once"] = HEAD + ONE_LOOP + "print(train_epoch())"
SCRIPTS["a loop of a class that inherits"] = (
    HEAD
    + """
class Base:
    def fit(self, epochs):
        for epoch in range(epochs):
            print(epoch, self.epoch())

class Trainer(Base):
    def __init__(self):
        self.model, self.optimizer = model, optimizer

    def epoch(self):
        total = 0.0
        for x, y in train:
            loss = criterion(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(train)

Trainer().fit(2)
"""
)
SCRIPTS["a loss that is a sum"] = (
    HEAD.replace("Loss()", 'Loss(reduction="sum")')
    + EPOCHS.replace("BEFORE", "pass").replace("EACH", "print(loss.item() / len(x))").replace("AFTER", "pass")
).replace("LAST", "")
SCRIPTS["one name for both passes"] = (
    HEAD
    + """
loaders = {"train": train, "val": valid}
for epoch in range(2):
    for phase in ["train", "val"]:
        if phase == "train":
            model.train()
        else:
            model.eval()
        total, hits = 0.0, 0
        for x, y in loaders[phase]:
            optimizer.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                out = model(x)
                loss = criterion(out, y)
                if phase == "train":
                    loss.backward()
                    optimizer.step()
            total += loss.item() * x.size(0)
            hits += torch.sum(out.argmax(1) == y)
        print(total / len(loaders[phase].dataset), hits.double().item())
"""
)
SCRIPTS["a last batch of one sample"] = SCRIPTS["all begin at the top"].replace("39", "33")
SCRIPTS["one term of the loss"] = HEAD + EPOCHS.replace("BEFORE", "pass").replace("EACH", "pass").replace(
    "loss = criterion(out, y)", "first = criterion(out, y)\n        loss = first + out.pow(2).sum() / len(x)"
).replace("AFTER", "print(first.item(), loss.item())").replace("LAST", "")  # fmt: skip
SCRIPTS["a stream of unknown length"] = SCRIPTS["divided, then an evaluation"].replace(
    "valid =",
    """class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        yield from zip(xs, ys)

train = DataLoader(Stream(), batch_size=8)
valid =""",
).replace("len(train)", "5")  # fmt: skip


@pytest.mark.parametrize("name", SCRIPTS)
def test_one_process_prints_what_the_script_printed(name):
    assert "divide_batches" not in check_same(SCRIPTS[name], "module")


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What each script prints, and what its result prints on two processes: all in one launch."""
    folder = tmp_path_factory.mktemp("two")
    names = list(SCRIPTS)
    texts = [SCRIPTS[name] for name in names]
    return [dict(zip(names, by(folder, texts), strict=True)) for by in (by_originals, by_results)]


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_two_processes_print_what_one_printed(printed, name):
    before, after = ([float(n) for n in re.findall(r"[-\d.]+(?:e-?\d+)?", each[name])] for each in printed)
    assert before and after == pytest.approx(before, rel=1e-5)


@pytest.mark.parametrize(
    ("begins", "between"),
    [("run = 5.0", "print(run)"), ("run = 0.0", "run = run / 2; print(run)"), ("run = 0.0", "run = 0.0; print(run)")],
)
def test_a_sum_that_does_not_begin_at_zero_is_one_of_whole_batches(begins, between):
    text = HEAD + begins + EPOCHS.replace("BEFORE", "pass").replace("EACH", "run += loss.item()")
    result = check_same(text.replace("AFTER", between).replace("LAST", ""), "module")
    assert "divide_batches = False" in result and "all_reduce" not in result


def test_what_one_process_alone_prints_in_a_step_is_not_brought_together():
    text = HEAD + "import os\ndef is_main():\n    return os.environ.get('RANK', '0') == '0'\n" + EPOCHS
    text = text.replace("BEFORE", "pass").replace("AFTER", "pass").replace("LAST", "")
    result = check_same(text.replace("EACH", "if i % 2 == 0 and is_main():\n            print(loss.item())"), "module")
    assert "all_reduce" not in result


@pytest.mark.parametrize(
    ("shown", "brought"),
    [
        ("print(out.max().item())", "self.print(out.max().item())"),
        ("print(out.max().item() / len(x))", "self.print(out.max().item() / len(x))"),
        ("print(1 + (out.max().item() - len(x)) * 2)", "self.print(1 + (out.max().item() - len(x)) * 2)"),
        (
            "print('%d %f' % (len(y), out.max() / len(x)))",
            "self.print('%d %f' % (self.batch_sum(len(y)), out.max() / len(x)))",
        ),
        ("v = loss.item()\n        if i:\n            v = 1\n        print(v / len(x))", "self.print(v / len(x))"),
        ("print(out.pow(2).mean().sqrt().item())", "self.print(self.batch_mean(out.pow(2).mean()).sqrt().item())"),
        ("print(out[y == 1].mean().item())", "self.print(out[y == 1].mean().item())"),
        ("few = out[:3]; print(few.mean().item())", "self.print(few.mean().item())"),
        (
            "print((out - out.mean()).abs().mean().item())",
            "self.print((out - self.batch_mean(out.mean())).abs().mean()",
        ),
        ("print(out.sum(1))", "self.print(out.sum(1))"),
        ("print(out[:2].sum().item())", "self.print(out[:2].sum().item())"),
        ("few = out[-1]; print(few.sum().item())", "self.print(few.sum().item())"),
        ("print((out + out[None, ::2].sum()).sum())", "self.print((out + out[None, ::2].sum()).sum())"),
        ("print(f'{loss.item()=}')", "self.print(f'{loss.item()=}')"),
        ("print([v.item() for v in out[0]])", "self.print([v.item() for v in out[0]])"),
        ("print(loss.item() if y[0] == 1 else 0.0)", "self.print(loss.item() if y[0] == 1 else 0.0)"),
        ("print(int(loss.item()))", "self.print(int(self.batch_mean(loss.item())))"),
    ],
)
def test_only_means_and_sums_are_brought_together_where_a_step_shows_values(shown, brought):
    text = HEAD + EPOCHS.replace("BEFORE", "pass").replace("EACH", shown).replace("AFTER", "pass").replace("LAST", "")
    assert brought in check_same(text, "module")
    told = any("shows what the process sees" in n.message for n in migrate_text(text).attention)
    assert told is not shown.startswith(("print(int", "print(out.pow"))


def test_what_an_epoch_counts_and_sizes_are_not_told_as_shares():
    shown = "run += loss.item(); seen += len(x); share = run / seen; print(i, x.dtype, share, len(train), seen)"
    text = HEAD + "run, seen = 0.0, 0" + EPOCHS.replace("BEFORE", "pass").replace("EACH", shown)
    result = migrate_text(text.replace("AFTER", "pass").replace("LAST", ""))
    assert not any("what the process sees" in n.message for n in result.attention), result.attention


def test_what_is_neither_mean_nor_sum_is_told():
    text = HEAD + EPOCHS.replace("BEFORE", "pass").replace("EACH", "worst = out.max()").replace("LAST", "")
    result = migrate_text(text.replace("AFTER", "print(worst)"))
    assert "divide_batches" not in result.text
    assert any("`worst` holds the process's part of the last batch" in n.message for n in result.attention)


EVALUATED = f"""
    {EVALUATION}
    print(hits, worst)
"""


@pytest.mark.parametrize(
    ("after", "told"),
    [
        ("worst = epoch / 2", False),
        ("worst = epoch / 2; print(worst)", False),
        ("worst = worst + epoch", True),
        ("if epoch: worst = epoch", True),
        ("print(worst); worst = epoch", True),
        ("pass", True),
    ],
)
def test_a_name_that_is_given_another_value_after_the_batches_holds_no_part_of_them(after, told):
    text = HEAD + EPOCHS.replace("BEFORE", "pass").replace("EACH", "worst = out.max()").replace("LAST", "")
    text = text.replace("AFTER", after) + EVALUATED
    result = migrate_text(text)
    assert result.plan == "module" and "divide_batches" not in result.text
    assert any("`worst` holds the process's part" in n.message for n in result.attention) is told


@pytest.mark.parametrize(("more", "told"), [("", False), (" / len(train)", False), (" + out.max().item()", True)])
def test_what_comes_of_the_sums_of_all_alone_is_not(more, told):
    each = f"run += loss.item(); seen += len(x); share = run / seen{more}; print(i, share)"
    text = HEAD + "run, seen = 0.0, 0" + EPOCHS.replace("BEFORE", "pass").replace("EACH", each).replace("LAST", "")
    result = migrate_text(text.replace("AFTER", "print(share)"))
    assert "self.share_ = self.all_reduce(" in result.text or "self.share = self.all_reduce(" in result.text
    assert any("holds the process's part" in n.message for n in result.attention) is told


@pytest.mark.parametrize(("more", "told"), [("{i} {share:.4f}", False), ("{share} {out.max()}", True)])
def test_a_text_with_such_a_number_is_every_process_s(more, told):
    each = f"run += loss.item(); seen += len(x); share = run / seen; text = f'{more}'"
    text = HEAD + "run, seen = 0.0, 0" + EPOCHS.replace("BEFORE", "pass").replace("EACH", each).replace("LAST", "")
    result = migrate_text(text.replace("AFTER", "print(text)"))
    assert "divide_batches" not in result.text
    assert any("holds the process's part" in n.message for n in result.attention) is told


def test_a_sum_of_some_columns_is_one_over_all_samples():
    text = HEAD + EPOCHS.replace("BEFORE", "total = 0").replace("AFTER", "print(total)").replace("LAST", "")
    text = text.replace("EACH", "print(out[:, :2].sum().item()); total += out[..., 0].sum().item()")
    result = check_same(text, "module")
    assert "self.batch_sum(out[:, :2].sum().item())" in result and "divide_batches" not in result
    assert "divide_batches = False" in check_same(text.replace("out[..., 0]", "out[0]"), "module")


@pytest.mark.parametrize(
    "returned",
    [
        "[correct[:k].sum() for k in target]",
        "(pred.max(), correct.sum() / len(target))",
        "[correct[:, :k].sum() for k in topk]",
    ],
)
def test_a_function_that_returns_other_values_is_not_brought_together(returned):
    function = f"""
def measured(output, target, topk=(1, 2)):
    pred = output.topk(2, 1)[1].t()
    correct = pred == target[None]
    return {returned}
"""
    text = HEAD + function + EPOCHS.replace("BEFORE", "pass").replace("AFTER", "pass").replace("LAST", "")
    result = check_same(text.replace("EACH", "a, b, *_ = measured(out, y); print(a.item())"), "module")
    assert "batch_mean" not in result and "batch_sum" not in result


def test_a_loss_under_another_name_that_one_line_makes_and_shows():
    text = HEAD + EPOCHS.replace("BEFORE", "tl = []").replace("AFTER", "print(sum(tl))").replace("LAST", "")
    text = text.replace(STEP, "optimizer.zero_grad(); l = criterion(model(x), y); l.backward(); optimizer.step()")
    assert "tl.append(self.batch_mean(l.item()))" in check_same(text.replace("EACH", "tl.append(l.item())"), "module")
