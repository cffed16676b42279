"""Shapes of training scripts: what each becomes, run before and after, with the same losses, parameters and output."""

import pytest

from tests.migrate.running import check_same

HEAD = """
import argparse
import time
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument('--epochs', type=int, default=2)
parser.add_argument('--lr', type=float, default=0.1)
parser.add_argument('--no-cuda', action='store_true')
args = parser.parse_args()
torch.manual_seed(3)
device = torch.device('cuda' if torch.cuda.is_available() and not args.no_cuda else 'cpu')
xs, ys = torch.randn(37, 5), torch.randint(0, 3, (37,))
train_loader = DataLoader(TensorDataset(xs, ys), batch_size=8, shuffle=True)
test_loader = DataLoader(TensorDataset(xs[:11], ys[:11]), batch_size=4)
model = nn.Sequential(nn.Linear(5, 7), nn.Dropout(0.2), nn.ReLU(), nn.Linear(7, 3)).to(device)
criterion = nn.CrossEntropyLoss().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
"""

NESTED = (
    HEAD
    + """
for epoch in range(args.epochs):
    for i, (x, y) in enumerate(train_loader):
        x, y = x.to(device), y.to(device)
        out = model(x)
        loss = criterion(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (i + 1) % 2 == 0:
            print('Epoch [{}/{}], Step [{}/{}], Loss: {:.4f}'.format(
                epoch + 1, args.epochs, i + 1, len(train_loader), loss.item()))
print('done', epoch, loss.item())
"""
)

FUNCTIONS = (
    HEAD
    + """
scheduler = StepLR(optimizer, 1, gamma=0.5)
best = 0

def train(epoch):
    model.train()
    total = 0
    for batch in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(batch[0].to(device)), batch[1].to(device))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
    print(f'train {epoch} {total / len(train_loader):.6f}')
    return total

def test():
    model.eval()
    loss, right = 0., 0
    with torch.no_grad():
        for x, y in test_loader:
            out = model(x.to(device))
            loss += criterion(out, y.to(device)).item()
            right += (out.argmax(1).cpu() == y).sum().item()
    loss /= len(test_loader)
    print(f'test {loss:.6f} {right}')
    return right

for epoch in range(1, args.epochs + 1):
    total = train(epoch)
    right = test()
    scheduler.step()
    if right > best:
        best = right
        print('best', best, 'of epoch', epoch)
print('best of all', best)
"""
)

INLINE_EVALUATION = (
    HEAD
    + """
for epoch in range(3):
    start = time.time()
    model.train()
    running = 0.0
    for x, y in train_loader:
        x = x.to(device)
        y = y.to(device)
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        running += loss.item() * x.size(0)
    model.eval()
    seen = 0
    right = 0
    with torch.no_grad():
        for x, y in test_loader:
            out = model(x.to(device))
            seen += y.size(0)
            right += (out.argmax(1) == y).sum().item()
    print(epoch, running / len(train_loader.dataset), right / seen)
"""
)

MAIN = (
    HEAD.replace("parser = ", "def main():\n    parser = ")
    .replace("\nparser.", "\n    parser.")
    .replace("\nargs", "\n    args")
)
for _name in (
    "torch.manual_seed",
    "device",
    "xs, ys",
    "train_loader",
    "test_loader",
    "model",
    "criterion",
    "optimizer",
):
    MAIN = MAIN.replace(f"\n{_name}", f"\n    {_name}")
MAIN += """
    if args.epochs > 100:
        print('long')
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=4)
    step = 0
    for epoch in range(args.epochs):
        for batch_idx, (x, y) in enumerate(train_loader, 1):
            loss = F.cross_entropy(model(x.to(device)), y.to(device), reduction='sum') / x.size(0)
            model.zero_grad()
            loss.backward()
            optimizer.step()
            warm.step()
            step += 1
            if batch_idx == 3:
                break
        print('epoch', epoch, 'step', step)
    torch.manual_seed(0)
    print(step)


if __name__ == '__main__':
    main()
"""


@pytest.mark.parametrize(
    "text", [NESTED, FUNCTIONS, MAIN, INLINE_EVALUATION], ids=["nested", "functions", "main", "inline"]
)
def test_a_lifted_script_is_the_same_run(text):
    result = check_same(text, "module")
    assert "device" not in result and ".backward(" not in result and "zero_grad" not in result


def test_a_user_s_choice_of_the_cpu_is_handed_to_the_trainer():
    result = check_same(NESTED, "module", "--no-cuda")
    assert 'accelerator="cpu" if args.no_cuda else "auto"' in result


def test_counters_are_brought_together_over_ranks():
    result = check_same(FUNCTIONS, "module")
    assert "self.total += loss.item() * self.share" in result
    assert "total = self.all_reduce(self.total)" in result
    assert "right = self.all_reduce(self.right)" in result
    assert "gradient_clip_val=1.0" in result


def test_a_loss_that_is_a_sum_is_told_to_the_runtime():
    text = NESTED.replace("nn.CrossEntropyLoss()", "nn.CrossEntropyLoss(reduction='sum')")
    assert 'loss_reduction = "sum"' in check_same(text, "module")


MANUAL = {
    "an optimizer that is swapped": NESTED.replace(
        "print('done'",
        "    if epoch == 0:\n        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)\nprint('done'",
    ),
    "two backwards": NESTED.replace(
        "        loss.backward()\n", "        loss.backward(retain_graph=True)\n        (0.1 * loss).backward()\n"
    ),
    "accumulation": NESTED.replace("        optimizer.step()\n", "        if i % 2:\n            optimizer.step()\n"),
    "gradients read": NESTED.replace(
        "        if (i + 1)", "        norm = model[0].weight.grad.norm().item()\n        if (i + 1)"
    ),
    "schedule on a metric": FUNCTIONS.replace("scheduler.step()", "scheduler.step(epoch)"),
    "a closure": NESTED.replace("optim.SGD(", "optim.LBFGS(")
    .replace("lr=args.lr, momentum=0.9", "max_iter=3")
    .replace(
        "        out = model(x)\n        loss = criterion(out, y)\n"
        "        optimizer.zero_grad()\n        loss.backward()\n",
        "        def closure():\n            optimizer.zero_grad()\n            loss = criterion(model(x), y)\n"
        "            loss.backward()\n            return loss\n",
    )
    .replace("        optimizer.step()", "        loss = optimizer.step(closure)"),
    "a helper reads the model after the step": NESTED.replace(
        "for epoch in", "def probe():\n    return model[0].weight.sum().item()\n\nfor epoch in"
    ).replace("        if (i + 1)", "        print(probe())\n        if (i + 1)"),
    "the loss is changed after backward": NESTED.replace(
        "        if (i + 1)", "        loss = loss.detach()\n        loss += 1\n        if (i + 1)"
    ),
    "a batch is skipped": NESTED.replace("        out = ", "        if i == 1: continue\n        out = "),
    "left before the step": NESTED.replace("        out = ", "        if i == 3: break\n        out = "),
    "two optimizers": NESTED.replace(
        "for epoch in", "other = torch.optim.Adam(model[3].parameters(), lr=0.01)\nfor epoch in"
    ).replace("        optimizer.step()\n", "        optimizer.step()\n        if i % 2: other.step()\n"),
}

KEPT = {
    "the epochs are no numbers that count up": NESTED.replace("range(args.epochs)", "dict.fromkeys((3, 1))"),
    "a function sees what the loop changes": NESTED.replace(
        "for epoch in", "def name():\n    return loss.dtype\n\nfor epoch in"
    ).replace("        if (i + 1)", "        print(name())\n        if (i + 1)"),
}


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT.keys())
def test_a_loop_that_is_not_shown_to_be_the_same_is_kept_and_runs_the_same(text):
    result = check_same(text, "loop")
    assert "runtime = Runtime.shared()" in result and "runtime.backward(" in result


@pytest.mark.parametrize("text", MANUAL.values(), ids=MANUAL.keys())
def test_a_step_that_is_not_the_plain_one_keeps_its_order_in_a_manual_module(text):
    result = check_same(text, "manual")
    assert "self.automatic_optimization = False" in result and "self.manual_backward(" in result


def test_a_loss_written_again_is_returned_as_it_was():
    text = NESTED.replace("        if (i + 1)", "        loss = loss.detach() * 2\n        if (i + 1)")
    assert "return batch_loss" in check_same(text, "module")


def test_one_that_is_read_after_the_loop_is_returned_as_the_attribute_that_it_is():
    result = check_same(NESTED, "module")
    assert "return self.loss\n" in result and "batch_loss" not in result


def test_an_epoch_without_a_name_is_not_counted_for_a_name_that_a_step_gives():
    text = NESTED.replace("for epoch in", "for _ in").replace("epoch + 1", "0").replace("'done', epoch", "'done'")
    text = text.replace("        out = model(x)\n", "        out, _ = model(x), 0\n")
    assert "current_epoch" not in check_same(text, "module")


def test_the_epoch_that_a_resumed_run_starts_at_comes_with_the_module():
    text = FUNCTIONS.replace("best = 0", "best, start = 0, 2").replace(
        "range(1, args.epochs + 1)", "range(start, args.epochs + 3)"
    )
    assert "self.current_epoch + self.start" in check_same(text, "module")


@pytest.mark.parametrize("asked", ["epoch <= start", "epoch % 2 and epoch < start + 3"])
def test_an_epoch_that_is_skipped_draws_no_batch(asked):
    text = FUNCTIONS.replace("best = 0", "best, start = 0, 2").replace("args.epochs + 1", "args.epochs + 4")
    text = text.replace("+ 4):\n", f"+ 4):\n    scheduler.last_epoch += 0\n    if {asked}:\n        continue\n")
    result = check_same(text, "module")
    assert "            self.trainer.skip_epoch()\n            return\n" in result


def test_a_schedule_on_a_metric_is_stepped_by_the_trainer():
    text = FUNCTIONS.replace("StepLR(optimizer, 1, gamma=0.5)", "torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)")
    check_same(text.replace("scheduler.step()", "scheduler.step(right)"), "module")
