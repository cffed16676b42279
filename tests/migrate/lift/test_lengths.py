"""`total / len(loader)`: processes with batches of their own divide by the steps that they take."""

import re

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests import forked
from tests.migrate.running import check_same

SCRIPT = """
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
xs = torch.randn(52, 6)
ys = (xs.sum(1) > 0).long()
loader = DataLoader(TensorDataset(xs, ys), batch_size=8)
valid = DataLoader(TensorDataset(xs[:20], ys[:20]), batch_size=8)
model = torch.nn.Linear(6, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.0)  # every batch has the loss that it begins with
criterion = torch.nn.CrossEntropyLoss()

def train(loader):
    number = len(loader)
    total, parts, losses, hits, count = 0.0, 0.0, [], 0, 0
    sums = {"loss": 0.0}
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        out = model(x)
        loss = criterion(out, y)
        loss.backward()
        optimizer.step()
        total += loss.item()
        losses.append(loss.item())
        sums["loss"] += loss.item()
        hits += (out.argmax(1) == y).sum().item()
        count += 1
        STEP
    AFTER
    return total

for epoch in range(1):
    total = train(loader)
    EPOCH
"""
NUMBER = "self.trainer.num_training_batches"
MEANS = {
    "AFTER": [
        "print(total / len(loader))",
        "print(total / number)",
        "print(total / max(len(loader), 1))",
        "print(sum(losses) / len(loader))",
        "print([v / len(loader) for v in sums.values()])",
        "total /= len(loader)",
    ],
    "STEP": [
        "print(i / len(loader))",
        "print('last') if i == len(loader) - 1 else None",
        "print(f'{i + 1}/{len(loader)}')",
        "parts += loss.item() / len(loader)",
    ],
    "EPOCH": ["print(total / len(loader))"],
}
OTHERS = {
    "AFTER": [
        "print(hits / (len(loader) * 8))",
        "print(hits / len(loader.dataset))",
        "print(total / count)",
        "print(len(loader))",
        "print(total / len(valid))",
        "print(total / len(losses))",
    ],
    "STEP": [
        "print(epoch * len(loader) + i)",
        "print(total / (i + 1))",
        "print(i / len(valid))",
        "print(i % (len(loader) // 5))",
        "print(i % max(1, int(len(loader) / 5)))",
    ],
    "EPOCH": ["print(total / len(valid))"],
}


def script(place, line):
    text = SCRIPT.replace(place, line)
    return re.sub("STEP|AFTER|EPOCH", "pass", text)


def cases(lines):
    return [pytest.param(place, line, id=line) for place, all_lines in lines.items() for line in all_lines]


@pytest.mark.parametrize(("place", "line"), cases(MEANS))
def test_what_is_of_the_steps_asks_for_those_of_this_process(place, line):
    assert NUMBER in check_same(script(place, line), "module")


@pytest.mark.parametrize(("place", "line"), cases(OTHERS))
def test_what_is_of_all_samples_or_another_loader_stays(place, line):
    assert NUMBER not in migrate_text(script(place, line)).text


def test_a_len_of_the_scripts_own_stays():
    text = script("AFTER", "print(total / len(loader))").replace("def train", "def len(x):\n    return 3\n\ndef train")
    assert NUMBER not in migrate_text(text).text


def test_a_name_that_is_given_something_else_too_stays():
    text = script("AFTER", "print(total / number)").replace("    total, parts", "    number = 5\n    total, parts")
    assert NUMBER not in migrate_text(text).text


@pytest.mark.parametrize("flags", [[], ["--global-batch"]])
def test_two_processes_print_the_mean_of_their_steps(tmp_path, flags):
    """Nothing is learnt here: pairs of batches and a last one, or each batch, weigh in as one step each."""
    path = tmp_path / "train.py"
    path.write_text(migrate_text(script("AFTER", "print(f'{total / len(loader):.4f} {total / count:.4f}')")).text)
    done = forked.ptrun("--accelerator", "cpu", "--devices", "2", *flags, path)
    first, second = done.stdout.split()[-2:]
    assert first == second


@pytest.mark.parametrize(("more", "kept"), [("", False), ("; print(steps)", True)])
def test_a_name_of_the_number_alone_is_not_given_to_the_module(more, kept):
    text = script("EPOCH", f"print(total / steps){more}").replace("for epoch in", "steps = len(loader)\nfor epoch in")
    result = check_same(text, "module")
    assert f"total / {NUMBER}" in result and ("self.steps = steps" in result) is kept
