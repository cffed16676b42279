"""`loss.backward(one)`, as critics are trained: lifted with the gradient that is given, run before and after."""

import pytest

from tests.migrate.running import check_same

TEXT = """
import torch
from torch import nn

torch.manual_seed(0)
data = torch.utils.data.TensorDataset(torch.randn(16, 4), torch.randn(16, 3))
loader = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)
critic, maker = nn.Linear(4, 1), nn.Linear(3, 4)
of_critic = torch.optim.RMSprop(critic.parameters(), lr=1e-2)
of_maker = torch.optim.RMSprop(maker.parameters(), lr=1e-2)
one = torch.tensor(1.0)
if torch.cuda.is_available():
    one = one.cuda()
minus = one * -1
for epoch in range(2):
    for real, noise in loader:
        critic.zero_grad()
        made = maker(noise)
        found = critic(real).mean()
        found.backward(one)
        mistaken = critic(made.detach()).mean()
        mistaken.backward(minus)
        of_critic.step()
        maker.zero_grad()
        judged = critic(made).mean()
        judged.backward(gradient=one, retain_graph=True)
        of_maker.step()
    print(epoch, f'{(found - mistaken).item():.6f}')
"""
NUMBERS = {
    "a number": ("torch.tensor(1.0)", "torch.tensor(1.0)"),
    "in a list": (".mean()", ".mean().view(1)", "torch.tensor(1.0)", "torch.FloatTensor([1])"),
    "of that size": (".mean()", ".mean().view(1)", "torch.tensor(1.0)", "torch.ones(1)"),
    "its opposite": ("one * -1", "-one"),
}
OTHERS = {
    "of each sample": (
        "found = critic(real).mean()\n        found.backward(one)",
        "found = critic(real)\n        found.backward(torch.ones_like(found) / 4)\n        found = found.mean()",
    ),
    "from who knows where": ("    one = one.cuda()", "    one = one.cuda()\none = min(one, one)"),
}


def _with(changes):
    text = TEXT
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("changes", NUMBERS.values(), ids=NUMBERS.keys())
def test_a_number_that_weighs_the_whole_loss_leaves_batches_divided(changes):
    result = check_same(_with(changes), "manual")
    assert "mistaken, self.minus)" in result and "divide_batches" not in result
    assert "self.manual_backward(judged, gradient=self.one, retain_graph=True)" in result


@pytest.mark.parametrize("changes", OTHERS.values(), ids=OTHERS.keys())
def test_what_may_weigh_the_samples_asks_for_whole_batches(changes):
    assert "divide_batches = False" in check_same(_with(changes), "manual")
