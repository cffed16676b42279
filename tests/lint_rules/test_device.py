"""PTM1xx beyond the rules' own examples: what is found, and as much that must not be."""

import pytest
from checking import found

MODULE = "import torch\nclass Net(torch.nn.Module):\n  def {}(self, x):\n    {}\n"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import torch as t\nx = t.zeros(3, device='cuda:1')", ["PTM101 2"]),
        ("import torch\nm.cuda(gpu, non_blocking=True)", ["PTM101 2"]),
        ("import torch\nif use_cuda:\n  m.cuda()", ["PTM101 3"]),
        ("import torch\nd = torch.device('mps')", ["PTM101 2"]),
        ("import torch\nif torch.cuda.is_available():\n  d = torch.device('cuda:0')", ["PTM101 3"]),
        ("import torch\ndevice = 'cuda:0' if torch.cuda.is_available() else 'cpu'", ["PTM101 2"]),
        ("import torch\nx.to(device='cuda')", ["PTM101 2"]),
        (MODULE.format("forward", "return x.cuda()"), ["PTM103 4"]),
        (
            "import torch\nclass Box:\n  def cuda(self):\n    self.x = self.x.cuda()\n    return self\nBox().cuda()",
            ["PTM101 6"],
        ),
        (MODULE.format("__init__", "self.a = torch.nn.Linear(1, 2).to('cuda')"), ["PTM103 4"]),
        (MODULE.format("forward", "return x + torch.randn(x.shape)"), ["PTM104 4"]),
        (MODULE.format("__init__", "self.scale = torch.ones(3).view(1, 3)"), ["PTM105 4"]),
        ("import os, torch\nos.environ.setdefault('CUDA_VISIBLE_DEVICES', '0')", ["PTM107 2"]),
        ("from torch import load as read\nread('a.pt')", ["PTM109 2"]),
    ],
)
def test_found(source, expected):
    assert found(source, "PTM1") == expected


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ndevice = torch.device('cuda' if torch.cuda.is_available() else 'cpu')",
        "import torch\nx.to('cpu'); x.cpu(); torch.device('cpu'); torch.zeros(1, device='cpu')",
        "import torch\nx.to(device); x.to(torch.float16); x.to(y); x.to(x.device)",
        "import torch\nif device.type == 'cuda': pass\nif device == torch.device('cuda'): pass",
        "import torch\nparser.add_argument('--device', default='cuda')",
        "import torch\nclass Box:\n  def cuda(self):\n    self.x = self.x.cuda()\n    return self",
        "import torch\ntorch.cuda.is_available(); torch.backends.cuda.matmul",
        "import cupy\n# torch\nx.cuda()",
        MODULE.format("forward", "return x.new_zeros(3) + torch.zeros_like(x) + torch.ones(3, device=x.device)"),
        MODULE.format("forward", "if x.is_cuda:\n      m = m.cuda()\n    return x"),
        MODULE.format("forward", "h = torch.zeros(3)\n    h = h.to(x)\n    return h"),
        MODULE.format("forward", "return x[torch.rand(1).item() > 0.5]"),
        MODULE.format("helper", "return torch.zeros(3)"),
        MODULE.format("__init__", "self.w = torch.nn.Parameter(torch.zeros(3)); self.n = torch.zeros(3).size()"),
        "import torch\nclass Box:\n  def __init__(self):\n    self.x = torch.zeros(3)",
        "import torch\ntorch.load('a.pt', map_location='cpu'); torch.load('a.pt', device); json.load(f)",
        "import torch\nDDP(model, device_ids=[rank])",
        "import os, torch\nos.environ['OMP_NUM_THREADS'] = '1'; os.environ.get('CUDA_VISIBLE_DEVICES')",
    ],
)
def test_not_found(source):
    assert found(source, "PTM1") == []


MOVER = "def put({}):\n  return {}\n"
MADE = MODULE.format("forward", "return put({})")
ONE, EACH = MOVER.format("x, n=1", "x.to(device)"), MOVER.format("*xs", "[t.cuda() for t in xs]")


@pytest.mark.parametrize(
    ("mover", "given", "lines"),
    [
        (ONE, "torch.ones(3)", []),
        (ONE, "x=torch.ones(3)", []),
        (EACH, "x, torch.ones(3)", []),
        (MOVER.format("**xs", "{k: v.to(device) for k, v in xs.items()}"), "a=x", []),
        (ONE, "x, torch.ones(3)", ["PTM104 6"]),
        (ONE, "x, n=torch.ones(3)", ["PTM104 6"]),
        (MOVER.format("net, x", "net.to(device)(x)"), "self.net, torch.ones(3)", ["PTM104 6"]),
        (EACH + EACH, "torch.ones(3)", ["PTM104 8"]),  # which of them is called does not show
    ],
)
def test_what_a_function_of_the_file_moves(mover, given, lines):
    text = mover + MADE.format(given)
    assert [f for f in found(text) if f.startswith("PTM104")] == lines
