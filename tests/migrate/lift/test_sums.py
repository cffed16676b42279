"""Sums written out, `total = total + loss.item()`: exact on any number of processes, or over whole batches."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_same_run import HEAD, NESTED
from tests.migrate.running import check_same

TEXT = (
    HEAD
    + """
import math

steps = 0
for epoch in range(2):
    total = {start}
    for x, y in train_loader:
        out = model(x)
        loss = criterion(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {sums}
    print(epoch, total, steps)
"""
)


@pytest.mark.parametrize(
    ("sums", "becomes"),
    [
        ("total = total + loss.item()  # the mean", "self.total += loss.item() * self.share  # the mean"),
        ("loss = loss.float()\n        total += loss.item()", "self.total += loss.item() * self.share"),
        ("loss = loss.detach().cpu()\n        total += loss", "self.total += loss * self.share"),
        ("total += abs(out).max(1)[0].mean().item()", "self.total += abs(out).max(1)[0].mean().item() * self.share"),
        ("total += (out.max(1)[1] == y).sum().item()", "self.total += (out.max(1)[1] == y).sum().item()"),
        ("total += loss.sum().item()", "self.total += loss.sum().item() * self.share"),
        ("total += (loss + loss * 2).sum().item()", "self.total += (loss + loss * 2).sum().item() * self.share"),
        ("total += out.mean(0)[1].item()", "self.total += out.mean(0)[1].item() * self.share"),
        ("p = out.mean(dim=0)\n        total += p.sum().item()", "self.total += p.sum().item() * self.share"),
        ("total += out.exp().sum(1).mean().item()", "self.total += out.exp().sum(1).mean().item() * self.share"),
        ("total = total + loss.item() * x.size(0)", "self.total += loss.item() * x.size(0)"),
        ("total = loss.item() + total", "self.total += loss.item() * self.share"),
        ("total = total + loss.detach()", "self.total += loss.detach() * self.share"),
        ("total = total + loss", "self.total += loss * self.share"),
        ("total = (loss.detach() - 1) + total", "self.total += (loss.detach() - 1) * self.share"),
        ("total = total + (out.argmax(1) == y).sum()", "self.total += (out.argmax(1) == y).sum()"),
        ("total = total + loss.detach()\n        print(f'{total:.3f}')", "self.total += loss.detach() * self.share"),
        ("total = total + (out.argmax(1) == y).sum().item()", "self.total += (out.argmax(1) == y).sum().item()"),
    ],
)
def test_numbers_are_brought_together(sums, becomes):
    result = check_same(TEXT.format(start="0.0", sums=sums), "module")
    assert f"        {becomes}\n" in result and "total = self.all_reduce(self.total)\n" in result


@pytest.mark.parametrize(
    ("start", "sums"),
    [
        ("0", "kept = total = total + (out.argmax(1) == y).sum()"),
        ("[]", "total = total + [loss.item()]"),
        ("0.0", "total += math.exp(loss.item())"),
        ("0.0", "perplexity = loss.detach().exp()\n        total += perplexity.item() * 2"),
        ("0.0", "total += min(loss.item(), 1.0)"),
        ("0", "total += loss.item() > 1"),
        ("0.0", "total += loss.item() ** 2"),
    ],
    ids=[
        "of two names",
        "lists",
        "a power",
        "a power by a name",
        "the least",
        "a test",
        "a square",
    ],
)
def test_what_is_not_shown_to_be_numbers_is_added_up_over_whole_batches(start, sums):
    assert "divide_batches = False" in check_same(TEXT.format(start=start, sums=sums), "module")


def test_a_loss_of_another_dtype_is_the_loss_still():
    text = TEXT.format(start="[]", sums="loss = loss.float()\n        total.append(loss.item())")
    assert "self.total.append(self.batch_mean(loss.item()))" in check_same(text, "module")


def test_what_all_processes_count_alike_is_no_reason():
    assert "divide_batches" not in check_same(TEXT.format(start="0", sums="steps = steps + 1"), "module")


@pytest.mark.parametrize("sums", ["total += loss.item() * x.num_graphs", "total += x.num_graphs * float(loss)"])
def test_the_number_of_graphs_of_a_batch_is_its_size(sums):
    """torch_geometric.data.Batch: of a share it is the share's, and was weighed by the share once more."""
    result = migrate_text(TEXT.format(start="0.0", sums=sums))
    assert f"self.{sums}\n" in result.text and "self.share" not in result.text


COUNT = "def count(data):\n    return data.num_graphs if hasattr(data, 'num_graphs') else data.size(0)\n"


@pytest.mark.parametrize(
    "sums",
    [
        "total += x.num_nodes",
        "total += loss.item() * x.num_edges",
        "total += count(x)",
        "total += count(x) * loss.item()",
    ],
)
def test_counts_are_sums_over_the_samples(sums):
    result = migrate_text(COUNT + TEXT.format(start="0.0", sums=sums))
    assert f"self.{sums}\n" in result.text and "self.share" not in result.text
    assert not any("that is not shown" in n.message for n in result.attention)


@pytest.mark.parametrize("size", ["y.size()[0]", "int(y.size()[0])", "y.shape[0]", "len(x)"])
def test_sizes_of_the_batch(size):
    result = migrate_text(TEXT.format(start="0.0", sums=f"total += loss.item() * {size}"))
    assert f"self.total += loss.item() * {size}\n" in result.text and not result.attention


@pytest.mark.parametrize(
    "sums",
    [
        "total += out.max().item()",
        "total += torch.std(out).item()",
        "total += out.norm(2).item() / 2",
        "total += out.std(0).sum().item()",
        "p = out.softmax(1).mean(0)\n        total -= (p * p.log()).sum().item()",
        "total += (out.mean(0) - 1).abs().sum().item()",
        "total += (out.sum(0) ** 2).sum().item()",
        "total += loss.sum().log().item()",
    ],
)
def test_one_number_of_all_samples_is_added_up_over_whole_batches(sums):
    assert "divide_batches = False" in check_same(TEXT.format(start="0.0", sums=sums), "module")


@pytest.mark.parametrize(
    ("sums", "kind"),
    [
        ("total += loss.item() * data.foo", "mean"),
        ("total += x.foo", "mean"),
        ("total += scores(out, y)", "mean"),
        ("total += (out.argmax(1) == y).sum().item() / x.num_nodes", "sum"),
        ("total += sum(a == b for a, b in zip(out, y))", "sum"),
    ],
)
def test_what_is_neither_shown_to_be_a_mean_nor_a_sum_is_told(sums, kind):
    result = migrate_text(TEXT.format(start="0.0", sums=sums.replace("data", "x")))
    (said,) = (n.message for n in result.attention if "that is not shown" in n.message)
    assert f"as a {kind} over the samples" in said


@pytest.mark.parametrize("sums", ["total += loss.item()", "total += 1", "total += out.max(1)[0].mean().item()"])
def test_what_is_shown_is_not_told(sums):
    assert not migrate_text(TEXT.format(start="0.0", sums=sums)).attention


@pytest.mark.parametrize("sums", ["total += time.time() - t", "t2 = time.time()\n        total += t2 - t"])
def test_clocks_are_not_told(sums):
    text = "import time\n" + TEXT.format(start="0.0", sums="t = time.time()\n        print()\n        " + sums)
    assert not any("not shown" in n.message for n in migrate_text(text).attention)


def test_a_sum_of_a_network_stays_as_it_is():
    net = "class Net(nn.Module):\n    def forward(self, x):\n        found = 0\n        for i in range(2):\n"
    net += "            found = found + x * i\n        return found\n"
    result = migrate_text(TEXT.format(start="0.0", sums="total = total + loss").replace("import math\n", net))
    assert "            found = found + x * i\n" in result.text and "self.total += loss * self.share" in result.text


FAR = """
count, kept = 0, []
for name, p in model.named_parameters():
    count = count + 1
    kept += [name]
    print(count, name)
"""


def test_sums_and_lists_of_other_loops_stay_as_they_are():
    text = NESTED.replace("\nfor epoch in", f"{FAR}\nfor epoch in", 1)
    result = check_same(text, "module")
    assert "    count = count + 1\n    kept += [name]\n" in result
