"""Training scripts put together from parts that people write: each trains and prints the same when it is migrated.

A long form of it: FUZZ=1.
"""

import os
import re
from textwrap import indent

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_same

SOME = settings(
    max_examples=1000 if os.environ.get("FUZZ") else 40,
    deadline=None,
    derandomize=not os.environ.get("FUZZ"),
    suppress_health_check=list(HealthCheck),
)
HEAD = """
import copy
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
xs, ys = torch.randn(23, 4), torch.randint(0, 3, (23,))

def best(output, target, topk=(1,)):
    with torch.no_grad():
        _, guess = output.topk(max(topk), 1, True, True)
        right = guess.t().eq(target.view(1, -1).expand_as(guess.t()))
        return [right[:k].reshape(-1).float().sum(0, keepdim=True).mul_(100.0 / target.size(0)) for k in topk]

"""
SETUP = """
train_loader = DataLoader(TensorDataset(xs[:16], ys[:16]), batch_size={size}, shuffle={shuffle})
val_loader = DataLoader(TensorDataset(xs[16:], ys[16:]), batch_size=4)
model = nn.Sequential(nn.Linear(4, 8), {between}, nn.Linear(8, 3))
{placed}
criterion = {criterion}
optimizer = {optimizer}
scheduler = {schedule}
scaler = torch.amp.GradScaler("cuda", enabled=False)
"""
PASS = """
{train}
total, seen, hits, losses = 0.0, 0, 0, []
for i, (x, y) in enumerate(train_loader):
    {moved}
    {first}
    {forward}
    {penalty}
    {before}
    {backward}
    {clip}
    {step}
    {after}
    {count}
{returned}
"""
EVALUATION = """
{eval}
wrong = 0
with torch.no_grad():
    for x, y in val_loader:
        {moved}
        wrong += (model(x).argmax(1) != y).sum().item()
{back}
"""
END = "\n{below}\nprint([p.double().sum().item() for p in model.parameters()])\nprint(model(xs[:2]{there}).tolist())\n"
ZERO = "optimizer.zero_grad()"
PLACES = {  # above the model's first use, for a batch, for a tensor
    "nowhere": ("pass", "pass", ""),
    "a device": ("model.to(device)", "x, y = x.to(device), y.to(device)", ".to(device)"),
    "a flag": ("if use_cuda: model.cuda()", "if use_cuda: x, y = x.cuda(), y.cuda()", ""),
}
CHOSEN = 'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")\nuse_cuda = torch.cuda.is_available()\n'
SLOTS = {
    "size": ["4", "6"],
    "shuffle": ["True", "False"],
    "between": ["nn.ReLU()", "nn.Dropout(0.3)", "nn.BatchNorm1d(8)"],
    "criterion": ["nn.CrossEntropyLoss()", "nn.CrossEntropyLoss(reduction='sum')", "F.cross_entropy"],
    "forward": [
        "out = model(x)\n    loss = criterion(out, y)",
        "with torch.autocast('cpu', enabled=False):\n        out = model(x)\n        loss = criterion(out, y)",
    ],
    "scaled": [False, True],
    "optimizer": [
        "torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)",
        "torch.optim.Adam(model.parameters())",
        "torch.optim.SGD([{'params': [p for p in model.parameters() if p.ndim == d], 'lr': d / 50} for d in (1, 2)])",
    ],
    "schedule": ["None", "torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)"],
    "train": ["pass", "model.train()"],
    "eval": ["pass", "model.eval()"],
    "back": ["pass", "model.train()"],
    "below": ["pass", "model.eval()"],
    "penalty": [
        "pass",
        "for p in model.parameters():\n        loss = loss + 1e-3 * p.pow(2).sum()",
        "loss = loss + 1e-3 * sum(p.pow(2).sum() for p in model.parameters())",
        "loss *= 2",
    ],
    "clip": ["pass", "nn.utils.clip_grad_norm_(model.parameters(), 1.0)"],
    "count": [
        "total += loss.item()",
        "total += loss.item() * len(x); seen += len(x)",
        "losses.append(loss.item())",
        "hits += (out.argmax(1) == y).sum().item()",
        "first, second = best(out, y, topk=(1, 2)); losses.append((first[0], second.item(), len(y)))",
        "print(i, out[:1].sum().item(), out[:, :1].sum().item())",
        "print(i, loss.item())",
        "losses.append(out.detach()); total = torch.cat(losses).mean().item()",
    ],
    "zero": ["first", "before", "after"],
    "evaluated": [True, False],
    "told": ["print(epoch, total, seen, hits, losses)", "print(epoch, loss.item())", "history.append(loss.item())"],
    "place": list(PLACES),
    "shape": ["trunk", "main", "functions", "class"],
}


def lines(text, depth):
    """The text without what says nothing, this deep; an empty block keeps its `pass`."""
    kept = [line for line in text.splitlines() if line.strip() not in ("", "pass")]
    return indent("\n".join(kept), "    " * depth)


def script(p):
    """A program of the parts `p`, by slot."""
    placed, moved, there = PLACES[p["place"]]
    zero = {at: ZERO if at == p["zero"] else "pass" for at in ("first", "before", "after")}
    made = {"backward": "loss.backward()", "step": "optimizer.step()"}
    if p["scaled"]:
        made = {"backward": "scaler.scale(loss).backward()", "step": "scaler.step(optimizer)\n    scaler.update()"}
    parts = {**p, **zero, **made, "placed": placed, "moved": moved, "there": there, "returned": "pass"}
    own = p["shape"] in ("functions", "class")
    if own:
        parts["returned"] = "return loss, total, seen, hits, losses"
    setup, training, end = (text.format(**parts) for text in (SETUP, PASS, END))
    evaluation = EVALUATION.format(**parts) if p["evaluated"] else "wrong = 0"
    scheduled = "pass" if p["schedule"] == "None" else "scheduler.step()"
    last = f"{p['told']}\nprint(wrong)\n{scheduled}"
    epochs = "history = []\nfor epoch in range(3):\n"
    called = "loss, total, seen, hits, losses = train_epoch()\nwrong = evaluate()\n"
    if p["shape"] == "trunk":
        body = setup + epochs + "\n".join(lines(t, 1) for t in (training, evaluation, last)) + "\nprint(history)" + end
        return HEAD + CHOSEN + lines(body, 0) + "\n"
    if p["shape"] == "main":
        body = setup + epochs + "\n".join(lines(t, 1) for t in (training, evaluation, last)) + "\nprint(history)" + end
        return HEAD + CHOSEN + "def main():\n" + lines(body, 1) + "\nmain()\n"
    functions = (
        f"def train_epoch():\n{lines(training, 1)}\n\ndef evaluate():\n{lines(evaluation, 1)}\n    return wrong\n\n"
    )
    if p["shape"] == "functions":
        rest = epochs + lines(called + last, 1) + "\nprint(history)" + end
        return HEAD + CHOSEN + lines(setup, 0) + "\n" + functions + lines(rest, 0) + "\n"
    names = "train_loader|val_loader|model|criterion|optimizer|scheduler|scaler"

    def owned(text):
        return re.sub(rf"\b(?<!\.)({names})\b(?!\.Mod)", r"self.\1", text)

    made = lines(owned(setup), 2)
    methods = indent(functions.replace("_epoch():", "_epoch(self):").replace("evaluate():", "evaluate(self):"), "    ")
    rest = epochs + lines(called.replace("= ", "= self."), 1) + "\n" + lines(last, 1) + "\nprint(history)" + end
    fit = f"    def fit(self):\n{lines(owned(rest), 2)}\n"
    return (
        HEAD + CHOSEN + f"class Learner:\n    def __init__(self):\n{made}\n\n{owned(methods)}{fit}\nLearner().fit()\n"
    )


@pytest.mark.slow
@given(st.fixed_dictionaries({slot: st.sampled_from(ways) for slot, ways in SLOTS.items()}))
@SOME
def test_the_same_run(parts):
    text = script(parts)
    compile(text, "script.py", "exec")
    check_same(text, migrate_text(text).plan)
