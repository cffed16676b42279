"""What a step fills with its samples, and computes the loss of a later one of, is filled by whole batches."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_same

SCRIPT = (
    HEAD
    + """
class Bank:
    def __init__(self):
        self.kept = torch.zeros(3)

    def put(self, out):
        self.kept = 0.9 * self.kept + 0.1 * out.detach().max(0)[0]

    def near(self, out):
        return (out - self.kept).pow(2).mean()


def rate():
    return 1 + 0.01 * len(told)


def average(values):
    told_ = [v for v in values]
    return sum(told_) / len(told_)


center, memory, bank = torch.zeros(3), torch.zeros(8, 3), Bank()
told, told_, worst = [], [], {"l": 1.0}
for epoch in range(2):
    for i, (x, y) in enumerate(train_loader):
        out = model(x)
        each = F.cross_entropy(out, y, reduction="none")
        loss = LOSS
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        FILL
    print(epoch, loss.item())
print(told, told_, worst, memory.sum())
"""
)


def script(loss, fill):
    return SCRIPT.replace("LOSS", loss).replace("FILL", fill)


FED = [
    ("criterion(out - center, y)", "center.mul_(0.9).add_(out.detach().max(0)[0], alpha=0.1)"),
    ("each.mean() + (out - memory[: len(out)]).pow(2).mean()", "memory[: len(out)] = out.detach()"),
    ("each.mean() * worst['l']", "worst['l'] = each.max().item()"),
    ("each.mean() * rate()", "told.extend(y.tolist())"),
    ("(each * (w := 1 + 0.1 * memory[0][y])).mean()", "memory.index_add_(0, y, out.detach())"),
]
NOT_FED = [
    ("each.mean()", "memory[: len(out)] = out.detach()"),
    ("each.mean()", "worst['l'] = each.max().item()"),
    ("each.mean()", "told.extend(y.tolist())"),
    ("each.mean() * average([1.0, 1.0])", "told_.extend(y.tolist())"),
    ("each.mean() + bank.near(out)", "worst['l'] = each.max().item()"),
]


@pytest.mark.parametrize(("loss", "fill"), FED)
def test_every_process_computes_whole_batches(loss, fill):
    text = script(loss, fill)
    assert "divide_batches = False" in check_same(text, "module")
    says = ("the loss is computed of it", "mixes the samples of a batch")
    assert any(n.message.endswith(says) for n in migrate_text(text).attention)


@pytest.mark.parametrize(("loss", "fill"), NOT_FED)
def test_what_no_loss_is_computed_of_is_told_alone(loss, fill):
    text = script(loss, fill)
    assert "divide_batches" not in check_same(text, "module")
    assert any("holds what the process sees" in n.message for n in migrate_text(text).attention)
