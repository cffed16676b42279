# ruff: noqa: E501
"""T4: tensors that are made in functions, lambdas and loops outside of a module's own methods, and what shows no place."""

import textwrap

import pytest
from helpers import check, check_unchanged, migrated, net
from ptmigrate.migrate.migrate import migrate_text
from ptmigrate.migrate.result import Options

LEFT = Options(ignore=("PTM115",))  # what is left as it is, and told of


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
    assert [(n.code, n.line) for n in result.attention] == [("PTM112", 4), ("PTM104", 7), ("PTM104", 8)]
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


LOOP = """import torch
from torch import nn
from torch.autograd import Variable
net = nn.Linear(3, 1).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for i in range(3):
        y = {}
        loss = (net(torch.ones(2, 3).cuda()) - y).pow(2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    "made",
    [
        "Variable(torch.zeros(2, 1), requires_grad=False).cuda()",
        "Variable(torch.zeros(2, 1)).cuda()",
        "torch.zeros(2, 1).cuda()",
    ],
)
def test_what_is_placed_in_the_end_is_not_told_of(made):
    result = migrate_text(LOOP.format(made))
    assert ".cuda()" not in result.text and not any(n.code == "PTM104" for n in result.attention)


def test_what_is_not_placed_is_told_of_still():
    text = "import torch\nclass N(torch.nn.Module):\n    def forward(self, batch):\n        return batch['x'] * torch.ones(1).to('cuda')\n"
    assert [n.code for n in migrate_text(text, LEFT).attention] == ["PTM104"]


LOADED = """\
import numpy as np
import torch
from norm import fetch, make


def preprocess(adj, features, kind="half"):
    normalizer = fetch(kind)
    adj = normalizer(adj)
    return adj, features


def to_tensor(m):
    index = torch.from_numpy(np.vstack(m.nonzero()))
    return torch.sparse.FloatTensor(index, torch.FloatTensor(m[m.nonzero()]), m.shape).to_dense()


def load(kind="half", cuda=True):
    adj, features = make(), np.random.rand(20, 5)
    adj, features = preprocess(adj, features, kind)
    features = torch.FloatTensor(features).float()
    adj = to_tensor(adj).float()
    if cuda:
        features = features.cuda()
        adj = adj.cuda()
    return adj, features
"""


def test_what_is_moved_below_says_nothing_of_where_the_others_are_to_be():
    assert "features.to(adj.device)" not in migrate_text(LOADED).text
