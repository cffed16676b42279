"""T1: `self.device` of a class of the script's own goes with its last use, and what stays is told of."""

# ruff: noqa: E501
import pytest
from helpers import check, check_unchanged

CLASS = """\
import torch
class Agent:
    def __init__(self, net{parameter}):
        {given}
        self.net = net{to}
    def act(self, x):
        return self.net(x{to})
{more}a = Agent(torch.nn.Linear(1, 1){argument})
{end}
"""
TO = ".to(self.device)"
CHOSEN = 'self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")'


def source(given=CHOSEN, to=TO, parameter="", argument="", more="", end="main()"):
    text = CLASS.format(given=given, to=to, parameter=parameter, argument=argument, more=more, end=end)
    return text if given else text.replace("        \n", "")


@pytest.mark.parametrize(
    "given",
    [
        CHOSEN,
        'self.device = "cuda:0"',
        "if torch.cuda.is_available():\n            self.device = 'cuda'\n        else:\n            self.device = 'cpu'",
    ],
)
def test_it_goes_with_its_last_use(given):
    check(source(given), source("", to=""), attention=[])


@pytest.mark.parametrize(
    ("parameter", "argument"), [(", device", ", 'cuda'"), (", device='cuda'", ""), (", device=None", ", device='cuda'")]
)
def test_so_does_what_it_was_given(parameter, argument):
    check(source("self.device = device", TO, parameter, argument), source("", ""), attention=[])


def test_the_card_of_a_process():
    before = source("self.gpu_id = gpu_id", ".to(self.gpu_id)", ", gpu_id", ", 0")
    check(before, source("", ""), attention=[])


@pytest.mark.parametrize(
    ("more", "end"),
    [
        ("", "print(a.device)"),
        ("", "print(getattr(a, 'device'))"),
        ("", "print(vars(a))"),
        ("", "def show(b):\n    b.act(1)\n    return b.device\nmain()"),
        ("    def where(self):\n        return self.device\n", "main()"),
        ("class B(Agent):\n    def where(self):\n        return self.device\n", "main()"),
    ],
)
def test_it_stays_where_something_reads_it(more, end):
    before = source(more=more, end=end)
    check(before, before.replace(TO, ""), attention=["PTM102 line 4: `self.device` stays: line "])


@pytest.mark.parametrize(
    "end",
    [
        "def f(x):\n    return x.view(-1).to(x.device)\nmain()",
        "d = next(model.parameters()).device\nmain()",
        "use(y.weight.device)",
    ],
)
def test_where_a_tensor_is_is_another_matter(end):
    check(source(end=end), source("", to="", end=end), attention=[])


HANDED = """\
import torch
class Settings:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
class Agent:
    def __init__(self, settings):
{}        self.net = torch.nn.Linear(2, 2)
    def act(self, x):
        return self.net(x{})
agent = Agent(Settings())
use(agent)
"""


def test_what_takes_it_from_another_object_reads_it_no_more():
    before = HANDED.format("        self.device = settings.device\n", TO)
    check(before, HANDED.format("", ""), attention=[])
    shown = before.replace("use(agent)", "use(agent.device)")
    check(shown, shown.replace(TO, ""), attention=["PTM102 line 6: `self.device` stays: line 11 may read it"])


def test_a_class_from_elsewhere_above_may_read_it():
    before = source().replace("class Agent:", "class Agent(Base):")
    check(before, before.replace(TO, ""), attention=["PTM102 line 4: `self.device` stays: line 2 may read it"])


def test_a_library_keeps_it():
    before = "".join(source().splitlines(True)[:7])
    check(before, before.replace(TO, ""), attention=["PTM102 line 4: `self.device` stays: other files may read it"])


@pytest.mark.parametrize(
    "text",
    [
        source(to=""),  # nothing read it before
        source("self.device = load()", to=""),
        source("self.device = device", "", ", device", ", 'cuda'"),
    ],
)
def test_unchanged(text):
    check_unchanged(text, [])


def test_an_object_made_elsewhere_too_keeps_its_parameter():
    before = source("self.device = device", TO, ", device", ", 'cuda'", end="make(Agent)")
    check(before, source("", "", ", device", ", 'cuda'", end="make(Agent)"))
