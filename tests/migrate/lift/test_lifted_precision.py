"""T10: autocast and GradScaler of a loop become the Trainer's precision=, or stay and are told of; both run."""

import textwrap

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import run

SCRIPT = """\
import torch
from torch.cuda.amp import GradScaler, autocast
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
x = torch.randn(32, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8)
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
{before}
for epoch in range(2):
    for i, (a, b) in enumerate(loader):
        optimizer.zero_grad()
{step}
    print(epoch)
"""

SCALED = """\
with autocast({on}):
    loss = (net(a) - b).pow(2).mean()
scaler.scale(loss).backward()
scaler.unscale_(optimizer)
torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
scaler.step(optimizer)
scaler.update()
"""

CHOICE = """\
if use_amp:
    with autocast():
        loss = (net(a) - b).pow(2).mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
else:
    loss = (net(a) - b).pow(2).mean()
    loss.backward()
    optimizer.step()
"""


def script(before, step):
    return SCRIPT.format(before=before, step="".join(f"        {line}\n" for line in step.splitlines()).rstrip())


@pytest.mark.parametrize(
    ("before", "step", "precision"),
    [
        ("scaler = GradScaler()", SCALED.format(on=""), '"16-mixed" if torch.cuda.is_available() else "32-true"'),
        (
            "use_amp = torch.cuda.is_available()\nscaler = GradScaler(enabled=use_amp)",
            SCALED.format(on="enabled=use_amp"),
            '"16-mixed" if torch.cuda.is_available() else "32-true"',
        ),
        (
            "cuda = torch.cuda.is_available()\nwhere = torch.device('cuda' if cuda else 'cpu')\n"
            "scaler = GradScaler(enabled=cuda)",
            SCALED.format(on="enabled=cuda").replace("with auto", "a, b = a.to(where), b.to(where)\nwith auto"),
            '"16-mixed" if torch.cuda.is_available() else "32-true"',
        ),
        (
            "use_amp = False\nscaler = GradScaler(enabled=use_amp)",
            SCALED.format(on="use_amp"),
            '"16-mixed" if use_amp and torch.cuda.is_available() else "32-true"',
        ),
        (
            "scaler = torch.amp.GradScaler('cuda')",
            SCALED.format(on="").replace("autocast()", "torch.autocast('cuda', dtype=torch.bfloat16)"),
            '"bf16-mixed" if torch.cuda.is_available() else "32-true"',
        ),
        (
            "scaler = GradScaler()",  # a part in full precision stays one
            SCALED.format(on="").replace("loss = (", "with autocast(enabled=False):\n        loss = ("),
            '"16-mixed" if torch.cuda.is_available() else "32-true"',
        ),
        (
            "use_amp = False\nscaler = GradScaler() if use_amp else None",
            CHOICE,
            '"16-mixed" if use_amp and torch.cuda.is_available() else "32-true"',
        ),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_the_trainers(before, step, precision):
    source = script(before, step)
    result = migrate_text(source)
    assert result.plan == "module" and f"precision={precision})" in result.text, result.text
    assert "autocast(" not in result.text.replace("autocast(enabled=False)", "") and "scaler" not in result.text
    assert ("gradient_clip_val=0.5" in result.text) == ("clip_grad" in step)
    assert not [n for n in result.attention if n.code == "PTM605" and "enabled=False" not in n.message]
    ours, theirs = run(result.text), run(source)
    assert ours.losses == theirs.losses and all(map(lambda p, q: p.equal(q), ours.parameters, theirs.parameters))


DEVICE = "where = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n"
NAMED = "where = 'cuda' if torch.cuda.is_available() else 'cpu'\n"
ANYWHERE = '"16-mixed" if torch.cuda.is_available() else "bf16-mixed"'


@pytest.mark.parametrize(
    ("before", "asked", "precision"),
    [
        (DEVICE + "scaler = torch.amp.GradScaler(where.type)", "device_type=where.type", ANYWHERE),
        (DEVICE + "scaler = GradScaler()", "where.type", ANYWHERE),
        (NAMED + "scaler = torch.amp.GradScaler(where)", "device_type=where", ANYWHERE),
        (NAMED + "scaler = torch.amp.GradScaler(device=where)", "where, dtype=torch.bfloat16", '"bf16-mixed"'),
        (
            DEVICE + "use_amp = True\nscaler = torch.amp.GradScaler(enabled=use_amp)",
            "device_type=where.type, enabled=use_amp",
            f'({ANYWHERE}) if use_amp else "32-true"',
        ),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_the_type_of_the_scripts_own_device(before, asked, precision):
    """On the CPU, too, autocast computes in bfloat16: the same losses, bit for bit."""
    step = "a, b = a.to(where), b.to(where)\n" + SCALED.format(on="").replace("autocast()", f"torch.autocast({asked})")
    source = script(before, step)
    result = migrate_text(source)
    assert result.plan == "module" and f"precision={precision})" in result.text, result.text
    assert "where" not in result.text and not result.attention, result.attention
    ours, theirs = run(result.text), run(source)
    assert ours.losses == theirs.losses and all(map(lambda p, q: p.equal(q), ours.parameters, theirs.parameters))
    full = source.replace(f"torch.autocast({asked})", "torch.autocast('cpu', enabled=False)")
    assert ours.losses != run(full).losses


@pytest.mark.parametrize(
    ("before", "asked"),
    [
        (DEVICE, "where.type, torch.float16"),
        (DEVICE, "where.type, dtype=kind"),
        (DEVICE.replace("else 'cpu'", "else 'mps' if torch.backends.mps.is_available() else 'cpu'"), "where.type"),
        (DEVICE.replace("torch.cuda.is_available()", "flag"), "where.type"),
        (DEVICE, "kinds[0]"),
        (NAMED, "where, dtype=torch.bfloat16 if where == 'cpu' else torch.float16"),
        (DEVICE + "use_amp = torch.cuda.is_available()\n", "where.type, enabled=use_amp"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_another_type_of_device_stays_and_is_told(before, asked):
    before = "flag, kind, kinds = False, torch.bfloat16, ['cpu']\n" + before
    step = f"a, b = a.to(where), b.to(where)\nwith torch.autocast({asked}):\n"
    source = script(before, step + "    loss = (net(a) - b).pow(2).mean()\nloss.backward()\noptimizer.step()")
    result = migrate_text(source)
    assert result.plan == "module" and "precision=" not in result.text
    assert [n for n in result.attention if n.code == "PTM605"]
    assert run(result.text).losses == run(source).losses


@pytest.mark.parametrize(
    ("before", "step"),
    [
        ("scaler = GradScaler(growth_interval=10)", SCALED.format(on="")),
        ("scaler = GradScaler()", SCALED.format(on="") + "print(scaler.get_scale())"),
        ("scaler = GradScaler()", SCALED.format(on="").replace("autocast()", "torch.autocast('cpu')")),
        ("use_amp = False\nscaler = GradScaler()", CHOICE.replace("loss.backward()\n", "(2 * loss).backward()\n")),
        (
            "scaler = GradScaler()",
            "with autocast():\n    loss = (net(a) - b).pow(2).mean() / 2\nscaler.scale(loss).backward()\n"
            "if i % 2:\n    scaler.unscale_(optimizer)\n    scaler.step(optimizer)\n    scaler.update()",
        ),
        ("scaler = GradScaler(enabled=False)", SCALED.format(on="")),
        ("scaler = GradScaler()\nkept = [scaler]", SCALED.format(on="")),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_the_trainer_does_not_do_stays_and_is_told(before, step):
    source = script(before, step)
    result = migrate_text(source)
    assert "GradScaler" in result.text and "precision=" not in result.text
    assert [n for n in result.attention if n.code == "PTM605"]
    assert run(result.text).losses == run(source).losses


ACCUMULATED = """\
with autocast():
    loss = (net(a) - b).pow(2).mean() / 2
scaler.scale(loss).backward()
if i % 2:
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
"""


@pytest.mark.filterwarnings("ignore")
def test_a_step_by_hand_takes_the_precision_too():
    source = script("scaler = GradScaler()", ACCUMULATED).replace(
        "        optimizer.zero_grad()\n        with", "        with"
    )
    result = migrate_text(source)
    assert "scaler" not in result.text and 'precision="16-mixed" if' in result.text, result.text
    ours, theirs = run(result.text), run(source)
    assert ours.losses == theirs.losses and all(map(lambda p, q: p.equal(q), ours.parameters, theirs.parameters))


FUNCTION = """\
import torch
from torch.cuda.amp import GradScaler, autocast
from torch.utils.data import DataLoader, TensorDataset

def train(net, loader, optimizer, scaler=None, log=True):
    for a, b in loader:
        optimizer.zero_grad()
        with autocast(enabled=scaler is not None):
            loss = (net(a) - b).pow(2).mean()
        if scaler is not None:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            optimizer.step()

def main(half=False):
    torch.manual_seed(0)
    x = torch.randn(32, 4)
    loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8)
    net = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = GradScaler() if half else None
    for epoch in range(2):
        train(net, loader, optimizer, scaler, log=False)

main()
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("given", ["scaler, log=False", "scaler=scaler, log=False", "log=False, scaler=scaler"])
def test_a_scaler_that_a_function_is_given(given):
    source = FUNCTION.replace("scaler, log=False", given)
    result = migrate_text(source)
    assert "scaler" not in result.text and 'precision="16-mixed" if half and' in result.text, result.text
    ours, theirs = run(result.text), run(source)
    assert ours.losses == theirs.losses and all(map(lambda p, q: p.equal(q), ours.parameters, theirs.parameters))


@pytest.mark.filterwarnings("ignore")
def test_a_function_that_is_also_called_without_keeps_its_scaler():
    source = FUNCTION.replace("    for epoch", "    train(net, loader, optimizer)\n    for epoch")
    assert "GradScaler()" in migrate_text(source).text


def test_a_module_that_a_script_imports_is_left():
    source = script("scaler = GradScaler()", SCALED.format(on=""))
    assert "GradScaler()" in migrate_text(source, is_script=False).text


@pytest.mark.parametrize("loss", ["loss + 2", "loss / 4", "-loss", "(loss if a.any() else b)"])
def test_a_scaled_expression_is_the_loss_as_a_whole(loss):
    step = SCALED.replace("scaler.scale(loss)", f"scaler.scale({loss.strip('()')})").format(on="")
    script = SCRIPT.format(before="scaler = GradScaler()", step=textwrap.indent(step, " " * 8))
    before, result = run(script), migrate_text(script)
    assert "scaler" not in result.text and run(result.text).losses == before.losses


BESIDE = SCRIPT.replace(
    "{before}", DEVICE + "net = net.to(where)\nother = torch.nn.Linear(1, 1)\nmse = torch.nn.MSELoss()"
)
ASKED = "a, b = a.to(where), b.to(where)\nwith torch.autocast(where.type):\n    z = net(a)\n"
STEPPED = "\nloss.backward()\noptimizer.step()"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "step",
    [
        ASKED + "loss = (z.float() @ b).mean() if len(b) == 1 else (z.float().t() @ b).mean()",
        ASKED + "def_sim = torch.matmul\nloss = sim(z.float(), b)",
        ASKED + "loss = mse(other(z.float()), b)",
        "a, b = other(b).detach() * a, b\n" + ASKED + "    loss = mse(z, b)",
        ASKED + "    loss = mse(z, b)\nprint((z.float().t() @ b).item())",
        ASKED + "loss = elsewhere.own_loss(z.float(), b)",
    ],
)
def test_what_is_computed_in_full_precision_beside_autocast_keeps_it(step):
    sim = "def sim(z, b):\n    return (z.t() @ b).mean()\n\n\nclass elsewhere:\n    own_loss = staticmethod(sim)\n\n\n"
    source = BESIDE.format(step=textwrap.indent(step + STEPPED, " " * 8)).replace("torch.manual", sim + "torch.manual")
    result = migrate_text(source)
    assert "torch.autocast(" in result.text and "precision=" not in result.text
    assert [n for n in result.attention if n.code == "PTM605"]
    ours, theirs = run(result.text), run(source)
    assert (ours.losses, ours.output) == (theirs.losses, theirs.output)
    assert all(map(lambda p, q: p.equal(q), ours.parameters, theirs.parameters))


LAYERS = """
import torch
from torch.utils.data import DataLoader, TensorDataset

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(4, 4)
        self.head = torch.nn.Linear(4, 1)

    def forward(self, x):
        return self.body(x)

    def told(self, i):
        return i + 1

torch.manual_seed(0)
where = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x = torch.randn(32, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)).to(where)
net = Net().to(where)
optimizer = torch.optim.SGD([*model.parameters(), *net.parameters()], lr=0.1)
for epoch in range(2):
    for i, (a, b) in enumerate(loader):
        a, b = a.to(where), b.to(where)
        with torch.autocast(where.type, dtype=torch.bfloat16):
            z = INSIDE(a)
        loss = (OUTSIDE(z.float()) - b).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    LINE
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("inside", "outside", "stays"),
    [
        ("model[0]", "model[1]", True),
        ("model[0]", "model[-1]", True),
        ("net", "net.head", True),
        ("net.body", "net.head", True),
        ("model", "torch.tanh", False),
        ("model", "net.told", False),
    ],
)
def test_a_layer_that_is_called_in_full_precision_keeps_it(inside, outside, stays):
    line = "print(net.told(i), net.load_state_dict(net.state_dict()), model[0].weight.dtype)"
    source = LAYERS.replace("INSIDE", inside).replace("OUTSIDE", outside).replace("LINE", line)
    result = migrate_text(source)
    assert ("torch.autocast(" in result.text) is stays and ("precision=" in result.text) is not stays
    ours, theirs = run(result.text), run(source)
    assert (ours.losses, ours.output) == (theirs.losses, theirs.output)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("step", ["loss = mse(z.float(), b)", "loss = (z - b).pow(2).mean()", "    loss = mse(z, b)"])
def test_a_loss_that_is_the_same_beside_autocast_takes_the_precision(step):
    source = BESIDE.format(step=textwrap.indent(ASKED + step + STEPPED, " " * 8))
    result = migrate_text(source)
    assert f"precision={ANYWHERE})" in result.text
    (told,) = result.attention
    assert "no GradScaler: the Trainer's 16-mixed scales the loss" in told.message and told.line == 17
    assert run(result.text).losses == run(source).losses


EVALUATED = """\
    net.eval()
    with torch.no_grad():
        for a, b in loader:
            with {}:
                print((net(a) - b).sum().item())
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("within", "told"), [("autocast()", False), ("torch.no_grad()", True)])
def test_an_evaluation_in_full_precision_is_told(within, told):
    source = script("scaler = GradScaler()", SCALED.format(on="")).replace(
        "    print(epoch)\n", EVALUATED.format(within)
    )
    result = migrate_text(source)
    assert 'precision="16-mixed" if' in result.text
    assert [n.line for n in result.attention if "evaluated in full precision" in n.message] == [22] * told


@pytest.mark.filterwarnings("ignore")
def test_an_evaluation_in_full_precision_keeps_it_on_the_cpu():
    step = (ASKED + "    loss = mse(z, b)" + STEPPED).replace("\nloss.b", "\nnet.train()\nloss.b")
    source = BESIDE.format(step=textwrap.indent(step, " " * 8))
    source = source.replace("    print(epoch)\n", EVALUATED.format("torch.no_grad()"))
    result = migrate_text(source)
    assert "precision=" not in result.text and run(result.text).output == run(source).output


GENERATES = """
import torch
from torch import nn

torch.manual_seed(0)
where = torch.device("cuda" if torch.cuda.is_available() else "cpu")
data = torch.utils.data.TensorDataset(torch.randn(32, 8), torch.randn(32, 8))
loader = torch.utils.data.DataLoader(data, batch_size=8)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.seen = nn.Linear(8, 8), 0

    def forward(self, x):
        return self.layer(x)

    @torch.no_grad()
    def generate(self, x):
        return self.layer(self.layer(x))

    def count(self, n):
        return self.seen + n


net = Net().to(where)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for i, (x, y) in enumerate(loader):
        x, y = x.to(where), y.to(where)
        with torch.autocast(where.type):
            loss = (net(x) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        LINE
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("line", "stays"), [("print(net.generate(x[:1]).sum().item())", True), ("print(net.count(i))", False)]
)
def test_what_a_model_generates_in_full_precision_keeps_it(line, stays):
    source = GENERATES.replace("LINE", line)
    result = migrate_text(source)
    assert ("torch.autocast(" in result.text) is stays and ("precision=" in result.text) is not stays
    ours, theirs = run(result.text), run(source)
    assert (ours.losses, ours.output) == (theirs.losses, theirs.output)
