"""T1, T2: a function of the script's own that moves what it is given, and is given what nobody else moves."""

import textwrap

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text
from ptmigrate.migrate.project import collect, migrate_all

from tests.migrate.codemods.helpers import check, check_unchanged

LOOP = """
def go(model, loader):
    for a, b in loader:
        {step}
        print(model({a}), b, z)
if __name__ == "__main__":
    go(Net(), data())
"""


def script(helper: str, step: str, a: str = "a") -> str:
    return (
        "import torch\nuse_cuda = torch.cuda.is_available()\n" + textwrap.dedent(helper) + LOOP.format(step=step, a=a)
    )


MOVERS = {
    "a choice": "def put(x): return x.cuda() if use_cuda else x\n",
    "a lambda": "put = lambda x: x.cuda() if use_cuda else x\n",
    "a statement": "def put(x):\n    if use_cuda:\n        x = x.cuda()\n    return x\n",
    "two ways out": "def put(x):\n    if not use_cuda:\n        return x\n    return x.to('cuda')\n",
    "a tensor asked for": "def put(x):\n    if torch.is_tensor(x):\n        return x.cuda()\n    return x\n",
}


@pytest.mark.parametrize("helper", MOVERS.values(), ids=MOVERS)
def test_what_is_made_goes_where_its_batch_is(helper):
    result = migrate_text(script(helper, "z = put(torch.zeros(a.size(0)) * 2)", "put(a)")).text
    assert "z = (torch.zeros(a.size(0)) * 2).to(a.device)" in result
    assert "cuda()" not in result and "'cuda'" not in result
    assert migrate_text(result).text == result


def test_a_function_that_is_given_nothing_else_goes():
    before = script(MOVERS["a choice"], "z = put(torch.zeros(a.size(0)))", "put(a)")
    after = "import torch\n" + LOOP.format(step="z = torch.zeros(a.size(0)).to(a.device)", a="a")
    check(before, after, attention=[])


def test_a_method_too():
    check(
        """
        import torch
        from torch import nn
        class Net(nn.Module):
            def put(self, t, device):
                return t.to(device)
            def forward(self, x):
                x = self.put(x, "cuda")
                return x.mean() + self.put(torch.zeros(x.size(0), 2), "cuda")
        """,
        """
        import torch
        from torch import nn
        class Net(nn.Module):
            def put(self, t, device):
                return t
            def forward(self, x):
                x = self.put(x, "cuda")
                return x.mean() + torch.zeros(x.size(0), 2).type_as(x)
        """,
    )


NOT_INLINED = {
    "another flag of that name": (
        "def put(x): return x.cuda() if use_cuda else x\n",
        "use_cuda = 0; z = put(torch.zeros(2))",
    ),
    "a comment inside": (
        "def put(x): return x.cuda() if use_cuda else x\n",
        "z = put(torch.zeros(2)  # weights\n                )",
    ),
    "more than a move": ("def put(x):\n    return x.float().cuda()\n", "z = put(torch.zeros(2))"),
    "a card of its own": ("def put(x, i):\n    return x.cuda(i)\n", "z = put(torch.zeros(2), 1)"),
}


@pytest.mark.parametrize(("helper", "step"), NOT_INLINED.values(), ids=NOT_INLINED)
def test_the_move_stays_where_it_cannot_be_seen_what_it_is(helper, step):
    given = "put(a, 0)" if ", i)" in helper else "put(a)"
    result = check_unchanged(script(helper, step, given))
    assert [n.code for n in result.attention] == ["PTM104"]


@pytest.mark.parametrize("call", ["put(x)", "put(model(x))", "put(ys[0])"])
def test_batches_keep_the_call_until_the_function_goes(call):
    result = migrate_text(script(MOVERS["a choice"], f"z = {call}", "put(a)"))
    assert "put" not in result.text and not result.attention


def test_what_a_library_makes_keeps_its_move():
    check(
        """
        import torch
        from torch.autograd import Variable
        def variable(t):
            if torch.cuda.is_available():
                return Variable(t.cuda())
            else:
                return Variable(t)
        def mask(length):
            steps = variable(torch.arange(0, 9))
            return steps < length.unsqueeze(1)
        """,
        """
        import torch
        from torch.autograd import Variable
        def variable(t):
            return t.detach()
        def mask(length):
            steps = torch.arange(0, 9).to(length.device)
            return steps < length.unsqueeze(1)
        """,
    )


def test_alone_in_a_script_that_trains_nothing_it_is_as_before():
    check(
        """
        import torch
        device = torch.device("cuda")
        def f(x, device):
            return x.to(device)
        print(f(torch.ones(3), device))
        """,
        """
        import torch
        def f(x):
            return x
        print(f(torch.ones(3)))
        """,
    )


def test_a_kept_loop_keeps_the_function():
    source = script(MOVERS["a choice"], "z = put(torch.zeros(2)); model(put(a)).backward()", "put(a)")
    result = migrate_text(source, Options(plan="loop"))
    assert result.plan == "loop" and "z = put(torch.zeros(2));" in result.text
    module = (
        "import torch\n"
        + MOVERS["a statement"].replace("use_cuda", "True")
        + "def f(a):\n    return put(a), put(torch.ones(2))\n"
    )
    assert "put(torch.ones(2))" in migrate_text(module, is_script=False, kept=True).text


HELPERS = {
    "a choice": "def put(x):\n    return x.cuda() if torch.cuda.is_available() else x\n",
    "a device": "device = torch.device('cuda')\ndef put(x):\n    return x.to(device)\n",
    "the environment": "import os\ndef put(x):\n    if os.environ['PLACE']:\n        return x.cuda()\n    return x\n",
    "an argument": "def put(x, gpu=True):\n    return x.cuda() if gpu else x\n",
    "a flag": "use = torch.cuda.is_available()\ndef put(x):\n    if use:\n        x = x.cuda()\n    return x\n",
}
SCRIPT = """
import os
import torch
from torch import nn
import numpy
from {module} import put
net = nn.Linear(2, 1)
put(net)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for epoch in range(2):
    for x in torch.utils.data.DataLoader(torch.ones(8, 2), 4):
        z = put(torch.from_numpy(numpy.ones(x.size(0))).float())
        optimizer.zero_grad()
        (net(put(x)) * z).sum().backward()
        optimizer.step()
"""


@pytest.mark.parametrize("helper", HELPERS.values(), ids=HELPERS)
def test_a_function_of_another_file(helper, tmp_path):
    (tmp_path / "helpers.py").write_text("import torch\n" + helper)
    (tmp_path / "train.py").write_text(SCRIPT.format(module="helpers"))
    results = {m.path.name: m.result.text for m in migrate_all(collect([tmp_path / "train.py"]), Options())}
    assert "z = torch.from_numpy(numpy.ones(x.size(0))).float().to(x.device)" in results["train.py"]
    assert "cuda()" not in results["helpers.py"] and ".to(" not in results["helpers.py"]


@pytest.mark.parametrize(
    "helper", ["def put(x):\n    return x.float().cuda()\n", "def put(x, i=0):\n    return x.cuda(i)\n"]
)
def test_a_function_of_another_file_that_does_more(helper, tmp_path):
    (tmp_path / "helpers.py").write_text("import torch\n" + helper)
    (tmp_path / "train.py").write_text(SCRIPT.format(module="helpers"))
    results = {m.path.name: m.result.text for m in migrate_all(collect([tmp_path / "train.py"]), Options())}
    assert "put(torch.from_numpy(" in results["train.py"]
