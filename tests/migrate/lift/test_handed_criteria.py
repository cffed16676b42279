"""A criterion that a training function is given, or takes out of a dictionary that it is given, is followed."""

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text
from ptmigrate.migrate.project import collect, migrate_all

SCRIPT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Pairs(nn.Module):
    def forward(self, a, b):
        return ((a @ a.t()) - (b @ b.t())).pow(2).mean()


class Apart(nn.Module):
    def forward(self, a, b):
        return (a - b).pow(2).mean()


def train(loader, nets, optimizer, given):
    {taken}
    for x, y in loader:
        loss = {called}(nets['net'](x), nets['fixed'](x).detach())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main(mode):
    torch.manual_seed(0)
    nets = {{'net': nn.Linear(4, 2), 'fixed': nn.Linear(4, 2)}}
    {made}
    optimizer = torch.optim.SGD(nets['net'].parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(torch.randn(32, 4), torch.zeros(32)), batch_size=8)
    for epoch in range(2):
        train(loader, nets, optimizer, {handed})


main('pairs')
"""
CHOSEN = "if mode == 'pairs':\n        made = Pairs()\n    elif mode == 'apart':\n        made = Apart()"
FORMS = {
    "a parameter": ("pass", "given", "made = Pairs()", "made"),
    "what is made where it is handed on": ("pass", "given", "pass", "Pairs()"),
    "one of several": ("pass", "given", CHOSEN, "made"),
    "one of two": ("pass", "given", "made = Pairs() if mode == 'pairs' else Apart()", "made"),
    "an entry": ("pass", "given['kd']", "made = {'kd': Pairs(), 'other': Apart()}", "made"),
    "an entry of a name": ("pass", "given['kd']", "made = Pairs()\n    held = {'kd': made}", "held"),
    "a name for an entry": ("kd = given['kd']", "kd", "made = Pairs()\n    held = dict(kd=made)", "held"),
    "an entry of a name for itself": ("pass", "given['kd']", "held = {'kd': Pairs()}\n    held = held", "held"),
    "a name for a parameter": ("kd = given", "kd", "made = Pairs()", "made"),
}


def whole(form):
    taken, called, made, handed = form
    result = migrate_text(SCRIPT.format(taken=taken, called=called, made=made, handed=handed))
    told = [n for n in result.attention if "mixes the samples of a batch: `a @ a.t()` in Pairs.forward()" in n.message]
    assert ("divide_batches = False" in result.text) == bool(told) and result.plan in ("module", "manual")
    return bool(told)


@pytest.mark.parametrize("form", FORMS)
def test_one_that_mixes_the_samples_needs_them_whole(form):
    assert whole(FORMS[form])


@pytest.mark.parametrize("form", FORMS)
def test_one_that_does_not_is_divided(form):
    taken, called, made, handed = (text.replace("Pairs()", "Apart()") for text in FORMS[form])
    assert not whole((taken, called, made, handed))


def test_the_entry_that_is_called_alone_counts():
    assert not whole(("pass", "given['other']", "made = {'kd': Pairs(), 'other': Apart()}", "made"))


UNSHOWN = [
    ("box = Apart()\n    box.kept = Pairs()\n    held = {'kd': box.kept}", "held"),
    ("box = Apart()\n    box.kept = {'kd': Pairs()}\n    held = box.kept", "held"),
    ("more = {'kd': Pairs()}\n    held = {'other': Apart(), **more}", "held"),
    ("more = {'kd': Pairs()}\n    held = dict(other=Apart(), **more)", "held"),
    ("more = {'kd': Pairs()}\n    held = dict(more)", "held"),
]


@pytest.mark.parametrize(("made", "handed"), UNSHOWN)
def test_what_is_not_all_written_out_takes_whole_batches(made, handed):
    """It was taken for what the rest of the dictionary shows, and its samples were mixed within shares."""
    result = migrate_text(SCRIPT.format(taken="pass", called="given['kd']", made=made, handed=handed))
    assert "divide_batches = False" in result.text


def test_what_a_function_makes_of_it_does_not_show():
    text = SCRIPT.format(taken="pass", called="given['kd']", made="made = build(kd=Apart())", handed="made")
    assert [n for n in migrate_text(text).attention if "nothing shows whether" in n.message]


def test_a_function_that_hands_on_to_itself_ends():
    text = SCRIPT.format(taken="pass", called="given", made="made = Pairs()", handed="made")
    again = "def again(f, a, b, n=1):\n    return again(f, a, b, n - 1) if n else f(a, b)\n\n\ndef train("
    text = text.replace("def train(", again).replace("given(nets['net']", "again(given, nets['net']")
    assert "divide_batches = False" in migrate_text(text).text


PLAIN = """
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def pairs(a, b):
    return ((a @ a.t()) - (b @ b.t())).pow(2).mean()


def apart(a, b):
    return (a - b).pow(2).mean()


"""
TRAINS = """
loss_fn = make_loss('pairs')
net = nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in DataLoader(TensorDataset(torch.randn(32, 4), torch.zeros(32, 2)), batch_size=8):
        loss = loss_fn(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
INNER = "def make_loss(kind):\n    def inner(a, b):\n        return F.mse_loss(a, b) + {}(a, b)\n    return inner\n"
OF_TWO = """\
def make_loss(kind):
    if kind == 'apart':
        def inner(a, b):
            return apart(a, b)
    else:
        def inner(a, b):
            return {}(a, b)
    return inner
"""
CLOSURES = {
    "a function": INNER,
    "one of two": OF_TWO,
    "a lambda": "def make_loss(kind):\n    return lambda a, b: {}(a, b)\n",
    "one of the file": "def make_loss(kind):\n    return {}\n",
    "partial": "import functools\ndef make_loss(kind):\n    return functools.partial({})\n",
    "out of a table": "TABLE = dict(other=apart)\nTABLE = {{'pairs': {}, 'other': apart}}\n\n\n"
    "def make_loss(kind):\n    return TABLE[kind]\n",
    "by a name": INNER.replace("return inner", "loss = inner\n    return loss"),
    "beside another": INNER.replace("return inner", "return inner, 1").replace("make_loss", "make") + "\n\n"
    "def make_loss(kind):\n    loss, _ = make(kind)\n    return loss\n",
}


@pytest.mark.parametrize("name, is_whole", [("pairs", True), ("apart", False)])
@pytest.mark.parametrize("made", CLOSURES.values(), ids=CLOSURES.keys())
def test_a_function_that_a_function_hands_back_is_followed(tmp_path, made, name, is_whole):
    """As the losses of re-identification are made; of another file and of this one."""
    made = made.format(name)
    result = migrate_text(PLAIN + made + TRAINS)
    assert ("divide_batches = False" in result.text) is is_whole
    (tmp_path / "losses.py").write_text(PLAIN + made)
    (tmp_path / "train.py").write_text(PLAIN.partition("def pairs")[0] + "from losses import make_loss\n" + TRAINS)
    done = {m.path.name: m.result for m in migrate_all(collect([tmp_path / "train.py"]), Options())}
    assert ("divide_batches = False" in done["train.py"].text) is is_whole
    assert not [n for n in done["train.py"].attention if "nothing shows whether" in n.message]
