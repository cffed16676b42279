import ast

import pytest
from ptmigrate.migrate.facts.other_files import OtherFile
from ptmigrate.migrate.facts.script import Facts


def moved(source: str) -> bool:
    """Whether the last call of a source only moves what it is called on."""
    facts = Facts("import torch\n" + source + "\n")
    last = max(facts.walk(ast.Expr), key=lambda e: e.lineno)
    assert isinstance(last.value, ast.Call)
    return facts.devices.moved(last.value) is not None


@pytest.mark.parametrize(
    "source",
    [
        "x.cuda()",
        "x.to('cuda:1')",
        "x.to(0)",
        "x.to(args.device)",
        "x.to(rank, non_blocking=True)",
        "device = None\ndevice = torch.device('cuda')\nx.to(device)",
        "device = 'cuda' if c else 'mps' if d else 'cpu'\nx.to(device)",
        "def pick():\n    return torch.device('cpu')\ndevice = pick()\nx.to(device)",
        "def pick():\n    return 1, torch.device('cuda')\nn, d = pick()\nx.to(d)",
        "def pick():\n    return None, torch.device('cuda')\nd = 'cpu'\nn, d = pick()\nx.to(d)",
        "rank, device = elsewhere()\nx.to(device)",
        "n, d = 1, 'cuda:0'\nx.to(d)",
        "args.where = torch.device('cuda')\nx.to(args.where)",
        "x.to(args.device or 'cuda')",
        "c = {'device': 'cuda', 'lr': 1}\nx.to(c['device'])",
        "c = dict(where='cuda')\nx.to(c['where'])",
        "config = load()\nx.to(config['device'])",
        "config = load()\nx.to(config.get('device'))",
        "config = load()\nx.to(config['train'].get('device', 'cpu'))",
        "def f(x, args):\n    x.to(getattr(args, 'device', None))",
        "x.to(self.cfg.device)",
        "from config import DEVICE\nx.to(DEVICE)",
        "from settings import device as where\nx.to(where)",
        "import project.config as c\nx.to(c.DEVICE)",
        "x.to(self.hparams['device'])",
        "class E:\n    @property\n    def card(self):\n        return torch.device('cuda')\ne = E()\nx.to(e.card)",
        "class E:\n    def __init__(self):\n        self.where = torch.device('cuda')\ne = E()\nx.to(e.where)",
    ],
)
def test_a_device(source):
    assert moved(source)


@pytest.mark.parametrize(
    "source",
    [
        "x.to(y)",
        "x.to(y.device)",
        "class E:\n    def device(self):\n        return torch.device('cuda', 0)\ne = E()\nx.to(e.device)",
        "class E:\n    @property\n    def kind(self):\n        return torch.half\ne = E()\nx.to(e.kind)",
        "class E:\n    def __init__(self):\n        self.where = torch.half\ne = E()\nx.to(e.where)",
        "x.to(torch.half)",
        "x.to(True)",
        "x.to('float')",
        "x.to()",
        "x.cpu()",
        "torch.cuda.device(0)",
        "def pick():\n    return torch.half\nd = pick()\nx.to(d)",
        "def pick():\n    return torch.device('cuda'), torch.half\nd, kind = pick()\nx.to(kind)",
        "def pick():\n    if c:\n        return 1, 2, torch.device('cuda')\n    return 1, y\nn, d = pick()\nx.to(d)",
        "rank, kind = elsewhere()\nx.to(kind)",
        "n, *d = 1, 'cuda:0'\nx.to(d)",
        "n, device = 1, torch.half\nx.to(device)",
        "(n, d), e = (1, 'cuda'), 2\nx.to(d)",
        "args.where = 3.5\nx.to(args.where)",
        "device = torch.half\nx.to(device)",
        "for d in ds:\n    x.to(d)",
        "x.to('cpu')",
        "x.to(torch.device('cpu'))",
        "c = {'kind': torch.half}\nx.to(c['kind'])",
        "c = {'device': torch.half}\nx.to(c['device'])",
        "batch = load()\nx.to(batch['device'])",
        "config = load()\nx.to(config['dtype'])",
        "config = load()\nx.to(config.get('dtype'))",
        "config = load()\nx.to(config.get('device', torch.half))",
        "config = load()\nx.to(config.get(device))",
        "def f(x, args):\n    x.to(getattr(args, 'dtype', None))",
        "def f(x, things):\n    x.to(things.get('device'))",
        "x.to(self.model.device)",
        "from torch import device\nx.to(device)",
        "from config import DTYPE\nx.to(DTYPE)",
        "from . import device\nx.to(device)",
        "import net\nx.to(net.model.dtype)",
        "x.to(self.cfg.dtype)",
        "x.to(self.data['device'])",
    ],
)
def test_something_else(source):
    assert not moved(source)


@pytest.mark.parametrize(
    ("there", "only"),
    [
        ("def pick():\n    return torch.device('cuda')\n", True),
        ("def pick():\n    if torch.cuda.is_available():\n        return 'cuda:1'\n    return 'cpu'\n", True),
        ("def card():\n    return torch.device('cuda')\ndef pick():\n    return card()\n", True),
        ("def pick():\n    return torch.half\n", False),
        ("def pick():\n    return pick()\n", False),
        ("def pick():\n    if c:\n        return torch.device('cuda')\n    return x\n", False),
        ("class pick:\n    pass\n", False),
        ("pick = torch.device\n", False),
    ],
)
@pytest.mark.parametrize(("get", "call"), [("from there import pick", "pick()"), ("import there", "there.pick()")])
def test_a_function_of_another_file(there, only, get, call):
    facts = Facts(f"import torch\n{get}\nx.to({call})\n")
    facts.others = (OtherFile("there", "import torch\n" + there), OtherFile("else", "def other():\n    pass\n"))
    move = next(c for c in facts.walk(ast.Call) if isinstance(c.func, ast.Attribute) and c.func.attr == "to")
    assert (facts.devices.moved(move) is not None) is only


@pytest.mark.parametrize(
    "source",
    [
        "x.to(self.gpu_id)",
        "x.to(gpu)",
        "x.to(int(os.environ['LOCAL_RANK']))",
        "x.to(dist.get_rank())",
        "x.to(device_ids[0])",
        "x.to('cuda:{}'.format(n))",
        "x.to('cuda:%d' % n)",
        "x.to('cuda:' + str(n))",
        "device = rank\nx.to(device)",
        "device = int(os.environ['LOCAL_RANK'])\nx.to(device)",
        "device = n if n >= 0 else 'cpu'\nx.to(device)",
    ],
)
def test_a_number_says_which_device(source):
    facts = Facts("import os, torch\nimport torch.distributed as dist\n" + source)
    call = next(c for c in facts.walk(ast.Call) if isinstance(c.func, ast.Attribute) and c.func.attr == "to")
    assert facts.devices.moved(call) is not None


@pytest.mark.parametrize(
    "source",
    ["x.to(n)", "x.to(self.dtype)", "x.to(ids[0])", "device = torch.half\nx.to(device)", "device = [1]\nx.to(device)"],
)
def test_a_number_of_something_else(source):
    facts = Facts("import torch\n" + source)
    call = next(c for c in facts.walk(ast.Call) if isinstance(c.func, ast.Attribute) and c.func.attr == "to")
    assert facts.devices.moved(call) is None


@pytest.mark.parametrize(
    ("given", "is_host"),
    [
        ("device = 'cpu'\ndevice = torch.device(device)", True),
        ("device = 'cuda:0'\ndevice = torch.device(device)", False),
        ("device = torch.device(device)", False),  # from elsewhere
        ("device = torch.device(other)\nother = torch.device(device)", False),
        ("device = torch.device(other)\nother = 'cpu'", True),
    ],
)
def test_a_device_that_is_made_of_itself(given, is_host):
    facts = Facts(f"import torch\n{given}\ny.cuda()\nx.to(device)\n")
    last = max(facts.walk(ast.Call), key=lambda c: c.lineno)
    assert facts.devices.is_host(last.args[0]) is is_host


@pytest.mark.parametrize(
    ("given", "known"),
    [
        ("self.net, self.x = net, x", {"net": ["net"], "x": ["x"]}),
        ("(self.a, (self.b, c)), self.d = (1, (2, 3)), 4", {"a": ["1"], "b": ["2"], "d": ["4"]}),
        ("self.a, self.b = self.c = 1, 2", {"c": ["(1, 2)"], "a": ["1"], "b": ["2"]}),
        ("self.a, self.b = pair", {}),
        ("self.a, self.b = 1, 2, 3", {}),
        ("self.a, self.b = *pairs, 2", {}),
        ("self.a, *self.b = 1, 2", {}),
    ],
)
def test_what_attributes_are_given(given, known):
    found = Facts(f"class A:\n    def f(self, net, x):\n        {given}\n").devices.attribute_values
    assert {name: [ast.unparse(v) for v in values] for name, values in found.items()} == known
