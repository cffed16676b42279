"""Sums in elements, `ddp_loss[0] += loss.item()`: exact on any number of processes, or over whole batches and told."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_same

TEXT = (
    HEAD
    + """
def train(epoch):
    model.train()
    acc = {start}
    steps = 0
    for i, (x, y) in enumerate(train_loader):
        out = model(x)
        loss = criterion(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        {fills}
    print(epoch, acc{shown}, steps)

for epoch in range(2):
    train(epoch)
"""
)


def text_of(start, fills, shown=""):
    return TEXT.format(start=start, fills=fills, shown=shown)


@pytest.mark.parametrize(
    ("start", "fills", "becomes"),
    [
        ("torch.zeros(2).to(device)", "acc[0] += loss.item()", "self.acc[0] += loss.item() * self.share"),
        ("torch.zeros(2)", "acc[1] += len(x)", "self.acc[1] += len(x)"),
        ("[0.0, 0]", "acc[0] += loss.item() * x.size(0)", "self.acc[0] += loss.item() * x.size(0)"),
        ("{'loss': 0.0}", "acc['loss'] += loss.detach()", "self.acc['loss'] += loss.detach() * self.share"),
        ("[0.0] * 9", "acc[i] = acc[i] + loss.item()", "self.acc[i] = self.acc[i] + loss.item() * self.share"),
        (
            "torch.zeros(9, 2)",
            "acc[i, 0] += (out.argmax(1) == y).sum()",
            "self.acc[i, 0] += (out.argmax(1) == y).sum()",
        ),
        ("[0.0, 0]", "acc[0] += out.mean().item()", "self.acc[0] += out.mean().item() * self.share"),
        ("[0, 0]", "n = y.size(0); acc[0] += n", "self.acc[0] += n"),
        ("[0, 0]", "acc[0] += F.cross_entropy(out, y, reduction='sum').item()", "reduction='sum').item()\n"),
    ],
)
def test_sums_are_brought_together_as_a_whole(start, fills, becomes):
    text = text_of(start, fills)
    result = check_same(text, "module")
    assert "divide_batches" not in result and "acc = self.all_reduce(self.acc)\n" in result
    assert becomes in result
    assert not any("holds what the process sees" in n.message for n in migrate_text(text).attention)


@pytest.mark.parametrize(
    ("start", "fills"),
    [
        ("[0.0, 0]", "acc[0] += out.max().item()"),
        ("torch.zeros(3)", "acc[y] += 1"),
        ("torch.ones(2)", "acc[0] += loss.item()"),
        ("[0.0, 0]", "acc[0] += loss.item(); acc[1] += 1"),
        ("[0.0, 0]", "acc[0] += loss.item() / len(x)"),
        ("[0.0, 0]", "acc[0] += x.size(1) + len(x)"),
        ("[0.0, 0]", "loss = loss.item() * 2; acc[0] += loss"),
        ("[0.0, 0]", "acc[0] += loss.item() if len(x) > 4 else 0.0"),
        ("[0.0, 0]", "acc[0] += len(x); acc[1] = max(acc[0], 1)"),
        ("{'loss': 0.0, 'all': []}", "acc['loss'] += loss.item(); acc['all'].append(loss.item())"),
    ],
)
def test_what_is_not_shown_to_be_a_sum_is_added_up_over_whole_batches_and_told(start, fills):
    text = text_of(start, fills)
    assert "divide_batches = False" in check_same(text, "module")
    assert any("computes every training batch whole" in n.message for n in migrate_text(text).attention)


def test_a_condition_on_the_samples_is_no_sum():
    text = text_of("[0.0]", "if len(x) > 4:\n            acc[0] += loss.item()")
    assert "divide_batches = False" in check_same(text, "module")


def test_what_every_process_adds_alike_stays():
    result = check_same(text_of("[0, 0]", "acc[0] += 1; acc[1] += i"), "module")
    assert "divide_batches" not in result and "all_reduce" not in result


@pytest.mark.parametrize("when", ["i % 2 == 0", "steps % 2 == 0"])
def test_a_step_that_shows_its_sums_brings_them_together(when):
    fills = f"acc[0] += loss.item()\n        if {when}:\n            print(acc[0] / (i + 1))"
    result = check_same(text_of("[0.0]", fills), "module")
    assert "self.print(self.all_reduce(self.acc)[0] / (i + 1))" in result


COUNTED = "acc += loss.item()\n        if {when}:\n            {shown}"


@pytest.mark.parametrize(
    ("shown", "becomes"),
    [
        ("print(acc / (i + 1))", "self.print(self.all_reduce(self.acc) / (i + 1))"),
        ("mean = acc / (i + 1); print(mean)", "mean = self.all_reduce(self.acc) / (i + 1); self.print(mean)"),
        ("print(acc); acc = 0.0", "self.print(self.all_reduce(self.acc)); self.acc = 0.0"),
    ],
)
def test_a_step_that_shows_its_counter_brings_it_together(shown, becomes):
    assert becomes in check_same(text_of("0.0", COUNTED.format(when="i % 2 == 0", shown=shown)), "module")


def test_a_counter_shown_where_not_every_process_comes_by_is_one_of_whole_batches():
    text = text_of("0.0", COUNTED.format(when="loss.item() > 1.0", shown="print(acc)"))
    assert "divide_batches = False" in check_same(text, "module")
    assert any("`acc` is read in the step before all of it is there" in n.message for n in migrate_text(text).attention)


def test_a_sum_that_others_read_is_one_of_whole_batches():
    text = text_of("[0.0]", "acc[0] += loss.item(); seen(acc)").replace(
        "def train", "def seen(a):\n    pass\n\ndef train"
    )
    assert "divide_batches = False" in check_same(text, "module")
