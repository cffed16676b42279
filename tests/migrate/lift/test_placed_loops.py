"""A move goes only where something else places what it moved: a Trainer's loader, `on_device`, or a batch around it."""

from pathlib import Path

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text
from ptmigrate.migrate.project import collect, migrate_all

from tests import forked

CARD = Path(__file__).parents[2] / "simulated_card.py"
EXAMPLES = """\
import torch

def examples():
    for i in range(3):
        yield torch.full((6, 4), float(i)), torch.arange(6) % 2

def render(i):
    return torch.full((6, 4), float(i)), torch.arange(6) % 2
"""
SCRIPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from made import examples, render

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Linear(4, 3)
model.to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.randn(16, 4), torch.randint(0, 3, (16,))), batch_size=8)
names = ["a", "bc"]
ASIDE
for step, (x, y) in enumerate(loader):
    x, y = x.to(device), y.to(device)
    ABOVE
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    print(loss.item())
BELOW
"""
CHECK = """

def check(given):
    for item in given:
        tokens, mask = render(item)
        tokens, mask = tokens.to(device), mask.to(device)
        with torch.no_grad():
            print((model(tokens) * mask[:, None]).sum().item())


"""
SHOWN = """
    tokens, mask = tokens.to(device), mask.to(device)
    with torch.no_grad():
        print((model(tokens) * mask[:, None]).sum().item())"""
GIVEN = """with torch.no_grad():
    for n in {}:
        made, _ = render({})
        print(model(made.to(device)).sum().item())"""
IN_STEP = [
    "for tokens, mask in examples():" + SHOWN,
    "for i, (tokens, mask) in enumerate(examples()):" + SHOWN,
    "if step == 1:\n    for tokens, mask in list(examples()):" + SHOWN.replace("\n", "\n    "),
    "found = list(examples())\nfor tokens, mask in found:" + SHOWN,
    "for item in [1, 2]:\n    tokens, mask = render(item)" + SHOWN,
    "for item in map(len, names):\n    tokens, mask = render(item)" + SHOWN,
    GIVEN.format("[1, 2]", "n"),
    GIVEN.format("names", "len(n)"),
    "print([model(a.to(device)).sum().item() for a, b in examples()])",
]
BELOW = [
    "check([1, 2])",
    GIVEN.format("names", "len(n)"),
    "print([model(render(k)[0].to(device)).sum().item() for k in (1, 2)])",
]


def script(above="", below=""):
    aside = CHECK if "check(" in below else ""
    return SCRIPT.replace("ASIDE", aside).replace("ABOVE", above.replace("\n", "\n    ")).replace("BELOW", below)


def lifted(above="", below=""):
    result = migrate_text(script(above, below))
    assert result.plan in ("module", "manual")
    compile(result.text, "result", "exec")
    return result.text


@pytest.mark.parametrize("above", IN_STEP)
def test_within_a_step_what_is_no_batch_keeps_its_move(above):
    text = lifted(above)
    assert ".device)" in text.partition("def training_step")[2] and 'on_device(["' not in text


@pytest.mark.parametrize("below", BELOW)
def test_what_a_function_of_another_file_makes_of_an_element_keeps_its_move(below):
    text = lifted(below=below)
    assert ".to(next(model.parameters()).device)" in text or "tokens.to(device), mask.to(device)" in text


def test_one_that_goes_over_constants_gives_no_batches():
    text = lifted(IN_STEP[6])
    assert "for n in [1, 2]:" in text and "on_device" not in text


@pytest.mark.parametrize(
    ("above", "left"),
    [
        ("for p in x.chunk(2):\n    p = p.to(device)\n    print(model(p).sum().item())", "in x.chunk(2):"),
        ("for k in [0, 1]:\n    p = x[k].to(device)\n    print(model(p).sum().item())", "p = x[k]\n"),
        ("for p, q in zip(x, y):\n    p = p.to(device)\n    print((model(p) + q).sum().item())", "in zip(x, y):"),
        ("parts = x.chunk(2)\nfor p in parts:\n    print(model(p.to(device)).sum().item())", "self.model(p)"),
    ],
)
def test_within_a_step_what_is_taken_from_the_batch_loses_it(above, left):
    text = lifted(above)
    assert left in text and "device" not in text


@pytest.mark.parametrize(
    ("body", "source"),
    [
        (f"for tokens, mask in examples():{SHOWN}", "examples()"),
        (
            "for item in examples():\n    t = torch.cat([item[0]])\n    t = t.to(device)\n    print(model(t))",
            "examples()",
        ),
        ("for item in examples():\n    t = item[0].float()\n    t = t.to(device)\n    print(model(t))", "examples()"),
    ],
)
def test_below_the_training_on_device_stands_for_the_moves(body, source):
    text = lifted(below=body)
    assert f"in on_device({source}):" in text and ".to(" not in text


@pytest.mark.parametrize("source", ["model.modules()", "zip(model.modules(), other.modules())"])
def test_parts_of_a_network_are_no_batches(source):
    target = "m, n" if "zip" in source else "m"
    body = f"for {target} in {source}:\n    w = m.weight.data.abs().clone()\n    w = w.gt(0).float().to(device)"
    text = lifted(below=f"other = nn.Linear(4, 3)\n{body}\n    m.weight.data.mul_(w)")
    assert f"in {source}:" in text and "on_device" not in text


SIZES = """class Adapter(nn.Module):
    def __init__(self, size, out):
        super().__init__()
        self.fc = nn.Linear(size, out)


sizes, adapters = [4, 5], []
for a, b in zip(sizes, sizes):
    adapters.append(Adapter(a, b).to(device))
"""
SCHEDULE = """def train(network, batches, rate):
    device = next(network.parameters()).device
    for group in optimizer.param_groups:
        group["lr"] = rate
    for epoch in range(2):
        for x, y in batches:
            x, y = x.to(device), y.to(device)
            nn.functional.cross_entropy(network(x), y).backward()
            optimizer.step()


schedule = [(0.1, 2), (0.01, 4)]
for i, session in enumerate(schedule):
    rate, size = session
    train(model, DataLoader(loader.dataset, batch_size=size), rate)
"""


def test_numbers_that_a_network_is_made_of_are_no_batches():
    text = lifted(below=SIZES)
    assert "in zip(sizes, sizes):" in text and "on_device" not in text


LINES = """import torch


def scored(model, file):
    lines, total = file.readlines(), 0.0
    with torch.no_grad():
        for line in lines:
            n = len({})
            x = torch.zeros(1, 4) + n
            total += model(x).sum().item()
    return total
"""


@pytest.mark.parametrize("asked", ["line.split()", "line.strip()", "line.split(', ')", "line.rstrip('.')"])
def test_lines_of_a_text_are_no_batches(asked, tmp_path):
    (tmp_path / "scores.py").write_text(LINES.format(asked))
    calls = "import io\nfrom scores import scored\nprint(scored(model, io.StringIO('a b')))"
    (tmp_path / "main.py").write_text(script("", calls))
    done = {m.path.stem: m.data.decode() for m in migrate_all(collect([tmp_path / "main.py"]), Options())}
    assert "Trainer" in done["main"] and "on_device" not in done["scores"]


def test_nor_are_those_that_a_training_is_given():
    head, _, _ = SCRIPT.partition("for step")
    text = migrate_text(head.replace("ASIDE", SCHEDULE)).text
    assert "in enumerate(schedule):" in text and "on_device" not in text


def test_and_within_a_step_for_those_of_an_evaluation():
    above = "with torch.no_grad():\n    for a, b in examples():\n        print(model(a.to(device)).sum().item())"
    assert "for a, b in on_device(examples()):" in lifted(above)


@pytest.mark.parametrize("batches", ["batches", "Variable(batches)", "batches.float()"])
def test_what_a_step_draws_of_a_loader_that_it_makes_keeps_its_move(batches):
    drawn = "batches, _ = DataLoader(loader.dataset, 4).__iter__().__next__()"
    text = lifted(f"from torch.autograd import Variable\n{drawn}\nprint(model({batches}.to(device)).sum().item())")
    assert ".to(x.device))" in text


def test_the_same_on_a_card(tmp_path):
    (tmp_path / "made.py").write_text(EXAMPLES)
    both = [script("\n".join(IN_STEP), "\n".join(BELOW))]
    (tmp_path / "old.py").write_text(both[0])
    (tmp_path / "new.py").write_text(migrate_text(both[0]).text)
    old, new = (forked.run(CARD, file, cwd=tmp_path) for file in ("old.py", "new.py"))
    assert old.returncode == new.returncode == 0, old.stderr + new.stderr
    assert [line for line in new.stdout.splitlines() if not line.startswith("ptmigrate")] == old.stdout.splitlines()
