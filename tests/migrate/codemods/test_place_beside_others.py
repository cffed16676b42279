# ruff: noqa: E501
"""T4: tensors that are made beside others: in lists and comprehensions, inner functions, and methods of other classes."""

import textwrap

import pytest
from helpers import check, check_unchanged, migrated, net
from ptmigrate.migrate.migrate import migrate_text

LISTS = [
    "self.layers = [nn.Linear(2, 2).cuda() for _ in range(3)]",
    'self.heads = {"a": nn.Linear(2, 2).to("cuda")}',
    "self.pair = (nn.Linear(2, 2).cuda(), 1)",
    'self.layers = [nn.Linear(2, 2, device="cuda")]',
    "self.layers = []\n        self.layers.append(nn.Linear(2, 2).cuda())",
    "layers = [nn.Linear(2, 2).cuda()]\n        self.layers = layers",
]


@pytest.mark.parametrize("kept", LISTS)
def test_modules_in_plain_lists_do_not_move_with_the_one_that_has_them(kept):
    source = f"import torch\nfrom torch import nn\nclass A(nn.Module):\n    def __init__(self):\n        {kept}\n"
    result = check_unchanged(source)
    assert [n.code for n in result.attention] == ["PTM104"] and "nn.ModuleList" in result.attention[0].message


GIVEN = [
    'self.__dict__["teacher"] = teacher.cuda()',
    'object.__setattr__(self, "teacher", teacher.cuda())',
    "self.teachers = [teacher.cuda()]",
    'self.all = {"teacher": teacher.cuda()}',
    "self.teachers = [t.cuda() for t in teacher]",
    "self.teachers = [t.cuda() for t in teacher] if torch.cuda.is_available() else teacher",
    "self.all = {k: t.cuda() for k, t in teacher.items()}",
]


@pytest.mark.parametrize("kept", GIVEN)
def test_nor_does_what_a_module_is_given_and_hides(kept):
    source = (
        f"import torch\nfrom torch import nn\nclass A(nn.Module):\n    def __init__(self, teacher):\n        {kept}\n"
    )
    result = check_unchanged(source)
    assert [n.code for n in result.attention] == ["PTM104"] and "nn.ModuleList" in result.attention[0].message


@pytest.mark.parametrize(
    "kept",
    [
        "self.teacher = teacher{}",
        "self.all = nn.ModuleList([teacher{}])",
        "self.a, self.b = teacher{}, 1",
        "self.all = nn.ModuleList([t{} for t in teacher])",
        "means = [t{}.mean() for t in teacher]",
    ],
)
def test_what_it_is_given_and_registers_does(kept):
    source = (
        "import torch\nfrom torch import nn\nclass A(nn.Module):\n    def __init__(self, teacher: nn.Module):\n        "
        + kept
        + "\n"
    )
    check(source.format(".cuda()"), source.format(""), attention=[])


def test_a_batch_that_a_method_keeps_in_a_list_is_placed():
    source = "import torch\nfrom torch import nn\nclass A(nn.Module):\n    def forward(self, x):\n        self.seen.append(x{})\n        return x\n"
    check(source.format(".cuda()"), source.format(""), attention=[])


REGISTERED = [
    "self.layers = nn.ModuleList([nn.Linear(2, 2){}])",
    'self.heads = nn.ModuleDict({{"a": nn.Linear(2, 2){}}})',
    "self.layers = nn.Sequential(*[nn.Linear(2, 2){} for _ in range(3)])",
    "layers = []\n        layers.append(nn.Linear(2, 2){})\n        self.layers = nn.Sequential(*layers)",
    "self.layers = [nn.Linear(2, 2){}]\n        self.all = nn.ModuleList(self.layers)",
    'self.layers = [nn.Linear(2, 2){}]\n        self.add_module("0", self.layers[0])',
    "self.a, self.b = nn.Linear(2, 2){}, 1",
]


@pytest.mark.parametrize("kept", REGISTERED)
def test_modules_that_are_registered_do(kept):
    source = "import torch\nfrom torch import nn\nclass A(nn.Module):\n    def __init__(self):\n        " + kept + "\n"
    check(source.format(".cuda()"), source.format(""), attention=[])


@pytest.mark.parametrize("half", ["@torch.autocast('cuda')", "@half()  # precision=16", "@cast(torch.bfloat16)"])
def test_where_something_is_half_a_count_does_not_take_its_dtype(half):
    source = f"import torch\nfrom torch import nn\nclass A(nn.Module):\n    {half}\n    def forward(self, x):\n"
    source += "        n = torch.zeros(1){}\n        return n + x.mean()\n"
    check(source.format(".cuda()"), source.format(".to(x.device)"), select="PTM104")


FORWARD = "import torch\nfrom torch import nn\nclass A(nn.Module):\n    def forward(self, ys):\n        {}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "return [torch.zeros(y.size(0)).cuda() for y in ys]",
            "return [torch.zeros(y.size(0)).to(y.device) for y in ys]",
        ),
        (
            "return {k: torch.ones(1, device='cuda') * v.view(-1) for k, v in ys.items()}",
            "return {k: torch.ones(1, device=v.device) * v.view(-1) for k, v in ys.items()}",
        ),
    ],
)
def test_made_in_a_comprehension_it_goes_where_its_variable_is(before, after):
    check(FORWARD.format(before), FORWARD.format(after), select="PTM104")


NOWHERE = ["[torch.zeros(y.shape).cuda() for y in ys]", "[torch.zeros(1).cuda() for y in ys if y['a'].size(0)]"]


@pytest.mark.parametrize("made", NOWHERE)
def test_an_array_or_a_dictionary_says_nothing_of_where(made):
    check_unchanged(f"import torch\ndef f(ys):\n    return {made}\n", ["PTM104 line 3"], select="PTM104")


INNER = "import torch\ndef f(x, g):\n    n = x.size(0)\n    def h({}):\n        return t + torch.zeros(1){}\n{}    return g(h)\n"


def test_made_in_an_inner_function_it_goes_where_the_inputs_of_the_outer_are():
    check(INNER.format("t", ".cuda()", ""), INNER.format("t", ".to(x.device)", ""), select="PTM104")


@pytest.mark.parametrize(("inner", "later"), [("t, x", ""), ("t", "    x = x.tolist()\n")])
def test_what_has_another_value_by_then_says_nothing(inner, later):
    check_unchanged(INNER.format(inner, ".cuda()", later), ["PTM104 line 5"], select="PTM104")


def test_moved_by_hand_it_goes_where_what_it_meets_is():
    before = "import torch\ndef mask(lengths, n):\n    r = torch.arange(n, device={})\n    return r[None] < lengths[:, None]\n"
    check(before.format('"cuda"'), before.format("lengths.device"), select="PTM104")


def test_what_a_function_loads_may_be_an_array():
    source = """\
import pickle
import torch


def load(path, cuda):
    x, y = tuple(pickle.load(open(path, "rb")))
    n = x.shape[1]
    labels = torch.LongTensor(y)
    if cuda:
        labels = labels.cuda()
    return labels, n
"""
    assert "x.device" not in migrated(source).text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "m = self.draw(4)\nif m is not None:\n    m = m.to('cuda')",
            "m = self.draw(4)\nif m is not None:\n    m = m.to(x.device)",
        ),
        ("m = self.draw(4)\nm = m.cuda() if m is not None else m", "m = self.draw(4)\nm = m.to(x.device) if m is not None else m"),
    ],
)  # fmt: skip
def test_a_condition_that_says_whether_there_is_one_stays(before, after):
    draw = "    def draw(self, n):\n        if n % 2:\n            return None\n        return torch.ones(n)\n"
    check(net(*before.splitlines()) + draw, net(*after.splitlines()) + draw, select="PTM104")


OF_AUTOGRAD = """
import torch
class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x{more}):
        return x * torch.full((3,), 2.){forward}
    @staticmethod
    def backward(ctx, grad):
        return grad * torch.full((3,), 2.){backward}
"""


def test_functions_of_autograd_are_given_tensors():
    check(
        OF_AUTOGRAD.format(more="", forward=".cuda()", backward=".to('cuda')"),
        OF_AUTOGRAD.format(more="", forward=".to(x.device)", backward=".to(grad.device)"),
        select="PTM104",
    )


def test_which_of_several_inputs_is_a_tensor_does_not_show():
    code = OF_AUTOGRAD.format(more=", y", forward=".cuda()", backward="")
    check_unchanged(code, attention=["PTM104 line 5"], select="PTM104")


STEPPED = """\
import torch
from torch import nn
from torch.utils.data import DataLoader
device = torch.device('cuda')
net = nn.Linear(4, 4).to(device)

class Exp:
    def run(self, loader, opt):
        for x, y in loader:
            loss = self.process(x, y)
            loss.backward()
            opt.step()

    def process(self, x, y):
        x = x.float().to(device)
        y = y.float()
{}
        z = torch.cat([y[:, :3], z], dim=1).to(device)
        return (net(x) - net(z)).sum()

    def other(self, y):
        z = torch.zeros(2, 3)
        z = torch.cat([y[:, :3], z], dim=1)
        return z.sum()
"""


@pytest.mark.parametrize(
    ("made", "placed"),
    [
        ("z = torch.zeros(y.shape[0], 3)", "z = torch.zeros(y.shape[0], 3, device=y.device)"),
        ("z = torch.zeros([y.shape[0], 3]).float()", "z = torch.zeros([y.shape[0], 3], device=y.device).float()"),
        (
            "if net:\n    z = torch.zeros(2, 3)\nelif device:\n    z = torch.ones(2, 3)",
            "if net:\n    z = torch.zeros(2, 3, device=y.device)\nelif device:\n    z = torch.ones(2, 3, device=y.device)",
        ),
    ],
)
def test_what_meets_the_batch_in_a_method_before_it_moves(made, placed):
    before = STEPPED.format(textwrap.indent(made, " " * 8))
    result = migrate_text(before).text
    assert textwrap.indent(placed, " " * 8) + "\n        z = torch.cat([y[:, :3], z], dim=1).to(x.device)" in result
    assert "z = torch.zeros(2, 3)\n        z = torch.cat" in result  # no step calls other()
    head, functions = before.split("class Exp:\n")
    functions = textwrap.dedent(functions).replace("self.process", "process").replace("self, ", "")
    assert textwrap.indent(placed, "    ") in migrate_text(head + functions).text


@pytest.mark.parametrize(
    "made",
    [
        "z = torch.zeros(2, 3)\nz = torch.ones(2, 3).to(device)",  # another by then
        "z = torch.zeros(2, 3).to(device)",
        "z = torch.zeros(2, 3)\nfor i in x:\n    z = i",
    ],
)
def test_what_does_not_meet_it_in_a_method(made):
    assert "device=y.device" not in migrate_text(STEPPED.format(textwrap.indent(made, " " * 8))).text


PAIR = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self, opt):
        super().__init__()
        self.opt = opt
        self.fc = nn.Linear(4, 3)
    def forward(self, inputs):
        x, m = inputs[0], inputs[1]
        n = torch.tensor([len(m)]).to({})
        return self.fc(x) / n
"""


def test_what_is_taken_apart_may_be_a_list_and_a_weight_is_none():
    check(PAIR.format("self.opt.device"), PAIR.format("self.fc.weight.device"), select="PTM104")


@pytest.mark.parametrize(
    ("method", "read"),
    [
        ("def step(self, x):", "x.astype('float32')"),
        ("def step(self, x):", "x[:, ::-1]"),
        ("def step(self, x: np.ndarray):", "x"),
        ("def step(self, x: 'np.ndarray | None'):", "x"),
        ("def step(self, x):\n        '''x (np.ndarray): an image'''", "x"),
        ("def step(self, x):\n        '''x: np.ndarray'''", "x"),
    ],
)
def test_what_is_said_or_used_as_an_array_is_on_no_device(method, read):
    lines = ["h, w = x.shape[:2]", f"y = torch.as_tensor(self.scaled({read}))", "return y.to('cuda')"]
    assert "x.device" not in migrate_text(net(*lines, method=method, base="object")).text


def test_what_is_said_to_be_a_tensor_still_says_where():
    method = "def step(self, x: torch.Tensor):\n        '''x (Tensor): an image, and no ndarray'''"
    text = net("h, w = x.shape[:2]\n        return torch.ones(h, w).cuda()", method=method, base="object")
    assert "torch.ones(h, w).type_as(x)" in migrate_text(text).text


@pytest.mark.parametrize("made", ["torch.randn((1, *x))", "torch.randn(1, *x)"])
def test_what_sizes_are_taken_from_is_no_tensor(made):
    check_unchanged(net(f"return self.conv({made})"), ["PTM104 line 6"], select="PTM104")


def test_sizes_with_a_star_are_those_of_an_input():
    before = net("return self.conv(x) + torch.randn(1, *x.shape[1:])")
    check(before, before.replace("[1:])", "[1:], device=x.device)"), select="PTM104")
