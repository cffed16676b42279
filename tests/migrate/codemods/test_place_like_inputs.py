# ruff: noqa: E501

import pytest
from helpers import check, check_unchanged, net
from ptmigrate.migrate.migrate import migrate_text
from ptmigrate.migrate.result import Options

LEFT = Options(ignore=("PTM115",))  # what is left as it is, and told of


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("z = torch.zeros(2, 3).cuda(0)", "z = torch.zeros(2, 3).type_as(x)"),
        ("z = torch.Tensor(2, 3)\nz = z.cuda(0)", "z = torch.Tensor(2, 3)\nz = z.type_as(x)"),
        ("z = torch.randn(2).to('cuda', non_blocking=True)", "z = torch.randn(2).type_as(x)"),
        ("z = torch.arange(3).cuda()", "z = torch.arange(3).to(x.device)"),
        ("z = torch.tensor([1, 2]).to('cuda:0')", "z = torch.tensor([1, 2]).to(x.device)"),
        ("z = torch.zeros(2, dtype=torch.long).cuda()", "z = torch.zeros(2, dtype=torch.long).to(x.device)"),
        ("z = torch.zeros(2).long().cuda()", "z = torch.zeros(2).long().to(x.device)"),
        ("z = torch.zeros(2, device='cuda')", "z = torch.zeros(2, device=x.device)"),
        ("z = torch.zeros(2).cuda() if torch.cuda.is_available() else torch.zeros(2)", "z = torch.zeros(2).type_as(x)"),
        ("z = (torch.ones(2) if not self.gpu else torch.ones(2).to('cuda'))", "z = (torch.ones(2).type_as(x))"),
        ("z = torch.arange(x.size(1)).unsqueeze(0)", "z = torch.arange(x.size(1), device=x.device).unsqueeze(0)"),
        ("z = torch.ones(3, 3).tril().view(1, 3, 3)\nn = z.size(0)", "z = torch.ones(3, 3, device=x.device).tril().view(1, 3, 3)\nn = z.size(0)"),
        ("z = torch.triu(torch.ones(3, 3), diagonal=1).bool()", "z = torch.triu(torch.ones(3, 3, device=x.device), diagonal=1).bool()"),
        ("z = torch.zeros(2, device=self.rank)", "z = torch.zeros(2, device=x.device)"),
        ("z = torch.zeros(2, device=0)", "z = torch.zeros(2, device=x.device)"),
        ("z = torch.zeros(2).cuda()\nreturn self.embed(x) + z", "z = torch.zeros(2).to(x.device)\nreturn self.embed(x) + z"),
    ],
)  # fmt: skip
def test_made_in_forward(before, after):
    check(net(*before.splitlines()), net(*after.splitlines()), select="PTM104")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("z = torch.zeros(2).cuda()\nreturn self.net(src.size(0)) + z", "z = torch.zeros(2).to(src.device)\nreturn self.net(src.size(0)) + z"),
        ("z = torch.zeros(2).cuda()\nreturn table[src.view(-1)] + z", "z = torch.zeros(2).to(src.device)\nreturn table[src.view(-1)] + z"),
        ("z = torch.zeros(2).to('cuda', torch.long)\nreturn src.view(-1) + z", "z = torch.zeros(2).to(src.device, torch.long)\nreturn src.view(-1) + z"),
        ("z = torch.arange(3).repeat(src.size(0), 1).to('cuda')\nreturn z", "z = torch.arange(3).repeat(src.size(0), 1).to(src.device)\nreturn z"),
    ],
)  # fmt: skip
def test_a_name_of_whole_numbers_keeps_the_dtype(before, after):
    method = {"method": "def forward(self, src):"}
    check(net(*before.splitlines(), **method), net(*after.splitlines(), **method), select="PTM104")


@pytest.mark.parametrize(
    ("before", "where"),
    [
        ("n = len(a)\ny = torch.arange(n).cuda()\nreturn a @ b.T, y", "a"),
        ("n = len(b)\ny = torch.arange(n).cuda()\nreturn torch.eye(3) @ b, y", "b"),
        ("y = torch.arange(len(a)).cuda()\nreturn torch.nn.functional.normalize(a), y", "a"),
        ("y = torch.arange(len(a)).cuda()\nreturn torch.nn.functional.dropout(torch.ones(3), a), y", ""),  # a number
        ("y = torch.arange(len(a)).cuda()\nreturn a * b, y", ""),
    ],
)  # fmt: skip
def test_one_of_two_that_only_meets_others(before, where):
    text = net(*before.splitlines(), method="def forward(self, a, b):")
    assert (f".to({where}.device)" in migrate_text(text, LEFT).text) is bool(where)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = batch['x']\ny = torch.ones(x.size(0)).cuda()", "x = batch['x']\ny = torch.ones(x.size(0)).type_as(x)"),
        ("a = self.fc(batch[0])\ny = torch.ones(a.size(0), device='cuda')", "a = self.fc(batch[0])\ny = torch.ones(a.size(0), device=a.device)"),
    ],
)  # fmt: skip
def test_like_a_value_that_was_worked_out_before(before, after):
    method = {"method": "def forward(self, batch):"}
    check(net(*before.splitlines(), **method), net(*after.splitlines(), **method), select="PTM104")


@pytest.mark.parametrize("over", ["loader", "enumerate(tqdm(train_loader), 1)"])
@pytest.mark.parametrize(
    ("made", "placed"),
    [
        ("torch.zeros(n).cuda()", "torch.zeros(n).type_as(x)"),
        ("torch.arange(n).cuda()", "torch.arange(n).to(x.device)"),
        ("torch.ones(n, device='cuda')", "torch.ones(n, device=x.device)"),
    ],
)
def test_in_a_loop_over_batches(over, made, placed):
    target = "i, (x, y)" if "enum" in over else "x, y"
    loop = f"import torch\nfor {target} in {over}:\n    n = x.size(0)\n    z = {{}}\n    loss = f(x, y, z)\n"
    check(loop.format(made), loop.format(placed), select="PTM104")
    taken = loop.replace(target, "b").replace("    n =", "    x, y = b\n    n =")
    check(taken.format(made), taken.format(placed), select="PTM104")


@pytest.mark.parametrize(
    "source",
    [
        "for x, y in zip(a, b):\n    z = torch.zeros(x.size(0)).cuda()",
        "for i in range(3):\n    z = torch.zeros(i.size(0)).cuda()",
        "for x, y in loader:\n    z = torch.zeros(y).cuda()",
        "for b in loader:\n    z = torch.zeros(b['x'].size(0)).cuda()",
        "for b in loader:\n    z = torch.zeros(b.num_graphs, b.size(0)).cuda()",
        "for x in loader:\n    f = lambda n: torch.zeros(n, x.size(0)).cuda()",
    ],
)
def test_a_loop_that_shows_no_tensor_of_a_batch(source):
    check_unchanged(f"import torch\n{source}\n", ["PTM104 line 3"], select="PTM104")


def test_by_keyword_only():
    method = {"method": "def forward(self, *, x, y):"}
    check(
        net("return x.float() + torch.ones(2).cuda()", **method),
        net("return x.float() + torch.ones(2).to(x.device)", **method),
        select="PTM104",
    )


@pytest.mark.parametrize(
    ("layer", "where"),
    [
        ("nn.Linear(2, 2)", "self.a.weight.device"),
        ("nn.Parameter(torch.zeros(2))", "self.a.device"),
        ("nn.LSTM(2, 2)", "self.a.weight_ih_l0.device"),
    ],
)
def test_where_nothing_comes_in_the_modules_own_parameter_tells(layer, where):
    """Not `next(self.parameters())`, which a replica of DataParallel does not have."""
    head = (
        f"import torch\nimport torch.nn as nn\nclass A(nn.Module):\n    def __init__(self):\n        self.a = {layer}\n"
    )
    method = "    def sample(self, n):\n        return torch.randn(n, 2).to({})\n"
    check(head + method.format("'cuda'"), head + method.format(where), select="PTM104")


SET_UP = """import torch
import torch.nn as nn
class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2)
        self.start()
    def start(self):
        self.alphas = {}
{}"""
ALPHAS = "torch.randn(2).cuda().requires_grad_()"


def test_what_a_method_of_the_constructor_makes_stays_where_it_is_said_to_be():
    """The module is not placed yet, and does not take it along."""
    check_unchanged(SET_UP.format(ALPHAS, ""), ["PTM104 line "])


@pytest.mark.parametrize(
    "more",
    [
        "        return self.alphas\n",
        "    def again(self):\n        self.start()\n",
        "def again(net):\n    net.start()\n",
    ],
)
def test_what_is_made_again_later_on_goes_where_the_module_is(more):
    new = "torch.randn(2).to(self.a.weight.device).requires_grad_()"
    check(SET_UP.format(ALPHAS, more), SET_UP.format(new, more), select="PTM104")


NEW = """import torch.nn as nn
class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2)
    def new(self):
        {}
"""


@pytest.mark.parametrize("lines", ["return A().cuda()", "net = A().cuda()\n        return net", "return [A().cuda()]"])
def test_a_network_that_another_gives_back_is_placed_by_nothing(lines):
    check_unchanged(NEW.format(lines), ["PTM104 line "])


@pytest.mark.parametrize(
    "source",
    [
        NEW.format("self.b = A().cuda()"),
        NEW.format("return A().cuda()").replace("self.a = nn.Linear(2, 2)", "self.a = self.new()"),
        NEW.format("return A().cuda()").replace("nn.Linear(2, 2)", "self.b()")
        + "    def b(self):\n        return self.new()\n",
        NEW.format("return A().cuda()").replace("    def new", "    @classmethod\n    def new"),
    ],
)
def test_a_network_that_is_kept_or_the_first_moves_with_its_module(source):
    check(source, source.replace(".cuda()", ""))


def test_a_loss_that_was_moved_is_no_tensor():
    source = """
def main(loader):
    criterion = torch.nn.MSELoss()
    criterion.cuda()
    for x in loader:
        x = x.cuda()
        noise = torch.zeros(x.size()).cuda()
        criterion(net(x), noise)
"""
    assert "criterion.device" not in migrate_text("import torch\n" + source).text


@pytest.mark.parametrize("made", ["torch.LongTensor(x)", "torch.from_numpy(x)", "torch.tensor(np.tile(x, 2))"])
def test_an_array_that_comes_in_is_on_no_device(made):
    head = "import numpy as np\nimport torch\nimport torch.nn as nn\nclass A(nn.Module):\n    def __init__(self):\n"
    head += "        self.a = nn.Embedding(2, 2)\n    def forward(self, x):\n        n = x.shape[1]\n"
    method = "        return self.a({}.to({})) + n\n"
    check(head + method.format(made, "'cuda'"), head + method.format(made, "self.a.weight.device"), select="PTM104")


ALONE = """import torch
import torch.nn as nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 2)
    def forward(self, {given}):
        {line}
        return self.a(z)
"""


OF_NET = "self.a.weight.device"


@pytest.mark.parametrize(
    ("given", "line", "device"),
    [
        ("n", "z = torch.ones(n, 4){}", OF_NET),
        ("n", "z = torch.randn((n, 4)){}", OF_NET),
        ("n", "z = torch.rand(size=[n, 4]){}", OF_NET),
        ("n", "z = torch.stack([torch.ones(4) for _ in range(n)]){}", OF_NET),
        ("n", "z = torch.zeros(4){}; z[:n] = 1", OF_NET),
        ("seed", "torch.manual_seed(seed); z = torch.randn(3, 4){}", OF_NET),
        ("n: int", "z = torch.ones(3, 4){} * n", OF_NET),
        ("scales: list[float]", "z = torch.ones(3, 4){} * scales[-1]", OF_NET),
        ("scales: np.ndarray", "z = torch.ones(3, 4){} * scales.max()", OF_NET),
        ("t", "z = torch.ones(4){} * t", "t.device"),
        ("t", "z = torch.tensor([1., 2., 3., 4.]){} + torch.sin(t)", "t.device"),
        ("t: torch.Tensor", "z = torch.ones(4){} * t", "t.device"),
    ],
)
def test_what_comes_in_alone_says_where_unless_it_is_a_number_or_a_list(given, line, device):
    before, after = (ALONE.format(given=given, line=line.format(to)) for to in (".cuda()", f".to({device})"))
    check(before, after, select="PTM104")


def test_what_a_type_by_a_name_makes_a_tensor_of_is_a_list():
    head = "import torch\nLong = torch.cuda.LongTensor if torch.cuda.is_available() else torch.LongTensor\n"
    lines = "a = Long(a)\n        z = torch.ones(3, 4){} * a.unsqueeze(1)"
    before, after = (head + ALONE.format(given="a, b", line=lines.format(to)) for to in (".cuda()", f".to({OF_NET})"))
    check(before, after, select="PTM104")


def test_in_a_step():
    step = {"method": "def training_step(self, batch, i):", "base": "pl.LightningModule"}
    before = ["x, y = batch", "z = torch.zeros(2).cuda()", "m = torch.ones(1, device='cuda')"]
    after = ["x, y = batch", "z = torch.zeros(2).to(self.device)", "m = torch.ones(1, device=self.device)"]
    check(net(*before, **step), net(*after, **step), select="PTM104")


def test_in_a_helper():
    before = "import torch\ndef noise(images, n):\n    return images.view(-1) + torch.randn(n).cuda()\n"
    check(before, before.replace(".cuda()", ".type_as(images)"), ["PTM104 line 3"])


@pytest.mark.parametrize(
    "body",
    [
        "z = torch.zeros(2)\n        z = z.to(x.device)",
        "z = torch.tensor(0.5)",
        "z = torch.arange(3).tolist()",
        "z = float(torch.ones(3).sum())",
        "z = torch.ones(3).sum().item()",
        "z = torch.ones(3)\n        y = z.view(-1).numpy()",
        "z = x.new_zeros(2) if self.flag else x.new_ones(2)",
        "z = torch.zeros(2).to(x.device) if self.flag else torch.zeros(2, device=x.device)",
        "z = torch.zeros(2).type_as(x)",
        "z = torch.zeros(2, device=x.device)",
        "z = torch.zeros(2, device=None)",
        "z = torch.zeros(2).to(x.device)",
        "rank = torch.half\n        z = torch.zeros(2).to(rank)",
        "rank = torch.ones(1, device=x.device).double()\n        z = torch.zeros(2).to(rank)",
        "z = x.new_zeros(2)",
        "z = torch.zeros_like(x)",
        "z = torch.zeros(2).to(torch.half)",
        "z = torch.load('p', map_location='cuda')",
        "z = x.new_tensor([1.0])",
        "z = 'torch.zeros(2).cuda()'",
        "torch = Fake()\n        z = torch.zeros(2).cuda()",
        "z = np.zeros(2)",
    ],
)
def test_unchanged(body):
    check_unchanged(net(body), [], select="PTM104")


@pytest.mark.parametrize(
    "source",
    [
        "z = torch.zeros(2).cuda()",
        "z = torch.zeros(2, device=rank)",
        "z = torch.ones_like(y, device=args.gpu)",
        "def f(n):\n    return torch.zeros(n).cuda()",
        "def f(batch):\n    x, y = batch\n    return torch.zeros(2, device='cuda')",
        "def f(x=None):\n    return torch.zeros(x.size(0)).cuda()",
        "def f(d):\n    return d['x'] + torch.zeros(2).cuda()",
    ],
)
def test_no_tensor_to_follow_is_told(source):
    check_unchanged("import torch\n" + source + "\n", ["PTM104 line "])


def test_what_forward_makes_without_a_device_is_made_where_its_input_is():
    check(net("z = torch.zeros(2, 3)"), net("z = torch.zeros(2, 3, device=x.device)"), ["PTM104 line "])


def test_lengths_of_packed_sequences_stay_on_the_cpu():
    """`pack_padded_sequence` takes them nowhere else."""
    check_unchanged(net("n = torch.tensor([x.size(0)])\n        pack_padded_sequence(x, n)"), select="PTM104")


def test_a_static_method_has_no_self():
    head = "import torch\nimport pytorch_lightning as pl\nclass Net(pl.LightningModule):\n    @staticmethod\n"
    body = "    def mix(a, n):\n        return torch.eye(n).cuda()\n"
    check_unchanged(head + body, ["PTM104 line 6"], select="PTM104")


@pytest.mark.parametrize(
    "lines",
    [
        ["z = torch.zeros(2, device='cpu')"],
        ["z = torch.zeros(2).to('cpu')"],
    ],
)
def test_what_is_wanted_on_the_cpu_stays_there(lines):
    check_unchanged(net(*lines), [], select="PTM104")


@pytest.mark.parametrize(
    "body",
    [
        "z = torch.zeros(2).to(self.device)\n        return x.mean() + z",
        "return torch.randn(3, device=self.device)",
    ],
)
def test_a_device_of_the_modules_own_is_right_as_it_stands(body):
    own = "    @property\n    def device(self):\n        return next(self.parameters()).device\n"
    check_unchanged(net(body, method="def other(self, x):") + own, [], select="PTM104")


def test_the_device_of_its_parameters_is_right_by_name_too():
    lines = "dev = next(self.parameters()).device", "return x.mean() + torch.zeros(1, device=dev)"
    check_unchanged(net(*lines), [])
