"""What a script places by a device's name goes where the Module is; what stands outside of it is told of."""

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_same

SCRIPT = """\
import argparse
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def train(model, rank, args, loader, optimizer):
    {made}
    for x, y in loader:
        x, y = x.to(rank), y.to(rank)
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    {after}


def main(rank, args):
    {first}
    model = torch.nn.Linear(4, 2).to(rank)
    loader = DataLoader(TensorDataset(torch.randn(8, 4), torch.zeros(8).long()), batch_size=4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        train(model, rank, args, loader, optimizer)
    {last}


parser = argparse.ArgumentParser()
parser.add_argument("--gpu", type=int, default=0)
main(0, parser.parse_args())
"""


def lifted(made="total = 0.0", after="print(total)", first="pass", last="pass", **options):
    result = migrate_text(
        SCRIPT.format(made=made, after=after, first=first, last=last), Options(**options) if options else None
    )
    assert result.plan == "module", result.attention
    again = migrate_text(result.text)
    assert again.text == result.text
    return result


def told(result):
    return [n.line for n in result.attention if n.code == "PTM104"]


@pytest.mark.parametrize(
    ("made", "placed"),
    [
        ("torch.zeros(2).to(rank)", "torch.zeros(2).to(self.device)"),
        ("torch.zeros(2).to(device=rank, dtype=torch.half)", "torch.zeros(2).to(device=self.device, dtype=torch.half)"),
        ("torch.zeros(2).to(f'cuda:{rank}', non_blocking=True)", "torch.zeros(2).to(self.device, non_blocking=True)"),
        ("torch.zeros(2).cuda()", "torch.zeros(2).to(self.device)"),
        ("torch.zeros(2).cuda(rank, non_blocking=True)", "torch.zeros(2).to(self.device, non_blocking=True)"),
        ("torch.zeros(2, device=rank)", "torch.zeros(2, device=self.device)"),
        ("torch.zeros(2, device=args.gpu)", "torch.zeros(2, device=self.device)"),
        ("torch.zeros(2, device=f'cuda:{rank}').long()", "torch.zeros(2, device=self.device).long()"),
        ("torch.tensor([0.0], device=torch.device('cuda', rank))", "torch.tensor([0.0], device=self.device)"),
        ("[torch.zeros(2, device=0) for _ in 'ab'][0]", "[torch.zeros(2, device=self.device) for _ in 'ab'][0]"),
    ],
)
def test_a_tensor_made_in_a_hook_is_made_where_the_module_is(made, placed):
    result = lifted(f"total = {made}")
    assert f"self.total = {placed}\n" in result.text
    assert not told(result) and ("PTM104", 8) in {(e.code, e.line) for e in result.edits}
    module = result.text.partition("def main")[0]
    assert "def __init__(self, model):" in module and "def train(" not in module


@pytest.mark.parametrize("made", ["torch.zeros(2)", "torch.zeros(2, 3).scatter_(1, torch.zeros(2, 1).long(), 1.0)[0]"])
def test_a_variable_of_one_is_no_longer_told_of(made):
    imports = "from torch.autograd import Variable\n    "
    assert not told(lifted(f"{imports}total = Variable({made}).cuda(args.gpu)"))


def test_another_of_its_line_is():
    made = "from torch.autograd import Variable\n    total = Variable(torch.zeros(2)).cuda(args.gpu)"
    result = lifted(f"{made}; seen = f'{{Variable(torch.ones(2)).cuda(rank)=}}'", "print(total, seen)")
    assert [n.message[:24] for n in result.attention if n.code == "PTM104"] == ["`Variable(torch.ones(2))"]


def test_a_device_of_the_pass_goes_with_its_last_reader():
    result = lifted("device = torch.device(f'cuda:{rank}')\n    total = torch.zeros(2, device=device)")
    assert "cuda" not in result.text and "rank" not in result.text.partition("def main")[0]
    assert ("PTM102", 8) in {(e.code, e.line) for e in result.edits}


def test_a_device_that_is_read_otherwise_stays_for_that():
    text = lifted(
        "device = torch.device(f'cuda:{rank}')\n    total = torch.zeros(2, device=device)\n    print(device)"
    ).text
    assert "torch.zeros(2, device=self.device)" in text and "device = torch.device(f'cuda:{self.rank}')" in text


@pytest.mark.parametrize(
    ("made", "kept"),
    [
        ("total = 0.0; print(rank)", "self.print(self.rank)"),
        ("total = torch.zeros(2, device='cpu')", "torch.zeros(2, device='cpu')"),
        ("total = torch.zeros(2).to('cpu')", "torch.zeros(2).to('cpu')"),
        ("total = torch.zeros(2).to(torch.half)", "torch.zeros(2).to(torch.half)"),
        ("total = torch.zeros(2, device=model.weight.device)", "device=self.model.weight.device"),
        ("gpu = torch.half\n    total = torch.zeros(2).to(gpu)", "torch.zeros(2).to(gpu)"),
        ("gpu = torch.ones(1).double()\n    total = torch.zeros(2).to(gpu)", "torch.zeros(2).to(gpu)"),
    ],
)
def test_what_names_no_device_of_a_rank_stays(made, kept):
    result = lifted(made)
    assert kept in result.text and "self.device" not in result.text
    assert not [e for e in result.edits if e.code == "PTM104"]


@pytest.mark.parametrize(
    "made", ["torch.ones(2, device=f'cuda:{rank}')", "torch.ones(2, device=rank)", "torch.ones(2).to(rank)"]
)
def test_outside_of_the_module_it_stays_and_is_told(made):
    result = lifted(first=f"weight = {made}")
    assert f"weight = {made}" in result.text and told(result) == [20]
    result = lifted(f"total = {made}", last=f"weight = {made}")
    assert f"weight = {made}" in result.text and "self.device" in result.text and told(result) == [26]


def test_codes_that_were_not_asked_for():
    result = lifted("total = torch.zeros(2, device=rank)", ignore=("PTM104",))
    assert "torch.zeros(2, device=self.rank)" in result.text


SAME = (
    HEAD
    + """
def train(model, device, epoch):
    model.train()
    where = device
    seen = torch.zeros(2, device=where)
    shift = torch.ones(1).to(device, torch.float64)
    for x, y in train_loader:
        x, y = x.to(device), y.to(device)
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen = seen + torch.tensor([loss.item(), len(x)], device=device)
    print(epoch, (seen[0] / seen[1] + shift).item())

def test(model, device):
    model.eval()
    right = torch.zeros(1, dtype=torch.long).to(device)
    with torch.no_grad():
        for x, y in test_loader:
            x, y = x.to(device), y.to(device)
            right = right + (model(x).argmax(1) == y).sum()
    print(right.tolist())

for epoch in range(args.epochs):
    train(model, device, epoch)
    test(model, device)
"""
)


def test_the_run_is_the_same():
    text = check_same(SAME, "module")
    module = text.partition("class ")[2].partition("trainer = ")[0]
    assert "self.device_" not in module and "where" not in module and module.count("self.device") == 3


OBJECT = """\
import os
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, loader, optimizer, gpu_id):
        self.gpu_id = gpu_id
        self.model = model.to(gpu_id)
        self.loader = loader
        self.optimizer = optimizer

    def _run_batch(self, x, y):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x), y, weight=torch.ones(2, device=self.gpu_id))
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def train(self, max_epochs):
        for epoch in range(max_epochs):
            total = torch.zeros(1).to(self.gpu_id)
            for x, y in self.loader:
                total += self._run_batch(x.to(self.gpu_id), y.to(self.gpu_id))
            print(epoch, total)


data = TensorDataset(torch.randn(32, 4), torch.zeros(32).long())
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
Trainer(model, DataLoader(data, batch_size=8), optimizer, int(os.environ["LOCAL_RANK"])).train(3)
"""


def test_the_device_of_an_object_that_trains():
    result = migrate_text(OBJECT)
    module = result.text.partition("class TrainingModule")[2].partition("class Trainer")[0]
    assert result.plan == "module" and "gpu_id" not in module and "owner" not in module
    assert "weight=torch.ones(2, device=self.device)" in module and "torch.zeros(1).to(self.device)" in module
    assert not told(result) and [e.line for e in result.edits if e.code == "PTM104"] == [23, 16]


def test_an_evaluation_that_stays_in_the_script_too_has_the_device_that_its_caller_says():
    result = migrate_text(
        SAME.replace("dtype=torch.long).to(device)", "dtype=torch.long, device=device)") + "test(model, device)\n"
    )
    made = "right = torch.zeros(1, dtype=torch.long, device="
    assert made + "device)" in result.text and made + "self.device)" in result.text
    assert told(result) == []


STAYS = """
import functools
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
data = TensorDataset(torch.randn(12, 3), torch.randn(12, 1))
make = functools.partial(DataLoader, batch_size=4)
train, valid = make(data, shuffle=True), make(data)
other = make(data)
pairs = [(torch.ones(2, 3), torch.ones(2, 1))]
net = torch.nn.Linear(3, 1).to(device)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for epoch in range(2):
    for x, y in train:
        loss = (net(x.to(device)) - y.to(device)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    total = 0
    with torch.no_grad():
        for LOOP:
            total += net(x.to(device)).sum().item()
    print(epoch, total)
"""


@pytest.mark.parametrize(
    ("loop", "placed"),
    [
        ("x, y in list(valid)[:2]", "on_device(list(self.valid)[:2])"),
        ("(x, y), _ in zip(valid, other)", "on_device(zip(self.valid, self.other))"),
        ("x, y in pairs", "on_device(self.pairs)"),
        ("i in range(2)", "range(2)"),
        ("i in reversed(range(2))", "reversed(range(2))"),
        ("i in list(range(2))[::-1]", "list(range(2))[::-1]"),
    ],
)
def test_the_batches_of_an_evaluation_that_stays_go_where_the_model_is(loop, placed):
    text = STAYS.replace("LOOP", loop)
    if "range" in loop:
        text = text.replace("            total", "            x, _ = pairs[0]\n            total")
    result = check_same(text, "module")
    assert f"for {loop.split(' in ')[0]} in {placed}:" in result, result


NAMED = (
    HEAD.replace("model = ", "device = 'cuda' if torch.cuda.is_available() else 'cpu'\nmodel = ").replace(
        "nn.CrossEntropyLoss()", "nn.CrossEntropyLoss().to(device)"
    )
    + """
for epoch in range(2):
    for x, y in train_loader:
        x, y = x.to(device), y.to(device)
        {before}
        loss = criterion(model(x), y){more}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
"""
)


@pytest.mark.parametrize(
    ("before", "more", "after"),
    [
        ("scale = 2.0 if device == 'cpu' else 1.0", " * scale", "2.0 if self.device.type == 'cpu' else 1.0"),
        ("scale = 2.0 if 'cuda' in device else 3.0", " * scale", "2.0 if 'cuda' in self.device.type else 3.0"),
        ("scale = 2.0 if device.startswith('c') else 3.0", " * scale", "self.device.type.startswith('c')"),
        ("print('on ' + device)", "", "'on ' + self.device.type"),
        ("print(device)", "", "self.print(self.device.type)"),
        ("noise = torch.zeros(3, device=device)", " + noise.sum()", "torch.zeros(3, device=x.device)"),
    ],
)
def test_a_device_that_is_a_text_is_read_as_one(before, more, after):
    """`self.device` is no text: `torch.device("cpu") == "cpu"` is False."""
    assert after in check_same(NAMED.format(before=before, more=more), "module")


def test_a_text_that_names_a_card():
    text = NAMED.replace("'cuda' if", "'cuda:0' if").format(before="here = device == 'cuda:0'", more=" * (2 - here)")
    assert "here = str(self.device) == 'cuda:0'" in check_same(text, "module")


def test_a_device_that_is_none_is_read_as_it_is():
    made = NAMED.replace("= 'cuda' if torch.cuda.is_available() else 'cpu'", "= torch.device('cpu')")
    text = made.format(before="scale = 2.0 if device == torch.device('cpu') else 1.0", more=" * scale")
    assert "self.device == torch.device('cpu')" in check_same(text, "module")


PLAIN = """\
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
D, G = nn.Linear(2, 1), nn.Linear(3, 2)
kept = torch.arange(8.0)
loader = DataLoader(TensorDataset(torch.randn(8, 2)), batch_size=4)
optimizer = torch.optim.SGD([*D.parameters(), *G.parameters()], 0.1)
for epoch in range(2):
    for (x,) in loader:
        {made}
        loss = (D(x) - D(G({used}))).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
"""


@pytest.mark.parametrize(
    ("made", "used", "placed"),
    [
        ("z = torch.randn(x.size(0), 3)", "z", "torch.randn(x.size(0), 3, device=self.device)"),
        ("z = torch.ones(x.size(0), 3, dtype=torch.float32,)", "z", "torch.float32, device=self.device,)"),
        ("pass", "torch.zeros(4, 3) + 1", "self.G(torch.zeros(4, 3, device=self.device) + 1)"),
    ],
)
def test_what_a_step_makes_in_a_script_without_devices_is_made_where_the_module_is(made, used, placed):
    source = PLAIN.format(made=made, used=used)
    result = migrate_text(source)
    assert result.plan == "module" and placed in result.text and not told(result)
    assert "PTM104" in {e.code for e in result.edits}
    assert migrate_text(result.text).text == result.text


@pytest.mark.parametrize(
    ("made", "used"),
    [
        ("z = torch.randn(x.size(0), 3).type_as(x)", "z"),
        ("z = torch.randn(4, 3).to(x)", "z"),
        ("i = torch.randint(0, 8, (4, 3))", "kept[i]"),
        ("a = torch.rand(4, 3); z = torch.from_numpy(a.numpy())", "z"),
        ("z = torch.tensor(2.0)", "x.new_ones(4, 3) * z"),
        ("z = torch.randn(4, 3, device=x.device)", "z"),
        ("z = torch.randn_like(x.repeat(1, 2)[:, :3])", "z"),
        ("c = open('cuda'); z = torch.randn(4, 3)", "z"),  # a script that knows of devices made it where it did
    ],
)
def test_what_a_step_makes_otherwise_stays(made, used):
    assert "device=self.device" not in migrate_text(PLAIN.format(made=made, used=used)).text


def test_a_script_without_devices_runs_the_same():
    assert "device=self.device" in check_same(PLAIN.format(made="z = torch.randn(x.size(0), 3)", used="z"), "module")


def test_what_is_made_before_the_loader_is_told_where_it_goes_and_no_more():
    text = """import torch
import torch.nn.functional as F
from torch import nn

def train(loader, model, optimizer, device):
    total = torch.zeros(1, device=device)
    loader = progress(loader)
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.detach()
    return total

def main(loader):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Linear(4, 2).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        print(train(loader, model, optimizer, device))
"""
    result = migrate_text(text)
    assert "torch.zeros(1, device=self.device)" in result.text[result.text.index("def train_dataloader") :]
    assert [(e.code, e.line) for e in result.edits if e.code == "PTM104"] == [("PTM104", 6)]
    assert not [n for n in result.attention if n.code == "PTM104"]


FOREVER = """
import torch
from torch import nn

torch.manual_seed(0)
device = torch.device('cuda:0' if torch.cuda.is_available() else 'cpu')


def forever(loader):
    while True:
        for x in iter(loader):
            yield x


batches = forever(torch.utils.data.DataLoader(torch.randn(8, 3), batch_size=4, shuffle=True))
net = nn.Linear(3, 1).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    {}
    loss = net(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
"""


@pytest.mark.parametrize("drawn", ["x = next(batches).to(device)", "x = next(batches)\n    x = x.to(device)"])
def test_what_a_generator_of_the_script_gives_goes_where_the_module_is(drawn):
    result = check_same(FOREVER.format(drawn), "module")
    assert ".to(self.device)" in result and "cuda:0" not in result


DRAWN = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
loader = DataLoader(TensorDataset(torch.randn(20, 4), torch.randn(20, 4)), batch_size=4)
X, Y = torch.randn(20, 4), torch.randn(20, 4)

def draw(n):
    return torch.ones(4) * n if n % 2 == 0 else None

net = nn.Linear(4, 4).to(device)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for epoch in range(2):
    LOOP
        m = draw(i)
        if m is not None:
            m = m.to(device)
        out = net(x)
        if m is not None:
            out = out * m
        loss = (out - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())
"""


@pytest.mark.parametrize(
    ("loop", "placed"),
    [
        ("for i, (x, y) in enumerate(loader):\n        x, y = x.to(device), y.to(device)", "x.device"),
        ("for i in range(5):\n        x, y = X[i::5].to(device), Y[i::5].to(device)", "self.device"),
    ],
)
def test_what_a_function_gives_of_a_number_is_moved_where_there_is_one(loop, placed):
    text = check_same(DRAWN.replace("LOOP", loop), "module")
    assert f"m = draw(i)\n        if m is not None:\n            m = m.to({placed})\n" in text


def test_imports_stand_above_what_reads_them():
    text = DRAWN.replace("LOOP", "for i, (x, y) in enumerate(loader):").replace(
        "import torch\n", "import torch\nprint(1)\n", 1
    )
    result = check_same(text, "module")
    assert result.index("import Module") < result.index("rank_zero_print(1)") < result.index("import DataLoader")
