"""Training, evaluation, the best weights and early stopping in one scope: lifted, run before and after."""

import re

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_same

WHOLE = (
    HEAD
    + """
import copy
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.5, steps_per_epoch=len(train_loader), epochs=9)
history = {'train': [], 'val': []}
best, weights, wait, patience = float('inf'), None, 0, 1
for epoch in range(9):
    model.train()
    losses = []
    for x, y in train_loader:
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    model.eval()
    val, right, total = [], 0, 0
    with torch.inference_mode():
        for x, y in test_loader:
            out = model(x)
            val.append(criterion(out, y).item())
            right += (out.argmax(1) == y).sum().item()
            total += y.numel()
    val_loss = sum(val) / len(val)
    history['train'].append(sum(losses) / len(losses))
    history['val'].append(val_loss)
    print(f'{epoch} {val_loss:.6f} {right / total:.4f}')
    if val_loss < best:
        best, weights, wait = val_loss, copy.deepcopy(model.state_dict()), 0
    else:
        wait += 1
        if wait > patience:
            print('early stop')
            break
model.load_state_dict(weights)
print(history, best)
"""
)
WITHOUT_LISTS = WHOLE.replace("val.append(criterion(out, y).item())", "val.append(0)").replace(
    "val_loss = sum(val) / len(val)", "val_loss = -right"
)


@pytest.mark.parametrize("text", [WHOLE, WITHOUT_LISTS], ids=["lists", "counts"])
def test_it_is_lifted_whole_and_runs_the_same(text):
    result = check_same(text, "module")
    assert "def validation_step(" in result and "self.trainer.should_stop = True" in result
    assert "automatic_optimization" not in result


def test_an_optimizer_that_one_of_several_branches_makes():
    made = "optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)\n"
    chosen = f"if args.lr > 0:\n    {made}elif args.epochs:\n    optimizer = torch.optim.Adam(model.parameters())\n"
    text = WITHOUT_LISTS.replace(made, chosen)
    assert text != WITHOUT_LISTS
    assert "return [self.optimizer]" in check_same(text, "module")


MADE_ANEW = (
    HEAD
    + """
for epoch in range(3):
    loader = DataLoader(TensorDataset(xs + epoch, ys), batch_size=5 + epoch, shuffle=True)
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f'{epoch} {len(loader)} {loss.item():.6f}')
"""
)


def test_a_loader_that_every_epoch_makes():
    result = check_same(MADE_ANEW, "module")
    assert "def train_dataloader(self):" in result and "reload_dataloaders_every_n_epochs=1" in result


IN_THE_LOOP = """\
import torch
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
x = torch.randn(32, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, shuffle=True)
epoch = 'not the number'
def main(epochs=None):
    net = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    best = None
    for epoch in range(2, epochs or 4):
        def step():
            # a pass
            for i, (a, b) in enumerate(loader):
                optimizer.zero_grad()
                loss = (net(a) - b).pow(2).mean()
                loss.backward()
                optimizer.step()
                if i % 2 == 0:
                    print(f'[{epoch + 1}, {i:5}] {loss:.3f}')

        def test():
            s = 0
            for a, b in loader:
                s += (net(a) - b).pow(2).sum().item()
            return s / len(loader.dataset)
        step()
        val = test()
        print(epoch, val)
        if best is None or best < val:
            best = val
    print(best)
main()
"""


def test_passes_that_are_defined_in_the_epoch_loop():
    text = check_same(IN_THE_LOOP, "module")
    assert "def step" not in text and "def test" not in text
    assert not re.search(r"\bepoch_\b", text)
    assert "(epochs or 4) - 2" in text


def test_one_that_is_called_elsewhere_too_stays_in_the_loop():
    text = IN_THE_LOOP.replace("        val = test()\n", "        print(test())\n        val = test()\n")
    assert "def test" in migrate_text(text).text
