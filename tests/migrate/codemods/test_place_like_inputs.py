# ruff: noqa: E501
import textwrap

import pytest
from helpers import check, check_unchanged, migrated
from ptmigrate.migrate.migrate import migrate_text
from ptmigrate.migrate.result import Options

LEFT = Options(ignore=("PTM115",))  # what is left as it is, and told of


def net(*lines: str, method: str = "def forward(self, x):", base: str = "nn.Module") -> str:
    body = "".join(f"        {line}\n" for line in lines)
    return (
        f"import torch\nimport torch.nn as nn\nimport pytorch_lightning as pl\nclass Net({base}):\n    {method}\n{body}"
    )


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


PREFETCHER = """
import torch
class Prefetcher:
    def __init__(self):
        self.side = torch.cuda.Stream()
    def ahead(self, x, y):
        with torch.cuda.stream(self.side):
            x = x.cuda(non_blocking=True)
            y = y.cuda(non_blocking=True)
        return x, y
"""


def test_what_a_prefetcher_moves_on_a_stream_of_its_own_stays():
    """Nothing else moves the batches that it hands out: they stayed on the CPU, and the model went to the GPU."""
    result = check_unchanged(PREFETCHER)
    assert [(n.code, n.line) for n in result.attention] == [("PTM104", 7), ("PTM104", 8)]
    elsewhere = PREFETCHER.replace("torch.cuda.stream(self.side)", "torch.no_grad()")
    assert "x = x.cuda" not in migrated(elsewhere).text


def test_while_a_module_is_made_nothing_is_placed():
    result = check_unchanged(net("z = torch.zeros(2).cuda()\n        w = w.view(-1)", method="def __init__(self, w):"))
    assert [n.code for n in result.attention] == ["PTM104"]


LIT = (
    "import torch\nimport pytorch_lightning as pl\nclass Lit(pl.LightningModule):\n    def training_step(self, b, i):\n"
)


def test_what_another_value_is_asked_for_is_another_matter():
    before = LIT + "        x, _ = b\n        valid = torch.ones({})\n        return self.net(x, valid).mean()\n"
    check(before.format("3"), before.format("3, device=self.device"), ["PTM104 line 6"], [], select="PTM104")


NET = "import torch\nclass Net(torch.nn.Module):\n    def forward(self, x, device, rank):\n        return {}\n"


@pytest.mark.parametrize("where", ["device", "rank", "'cuda:0'", "torch.device('cuda', rank)"])
def test_new_tensors_are_made_where_their_tensor_is(where):
    check(NET.format(f"x + x.new_zeros(3, device={where})"), NET.format("x + x.new_zeros(3)"), ["PTM104 line 4"], [])


@pytest.mark.parametrize(
    "made", ["x.new_zeros(3)", "x.new_zeros(3, device='cpu')", "x.new_zeros(3, device=x.device)", "torch.Generator()"]
)
def test_new_tensors_that_stay(made):
    check_unchanged(NET.format(made), [], select="PTM104")


@pytest.mark.parametrize(
    "made", ["torch.ones(3).new_zeros(3, device=rank)", "torch.Generator(device=rank)", "torch.Generator('cuda')"]
)
def test_what_nothing_here_places_is_told(made):
    told = check_unchanged(NET.format(made), select="PTM104").attention
    assert [n.message for n in told if "names a device" in n.message]


@pytest.mark.parametrize("made", ["torch.zeros", "torch.tensor, dtype=torch.int", "torch.ones_like", "torch.Tensor.to"])
def test_a_device_that_a_partial_gives_is_told(made):
    head = "import torch\nfrom functools import partial\nf = partial("
    (note,) = check_unchanged(f"{head}{made}, device='cuda')\n", ["PTM104 line 3"]).attention
    assert "names a device" in note.message
    for other in (f"{made}, device='cpu'", made, "torch.load, map_location='cpu'"):
        check_unchanged(f"{head}{other})\n", [])


@pytest.mark.parametrize("own", ["b.num_graphs", "len(b.edge_index)"])
def test_a_batch_with_fields_of_its_own_is_no_tensor(own):
    source = f"import torch\ndef f(net, loader, device):\n    for b in loader:\n        b = b.to(device)\n        z = torch.zeros({own}, device=device)\n        net(b, z)\n"
    assert f"        z = torch.zeros({own}, device=device)\n" in migrated(source).text
    of_tensors = source.replace(own, "b.shape[0]")
    assert "z = torch.zeros(b.shape[0], device=b.device)\n" in migrated(of_tensors).text


def test_options_that_hold_a_device_are_no_tensor():
    made = "import torch\ndef f(cfg, net, loader):\n    for x, y in loader:\n        w = torch.zeros(3, device={})\n        net(x.to(cfg.device), w)\n"
    for where in ("cfg.device", "cfg.train.device", 'cfg["train"]["device"]'):
        text = migrated(made.format(where), "PTM101,PTM104").text
        assert "torch.zeros(3, device=x.device)" in text and "net(x, w)" in text, text
    kept = "import torch\ndef f(c, x):\n    return torch.zeros(3, device=c.device) + c.sum() + x\n"
    check_unchanged(kept, [], select="PTM104")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("lambda p, n: p * torch.zeros(p.size()).cuda()", "lambda p, n: p * torch.zeros(p.size()).to(p.device)"),
        ("lambda n, p: p.view(-1) + torch.ones(n, device='cuda')", "lambda n, p: p.view(-1) + torch.ones(n, device=p.device)"),
    ],
)  # fmt: skip
def test_in_a_lambda_of_tensors(before, after):
    check(f"import torch\nf = {before}\n", f"import torch\nf = {after}\n", select="PTM104")


@pytest.mark.parametrize(
    "source",
    [
        "lambda n: torch.zeros(n).cuda()",
        "lambda p: torch.zeros(p['n'], len(p.keys())).cuda()",
        "lambda p=None: torch.zeros(p.size()).cuda()",
        "lambda net: net(net.size()) + torch.zeros(3).cuda()",
    ],
)
def test_a_lambda_that_shows_no_tensor(source):
    check_unchanged(f"import torch\nf = {source}\n", ["PTM104 line 2"], select="PTM104")


SAMPLES = "import torch\nfrom nets import Net\ndef sample(net, n):\n    {}\nnet = Net()\nopt = torch.optim.Adam(net.parameters())\nsample(net, 3)\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("z = torch.randn(n, 2).cuda()\n    return net(z).cpu()", "z = torch.randn(n, 2).to(next(net.parameters()).device)\n    return net(z).cpu()"),
        ("return net(torch.randn(n, 2).cuda())", "return net(torch.randn(n, 2).to(next(net.parameters()).device))"),
        ("z = torch.randn(n, device='cuda')\n    return net(z, 1)", "z = torch.randn(n, device=next(net.parameters()).device)\n    return net(z, 1)"),
    ],
)  # fmt: skip
def test_in_a_function_that_calls_a_module_on_it(before, after):
    check(SAMPLES.format(before), SAMPLES.format(after), select="PTM104")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return net(z)", "return z"),
        ("return net(z)", "return net(n) + z"),
        ("return net(z)", "net = n\n    return net(z)"),
        ("Adam(net.parameters())", "Adam([net])"),  # which may be a function
        ("sample(net, 3)", "sample(net, 3)\nsample(torch.tanh, 3)"),
        ("\nsample(net, 3)", ""),
    ],
)
def test_what_a_function_calls_may_be_no_module(old, new):
    text = SAMPLES.format("z = torch.randn(n).cuda()\n    return net(z)")
    assert old in text
    result = migrate_text(text.replace(old, new), LEFT)
    assert "z = torch.randn(n).cuda()" in result.text and [n.code for n in result.attention] == ["PTM104"]


def test_what_a_loop_goes_through_may_be_a_list():
    lines = "outs = [torch.zeros(3).cuda() + x for x in xs]\n        return sum(outs)\n"
    source = f"import torch\nclass A(torch.nn.Module):\n    def forward(self, xs):\n        {lines}"
    check_unchanged(source, ["PTM104 line 4: `torch.zeros(3).cuda()` names a device"])
    seen = source.replace("sum(outs)", "sum(outs) + xs.mean()")
    check(seen, seen.replace(".cuda()", ".type_as(xs)"))


KEPT = "where = {made}\n    return [t.to(**where) for t in batch]"


@pytest.mark.parametrize("made", ["dict(device='cuda', non_blocking=True)", "{'device': torch.device('cuda:0')}"])
def test_a_device_in_a_dictionary_is_told(made):
    source = f"import torch\ndef f(batch):\n    {KEPT.format(made=made)}\n"
    result = check_unchanged(source, select="PTM104")
    assert [(n.code, n.line) for n in result.attention] == [("PTM104", 4)]


@pytest.mark.parametrize(
    "made", ["dict(dtype=torch.half)", "{'device': 'cpu'}", "{'device': batch[0].device}", "other"]
)
def test_a_dictionary_without_one(made):
    check_unchanged(f"import torch\ndef f(batch):\n    {KEPT.format(made=made)}\n", [], select="PTM104")


def test_a_parameter_of_a_module_moves_with_it():
    made = "kw = {'device': device}", "self.w = nn.Parameter(torch.empty(3, **kw))"
    check_unchanged(net(*made, method="def __init__(self, device=None):"), [], select="PTM104")


def test_a_model_is_no_tensor_that_says_where():
    """A module has no `device`."""
    source = """
        import torch
        class Runner:
            def __init__(self, model, device):
                self.model = model.to(device)
                self.scale = torch.tensor([1.0], device=device)
        """
    assert "device=model.device" not in migrated(textwrap.dedent(source)).text


def test_what_moves_with_what_is_computed_from_it_is_placed_once():
    first = "z = torch.exp(torch.arange(3).float() * {}).cuda()"
    check(
        net(first.format("-1"), "n = x.size(0)"),
        net(first.format("-1").replace(".cuda()", ".to(x.device)"), "n = x.size(0)"),
        select="PTM104",
    )


@pytest.mark.parametrize("after", [".to(x.device)", ".type_as(x)", ".to(x)"])
def test_it_stays_so(after):
    check_unchanged(net(f"return x.size(0) + torch.exp(-torch.arange(3)){after}"), [], select="PTM104")


BATCH = """import torch
from torch.autograd import Variable
def scaled(x):
    return torch.zeros(*x.size())
def prepare(sample, ready):
    data, labels = sample
    data = scaled(data.float())
    labels = torch.LongTensor(labels)
    if ready:
        data = Variable(data).cuda()
        labels = Variable(labels).cuda()
    return data.view(-1), labels
"""


def test_where_a_tensor_is_says_nothing_of_where_it_goes():
    """`data.to(data.device)` moves nothing; what stands beside it goes there. A second run finds no more."""
    result = migrate_text(BATCH, LEFT)
    assert "data = data.detach().cuda()" in result.text and "labels = labels.detach().to(data.device)" in result.text
    assert "`Variable(data).cuda()` names a device: nothing here shows which it should be" in str(result.attention)
    assert migrate_text(result.text, LEFT).text == result.text


EVALUATE = """import torch
def evaluate(model, loader, params):
    for x, y in loader:
        if params.cuda:
            x, y = x.cuda(), y.cuda()
        out = model(x)
        show(out.mean())
        y = y.data.cpu().numpy()
        show(y)
"""


def test_what_a_loop_binds_anew_is_not_what_was_brought_to_the_cpu_below():
    """And `params.cuda` is an option: only what is called is a tensor's method."""
    text = migrate_text(EVALUATE, is_script=False).text
    assert "cuda" not in text and "device" not in text and "y = y.data.cpu().numpy()" in text


def test_what_an_inner_loop_brings_to_the_cpu_comes_back():
    inner = EVALUATE.replace("        if params.cuda:\n            x, y = x.cuda(), y.cuda()\n", "").replace(
        "        y = y.data.cpu().numpy()\n",
        "        for _ in range(2):\n            z = y.cuda()\n            y = y.cpu()\n",
    )
    assert "z = y\n" not in migrate_text(inner, is_script=False).text


def test_an_option_named_cuda_is_no_tensor():
    made = "import torch\ndef make(given, n):\n    noise = torch.zeros(n)\n    if given.cuda:\n        noise = noise.cuda()\n    return noise\n"
    assert "given.device" not in migrate_text(made).text
    assert "given.device" in migrate_text(made.replace("given.cuda", "given.cuda().any()")).text


@pytest.mark.parametrize(
    "lines",
    [
        "    y = x.cuda() if USE else x\n",
        "    y = (x if not USE else x.to('cuda'))\n",
        "    if USE:\n        y = x.cuda()\n    else:\n        y = x\n",
    ],
)
def test_a_choice_of_what_says_nothing_of_itself_stays(lines):
    """The test went, and what moves stayed for want of a place: the result ended where there is no CUDA."""
    head = "import torch\nUSE = torch.cuda.is_available()\ndef f(x):\n    x = x.cuda() if USE else x.cpu()\n"
    result = check_unchanged(head + lines + "    return y\n")
    assert {n.code for n in result.attention} == {"PTM104"}


def test_a_state_goes_where_the_cell_is():
    head = "import torch\nfrom torch import nn\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    head += "        self.cell = nn.GRUCell(2, 3)\n    def begin(self, n):\n        return torch.zeros(n, 3)"
    check(head + ".cuda()\n", head + ".to(self.cell.weight_ih.device)\n", select="PTM104")


def test_what_asks_a_variable_for_its_gradient_is_no_tensor():
    source = "import torch\nfrom torch.autograd import Variable\n\n\ndef make(x, grad):\n    a = Variable(x, grad)\n"
    check_unchanged(source + "    return a, torch.from_numpy(x).cuda()\n", ["PTM104 line 7"], select="PTM104")


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
    check(INNER.format("t", ".cuda()", ""), INNER.format("t", ".type_as(x)", ""), select="PTM104")


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
