"""Tensors that a script keeps on the CPU beside a loop on a device: a buffer would be on the card."""

import pytest

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_on_card, check_same

TEXT = (
    HEAD
    + """
seen, wanted = torch.randn(6, 5), torch.randint(0, 3, (6,))
for epoch in range(2):
    for x, y in train_loader:
        x, y = x.to(device), y.to(device)
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        out = model(seen.to(device))
        READ
    model.train()
    print(right)
"""
)
BUFFER = 'self.register_buffer("wanted", wanted, persistent=False)'


@pytest.mark.parametrize(
    "read",
    [
        "right = (out.cpu().argmax(1) == wanted).sum().item()",
        "right = (wanted.float() - out.argmax(1).cpu()).sum().item()",
        "out = out.cpu()\n        right = torch.eq(wanted, out.argmax(1)).sum().item()",
        "right = (out.argmax(1).cpu().numpy() == wanted.numpy()).sum()",
        "import numpy as np\n        right = np.equal(wanted, out.argmax(1).cpu()).sum().item()",
        "import numpy as np\n        right = np.unique(wanted).size",
        "out = out.to('cpu')\n        right = [(out.argmax(1)[i] == wanted[i]).item() for i in range(6)]",
    ],
)
def test_what_meets_the_cpu_stays_there(read):
    result = check_same(TEXT.replace("READ", read), "module")
    assert BUFFER not in result and "self.wanted = wanted" in result


@pytest.mark.parametrize(
    "read",
    [
        "right = (out.argmax(1) == wanted.to(device)).sum().item()",
        "right = (out.argmax(1) == wanted.to(device)).float().cpu().numpy().sum()",
        "right = (out.argmax(1) == wanted.to(device)).sum().item() + out.cpu().sum().item()",
    ],
)
def test_what_meets_the_model_goes_with_it(read):
    assert BUFFER in check_same(TEXT.replace("READ", read), "module")


def test_a_batch_that_it_meets_decides():
    read = "right = (out.cpu().argmax(1) == wanted).sum().item()"
    met = TEXT.replace("READ", read).replace("x, y = x.to(device), y", "x, y = (x + wanted[0]).to(device), y")
    assert BUFFER in check_same(met, "module")


@pytest.mark.parametrize("met", ["out.argmax(1)", "out.argmax(1).cpu()"])
def test_in_a_script_that_names_no_device_all_go_together(met):
    text = TEXT.replace(".to(device)", "").replace("READ", f"right = ({met} == wanted).sum().item()")
    text = "\n".join(line for line in text.splitlines() if "device" not in line and "cuda" not in line)
    assert BUFFER in check_same(text, "module")


MEMORY = (
    HEAD.replace("TensorDataset(", "TensorDataset(torch.arange(len(xs)), ", 1)
    + """
memory = torch.zeros(len(xs))
for epoch in range(2):
    for i, x, y in train_loader:
        x, y = x.to(device), y.to(device)
        losses = nn.functional.cross_entropy(model(x), y, reduction="none")
        STEP
        losses.mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    print(f"{memory.sum().item():.4f}")
"""
)


@pytest.mark.parametrize("flag", [" and not args.no_cuda", ""], ids=["", "`.cpu()` is all that is left of devices"])
@pytest.mark.parametrize("step", ["memory[i] = losses.detach().cpu()", "memory[i] += losses.data.cpu()"])
def test_what_gets_what_was_brought_there_stays_there(step, flag):
    text = MEMORY.replace(" and not args.no_cuda", flag)
    text = text if flag else text.replace("parser.add_argument('--no-cuda', action='store_true')\n", "")
    result = check_same(text.replace("STEP", step), "module")
    assert "self.memory[i.cpu()]" in result and "self.memory.to(" not in result


def test_what_gets_what_is_where_the_model_is_goes_with_it():
    step = "memory = memory.to(device)\n        memory[i.to(device)] = losses.detach()"
    assert "self.memory[i] = " in check_same(MEMORY.replace("STEP", step), "module")


POOL = (
    HEAD
    + """
drawn = torch.randn(24, 5)
wanted = torch.randn(24).argsort() % 3
GIVEN
for epoch in range(2):
    for k in range(4):
        i = order[6 * k:6 * k + 6]
        x, y = TAKEN
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())
"""
)
PINNED = "drawn[i].pin_memory().to(device) if torch.cuda.is_available() else drawn[i].to(device), wanted[i].to(device)"


@pytest.mark.parametrize(
    ("taken", "drawn_stays"),
    [
        (PINNED, True),  # a card's tensor has no memory to be pinned
        ("drawn[i].to(device), wanted[i].to(device)", False),
        ("drawn[i].to(device), wanted[i].pin_memory().to(device)", False),
        ("drawn[i].to(device), wanted[i].contiguous().long().to(device)", False),
    ],
)
def test_what_indexes_the_cpu_stays_there(taken, drawn_stays, tmp_path):
    text = POOL.replace("TAKEN", taken).replace("GIVEN", "order = torch.randperm(24)")
    result = check_on_card(tmp_path, text.replace("in range(4)", "in (0, 1, 2, 3)"))
    assert "self.order = order" in result and "self.wanted = wanted" in result
    assert ("self.drawn = drawn" in result) is drawn_stays


def test_what_batches_are_cut_from_stays_where_it_was_made(tmp_path):
    text = POOL.replace("TAKEN", "drawn[i].to(device), classes[i].to(device)")
    result = check_on_card(
        tmp_path, text.replace("GIVEN", "order, classes = torch.randperm(24), torch.zeros(24).long()")
    )
    assert "Batches(self.drawn, self.classes" in result and "register_buffer" not in result


@pytest.mark.parametrize("taken", ["order[order]", "order[other]", "other[order[other[order]]]"])
def test_tensors_that_index_each_other(taken):
    given = f"order, other = torch.randperm(6), torch.randperm(6)\nboth = {taken}"
    text = POOL.replace("TAKEN", f"drawn[{taken}].to(device), wanted[other[order]].to(device)").replace("GIVEN", given)
    check_same(text, "module")


COLLECTED = """
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
policy = nn.Linear(4, 2).to(device)
optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)


def collect():
    return GIVES


def update(states):
    states = torch.stack(states).to(device)
    for _ in range(3):
        loss = policy(states).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


for i in range(2):
    print(i, update(collect()))
"""


@pytest.mark.parametrize(
    "gives",
    ["[torch.arange(4.0) + i for i in range(5)]", "[torch.ones(4), torch.zeros(4)]"],
)
def test_what_a_function_collects_moves_where_it_is_handed_on(gives, tmp_path):
    check_on_card(tmp_path, COLLECTED.replace("GIVES", gives))
