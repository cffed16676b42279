"""A hook that bends gradients sees those of whole batches; a straight one may see a share's."""

import pytest

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_same

STEP = """
mask, norms = torch.ones(1), []
def scaled(g):
    return mask * g / 2
def kept(g):
    norms.append(g.norm().item())
def limited(g):
    g = g.clamp(-0.01, 0.01)
    return g
def named(g):
    h = g.clamp(-0.01, 0.01)
    return h
def decided(g):
    if g.norm() > 0.01:
        g = g / 2
    return g
def in_place(g):
    g.clamp_(-0.01, 0.01)
def asked(g):
    if g is None:
        return g
    half = g / 2
    return half * mask
class Limits:
    def cut(self, g):
        return g.clamp(-0.01, 0.01)
    def keep(self, g):
        norms.append(g.norm().item())
limits = Limits()
def squared(g):
    g *= g
    return g
def shown(g):
    if g.norm() > 0.01:
        print('large')
def halved(g):
    g *= 0.5
    return g
def cut(g):
    g = g.clone()
    g.clamp_(-0.01, 0.01)
    return g
def step(p):
    p.grad = p.grad.clamp(-0.01, 0.01)
for p in model.parameters():
    p.register_hook(HOOK)
for epoch in range(2):
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
"""


def divided(hook):
    return "divide_batches = False" not in check_same(HEAD + STEP.replace("HOOK", hook), "module")


@pytest.mark.parametrize(
    "hook",
    [
        "lambda g: g.clamp(-0.01, 0.01)",
        "lambda g: torch.clamp(g, -0.01, 0.01)",
        "lambda grad: grad / (grad.norm() + 1e-6)",
        "lambda g: g * g.abs()",
        "lambda g: torch.sign(g)",
        "limited",
        "cut",
        "named",
        "decided",
        "in_place",
        "squared",
        "limits.cut",
    ],
)
def test_what_bends_takes_whole_batches(hook):
    assert not divided(hook)


@pytest.mark.parametrize(
    "hook",
    [
        "lambda g: g * mask",
        "lambda g: -0.5 * g",
        "lambda g: g.mul(mask).clone()",
        "lambda g: g - g / 2",
        "lambda g: torch.zeros_like(g)",
        "lambda g: norms.append(g.norm().item())",
        "scaled",
        "halved",
        "shown",
        "asked",
        "limits.keep",
        "kept",
    ],
)
def test_what_is_straight_divides(hook):
    assert divided(hook)


def test_a_step_of_its_own_as_gradients_come_takes_whole_batches():
    text = STEP.replace("p.register_hook(HOOK)", "p.register_post_accumulate_grad_hook(step)")
    assert "divide_batches = False" in check_same(HEAD + text, "module")


FILLS = """
counts, saved = [0], {}
def count(p):
    counts[0] += 1
def save(module, grad_input, grad_output):
    saved['last'] = grad_output[0].abs().sum().item()
class Watch:
    def __init__(self, of):
        self.size = 0.0
        of.register_full_backward_hook(self.look)
    def look(self, module, grad_input, grad_output):
        self.size = grad_output[0].abs().sum().item()
watch = Watch(model[0])
REGISTER
for epoch in range(2):
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        seen = READ
    print(epoch, loss.item(), seen)
"""


@pytest.mark.parametrize(
    ("register", "read"),
    [
        ("model[0].weight.register_hook(count)", "counts[0]"),
        ("model[0].weight.register_hook(lambda g: counts.append(g.norm().item()))", "counts[-1]"),
        ("model[0].register_full_backward_hook(save)", "saved['last']"),
        ("", "watch.size"),
    ],
)
def test_what_a_hook_leaves_is_read_when_it_is_there(register, read):
    text = HEAD + FILLS.replace("REGISTER", register).replace("READ", read)
    assert "manual_backward" in check_same(text, "manual")


def test_what_no_hook_fills_leaves_the_step_to_the_trainer():
    text = HEAD + FILLS.replace("REGISTER", "model[0].weight.register_hook(count)").replace("READ", "loss.item()")
    assert "manual_backward" not in check_same(text, "module")


@pytest.mark.parametrize(("optimizer", "plan"), [("Noisy", "manual"), ("torch.optim.SGD", "module")])
def test_what_is_drawn_below_a_step_that_may_draw_is_drawn_there(optimizer, plan):
    text = FILLS.replace("REGISTER", f"optimizer = {optimizer}(model.parameters(), lr=0.1)")
    noisy = """
class Noisy(torch.optim.SGD):
    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]['params']:
            p.add_(torch.randn_like(p), alpha=0.001)
        super().step()
"""
    check_same(HEAD + noisy + text.replace("READ", "torch.rand(1).item()"), plan)
