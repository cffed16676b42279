"""A step that sets an option or a weight by a value of its batch needs the whole: shares would each set another."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_same_run import NESTED

STEP = "        loss.backward()\n        optimizer.step()\n"
HELPER = "\ndef set_rate(optimizer, value):\n    for g in optimizer.param_groups:\n        g['lr'] = value * 0.1\n"
PLATEAU = "\nschedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)\n"


def script(after="", between="", above=""):
    """The nested loops of the other tests, with something in front of the loops, the step, and below it."""
    text = NESTED.replace(STEP, f"        loss.backward()\n{between}        optimizer.step()\n{after}")
    return text.replace("\nfor epoch in", f"{above}\nfor epoch in", 1)


STEERED = {
    "a rate": script("        for g in optimizer.param_groups:\n            g['lr'] = 0.1 * loss.item()\n"),
    "the first rate": script("        optimizer.param_groups[0]['lr'] *= min(1, loss.item())\n"),
    "in a function": script("        set_rate(optimizer, loss.item())\n", above=HELPER),
    "by a name": script(
        "        v = loss.item()\n        w = v / 2\n        set_rate(optimizer, value=w)\n", above=HELPER
    ),
    "a schedule on the batch's loss": script("        schedule.step(loss)\n", above=PLATEAU),
    "gradients": script(between="        for p in model.parameters():\n            p.grad.mul_(loss.item())\n"),
    "gradients of a list": script(
        between="        shared = list(model.parameters())\n"
        "        for p, k in zip(shared, range(9)):\n            p.grad.mul_(loss.item())\n"
    ),
    "gradients, set": script(between="        for p in model.parameters():\n            p.grad *= loss.detach()\n"),
    "weights": script("        for n, p in model.named_parameters():\n            p.data.add_(out.mean().item())\n"),
    "what is made of the batch, and called": script(
        "        scale = torch.nn.Threshold(loss.item(), 0)\n        scale(out)\n"
        "        set_rate(optimizer, scale.threshold)\n",
        above=HELPER,
    ),
    "one weight": script("        model[0].bias.data += out.mean(0).mean().item()\n"),
}
NOT = {
    "plain": NESTED,
    "by the number of the step": script("        set_rate(optimizer, i)\n", above=HELPER).replace(
        "for x, y in train_loader", "for i, (x, y) in enumerate(train_loader)"
    ),
    "by the epoch": script("        for g in optimizer.param_groups:\n            g['lr'] = 0.1 / (epoch + 1)\n"),
    "by what a network is told": script(
        "        model.seen += len(x)\n        for g in optimizer.param_groups:\n            g['lr'] = model.rate\n",
        above="\nmodel.seen, model.rate = 0, 0.1\n"),
    "clamped": script("        for p in model.parameters():\n            p.data.clamp_(-0.1, 0.1)\n"),
    "gradients by a number": script(between="        for p in model.parameters():\n            p.grad.mul_(0.5)\n"),
    "the samples themselves": script("        x.data.add_(out.mean(1, keepdim=True).detach())\n"),
    "the samples themselves, turned": script("        x.T.data.add_(out.mean().item())\n"),
    "a gradient that is read": script(
        between="        for p in model.parameters():\n            q = p.grad.mul(loss.item())\n"
    ),
    "another object's step": script("        shown.step(len(x))\n", above="\nclass Shown:\n    def step(self, n):\n"
                                    "        pass\nshown = Shown()\n"),
}  # fmt: skip


@pytest.mark.parametrize("text", STEERED.values(), ids=STEERED)
def test_batches_are_whole(text):
    result = migrate_text(text)
    assert "divide_batches = False" in result.text
    assert any("goes by the values of the batch" in n.message for n in result.attention)


@pytest.mark.parametrize("text", NOT.values(), ids=NOT)
def test_others_are_divided(text):
    result = migrate_text(text)
    assert "class " in result.text and "divide_batches" not in result.text, result.attention
