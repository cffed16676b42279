"""Where the user asks for the CPU, by whatever the script asks him, the Trainer stays there though there is a card."""

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text
from ptmigrate.migrate.project import collect, migrate_all

from tests.migrate.running import check_on_card, check_project_on_card

SCRIPT = """
import argparse
import sys
import torch
{before}
torch.manual_seed(0)
net = torch.nn.Linear(2, 1)
{moves}
opt = torch.optim.SGD(net.parameters(), 0.1)
for epoch in range(2):
    for x, y in torch.utils.data.DataLoader([(torch.ones(2) * i, torch.ones(1)) for i in range(4)], 2):
        {batch}
        loss = (net(x) - y).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(loss.is_cuda)
"""
ON = "if {test}:\n    net = net.cuda()"
TO = "x, y = x.to({device}), y.to({device})"
OPTION = "p = argparse.ArgumentParser()\np.add_argument({})\nargs = p.parse_args()\n"
IDS = "[int(s) for s in args.ids.split(',') if int(s) >= 0]"


def flagged(before, test):
    return SCRIPT.format(before=before, moves=ON.format(test=test), batch=f"if {test}: x, y = x.cuda(), y.cuda()")


def placed(before, device):
    return SCRIPT.format(before=before, moves=f"net = net.to({device})", batch=TO.format(device=device))


AVAILABLE = "torch.cuda.is_available()"
ASKED = {
    "a positional option": (placed(OPTION.format("'device'"), "args.device"), ["cpu"], ["cuda"]),
    "a word": (placed("device = sys.argv[1] if len(sys.argv) > 1 else 'cuda'", "device"), ["cpu"], []),
    "a constant": (flagged("USE_CUDA = False", "USE_CUDA"), [], None),
    "a constant that is true": (flagged("USE_CUDA = True", f"USE_CUDA and {AVAILABLE}"), None, []),
    "a constant of a device": (placed("ON = False\ndevice = 'cuda' if ON else 'cpu'", "device"), [], None),
    "numbers": (flagged(OPTION.format("'--ids', default='0'") + f"ids = {IDS}", f"ids and {AVAILABLE}"),
                ["--ids", "-1"], []),
    "how many numbers": (flagged(OPTION.format("'--ids', default='0'") + f"ids = {IDS}", "len(ids) > 0"),
                         ["--ids", "-1"], []),
    "a function": (flagged(OPTION.format("'--cpu', action='store_true'")
                           + f"def on():\n    return {AVAILABLE} and not args.cpu", "on()"), ["--cpu"], []),
}  # fmt: skip


@pytest.mark.parametrize("asked", ASKED)
def test_the_user_s_choice_is_the_trainer_s(asked, tmp_path):
    text, cpu, card = ASKED[asked]
    for args in (cpu, card):
        if args is not None:
            check_on_card(tmp_path, text, *args)
    assert not [n for n in migrate_text(text).attention if n.code == "PTM102"]


def test_a_branch_with_another_beside_it(tmp_path):
    moves = "if torch.cuda.is_available() and not debug:\n    net = net.cuda()\nelif debug:\n    print('debug')"
    batch = "if torch.cuda.is_available() and not debug: x, y = x.cuda(), y.cuda()"
    text = SCRIPT.format(before="debug = '--debug' in sys.argv", moves=moves, batch=batch)
    check_on_card(tmp_path, text, "--debug")
    check_on_card(tmp_path, text)


IN_FUNCTION = """
import torch
def train(loader, on):
    net = torch.nn.Linear(2, 1)
    opt = torch.optim.SGD(net.parameters(), 0.1)
    step(net, loader, opt, on)
def step(net, loader, opt, cuda):
    if cuda:
        net.cuda()
    for x, y in loader:
        if cuda:
            x, y = x.cuda(), y.cuda()
        loss = (net(x) - y).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(loss.is_cuda)
train(torch.utils.data.DataLoader([(torch.ones(2), torch.ones(1))] * 4, 2), {})
"""


@pytest.mark.parametrize("on", [True, False])
def test_a_parameter_that_the_trainer_asks_stays(on, tmp_path):
    text = check_on_card(tmp_path, IN_FUNCTION.format(on))
    assert 'accelerator="auto" if cuda else "cpu"' in text and not lost(migrate_text(IN_FUNCTION.format(on)))


MAKES = """
import torch
def make(on):
    net = torch.nn.Linear(2, 1)
    if on:
        net.cuda()
    return net
{guard}
    net = make(input() == 'y')
    opt = torch.optim.SGD(net.parameters(), 0.1)
    for x, y in torch.utils.data.DataLoader([(torch.ones(2), torch.ones(1))] * 4, 2):
        x, y = x.to(net.weight.device), y.to(net.weight.device)
        loss = (net(x) - y).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
"""


def lost(result):
    return [n for n in result.attention if "is not known where the Trainer is made" in n.message]


@pytest.mark.parametrize("guard", ["if __name__ == '__main__':", "def main():"])
def test_a_choice_that_is_not_known_where_the_trainer_is_made_is_told_of(guard):
    result = migrate_text(MAKES.format(guard=guard) + ("main()\n" if "main()" in guard else ""))
    assert lost(result) and "accelerator=" not in result.text


def test_what_runs_the_script_is_no_choice():
    text = SCRIPT.format(
        before="", moves="if __name__ == '__main__':\n    net.to('cuda')", batch=TO.format(device="'cuda'")
    )
    result = migrate_text(text)
    assert "accelerator=" not in result.text and not lost(result)


ANY = '"cpu" if torch.device(args.device).type == "cpu" else "auto"'


@pytest.mark.parametrize(
    ("line", "asks"),
    [
        ("'--device', default='cuda'", ANY),  # a card where nothing is typed: whatever the machine has
        ("'--device', default='cuda:0'", ANY),
        ("'--device', default='cpu'", "torch.device(args.device).type"),
        ("'--device', default='cuda' if torch.cuda.is_available() else 'cpu'", "torch.device(args.device).type"),
    ],
)
@pytest.mark.parametrize("value", ["args.device", "torch.device(args.device)"])
def test_a_device_that_is_typed_is_the_trainers_and_its_option_stays(line, asks, value):
    result = migrate_text(placed(OPTION.format(line), value))
    assert f"accelerator={asks}" in result.text and OPTION.format(line).splitlines()[-1] in result.text
    assert not [n for n in result.attention if n.code == "PTM102"]


HANDED = """
import argparse
import torch
from torch import nn


def place(net, device):
    return net.to(device)


def take(batch, device):
    return [t.to(device) for t in batch]


p = argparse.ArgumentParser()
p.add_argument("--device", LINE)
args = p.parse_args()
BEFORE
net = place(nn.Linear(2, 1), args.device)
opt = torch.optim.SGD(net.parameters(), 0.1)
for epoch in range(2):
    for batch in torch.utils.data.DataLoader([(torch.ones(2), torch.ones(1))] * 4, 2):
        x, y = take(batch, args.device)
        loss = (net(x) - y).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(loss.item())
"""
KEEPS = "class Box:\n    def __init__(self, c):\n        self.device = c.device\nbox = Box(args)\nprint(box.device)"
ANEW = "args.device = args.device if args.device else 'cpu'"


@pytest.mark.parametrize(
    ("line", "before", "asks"),
    [
        ("default='cpu'", "", "torch.device(args.device).type"),
        ("default='cuda'", "", ANY),
        ("default='cpu'", KEEPS, "torch.device(args.device).type"),
        ("default='cpu'", ANEW, None),
        ("type=int, default=0", "", None),
        ("help='where'", "", None),
    ],
)
def test_a_device_that_is_typed_and_that_functions_hand_on_is_the_trainers(line, before, asks):
    result = migrate_text(HANDED.replace("LINE", line).replace("BEFORE", before))
    assert f"accelerator={asks}" in result.text if asks is not None else "accelerator=" not in result.text


GIVEN = """
import argparse
import torch
from torch import nn


class Solver:
    def __init__(self, device):
        self.device = device
        self.net = nn.Linear(2, 1).to(self.device)

    def fit(self):
        train(self.net, self.device)

    def solve(self):
        opt = torch.optim.SGD(self.net.parameters(), 0.1)
        for epoch in range(2):
            for x, y in torch.utils.data.DataLoader([(torch.ones(2), torch.ones(1))] * 4, 2):
                loss = (self.net(x.to(self.device)) - y.to(self.device)).pow(2).mean()
                opt.zero_grad()
                loss.backward()
                opt.step()
            print(loss.item())


def train(net, device):
    net.to(device)
    opt = torch.optim.SGD(net.parameters(), 0.1)
    for epoch in range(2):
        for x, y in torch.utils.data.DataLoader([(torch.ones(2), torch.ones(1))] * 4, 2):
            loss = (net(x.to(device)) - y.to(device)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(loss.item())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--no-cuda", action="store_true")
    args = parser.parse_args()
    CALL


if __name__ == "__main__":
    main()
"""
FLAG = "torch.device('cpu' if args.no_cuda else 'cuda')"


@pytest.mark.parametrize("value", ["args.device", "torch.device(args.device)", FLAG])
@pytest.mark.parametrize(
    ("call", "gone", "holds"),
    [
        ("train(nn.Linear(2, 1), VALUE)", "solve", "device"),
        ("Solver(VALUE).solve()", "train", "self.device"),
    ],
)
def test_the_device_that_a_function_has_decides_where_the_options_are_not_known(value, call, gone, holds):
    text = GIVEN.replace("CALL", call.replace("VALUE", value))
    head, _, rest = text.partition("class Solver" if gone == "solve" else "def train(")
    text = head + rest.partition("\n\n\n")[2]
    if gone == "train":
        text = text.replace("    def fit(self):\n        train(self.net, self.device)\n\n", "")
    result = migrate_text(text)
    assert f'accelerator="cpu" if str({holds}) == "cpu" else "auto"' in result.text and not lost(result)
    assert call.replace("VALUE", value) in result.text


def test_the_options_that_the_object_keeps_have_the_device():
    text = GIVEN.replace("CALL", "args.device = VALUE\n    Solver(args).solve()".replace("VALUE", FLAG))
    text = text.replace("self.device = device", "self.args = device").replace("self.device", "self.args.device")
    text = text.replace("    def fit(self):\n        train(self.net, self.args.device)\n\n", "")
    head, _, rest = text.partition("def train(")
    result = migrate_text(head + rest.partition("\n\n\n")[2])
    assert 'accelerator="cpu" if str(self.args.device) == "cpu" else "auto"' in result.text and not lost(result)


ENGINE = """
from types import SimpleNamespace
import torch
from torch import nn
from torch.utils.data import DataLoader


class Engine:
    def __init__(self, model, cfg):
        self.device = torch.device(cfg.device)
        self.model = model.to(self.device)
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def fit(self, train):
        for epoch in range(2):
            for x in train:
                loss = self.model(x.to(self.device)).pow(2).mean()
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()


where = SimpleNamespace(device="cuda" if torch.cuda.is_available() else "cpu")
cfg = SimpleNamespace(train=where, device=where.device)
Engine(nn.Linear(4, 3), GIVEN).fit(DataLoader(torch.randn(18, 4), 5))
"""


@pytest.mark.parametrize("given", ["cfg.train", "cfg=cfg.train", "where"])
def test_a_name_that_stands_for_something_else_where_the_trainer_is_made(given):
    """`cfg` is known there, and has another device or none; the object's own is what it was given."""
    result = migrate_text(ENGINE.replace("GIVEN", given))
    assert 'accelerator="cpu" if str(self.device) == "cpu" else "auto"' in result.text and not lost(result)


@pytest.mark.parametrize("given", ["cfg", "cfg=cfg"])
def test_a_name_that_stands_for_the_same(given):
    result = migrate_text(ENGINE.replace("GIVEN", given))
    assert not lost(result) and "accelerator=torch.device(cfg.device).type" in result.text


ARGS = """\
import argparse
import torch


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-cuda", action="store_true")
    args = parser.parse_args(GIVEN)
    args.cuda = not args.no_cuda and torch.cuda.is_available()
    return args
"""
MODELS = """\
import torch.nn as nn


def get_model(n, cuda=True):
    model = nn.Linear(n, 3)
    if cuda: model.cuda()
    return model


class Holder:
    def __init__(self, n, cuda):
        self.model = nn.Linear(n, 3)
        if cuda:
            self.model = self.model.cuda()
"""
MAIN = """\
import torch
from args import get_args
from models import Holder, get_model

args = get_args()
torch.manual_seed(0)
x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
if FLAG:
    x, y = x.cuda(), y.cuda()
model = MADE
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
for epoch in range(3):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    print(loss.item(), next(model.parameters()).device.type)
"""
MADE = ["get_model(4, args.cuda)", "get_model(4, cuda=args.cuda)", "Holder(4, args.cuda).model"]


@pytest.mark.parametrize("given", ['["--no-cuda"]', "[]"])
@pytest.mark.parametrize("made", MADE)
def test_it_is_given_to_another_file_that_moves(tmp_path, made, given):
    main = MAIN.replace("MADE", made).replace("if FLAG:\n    x, y = x.cuda(), y.cuda()\n", "")
    main = main.replace(
        "model(x), y)", "model(x.to(next(model.parameters()).device)), y.to(next(model.parameters()).device))"
    )
    text = check_project_on_card(tmp_path, main=main, models=MODELS, args=ARGS.replace("GIVEN", given))["main"]
    assert 'accelerator="auto" if args.cuda else "cpu"' in text


def test_what_is_moved_in_any_case_asks_for_nothing(tmp_path):
    models = MODELS.replace("    if cuda: model.cuda()\n", "    model.cuda()\n    if cuda: model.float()\n")
    main = MAIN.replace("MADE", MADE[0]).replace("if FLAG:", "if torch.cuda.is_available():")
    text = check_project_on_card(tmp_path, main=main, models=models, args=ARGS.replace("GIVEN", "[]"))["main"]
    assert "accelerator" not in text


TEACHER = """\
from torch import nn


def teacher(cuda=False):
    made = nn.Linear(4, 3)
    if cuda: made.cuda()
    return made


def student(cuda=False):
    made = nn.Linear(4, 3)
    if cuda: made.cuda()
    return made
"""
OWN = 'MADE.to("cuda" if torch.cuda.is_available() else "cpu")'


@pytest.mark.parametrize(
    "made",
    [
        OWN.replace("MADE", "torch.nn.Linear(4, 3)") + "; other = teacher(args.no_cuda)",
        "student(args.cuda); other = teacher(args.no_cuda)",
    ],
)
def test_a_flag_of_something_else_chooses_nothing(tmp_path, made):
    main = MAIN.replace("MADE", made).replace("if FLAG:\n    x, y = x.cuda(), y.cuda()\n", "")
    main = main.replace("import Holder, get_model", "import Holder, get_model\nfrom others import student, teacher")
    for name, text in (("main", main), ("models", MODELS), ("others", TEACHER), ("args", ARGS.replace("GIVEN", "[]"))):
        (tmp_path / f"{name}.py").write_text(text)
    done = {m.path.stem: m.data.decode() for m in migrate_all(collect([tmp_path / "main.py"]), Options())}
    assert "Trainer(max_epochs=3)" in done["main"]


def test_a_parameter_that_is_given_another_value_chooses_nothing(tmp_path):
    models = MODELS.replace(
        "    if cuda: model.cuda()\n", "    cuda = torch.cuda.is_available()\n    if cuda: model.cuda()\n"
    )
    main = MAIN.replace("MADE", MADE[0]).replace("if FLAG:\n    x, y = x.cuda(), y.cuda()\n", "")
    for name, text in (("main", main), ("models", f"import torch\n{models}"), ("args", ARGS.replace("GIVEN", "[]"))):
        (tmp_path / f"{name}.py").write_text(text)
    done = {m.path.stem: m.data.decode() for m in migrate_all(collect([tmp_path / "main.py"]), Options())}
    assert "Trainer(max_epochs=3)" in done["main"]
