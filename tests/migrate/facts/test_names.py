# ruff: noqa: E501
import ast
import textwrap

import pytest
from ptmigrate.migrate.facts.names import Names


def last(source: str) -> str | None:
    """What the last expression of a source resolves to; a call stands for what it calls."""
    tree = ast.parse(textwrap.dedent(source))
    names = Names(tree)
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Expr)]
    node = max(found, key=lambda n: n.lineno).value
    return names.resolve(node.func if isinstance(node, ast.Call) else node)


@pytest.mark.parametrize(
    ("source", "full"),
    [
        ("import torch\ntorch.nn.Module", "torch.nn.Module"),
        ("import torch as t\nt.nn.Linear(1, 2)", "torch.nn.Linear"),
        ("import torch.nn as nn\nnn.Linear", "torch.nn.Linear"),
        ("import torch.nn\ntorch.nn.Linear", "torch.nn.Linear"),
        ("from torch import cuda\ncuda.is_available()", "torch.cuda.is_available"),
        ("from torch.nn import functional as F\nF.relu", "torch.nn.functional.relu"),
        ("import torch\nnn = torch.nn\nnn.Linear", "torch.nn.Linear"),
        ("import torch\nnn = torch.nn\nL = nn.Linear\nL(1, 2)", "torch.nn.Linear"),
        ("def f():\n    import torch\n    torch.zeros(1)", "torch.zeros"),
        ("try:\n    import torch\nexcept ImportError:\n    torch = None\ntorch.zeros", "torch.zeros"),
        ("try:\n    from apex import amp\nexcept ImportError:\n    from torch.cuda import amp\namp.autocast", "torch.cuda.amp.autocast"),
        ("import torch\ndef f():\n    def g(y):\n        torch.zeros(y)", "torch.zeros"),
        ("import torch\ndef f(torch=torch.zeros):\n    pass\ntorch.ones", "torch.ones"),
        ("import torch\nclass A:\n    torch = 1\n    def f(self):\n        torch.zeros", "torch.zeros"),
        ("import torch\n[torch for torch in range(3)]\ntorch.zeros", "torch.zeros"),
        ("import numpy as np\nnp.random.rand", "numpy.random.rand"),
        ("from torch.utils.data import *\nDataLoader(d)", "torch.utils.data.DataLoader"),
        ("from torch.utils.data import *\nfrom mine import DataLoader\nDataLoader(d)", "mine.DataLoader"),
        ("from torch.autograd import *\nV = Variable\nV(x)", "torch.autograd.Variable"),
        ("from torch.utils.data import DataLoader\nfrom mine import DataLoader\nDataLoader(d)", "mine.DataLoader"),
        ("from mine import DataLoader\nfrom torch.utils.data import DataLoader\nDataLoader(d)", "torch.utils.data.DataLoader"),
        ("try:\n    from torch.cuda import amp\nexcept ImportError:\n    pass\nfrom apex import amp\namp.init", "apex.amp.init"),
        ("import torch\nimport torch.nn\nimport torch.optim\ntorch.nn.Linear", "torch.nn.Linear"),
        ("def f():\n    global torch\n    import torch\ntorch.zeros", "torch.zeros"),
        ("import torch\n" + "torch" + ".a" * 150, "torch" + ".a" * 150),
    ],
)  # fmt: skip
def test_resolved(source, full):
    assert last(source) == full


@pytest.mark.parametrize(
    "source",
    [
        "torch.zeros",
        "import torch\ndef f(torch):\n    torch.zeros",
        "import torch\ndef f():\n    torch = make()\n    torch.zeros",
        "import torch\nlambda torch: 1\nfor torch in x:\n    pass\ntorch.zeros",
        "import torch\ndef torch(): pass\ntorch.zeros",
        "def f():\n    import torch\ndef g():\n    torch.zeros",
        "from .torch import nn\nnn.Linear",
        "import torch\nact = torch.relu\nact = torch.tanh\nact(x)",
        "import torch\nx = torch.zeros(3)\nx.sum()",
        "torch = torch\ntorch.x",
        "import torch\nf().x",
        "from torch.utils.data import DataLoader\na = DataLoader(d)\nfrom mine import DataLoader\nDataLoader(d)",
        "from torch.autograd import Variable\nfrom .old import Variable\nVariable(x)",
        "class A:\n    import torch\n    def f(self):\n        torch.zeros",
    ],
)
def test_not_resolved(source):
    assert last(source) is None


@pytest.mark.parametrize(
    ("written", "full"),
    [
        ("torch.nn.modules.linear.Linear", "torch.nn.Linear"),
        ("torch.nn.parallel.distributed.DistributedDataParallel", "torch.nn.parallel.DistributedDataParallel"),
        ("torch.nn.parallel.DataParallel", "torch.nn.DataParallel"),
        ("torch.utils.data.dataloader.DataLoader", "torch.utils.data.DataLoader"),
        ("torch.utils.data.distributed.DistributedSampler", "torch.utils.data.DistributedSampler"),
        ("torch.optim.adam.Adam", "torch.optim.Adam"),
        ("torch.optim.lr_scheduler.StepLR", "torch.optim.lr_scheduler.StepLR"),
        ("torch.optim.swa_utils.SWALR", "torch.optim.swa_utils.SWALR"),
        ("torch.autocast", "torch.amp.autocast"),
        ("torch.autograd.variable.Variable", "torch.autograd.Variable"),
        ("torch.autograd.grad_mode.no_grad", "torch.no_grad"),
        ("torch.cuda.amp.grad_scaler.GradScaler", "torch.cuda.amp.GradScaler"),
    ],
)
def test_canonical(written, full):
    module, _, name = written.rpartition(".")
    assert last(f"from {module} import {name}\n{name}(1)") == full
    assert last(f"import torch\n{written}(1)") == full


@pytest.mark.parametrize(
    "source",
    [
        "from torch.utils.data import *\nclass DataLoader:\n    pass\nDataLoader(d)",
        "from torch.utils.data import *\ndef f(Subset):\n    Subset(d)",
        "from torch.utils.data import *\nLoader(d)",
        "from mine.utils.data import *\nDataLoader(d)",
        "from .torch.utils.data import *\nDataLoader(d)",
    ],
)
def test_a_star_gives_what_is_known_of_it(source: str) -> None:
    assert last(source) is None


@pytest.mark.parametrize(
    "source, full",
    [
        ("from models import *\ntorch.save(x, 'x')", "torch.save"),
        ("from .models import *\nnn.Linear(1, 1)", "torch.nn.Linear"),
        ("from models import *\nnn = torch.nn\nnn.Linear(1, 1)", "torch.nn.Linear"),
        ("from models import *\nnn = other\nnn.Linear(1, 1)", None),
        ("from models import *\ndef f(torch):\n    torch.save(1)", None),
        ("from models import *\nF = 10\nF.relu(1)", None),
        ("from models import *\noptimizer.step()", None),
        ("from models import Net\ntorch.save(x, 'x')", None),
    ],
)
def test_a_star_of_ones_own_gives_torch_where_nothing_else_does(source: str, full: str | None) -> None:
    assert last(source) == full


LOADER = "torch.utils.data.DataLoader"
DATA = "from torch.utils import data\n"


def loaders(source: str) -> list[str | None]:
    """What each read of `data.DataLoader` resolves to, in their order."""
    tree = ast.parse(source)
    names = Names(tree)
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr == "DataLoader"]
    return [names.resolve(n) for n in sorted(found, key=lambda n: (n.lineno, n.col_offset))]


@pytest.mark.parametrize(
    ("source", "full"),
    [
        ("loader = data.DataLoader(d)\nfor i, data in enumerate(loader):\n    pass", [LOADER]),
        ("if __name__ == '__main__':\n    loader = data.DataLoader(d)\n    for data in loader:\n        data.DataLoader", [LOADER, None]),
        ("for data in data.DataLoader(d):\n    pass", [LOADER]),
        ("data = data.DataLoader(d)\ndata.DataLoader", [LOADER, None]),
        ("with open(data.DataLoader) as data:\n    pass", [LOADER]),
        ("for seed in seeds:\n    loader = data.DataLoader(d)\n    for data in loader:\n        pass", [None]),
        ("while True:\n    data = data.DataLoader(d)", [None]),
        ("def make():\n    return data.DataLoader(d)\nfor data in make():\n    pass", [None]),
        ("if big:\n    data = 3\nloader = data.DataLoader(d)", [None]),
        ("loader = data.DataLoader(d)\ndef data():\n    pass", [None]),
        ("first, second = data.DataLoader(d), data.DataLoader(e)\nfor data in first:\n    pass", [LOADER, LOADER]),
        ("def fit():\n    from torch.utils import data\n    loader = data.DataLoader(d)\n    for data in loader:\n        pass", [LOADER]),
        ("while d:\n    def fit():\n        from torch.utils import data\n        for data in data.DataLoader(d):\n            pass", [LOADER]),
        ("while data.DataLoader(d):\n    break\nfor data in d:\n    pass", [LOADER]),
        ("loader = data.DataLoader(d)\nfor data in loader:\n    pass\ndef show(x):\n    data = x", [LOADER]),
        ("loader = data.DataLoader(d)\ndef take(x):\n    global data\n    data = x", [LOADER]),
        ("try:\n    from mine import data\nexcept ImportError:\n    pass\nloader = data.DataLoader(d)\nfor data in loader:\n    pass", [None]),
        ("def data():\n    pass\nloader = data.DataLoader(d)\nfor data in loader:\n    pass", [None]),
        ("loader = data.DataLoader(d)\nfor data in loader:\n    pass\ndel data", [LOADER]),
        ("for data, box[data.DataLoader] in d:\n    pass", [None]),
    ],
)  # fmt: skip
def test_a_name_that_is_read_above_all_else_that_binds_it(source, full):
    assert loaders(DATA + source) == full
