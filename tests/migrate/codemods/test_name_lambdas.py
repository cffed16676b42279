# ruff: noqa: E501
import pytest
from helpers import check, check_unchanged
from ptmigrate.migrate.migrate import Options, migrate_text

HEAD = "import torch\nfrom torch.utils.data import DataLoader\nfrom torch.optim.lr_scheduler import LambdaLR\nfrom torchvision import transforms\n\n\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("loader = DataLoader(d, collate_fn=lambda b: b[0])", "def _collate_fn(b):\n    return b[0]\n\n\nloader = DataLoader(d, collate_fn=_collate_fn)"),
        ("s = LambdaLR(opt, lambda epoch: 0.95 ** epoch)", "def _lr_lambda(epoch):\n    return 0.95 ** epoch\n\n\ns = LambdaLR(opt, _lr_lambda)"),
        ("t = transforms.Lambda(lambda x: x / 2)", "def _transform(x):\n    return x / 2\n\n\nt = transforms.Lambda(_transform)"),
        ("t = transforms.Lambda(lambda x, y=2: (x / y))", "def _transform(x, y=2):\n    return (x / y)\n\n\nt = transforms.Lambda(_transform)".replace("(x / y)", "x / y")),
        (
            "class N(torch.nn.Module):\n    def __init__(self):\n        self.act = lambda x: torch.relu(x)",
            "def _act(x):\n    return torch.relu(x)\n\n\nclass N(torch.nn.Module):\n    def __init__(self):\n        self.act = _act",
        ),
    ],
)  # fmt: skip
def test_named(before, after):
    check(HEAD + before + "\n", HEAD + after + "\n", select="PTM201")


def test_what_it_takes_from_around_it_is_bound():
    check(
        HEAD + "def make(opt, gamma):\n    return LambdaLR(opt, lr_lambda=lambda e: gamma ** e)\n",
        "import functools\n"
        + HEAD
        + "def _lr_lambda(e, *, gamma):\n    return gamma ** e\n\n\ndef make(opt, gamma):\n    return LambdaLR(opt, lr_lambda=functools.partial(_lr_lambda, gamma=gamma))\n",
        ["PTM201 line 8"],
    )


@pytest.mark.parametrize(
    "source",
    [
        "xs.sort(key=lambda x: x[0])",
        "f = lambda x: x",
        "map(lambda x: x, xs)",
        "loader = DataLoader(d, collate_fn=collate)",
        "s = LambdaLR(opt, fn)",
        "class A:\n    def __init__(self):\n        self.f = lambda x: x",
    ],
)
def test_unchanged(source):
    check_unchanged(HEAD + source + "\n", [])


@pytest.mark.parametrize(
    "body",
    [
        "for g in gs:\n        s = LambdaLR(opt, lambda e: g ** e)",
        "g = 1\n    s = LambdaLR(opt, lambda e: g)\n    g = 2",
    ],
)
def test_what_may_change_is_told(body):
    check_unchanged(HEAD + f"def f(opt, gs):\n    {body}\n", ["PTM201 line "])


def test_a_method_of_self_is_told():
    check_unchanged(
        HEAD + "class N(torch.nn.Module):\n    def __init__(self):\n        self.act = lambda x: self.f(x)\n",
        ["PTM201 line 9"],
    )


@pytest.mark.parametrize(
    "source",
    [
        "class N(torch.nn.Module):\n    def __init__(self, k):\n        self.f = {'a': lambda x, k=k: x * k}\n",
        "def f(opt):\n    rate = 2\n    g = lambda e, r=rate: r ** e\n    return LambdaLR(opt, g)\n",
    ],
)
def test_a_default_is_taken_where_the_lambda_stands(source):
    check_unchanged(HEAD + source, ["PTM201 line "], select="PTM201")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f(opt, n):\n    g = lambda e: e / n\n    return LambdaLR(opt, lr_lambda=g)", "def _g(e, *, n):\n    return e / n\n\n\ndef f(opt, n):\n    g = functools.partial(_g, n=n)\n    return LambdaLR(opt, lr_lambda=g)"),
        ("def f():\n    return transforms.Compose([lambda x: x * 2, a])", "def _transform(x):\n    return x * 2\n\n\ndef f():\n    return transforms.Compose([_transform, a])"),
    ],
)  # fmt: skip
def test_by_a_name_and_in_lists(before, after):
    imported = (
        HEAD if "functools" not in after else HEAD.replace("import torch\n", "import functools\nimport torch\n", 1)
    )
    check(HEAD + before + "\n", imported + after + "\n", select="PTM201")


def test_defaults_of_its_own_stay_beside_what_is_bound():
    source = (
        "import torch.nn as nn\n\n\nclass Net(nn.Module):\n    def __init__(self, eps):\n        super().__init__()\n"
    )
    source += "        self.norm = lambda x, dim=-1: x / (x.norm(dim=dim) + eps)\n"
    result = migrate_text(source, Options(), is_script=False)
    assert "def _norm(x, dim=-1, *, eps):" in result.text and "functools.partial(_norm, eps=eps)" in result.text
    assert not result.attention


def test_one_for_each_of_a_list_is_told():
    source = "import torch.nn as nn\n\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    source += "        self.all = [lambda x, i=i: x * i for i in range(3)]\n"
    result = migrate_text(source, Options(), is_script=False)
    assert result.text == source and [n.line for n in result.attention] == [7]


DATA = "class Data(torch.utils.data.Dataset):\n    def __init__(self, steps):\n        self.steps = steps\n\n\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("tf = []\ntf.append(lambda x: x / 2)\nc = transforms.Compose(tf)", "tf = []\n\n\ndef _tf(x):\n    return x / 2\n\n\ntf.append(_tf)\nc = transforms.Compose(tf)"),
        ("tf = []\ntf += [lambda x: x / 2]\nc = transforms.Compose(tf)", "tf = []\n\n\ndef _tf(x):\n    return x / 2\n\n\ntf += [_tf]\nc = transforms.Compose(tf)"),
        ("by = {}\nby['a'] = lambda b: b\nl = DataLoader(d, collate_fn=by['a'])", "by = {}\n\n\ndef _by(b):\n    return b\n\n\nby['a'] = _by\nl = DataLoader(d, collate_fn=by['a'])"),
        ("merge = lambda b: b\nl = DataLoader(d, collate_fn=merge)", "def _merge(b):\n    return b\n\n\nmerge = _merge\nl = DataLoader(d, collate_fn=merge)"),
        ("s = LambdaLR(opt, [lambda e: 0.5] * 2)", "def _lr_lambda(e):\n    return 0.5\n\n\ns = LambdaLR(opt, [_lr_lambda] * 2)"),
        ("l = DataLoader(d, 1, False, None, None, 2, lambda b: b)", "def _collate_fn(b):\n    return b\n\n\nl = DataLoader(d, 1, False, None, None, 2, _collate_fn)"),
        (DATA + "l = DataLoader(Data([lambda x: x / 2]))", DATA + "def _transform(x):\n    return x / 2\n\n\nl = DataLoader(Data([_transform]))"),
    ],
)  # fmt: skip
def test_lambdas_that_get_there_by_a_name(before, after):
    check(HEAD + before + "\n", HEAD + after + "\n", attention=[], select="PTM201")


@pytest.mark.parametrize(
    "source",
    [
        "keys = []\nkeys.append(lambda x: x[0])\nxs.sort(key=keys[0])",
        "by = {}\nby['a'] = lambda b: b\nprint(by['a'](1))",
        "merge = lambda b: b\nl = DataLoader(d, collate_fn=other)\nmerge(3)",
        "def f():\n    tf = []\n    tf.append(lambda x: x)\n    return tf\n\ndef g(tf):\n    return transforms.Compose(tf)",
    ],
)
def test_lambdas_that_do_not(source):
    check_unchanged(HEAD + source + "\n", [], select="PTM201")


def test_a_lambda_of_a_loop_in_a_list_is_told():
    body = "    tf = []\n    for g in gs:\n        tf.append(lambda x: x * g)\n    return transforms.Compose(tf)\n"
    check_unchanged(HEAD + "def f(gs):\n" + body, ["PTM201 line 10"], select="PTM201")


def test_one_that_is_chosen_of_several_and_in_a_partial():
    body = "class N(torch.nn.Module):\n    def __init__(self, key):\n        super().__init__()\n        self.act = {'a': torch.relu, 'b': lambda x: x}[key]\n"
    check(
        HEAD + body,
        HEAD + "def _act(x):\n    return x\n\n\n" + body.replace("lambda x: x", "_act"),
        ["PTM201 line 10"],
        select="PTM201",
    )
    given = "import functools\nloader = DataLoader(d, collate_fn=functools.partial({}, k=1))\n"
    text = migrate_text(HEAD + given.format("lambda b, k: b[k]"), Options(select=("PTM201",)), is_script=False).text
    assert "collate_fn=functools.partial(_collate_fn, k=1)" in text


def test_one_that_setattr_keeps():
    body = "class N(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        for i in range(3):\n            setattr(self, f'f{i}', lambda x: x * i)\n"
    check_unchanged(HEAD + body, ["PTM201 line 11"], select="PTM201")
    check_unchanged(HEAD + body.replace("torch.nn.Module", "Plain"), [], select="PTM201")
    check_unchanged(HEAD + body.replace("setattr(self", "setattr(other"), [], select="PTM201")


@pytest.mark.parametrize(
    "source",
    ["x = {'a': lambda v: v}['a'](1)", "y = functools.partial(lambda v, k: v, k=1)(2)", "sort(key=[lambda v: v][0])"],
)
def test_chosen_and_called_at_once(source):
    check_unchanged(HEAD + "import functools\n" + source + "\n", [], select="PTM201")


NET = "class N(torch.nn.Module):\n    def __init__(self, {given}):\n        {body}\n"


@pytest.mark.parametrize(
    ("given", "body", "new_given", "new_body"),
    [
        ("act=lambda x: -x", "self.act = act", "act=_act", "self.act = act"),
        ("*, act=(lambda x: -x)", "self.acts = [act]", "*, act=_act", "self.acts = [act]"),
        ("net", "self.act = net or (lambda x: -x)", "net", "self.act = net or _act"),
        (
            "net",
            "self.net = net\n        net.register_forward_hook(lambda x: -x)",
            "net",
            "self.net = net\n        net.register_forward_hook(_hook)",
        ),
    ],
)
def test_what_a_module_keeps_of_defaults_and_hooks(given, body, new_given, new_body):
    name = "_hook" if "hook" in body else "_act"
    new = f"def {name}(x):\n    return -x\n\n\n" + NET.format(given=new_given, body=new_body)
    check(HEAD + NET.format(given=given, body=body), HEAD + new, select="PTM201")


@pytest.mark.parametrize(
    "source",
    [
        NET.format(given="key=lambda x: x", body="self.names = sorted(NAMES, key=key)"),
        NET.format(given="key=lambda x: x", body="self.key = 3") + "\n\ndef g(key):\n    return key\n",
        "def run(x, act=lambda x: x):\n    return act(x)",
        "class A:\n    def __init__(self, act=lambda x: x):\n        self.act = act",
        "model.fc.register_forward_hook(lambda m, i, o: seen.append(o))",
        "class A:\n    def f(self, net):\n        net.register_forward_hook(lambda m, i, o: o)",
        "class N(torch.nn.Module):\n    def forward(self, x):\n        x.register_hook(lambda g: g * 2)\n        return x",
    ],
)
def test_what_nothing_keeps_stays_a_lambda(source):
    check_unchanged(HEAD + source.rstrip("\n") + "\n", [])


def test_a_hook_that_reads_its_module_is_told():
    body = "self.fc = torch.nn.Linear(2, 2)\n        self.fc.register_forward_hook(lambda m, i, o: self.count(o))"
    check_unchanged(HEAD + NET.format(given="n", body=body), ["PTM201 line 10"])


DEFINED = "def {name}({given}):\n    return {body}\n\n\n"


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("options = {{'collate_fn': {}, 'num_workers': 2}}\nl = DataLoader(d, **options)", "_collate_fn"),
        ("options['worker_init_fn'] = {}", "_worker_init_fn"),
        ("data.transform = {}", "_transform"),
        ("class D(torch.utils.data.Dataset):\n    pass\n\n\nd = D()\n\n\nd.mapped = {}", "_mapped"),
    ],
)
def test_options_and_data_sets_that_are_given_one_later(source, name):
    definition = DEFINED.format(name=name, given="x", body="x + 1")
    before, after = source.format("lambda x: x + 1"), source.format(name)
    head, _, last = after.rpartition("d.mapped") if "mapped" in after else ("", "", after)
    after = head + definition + ("d.mapped" if head else "") + last
    check(HEAD + before + "\n", HEAD + after + "\n", select="PTM201")


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("self.acts = dict(relu={}, tanh=torch.tanh)", "_acts"),
        ("self.counts = collections.defaultdict({})", "_counts"),
        ("self.net.act = {}", "_act"),
    ],
)
def test_what_a_module_keeps_in_others(body, name):
    head = "import collections\n" + HEAD
    definition = DEFINED.format(name=name, given="*a", body="a")
    before, after = (NET.format(given="n", body=body.format(f)) for f in ("lambda *a: a", name))
    check(head + before, head + definition + after, select="PTM201")


@pytest.mark.parametrize(
    "source",
    [
        "import collections\ncounts = collections.defaultdict(lambda: 0)",
        "table = dict(relu=lambda x: x)",
        "table = {'collate': lambda x: x}",
        "table['f'] = lambda x: x",
        "button.pressed = lambda x: x",
        "class P:\n    def __init__(self):\n        self.button.transformed = lambda x: x",
    ],
)
def test_what_is_only_held(source):
    check_unchanged(HEAD + source + "\n", [])


def test_names_in_the_order_of_the_text():
    before = "a = DataLoader(d, collate_fn=lambda b: b[0])\nb = [DataLoader(d, collate_fn=lambda b: b[1])]\n"
    text = migrate_text(HEAD + before, Options(select=("PTM201",))).text
    assert "def _collate_fn(b):\n    return b[0]" in text and "def _collate_fn_2(b):\n    return b[1]" in text


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("n = 1\n    def more():\n        nonlocal n\n        n += 1\n    s = LambdaLR(opt, lambda e: n)\n    return s, more", "`n` may be another"),
        ("s = DataLoader(opt, collate_fn=lambda b: (b, n))\n    n = 2\n    return s", "`n` may be another"),
        ("class Box:\n        pass\n    return LambdaLR(opt, lambda e: Box.rate)", "`Box` cannot be pickled"),
        ("import math\n    return LambdaLR(opt, lambda e: math.cos(e))", "`math` cannot be pickled"),
        ("return LambdaLR(opt, lambda e: __class__.rate)", "it reads `__class__`"),
        ("return LambdaLR(opt, lambda e: (  # why\n        e))", "its lines"),
        ("return LambdaLR(opt, lambda e,\n        n=1: e)", "its lines"),
        ("return LambdaLR(opt, lambda \\\n        e: e)", "its lines"),
        ("return LambdaLR(opt, lambda e: e['''a\n        b'''])", "its lines"),
    ],
)  # fmt: skip
def test_why_one_stays(body, why):
    result = check_unchanged(HEAD + f"def make(opt):\n    {body}\n", select="PTM201")
    assert any(why in n.message for n in result.attention), result.attention


def test_functools_that_another_function_imports():
    source = "def other():\n    import functools\n    return functools\n\n\ndef make(opt, n):\n    return LambdaLR(opt, lambda e: n)\n"
    assert migrate_text(HEAD + source, Options(select=("PTM201",))).text.startswith("import functools\n")


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("options.setdefault('collate_fn', lambda x: x)", True),
        ("options.setdefault('f', lambda x: x)", False),
        ("setattr(data, 'f', lambda x: x)", True),
        ("setattr(other, 'f', lambda x: x)", False),
    ],
)
def test_what_is_set_by_name(line, named):
    data = "class Own(torch.utils.data.Dataset):\n    pass\n\n\ndata = Own()\n"
    text = migrate_text(HEAD + data + line + "\n", Options(select=("PTM201",))).text
    assert ("lambda" not in text) == named


@pytest.mark.parametrize(
    ("body", "moved"),
    [
        ("(\n            e,  # one\n            2,\n        )", "(\n        e,  # one\n        2,\n    )"),
        ("(\n            e\n            + 1\n        )", "(e\n        + 1)"),
        ("(\n            e + 1\n        )", "e + 1"),
        ("e +\n            1", "(e +\n        1)"),
        ("dict(\n                a=e,\n\n                b=2)", "dict(\n        a=e,\n\n        b=2)"),
        ("[\n            e for e in e\n        ]", "[\n        e for e in e\n    ]"),
    ],
)
def test_lines_of_a_body(body, moved):
    made = f"def make(opt):\n    return LambdaLR(\n        opt,\n        lr_lambda=lambda e: {body},\n    )\n"
    after = "def make(opt):\n    return LambdaLR(\n        opt,\n        lr_lambda=_lr_lambda,\n    )\n"
    check(HEAD + made, f"{HEAD}def _lr_lambda(e):\n    return {moved}\n\n\n{after}", select="PTM201")


OF_SELF = "import functools\nfrom torch.optim.lr_scheduler import LambdaLR\nfrom torch.utils.data import DataLoader\n"


@pytest.mark.parametrize(
    ("line", "new", "name"),
    [
        ("return LambdaLR(opt, lambda e: e / self.warm)", "return LambdaLR(opt, {})", "_lr_lambda"),
        (
            "f = lambda e: e / self.warm\n        return LambdaLR(opt, [f])",
            "f = {}\n        return LambdaLR(opt, [f])",
            "_f",
        ),
        (
            "return DataLoader(opt, collate_fn=lambda e: e / self.warm)",
            "return DataLoader(opt, collate_fn={})",
            "_collate_fn",
        ),
    ],
)
def test_one_of_a_schedule_or_a_loader_takes_its_object_along(line, new, name):
    function = f"\n\ndef {name}(e, *, self):\n    return e / self.warm\n\n\n"
    method = "class N:\n    def make(self, opt):\n        {}\n"
    after = OF_SELF + function + method.format(new.format(f"functools.partial({name}, self=self)"))
    check(OF_SELF + "\n\n" + method.format(line), after, select="PTM201")


@pytest.mark.parametrize("kept", ["self.f = f", "self.f = [f]"])
def test_one_that_the_module_keeps_too_is_told(kept):
    body = f"class N(torch.nn.Module):\n    def make(self, o):\n        f = lambda e: self.k\n        {kept}\n"
    result = check_unchanged(HEAD + OF_SELF + body + "        return LambdaLR(o, f)\n", select="PTM201")
    assert any("it reads `self`" in n.message for n in result.attention)


OWN = """\
import torch
from torch.utils.data import DataLoader, Dataset
class Compose:
    def __init__(self, ts):
        {keeps}
    def __call__(self, x):
        return x
class Data(Dataset):
    def __init__(self, x, transform):
        self.x, self.transform = x, transform
    def __getitem__(self, i):
        return self.transform(self.x[i])
tf = Compose([lambda a: a * 2])
loader = DataLoader({given}, 8)
"""


def test_what_an_object_of_the_scripts_own_keeps_that_a_data_set_is_given():
    text = migrate_text(OWN.format(keeps="self.ts = ts", given="Data(rows, tf)")).text
    assert "def _tf(a):\n    return a * 2\n" in text and "tf = Compose([_tf])\n" in text


@pytest.mark.parametrize(
    ("keeps", "given"), [("self.n = len(ts)", "Data(rows, tf)"), ("self.ts = ts", "Data(rows, None)")]
)
def test_what_it_does_not_keep_or_nothing_is_given_stays(keeps, given):
    assert "tf = Compose([lambda a: a * 2])\n" in migrate_text(OWN.format(keeps=keeps, given=given)).text
