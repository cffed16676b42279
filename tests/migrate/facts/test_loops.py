"""Each source marks what is asked about by a call of `here()`."""
# ruff: noqa: E501

import ast
import textwrap

import pytest
from ptmigrate.migrate.facts.loops import Loops
from ptmigrate.migrate.facts.names import Names


def hot(source: str) -> tuple[int, str, bool] | None:
    tree = ast.parse(textwrap.dedent(source))
    loops = Loops(tree, Names(tree))
    (mark,) = loops.nodes.calls["here"]
    found = loops.hot(mark)
    return (found.line, found.kind, found.guarded) if found else None


STEP = "loss = criterion(model(x), y); loss.backward(); optimizer.step()"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (f"for x, y in loader:\n  {STEP}\n  here()", (1, "trains", False)),
        (f"for e in range(9):\n  for x, y in loader:\n    {STEP}\n    here()", (2, "trains", False)),
        (f"for e in range(9):\n  {STEP}\n  here()", (1, "trains", False)),  # full batch
        (f"while True:\n  {STEP}\n  here()", (1, "trains", False)),
        (  # called by both, in either order: the one that trains
            "def f(): here()\ndef test():\n  for x in val_loader:\n    model(x)\n    f()\n"
            f"for x, y in loader:\n  {STEP}\n  f()",
            (6, "trains", False),
        ),
        (
            f"def f(): here()\nfor x, y in loader:\n  {STEP}\n  f()\n"
            "for x in val_loader:\n  with torch.no_grad():\n    model(x)\n    f()",
            (2, "trains", False),
        ),
        (  # a copy of a network is one
            "import copy\nema = copy.deepcopy(net)\nfor x in val_loader:\n  with torch.no_grad():\n    ema(x)\n  here()",
            (3, "evaluates", False),
        ),
        ("import copy\nema = copy.deepcopy(table)\nfor x in val_loader:\n  ema(x)\n  here()", None),
        ("for x in loader:\n  loss = f(x)\n  scaler.scale(loss).backward()\n  here()", (1, "trains", False)),
        ("for x in loader:\n  for m in models:\n    m(x).backward()\n  here()", (1, "trains", False)),
        # networks and optimizers in turn: the round of the loop around them is the step
        ("for x in batches:\n  for m, o in zip(ms, os):\n    m(x).backward(); o.step(); here()", (1, "trains", False)),
        ("for x in batches:\n  for m in ms:\n    m(x).backward()\n  here()", (1, "trains", False)),
        ("for e in range(9):\n  for o in optimizers:\n    o.zero_grad(); loss.backward(); o.step()\n  here()", (1, "trains", False)),
        ("for m in ms:\n  for x in batches:\n    m(x).backward(); here()", (2, "trains", False)),
        ("for m in ms:\n  m(x).backward(); optimizer.step(); here()", (1, "trains", False)),  # nothing is around it
        ("for e in range(9):\n  def f():\n    for m in ms:\n      m(x).backward(); here()", (3, "trains", False)),  # nor there
        ("for x in loader:\n  optimizer.step(closure)\n  here()", (1, "trains", False)),
        ("for x in train_set:\n  accelerator.backward(loss)\n  here()", (1, "trains", False)),
        # called functions
        (f"def step(x, y):\n  {STEP}\nfor x, y in loader:\n  step(x, y)\n  here()", (3, "trains", False)),
        (f"def f():\n  here()\nfor x, y in loader:\n  {STEP}\n  f()", (3, "trains", False)),
        (f"def f():\n  here()\ndef g():\n  f()\nfor x, y in loader:\n  {STEP}\n  g()", (5, "trains", False)),
        (
            f"class T:\n  def step(self):\n    here()\n  def fit(self):\n    for x, y in self.loader:\n      {STEP}\n      self.step()",
            (5, "trains", False),
        ),
        ("class M(Module):\n  def training_step(self, batch, i):\n    here()", (2, "trains", False)),
        # evaluation
        ("import torch\nwith torch.no_grad():\n  for x, y in loader:\n    model(x)\n    here()", (3, "evaluates", False)),
        ("for x, y in val_loader:\n  model(x)\n  here()", (1, "evaluates", False)),
        ("for x, y in tqdm(enumerate(self.test_loader)):\n  self.model(x)\n  here()", (1, "evaluates", False)),
        ("import torch\n@torch.no_grad()\ndef f():\n  for k in range(n):\n    model(x)\n    here()", (4, "evaluates", False)),
        (
            "from torch.utils.data import DataLoader\nd = DataLoader(ds)\nfor x in d:\n  y = net(x)\n  here()",
            (3, "evaluates", False),
        ),
        (
            "import torch.nn as nn\nclass Thing(nn.Module): pass\nm = Thing().cuda()\nfor x in loader:\n  m(x)\n  here()",
            (4, "evaluates", False),
        ),
        # now and then
        (f"for i, (x, y) in enumerate(loader):\n  {STEP}\n  if i % 100 == 0:\n    here()", (1, "trains", True)),
        (f"for i, (x, y) in enumerate(loader):\n  {STEP}\n  if i > 0 and not (i + 1) % n:\n    here()", (1, "trains", True)),
        (f"for i, (x, y) in enumerate(loader):\n  {STEP}\n  if i == len(loader) - 1:\n    here()", (1, "trains", True)),
        (f"for i, (x, y) in enumerate(loader):\n  {STEP}\n  if i % 9: continue\n  here()", (1, "trains", True)),
        (f"for i, (x, y) in enumerate(loader):\n  {STEP}\n  log = i % 9 == 0\n  if log:\n    here()", (1, "trains", True)),
        (f"def f():\n  here()\nfor i, x in loader:\n  {STEP}\n  if i % 9 == 0:\n    f()", (3, "trains", True)),
    ],
)  # fmt: skip
def test_hot(source, expected):
    assert hot(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "here()",
        "for x in things:\n  here()",
        f"for e in range(9):\n  for x, y in loader:\n    {STEP}\n  here()",
        f"def train():\n  for x, y in loader:\n    {STEP}\nfor e in range(9):\n  train()\n  here()",
        f"def train():\n  for x, y in loader:\n    {STEP}\n  here()\nfor e in range(9):\n  train()",
        f"for x, y in loader:\n  {STEP}\nelse:\n  here()",
        f"for x, y in here():\n  {STEP}",
        f"def f():\n  here()\nf()\nfor x, y in loader:\n  {STEP}\n  f()",
        "for name in layers:\n  model(name)\n  here()",
        "import torch\nfor split in a:\n  with torch.no_grad():\n    for k in range(9):\n      model(k)\n  here()",
        "class F(Function):\n  def backward(ctx, g):\n    for i in g:\n      here()",
        f"for x, y in loader:\n  {STEP}\n  callback = lambda: here()",
    ],
)
def test_not_hot(source):
    assert hot(source) is None


def test_epoch_loop():
    tree = ast.parse(f"for e in range(9):\n  for x, y in loader:\n    {STEP}")
    loops = Loops(tree, Names(tree))
    (loop,) = loops.hot_loops
    assert loops.epoch_loop(loop) is tree.body[0]
    assert loops.epoch_loop(tree.body[0]) is None


def test_the_first_step_is_seldom():
    assert hot("for i, (x, y) in enumerate(loader):\n  model(x)\n  if i == 0:\n    here()") == (1, "evaluates", True)
