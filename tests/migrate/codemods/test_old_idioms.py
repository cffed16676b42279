# ruff: noqa: E501
import pytest
from helpers import check, check_unchanged, migrated

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\nfrom torch.autograd import Variable\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("for x, y in loader:\n    x, y = Variable(x), Variable(y)\n    f(x, y)", "for x, y in loader:\n    f(x, y)"),
        ("for x, y in loader:\n    x = Variable(x.cuda(), volatile=True)\n    f(x)", "for x, y in loader:\n    f(x)"),
        ("for x, y in loader:\n    f(Variable(x.view(-1)))", "for x, y in loader:\n    f(x.view(-1))"),
        ("z = Variable(torch.zeros(3))", "z = torch.zeros(3)"),
        ("z = torch.autograd.Variable(torch.zeros(3), requires_grad=False)", "z = torch.zeros(3)"),
        ("x = f()\nz = torch.autograd.Variable(x, requires_grad=False)", "x = f()\nz = x.detach()"),
        ("z = Variable(torch.zeros(3), requires_grad=True)", "z = torch.zeros(3).requires_grad_()"),
        ("z = Variable(torch.as_tensor(x), requires_grad=True)", "z = torch.as_tensor(x).detach().requires_grad_()"),
        ("z = Variable(torch.zeros(3, requires_grad=True))", "z = torch.zeros(3, requires_grad=True).detach()"),
        ("h = Variable(h.data)", "h = h.data"),
        ("Tensor = torch.FloatTensor if on else torch.FloatTensor\nz = Variable(Tensor(3).fill_(1.0))", "Tensor = torch.FloatTensor if on else torch.FloatTensor\nz = Tensor(3).fill_(1.0)"),
        ("print(loss.data.cpu().numpy()[0], loss.cpu().data.numpy()[0], loss.data.cpu()[0])", "print(loss.item(), loss.item(), loss.item())"),
        ("print(torch.exp(loss).data[0], loss.exp().data[0])", "print(torch.exp(loss).item(), loss.exp().item())"),
        ("print((loss_a + loss_b / 2).data[0] * 2)", "print((loss_a + loss_b / 2).item() * 2)"),
        ("print(f'{(loss_a + loss_b).data[0]}')", "print(f'{(loss_a + loss_b).item()}')"),
        ("print(crit(a, b).data.numpy()[0] * 2)", "print(crit(a, b).item() * 2)"),
        ("print(f'{loss.data.cpu().numpy()[0]:.3f}')", "print(f'{loss.item():.3f}')"),
        ("z = Variable(x, requires_grad=grad)", "z = x.detach().requires_grad_(grad)"),
        ("z = Variable(\n    torch.zeros(3)\n    .float(),\n    requires_grad=True,\n)", "z = (torch.zeros(3)\n    .float().requires_grad_())"),
        ("z = Variable(\n    x\n    .float()\n)", "z = (x\n    .float().detach())"),
        ("z = Variable(\n    f(\n        x\n    )\n)", "z = f(\n        x\n    ).detach()"),
        ("z = (Variable(\n    x\n    .float()\n))", "z = (x\n    .float().detach())"),
        ("def f(x, grad=False):\n    return Variable(x, requires_grad=grad)\nf(y)", "def f(x, grad=False):\n    return x.detach().requires_grad_(grad)\nf(y)"),
        ("def f(x, grad=False):\n    return Variable(x, grad)\nf(y, True)", "def f(x, grad=False):\n    return x.detach().requires_grad_(grad)\nf(y, True)"),
        ("z = Variable(a + b)", "z = (a + b).detach()"),
        ("def f(x):\n    return Variable(x)", "def f(x):\n    return x.detach()"),
        ("print(loss.data[0])", "print(loss.item())"),
        ("print(F.nll_loss(input=a, target=b).data[0])", "print(F.nll_loss(input=a, target=b).item())"),
        ("def f(h):\n    return type(h) == Variable", "def f(h):\n    return isinstance(h, Variable)"),
        ("if type(h[0]) is not torch.autograd.Variable: go()", "if not isinstance(h[0], torch.autograd.Variable): go()"),
        ("print(f'{loss.data[0]:.3f} {x.data[0]}', end='')", "print(f'{loss.item():.3f} {x.data[0]}', end='')"),
        ("print(f'a' f'{loss.data[0] + 1!r:{n}}')", "print(f'a' f'{loss.item() + 1!r:{n}}')"),
        ('print(f"""{loss\n    .data[0]}""")', 'print(f"""{loss.item()}""")'),
        ('print(f\'{losses["G"].data[0]}\')', 'print(f\'{losses["G"].item()}\')'),
        ('print(f"{losses[\'G\'].data[0]}")', 'print(f"{losses[\'G\'].item()}")'),
        ("print(losses[-1].data[0], loss.cpu().data[0])", "print(losses[-1].item(), loss.cpu().item())"),
        ("loss = F.nll_loss(a, b, reduce=None)\nf(loss.data[0])", 'loss = F.nll_loss(a, b, reduction="mean")\nf(loss.item())'),
        ("s += F.nll_loss(a, b, size_average=False).data[0]", 's += F.nll_loss(a, b, reduction="sum").item()'),
        ("ce = nn.CrossEntropyLoss()\nv = ce(a, b)\nf(v.data[0])", "ce = nn.CrossEntropyLoss()\nv = ce(a, b)\nf(v.item())"),
        ("self.ce = nn.MSELoss()\nf(self.ce(a, b).data[0])", "self.ce = nn.MSELoss()\nf(self.ce(a, b).item())"),
        ("s = x.mean()\nf(s.data[0])", "s = x.mean()\nf(s.item())"),
        ("s += self.criterion(a, b).data[0]", "s += self.criterion(a, b).item()"),
        ("s += nn.CrossEntropyLoss()(a, b).data[0]", "s += nn.CrossEntropyLoss()(a, b).item()"),
        ("log(losses['G'].data[0], meters['loss'].data[0])", "log(losses['G'].item(), meters['loss'].item())"),
        ("total_loss += loss_D.data[0] * 2", "total_loss += loss_D.item() * 2"),
        ("v = nn.MSELoss(reduction='sum')(a, b)\nf(v.data[0])", "v = nn.MSELoss(reduction='sum')(a, b)\nf(v.item())"),
        ("v = F.mse_loss(a, b, None, False)\nf(v.data[0])", "v = F.mse_loss(a, b, reduction=\"none\")\nf(v.data[0])"),
        ("v = F.mse_loss(a, b, False)\nf(v.data[0])", "v = F.mse_loss(a, b, reduction=\"sum\")\nf(v.item())"),
        ("c = nn.L1Loss(False, True)\nf(c(a, b).data[0])", "c = nn.L1Loss(reduction=\"sum\")\nf(c(a, b).item())"),
        ("c = nn.L1Loss(True, False)\nf(c(a, b).data[0])", "c = nn.L1Loss(reduction=\"none\")\nf(c(a, b).data[0])"),
        ("print(out.sum().data[0])", "print(out.sum().item())"),
        ("loss = F.mse_loss(a, b, size_average=False)", "loss = F.mse_loss(a, b, reduction=\"sum\")"),
        ("criterion = nn.MSELoss(size_average=True)", "criterion = nn.MSELoss(reduction=\"mean\")"),
        ("criterion = nn.MSELoss(False)", "criterion = nn.MSELoss(reduction=\"sum\")"),
        ("criterion = nn.CrossEntropyLoss(w, False, 255)", "criterion = nn.CrossEntropyLoss(w, ignore_index=255, reduction=\"sum\")"),
        ("loss = F.nll_loss(a, b, None, True)", "loss = F.nll_loss(a, b, None, reduction=\"mean\")"),
        ("criterion = nn.MSELoss(reduce=False)", "criterion = nn.MSELoss(reduction=\"none\")"),
        ("criterion = nn.MSELoss(size_average=False, reduce=True)", "criterion = nn.MSELoss(reduction=\"sum\")"),
        ("criterion = nn.MSELoss(size_average=flag)", "criterion = nn.MSELoss(reduction=\"mean\" if flag or flag is None else \"sum\")"),
        ("torch.set_default_tensor_type('torch.DoubleTensor')", "torch.set_default_dtype(torch.float64)"),
        ("torch.set_default_tensor_type(torch.FloatTensor)", "torch.set_default_dtype(torch.float32)"),
    ],
)  # fmt: skip
def test_todays_form(before, after):
    check(HEAD + before + "\n", HEAD + after + "\n")


@pytest.mark.parametrize(
    "source",
    [
        "x.data[0]",
        "loss.data[1]",
        "loss.data['0']",
        "loss.data[0] = 3",
        "loss.data[:1]",
        "batch[0].data",
        "Variable()",
        "Variable(*xs)",
        "isinstance(x, Variable)",
        "type(x) == torch.Tensor",
        "def type(x): ...\ntype(x) == Variable",
        "type(x) == Variable == y",
        "loss.data[0].item()",
        "loss.data[0][1]",
        "def f(Variable):\n    return Variable(1)",
        "criterion = nn.MSELoss(reduction='sum')",
        "criterion = nn.MSELoss()",
        "loss = my.mse_loss(a, b, size_average=False)",
        "out = sum(xs, reduce=False)",
        "torch.set_default_dtype(torch.float32)",
        "for x in range(3):\n    x = list(x)",
        "tf.Variable(3)",
        "print(f'{x.data[0]} {loss.data[1]}')",
        "print(rows['a'].data[0], losses[1:].data[0], rows[0].data[0])",
        "x = F.nll_loss(a, b, reduction='none').data[0]",
        "each = nn.MSELoss(*how)(a, b)\nx = each.data[0]",
        "loss = F.nll_loss(a, b, **how)\nx = (loss.data[0], F.nll_loss(a, b, **how).data[0])",
        "x = model(a).data[0]",
        "loss = F.nll_loss(a, b, reduction='none')\nx = loss.data[0]",
        "loss = F.nll_loss(a, b, reduction='none')\nx = loss.data.cpu().numpy()[0]",
        "crit = nn.NLLLoss(reduction='none')\nlosses = crit(a, b)\nx = losses.data[0]",
        "x = loss.detach().cpu().numpy()[0]",
        "each = nn.L1Loss(reduction='none')\nx = each(a, b).data[0]",
        "two = nn.Linear(3, 2)\nx = two(a).data[0]",
        "x = a.sum(0)\ny = x.data[0]",
        "x = a.sum()\nx = rows\ny = x.data[0]",
        "x = (loss * weights).data[0]",
        "x = torch.exp(rows).data[0]",
        "crit = nn.NLLLoss(reduction='none')\nx = crit(a, b).data[0]",
        "loss = F.nll_loss(a, b, reduction='none')\nx = (loss / 2).data[0]",
        "x = loss.data.cpu().numpy()[0][1]",
        "x = loss.data.cpu(3).numpy()[0]",
        "x = out.data.cpu().numpy()[0]",
        "loss.data.cpu().numpy()[0] = 3",
        "d[0].data",
        "class Variable:\n    pass\nv = Variable()",
        "from mine import Variable\nv = Variable(x)",
        "text = 'Variable(x)'  # Variable(x)",
        "n = loss.data.shape[0]",
        "print(loss.data[i])",
        "def nll_loss(a, b, size_average=True):\n    return a\nnll_loss(a, b, size_average=False)",
        "class MSELoss:\n    def __init__(self, size_average):\n        self.mean = size_average\ncriterion = MSELoss(False)",
        "layer = nn.Linear(3, 4, False)",
        "criterion = nn.CrossEntropyLoss(w)",
        "y = F.cross_entropy(a, b, w)",
        "criterion = nn.MSELoss(**how)",
        "criterion = nn.BCELoss(*given)",
        "old = type(x).__name__ == 'Variable'",
        "how = {'size_average': False}",
        "xs.data[0] = Variable",
        "criterion = nn.SmoothL1Loss(beta=0.5)",
        "y = F.softmax(x, 1)",
        "y = df.data[0][0]",
        "def f(x, volatile=True):\n    return x\nf(1, volatile=True)",
        "class Loss:\n    def __init__(self):\n        self.data = [1]\nprint(Loss().data[0])",
        "class Old(torch.autograd.Function):\n    pass",
        "y = np.sum(x, where=True)",
        "from torchmetrics.functional import mean_squared_error\nm = mean_squared_error(a, b, False)",
    ],
)
def test_unchanged(source):
    check_unchanged(HEAD + source + "\n")


def test_one_over_several_lines_is_told():
    check_unchanged(HEAD + "x = (loss.data  # of the batch\n     .cpu().numpy()[0])\n", ["PTM604 line 5: "], "PTM604")


def test_a_gpu_by_default_is_told():
    check_unchanged(
        "import torch\ntorch.set_default_tensor_type('torch.cuda.FloatTensor')\n", ["PTM108 line 2: `torch.set_default"]
    )


@pytest.mark.parametrize(
    ("call", "reduction"),
    [
        ("nn.MultiLabelMarginLoss(False)", "sum"),
        ("nn.MarginRankingLoss(0.5, False)", "sum"),
        ("nn.PoissonNLLLoss(True, False, False)", "sum"),
        ("nn.MultiMarginLoss(1, 1.0, None, True, False)", "none"),
        ("nn.TripletMarginLoss(1.0, 2.0, 1e-6, False, False)", "sum"),
        ("nn.HingeEmbeddingLoss(1.0, True)", "mean"),
    ],
)
def test_every_loss_by_place(call, reduction):
    import torch

    source = f"import torch.nn as nn\nloss = {call}\n"
    text = migrated(source, "PTM602").text
    spaces: list[dict] = [{}, {}]
    with pytest.warns(UserWarning):
        exec(source, spaces[0])
    exec(text, spaces[1])
    assert "reduction=" in text and torch.nn is not None
    assert {k: v for k, v in vars(spaces[0]["loss"]).items() if k[0] != "_"} == {
        k: v for k, v in vars(spaces[1]["loss"]).items() if k[0] != "_"
    }
    assert spaces[1]["loss"].reduction == reduction


def test_functions_of_three_by_place():
    source = "import torch.nn.functional as F\ny = F.{}(a, b, c, 2.0, False)\n"
    for name in ("margin_ranking_loss", "cosine_embedding_loss"):
        after = source.replace("2.0, False", '2.0, reduction="sum"')
        assert migrated(source.format(name), "PTM602").text == after.format(name)


def test_what_volatile_did_is_told():
    source = "from torch.autograd import Variable\nx = Variable(y, volatile={})\n"
    told = migrated(source.format("True"), "PTM601")
    assert [n.line for n in told.attention] == [2] and "no_grad" in told.attention[0].message
    assert not migrated(source.format("False"), "PTM601").attention


def test_a_total_of_old_scalars_is_done_in_one_run():
    source = "import torch\ndef f(net, loader):\n    total = 0\n    for x in loader:\n        loss = net(x)\n"
    source += "        loss.backward()\n        total += loss.data[0]\n    return total\n"
    once = migrated(source).text
    assert "loss.detach()" in once and migrated(once).text == once


def test_a_file_that_has_nothing_else_is_no_file_without_work():
    result = migrated("import torch\ndef shown(loss):\n    return loss.data[0]\n")
    assert result.plan == "definitions" and result.text.endswith("loss.item()\n")
    assert migrated(result.text).plan == "none"


def test_volatile_of_an_object_of_the_script():
    check_unchanged(
        "import torch\nclass Market:\n    def __init__(self):\n        self.volatile = True\nMarket().volatile\n", []
    )


@pytest.mark.parametrize("line", ["x.volatile = True", "y = x.volatile"])
def test_volatile_that_is_set_or_asked_for_is_told(line):
    check_unchanged(HEAD + line + "\n", ["PTM601 line 5: `x.volatile`: volatile does nothing since torch 0.4"])


@pytest.mark.parametrize(
    ("source", "test"),
    [
        ("def f(flag=True):\n    return nn.MSELoss(size_average=flag)", "flag"),
        ("def f(flag=None):\n    return nn.MSELoss(size_average=flag)", "flag or flag is None"),
        ("def f(flag):\n    return nn.MSELoss(size_average=flag)", "flag or flag is None"),
        ("def f(flag=True):\n    flag = find()\n    return nn.MSELoss(size_average=flag)", "flag or flag is None"),
        ("flag = a > 1 and not b\ncriterion = nn.MSELoss(flag)", "flag"),
        ("criterion = nn.MSELoss(size_average=args.mean)", "args.mean or args.mean is None"),
        ("criterion = nn.MSELoss(size_average=(True if a else False))", "(True if a else False)"),
    ],
)
def test_none_asks_for_the_mean_too(source, test):
    text = migrated(HEAD + source + "\n").text
    assert f'reduction="mean" if {test} else "sum")' in text
    compile(text, "script.py", "exec")


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("criterion = nn.MSELoss(size_average=find())", True),
        ("criterion = nn.MSELoss(size_average=False, reduction='none')", True),
        ("criterion = nn.MSELoss(size_average=None, reduce=None, reduction='none')", False),
        ("loss = F.kl_div(a, b, None, None, 'sum')", False),
        ("criterion = nn.CrossEntropyLoss(w, True, -100, None, 'sum')", True),
        ("criterion = nn.MSELoss(size_average, reduce, reduction=reduction)", False),
    ],
)
def test_what_is_given_with_a_reduction_stays(source, told):
    check_unchanged(HEAD + source + "\n", ["PTM602"] * told)


@pytest.mark.parametrize(
    ("given", "becomes"),
    [
        ("x, True", "x.detach().requires_grad_()"),
        ("x, False", "x.detach()"),
        ("x, flag", "x.detach().requires_grad_(flag)"),
        ("data=x", "x.detach()"),
        ("requires_grad=True, data=x + 1", "(x + 1).detach().requires_grad_()"),
    ],
)
def test_arguments_of_a_variable_by_place_and_by_name(given, becomes):
    head = HEAD + "def f(x, flag):\n    return "
    check(f"{head}Variable({given})\n", f"{head}{becomes}\n", select="PTM601")


@pytest.mark.parametrize("given", ["x, True, False", "*x", "x, *y", "name=x", "data=x, name='x'", "**x"])
def test_arguments_that_no_variable_has_today(given):
    check_unchanged(f"{HEAD}def f(x, y):\n    return Variable({given})\n", select="PTM601")


HANDED = "options = {}\nloss = nn.MSELoss(**options)(x, y)\n"


@pytest.mark.parametrize("options", ["{'size_average': False}", "dict(reduce=False)", "{'a': 1, 'size_average': s}"])
def test_what_a_loss_is_handed_is_told_of(options):
    source = "import torch\nfrom torch import nn\n" + HANDED.format(options)
    check_unchanged(source, ["PTM602 line 4: `nn.MSELoss(**options)`"], select="PTM602")


@pytest.mark.parametrize("options", ["{'reduction': 'sum'}", "{}", "dict(weight=w)", "read()"])
def test_what_else_it_is_handed_is_not(options):
    check_unchanged("import torch\nfrom torch import nn\n" + HANDED.format(options), [], select="PTM602")
