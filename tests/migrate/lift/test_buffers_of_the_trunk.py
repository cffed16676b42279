"""Tensors that a script makes above its loop and moves to a device: buffers of the Module, which move with it."""

import re

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text

from tests import forked
from tests.migrate.running import CARD, check_on_card, check_same

TEXT = """
import torch
from torch import nn

torch.manual_seed(0)
device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
xs = torch.randn(16, 4)
loader = torch.utils.data.DataLoader(xs, batch_size=4)
net = nn.Linear(4, 4).to(device)
noise = torch.randn(3, 4).to(device)  # the same in every epoch
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def sample():
    return net(SEEN).sum().item()


for epoch in range(2):
    for x in loader:
        x = x.to(device)
        loss = (net(x) - x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(f'{net(noise).sum().item():.5f}')
"""
BUFFER = 'self.register_buffer("noise", noise, persistent=False)'


def test_it_is_a_buffer_and_the_device_goes():
    text = TEXT.replace("SEEN", "xs")
    result = check_same(text, "module")
    assert BUFFER in result and "noise = torch.randn(3, 4)  # the same in every epoch\n" in result
    assert "device" not in result and not [n for n in migrate_text(text).attention if n.code in ("PTM104", "PTM102")]


@pytest.mark.parametrize(
    "value", ["(torch.randn(3, 4) / 2)", "((torch.randn(3, 4) / 2))", "(\n    torch.randn(3, 4)\n)"]
)
def test_parentheses_around_it_stay(value):
    result = check_same(TEXT.replace("SEEN", "xs").replace("torch.randn(3, 4).to", f"{value}.to"), "module")
    assert BUFFER in result and f"noise = {value}  # the same" in result


def test_a_move_on_a_line_of_its_own_goes_with_its_line():
    broken = TEXT.replace("SEEN", "xs").replace("torch.randn(3, 4).to(device)", "(torch.randn(3, 4)\n    .to(device))")
    assert "noise = (torch.randn(3, 4))  # the same" in check_same(broken, "module")


OTHERS = {
    "a function of the script reads it": ("SEEN", "noise"),
    "it is read after the loop": ("if __name__", "if __name__"),
    "a loop may make it another": ("optimizer = ", "for i in xs[:1]:\n    noise = torch.zeros(1, 4)\noptimizer = "),
    "a call may place it": ("optimizer = ", "noise = noise + torch.zeros(1, 4, device=device)\noptimizer = "),
    "it gets a type too": (".to(device)  #", ".to(device, torch.float64).float()  #"),
}


@pytest.mark.parametrize("old, new", OTHERS.values(), ids=OTHERS.keys())
def test_it_stays_and_is_told(old, new):
    text = TEXT.replace(old, new).replace("SEEN", "xs")
    text += "print(net(noise).sum().item())\n" if old == new else ""
    result = check_same(text, "module")
    assert "torch.randn(3, 4).to(device" in result
    assert [n for n in migrate_text(text).attention if n.code == "PTM104"]


def test_where_such_edits_are_not_asked_for_it_stays():
    text = TEXT.replace("SEEN", "xs")
    assert "torch.randn(3, 4).to(device)" in migrate_text(text, Options(ignore=("PTM104",))).text


def test_the_class_stands_two_lines_below_what_is_above_it():
    text = TEXT.replace("def sample():\n    return net(SEEN).sum().item()\n\n\n", "")
    result = check_same(text, "module")
    assert "persistent" in result and "# the same in every epoch\n\n\nclass LinearModule(Module):\n" in result


MOVED = """
import argparse
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument('--cuda', action='store_true')
args = parser.parse_args()
loader = torch.utils.data.DataLoader(torch.randn(13, 4), batch_size=5)
net = nn.Linear(4, 4)
noise = torch.randn(3, 4)
weights = torch.ones(4)
more = weights * 2
ABOVE
if args.cuda:
    net.cuda()
    # all of them
    noise, weights = noise.cuda(), weights.cuda()

# the rate is small
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x in loader:
        STEP
        loss = ((net(x) - x).pow(2) * weights * more).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(net(noise).sum().item())
BELOW
"""


def moved(above="", step="pass", below=""):
    return MOVED.replace("ABOVE\n", above).replace("STEP", step).replace("BELOW\n", below)


def told(text):
    return [n for n in migrate_text(text).attention if n.code == "PTM104"]


def test_a_move_of_its_own_goes_with_its_condition_and_what_is_made_of_it_moves_too():
    result = check_same(moved(), "module")
    for name in ("noise", "weights", "more"):
        assert f'self.register_buffer("{name}", {name}, persistent=False)\n' in result
    assert ".cuda()" not in result and "if args.cuda:" not in result and not told(moved())
    assert 'accelerator="auto" if args.cuda else "cpu"' in result and "more = weights * 2\n\n# the rate" not in result


LOOKED_AT = {
    "its shape is asked for": {"above": "print(noise.shape, len(weights), weights.dtype)\n"},
    "it is filled": {"above": "noise.normal_()\n"},
    "a data set is split and keeps its name": {
        "above": "data = torch.utils.data.TensorDataset(noise)\n"
        "data, rest = torch.utils.data.random_split(data, [len(data) - 1, 1])\nmore_of = DataLoader(data)\n"
    },
    "a loader gets it": {"above": "other = torch.utils.data.TensorDataset(noise)\nmore_of = DataLoader(other)\n"},
}


@pytest.mark.parametrize("change", LOOKED_AT.values(), ids=LOOKED_AT.keys())
def test_what_does_not_tell_where_it_is_may_read_it(change):
    text = moved(**change).replace("import nn\n", "import nn\nfrom torch.utils.data import DataLoader\n")
    assert ".cuda()" not in check_same(text, "module") and not told(text)


STAYS = {
    "it is read below": {"below": "print(weights.sum().item())\n"},
    "a function reads it": {"above": "def f():\n    return noise, weights\n"},
    "what is made of it may not be a tensor": {"above": "half = float(weights.sum())\nnoise = noise + half\n"},
    "an optimizer has it": {"above": "noise.requires_grad_()\nthat = torch.optim.SGD([noise, weights], lr=0.1)\n"},
    "a view of it is filled": {"above": "row = weights.view(4)\n", "step": "row.mul_(1.5)"},
}


@pytest.mark.parametrize("change", STAYS.values(), ids=STAYS.keys())
def test_a_move_stays_where_more_may_see_it(change):
    text = moved(**change)
    there = 'weights.to("cuda" if torch.cuda.is_available() else "cpu")'
    assert there in check_same(text, "module") and not told(text)


def test_what_a_step_fills_is_no_buffer_which_ranks_would_send_to_one_another():
    text = moved(step="weights.fill_(x.size(0))", above="seen = torch.zeros(5, 4)\n").replace(
        "more = weights * 2", "more = 2"
    )
    result = check_same(text, "module")
    placed = "def on_fit_start(self):\n        self.weights = self.weights.to(self.device)\n"
    assert placed in result and '"weights"' not in result and "weights.cuda" not in result


def test_an_object_that_does_not_show_goes_when_the_fit_starts():
    text = moved().replace("more = weights * 2", "more = 2").replace("torch.ones(4)", "read()")
    text = text.replace("parser = ", "def read():\n    return torch.ones(8)[::2]\n\nparser = ", 1)
    text = text.replace("torch.ones(8)[::2]", "dict(a=torch.ones(4))['a']")
    result = check_same(text, "module")
    assert "self.weights = self.weights.to(self.device)\n" in result and "weights.cuda" not in result


def test_a_step_by_hand_keeps_its_buffers():
    text = moved(step="weights.fill_(x.size(0))").replace("more = weights * 2", "more = 2")
    text = text.replace("loss.backward()", "loss.backward(retain_graph=True)\n        loss.backward()")
    assert 'register_buffer("weights", weights, persistent=False)' in check_same(text, "manual")


@pytest.mark.slow
def test_a_filled_tensor_on_two_processes(tmp_path):
    """The processes' shares of a batch of three differ in size."""
    text = moved(step="weights.resize_(x.size(0), 4).copy_(x)").replace("more = weights * 2", "more = 2")
    (tmp_path / "train.py").write_text(migrate_text(text.replace("parser =", "torch.manual_seed(0)\nparser =")).text)
    options = ("--accelerator", "cpu", "--global-batch", "--devices")
    ran = [forked.ptrun(*options, n, tmp_path / "train.py") for n in "12"]
    one, two = ([float(line) for line in r.stdout.splitlines() if re.match(r"-?\d", line)] for r in ran)
    assert len(one) == 2 and two == pytest.approx(one, abs=1e-5), ran[1].stderr


def test_what_a_file_held_is_no_buffer(tmp_path):
    text = TEXT.replace("SEEN", "xs").replace("torch.randn(3, 4).to(device)", f"torch.load('{tmp_path}/noise')[0]")
    made = f"torch.save([torch.ones(3, 4), 1.5], '{tmp_path}/noise')\n"
    text = text.replace("noise = ", f"{made}noise = torch.load('{tmp_path}/noise')  #", 1).replace(
        "net(noise)", "net(noise[0])"
    )
    assert "register_buffer" not in check_same(text, "module")


LEAVES = {
    "made so": ("torch.zeros(1, requires_grad=True)", "[*net.parameters(), shift]"),
    "given to the optimizer": ("torch.zeros(1)", "list(net.parameters()) + [shift]"),
}


@pytest.mark.parametrize("made, given", LEAVES.values(), ids=LEAVES)
def test_what_the_optimizer_changes_is_none(made, given):
    text = f"""
import torch
torch.manual_seed(0)
loader = torch.utils.data.DataLoader(torch.randn(8, 4), batch_size=4)
net = torch.nn.Linear(4, 4)
shift = {made}
optimizer = torch.optim.SGD({given}, lr=0.1)
for epoch in range(2):
    for x in loader:
        loss = (net(x) + shift).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print('%.5f' % sum(p.sum() for p in net.parameters()), shift)
"""
    assert "self.shift = shift" in check_same(text, "module")


@pytest.mark.parametrize(
    ("given", "goes"),
    [
        ("net(xs.to(device)).detach()", True),
        ("net(xs)[:3].detach().mean(0)", True),
        ("net.forward(xs).detach()", True),
        ("net(xs)", False),
        ("list(net(xs))", False),
        ("(torch.rand_like(net.weight.data) > 0.3).float()", True),
        ("net.weight.detach().clone()", True),
        ("torch.zeros_like(net.bias).expand(1, 4)", True),
        ("net.weight.detach().abs() * 0.5", True),
        ("net.weight.detach()", False),
        ("net.weight.data", False),
        ("torch.zeros(1, 4) + len(list(net.parameters()))", False),
        ("net.bias * 2", True),
        ("torch.ones(1, 4) + net.weight.data.t()[0]", True),
    ],
)
def test_what_a_network_gave_above_the_loop_goes_with_it(given, goes):
    loop = "for epoch in range(2):\n    for x in loader:\n        x = x.to(device)\n"
    step = "        loss = (net(x) - start[0]).pow(2).mean()\n"
    end = "        optimizer.zero_grad()\n        loss.backward()\n        optimizer.step()\n    print(loss.item())\n"
    above = TEXT[: TEXT.index("noise =")] + "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
    text = above + f"with torch.no_grad():\n    start = {given}\n" + loop + step + end
    assert ("self.start = self.start.to(self.device)" in migrate_text(text).text) == goes
    if goes:
        check_same(text, "module")


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("'log_' + net.__class__.__name__ + '.txt'", "len(kept)"),
        ("net.in_features * 2", "kept"),
        ("2 + net.in_features", "kept"),
        ("net.training == False", "kept"),
        ("net.weight.shape[0] * 2", "kept"),
    ],
)
def test_what_a_network_says_of_itself_is_no_tensor(given, read):
    loop = f"for epoch in range(2):\n    for x in loader:\n        loss = net(x).pow(2).mean() * (1 + {read})\n"
    step = "        optimizer.zero_grad()\n        loss.backward()\n        optimizer.step()\n    print(loss.item())\n"
    above = TEXT[: TEXT.index("noise =")] + "optimizer = torch.optim.SGD(net.parameters(), lr=0.01)\n"
    assert ".to(self.device)" not in check_same(above + f"kept = {given}\n" + loop + step, "module")


UNPACKED = TEXT.replace("SEEN", "xs").replace(
    "noise = torch.randn(3, 4).to(device)", "noise, shift = torch.randn(3, 4), torch.zeros(4)"
)


def test_tensors_that_are_given_their_names_together_are_each_a_buffer():
    result = check_same(UNPACKED.replace("x = x.to(device)", "x = (x - shift).to(device)"), "module")
    assert 'self.register_buffer("shift", shift, persistent=False)' in result


def test_what_a_function_that_is_not_known_gives_is_none():
    text = UNPACKED.replace("x = x.to(device)", "x = (x - shift).to(device)")
    text = text.replace("torch.randn(3, 4), torch.zeros(4)", "sorted([torch.randn(3, 4), 0.0], key=lambda v: v is 0.0)")
    assert "register_buffer" not in migrate_text(text).text


BY_HAND = """\
import torch

torch.manual_seed(0)
use_gpu = torch.cuda.is_available()
w, b = torch.randn(4, 1), torch.zeros(1)
if use_gpu:
    w, b = w.cuda(), b.cuda()
ASKED
loader = torch.utils.data.DataLoader(torch.randn(16, 4), batch_size=4)
for epoch in range(2):
    for x in loader:
        if use_gpu:
            x = x.cuda()
        loss = (x @ w + b - 1).pow(2).mean()
        loss.backward()
        with torch.no_grad():
            for p in (w, b):
                p -= 0.1 * p.grad
                p.grad.zero_()
    print(epoch, loss.item())
"""


@pytest.mark.parametrize(
    "asked", ["w.requires_grad_(); b.requires_grad_()", "w.requires_grad = b.requires_grad = True"]
)
def test_what_is_trained_by_hand_keeps_its_moves(tmp_path, asked):
    """A buffer that the Module moves is another tensor than the one that has the gradients."""
    text = BY_HAND.replace("ASKED", asked)
    assert "w, b = w.cuda(), b.cuda()" in check_on_card(tmp_path, text)
    assert any("`w.cuda()` names a device" in e.message for e in migrate_text(text).attention)


ON_RANKS = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

def main():
    dist.init_process_group('gloo')
    rank = dist.get_rank()
    torch.manual_seed(0)
    loader = torch.utils.data.DataLoader(torch.randn(16, 4), batch_size=4)
    net = DDP(torch.nn.Linear(4, 4).cuda())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
ABOVE
    for epoch in range(2):
        for x in loader:
            x = x.cuda()
            loss = (net(x) - x).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f'{net.module(fixed).sum().item():.4f}')


main()
"""
ITS_OWN = "    print(0)\n    if rank == 0:\n        fixed = torch.ones(3, 4).cuda()\n        print(1)"


def test_what_rank_0_alone_has_is_no_buffer(tmp_path):
    """The others had a buffer less: the ranks sent each other tensors of other sizes, and ended in an error."""
    result = migrate_text(ON_RANKS.replace("ABOVE", ITS_OWN)).text
    assert "self.fixed = fixed\n" in result and "register_buffer" not in result
    assert "        if self.fixed is not None:\n            self.fixed = self.fixed.to(self.device)\n" in result
    (tmp_path / "new.py").write_text(result)
    printed = [
        forked.ptrun("--accelerator", "cpu", "--devices", n, "--global-batch", "new.py", cwd=tmp_path).stdout
        for n in "12"
    ]
    assert printed[0] == printed[1] and printed[0].count("\n") == 4


def test_what_every_rank_has_is_one():
    result = migrate_text(ON_RANKS.replace("ABOVE", "    fixed = torch.ones(3, 4).cuda()")).text
    assert 'self.register_buffer("fixed", fixed, persistent=False)' in result and "on_fit_start" not in result


def test_a_rank_0_tensor_meets_the_network_on_a_card(tmp_path):
    result = migrate_text(ON_RANKS.replace("ABOVE", ITS_OWN)).text
    (tmp_path / "new.py").write_text(result)
    assert forked.run(CARD, "new.py", cwd=tmp_path).returncode == 0


WINDOWS = """
import torch
from torch.utils.data import DataLoader, Dataset


class Windows(Dataset):
    def __init__(self, series, offset):
        self.a = series[offset:].numpy()

    def __len__(self):
        return len(self.a) - 5

    def __getitem__(self, i):
        return torch.from_numpy(self.a[i : i + 4]), torch.tensor([self.a[i + 4]])


torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
series = torch.randn(40)
net = torch.nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for epoch in range(2):
    loader = DataLoader(Windows(series, offset=epoch), 8, shuffle=True)
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        loss = ((net(x) - y) ** 2).mean()EXTRA
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, "%.5f" % loss.item())
"""


def test_what_only_a_loader_is_made_of_stays_on_the_cpu(tmp_path):
    """A data set that uses NumPy was given a tensor on the card."""
    assert "self.series = series\n" in check_on_card(tmp_path, WINDOWS.replace("EXTRA", ""))


def test_what_the_steps_read_too_is_moved_there(tmp_path):
    text = check_on_card(tmp_path, WINDOWS.replace("EXTRA", " + 0 * series.to(device).sum()"))
    assert "self.series = series\n" in text and "self.series.type_as(x)" in text
