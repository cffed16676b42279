"""What reads a part of the model below `backward()`, by another name, reads it when the script does. Run before and
after."""

import pytest

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_same

STEP = """
for epoch in range(2):
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        {below_backward}
        optimizer.step()
        {below_step}
    print(epoch, loss.item())
"""
PARAMS = "params = [p for p in model.parameters() if p.requires_grad]\n"
CLIP = "norm = torch.nn.utils.clip_grad_norm_(params, 0.01)"
CLIP_ALL = CLIP.replace("params", "params.values()")
FUNCTION = "def clip(given):\n    for p in given:\n        p.grad.clamp_(-1e-3, 1e-3)\n"
HOLDER = """
class Clip:
    def __init__(self, given):
        self.given = list(given)

    def all(self):
        return torch.nn.utils.clip_grad_norm_(self.given, 0.01)
"""
METER = """
class Meter:
    total = 0.0
    def update(self, value):
        self.total += value
"""
FIRST = "first = [m for m in model.modules() if isinstance(m, torch.nn.Linear)][0]\n"


def text(above, below_backward, below_step="pass"):
    return HEAD + above + STEP.format(below_backward=below_backward, below_step=below_step)


@pytest.mark.parametrize(
    ("above", "below_backward", "below_step"),
    [
        (PARAMS, CLIP, "pass"),
        (PARAMS + "norms = []\n", CLIP.replace("norm = ", "norms.append(") + ")", "print(norms[-1].item())"),
        (PARAMS + FUNCTION, "clip(params)", "pass"),
        (PARAMS + HOLDER + "all_of = Clip(params)\n", "norm = all_of.all()", "pass"),
        ("params = []\nfor p in model.parameters():\n    params.append(p)\n", CLIP, "pass"),
        ("params = []\nparams += list(model.parameters())\n", CLIP, "pass"),
        ("params = {}\nfor n, p in model.named_parameters():\n    params[n] = p\n", CLIP_ALL, "pass"),
        ("params = {}\nparams.update(model.named_parameters())\n", CLIP_ALL, "pass"),
        (PARAMS + "sums = {'all': lambda: sum(p.sum().item() for p in params)}\n", "pass", "print(sums['all']())"),
        ("def trained(of):\n    return [p for p in of.parameters()]\nparams = trained(model)\n", CLIP, "pass"),
        (PARAMS, "pass", "for p in params: p.data.clamp_(-0.01, 0.01)"),
        (FIRST + "weight = first.weight\n", "pass", "weight.data.mul_(0.9)"),
        (FIRST, "pass", "first.weight.data.mul_(0.9)"),
        (FIRST + "weight = first.weight.data\n", "pass", "weight *= 0.9"),
        (FIRST + "weight, bias = first.weight, first.bias\n", "pass", "print(bias.sum().item())"),
        ("named = dict(model.named_parameters())\n", "pass", "print(len([p for p in named.values() if p.sum() > 0]))"),
    ],
)  # fmt: skip
def test_it_is_done_by_hand(above, below_backward, below_step):
    assert "manual_backward" in check_same(text(above, below_backward, below_step), "manual")


@pytest.mark.parametrize(
    ("above", "below_step"),
    [
        ("count = sum(p.numel() for p in model.parameters())\n", "print(count)"),
        ("sizes = [p.numel() for p in model.parameters()]\n", "print(sizes)"),
        ("import copy\nfixed = copy.deepcopy(model)\n", "print(fixed.training)"),
        ("def about(of):\n    return sum(p.numel() for p in of.parameters())\nsize = about(model)\n", "print(size)"),
        ("start = torch.cat([p.flatten() for p in model.parameters()]).norm().item()\n", "print(start)"),
        ("where = next(model.parameters()).device\n", "print(where)"),
        ("seen = []\n", "seen.append(loss.item()); print(seen[-1])"),
        ("rates = []\nfor g in optimizer.param_groups:\n    rates += [g['lr']]\n", "print(rates)"),
        (METER + FIRST + "meter = Meter()\nmeter.update(first.in_features)\n", "print(meter.total)"),
        ("last = {}\n", "last['loss'] = loss.item(); print(last)"),
        (FIRST + "start = torch.norm(first.weight.detach())\n", "print(start.item())"),
        (FIRST + "size, weight = 3, first.weight\n", "print(size)"),
        (FIRST + "norm = first.weight\nprint(norm.sum().item())\n", "norm = loss.item(); print(norm)"),
    ],
)  # fmt: skip
def test_numbers_and_copies_hold_nothing(above, below_step):
    assert "manual_backward" not in check_same(text(above, "pass", below_step), "module")


def test_what_a_step_computes_of_a_weight_is_new():
    below = text(FIRST, "pass", "print(scaled.sum().item())")
    scaled = below.replace("loss.backward()", "scaled = 2 * first.weight\n        loss.backward()")
    assert "manual_backward" not in check_same(scaled, "module")


def test_what_the_calls_of_a_function_hand_over_is_followed():
    fit = "def fit(params):" + STEP.format(below_backward=CLIP, below_step="pass").replace("\n", "\n    ")
    assert "manual_backward" in check_same(HEAD + fit + "\nfit(list(model.parameters()))\n", "manual")


@pytest.mark.parametrize(
    "clip", ["norm = torch.nn.utils.clip_grad_norm_(self.params, 0.01)", "norm = self.clip()"], ids=["here", "a method"]
)
def test_an_attribute_of_a_trainer_is_followed(clip):
    solver = """
class Solver:
    def __init__(self, net):
        self.net = net
        self.params = list(self.net.parameters())
        self.optimizer = torch.optim.SGD(self.params, lr=0.1)

    def clip(self):
        return torch.nn.utils.clip_grad_norm_(self.params, 0.01)

    def fit(self):
        for epoch in range(2):
            for x, y in train_loader:
                self.optimizer.zero_grad()
                loss = criterion(self.net(x), y)
                loss.backward()
                CLIP
                self.optimizer.step()
            print(epoch, loss.item())

Solver(model).fit()
"""
    assert "manual_backward" in check_same(HEAD + solver.replace("CLIP", clip), "manual")


RECURSIVE = """
def moved(given, device):
    if torch.is_tensor(given):
        return given.to(device)
    if isinstance(given, dict):
        return {k: moved(v, device) for k, v in given.items()}
    return given
"""


@pytest.mark.parametrize("below_step", ["print(size.item())", "print(size + 1)"])
def test_a_function_that_calls_itself_is_looked_into_once(below_step):
    above = RECURSIVE + "size = moved(torch.ones(1), 'cpu')\n"
    assert "training_step" in check_same(text(above, "batch = moved({'x': x, 'n': 1}, 'cpu')", below_step), "module")
