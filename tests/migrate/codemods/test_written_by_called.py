"""A file that a function of an epoch's hook writes and reads again is rank 0's, where every process comes to it."""

import pytest
from ptmigrate.migrate.codemods.base import apply
from ptmigrate.migrate.codemods.once import Once
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import on_one_and_two

HOOK = """import json
from ptmigrate.runtime import Module
def test(args, found):
    WRITE
    return json.load(open(args.out))
class Net(Module):
    def on_train_epoch_end(self):
        self.print(test(self.args, {}))
    def training_step(self, batch, i):
        return STEP
"""
WITH = "with open(args.out, 'w') as f:\n        json.dump(found, f)"
PLAIN = "batch.mean()"


def rewritten(write: str, step: str = PLAIN, more: str = "", decorator: str = "") -> bool:
    text = HOOK.replace("WRITE", write).replace("STEP", step).replace("def test", f"{decorator}def test")
    facts = Facts(text + more)
    return "rank_zero_file(open)(args.out" in apply(facts, list(Once().plan(facts)))


@pytest.mark.parametrize(
    "write",
    [
        WITH,
        f"print('writes')\n    {WITH}",
        "with found:\n        with open(args.out, 'w') as f:\n            json.dump(found, f)",
    ],
)
def test_all_wait_for_it(write):
    assert rewritten(write)


@pytest.mark.parametrize(
    ("write", "step", "more"),
    [
        (f"if not found:\n        return 0\n    {WITH}", PLAIN, ""),
        ("if found:\n        with open(args.out, 'w') as f:\n            json.dump(found, f)", PLAIN, ""),
        (WITH, "test(self.args, batch)", ""),
        (WITH, PLAIN, "hand_on(test)\n"),
    ],
)
def test_where_a_rank_may_not_come_each_writes(write, step, more):
    assert not rewritten(write, step, more)


@pytest.mark.parametrize(("decorator", "comes"), [("@now_and_then\n", False), ("@torch.no_grad()\n", True)])
def test_what_wraps_the_function_may_call_it_on_some_ranks_alone(decorator, comes):
    assert rewritten(WITH, decorator=f"import torch\n{decorator}") == comes


SCRIPT = """
import argparse, json
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

def test(model, args, loader):
    answers = {}
    with torch.no_grad():
        for i, (x, y) in enumerate(loader):
            answers[i] = model(x).argmax(1).tolist()
    with open(args.out, "w") as f:
        json.dump(answers, f)
    return len(json.load(open(args.out)))

parser = argparse.ArgumentParser()
parser.add_argument("--out", default="out.json")
args = parser.parse_args()
torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(32, 4), torch.randint(0, 3, (32,))), batch_size=8)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    print(epoch, "%.4f" % loss.item(), test(model, args, loader))
"""


def test_two_processes_read_what_one_wrote(tmp_path):
    result = migrate_text(SCRIPT)
    assert result.plan == "module" and "rank_zero_file(open)(args.out" in result.text
    one, two = on_one_and_two(tmp_path, SCRIPT, result.text)
    assert (one / "out.json").read_text() == (two / "out.json").read_text()
