"""A script without devices that works with the model on tensors of its own stays on the CPU, and that is told."""

import pytest
from ptmigrate.migrate.facts.hosts import names_no_device
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_on_card, check_project_on_card, check_same

TEXT = """
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
data = torch.randn(40, 3)
array = data.numpy()
loader = torch.utils.data.DataLoader(data, 8)
it = iter(loader)


def draw(n):
    return torch.stack([data[i] for i in torch.randint(40, (n,))])


def again(n):
    return draw(n) * 2


def name(i):
    return f"step {{i}}"


net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in {over}:
    {made}
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(name(i), loss.item())
"""


@pytest.mark.parametrize(
    ("made", "call"),
    [
        ("x = draw(4)", "draw(4)"),
        ("x = again(4)", "again(4)"),
        ("x = next(it)", "next(it)"),
        ("x = torch.from_numpy(array[i : i + 2])", "torch.from_numpy"),
    ],
)
def test_it_stays_on_the_cpu(made, call):
    source = TEXT.format(over="range(4)", made=made)
    assert 'accelerator="cpu"' in check_same(source, "module")
    told = [n.message for n in migrate_text(source).attention if "names no device" in n.message]
    assert len(told) == 1 and call in told[0]


MADE = """
import torch
from torch import nn

torch.manual_seed(0){seed}
seen, right = [], 0
net = nn.Linear(3, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for i in range(3):
        {made}
        out = net(x)
        loss = nn.functional.cross_entropy(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        {reads}
    print(right, loss.item())
"""
PAIR = "x, y = torch.randn(4, 3), torch.randint(2, (4,))"
ONE_BY_ONE = "x = torch.randn(4, 3); y = torch.randint(2, (4,))"
SEEDS = [
    "",
    "\nif torch.cuda.is_available():\n    torch.cuda.manual_seed_all(0)",
    "\ntorch.cuda.manual_seed(0)\ntorch.backends.cudnn.benchmark = True",
    "\ntorch.cuda.empty_cache()",
]


@pytest.mark.parametrize("made", [PAIR, ONE_BY_ONE])
@pytest.mark.parametrize("seed", SEEDS)
def test_what_meets_what_the_model_gave_goes_there(tmp_path, made, seed):
    """That it is compared with what the model gave does not keep it on the CPU, where the comparison fails."""
    source = MADE.format(seed=seed, made=made, reads="right += (out.argmax(1) == y).sum().item()")
    text = check_on_card(tmp_path, source)
    assert text.count("device=self.device") == 2 and 'accelerator="cpu"' not in text


@pytest.mark.parametrize("made", [PAIR, ONE_BY_ONE])
@pytest.mark.parametrize("seed", SEEDS[:2])
def test_what_the_cpu_reads_and_the_model_is_given_keeps_all_there(tmp_path, made, seed):
    source = MADE.format(seed=seed, made=made, reads="seen.append(x.numpy())")
    assert 'accelerator="cpu"' in check_on_card(tmp_path, source)


@pytest.mark.parametrize(
    "named",
    [
        "\nuse = torch.cuda.is_available()\nif use:\n    torch.cuda.manual_seed(0)",
        "\nif torch.cuda.is_available():\n    torch.cuda.manual_seed(0)\nelse:\n    print('none')",
        "\ntorch.cuda.manual_seed(0)\nprint(torch.cuda.device_count())",
        "\ntorch.cuda.manual_seed(0)\nwhere = 'cuda'",
    ],
)
def test_and_what_asks_for_more_than_a_seed_and_places_nothing(named, tmp_path):
    source = MADE.format(seed=named, made=PAIR, reads="seen.append(x.numpy())")
    assert 'accelerator="cpu"' in check_on_card(tmp_path, source)


@pytest.mark.parametrize(
    "named",
    [
        "\nuse = torch.cuda.is_available()\nif use:\n    torch.set_default_device('cuda')",
        "\ntorch.cuda.manual_seed(0)\nwhere = open if torch.cuda.is_available() else 'cuda'\nwhere('/dev/null')",
        "\ntorch.cuda.manual_seed(0)\n\ndef put(x, device):\n    return x",
    ],
)
def test_what_asks_for_more_than_a_seed_may_name_a_device(named):
    source = MADE.format(seed=named, made=PAIR, reads="seen.append(x.numpy())")
    assert 'accelerator="cpu"' not in migrate_text(source).text


BEFORE = """
pairs = [(0, 1), (1, 2)]
for epoch in range(2):
    x = torch.from_numpy(array[epoch : epoch + 2])
    for a, b in pairs:
        loss = net(x).pow(2).mean() * b
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(loss.item())
"""


def test_what_is_made_before_the_steps_keeps_them_on_the_cpu():
    source = TEXT[: TEXT.rindex("for i in")].replace("{{", "{").replace("}}", "}") + BEFORE
    assert 'accelerator="cpu"' in check_same(source, "module")


@pytest.mark.parametrize(
    ("over", "made"),
    [
        ("range(4)", "x = data"),  # which is a buffer
        ("range(4)", "x = torch.randn(4, 3)"),  # which is made where the model is
        ("range(4)", "x = data[i : i + 2]"),
        ("range(4)", "x = data; c = torch.zeros(1, device='cuda'); y = draw(3)"),  # a script that knows of devices
        ("loader", "x = i; y = draw(2)"),  # whose batches the Trainer moves
        ("range(4)", "x = data.to(net.weight.device); y = draw(2)"),
        ("range(4)", "x = data; draw(2)"),  # nothing reads it
    ],
)
def test_where_the_trainer_finds_the_device(over, made):
    source = TEXT.format(over=over, made=made)
    result = migrate_text(source)
    assert result.plan in ("module", "manual") and "accelerator" not in result.text
    assert not any("names no device" in n.message for n in result.attention)


LOADED = """
import torch
from torch import nn

torch.manual_seed(0)
data = torch.randn(40, 3)
loader = torch.utils.data.DataLoader(data, 8)
scale = torch.randn(3).float()


def scaled(x):
    return x * scale


def predict(model, x):
    return model(x)


def evaluate(model, batches):
    return sum(model(x).sum().item() for x in batches)


def look(batches):
    for x in batches:
        print(net(x).sum().item())


net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    for x in loader:
        loss = net({given}).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(loss.item())
{below}
"""


@pytest.mark.parametrize("given", ["x * scale", "scaled(x)"])
def test_tensors_that_nothing_moves_to_the_model(given):
    source = LOADED.format(given=given, below="")
    assert 'accelerator="cpu"' in check_same(source, "module")
    messages = [n.message for n in migrate_text(source).attention if "names no device" in n.message]
    assert len(messages) == 1 and messages[0].startswith("`torch.randn(3).float()`")


@pytest.mark.parametrize(
    "below",
    [
        "print(net(data).sum().item())",
        "with torch.no_grad():\n    print(predict(net, data[:2]).sum().item())",
        "for i in range(2):\n    print(net(data[i]).item())",
    ],
)
def test_those_that_the_model_meets_below_the_loop_only(below):
    new = check_same(LOADED.format(given="x", below=below), "module")
    assert "back_on_cpu=True" in new and "accelerator" not in new


@pytest.mark.parametrize(
    "below",
    [
        "",
        "torch.save(net.state_dict(), '/dev/null')",
        "print(sum(p.numel() for p in net.parameters()))",
        "net.eval()\nfor x in loader:\n    print(net(x).sum().item())",
        "look(loader)",
        "device = 'cuda:0'\nprint(net(data.to(device)).sum().item())",  # a script that knows of devices
    ],
)
def test_what_the_trainer_moves(below):
    result = migrate_text(LOADED.format(given="x", below=below))
    assert result.plan == "module" and "accelerator" not in result.text
    assert not any("names no device" in n.message for n in result.attention)


IN_FUNCTION = """
import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(8, 3), torch.ones(8, 1)
data = torch.utils.data.TensorDataset(x, y)


def train():
    net = nn.Linear(3, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for i in range(3):
        for a, b in torch.utils.data.DataLoader(data, 4):
            loss = (net({}) - {}).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(i, loss.item())


train()
"""


@pytest.mark.parametrize(("parts", "stays"), [(("x", "y"), True), (("a", "y[:4]"), True), (("a", "b"), False)])
def test_a_loop_in_a_function_that_reads_tensors_of_the_script(parts, stays):
    """`x` was on the CPU, and the network of the function on the GPU."""
    assert ('accelerator="cpu"' in check_same(IN_FUNCTION.format(*parts), "module")) is stays


ON_THE_CPU = """
import torch
{device}
x = torch.randn(8, 3, device=device)
w = torch.randn(3, 1, device=device, requires_grad=True)
for i in range(4):
    loss = x.mm(w).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
        w.grad.zero_()
    print(loss.item())
"""


@pytest.mark.parametrize("device", ['device = torch.device("cpu")  # or "cuda"', 'device = "cpu"'])
def test_a_script_that_names_the_cpu_alone(device):
    assert 'Trainer(max_epochs=1, accelerator="cpu")' in check_same(ON_THE_CPU.format(device=device), "manual")


@pytest.mark.parametrize(
    "device",
    [
        'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")',
        'import sys\ndevice = sys.argv[1] if len(sys.argv) > 1 else "cpu"',
        'import argparse\np = argparse.ArgumentParser()\np.add_argument("--device", default="cpu")\n'
        "device = p.parse_args([]).device",
    ],
)
def test_one_that_may_name_another(device):
    text = migrate_text(ON_THE_CPU.format(device=device)).text
    assert 'accelerator="cpu")' not in text


OBJECT = LOADED.replace(
    "def scaled(x):",
    """class Noise:
    def __init__(self, n=3):
        self.n = n
        self.scales = torch.linspace(0.1, 0.9, n)
        self.squares = self.scales ** 2

    def add(self, x):
        return self._scaled(x)

    def _scaled(self, x):
        return x * self.squares

    def size(self, x):
        return x * self.n


noise = Noise()


def scaled(x):""",
)


def test_an_object_of_the_script_that_keeps_tensors():
    source = OBJECT.format(given="noise.add(x)", below="")
    assert 'accelerator="cpu"' in check_same(source, "module")
    messages = [n.message for n in migrate_text(source).attention if "names no device" in n.message]
    assert len(messages) == 1 and messages[0].startswith("`self.scales ** 2`")


MODULE = "class Noise(nn.Module):\n    def __init__(self, n=3):\n        super().__init__()\n"


@pytest.mark.parametrize(
    "change",
    [
        ("", ""),  # what the loop calls reads no tensor
        ("class Noise:\n    def __init__(self, n=3):\n", MODULE),
        ("net = nn", "place = lambda x, device='cuda:0': x.to(device)\nnet = nn"),
        ("noise = Noise()", "noise = open('/dev/null')"),
    ],
)
def test_an_object_that_reads_none_of_its_tensors_for_the_loop_moves_with_the_model_or_is_not_seen(change):
    given = "noise.size(x)" if not change[0] else "noise.add(x)"
    result = migrate_text(OBJECT.replace(*change).format(given=given, below=""))
    assert result.plan == "module" and "accelerator" not in result.text


WORKS = [
    "x * noise.scales",
    "torch.maximum(x, noise.scales)",
    "x.mul(noise.scales.view(1, 3))",
    "net(noise.scales) + x",
]


@pytest.mark.parametrize("given", WORKS)
def test_a_tensor_of_an_object_that_the_loop_works_with(tmp_path, given):
    assert 'accelerator="cpu"' in check_on_card(tmp_path, OBJECT.format(given=given, below=""))


@pytest.mark.parametrize("given", [*WORKS, "noise.add(x)"])
def test_of_a_class_of_another_file(tmp_path, given):
    head, _, rest = OBJECT.partition("class Noise:")
    noise, _, rest = rest.partition("noise = Noise()")
    main = f"{head}from noises import Noise\n\nnoise = Noise(){rest}".format(given=given, below="")
    files = check_project_on_card(tmp_path, main=main, noises=f"import torch\n\n\nclass Noise:{noise}")
    assert 'accelerator="cpu"' in files["main"]


FITS = [
    "x * noise.rate",
    "x * noise.scales[1]",
    "x * noise.scales.type_as(x)",
    "x + (x.cpu() * noise.scales).sum().item()",
]


@pytest.mark.parametrize("given", FITS)
def test_what_goes_with_tensors_of_any_device(given):
    text = OBJECT.replace("        self.n = n\n", "        self.n = n\n        self.rate = torch.tensor(0.5)\n")
    assert "accelerator" not in migrate_text(text.format(given=given, below="")).text


SHOWS = [("x * noise.n", ""), ("x", "print(noise.scales)"), ("x", "rows = noise.scales.numel() / len(noise.scales)")]


@pytest.mark.parametrize(("given", "below"), SHOWS)
def test_what_an_object_keeps_and_the_loop_only_shows(given, below):
    text = OBJECT.format(given=given, below="").replace(
        "    print(loss.item())\n", f"    print(loss.item())\n    {below}\n"
    )
    result = migrate_text(text)
    assert result.plan == "module" and "accelerator" not in result.text


BETWEEN = LOADED.replace("    print(loss.item())\n", "    print(loss.item())\n    {}\n", 1)


@pytest.mark.parametrize(
    ("between", "stays"),
    [
        ("shown = torch.ones(2, 3)\n    print(net(shown).sum().item())", True),
        ("print(predict(net, torch.ones(2, 3)).sum().item())", True),
        ("for i in range(2):\n        print(net(data[i]).item())", True),
        ("for b in loader:\n        print(net(b).sum().item())", False),
        ("print(net(x).sum().item())", False),  # the last batch, which the Trainer moved
        ("print(sum(p.sum().item() for p in net.parameters()))", False),
    ],
)
def test_what_the_model_gets_between_epochs(between, stays):
    source = BETWEEN.replace("    {}\n", f"    {between}\n").format(given="x", below="")
    assert ('accelerator="cpu"' in check_same(source, "module")) is stays


OVER_LOADER = """
import torch
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.Linear(5, 2)

    def forward(self, x, h):
        return torch.tanh(self.cell(torch.cat((x, h), 1)))

    def init_hidden(self, n):
        h = torch.zeros(n, 2)
        return h

    def like(self, x):
        return self.cell.weight.new_zeros(x.size(0), 2)


def hidden(n):
    return torch.zeros(n, 2)


def hidden_for(x):
    return torch.zeros(x.size(0), 2)


def beside(x):
    return torch.ones_like(x)[:, :2]


net = Net()
loader = torch.utils.data.DataLoader(torch.randn(10, 3), batch_size=4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x in loader:
        {}
        loss = net(x, h).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
"""


@pytest.mark.parametrize(
    ("made", "stays"),
    [
        ("h = net.init_hidden(len(x))", True),
        ("n = x.size(0); h = net.init_hidden(n)", True),
        ("h = hidden(x.size(0))", True),
        ("h = hidden_for(x)", True),
        ("h = net.like(x)", False),
        ("h = beside(x)", False),
        ("print(net.init_hidden(2).sum()); h = x[:, :2]", False),  # which no network meets
    ],
)
def test_what_functions_and_networks_make_for_the_batches_of_a_loader(made, stays, tmp_path):
    text = check_on_card(tmp_path, OVER_LOADER.format(made))
    assert ('accelerator="cpu"' in text) == stays


@pytest.mark.parametrize("loss", ["nn.functional.mse_loss(out, h)", "nn.MSELoss()(out, target=h)", "criterion(out, h)"])
@pytest.mark.parametrize(("made", "stays"), [("hidden(len(x))", True), ("beside(x)", False)])
def test_what_a_function_makes_for_a_loss(made, stays, loss, tmp_path):
    script = OVER_LOADER.format(f"h, out = {made}, net(x, x[:, :2])").replace("net(x, h).pow(2).mean()", loss)
    text = check_on_card(tmp_path, script.replace("opt = ", "criterion = nn.MSELoss()\nopt = ", 1))
    assert ('accelerator="cpu"' in text) == stays


MAKERS = """
import torch


def numbers(text):
    found = torch.zeros(len(text)).long()
    for i in range(len(text)):
        found[i] = ord(text[i]) % 5
    return found
"""
OF_MAKERS = """
import torch
from torch import nn
{}

torch.manual_seed(0)
net = nn.Embedding(5, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    x = {}("hello")
    loss = nn.functional.cross_entropy(net(x), x % 3)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(epoch, loss.item())
"""


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("from makers import *", "numbers"),
        ("from makers import numbers", "numbers"),
        ("import makers", "makers.numbers"),
    ],
)
def test_what_functions_of_another_file_make(line, name, tmp_path):
    texts = check_project_on_card(tmp_path, makers=MAKERS, main=OF_MAKERS.format(line, name))
    assert 'accelerator="cpu"' in texts["main"]


@pytest.mark.parametrize(("more", "none"), [("", True), ("    fast = True\nopen(fast)\n", False)])
def test_what_is_chosen_where_there_is_cuda_is_more_than_a_seed(more, none):
    text = f"import torch\nfast = False\nif torch.cuda.is_available():\n    torch.cuda.manual_seed(1)\n{more}"
    assert names_no_device(Facts(text)) is none


IDLE = """
import argparse
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--gpu", type=int, default=0)
args = parser.parse_args([])
{}
torch.manual_seed(0)
data = torch.randn(40, 3)


class Held:
    def __init__(self):
        self.x = torch.randn(4, 3)

    def eval(self):
        return self.x.shape


def batch():
    return data[torch.randint(40, (4,))]


held = Held()
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(4):
    loss = net({}).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(i, loss.item())
held.eval()
"""


@pytest.mark.parametrize("given", ["batch()", "held.x"])
@pytest.mark.parametrize(
    "line",
    [
        "# on a GPU this would be .to(device)",
        "torch.cuda.is_available()",
        "zero = torch.zeros(1).to(torch.float64).type(torch.LongTensor).type()",
        'device = torch.device("cuda:" + str(args.gpu) if torch.cuda.is_available() else "cpu")',
        'device = "cuda" if torch.cuda.is_available() else "cpu"\nprint("Using device", len(device) > 0)',
        "use_cuda = torch.cuda.is_available()\nif use_cuda:\n    torch.cuda.manual_seed(0)",
    ],
)
def test_a_script_that_brings_nothing_to_the_device_it_names(line, given, tmp_path):
    source = IDLE.format(line, given)
    assert 'accelerator="cpu"' in check_on_card(tmp_path, source)
    (told,) = [n.message for n in migrate_text(source).attention if "nothing moves" in n.message]
    assert "the script brings nothing to a device" in told


@pytest.mark.parametrize(
    "line",
    [
        'torch.set_default_device("cuda" if torch.cuda.is_available() else "cpu")',
        'device = "cuda" if torch.cuda.is_available() else "cpu"\nzero = torch.zeros(1, device=device)',
        "data = torch.zeros(1).to(args.gpu) if torch.cuda.is_available() else torch.zeros(1)",
        "use_cuda = torch.cuda.is_available()\nif use_cuda:\n    zero = torch.zeros(1).cuda()",
        "zero = torch.zeros(1).to(held.x)",
        "where = held.place('cuda')",
        "print(len(str(held.place('cuda'))))",
        "def place(device):\n    return torch.empty(0, device=device)",
        "from settings import device",
    ],
)
def test_and_one_that_may(line):
    assert not names_no_device(Facts(IDLE.format(line, "held.x")))


BY_METHODS = """
import torch
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 1)

    def sample(self, n):
        made = torch.rand(n, 2)
        return made[:, 0:1], made[:, 1:2]

    def count(self):
        return sum(p.numel() for p in self.parameters())

    def loss(self, x, y, weight=1.0):
        return weight * self.a(torch.cat([x, y], 1)).pow(2).mean()


net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = net.sample(8)
z = net.count()
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.rand(8, 1), torch.rand(8, 1)), 4)
for a, b in loader:
    loss = net.loss({}) + 0 * nn.MSELoss()(a, b)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
"""


@pytest.mark.parametrize(("given", "stays"), [("x, y", True), ("a, y[:4]", True), ("a, b", False), ("a, b, z", False)])
def test_what_a_network_made_above_the_loop_and_gets_there(tmp_path, given, stays):
    """`x, y = net.sample(8)`: nothing moves them to where the Trainer places the network."""
    assert ('accelerator="cpu"' in check_on_card(tmp_path, BY_METHODS.format(given))) is stays


LAYER = """
import torch
from torch import nn
torch.manual_seed(0)
a = nn.Linear(2, 1)
opt = torch.optim.SGD(a.parameters(), lr=0.1)
for epoch in range(2):
    for i in range(3):
        z = {}
        loss = a(z).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
"""
COMPUTED = ["torch.ones(2, 2) * i", "-(i + torch.ones(2, 2)) / 2", "torch.ones(2, 2)", "1 - torch.randn(2, 2) * i"]


@pytest.mark.parametrize("made", COMPUTED)
def test_what_is_computed_of_a_tensor_that_the_step_makes(tmp_path, made):
    """By its name nothing shows that `a` is a network."""
    assert 'accelerator="cpu"' in check_on_card(tmp_path, LAYER.format(made))


@pytest.mark.parametrize("made", ["torch.ones(2, 2) * i", "torch.randn(2, 2)"])
def test_where_the_name_shows_it_the_tensor_is_placed(tmp_path, made):
    text = check_on_card(
        tmp_path, LAYER.replace("a = nn", "net = nn").replace("a(", "net(").replace("a.p", "net.p").format(made)
    )
    assert "accelerator" not in text and "self.device" in text


TOGETHER = """
import torch
from torch import nn

def both():
    return nn.Linear(2, 2), nn.Linear(2, 1)

torch.manual_seed(0)
loader = torch.utils.data.DataLoader(torch.ones(8, 2), batch_size=4)
{made}
opt = torch.optim.SGD([*g.parameters(), *d.parameters()], lr=0.1)
for epoch in range(2):
    for {drawn}
        loss = d(g(z)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
"""


@pytest.mark.parametrize("made", ["g, d = nn.Linear(2, 2), nn.Linear(2, 1)", "g, d = both()"])
@pytest.mark.parametrize(
    ("drawn", "stays"), [("i in range(3):\n        z = torch.ones(2, 2) * i", True), ("z in loader:", False)]
)
def test_networks_that_are_made_together(tmp_path, made, drawn, stays):
    result = check_on_card(tmp_path, TOGETHER.format(made=made, drawn=drawn))
    assert ('accelerator="cpu"' in result) == stays


FLOW = """
import torch
from torch import nn, optim
from torch.distributions import MultivariateNormal, Normal
from torch.utils.data import DataLoader, TensorDataset


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.prior = PRIOR
        self.scale = nn.Parameter(torch.ones(2))

    def forward(self, x):
        return self.prior.log_prob(x * self.scale)


torch.manual_seed(0)
model = Flow()
optimizer = optim.Adam(model.parameters(), lr=0.005)
for epoch in range(2):
    for (x,) in DataLoader(TensorDataset(torch.randn(20, 2)), batch_size=4):
        optimizer.zero_grad()
        loss = -model(x).mean()
        loss.backward()
        optimizer.step()
    print(loss.item())
"""


@pytest.mark.parametrize(
    ("prior", "stays"),
    [
        ("MultivariateNormal(torch.zeros(2), torch.eye(2))", True),
        ("Normal(0.0, 1.0)", False),
        ("Normal(loc=torch.zeros(2), scale=1.0)", True),
    ],
)  # fmt: skip
def test_a_distribution_that_a_network_keeps(prior, stays, tmp_path):
    assert ('accelerator="cpu"' in check_on_card(tmp_path, FLOW.replace("PRIOR", prior))) is stays


CLIPPED = """
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.rand(16, 4), torch.arange(16) % 3), batch_size=4)
model = nn.Linear(4, 4)
optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
for epoch in range(2):
    seen = 0
    for x, y in loader:
        noisy = x + 0.5
        {}
        optimizer.zero_grad()
        loss = (model(noisy) - x).pow(2).mean()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item(), seen)
"""


@pytest.mark.parametrize(
    ("line", "stays"),
    [
        ("noisy = np.clip(noisy, 0.0, 1.0)", True),
        ("noisy = np.clip(x, 0.0, 1.0)", True),
        ("part = np.sqrt(0.5); noisy = x * part; seen += np.sum(np.array(y))", False),
        ("seen += np.asarray(y).sum()", False),
        ("seen += np.sum(np.array(y) == 1)", False),
        ("seen += np.clip(y, 0, 1).sum().item()", False),
    ],
)
def test_what_numpy_makes_of_a_batch(line, stays, tmp_path):
    """Of a tensor np.clip() makes a tensor, of the CPU; what only looks at a batch gets it from there."""
    text = check_on_card(tmp_path, CLIPPED.format(line))
    assert ('accelerator="cpu"' in text) == stays and ("y.cpu()" in text) != stays
