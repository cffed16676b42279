import pytest
from ptmigrate.migrate.facts.choice import accelerator
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.migrate import migrate_text

AUTO = None


@pytest.mark.parametrize(
    ("source", "chosen"),
    [
        ("device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')", AUTO),
        ("device = 'cuda' if args.cuda else 'cpu'", '"auto" if args.cuda else "cpu"'),
        ("device = 'cpu' if args.no_cuda else 'cuda'", '"cpu" if args.no_cuda else "auto"'),
        (
            "device = 'cuda' if not args.no_cuda and torch.cuda.is_available() else 'cpu'",
            '"cpu" if args.no_cuda else "auto"',
        ),
        (
            "use = not args.no_cuda and torch.cuda.is_available()\ndevice = 'cuda' if use else 'cpu'",
            '"cpu" if args.no_cuda else "auto"',
        ),
        (
            "if args.gpu:\n    device = torch.device('cuda')\nelse:\n    device = torch.device('cpu')",
            '"auto" if args.gpu else "cpu"',
        ),
        ("if args.cuda:\n    model.cuda()", '"auto" if args.cuda else "cpu"'),
        ("model = model.cuda() if args.cuda else model", '"auto" if args.cuda else "cpu"'),
        ("if torch.cuda.is_available():\n    model.cuda()", AUTO),
        ("device = torch.device(args.device)", "torch.device(args.device).type"),
        (
            "if len(args.gpu_ids) > 1:\n    model.cuda(args.gpu_ids[0])",
            AUTO,
        ),  # a card's number
        ("model.to(args.gpus[0])", AUTO),
        (
            "device = torch.device(args.device if torch.cuda.is_available() else 'cpu')",
            "torch.device(args.device if torch.cuda.is_available() else 'cpu').type",
        ),
        ("device = torch.device(args.gpu if torch.cuda.is_available() else 'cuda')", AUTO),
        ("device = torch.device(self.device if torch.cuda.is_available() else 'cpu')", AUTO),
        ("model.cuda()", AUTO),
        ("def f(x):\n    return torch.zeros(3, device='cuda' if x.is_cuda else 'cpu')", AUTO),
        ("def f(x):\n    device = 'cpu' if x.device.type == 'cpu' else 'cuda'", AUTO),
        (
            "def f(x):\n    device = 'cuda' if x.is_cuda else 'cpu'\nif args.cuda:\n    model.cuda()",
            '"auto" if args.cuda else "cpu"',
        ),
        (
            "class A:\n    def __init__(self):\n        self.gpu = torch.cuda.is_available()\n"
            "        self.device = 'cuda' if self.gpu else 'cpu'",
            AUTO,
        ),
        (
            "class A:\n    def __init__(self):\n        self.gpu = torch.cuda.is_available()\n"
            "        self.device = 'cuda' if self.gpu else 'cpu'\na.gpu = False",
            '"auto" if self.gpu else "cpu"',
        ),
        ("for k, v in state.items():\n    if torch.is_tensor(v):\n        state[k] = v.to('cuda')", AUTO),
        ("for m in models:\n    if m:\n        m.cuda()", AUTO),
        ("y = x.to('cuda') if isinstance(x, torch.Tensor) else x", AUTO),
        ("if len(args.gpus) > 0:\n    model.cuda()", '"auto" if len(args.gpus) > 0 else "cpu"'),
        ("x = 'a' if args.cuda else 'b'", AUTO),
        ("if args.cuda:\n    torch.cuda.manual_seed(1)", AUTO),
        (  # which card, not whether
            "if args.gpu is not None:\n    model.cuda(args.gpu)\nelse:\n    model.cuda()\n"
            "if args.gpu is not None and torch.cuda.is_available():\n    x = x.cuda(args.gpu)",
            AUTO,
        ),
        ("if h.n > 1:\n    m = nn.parallel.DistributedDataParallel(m).to('cuda')", AUTO),
        ("if args.cuda:\n    m.cuda()\nif n > 1:\n    m = D(m).cuda()", '"auto" if args.cuda else "cpu"'),
        ("d = torch.device('cuda:{:d}'.format(n))\nm.to(d)\nif args.big:\n    x.to(d)", AUTO),
        ("d = torch.device('cuda:%d' % n) if args.cuda else 'cpu'\nm.to(d)", '"auto" if args.cuda else "cpu"'),
        ("d = 'cuda' if torch.cuda.is_available() else 'cpu'\nm.to(d)\nif args.big:\n    x.to(d)", AUTO),
        ("d = torch.device(args.d)\nm.to(d)\nif args.big:\n    x.to(d)", "torch.device(args.d).type"),
        (
            "d = 'cpu'\nif args.gpu:\n    d = 'cuda'\nm.to(d)\nif args.gpu:\n    x = x.to(d)",
            '"auto" if args.gpu else "cpu"',
        ),
        ("x = x.cuda(args.gpu) if args.gpu else x.cuda()\nif args.gpu:\n    y.cuda()", AUTO),
        (
            "if args.gpu is not None:\n    x = x.cuda(args.gpu)\nif args.all:\n    pass\nelse:\n    m.cuda()",
            '"auto" if args.gpu is not None else "cpu"',
        ),
        ("d = 'cuda:%d' % args.gpu if args.gpu >= 0 else 'cpu'", '"auto" if args.gpu >= 0 else "cpu"'),
        ("d = 'cpu'\nif args.gpu:\n    d = 'cuda'", '"auto" if args.gpu else "cpu"'),
        ("d = 'cpu'\nif args.gpu:\n    e = 'cuda'", AUTO),
        ("d = 'cpu'\nif torch.cuda.is_available():\n    d = 'cuda'", AUTO),
        ("device = sys.argv[1]\nx.to(device)", "torch.device(device).type"),
        ("import os\ndevice = os.environ.get('DEVICE', 'cuda')\nx.to(device)", "torch.device(device).type"),
        ("c = load('c.yml')\nx.to(c['device'])", "torch.device(c['device']).type"),
        ("c = load('c.yml')\ndevice = torch.device(c['a']['device'])", "torch.device(c['a']['device']).type"),
        ("c = {'device': 'cuda'}\nx.to(c['device'])", AUTO),
        ("device = ['cpu', 'cuda'][args.gpu]\nx.to(device)", "torch.device(device).type"),
        ("device = ['cpu', 'cuda'][1]\nx.to(device)", AUTO),
        ("device = args.cpu and 'cpu' or 'cuda'\nx.to(device)", "torch.device(device).type"),
        ("class A:\n    def f(self, x):\n        return x.to(self.c['device'])", AUTO),
        ("device = f(args)\nx.to(device)", AUTO),
        ("d = torch.device(f(args))\nif args.net is not None:\n    args.net.to(d)", AUTO),
        ("d = torch.device(f(args))\nm = m.to(d) if m is not None else m", AUTO),
        (
            "d = torch.device(f(args))\nfor i in n:\n    c = g(i)\n    if c is not None:\n        x = h(c).to(d)",
            AUTO,
        ),
        ("d = torch.device(f(args))\nif args.net:\n    x = x.to(d)", '"auto" if args.net else "cpu"'),
        ("d = f(args)\nif args.net:\n    m = Net()\n    m = m.to(d)\n    m.fit()", AUTO),
        ("gpus = list(range(torch.cuda.device_count()))\nd = 'cuda' if gpus else 'cpu'", AUTO),
        ("gpus = list(range(args.n))\nd = 'cuda' if gpus else 'cpu'", '"auto" if list(range(args.n)) else "cpu"'),
        ("if args.cuda:\n    y = g()\n    model.cuda()", '"auto" if args.cuda else "cpu"'),
        ("d = torch.device(f(args))\nif args.gpu:\n    m = m.to(d)", '"auto" if args.gpu else "cpu"'),
        ("device = device_of(x)\ndevice = sys.argv[1]\nx.to(device)", AUTO),
    ],
)
def test_the_users_choice_is_the_trainers(source, chosen):
    assert accelerator(Facts("import torch\n" + source + "\n")) == chosen


@pytest.mark.parametrize(
    ("test", "chosen"),
    [("not (not args.cpu and args.gpu)", "not (not args.cpu and args.gpu)"), ("not (not args.cpu)", "args.cpu"),
     ("args.a and (args.b or torch.cuda.is_available())", "args.a"), ("args.a and (args.b or args.c)", None)],
)  # fmt: skip
def test_conditions_keep_their_parentheses(test, chosen):
    facts = Facts(f"import torch\ndevice = 'cuda' if {test} else 'cpu'\n")
    assert accelerator(facts) == f'"auto" if {chosen or test} else "cpu"'


@pytest.mark.parametrize(
    ("source", "chosen"),
    [
        ("import torch as t\nd = t.device(args.device)\nx.to(d)", "t.device(args.device).type"),
        ("from torch import device\nd = device(args.device)\nx.to(d)", "device(args.device).type"),
        ("import sys\nimport torch as t\ndevice = sys.argv[1]\nx.to(device)", "t.device(device).type"),
        ("import sys, torch as t\nimport torch\ndevice = sys.argv[1]\nx.to(device)", "torch.device(device).type"),
        ("import sys, torch.nn as nn\nimport torch\ndevice = sys.argv[1]\nx.to(device)", "torch.device(device).type"),
    ],
)
def test_torch_goes_by_the_name_that_the_file_has_for_it(source, chosen):
    assert accelerator(Facts(source + "\n")) == chosen


FLAG = "import torch\n{given}\ndef on(n=0):\n    {does}\n    return {gives}\nuse = on()\nif use:\n    net.cuda()\n"


@pytest.mark.parametrize(
    ("does", "gives", "chosen"),
    [
        ("torch.manual_seed(3)", "torch.cuda.is_available()", None),
        ("'whether'", "torch.cuda.is_available() and not args.cpu", '"cpu" if args.cpu else "auto"'),
        ("torch.manual_seed(3)", "torch.cuda.is_available() and not args.cpu", '"auto" if use else "cpu"'),
        ("torch.manual_seed(3)", "torch.cuda.is_available() and n > 0", '"auto" if use else "cpu"'),
        ("k = args.k", "k > 0", '"auto" if on() else "cpu"'),
    ],
)
def test_a_function_that_asks_is_not_asked_twice_where_it_does_more(does, gives, chosen):
    assert accelerator(Facts(FLAG.format(given="", does=does, gives=gives))) == chosen


def test_a_function_in_a_condition():
    text = "import torch\ndef on():\n    return torch.cuda.is_available() and not args.cpu\nif on():\n    net.cuda()\n"
    assert accelerator(Facts(text)) == '"cpu" if args.cpu else "auto"'


def test_the_option_that_the_trainer_reads_stays():
    text = (
        "import argparse, torch\nfrom torch import nn\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--device', default='cpu')\nargs = parser.parse_args()\n"
        "device = torch.device(args.device if torch.cuda.is_available() else 'cpu')\n"
        "net = nn.Linear(3, 1).to(device)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "for epoch in range(2):\n    for x in torch.utils.data.DataLoader(torch.randn(8, 3), 4):\n"
        "        x = x.to(device)\n"
        "        loss = net(x).mean()\n        opt.zero_grad()\n        loss.backward()\n        opt.step()\n"
    )
    result = migrate_text(text).text
    assert "parser.add_argument('--device', default='cpu')" in result
    assert "accelerator=torch.device(args.device if torch.cuda.is_available() else 'cpu').type" in result


MPS = "torch.backends.mps.is_available()"
ON_CUDA = "torch.cuda.is_available() and not args.no_cuda"
ON_MPS = f"not args.no_mps and {MPS}"
EITHER = f'"auto" if (not args.no_mps if {MPS} else not args.no_cuda) else "cpu"'


@pytest.mark.parametrize(
    ("source", "chosen"),
    [
        (f"device = 'cuda' if {ON_CUDA} else 'mps' if {ON_MPS} else 'cpu'", EITHER),
        (f"device = torch.device('cuda' if {ON_CUDA} else 'mps' if {ON_MPS} else 'cpu')", EITHER),
        (
            f"d = torch.device('mps') if {ON_MPS} else torch.device('cuda:0') if {ON_CUDA} else torch.device('cpu')",
            EITHER,
        ),
        (f"if {ON_CUDA}:\n    d = 'cuda'\nelif {ON_MPS}:\n    d = 'mps'\nelse:\n    d = 'cpu'", EITHER),
        (f"d = 'cpu'\nif {ON_CUDA}:\n    d = 'cuda'\nelif {ON_MPS}:\n    d = 'mps'", EITHER),
        (f"a, b = 1, 2\non = {ON_CUDA}\nmac = {ON_MPS}\nd = 'cuda' if on else 'mps' if mac else 'cpu'", EITHER),
        (f"d = 'cuda' if {ON_CUDA} else 'mps' if {MPS} else 'cpu'", f'"auto" if {MPS} or not args.no_cuda else "cpu"'),
        (
            f"d = 'cuda' if torch.cuda.is_available() else 'mps' if {ON_MPS} else 'cpu'",
            f'"auto" if not args.no_mps or not {MPS} else "cpu"',
        ),
        (f"d = 'cuda' if torch.cuda.is_available() else 'mps' if {MPS} else 'cpu'", AUTO),
        (
            f"d = 'cuda' if {ON_CUDA} else 'mps' if {MPS} and not args.no_cuda else 'cpu'",
            '"cpu" if args.no_cuda else "auto"',
        ),
        ("d = 'cuda' if args.cuda else 'mps' if args.mps else 'cpu'", '"auto" if args.cuda else "cpu"'),
        (f"d = 'cuda' if {ON_CUDA} else 'xpu' if args.xpu else 'cpu'", '"cpu" if args.no_cuda else "auto"'),
        (f"d = 'cpu' if args.no_cuda else 'mps' if {MPS} else 'cpu'", '"cpu" if args.no_cuda else "auto"'),
        ("d = 'cpu' if args.no_cuda else 'mps' if args.mps else 'cpu'", AUTO),
        (f"x = 'a' if {ON_CUDA} else 'mps' if {ON_MPS} else 'b'", AUTO),
    ],
)
def test_each_machine_has_one_of_cuda_and_mps(source, chosen):
    assert accelerator(Facts("import torch\n" + source + "\n")) == chosen


ASKED = "d = 'cuda' if torch.cuda.is_available() else 'mps' if {} and torch.backends.mps.is_available() else 'cpu'"


@pytest.mark.parametrize(
    ("asked", "chosen"),
    [
        ("hasattr(torch.backends, 'mps')", AUTO),
        ("getattr(torch.backends, 'mps', None) is not None", AUTO),
        ("getattr(torch, 'has_mps', False)", AUTO),
        ("hasattr(args, 'mps')", "hasattr(args, 'mps')"),
        ("getattr(args, 'mps', False)", "getattr(args, 'mps', False)"),
        ("getattr(torch, args.mps)", "getattr(torch, args.mps)"),
    ],
)
def test_whether_torch_can_be_asked_is_the_machines(asked, chosen):
    if chosen is not AUTO:
        chosen = f'"auto" if {chosen} or not torch.backends.mps.is_available() else "cpu"'
    assert accelerator(Facts(f"import torch\n{ASKED.format(asked)}\n")) == chosen
