# ruff: noqa: E501
import pytest
from helpers import check, check_unchanged, dedent, migrated
from ptmigrate.migrate.migrate import migrate_text

HEAD = """\
import torch
import torch as t
import torch.nn as nn
from torch import cuda
"""


def lines(body: str) -> str:
    """A script: the imports, the body, and the loop that makes it one."""
    return HEAD + body.strip("\n") + "\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = net.cuda().half()", "x = net.half()"),
        ("net.train().cuda(0)\n", "net.train()\n"),
        ("from nets import make\nn = make(3).cuda()\no = t.optim.SGD(n.parameters(), 1)", "from nets import make\nn = make(3)\no = t.optim.SGD(n.parameters(), 1)"),
        ("from nets import make\ndef f(x):\n    n = make(3).cuda()\n    return nn.Sequential(nn.ReLU(), n)", "from nets import make\ndef f(x):\n    n = make(3)\n    return nn.Sequential(nn.ReLU(), n)"),
        ("def make():\n    return nn.Linear(1, 1)\nn = make().to('cuda')\nn.eval()", "def make():\n    return nn.Linear(1, 1)\nn = make()\nn.eval()"),
        ("def f(x, c):\n    if c:\n        x = x.cuda();\n    return x", "def f(x, c):\n    return x"),
        ("def f(x, c):\n    if c: x = x.cuda();\n    return x", "def f(x, c):\n    if c: pass\n    return x"),
        ("def f(x, c):\n    if c:\n        x = x.cuda(); y = 1;\n    return x", "def f(x, c):\n    if c:\n        y = 1;\n    return x"),
        ("def f(x):\n    y = 1; x = x.cuda();  # moved\n    return x", "def f(x):\n    y = 1;  # moved\n    return x"),
        ("for x in a:\n    f(x.cuda());\nelse:\n    g(x.cuda()); h();\n", "for x in a:\n    f(x);\nelse:\n    g(x); h();\n"),
        ("class M(nn.Module):\n    def to(self, where): ...\ndef f(m: M):\n    return m.to('cuda')", "class M(nn.Module):\n    def to(self, where): ...\ndef f(m: M):\n    return m"),
        ("model = nn.Linear(3, 4).to('cuda:1')", "model = nn.Linear(3, 4)"),
        ("model = nn.Linear(3, 4, device='cuda')", "model = nn.Linear(3, 4)"),
        ("model = nn.Linear(3, 4, device='cuda', dtype=torch.half)", "model = nn.Linear(3, 4, dtype=torch.half)"),
        ("model = (nn.Linear(3, 4).cuda())", "model = (nn.Linear(3, 4))"),
        ("model = nn.Sequential(nn.ReLU().cuda(), nn.ReLU()).cuda()", "model = nn.Sequential(nn.ReLU(), nn.ReLU())"),
        ("def f(x):\n    y = x.to('cuda', torch.float16)", "def f(x):\n    y = x.to(torch.float16)"),
        ("def f(x):\n    y = x.to('cuda', torch.half, True)", "def f(x):\n    y = x.to(torch.half, True)"),
        ("def f(x):\n    y = x.to(0, non_blocking=True)", "def f(x):\n    y = x"),
        ("def f(x):\n    return t.cat(tensors=[x, x], dim=0).cuda()", "def f(x):\n    return t.cat(tensors=[x, x], dim=0)"),
        ("def f(x):\n    y = x.to(device='cuda', dtype=t.half)", "def f(x):\n    y = x.to(dtype=t.half)"),
        ("def f(x):\n    y = x.to('cuda', memory_format=t.channels_last)", "def f(x):\n    y = x.to(memory_format=t.channels_last)"),
        ("def f(x, device):\n    return x.to(device)[0]", "def f(x, device):\n    return x[0]"),
        ("def f(x, rank):\n    return x.to(rank, copy=False)", "def f(x, rank):\n    return x"),
        ("def f(x):\n    return [v.cuda() for v in x]", "def f(x):\n    return [v for v in x]"),
        ("def f(x):\n    a, b = [v.cuda() for v in x]\n    return a", "def f(x):\n    a, b = x\n    return a"),
        ("def f(x):\n    a, b = (v.cuda() for v in x)\n    return a", "def f(x):\n    a, b = x\n    return a"),
        ("def f(x):\n    a, b = map(lambda v: v.cuda(), x)\n    return a", "def f(x):\n    a, b = x\n    return a"),
        ("def f(x, y):\n    x, y = map(lambda v: v.cuda(), (x, y))\n    return x", "def f(x, y):\n    return x"),
        ("def f(x, y):\n    x, y = (v.cuda() for v in (x, y))\n    return x", "def f(x, y):\n    return x"),
        ("def f(x):\n    x = tuple(v.cuda() for v in x)\n    return x", "def f(x):\n    x = tuple(x)\n    return x"),
        ("def f(x):\n    return net(*[v.cuda() for v in x])", "def f(x):\n    return net(*x)"),
        ("b = torch.zeros(3)\ndef f(x):\n    x = [b.cuda() for b in x]\n    return x", "b = torch.zeros(3)\ndef f(x):\n    return x"),
        ("for s in opt.state.values():\n    for k, v in s.items():\n        s[k] = v.cuda()\n", "for s in opt.state.values():\n    for k, v in s.items():\n        pass\n"),
        ("def f(x):\n    if (n := x.cuda()).sum():\n        return n", "def f(x):\n    if (n := x).sum():\n        return n"),
        ("def f(x):\n    return {k: v.cuda(0) for k, v in x.items()}", "def f(x):\n    return {k: v for k, v in x.items()}"),
        ("def f(x):\n    x = {k: v.cuda(0) for k, v in x.items()}\n    return x", "def f(x):\n    return x"),
        ("def f(x):\n    x, y = x[0].cuda(), x[1].cuda()\n    return y", "def f(x):\n    x, y = x[0], x[1]\n    return y"),
        ("def f(x, y):\n    x, y = x.cuda(), y.cuda()  # there\n    return y", "def f(x, y):\n    return y"),
        ("def f(x, y):\n    # both\n    x = x.cuda(); y = y.cuda()\n    return y", "def f(x, y):\n    # both\n    return y"),
        ("def f(x, c):\n    x = x.cuda() if c else x\n    return x", "def f(x, c):\n    return x"),
        ("def f(x, c):\n    return g(x if not c else x.cuda())", "def f(x, c):\n    return g(x)"),
        ("def f(x):\n    return map(lambda v: v.cuda(), x)", "def f(x):\n    return map(lambda v: v, x)"),
        ("def f(x):\n    y = [x.cuda() for x in x if x is not None]\n    return y", "def f(x):\n    y = [x for x in x if x is not None]\n    return y"),
        ("def f(x):\n    y = [v.cuda() for x in x for v in x]\n    return y", "def f(x):\n    y = [v for x in x for v in x]\n    return y"),
        ("def f(x, c):\n    return f(x) if not c else f(x.cuda(non_blocking=True))", "def f(x, c):\n    return f(x)"),
        ("def f(x, c):\n    return g(1, y=[x.to('cuda'), 2]) if c else g(1, y=[x, 2])", "def f(x, c):\n    return g(1, y=[x, 2])"),
        ("def f(x, c):\n    return f(x.cuda()) if c else f(x, 1)", "def f(x, c):\n    return f(x) if c else f(x, 1)"),
        ("def f(x, c):\n    return f(x.cuda()) if c() else f(x)", "def f(x, c):\n    return f(x) if c() else f(x)"),
        ("def f(x):\n    x = x.pin_memory().cuda(non_blocking=True)\n    return x", "def f(x):\n    return x"),
        ("def f(x):\n    return g(x.pin_memory().to('cuda', torch.half))", "def f(x):\n    return g(x.to(torch.half))"),
        ("def f(x):\n    a, b = x[0].pin_memory().cuda(), x[1].cuda()\n    return a", "def f(x):\n    a, b = x[0], x[1]\n    return a"),
        ("def f(x):\n    return x.cuda().cpu().pin_memory()", "def f(x):\n    return x.cpu().pin_memory()"),
        ("def f(c):\n    net.cuda() if c else net\n    return net", "def f(c):\n    return net"),
        ("def f(x, c):\n    g(x).cuda() if c else g(x)", "def f(x, c):\n    g(x)"),
        ("class A:\n    def f(self, x):\n        x = x.to(self.args.device)\n        return x", "class A:\n    def f(self, x):\n        return x"),
        ("@cuda.amp.custom_fwd\ndef f(x):\n    return x.cuda()", "@cuda.amp.custom_fwd\ndef f(x):\n    return x"),
        ("class A:\n    def f(self, x):\n        x = x.to(self.device)\n        return x", "class A:\n    def f(self, x):\n        return x"),
        ("def f(x, args):\n    return x.to(args.device)", "def f(x, args):\n    return x"),
        ("def f(x, c):\n    if c:\n        y = x.sum(0).cuda()\n    else:\n        y = x.sum(0)\n    return y", "def f(x, c):\n    y = x.sum(0)\n    return y"),
        ("def f(x, c):\n    if not c:\n        # as it is\n        y = x.sum(0)\n    else:\n        x = x.cuda()\n        y = x.sum(0)\n    return y", "def f(x, c):\n    y = x.sum(0)\n    return y"),
        ("def f(x):\n    x = x.cuda()", "def f(x):\n    pass"),
        ("loss = nn.CrossEntropyLoss(weight=torch.ones(3).cuda())", "loss = nn.CrossEntropyLoss(weight=torch.ones(3))"),
        ("loss = nn.BCEWithLogitsLoss(pos_weight=w.to('cuda'))", "loss = nn.BCEWithLogitsLoss(pos_weight=w)"),
        ("self.w = nn.Parameter(torch.randn(3).cuda())", "self.w = nn.Parameter(torch.randn(3))"),
        ("self.w = nn.Parameter(torch.randn(3).to('cuda')).to('cuda')", "self.w = nn.Parameter(torch.randn(3))"),
        ("self.w = nn.Parameter(torch.randn(3).cuda()).cuda()", "self.w = nn.Parameter(torch.randn(3))"),
        ("device = torch.device('cpu')\ndef f(x):\n    return x.to(device)", "device = torch.device('cpu')\ndef f(x):\n    return x"),
        ("def f(x):\n    y = torch.zeros_like(x).cuda()", "def f(x):\n    y = torch.zeros_like(x)"),
        ("def f(x):\n    return (\n        x\n        .cuda()  # there\n        .sum()\n    )", "def f(x):\n    return (\n        x  # there\n        .sum()\n    )"),
    ],
)  # fmt: skip
def test_moves_go(before, after):
    check(lines(before), lines(after), select="PTM101")


@pytest.mark.parametrize(
    "source",
    [
        "def f(x, c):\n    if c:\n        y = x.cuda().sum()\n    else:\n        y = x.mean()\n    return y",
        "def f(x, c):\n    if ask(c):\n        y = x.cuda().sum()\n    else:\n        y = x.sum()\n    return y",
        "def f(x, c):\n    if c:\n        y = x.cuda().sum()\n    elif x:\n        y = x.sum()\n    return y",
    ],
)  # fmt: skip
def test_branches_that_differ_by_more_stay(source):
    check(lines(source), lines(source.replace(".cuda()", "")), select="PTM101")


@pytest.mark.parametrize(
    "source",
    [
        "def f(x):\n    return x.to(torch.float16)",
        "from nets import make\ndef f(x):\n    n = make(3).cuda()\n    return torch.stack([x, n])",
        "from nets import make\ndef f(x):\n    n = make(3).cuda()\n    return nn.Identity()(n)",
        "def f(x):\n    return x.to(dtype=torch.float16)",
        "def f(x):\n    return x.to(memory_format=torch.channels_last)",
        "def f(x, other):\n    return x.to(other)",
        "def f(x, y):\n    return x.to(y.device)",
        "def f(x, y):\n    return x.to(device=y.device, dtype=y.dtype)",
        "def f(x):\n    return x.to()",
        "def f(x):\n    return x.to(**where)",
        "def f(x):\n    return x.to(*where)",
        "def f(x):\n    return x.cpu().numpy()",
        "def f(x):\n    return x.to('cpu').numpy()",
        "def f(x):\n    return x.to(torch.device('cpu')).numpy()",
        "def f(x):\n    return x.to(device='cpu', non_blocking=True)",
        "cpu = torch.device('cpu')\nwhere = torch.device('cuda')\ndef f(x):\n    return x.to(cpu).numpy(), where",
        "def f(n, T):\n    return torch.arange(T).repeat(n, 1).to('cuda')",
        "def f(n):\n    return (torch.ones(n) * n).long().cuda()",
        "def make(n):\n    return torch.linspace(0, 1, n)\nbeta = make(3).to('cuda')",
        "def f(anchors, x):\n    anchors = torch.FloatTensor(anchors)\n    anchors = anchors.cuda()\n    return x * anchors",
        "class D:\n    def __init__(self):\n        self.b = self.make().cuda()\n    def make(self):\n        return torch.ones(3)",
        "def f(c):\n    if c:\n        z = torch.ones(3).cuda()\n    else:\n        z = torch.ones(3)\n    return z",
        "def f(x, c):\n    if c:\n        y = x.sum(0)\n    else:\n        y = x.sum(0)\n    return y",
        "xs = [v.cuda() for v in (torch.ones(3), torch.zeros(3))]",
        "a, b = map(lambda v: v.cuda(), (torch.ones(3), torch.zeros(3)))",
        "k = torch.ones(3)\nk = k / k.sum()\nk = k.expand(2, 3).to('cuda')",
        "def f(x, dtype):\n    return x.to(dtype)",
        "dtype = torch.half\ndef f(x):\n    return x.to(dtype)",
        "def f(x, kind):\n    return x.to(kind)\nf(1, torch.half)\nf(2, 'cuda')",
        "def f(x, device=torch.float16):\n    return x.to(device)",
        "print(torch.cuda.is_available())",
        "torch.cuda.synchronize()",
        "cuda.empty_cache()",
        "path.to('cuda.py')",
        "x = 'x.cuda()'  # x.cuda()",
        "class M(nn.Module):\n    def cuda(self, device=None):\n        return super().cuda(device)",
        "class M(nn.Module):\n    def to(self, device):\n        super().to(device)\n        return self",
        "z = torch.zeros(3).cuda()",
        "z = torch.randn(3, device='cuda')",
        "z = torch.from_numpy(a).to('cuda')",
        "features, labels = load()\nfeatures = features.cuda()",
        "x = np.load('x')\nz = torch.tensor(x).cuda()",
        "hidden = torch.zeros(1, 2)\nhidden = hidden.cuda()",
        "state = torch.load('p', map_location='cuda')",
        "def f(x):\n    return f'{x.cuda()=}'",
        "for i in range(3):\n    x = table[i]\n    y = torch.tensor(x).to('cuda')",
        "def f(x, **kw):\n    return x.to(**kw)",
        "x.type(torch.cuda.FloatTensor)",
        "class Client:\n    def cuda(self):\n        return 'yes'\nClient().cuda()",
        "class Client:\n    def to(self, where):\n        return where\ndef send(device):\n    return Client().to(device)",
        "class Client(object):\n    def cuda(self):\n        return 'yes'\nc = Client()\nprint(c.cuda())",
        "class Mail:\n    def to(self, where): ...\ndef send(mail: Mail):\n    return mail.to('cuda')",
        "class Mail:\n    def to(self, where): ...\ndef send(mail: 'Mail', device):\n    return mail.to(device)",
        "class Mail:\n    def to(self, where): ...\nclass Box:\n    def __init__(self):\n        self.m = Mail()\n    def send(self):\n        return self.m.to('cuda')",
        "class Mail:\n    def to(self, where): ...\ndef send():\n    return Mail(1).to('a').to('cuda')",
        "class Batch:\n    def to(self, device):\n        return Batch(self.x.to(device), self.y.to(device))",
        "class Batch:\n    def cuda(self):\n        self.x = self.x.cuda()\n        return self",
        "class Mail:\n    def to(self, device):\n        return self\n    def all(self, device):\n        return self.to(device)",
        "X = torch.randn(3)\nY = X.sum(0) > 0\nY = Y.cuda()",
        "self.d = torch.distributions.Normal(torch.zeros(1).cuda(), 1)",
        "def f(x):\n    return x.to('meta')",
        "net = nn.Linear(3, 4, device='meta')",
        "n = torch.cuda.current_device()",
        "s = torch.cuda.Stream()",
        "print(torch.version.cuda)",
        "def f(x):\n    return x.to(x.dtype)",
        "def f(x, y):\n    return x.to(y)",
        "def f(x):\n    return x if x.is_cuda else None",
        "def cuda(x):\n    return x\ny = cuda(1)",
        "def f(length):\n    return length.to('km')",
        "def f(angle):\n    return angle.to(unit='deg')",
        "os.environ['CUDA_VISIBLE_DEVICES'] = '0'",
        "def f(x):\n    return x.cpu().to('cpu', torch.float32)",
        "torch.backends.cudnn.benchmark = True",
        "def f(table):\n    return table.cuda",
        "df.to_csv('cuda')",
        "def f(x, mode):\n    return convert(x, to='cuda')",
        "parser.add_argument('--device', default='cuda')",
        "d = {'cuda': 3}\nd.get('cuda')",
        "if torch.cuda.get_device_capability()[0] > 7:\n    go()",
        "jax.device_put(x, 'cuda')",
        "import cupy\nx = cupy.cuda.Device(0)",
        "def f(x):\n    return x.type_as(y)",
    ],
)  # fmt: skip
def test_unchanged(source):
    check_unchanged(lines(source), select="PTM101")


def test_helper_that_moves_goes_with_its_calls():
    check(
        lines("""
use_cuda = torch.cuda.is_available()


def to_gpu(x):
    '''Move.'''
    return x.cuda() if use_cuda else x


for x, y in loader:
    x, y = to_gpu(x), to_gpu(y)
    loss = f(x, to_gpu(y))
"""),
        lines("\n\nfor x, y in loader:\n    loss = f(x, y)").replace("cuda\nfor", "cuda\n\n\nfor"),
        select="PTM10",
    )


@pytest.mark.parametrize(
    "helper",
    [
        "def to_gpu(x):\n    log(x)\n    return x.cuda()\n\n\nmain(to_gpu(1))",
        "@cache\ndef to_gpu(x):\n    return x.cuda()\n\n\nmain(to_gpu(1))",
    ],
)
def test_helper_that_does_more_stays(helper):
    check(lines(helper), lines(helper.replace(".cuda()", "")), select="PTM101")


@pytest.mark.parametrize("given", ["", ", True", ", wait=args.wait"])
def test_what_else_a_helper_is_given_is_for_the_move(given):
    helper = "def to_gpu(x, wait=True):\n    return x.cuda(non_blocking=not wait) if use_cuda else x\n"
    head, loop = "import torch\nfrom n import f, loader\nimport args\n", "for b in loader:\n"
    before = f"{head}{helper}{loop}    x, y = (to_gpu(t{given}) for t in b)\n    f(to_gpu(x{given}), y)\n"
    assert migrated(before).text == f"{head}{loop}    x, y = b\n    f(x, y)\n"


def test_helper_that_is_handed_on_stays():
    source = "def to_gpu(x):\n    return x.cuda()\n\n\nmain(map(to_gpu, xs))"
    check(lines(source), lines(source.replace(".cuda()", "")), select="PTM101")


def test_library_helpers_stay():
    """Another file may import it."""
    check(
        "import torch\ndef to_gpu(x):\n    return x.cuda()\n",
        "import torch\ndef to_gpu(x):\n    return x\n",
        ["PTM101 line 3: `x.cuda()`: the runtime places"],
    )


@pytest.mark.parametrize("where", ["cfg.train.device", 'config["train"]["device"]', 'cfg.hw["device"]'])
def test_options_within_options(where):
    body = "import torch\ndef f(cfg, config, net, loader):\n    for x, y in loader:\n        net({})\n"
    check(body.format(f"x.to({where})"), body.format("x"), select="PTM101")


@pytest.mark.parametrize(
    "where", ["self.model.device", "other.train.device", 'table["x"]["device"]', "cfg.train.dtype"]
)
def test_what_holds_no_options(where):
    body = (
        "import torch\ndef f(self, cfg, other, table, net, loader):\n    for x, y in loader:\n        net(x.to({}))\n"
    )
    check_unchanged(body.format(where), select="PTM101")


SAVES = "import torch\ndef save(model, x, device):\n    {}\n    torch.save(model.state_dict(), 'm.pt')\n    {}\n    return x.size(0)\n"


@pytest.mark.parametrize("away", ["model.cpu()", "model.eval().cpu()", 'model.to("cpu")', "model = model.cpu()"])
@pytest.mark.parametrize(
    "back", ["model.to(device)", "model.to(device).train()", "model.cuda()", "model = model.cuda()"]
)
def test_a_model_that_was_taken_to_the_cpu_comes_back(away, back):
    """It stayed there: no machine without a GPU showed it."""
    result = migrated(dedent(SAVES.format(away, back)))
    after = result.text.partition("'m.pt')\n")[2]
    assert ".to(x.device)" in after or (".cuda()" in after and result.attention)


@pytest.mark.parametrize(
    ("away", "back"),
    [
        ("other.cpu()", "model.to(device)"),
        ("model.eval()", "model.to(device)"),
        ("y = x.cpu()", "model.cuda()"),
        ("model.cpu()\n    model.cuda()", "model.cuda()"),
    ],
)
def test_one_that_was_not_needs_no_move(away, back):
    after = migrated(dedent(SAVES.format(away, back))).text.partition("'m.pt')\n")[2]
    assert "model" not in after


@pytest.mark.parametrize("value", ["x.cpu()", 'x.to("cpu")', "x.detach().cpu().float()"])
def test_a_tensor_of_the_cpu_is_moved_by_the_script_alone(value):
    source = f"import torch\ndef f(model, loader):\n    for x in loader:\n        y = {value}\n        y = y.cuda()\n        model(x, y)\n"
    assert ".to(x.device)" in migrated(source).text or "y = y.cuda()" in migrated(source).text


def test_a_number_or_the_cpu():
    source = "import torch\ndef f(args, rank, x):\n    return x.to(rank if args.gpu else 'cpu')\n"
    check(source, source.replace(".to(rank if args.gpu else 'cpu')", ""), select="PTM101")


@pytest.mark.parametrize(
    "added", ["torch.randn(x.shape, device=x.device)", "mean.to(x.device)", "2 * noise.type_as(x)"]
)
def test_a_batch_that_something_is_added_to(added):
    """`x = x.to(x.device)` came of it."""
    source = (
        "import torch\ndef f(model, loader, device):\n    mean = torch.zeros(3)\n    noise = torch.ones(3)\n"
        f"    for x, y in loader:\n        x, y = x.to(device), y.to(device)\n        x = x + {added}\n        model(x, y)\n"
    )
    text = migrated(source).text
    assert "x.to(device)" not in text and "x = x.to(" not in text and "x, y = x" not in text


@pytest.mark.parametrize("made", ["torch.randn(3)", "scale * torch.randn(3)"])
def test_what_the_script_makes_is_moved_by_it(made):
    source = f"import torch\ndef f(x, scale, device):\n    noise = {made}\n    noise = noise.to(device)\n    return x.size(0), noise + 1\n"
    assert "noise = noise.to(" in migrated(source).text or ".type_as(x)" in migrated(source).text


@pytest.mark.parametrize("turned", ["torch.from_numpy(self.scale).float()", "torch.tensor(self.scale)"])
def test_an_array_that_becomes_a_tensor_is_moved_by_the_script_alone(turned):
    """The move went, and nothing moved what the batch meets."""
    source = (
        "import numpy as np\nimport torch\nclass Data:\n    def __init__(self):\n        self.scale = np.ones(4)\n"
        f"        self.scale = {turned}\n        self.scale = self.scale.cuda()\n"
    )
    check_unchanged(source, select="PTM101")


SPARSE = """import torch
from torch import nn
class Net(nn.Module):
    def __init__(self, adj, device):
        super().__init__()
        self.adj = self.convert(adj).to(device)
    def convert(self, m):
        i = torch.LongTensor([m.row, m.col])
        return torch.sparse{made}(i, torch.from_numpy(m.data), m.shape)
"""


@pytest.mark.parametrize("made", [".FloatTensor", "_coo_tensor", "_csr_tensor"])
def test_a_sparse_tensor_that_the_script_makes_is_moved_by_it(made):
    """`.to(device)` went, and the network met it on the CPU."""
    check_unchanged(SPARSE.replace("{made}", made), select="PTM101,PTM105")


@pytest.mark.parametrize("made", [".FloatTensor", "_coo_tensor"])
def test_one_of_what_the_step_is_given_is_where_that_is(made):
    source = (
        f"import torch\ndef f(i, v, device):\n    a = torch.sparse{made}(i, v, (3, 3)).to(device)\n    return a.t()\n"
    )
    check(source, source.replace(".to(device)", ""), select="PTM101")


@pytest.mark.parametrize("before", ["self.out = self.out.float()", "self.out = torch.cat([self.out, x])"])
def test_what_a_network_gave_is_not(before):
    source = (
        "import torch\nclass Run:\n    def step(self, model, x):\n        self.out = model(x)\n"
        f"        {before}\n        self.out = self.out.cuda()\n"
    )
    check(source, source.replace("        self.out = self.out.cuda()\n", ""), select="PTM101")


@pytest.mark.parametrize("name", ["batches", "train_iter", "x"])
def test_a_tensor_that_is_called_as_a_loader_is(name):
    """`net(batches.cuda())` was `net(batches)`, of what the script itself drew."""
    source = (
        f"import torch\ndef f(net, draw):\n    {name} = draw.read().next()\n    return net({name}.cuda()), {name}\n"
    )
    check_unchanged(source, select="PTM101")


@pytest.mark.parametrize(
    "moved", ["Variable(batches).cuda()", "batches.float().cuda()", "torch.cat([batches])[0].cuda() + batches.to(0)"]
)
def test_whatever_torch_makes_of_it_first(moved):
    source = "import torch\nfrom torch.autograd import Variable\n\ndef f(net, draw):\n"
    check_unchanged(f"{source}    batches, labels = draw.read().next()\n    return net({moved})\n", select="PTM101")


@pytest.mark.parametrize("batches", ["next(iter(loader))", "loader[0]"])
def test_one_that_the_runtime_places_is_not(batches):
    source = f"import torch\ndef f(net, loader):\n    for _ in range(9):\n        batches = {batches}\n        net(batches.cuda())\n"
    check(source, source.replace("batches.cuda()", "batches"), select="PTM101")


BATCHES = "import torch\n\ndef train(net, train_loader, opt):\n    for step in range(9):\n"


@pytest.mark.parametrize("given", ["train_loader.next_batch()", "self.loader.sample(4)", "train_loader.get(step)[0]"])
def test_what_a_method_of_a_loader_gives_is_moved_by_the_script_alone(given):
    """A loop draws batches of a loader; what an object of that name gives besides is its own."""
    check_unchanged(f"{BATCHES}        x = {given}\n        x = x.to('cuda')\n        net(x)\n", select="PTM101")


@pytest.mark.parametrize("given", ["next(train_loader)", "train_loader.next()", "next(iter(train_loader))"])
def test_what_is_drawn_of_a_loader_is_not(given):
    text = f"{BATCHES}        x = {given}\n        x = x.to('cuda')\n        net(x)\n"
    assert ".to(" not in migrated(text, "PTM101").text


@pytest.mark.parametrize(
    "drawn",
    ["test_loader.__iter__().next()", "iter(test_loader).__next__()", "next(iter(test_loader))", "batches.next()"],
)
def test_a_batch_that_a_function_draws_by_itself_is_moved_by_it(drawn):
    """No Trainer draws it: it shows what the model makes of the first batch."""
    check_unchanged(
        f"import torch\n\ndef show(net, test_loader):\n    x, _ = {drawn}\n    x = x[:8].to('cuda')\n    net(x)\n",
        select="PTM101",
    )


RENDERED = (
    "import torch\n\ndef render(n, x):\n    return n, {}\n\ndef train(net, train_loader):\n    for x in train_loader:\n"
)


@pytest.mark.parametrize("made", ["torch.full((2, 3), 1.0)", "torch.zeros(3) + n"])
def test_a_tensor_that_a_function_gives_beside_others_is_moved_by_the_script(made):
    check_unchanged(f"{RENDERED.format(made)}        _, t = render(1, x)\n        net(t.to('cuda'))\n", select="PTM101")


@pytest.mark.parametrize("given", ["x * 2", "x[:2]"])
def test_a_batch_that_a_function_gives_beside_others_is_not(given):
    text = f"{RENDERED.format(given)}        _, t = render(1, x)\n        net(t.to('cuda'))\n"
    assert ".to(" not in migrated(text, "PTM101").text


CHAINS = {
    "(x.float()  # numbers\n         .to(device)  # there\n         .div(2))  # half": "(x.float()  # numbers\n         .div(2))  # half",
    "(x.float()  # numbers\n         .to(device).div(2)  # half\n         )": "(x.float()  # numbers\n         .div(2)  # half\n         )",
    "(x.float()  # numbers\n         .cuda()  # there\n         .div(2)  # half\n         .sum())": "(x.float()  # numbers\n         .div(2)  # half\n         .sum())",
    "(x.float()  # numbers\n         .cuda()  # there\n         )": "(x.float()  # numbers\n         )",
    "(x.float()  # numbers\n         .cuda())": "(x.float()  # numbers\n         )",
    "(x.float()  # numbers\n         .to(device, torch.half)  # there\n         .div(2))": "(x.float()  # numbers\n         .to(torch.half)  # there\n         .div(2))",
    "(x.float()\n         .cuda()  # there\n         .div(2))": "(x.float()  # there\n         .div(2))",
}


@pytest.mark.parametrize("before", CHAINS)
def test_comments_in_a_chain_stay_where_they_were(before):
    """The one behind what was moved went, and that of the move took its place; that of the move stands above now."""
    body = "def f(x, device):\n{}    y = {}\n    return y"
    above = "    # there\n" if "# there" not in CHAINS[before] and "# there" in before else ""
    check(lines(body.format("", before)), lines(body.format(above, CHAINS[before])), select="PTM101")


CARDS = [
    ('"cuda:0"', '"cuda:1"', True),
    ("0", "1", True),
    ('torch.device("cuda", 0)', "second", True),
    ('"cuda:1"', '"cuda:1"', False),
    ('"cuda"', '"cuda:1"', False),
    ("0", "gpu", False),
]


@pytest.mark.parametrize(("first", "other", "several"), CARDS)
def test_parts_on_several_cards_are_told(first, other, several):
    source = "import torch\nsecond = torch.device('cuda:1')\ndef go(a, b, gpu, batch):\n"
    source += f"    a.to({first})\n    b.to({other})\n    return a(batch) + b(batch)\n"
    told = [n.line for n in migrated(source).attention if "cards 0 and 1" in n.message]
    assert told == ([5] if several else [])


GO = "import torch\ndef go(model, loader, device):\n    for batch in loader:\n        {}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("model(*(t.cuda() for t in batch))", "model(*batch)"),
        ("model(**{k: v.to(device) for k, v in batch.items()})", "model(**batch)"),
        (
            "model(x=1, *(t.cuda() for t in batch), **{k: v.cuda() for k, v in batch.items()})",
            "model(x=1, *batch, **batch)",
        ),
        ("model(*(t.float().cuda() for t in batch))", "model(*(t.float() for t in batch))"),
        (
            "model(**{k: v.cuda() for k, v in batch.items() if k != 'y'})",
            "model(**{k: v for k, v in batch.items() if k != 'y'})",
        ),
        ("model([*(t.cuda() for t in batch)])", "model([*(t for t in batch)])"),
    ],
)
def test_what_a_call_unpacks_needs_no_comprehension(before, after):
    check(GO.format(before), GO.format(after), select="PTM101")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = x.cuda(); y = y.cuda(); print(x, y)", "print(x, y)"),
        ("print(x); y = y.cuda();  # end", "print(x);  # end"),
        ("x = x.cuda(); y = y.cuda()", "pass"),
    ],
)
def test_of_a_block_on_one_line_the_rest_stays(before, after):
    source = "import torch\ndef go(loader):\n    for x, y in loader: {}\n"
    check(source.format(before), source.format(after), select="PTM101")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(batch\n         .eval()   # mode\n         .cuda()\n         .half())", "(batch\n         .eval()   # mode\n         .half())"),
        ("f(batch\n          .float().cuda())", "f(batch\n          .float())"),
        ("batch \\\n            .float() \\\n            .cuda()", "batch \\\n            .float()"),
        ("-(batch\n           .float()).cuda() ** 2", "-(batch\n           .float()) ** 2"),
    ],
)  # fmt: skip
def test_a_chain_over_lines_gets_no_more_parentheses(before, after):
    check(GO.format("y = " + before), GO.format("y = " + after), select="PTM101")


def test_a_device_that_a_condition_binds():
    source = "import torch\ndef go(loader):\n    if (d := torch.device('cuda')).index:\n        for x in loader:\n            print(x{})\n"
    check(source.format(".to(d)"), source.format(""), select="PTM101")


def test_one_that_is_bound_where_it_is_handed_on_stays():
    check_unchanged(
        "import torch\ndef go(m, loader):\n    m = m.to(d := get())\n    return [m(x.to(d)) for x in loader]\n"
    )


DRAWN = """
import torch
from torch.distributions import Normal

def draw(mean, n, device):
    prior = Normal({}, 1.0)
    return prior.sample((n,)).to(device) + Normal({}, 1.0).sample(torch.Size([n])).to(device)
"""


def test_what_a_distribution_draws_is_where_its_parameters_are():
    made = DRAWN.format("torch.zeros(3)", "0.0")
    assert migrated(made).text == made
    assert ".to(" not in migrated(DRAWN.format("mean", "mean")).text


def test_what_a_distribution_was_made_of_does_not_move_with_a_module():
    made = """
    import torch
    class Net(torch.nn.Module):
        def __init__(self, mean):
            super().__init__()
            self.prior = torch.distributions.Normal({}, 1)
            self.prior.loc = self.prior.loc.cuda()
        def forward(self, x):
            return x + self.prior.sample(x.shape).cuda()
    """
    numbers = dedent(made.format("0"))
    assert migrated(numbers).text == numbers.replace("shape).cuda()", "shape).to(x.device)")
    assert "PTM104" in [n.code for n in migrated(numbers).attention]
    assert "cuda" not in migrated(dedent(made.format("mean"))).text


@pytest.mark.parametrize(("asks", "told"), [("with torch.no_grad():", True), ("if True:", False)])
def test_a_script_that_only_evaluates_is_told_that_its_network_stays(asks, told):
    script = f"import torch\nnet = torch.nn.Linear(2, 2).cuda()\n{asks}\n    print(net(torch.ones(2)))\n"
    said = [n.message for n in migrate_text(script).attention]
    assert any("nothing here trains" in m for m in said) == told


@pytest.mark.parametrize(
    ("made", "optimized", "stays"),
    [
        ("img.clone().to(device).requires_grad_(True)", "[x]", True),
        ("img.to(device)", "[{'params': [x]}]", True),
        ("img.clone().to(device).requires_grad_(True)", "net.parameters()", False),
        ("img.to(device)", "[y]", False),
    ],
)
def test_a_leaf_that_an_optimizer_is_given_keeps_its_move(made, optimized, stays):
    text = f"import torch\ndef f(img, net, y, device):\n    x = {made}\n    opt = torch.optim.LBFGS({optimized})\n    return x, opt\n"
    result = migrated(text)
    assert ("to(device)" in result.text) == stays
    assert any("names a device" in n.message for n in result.attention) == stays
