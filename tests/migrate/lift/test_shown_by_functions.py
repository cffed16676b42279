"""What a training step hands to functions that print: the whole batch's value, as where the script prints itself."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests import forked
from tests.migrate.running import check_same

SCRIPT = """
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
xs = torch.randn(39, 6)
ys = (xs.sum(1) > 0).long()
loader = DataLoader(TensorDataset(xs, ys), batch_size=8)
model = torch.nn.Linear(6, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = torch.nn.CrossEntropyLoss()
seen = []

def say(e, value):
    print(f'{e} {value:.4f}')

def tell(e, value=None, *, count=0):
    text = f'{e} {float(value):.4f} {count}'
    print(text)

def every(*values, **named):
    print(*values, named)

def keep(value):
    seen.append(value)

def keep_all(values):
    seen.append(values.shape)

def show_shape(values):
    print(values.max().item() > -99)

for e in range(2):
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        out = model(x)
        loss = criterion(out, y)
        loss.backward()
        optimizer.step()
        r = loss.detach()
        hits = (out.argmax(1) == y).float()
        CALL
"""
BROUGHT = {
    "say(e, r.item())": "say(e, self.batch_mean(r.item()))",
    "say(e, r)": "say(e, self.batch_mean(r))",
    "say(e, value=loss)": "say(e, value=self.batch_mean(loss))",
    "say(e, hits.mean().item())": "say(e, self.batch_mean(hits.mean().item()))",
    "tell(e, r, count=len(x))": "tell(e, self.batch_mean(r), count=self.batch_sum(len(x)))",
    "tell(e, hits.sum(), count=0)": "tell(e, self.batch_sum(hits.sum()), count=0)",
    "every(e, r, x=r)": "every(e, self.batch_mean(r), x=self.batch_mean(r))",
    "every(e, loss.item() * 2)": "every(e, self.batch_mean(loss.item() * 2))",
    "keep(r.item())": "keep(self.batch_mean(r.item()))",
}
KEPT = [
    "keep(loss)",  # something may be differentiated through it later on
    "keep(len(x))",  # a count of what this process has seen
    "keep_all(out)",
    "say(e, i)",
    "say(e, 3.0)",
    "say(e, float(x.dim()))",
    "if x.sum() > 0:\n            say(e, r.item())",  # not every process comes by
]


@pytest.mark.parametrize("call", BROUGHT)
def test_a_value_is_brought_together_where_it_is_handed_over(call):
    assert BROUGHT[call] in check_same(SCRIPT.replace("CALL", call), "module")


@pytest.mark.parametrize("call", KEPT)
def test_what_is_no_number_of_the_batch_or_not_of_all_processes_stays(call):
    text = migrate_text(SCRIPT.replace("CALL", call)).text
    assert "batch_mean" not in text and "batch_sum" not in text


def test_what_cannot_be_brought_together_is_told():
    told = [n.message for n in migrate_text(SCRIPT.replace("CALL", "show_shape(out)")).attention]
    assert any("`show_shape(out)`" in t and "its share of the batch" in t for t in told)
    kept = [n.message for n in migrate_text(SCRIPT.replace("CALL", "keep_all(out)")).attention]
    assert len(kept) == 1 and kept[0].startswith("`seen` holds what the process sees")


@pytest.mark.parametrize("call", ["say(e, r.item())", "tell(e, hits.sum(), count=len(x))"])
def test_two_processes_print_what_one_printed(tmp_path, call):
    (tmp_path / "old.py").write_text(SCRIPT.replace("CALL", call))
    (tmp_path / "new.py").write_text(migrate_text(SCRIPT.replace("CALL", call)).text)
    two = ("--accelerator", "cpu", "--devices", "2", "--global-batch")
    runs = forked.run("old.py", cwd=tmp_path), forked.ptrun(*two, "new.py", cwd=tmp_path)
    assert [run.returncode for run in runs] == [0, 0], runs
    before, after = (run.stdout for run in runs)
    assert before.splitlines() == after.splitlines()[-len(before.splitlines()) :]
