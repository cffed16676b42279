import pytest
import torch
from helpers import check, check_unchanged, migrated
from ptmigrate.migrate.migrate import Options, migrate_text
from ptmigrate.migrate.project import collect, migrate_all

from tests.migrate.running import check_on_card

HEAD = "import torch\n"
CHOICE = "Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            CHOICE + "def f(x):\n    return x * x.size(0) + Tensor([2.0])",
            "Tensor = torch.FloatTensor\ndef f(x):\n    return x * x.size(0) + Tensor([2.0]).to(x.device)",
        ),
        (
            CHOICE + "def f(x):\n    return (x > 0).type(Tensor)",
            "Tensor = torch.FloatTensor\ndef f(x):\n    return (x > 0).to(torch.float32)",
        ),
        (
            "Tensor = torch.cuda.FloatTensor if cuda else torch.Tensor\ndef f(x):\n    return x.t() * Tensor([2.0])",
            "Tensor = torch.Tensor\ndef f(x):\n    return x.t() * Tensor([2.0]).to(x.device)",
        ),
        (
            "class A:\n    def __init__(self, gpu_ids):\n"
            "        self.Tensor = torch.cuda.FloatTensor if gpu_ids else torch.Tensor\n"
            "    def f(self, x):\n        return x.type(self.Tensor)",
            "class A:\n    def __init__(self, gpu_ids):\n        self.Tensor = torch.Tensor\n"
            "    def f(self, x):\n        return x.to(torch.float32)",
        ),
        (
            "def f(x):\n    return x.type('torch.cuda.FloatTensor')",
            "def f(x):\n    return x.to(torch.float32)",
        ),
        (
            "def f(x):\n    return x.view(-1)[torch.cuda.LongTensor([1, 0])]",
            "def f(x):\n    return x.view(-1)[torch.LongTensor([1, 0]).to(x.device)]",
        ),
        (
            CHOICE + "def f(x):\n    return x.view(-1) + torch.arange(4).repeat(4).type(Tensor)",
            "Tensor = torch.FloatTensor\n"
            "def f(x):\n    return x.view(-1) + torch.arange(4).repeat(4).to(x.device, torch.float32)",
        ),
        ("def f(x):\n    return x.type(torch.cuda.HalfTensor)", "def f(x):\n    return x.to(torch.float16)"),
        ("torch.set_default_tensor_type(torch.DoubleTensor)", "torch.set_default_dtype(torch.float64)"),
        ("torch.set_default_tensor_type('torch.FloatTensor')", "torch.set_default_dtype(torch.float32)"),
    ],
)
def test_a_type_of_the_gpu_becomes_a_dtype_and_a_place(before, after):
    check(HEAD + before + "\n", HEAD + after + "\n", select="PTM108")


@pytest.mark.parametrize(
    "source",
    [
        "Tensor = torch.FloatTensor",
        "Tensor = torch.FloatTensor if single else torch.DoubleTensor",
        "def f(x):\n    return x.type(torch.FloatTensor)",
        "def f(x):\n    return x.type(torch.float32)",
        "def f(x):\n    return isinstance(x, torch.FloatTensor)",
        "def f(x):\n    return x.type('torch.FloatTensor')",
        "torch.set_default_dtype(torch.float64)",
    ],
)
def test_unchanged(source):
    check_unchanged(HEAD + source + "\n", [], select="PTM108")


@pytest.mark.parametrize(
    "source",
    [
        "torch.set_default_tensor_type('torch.cuda.FloatTensor')",
        "z = torch.cuda.FloatTensor(3)",
        "kinds = [torch.cuda.FloatTensor]",
        "run(torch.cuda.FloatTensor if cuda else torch.FloatTensor)",
    ],
)
def test_what_nothing_shows_the_place_of_is_told(source):
    check_unchanged(HEAD + source + "\n", ["PTM108 line 2"], select="PTM108")


def test_in_a_kept_loop_the_place_is_the_runtimes():
    loop = CHOICE + "for x in xs:\n    y = Tensor(3).fill_(1)\n    loss = f(x.type(Tensor), y)\n    loss.backward()\n"
    text = migrated(HEAD + loop).text
    assert "y = Tensor(3).to(runtime.device).fill_(1)" in text and "x.to(runtime.device, torch.float32)" in text


def test_values_dtypes_and_shapes_stay():
    """With `cuda` off the original runs here, and gives what the result gives."""
    source = (
        HEAD
        + "cuda = False\n"
        + CHOICE
        + (
            "def f(x):\n    m = (x > 0).type(Tensor)\n    t = Tensor(2, x.size(1)).fill_(3.0)\n"
            "    return x * m + t, m, t\n"
        )
    )
    x = torch.randn(2, 4)
    spaces: list[dict] = [{}, {}]
    for space, text in zip(spaces, (source, migrated(source).text), strict=True):
        exec(text, space)
    before, after = (space["f"](x) for space in spaces)
    assert source != migrated(source).text
    for a, b in zip(before, after, strict=True):
        assert torch.equal(a, b) and a.dtype == b.dtype and a.shape == b.shape


BRANCHES = "if cuda:\n    T, L = torch.cuda.FloatTensor, torch.cuda.LongTensor\n"
BRANCHES += "else:\n    T = torch.FloatTensor\n    L = torch.LongTensor\n"
READS = "def f(x):\n    return x.sum() + T([2.0]) + x.type(L)\n"
PLACED = "def f(x):\n    return x.sum() + T([2.0]).to(x.device) + x.to(torch.int64)\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (BRANCHES + READS, "T = torch.FloatTensor\nL = torch.LongTensor\n" + PLACED),
        (
            "if not cuda:\n    T = torch.FloatTensor  # slow\nelse:\n    T = torch.cuda.FloatTensor\n"
            "L = torch.cuda.LongTensor\n" + READS,
            "T = torch.FloatTensor  # slow\nL = torch.LongTensor\n" + PLACED,
        ),
        (
            "T = torch.FloatTensor\nL = 'torch.LongTensor'\nif cuda:\n    T = torch.cuda.FloatTensor\n"
            "    L = 'torch.cuda.LongTensor'\n" + READS,
            "T = torch.FloatTensor\nL = 'torch.LongTensor'\n" + PLACED,
        ),
        (
            BRANCHES.replace("else", "    name = 'gpu'\nelse") + READS,
            BRANCHES.replace("else", "    name = 'gpu'\nelse").replace("torch.cuda", "torch") + PLACED,
        ),
        (
            "K = torch.cuda.FloatTensor if cuda else torch.FloatTensor\nT = K\nL = torch.cuda.LongTensor\n" + READS,
            "K = torch.FloatTensor\nT = K\nL = torch.LongTensor\n" + PLACED,
        ),
        (
            "T = cuda and torch.cuda.FloatTensor or torch.FloatTensor\nL = torch.cuda.LongTensor\n" + READS,
            "T = torch.FloatTensor\nL = torch.LongTensor\n" + PLACED,
        ),
    ],
)
def test_a_type_chosen_by_statements_is_the_same_on_any_device(before, after):
    check(HEAD + before, HEAD + after, select="PTM108")


@pytest.mark.parametrize(
    "chosen",
    [
        "if cuda:\n    T = torch.cuda.HalfTensor\nelse:\n    T = torch.FloatTensor",
        "T = torch.cuda.FloatTensor\nfor T in kinds:\n    pass",
        "T = torch.cuda.FloatTensor\nif wide:\n    T = torch.DoubleTensor",
        "class Made:\n    T = torch.cuda.FloatTensor\nT = Made().T",
    ],
)
def test_types_of_more_than_one_kind_are_told(chosen):
    check_unchanged(HEAD + chosen + "\ndef f(x):\n    return x.type(T)\n", ["PTM108"], select="PTM108")


def test_a_type_goes_with_its_last_use_and_the_condition_with_it():
    before = (
        HEAD + "def f(x, y):\n    cuda = torch.cuda.is_available()\n    if cuda:\n        T = torch.cuda.FloatTensor\n"
    )
    before += "    else:\n        T = torch.FloatTensor\n    return x.type(T) + y.type(T)\n"
    after = HEAD + "def f(x, y):\n    return x.to(torch.float32) + y.to(torch.float32)\n"
    check(before, after, select="PTM108,PTM102")
    assert torch.equal(values(before, torch.arange(3), torch.ones(3)), values(after, torch.arange(3), torch.ones(3)))


def values(text, *given):
    names = {}
    exec(text, names)
    return names["f"](*given)


def test_the_condition_stays_where_asking_has_an_effect():
    chosen = "if ask():\n    T = torch.cuda.FloatTensor\nelse:\n    T = torch.FloatTensor\n"
    text = migrated(HEAD + chosen + "def f(x):\n    return x.type(T)\n").text
    assert "if ask():\n" in text and "cuda" not in text


KEEPS = "class T:\n    def __init__(self, cuda):\n        self.kind = {}\n    def run(self, x):\n        return {}\n"


@pytest.mark.parametrize("kind", ["torch.cuda.FloatTensor if cuda else torch.FloatTensor", "torch.cuda.FloatTensor"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x.view(-1) + self.kind(3).fill_(0)", "x.view(-1) + self.kind(3).to(x.device).fill_(0)"),
        ("(x > 0).type(self.kind)", "(x > 0).to(torch.float32)"),
    ],
)
def test_a_type_that_is_kept(kind, before, after):
    check(
        HEAD + KEEPS.format(kind, before),
        HEAD + KEEPS.format("torch.FloatTensor", after),
        attention=[],
        select="PTM108",
    )


@pytest.mark.parametrize(
    "more",
    [
        "self.kind = make()",
        "self.kind, n = 1, 2",
        "self.kind = torch.LongTensor",
        "if x is None:\n            self.kind = torch.FloatTensor",
        "other.kind = torch.FloatTensor",
    ],
)
def test_a_type_that_may_be_another_is_told(more):
    source = KEEPS.format("torch.cuda.FloatTensor if cuda else torch.FloatTensor", "self.kind(3)") + f"        {more}\n"
    result = check_unchanged(HEAD + source, select="PTM108")
    assert [n.code for n in result.attention] == ["PTM108"]


def test_made_where_nothing_shows_the_device_it_is_told():
    source = HEAD + KEEPS.format("torch.cuda.FloatTensor", "self.kind(3)").replace("run(self, x)", "run(self)")
    assert [n.line for n in migrated(source, "PTM108").attention] == [6]


def test_a_choice_of_packages_is_told():
    source = "tt = torch.cuda if cuda else torch\nx = tt.FloatTensor(3)"
    check_unchanged(
        HEAD + source + "\n", ["PTM108 line 2: `torch.cuda if cuda else torch` names a device"], select="PTM108"
    )


SHOWS = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

cuda = torch.cuda.is_available()
torch.manual_seed(0)
net = nn.Linear(4, 4)
if cuda:
    net.cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
data = TensorDataset(torch.randn(32, 4).double())
train, valid = DataLoader(data, batch_size=8), DataLoader(data, batch_size=5)
Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor


def show():
    (images,) = next(iter(valid))
    BODY


for epoch in range(2):
    for (x,) in train:
        x = x.type(Tensor)
        optimizer.zero_grad()
        loss = (net(x) - x).pow(2).mean()
        loss.backward()
        optimizer.step()
    show()
"""


@pytest.mark.parametrize(
    "body",
    [
        "real = images.type(Tensor)\n    print(net(real).sum().item())",
        "print(net(images.type(Tensor)).sum().item())",
        "real = images[:2].type(Tensor)\n    print(net(real).sum().item())",
    ],
)
def test_what_nothing_else_places_goes_where_its_network_is(tmp_path, body):
    text = check_on_card(tmp_path, SHOWS.replace("BODY", body))
    assert ".to(next(net.parameters()).device, torch.float32)" in text and "x = x.to(torch.float32)" in text


def test_or_where_its_type_said():
    text = SHOWS.replace("BODY", "print(images.type(Tensor).sum().item())")
    assert 'images.to(torch.float32).to("cuda" if torch.cuda.is_available() else "cpu")' in migrate_text(text).text
    result = migrate_text(text, Options(ignore=("PTM115",)))
    assert "images.to(torch.float32).sum()" in result.text
    assert "`images.type(Tensor)` names a device" in str(result.attention)


def test_a_type_that_is_told_its_device_goes_there():
    """A type of the CPU takes no other device by `device=`."""
    text = "import torch\ndef f(group, p):\n    group['a'] = torch.cuda.FloatTensor(3, device=p.device).fill_(0)\n"
    after = text.replace("torch.cuda.FloatTensor(3, device=p.device)", "torch.FloatTensor(3).to(p.device)")
    assert migrate_text(text).text == after


@pytest.mark.parametrize("named", ["torch.cuda.FloatTensor", "Tensor"])
def test_a_buffer_of_such_a_type_is_placed_with_its_module(named):
    """It stayed an attribute, which a second run made a buffer of."""
    head = "import torch\nTensor = {}\nclass Net(torch.nn.Module):\n"
    head += "    def __init__(self, n):\n        super().__init__()\n"
    text = head.format("torch.cuda.FloatTensor") + f"        self.mean = {named}(n).fill_(1)\n"
    after = migrate_text(text)
    made = named.replace("cuda.", "")
    own = f'        self.register_buffer("mean", {made}(n).fill_(1))\n'
    assert after.text == head.format("torch.FloatTensor") + own
    assert migrate_text(after.text).text == after.text


NET = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        Kind = {}
        self.av = nn.Parameter({}(n).uniform_())

    def forward(self, x):
        return x * self.av
"""
TRAINS = """\
import torch
from nets import Net

model = Net(4).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x in torch.utils.data.DataLoader(torch.randn(16, 4), 4):
        loss = model(x.cuda()).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def twice(folder, **files):
    """The texts of a project once it is migrated, which a second run leaves as they are."""
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    for run in range(2):
        done = migrate_all(collect([folder / "main.py"]), Options())
        assert run == 0 or not any(m.report.changed for m in done)
        for m in done:
            m.path.write_bytes(m.data)
    return {name: (folder / f"{name}.py").read_text() for name in files}


@pytest.mark.parametrize("named", ["torch.cuda.FloatTensor", "Kind"])
def test_a_parameter_of_such_a_type_is_placed_with_its_module(tmp_path, named):
    """Where the script asks for CUDA it got a move, which a second run took away."""
    texts = twice(tmp_path, main=TRAINS, nets=NET.format("torch.cuda.FloatTensor", named))
    made = named.replace("cuda.", "")
    assert f"        self.av = nn.Parameter({made}(n).uniform_())\n" in texts["nets"]


def test_a_type_of_a_torch_that_a_star_gives(tmp_path):
    """The first run did not see that, and the second did, by the import that the first one added."""
    kinds = "from settings import *\n\nKind = torch.cuda.FloatTensor if CUDA else torch.FloatTensor\n"
    kinds += "zeros = lambda *x: torch.zeros(*x).cuda() if CUDA else torch.zeros(*x)\n"
    texts = twice(
        tmp_path,
        main=TRAINS,
        settings="import torch\n\nCUDA = torch.cuda.is_available()\n",
        kinds=kinds,
        nets=NET.format(None, "torch.rand").replace("from torch import nn", "from torch import nn\nfrom kinds import *")
        .replace("return x * self.av", "return x * self.av + Kind(x.size(1)).fill_(1.0)"),
    )  # fmt: skip
    assert "Kind = torch.FloatTensor\n" in texts["kinds"] and "Kind(x.size(1)).to(x.device).fill_" in texts["nets"]
