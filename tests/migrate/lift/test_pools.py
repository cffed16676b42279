"""A pool that gives back samples of earlier batches to be trained on keeps whole batches; a meter does not."""

import pytest
from ptmigrate.migrate.elsewhere import Elsewhere
from ptmigrate.migrate.facts.other_files import OtherFile
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.lift import pools
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_same

POOL = """
import random
import torch


class Pool:
    def __init__(self, size=3):
        self.size, self.data = size, []

    def query(self, fakes):
        out = []
        for f in fakes.data:
            f = torch.unsqueeze(f, 0)
            if len(self.data) < self.size:
                self.data.append(f)
                out.append(f)
            elif random.uniform(0, 1) > 0.5:
                i = random.randint(0, self.size - 1)
                out.append(self.data[i].clone())
                self.data[i] = f
            else:
                out.append(f)
        return torch.cat(out)
"""
STEP = """
import torch
from torch import nn
CLASS

torch.manual_seed(0)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(12, 4), torch.randn(12, 1)), 4)
net, mse = nn.Linear(4, 1), nn.MSELoss()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
pool = MADE
for epoch in range(2):
    for i, (x, y) in enumerate(loader):
        opt.zero_grad()
        out = net(x)
        LINE
        loss.backward()
        opt.step()
        print(f"{loss.item():.6f}")
"""
QUERY = "loss = mse(out, y) + mse(net(pool.query(x)), y)"


def step(line, own=POOL, made="Pool()"):
    return STEP.replace("CLASS", own).replace("MADE", made).replace("LINE", line.replace("\n", "\n        "))


def of(*methods):
    """A class with these methods, each a head and a body."""
    lines = [f"    def {head}:\n        " + body.replace("\n", "\n        ") for head, body in methods]
    made = (
        "    def __init__(self):\n        self.data, self.mean, self.size, self.seen, self.net = [], 0, 3, 0, nn.Tanh()"
    )
    return "\n\n\nclass Pool:\n" + "\n\n".join([made, *lines]) + "\n"


TENSORS = of(("query(self, x)", "self.data = [*self.data, x][-2:]\nreturn self.data[0]"))
PUSHES = of(("push(self, x)", "self.data.append(x)"), ("oldest(self)", "return self.data[-3:][0]"))
BY_OWN = of(("query(self, x)", "self.push(x)\nreturn self.data[-3:][0]"), ("push(self, x)", "self.data.append(x)"))
HANDS = of(("query(self, x)", "self.data.append(x)\nreturn self.pop()"), ("pop(self)", "return self.data[-3:][0]"))
SMOOTH = of(("query(self, v)", "self.mean = 0.9 * self.mean + 0.1 * v\nreturn self.mean"))
CALLED = POOL.replace("query", "__call__")
GUARDED = "\nimport functools\ndef made(size):\n    return Pool(size)\n"

WHOLE = {
    "CycleGAN's": step(QUERY),
    "through a name": step("old = pool.query(out.detach())\nloss = mse(out, y) + mse(old * net.bias, y)"),
    "called": step(QUERY.replace("pool.query", "pool"), CALLED),
    "one of a list": step(QUERY.replace("pool", "pool[0]"), made="[Pool() for _ in range(2)]"),
    "made by a function": step(QUERY, POOL + GUARDED, "made(2)"),
    "a list that is made anew": step(QUERY, TENSORS),
    "two methods": step("pool.push(x)\nloss = mse(out, y) + mse(net(pool.oldest()), y)", PUSHES),
    "kept by another method": step(QUERY, BY_OWN),
    "given back by another method": step(QUERY, HANDS),
    "an average that weighs": step("loss = mse(out, y)\nloss = loss * (1 + pool.query(loss.item()))", SMOOTH),
}

METER = of(
    ("update(self, v, n)", "self.mean += v * n\nself.seen += n"), ("value(self)", "return self.mean / self.seen")
)
LAST = of(("query(self, x)", "self.data = x\nself.mean = self.net(self.data)\nreturn self.mean"))
LOGS = of(("query(self, x)", "self.data.append(x.mean().item())\nreturn x * 2"))
COUNTS = of(("query(self, x)", "self.seen += len(x)\nreturn x / (1 + 0 * self.seen)"))
CACHE = of(("query(self, x)", "if not self.data:\n    self.data = torch.ones_like(x)\nreturn x * self.data"))
RESET = of(
    ("push(self, x)", "self.data.append(x)"), ("begin(self)", "self.data = []"), ("all(self)", "return self.data[0]")
)
MODULE = POOL.replace("class Pool:", "class Pool(torch.nn.Module):").replace(
    "        self.size", "        super().__init__()\n        self.size"
)
SHARES = {
    "a meter": step("loss = mse(out, y)\npool.update(loss.item(), len(x))\nprint(pool.seen)", METER),
    "an average that is shown": step("loss = mse(out, y)\nsmooth = pool.query(loss.item())", SMOOTH),
    "what the call sets first": step(QUERY, LAST),
    "a log beside it": step(QUERY, LOGS),
    "a number of samples": step(QUERY, COUNTS),
    "made by the size of what comes": step(QUERY, CACHE),
    "begun anew in every step": step("pool.begin()\npool.push(x)\nloss = mse(out, y) + mse(net(pool.all()), y)", RESET),
    "what no batch gives": step("loss = mse(out, y) + pool.query(0.5)", SMOOTH),
    "a module": step(QUERY, MODULE),
    "a method of an object made in the step": step("own = Pool()\n" + QUERY.replace("pool", "own"), made="None"),
    "out of sight": step(QUERY, "from somewhere import Pool"),
}


def told(result):
    return [n.message for n in result.attention if n.code == "PTM703" and "kept of earlier batches" in n.message]


@pytest.mark.parametrize("text", WHOLE.values(), ids=WHOLE.keys())
def test_whole_batches(text):
    result = migrate_text(text)
    assert "divide_batches = False" in result.text and len(told(result)) == 1


@pytest.mark.parametrize("text", SHARES.values(), ids=SHARES.keys())
def test_shares(text):
    result = migrate_text(text)
    assert "(Module)" in result.text and "divide_batches" not in result.text and not told(result)


def test_the_same_run():
    check_same(WHOLE["CycleGAN's"], "module")


@pytest.mark.parametrize("own, whole", [(POOL, True), (CALLED, False), (MODULE, False)])
def test_a_class_of_another_file(own, whole):
    text = step(QUERY, "from images import Pool")
    result = migrate_text(text, elsewhere=Elsewhere(others=(OtherFile("images", own),)))
    assert ("divide_batches = False" in result.text) is whole


FUNCTION = """
def judged(pool, fakes):
    return net(pool.query(fakes))
"""


def test_in_a_function_of_the_step():
    result = migrate_text(step("loss = mse(out, y) + judged(pool, out.detach()).mean()", POOL + FUNCTION))
    assert "divide_batches = False" in result.text and told(result)


def test_a_function_that_makes_the_backward_pass():
    trains = "\ndef judge(old):\n    net(old).mean().backward()\n"
    result = migrate_text(step("loss = mse(out, y)\njudge(pool.query(x))", POOL + trains))
    assert "divide_batches = False" in result.text and told(result)


def test_values_of_attributes_that_lead_to_each_other_are_followed_once():
    own = "".join(
        f"        self.size = args.size if args else self.width\n        self.width = other{i}.size\n" for i in range(9)
    )
    facts = Facts(f"class A:\n    def __init__(self, args, other):\n{own}\nobject.size.step()\n")
    asked = []
    facts.stores_of = lambda name, whole=facts.stores_of: asked.append(name) or whole(name)
    (call,) = facts.calls_of("step")
    assert not pools._classes(facts, call.func.value)
    assert sorted(asked) == ["size", "width"]
