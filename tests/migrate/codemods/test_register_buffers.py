# ruff: noqa: E501
import pytest
from helpers import check, check_unchanged, migrated


def module(init: str, more: str = "", base: str = "nn.Module") -> str:
    lines = "".join(f"        {line}\n" for line in init.splitlines())
    return f"import torch\nimport torch.nn as nn\nclass Net({base}):\n    def __init__(self):\n        super().__init__()\n{lines}{more}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("self.sigma = torch.eye(3)", 'self.register_buffer("sigma", torch.eye(3))'),
        ("self.sigma = torch.eye(3, requires_grad=False)", 'self.register_buffer("sigma", torch.eye(3, requires_grad=False))'),
        ("self.sigma = torch.eye(3).cuda()", 'self.register_buffer("sigma", torch.eye(3))'),
        ("self.pos = torch.arange(9).float().unsqueeze(0)  # fixed", 'self.register_buffer("pos", torch.arange(9).float().unsqueeze(0))  # fixed'),
        ("if x:\n    self.a = torch.zeros(\n        3,\n    )", 'if x:\n    self.register_buffer("a", torch.zeros(\n        3,\n    ))'),
        ("self.a = torch.cat([torch.ones(1), torch.zeros(1)])", 'self.register_buffer("a", torch.cat([torch.ones(1), torch.zeros(1)]))'),
        ("self.a: torch.Tensor = torch.ones(1)", 'self.register_buffer("a", torch.ones(1))'),
        ("self.a = torch.zeros(3).to('cuda:0')", 'self.register_buffer("a", torch.zeros(3))'),
        ("self.a = torch.zeros(3, device='cuda').view(1, -1)", 'self.register_buffer("a", torch.zeros(3).view(1, -1))'),
        ("self.a = -torch.ones(3)[None] * 2", 'self.register_buffer("a", -torch.ones(3)[None] * 2)'),
        ("self.a = torch.ones(3).cuda() if x else None", 'self.register_buffer("a", torch.ones(3) if x else None)'),
        ("self.a = nn.functional.normalize(torch.ones(3)).cuda()", 'self.register_buffer("a", nn.functional.normalize(torch.ones(3)))'),
        ("self.b = torch.ones(3).cuda()\nself.a = (1 - self.b).cumprod(0)", 'self.register_buffer("b", torch.ones(3))\nself.register_buffer("a", (1 - self.b).cumprod(0))'),
        ("p = torch.zeros(3)\np[0] = 1\np = p.unsqueeze(0)\nself.a = p", 'p = torch.zeros(3)\np[0] = 1\np = p.unsqueeze(0)\nself.register_buffer("a", p)'),
        ("k = torch.ones(3)\nself.a = k.expand(2, 3).to('cuda')", 'k = torch.ones(3)\nself.register_buffer("a", k.expand(2, 3).contiguous())'),
        ("if x:\n    self.a = torch.ones(3).cuda()\nelse:\n    self.a = torch.ones(3)", 'if x:\n    self.register_buffer("a", torch.ones(3))\nelse:\n    self.register_buffer("a", torch.ones(3))'),
        ("if x:\n    self.a = torch.ones(3)\nelse:\n    self.a = None", 'if x:\n    self.register_buffer("a", torch.ones(3))\nelse:\n    self.register_buffer("a", None)'),
        ("self.a = None\nif x:\n    self.a = torch.ones(3)", 'self.register_buffer("a", None)\nif x:\n    self.a = torch.ones(3)'),
        ("self.a = torch.ones(3)\nself.a = self.a.view(1, 3)", 'self.register_buffer("a", torch.ones(3))\nself.a = self.a.view(1, 3)'),
        ("if x:\n    self.a = nn.Parameter(torch.ones(3))\nelse:\n    self.a = torch.ones(3)", 'if x:\n    self.a = nn.Parameter(torch.ones(3))\nelse:\n    self.register_buffer("a", torch.ones(3))'),
        ("self.a = torch.ones(3)\nif x:\n    self.a = nn.Parameter(self.a)", 'self.register_buffer("a", torch.ones(3))\nif x:\n    self.a = nn.Parameter(self.a)'),
        ("self.a = torch.stack(torch.meshgrid(torch.arange(2), torch.arange(3)))", 'self.register_buffer("a", torch.stack(torch.meshgrid(torch.arange(2), torch.arange(3))))'),
        ("g = torch.meshgrid(torch.arange(2), torch.arange(3))\nself.a = torch.stack(g, -1)", 'g = torch.meshgrid(torch.arange(2), torch.arange(3))\nself.register_buffer("a", torch.stack(g, -1))'),
        ("self.a = torch.cat([*torch.ones(4).chunk(2)]).cuda()", 'self.register_buffer("a", torch.cat([*torch.ones(4).chunk(2)]))'),
        ("self.a = torch.stack(tuple(torch.ones(2) * i for i in range(3)))", 'self.register_buffer("a", torch.stack(tuple(torch.ones(2) * i for i in range(3))))'),
        ("self.a = torch.fft.fftfreq(4)", 'self.register_buffer("a", torch.fft.fftfreq(4))'),
        ("self.a = torch.special.expit(torch.ones(1))", 'self.register_buffer("a", torch.special.expit(torch.ones(1)))'),
        ("self.a = nn.utils.rnn.pad_sequence([torch.ones(1), torch.ones(2)])", 'self.register_buffer("a", nn.utils.rnn.pad_sequence([torch.ones(1), torch.ones(2)]))'),
        ("self.a = torch.chunk(torch.ones(4), 2)[0]", 'self.register_buffer("a", torch.chunk(torch.ones(4), 2)[0])'),
        ("self.a = torch.ones(2, 3).max(dim=1).values", 'self.register_buffer("a", torch.ones(2, 3).max(dim=1).values)'),
        ("self.a = torch.ones(2, 3).sort()[1]", 'self.register_buffer("a", torch.ones(2, 3).sort()[1])'),
        ("self.a = nn.init.normal_(torch.empty(2, 2))", 'self.register_buffer("a", nn.init.normal_(torch.empty(2, 2)))'),
        ("self.a = torch.ones(1); self.n = 3", 'self.register_buffer("a", torch.ones(1)); self.n = 3'),
        ("self.a, self.b = torch.ones(1).cuda(), torch.eye(2, device='cuda')  # two", 'self.register_buffer("a", torch.ones(1)); self.register_buffer("b", torch.eye(2))  # two'),
        ("(self.a, self.b) = (torch.ones(1),\n    torch.ones(2)); self.n = 3", 'self.register_buffer("a", torch.ones(1)); self.register_buffer("b", torch.ones(2)); self.n = 3'),
        ("self.a, self.n, k = torch.ones(1), 3, n  # three", 'self.register_buffer("a", torch.ones(1)); self.n = 3; k = n  # three'),
        ("p, self.a = nn.Parameter(x), torch.ones(1); go()", 'p = nn.Parameter(x); self.register_buffer("a", torch.ones(1)); go()'),
        ("self.a = self.b = torch.ones(3).cuda()  # both", 'self.register_buffer("a", torch.ones(3)); self.register_buffer("b", self.a)  # both'),
        ("self.a = p = self.b = torch.ones(3)\np[0] = 2", 'p = torch.ones(3); self.register_buffer("a", p); self.register_buffer("b", p)\np[0] = 2'),
        ("self.a = torch.ones(4)\nself.b = self.a.view(2, 2)", 'self.register_buffer("a", torch.ones(4))\nself.register_buffer("b", self.a.view(2, 2))'),
        ("self.a = torch.ones(1)\nself.b, self.c = self.a * 2, torch.ones(2)", 'self.register_buffer("a", torch.ones(1))\nself.register_buffer("b", self.a * 2); self.register_buffer("c", torch.ones(2))'),
    ],
)  # fmt: skip
def test_kept_tensors_become_buffers(before, after):
    check(module(before), module(after), select="PTM105")


@pytest.mark.parametrize(
    "line",
    [
        "self.a, self.training = torch.ones(1), torch.ones(2)",  # a name that every module has
        "self.a, self.b = torch.ones(1), self.size()",
        "self.a, self.b = torch.ones(1), size(self)",
        "self.a, *self.b = torch.ones(1), 3",
        "self.a, x[0] = torch.ones(1), 3",
        "self.a, self.b = (\n        torch.ones(1),  # the mask\n        3,\n    )",
        "self.a, self.b = torch.ones(1), torch.ones(2)\nself.b = None",
        "self.a, self.a = torch.ones(1), torch.ones(2)",
        "self.b, self.a = torch.ones(1), torch.ones(2).expand(2, 2)",
        "self.a, self.b = self.b, self.a = torch.ones(1), torch.ones(2)",
        "self.a, self.b = torch.ones(1), self.a + torch.ones(1)",
    ],
)
def test_several_tensors_at_once_that_cannot_be_buffers_are_told(line):
    result = migrated(module(line), select="PTM105")
    assert result.text == module(line) and result.attention


@pytest.mark.parametrize("given", ["", ", requires_grad=False", ", volatile=True"])
def test_one_that_was_a_variable(given):
    old = f"self.a = torch.autograd.Variable(torch.ones(3){given})"
    check(module(old), module('self.register_buffer("a", torch.ones(3))'), select="PTM105,PTM601")


def test_a_tensor_that_is_given_and_counted_with():
    later = "    def forward(self, x):\n        return {} * x\n"
    init = "        self.a = w.cuda()\n"
    head = "import torch\nclass A(torch.nn.Module):\n    def __init__(self, w):\n        super().__init__()\n"
    check(
        head + init + later.format("self.a"),
        head + '        self.register_buffer("a", w)\n' + later.format("self.a"),
        select="PTM105",
    )
    check_unchanged(head + init + later.format("self.a(x)"), [], select="PTM105")  # it may be a module


def test_in_a_method_that_makes_the_module():
    later = "    def build(self):\n        {}\n"
    check(
        module("self.build()", later.format("self.a = torch.eye(3).cuda()")),
        module("self.build()", later.format('self.register_buffer("a", torch.eye(3))')),
        select="PTM105",
    )


@pytest.mark.parametrize(
    ("call", "registered"),
    [
        ("net.build()", False),
        ("nets[0].build()", False),
        ("other.build()", True),  # of another class
        ("super().build()", True),
    ],
)
def test_a_method_that_others_call_too_would_register_it_on_the_cpu_again(call, registered):
    text = module("self.build()", "    def build(self):\n        self.a = torch.eye(3)\n")
    text += f"class Other:\n    def build(self):\n        pass\nnet = Net()\nother = Other()\nnets = [Net()]\n{call}\n"
    assert ("register_buffer" in migrated(text, select="PTM105").text) is registered


@pytest.mark.parametrize(
    "later",
    [
        "    def cuda(self, device=None):\n        super().cuda(device)\n        self.a = self.a.cuda(device)\n        return self\n",
        "    def _apply(self, fn):\n        super()._apply(fn)\n        self.a = fn(self.a)\n        return self\n",
        "    def forward(self, x):\n        self.a = self.a.to(x.device)\n        return x + self.a\n",
        "    def forward(self, x):\n        self.a = self.a.detach()\n        return x + self.a\n",
    ],
)
def test_a_module_that_moves_its_tensors_by_hand(later):
    before = module("self.a = torch.ones(3)", later)
    after = before.replace("self.a = torch.ones(3)", 'self.register_buffer("a", torch.ones(3))')
    check(before, after, select="PTM105")


def test_where_it_runs_the_state_has_its_key_and_loads():
    torch = pytest.importorskip("torch")
    source = module("k = torch.ones(3)\nself.a = k.expand(2, 3)\nself.b = None\nif len('x'):\n    self.b = self.a * 2")
    spaces: list[dict] = [{}, {}]
    for text, space in zip((source, migrated(source).text), spaces, strict=True):
        exec(text, space)
    plain, buffered = spaces[0]["Net"](), spaces[1]["Net"]()
    assert list(buffered.state_dict()) == ["a", "b"] and not plain.state_dict()
    assert torch.equal(plain.a, buffered.a) and torch.equal(plain.b, buffered.b)
    buffered.load_state_dict(buffered.state_dict())


def test_later_assignment_of_a_tensor():
    later = "    def forward(self, x):\n        self.mean = 0.9 * self.mean + x.mean()\n        return x\n"
    check(
        module("self.mean = torch.zeros(1)", later),
        module('self.register_buffer("mean", torch.zeros(1))', later),
        select="PTM105",
    )


def test_a_count_that_is_added_to():
    later = "    def forward(self, x):\n        self.n += 1\n        return x\n"
    after = 'self.register_buffer("n", torch.zeros(1))'
    check(module("self.n = torch.zeros(1)", later), module(after, later), select="PTM105")


def test_a_tensor_made_anew_is_made_where_the_buffer_is():
    later = "    def reset(self):\n        self.a = torch.zeros(3{})\n"
    check(
        module("self.a = torch.ones(3)", later.format("")),
        module('self.register_buffer("a", torch.ones(3))', later.format(", device=self.a.device")),
        select="PTM105",
    )


FORGETS = "    def reset(self):\n        self.a = torch.zeros(3{})\n    def forget(self):\n        self.a = {}\n"


@pytest.mark.parametrize("none", ["None", "None if self.n else self.a"])
def test_one_made_anew_is_made_where_a_weight_is_where_the_buffer_may_be_none(none):
    made = "self.n = 1\nself.fc = nn.Linear(3, 3)\n{}"
    check(
        module(made.format("self.a = torch.ones(3)"), FORGETS.format("", none)),
        module(
            made.format('self.register_buffer("a", torch.ones(3))'),
            FORGETS.format(", device=self.fc.weight.device", none),
        ),
        select="PTM105",
    )


def test_one_that_may_be_none_is_told_of_where_no_weight_is():
    text = module("self.a = torch.ones(3)", FORGETS.format("", "None"))
    check_unchanged(text, ["PTM105"], select="PTM105")


@pytest.mark.parametrize(
    ("makes", "is_tensor"),
    [
        ("        p = torch.zeros(n, 4)\n        p[0] = 1\n        return p\n", True),
        ("        return torch.eye(n)\n", True),
        ("        p = torch.zeros(n)\n        p = p.unsqueeze(0)\n        return p\n", True),
        ("        return n\n", False),
        ("        if n:\n            return None\n        return torch.eye(n)\n", False),
        ("        p = nn.Linear(n, n)\n        return p\n", False),
        ("        return self._make(n)\n", False),
    ],
)
def test_a_tensor_that_a_method_makes(makes, is_tensor):
    before = module("self.pe = self._make(3)", "    def _make(self, n):\n" + makes)
    if is_tensor:
        after = before.replace("self.pe = self._make(3)", 'self.register_buffer("pe", self._make(3))')
        check(before, after, select="PTM105")
    else:
        check_unchanged(before, [], select="PTM105")


def test_bases_of_this_file():
    extra = "class Two(Net):\n    def __init__(self):\n        super().__init__()\n        {}\n"
    check(
        module("self.n = 1") + extra.format("self.a = torch.eye(2)"),
        module("self.n = 1") + extra.format('self.register_buffer("a", torch.eye(2))'),
        ["PTM105 line 10"],
    )


@pytest.mark.parametrize(
    "init",
    [
        'self.register_buffer("a", torch.eye(3))',
        "self.a = nn.Parameter(torch.zeros(3))",
        "self.a = torch.zeros(3, requires_grad=True)",
        "self.a = torch.zeros(3, requires_grad=x)",
        "self.a = nn.Linear(3, 3)",
        "self.a = torch.device('cpu')",
        "self.a = torch.float16",
        "self.a = torch.load('x')",
        "self.a = numpy.zeros(3)",
        "a = torch.zeros(3)",
        "self.a[0] = torch.zeros(3)",
        "self.a.b = torch.zeros(3)",
        "self.a = [nn.Parameter(torch.zeros(3))]",
        "self.a = torch.zeros(3).sum().item()",
        "self.a = torch.zeros(3).max(dim=0)",
        "self.a = torch.zeros(3).requires_grad_()",
        "self.a = torch.zeros(3).tolist()",
        "self.a = torch.zeros(3).shape",
        "self.a = torch.zeros(3) is None",
        "self.example_input_array = torch.zeros(3)",
        "p = torch.zeros(3)\np = p.tolist()\nself.a = p",
        "self.register_buffer('a', torch.zeros(3))\nself.a = self.a.view(1, 3)",
        "p = 3\nself.a = p",
        "self.a = nn.Parameter(torch.zeros(3)) if x else None",
        "self.a = nn.Linear(3, 3) if x else nn.Identity()",
        "object.__setattr__(self, 'a', 3)",
        "object.__setattr__(other, 'a', torch.zeros(3))",
        "vars(other)['a'] = torch.zeros(3)",
        "other.__setattr__('a', torch.zeros(3))",
    ],
)
def test_unchanged(init):
    result = check_unchanged(module(init), select="PTM105")
    assert "requires_grad" in init or not result.attention


@pytest.mark.parametrize(
    ("init", "more"),
    [
        ("self.a = [torch.zeros(3), torch.ones(3)]", ""),
        ("self.a = {'x': torch.zeros(3)}", ""),
        ("self.a = [torch.zeros(3)] * 3", ""),
        ("self.a = tuple(torch.ones(i) for i in range(3))", ""),
        ("self.a = dict(x=torch.ones(3))", ""),
        ("self.a = self.b = torch.ones(3)", "    def step(self):\n        self.b += 1\n"),
        ("self.a = self.b = torch.ones(3)", "    def step(self):\n        torch.add(1, 2, out=self.a)\n"),
        ("self.a = torch.ones(4).requires_grad_()", ""),
        ("self.a = torch.ones(4)", "net = Net()\nnet.a.requires_grad_(True)\n"),
        ("self.a = nn.Parameter(torch.ones(3)) if x else torch.ones(3)", ""),
        ("self.a = [] if x else 0 if y else torch.ones(3)", ""),
        ("self.type = torch.ones(3)", ""),
        ("self.a = torch.zeros(3)", "net = Net()\nnet.a = (1, 2)\n"),
        ("self.a = torch.zeros(3)", "class Two(Net):\n    def reset(self):\n        self.a = 3\n"),
        ("self.a = torch.zeros(3)", "    def reset(self):\n        self.a = 0.0\n"),
        ("self.a = torch.zeros(3)", "    def a(self):\n        pass\n"),
    ],
)
def test_seen_and_told(init, more):
    lines = ["PTM105 line 6"] * init.count("self.")
    check_unchanged(module(init, more), lines, select="PTM105")


@pytest.mark.parametrize(
    ("init", "changes", "lines"),
    [
        ("self.a = torch.ones(4)\nself.b = self.a.view(2, 2)", "self.a[0].zero_()", [6, 7]),
        ("self.a = torch.ones(4)\nself.b = self.a.view(2, 2)", "self.b[0] = 1", [6, 7]),
        ("m = torch.ones(4)\nself.a = m\nself.b = m[None]", "nn.init.ones_(self.b)", [7, 8]),
        ("t = torch.ones(4)\nt.requires_grad = True\nself.a = t", "pass", [8]),
    ],
)
def test_one_memory_that_is_changed_and_what_is_learned_are_told(init, changes, lines):
    source = module(init, f"    def step(self):\n        {changes}\n")
    check_unchanged(source, [f"PTM105 line {line}" for line in lines], select="PTM105")


@pytest.mark.parametrize(
    "line",
    [
        "object.__setattr__(self, 'a', torch.ones(3))",
        "super().__setattr__('a', torch.ones(3))",
        "vars(self)['a'] = torch.ones(3)",
    ],
)
def test_one_that_is_kept_another_way_is_told(line):
    check_unchanged(module(line), ["PTM105 line 6"], select="PTM105")


def test_not_a_module():
    check_unchanged(module("self.a = torch.zeros(3)", base="Dataset"))


def test_before_the_module_is_made():
    check_unchanged(
        "import torch\nclass A(torch.nn.Module):\n    def __init__(self):\n        self.a = torch.ones(1)\n        super().__init__()\n",
        ["PTM105 line 4"],
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("setattr(self, 'scale', torch.ones(3))", "self.register_buffer('scale', torch.ones(3))"),
        ("for i in range(3):\n    setattr(self, f'mask_{i}', torch.ones(3) * i)", "for i in range(3):\n    self.register_buffer(f'mask_{i}', torch.ones(3) * i)"),
        ("for i, n in enumerate(sizes):\n    setattr(self, f'a{i}', torch.zeros(n))", "for i, n in enumerate(sizes):\n    self.register_buffer(f'a{i}', torch.zeros(n))"),
    ],
)  # fmt: skip
def test_a_tensor_given_by_the_name_of_the_attribute(before, after):
    check(module(before), module(after), ["PTM105"], [], select="PTM105")


@pytest.mark.parametrize(
    ("made", "left"),
    [("torch.ones(3).cuda()", "torch.ones(3)"), ("torch.eye(3, device='cuda') * 2", "torch.eye(3) * 2")],
)
def test_its_move_goes_at_once(made, left):
    before, after = f"setattr(self, 'scale', {made})", f"self.register_buffer('scale', {left})"
    check(module(before), module(after), ["PTM105", "PTM105"], [], select="PTM105")


@pytest.mark.parametrize(
    "init",
    [
        "setattr(self, 'layer', nn.Linear(3, 3))",
        "setattr(other, 'scale', torch.ones(3))",
        "for n in sizes:\n    setattr(self, f'fc{n}', nn.Linear(n, n))",
        "setattr(self, 'n', 3)",
    ],
)
def test_what_else_is_given_by_name(init):
    check_unchanged(module(init), [], select="PTM105")


@pytest.mark.parametrize(
    "init",
    [
        "for name in names:\n    setattr(self, name, torch.ones(3))",  # it may have a dot
        "for name in names:\n    setattr(self, f'm_{name}', torch.ones(3))",
        "setattr(self, 'type', torch.ones(3))",
        "setattr(self, 'scale', torch.ones(3))\nself.scale = 3",
        "for i in range(3):\n    setattr(self, f'a{i}', torch.ones(3))\nsetattr(self, 'a1', None)",
        "done = setattr(self, 'scale', torch.ones(3))",
    ],
)
def test_by_a_name_that_may_be_no_buffers_it_is_told(init):
    assert any("keeps a tensor" in n.message for n in check_unchanged(module(init), select="PTM105").attention)


def test_several_at_once_and_those_of_the_class_are_told():
    told = check_unchanged(
        "import torch\nimport torch.nn as nn\nclass Net(nn.Module):\n    mask = torch.ones(3)\n    kinds = ['a']\n"
        "    def __init__(self, n):\n        super().__init__()\n        self.a, *self.b = torch.ones(n), n\n"
        "    def forward(self, x):\n        return x * self.mask * self.a\n",
        ["PTM105 line 4: `mask` of the class", "PTM105 line 8: `self.a` is a tensor"],
        select="PTM105",
    )
    assert not told.edits
    check_unchanged(
        "import torch\nimport torch.nn as nn\nclass Net(nn.Module):\n    unread = torch.ones(3)\n"
        "    def __init__(self, n, m):\n        super().__init__()\n        self.a, self.b = n, m\n        c, d = torch.ones(3), 1\n"
        "class Other:\n    mask = torch.ones(3)\n    def get(self):\n        return self.mask\n",
        [],
        select="PTM105",
    )


def test_a_move_of_the_buffer_itself_goes_with_its_condition():
    text = "import torch\nclass Net(torch.nn.Module):\n    def __init__(self, cuda):\n        super().__init__()\n"
    given = "        self.row = torch.arange(3).float()\n"
    moved = "        if cuda:\n            self.row = self.row.cuda()\n        self.n = 3\n"
    kept = '        self.register_buffer("row", torch.arange(3).float())\n        self.n = 3\n'
    check(text + given + moved, text + kept, select="PTM105,PTM101,PTM102")


KEPT = "import torch\nfrom torch import nn\nclass A(nn.Module):\n    def {}(self, n, device='cuda'):\n        {}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("self.register_buffer('z', torch.zeros(3).cuda())", "self.register_buffer('z', torch.zeros(3))"),
        (
            "self.register_buffer(name='z', tensor=torch.arange(n).to(device))",
            "self.register_buffer(name='z', tensor=torch.arange(n))",
        ),
        (
            "self.register_buffer('z', torch.zeros(3, device='cuda'), persistent=False)",
            "self.register_buffer('z', torch.zeros(3), persistent=False)",
        ),
        ("self.p = nn.Parameter(torch.randn(n, n).cuda())", "self.p = nn.Parameter(torch.randn(n, n))"),
        (
            "self.p = nn.Parameter(torch.zeros(3).to('cuda', torch.half), requires_grad=False)",
            "self.p = nn.Parameter(torch.zeros(3).to(torch.half), requires_grad=False)",
        ),
        ("self.p = nn.Parameter(torch.ones(3, device=device))", "self.p = nn.Parameter(torch.ones(3))"),
        (
            "self.p = nn.Parameter(torch.fmod(torch.randn(n).cuda(), 2) * 0.1)",
            "self.p = nn.Parameter(torch.fmod(torch.randn(n), 2) * 0.1)",
        ),
        (
            "self.p = nn.Parameter(-(torch.rand(n, device=device) - 0.5).abs())",
            "self.p = nn.Parameter(-(torch.rand(n) - 0.5).abs())",
        ),
        (
            "self.p = nn.Parameter(torch.randn(n).cuda() / math.sqrt(n))\nimport math",
            "self.p = nn.Parameter(torch.randn(n) / math.sqrt(n))\nimport math",
        ),
        (
            "self.ps = nn.ParameterList(); self.ps.append(nn.Parameter(torch.zeros(n).cuda()))",
            "self.ps = nn.ParameterList(); self.ps.append(nn.Parameter(torch.zeros(n)))",
        ),
        (
            "self.ps = nn.ParameterList([nn.Parameter(torch.zeros(n).cuda()) for _ in range(n)])",
            "self.ps = nn.ParameterList([nn.Parameter(torch.zeros(n)) for _ in range(n)])",
        ),
    ],
)
def test_what_is_registered_in_a_constructor_moves_with_its_module(before, after):
    result = check_in_constructor(before)
    assert result.text == KEPT.format("__init__", after) and not result.attention


@pytest.mark.parametrize(
    "line",
    [
        "p = nn.Parameter(torch.randn(n).cuda())",
        "self.other.register_buffer('z', torch.zeros(3).cuda())",
        "self.p = nn.Parameter(torch.randn(n).cuda() * n)",  # what n is does not show
        "self.p = nn.Parameter(torch.matmul(n, torch.randn(3).cuda()))",
        "self.ps = []; self.ps.append(nn.Parameter(torch.zeros(n).cuda()))",
    ],
)
def test_what_another_one_keeps_is_told(line):
    result = check_in_constructor(line)
    assert result.text == KEPT.format("__init__", line) and [n.code for n in result.attention] == ["PTM104"]


def check_in_constructor(line):
    result = migrated(KEPT.format("__init__", line))
    assert migrated(result.text).text == result.text
    return result


MAKES = (
    "import torch\nimport torch.nn as nn\nclass N(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "if torch.cuda.is_available():\n            self.w = torch.arange(3).cuda()\n"
            "        else:\n            self.w = torch.arange(3)",
            'self.register_buffer("w", torch.arange(3))',
        ),
        ("self.w = torch.autograd.Variable(torch.eye(3)).cuda()", 'self.register_buffer("w", torch.eye(3))'),
        (
            'self.register_parameter("w", nn.Parameter(torch.ones(1).cuda()))',
            'self.register_parameter("w", nn.Parameter(torch.ones(1)))',
        ),
    ],
)
def test_made_in_one_way_is_made_once(before, after):
    check(f"{MAKES}        {before}\n", f"{MAKES}        {after}\n", select="PTM101,PTM105,PTM601")


def test_two_ways_stay_two():
    """The branches differ by more than a device."""
    branches = "if torch.cuda.is_available():\n            self.w = torch.ones(3).cuda()\n"
    result = migrated(f"{MAKES}        {branches}        else:\n            self.w = torch.zeros(3)\n")
    assert "if torch.cuda.is_available():" in result.text and result.text.count("register_buffer") == 2


def test_a_step_that_gives_a_new_buffer_values_of_its_batch_is_cut_at_once():
    """A second run cut it: the tensor was no buffer yet when the first looked."""
    steps = "    def validation_step(self, batch, i):\n        self.seen += batch\n"
    lit = module("self.seen = torch.zeros(3)", steps, "pl.LightningModule").replace(
        "\n", "\nimport pytorch_lightning as pl\n", 1
    )
    lit += "trainer = pl.Trainer(strategy='dp')\n"
    result = migrated(lit)
    assert 'register_buffer("seen"' in result.text and "def validation_step_end(self, batch):" in result.text


LEAVES = {
    "an optimizer has it": ("torch.randn(3)", "self.opt = torch.optim.Adam([self.delta], lr=0.1)"),
    "in a group": ("torch.randn(3)", "self.opt = torch.optim.Adam([{'params': [self.delta]}], lr=0.1)"),
    "beside parameters": (
        "torch.randn(3)",
        "self.opt = torch.optim.SGD(list(self.fc.parameters()) + [self.delta], 0.1)",
    ),
    "asked for in a dictionary": ("torch.randn(3, **how)", "pass"),
}


@pytest.mark.parametrize(("made", "used"), LEAVES.values(), ids=LEAVES)
def test_what_an_optimizer_changes_is_no_buffer(made, used):
    text = f"""
    import torch
    how = dict(requires_grad=True)
    class Prompt(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(3, 3)
            self.delta = {made}
            {used}
        def forward(self, x):
            return x + self.delta
    """
    result = check_unchanged(text)
    assert any(n.code == "PTM105" and "Parameter" in n.message for n in result.attention)


def test_weights_given_to_an_optimizer_say_nothing_of_other_names():
    check(
        """
        import torch
        class Norm(torch.nn.Module):
            def __init__(self, net):
                super().__init__()
                self.weight = torch.ones(3)
                self.opt = torch.optim.SGD([self.net.weight], 0.1)
        """,
        """
        import torch
        class Norm(torch.nn.Module):
            def __init__(self, net):
                super().__init__()
                self.register_buffer("weight", torch.ones(3))
                self.opt = torch.optim.SGD([self.net.weight], 0.1)
        """,
    )


COMPUTED = {
    "indexed": ("self.emb(i) + self.w[i]", True),
    "indexed, in a list": ("torch.cat([self.w[i], self.emb(i)])", True),
    "a method of tensors": ("self.emb(i) * self.w.unsqueeze(0)", True),
    "a list of layers": ("self.w[0](self.emb(i))", False),
    "a method of both": ("self.w.float()(self.emb(i))", False),
}


@pytest.mark.parametrize(("used", "tensor"), COMPUTED.values(), ids=COMPUTED)
def test_what_a_module_is_given_and_computes_with(used, tensor):
    text = f"""
import torch
class Table(torch.nn.Module):
    def __init__(self, w):
        super().__init__()
        self.w = w.cuda()
        self.emb = torch.nn.Embedding(3, 4)
    def forward(self, i):
        return {used}
"""
    left = '        self.register_buffer("w", w)\n' if tensor else "        self.w = w\n"
    check(text, text.replace("        self.w = w.cuda()\n", left))


def test_an_array_that_becomes_a_tensor_has_its_name_already():
    """register_buffer() raises for an attribute that is there."""
    check_unchanged(module("self.scale = np.ones(4)\nself.scale = torch.from_numpy(self.scale)"), select="PTM105")


INHERITED = """import torch
from torch import nn

class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.eye = torch.eye(3)
        self.register_buffer("ones", torch.ones(3))
        self.weight = nn.Parameter(torch.eye(3))

class Middle(Base):
    pass

class Net(Middle):
    def __init__(self):
        super().__init__()
        LINE

    def forward(self, x):
        return self.kept
"""


@pytest.mark.parametrize(
    "made", ["self.eye * 2", "-self.eye", "self.ones + 1", "self.eye.clone()", "torch.cat([self.ones])"]
)
def test_what_is_computed_from_a_buffer_of_a_class_above_is_one_too(made):
    result = migrated(INHERITED.replace("LINE", f"self.kept = {made}"), select="PTM105").text
    assert f'self.register_buffer("kept", {made})' in result


@pytest.mark.parametrize(
    "made", ["self.weight * 2", "self.eye.dtype", "self.eye.size(0)", "self.other * 2", "self.eye is None"]
)
def test_what_else_is_computed_from_a_class_above_is_none(made):
    assert f"self.kept = {made}" in migrated(INHERITED.replace("LINE", f"self.kept = {made}"), select="PTM105").text


GENERIC = INHERITED.replace("class Base(nn.Module)", "class Base(nn.Module, Generic[T])").replace(
    "(Base)", "(Base[int])"
)


def test_a_generic_class_is_a_module_like_others():
    text = GENERIC.replace("import torch\n", "import torch\nfrom typing import Generic, TypeVar\nT = TypeVar('T')\n", 1)
    result = migrated(text.replace("LINE", "self.kept = self.eye + torch.ones(3)"), select="PTM105").text
    assert 'self.register_buffer("kept", self.eye + torch.ones(3))' in result


@pytest.mark.parametrize(
    "line",
    [
        "self.a = nn.init.normal_(nn.Parameter(torch.empty(2, 2)))",
        "self.a = rows.sort().values",
        "self.a = {1: torch.ones(1)}.values",
        "self.a = torch.special.expit(x)",
        "self.a = torch.stack(self.grid(2))",
        "self.a = torch.meshgrid(torch.arange(2), torch.arange(3))",
        "self.a = torch.stack(torch.meshgrid(*rows))",
    ],
)
def test_what_is_no_tensor_or_not_shown_to_be_one_is_no_buffer(line):
    check_unchanged(module(line), select="PTM105")
