# ruff: noqa: E501
"""T7: functions made inside of others, where pickling meets them; the result is pickled and called."""

import pickle
import sys
import textwrap
import types

import pytest
from helpers import check, check_unchanged, migrated

HEAD = "import functools\nimport torch\nfrom torch.utils.data import DataLoader\nfrom torch.optim.lr_scheduler import LambdaLR\n\n\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "def f(d):\n    def collate(b):\n        return b\n    return DataLoader(d, collate_fn=collate)",
            "def collate(b):\n    return b\n\n\ndef f(d):\n    return DataLoader(d, collate_fn=collate)",
        ),
        (
            "def f(d, k):\n    def collate(b, k):\n        return b[k]\n    return DataLoader(d, collate_fn=functools.partial(collate, k=k))",
            "def collate(b, k):\n    return b[k]\n\n\ndef f(d, k):\n    return DataLoader(d, collate_fn=functools.partial(collate, k=k))",
        ),
        (
            "class N(torch.nn.Module):\n    def __init__(self):\n        def hook(m, i, o):\n            return o\n        self.fc.register_forward_hook(hook)",
            "def hook(m, i, o):\n    return o\n\n\nclass N(torch.nn.Module):\n    def __init__(self):\n        self.fc.register_forward_hook(hook)",
        ),
        (
            "def f(d, pad):\n    # pads\n    def collate(b, *, n=1):\n        # all\n        x = b + pad  # one\n        return x\n    return DataLoader(d, 4, False, None, None, 0, collate)",
            "def _collate(b, *, n=1, pad):\n    # all\n    x = b + pad  # one\n    return x\n\n\ndef f(d, pad):\n    # pads\n    collate = functools.partial(_collate, pad=pad)\n    return DataLoader(d, 4, False, None, None, 0, collate)",
        ),
        (
            "def f(opt, warm):\n    def rate(step: int) -> float:\n        if step < warm:\n            return step / warm\n        return 1.0\n    return LambdaLR(opt, rate), rate(3)",
            "def _rate(step: int, *, warm) -> float:\n    if step < warm:\n        return step / warm\n    return 1.0\n\n\ndef f(opt, warm):\n    rate = functools.partial(_rate, warm=warm)\n    return LambdaLR(opt, rate), rate(3)",
        ),
        (
            "def f(d):\n    def collate(b): return b  # as it is\n    return DataLoader(d, collate_fn=collate)",
            "def collate(b):\n    return b  # as it is\n\n\ndef f(d):\n    return DataLoader(d, collate_fn=collate)",
        ),
        (
            "def f(d, k):\n    def collate(b, *, n=1) -> list: c = b[k]; return c * n\n    return DataLoader(d, collate_fn=collate)",
            "def _collate(b, *, n=1, k) -> list:\n    c = b[k]; return c * n\n\n\ndef f(d, k):\n    collate = functools.partial(_collate, k=k)\n    return DataLoader(d, collate_fn=collate)",
        ),
        (
            "class N(torch.nn.Module):\n    def __init__(self, k):\n        super().__init__()\n        def act(x):\n            return x * k\n        self.act = act",
            "def _act(x, *, k):\n    return x * k\n\n\nclass N(torch.nn.Module):\n    def __init__(self, k):\n        super().__init__()\n        act = functools.partial(_act, k=k)\n        self.act = act",
        ),
    ],
)  # fmt: skip
def test_moved_to_the_module(before, after):
    check(HEAD + before + "\n", HEAD + after + "\n", select="PTM202")


@pytest.mark.parametrize(
    "source",
    [
        "def f(d):\n    def key(b):\n        return b\n    return sorted(d, key=key)",
        "def collate(b):\n    return b\nDataLoader(d, collate_fn=collate)",
        "def f(d):\n    def go():\n        return 1\n    return go()",
        "class A:\n    def collate(self, b):\n        return b\n    def f(self, d):\n        return DataLoader(d, collate_fn=self.collate)",
        "def f(d, collate):\n    return DataLoader(d, collate_fn=collate)",
        "def f(d):\n    def half(x):\n        return x\n    return Plain(d, half)\nclass Plain:\n    pass",
        "def f(d):\n    def half(x):\n        return x\n    d.update(half=half)\n    return d",
        "def f(d):\n    def half(x):\n        return x\n    d.setdefault('half', half)\n    return d",
    ],
)
def test_unchanged(source):
    check_unchanged(HEAD + source + "\n", [], select="PTM202")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("n = 0\n    def c(b):\n        nonlocal n\n        n += 1\n        return b", "changes `n`"),
        ("n = 0\n    def c(b):\n        return b + n\n    n = 2", "`n` may be another value"),
        (
            "n = 0\n    def c(b):\n        return b + n\n    def more():\n        nonlocal n\n        n += 1",
            "`n` may be another value",
        ),
        ("class Box:\n        pass\n    def c(b):\n        return Box(b)", "`Box` cannot be pickled"),
        ("import math\n    def c(b):\n        return math.sqrt(b)", "`math` cannot be pickled"),
        ("def c(b):\n        return __class__.pad", "it reads `__class__`"),
        ("def c(b):\n        return [c(x) for x in d]", "reads `c`"),
        ("n = 2\n    def c(b, m=n):\n        return b + m", "defaults"),
        ("def c(b):\n        return '''a\n        b'''", "its lines"),
        ("for i in range(3):\n        def c(b):\n            return b + i", "`i` may be another value"),
        ("if d:\n        i = 1\n    def c(b):\n        return b + i", "`i` may have no value yet"),
        ("def c(b, m=BELOW):\n        return b + m", "defaults"),
        ("def c(b, seen=[]):\n        return seen.append(b)", "defaults"),
        ("def c(b) -> BELOW:\n        return b", "annotations"),
        ("def c(b):\n        c.calls += 1\n        return b\n    c.calls = 0", "attributes"),
    ],
)
def test_what_cannot_be_moved_is_told(body, why):
    source = f"def f(d):\n    {body}\n    return DataLoader(d, collate_fn=c)\n"
    result = check_unchanged(HEAD + source + "BELOW = 3\n", select="PTM202")
    assert any(why in n.message for n in result.attention), result.attention


MOVED_AFTER = [
    (
        "def f(d, device, n):\n    def c(b):\n        return torch.stack(b).to(device)[:n]  # some\n    return DataLoader(d, collate_fn=c)",
        "def _c(b, *, n):\n    return torch.stack(b)[:n]  # some\n\n\ndef f(d, device, n):\n    c = functools.partial(_c, n=n)\n    return DataLoader(d, collate_fn=c)",
    ),
    (
        "def f(d, device):\n    return DataLoader(d, collate_fn=lambda b: torch.stack(b).to(device))",
        "def _collate_fn(b):\n    return torch.stack(b)\n\n\ndef f(d, device):\n    return DataLoader(d, collate_fn=_collate_fn)",
    ),
    (
        "def f(d):\n    def c(b):\n        return torch.autograd.Variable(torch.stack(b))\n    return DataLoader(d, collate_fn=c)",
        "def c(b):\n    return torch.stack(b).detach()\n\n\ndef f(d):\n    return DataLoader(d, collate_fn=c)",
    ),
    (
        "class N(torch.nn.Module):\n    def __init__(self, device):\n        super().__init__()\n        self.act = lambda x: x.relu().to(device)\n    def forward(self, x):\n        return self.act(x)",
        "def _act(x):\n    return x.relu()\n\n\nclass N(torch.nn.Module):\n    def __init__(self, device):\n        super().__init__()\n        self.act = _act\n    def forward(self, x):\n        return self.act(x)",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), MOVED_AFTER)
def test_what_else_changes_in_it_moves_along(before, after):
    """It was told, and what moved stood as it was written, with a device that its new place had not."""
    check(HEAD + before + "\n", HEAD + after + "\n")


def test_a_private_name_of_the_class_around_is_told():
    body = "def f(self, d):\n        def c(b):\n            return self.__pad(b)\n        return DataLoader(d, collate_fn=c)\n"
    result = check_unchanged(HEAD + "class A:\n    " + body, select="PTM202")
    assert any("`__pad` is its class's own" in n.message for n in result.attention), result.attention


KEPT = (
    "class N(torch.nn.Module):\n    def __init__(self):\n        def act(x):\n            return self.fc(x)\n        "
)


def test_one_that_a_module_keeps_and_that_reads_it_is_told():
    """functools.partial() is copied with what it holds, a function is not: an averaged copy was another network."""
    result = check_unchanged(HEAD + KEPT + "self.act = act\n", select="PTM202")
    assert any("it reads `self`" in n.message for n in result.attention), result.attention


def test_one_that_a_loader_gets_takes_it_along():
    before = KEPT + "self.loader = DataLoader(self.d, collate_fn=act)\n"
    assert "functools.partial(_act, self=self)" in migrated(HEAD + before, "PTM202").text


def test_a_docstring_moves_along():
    function = 'def collate(b):\n{0}    """Both.\n\n{0}    And more.\n{0}    """\n{0}    return b\n'
    check(
        HEAD + "def f(d):\n    " + function.format("    ") + "    return DataLoader(d, collate_fn=collate)\n",
        HEAD + function.format("") + "\n\ndef f(d):\n    return DataLoader(d, collate_fn=collate)\n",
        select="PTM202",
    )


def test_the_result_is_pickled_and_gives_the_same():
    source = (
        HEAD
        + "def f(pad):\n    def collate(b):\n        return sum(b) + pad\n    return DataLoader([1], collate_fn=collate)\n"
    )
    module = types.ModuleType("moved_functions")
    sys.modules["moved_functions"] = module
    try:
        exec(migrated(source, "PTM202").text, module.__dict__)
        collate = pickle.loads(pickle.dumps(module.f(5).collate_fn))
        assert collate([1, 2]) == 8
    finally:
        del sys.modules["moved_functions"]


def test_names_of_lambdas_and_functions_do_not_meet():
    source = (
        "def f(d, n):\n    def collate_fn(b):\n        return b + n\n"
        "    a = DataLoader(d, collate_fn=lambda b: b - n)\n    return a, DataLoader(d, collate_fn=collate_fn)\n"
    )
    text = migrated(HEAD + source, "PTM201,PTM202").text
    assert "def _collate_fn(b, *, n):" in text and "def _collate_fn_2(b, *, n):" in text


@pytest.mark.parametrize(
    "value", ["[b[0] for b in batch]", "{k: v for k, v in batch[0].items()}", "list(zip(*(b for b in batch)))"]
)
def test_a_comprehension_binds_its_own_names(value):
    head = "import torch\nfrom torch.utils.data import DataLoader\n\n\n"
    function = f"def collate(batch):\n    return {value}\n"
    inner = textwrap.indent(function, "    ")
    before = head + f"def build(ds):\n{inner}    return DataLoader(ds, collate_fn=collate)\n"
    check(
        before, head + function + "\n\ndef build(ds):\n    return DataLoader(ds, collate_fn=collate)\n", select="PTM202"
    )


def test_a_partial_that_meets_no_pickling():
    source = "def f(d, k):\n    def first(b, k):\n        return b[k]\n    return sorted(d, key=functools.partial(first, k=k))\n"
    check_unchanged(HEAD + source, [], select="PTM202")


HELPED = """\
import torch
from torch.utils.data import DataLoader
def make(ds, depth):
    def walk(x, d):
        return x if d == 0 else {called}(x, d - 1)
    def collate(b):
        return walk(b, 2)
    return DataLoader(ds, collate_fn=collate, num_workers=1)
"""


def test_what_a_moved_function_calls_goes_along_also_where_it_calls_itself():
    result = migrated(HELPED.format(called="walk"))
    assert result.text.index("def walk") < result.text.index("def make") and not result.attention
    assert "collate = functools.partial(_collate, walk=walk)" in result.text
    made = {}
    exec(result.text, made)

    assert made["make"]([1], 0).collate_fn([3]) == [3] and made["walk"].__qualname__ == "walk"


def test_one_that_takes_values_along_and_calls_itself_is_told():
    source = HELPED.format(called="walk").replace("d == 0", "d == depth")
    told = [n.message for n in migrated(source).attention]
    assert any("walk() is made inside" in t and "it reads `walk`" in t for t in told)


@pytest.mark.parametrize("given", ["2", "args.warm", "not args.warm"])
def test_what_it_binds_stays_a_parameter_where_devices_go(given):
    """Such as a number or a condition, which would go with the last line about a device that reads it."""
    text = HEAD + textwrap.dedent(
        f"""
        def f(opt, warm):
            def rate(step):
                return step / 2 if warm else 1.0
            return LambdaLR(opt, rate)

        net = torch.nn.Linear(2, 1).cuda()
        f(torch.optim.SGD(net.parameters(), lr=0.1), {given})
        """
    )
    result = migrated(text).text
    assert "def f(opt, warm):" in result and f"lr=0.1), {given})" in result and ".cuda()" not in result
    assert "rate = functools.partial(_rate, warm=warm)" in result


def test_a_device_that_it_reads_stays_too():
    text = HEAD + textwrap.dedent(
        """
        device = torch.device('cuda')
        def f(d):
            k = 2
            def collate(b):
                return k, torch.stack(b).to(device), device
            return DataLoader(d, collate_fn=collate)
        net = torch.nn.Linear(2, 1).to(device)
        """
    )
    result = migrated(text).text
    assert "device = torch.device('cuda')" in result and "def _collate(b, *, k):" in result


def test_one_that_a_lambda_takes_along():
    function = "def first(b):\n    return b[0]\n"
    before = (
        "def f(d):\n" + textwrap.indent(function, "    ") + "    return DataLoader(d, collate_fn=lambda b: first(b))\n"
    )
    text = migrated(HEAD + before, "PTM201,PTM202").text
    assert "\n" + function in text and "functools.partial(_collate_fn, first=first)" in text


@pytest.mark.parametrize(
    "given",
    [
        "Own(d, f)",
        "DataLoader(d, **dict(collate_fn=f))",
        "DataLoader(d, **options(worker_init_fn=f))",
        "d.setdefault('collate_fn', f)",
    ],
)
def test_where_a_lambda_would_be_named(given):
    function = "def f(x: int,  y=1.0, *, z='a') -> int:  # both\n    return x\n"
    head = HEAD + "class Own(torch.utils.data.Dataset):\n    pass\n\n\n"
    before = f"{head}def build(d):\n{textwrap.indent(function, '    ')}    return {given}\n"
    check(before, f"{head}{function}\n\ndef build(d):\n    return {given}\n", select="PTM202")
