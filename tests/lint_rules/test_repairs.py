"""What rules mend themselves: the text before and after, in the ways in which people write it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from ptmigrate.lint_rules.engine import Linter
from ptmigrate.lint_rules.fix import fixed_text
from ptmigrate.lint_rules.registry import all_rules, choose
from ptmigrate.lint_rules.rule import examples
from ptmigrate.migrate.facts.source import decode


def fixed(data, code, unsafe=True):
    """The bytes after fixing; a second time changes nothing."""
    rules = choose([code])
    source = decode(data, "a.py")
    text = fixed_text(source, Linter(rules).lint_source(source), rules, unsafe)
    after = source.encode(text)
    again = decode(after, "a.py")
    assert fixed_text(again, Linter(rules).lint_source(again), rules, unsafe) == text
    ast.parse(text)
    return after


LOAD = "import torch\nx = torch.load("
LOADER = "import torch\nfrom torch.utils.data import DataLoader\nval_loader = DataLoader("
PINNED = "import torch\nloader = torch.utils.data.DataLoader(d, pin_memory=True)\nfor x in loader:\n"
STEP = "import torch\nfor x, y in loader:\n    loss = criterion(model(x), y)\n    loss.backward()\n"
MODULE = "import torch\nclass N(torch.nn.Module):\n    def forward(self, x):\n"
LIGHTNING = "import lightning as L\nclass M(L.LightningModule):\n    def training_step(self, b, i):\n        "


@pytest.mark.parametrize(
    ("code", "before", "after"),
    [
        ("PTM109", LOAD + "p)", LOAD + 'p, map_location="cpu")'),
        ("PTM109", LOAD + "p, )", LOAD + 'p, map_location="cpu", )'),
        ("PTM109", LOAD + "(p))", LOAD + '(p), map_location="cpu")'),
        ("PTM109", LOAD + "\n    p,\n)\n", LOAD + '\n    p,\n    map_location="cpu",\n)\n'),
        ("PTM109", LOAD + "\n    p  # why\n)\n", LOAD + '\n    p, map_location="cpu"  # why\n)\n'),
        (
            "PTM109",
            LOAD + "\n    p,  # why, and how\n)\n",
            LOAD + '\n    p,  # why, and how\n    map_location="cpu",\n)\n',
        ),
        ("PTM109", LOAD + "'é日本'); y = 1\n", LOAD + "'é日本', map_location=\"cpu\"); y = 1\n"),
        ("PTM404", LOADER + "d, 32, True)\n", LOADER + "d, 32)\n"),
        ("PTM404", LOADER + "d, shuffle=True)\n", LOADER + "d)\n"),
        ("PTM404", LOADER + "d, shuffle=True, num_workers=2)\n", LOADER + "d, num_workers=2)\n"),
        ("PTM404", LOADER + "\n    d,\n    shuffle=True,\n)\n", LOADER + "\n    d,\n)\n"),
        ("PTM405", LOADER + "d, drop_last=True, # all\n  batch_size=3)\n", LOADER + "d,  # all\n  batch_size=3)\n"),
        ("PTM505", "import torch\noptimizer.zero_grad(False)\n", "import torch\noptimizer.zero_grad()\n"),
        ("PTM504", PINNED + "    step(model(x.cuda()).backward())\n", None),
        ("PTM311", STEP + "    total += loss\n", STEP + "    total += loss.detach()\n"),
        ("PTM301", STEP + "    total += loss.item() * 2\n", STEP + "    total += loss.detach() * 2\n"),
        (
            "PTM407",
            LIGHTNING + 'self.log("a", x, sync_dist=True)\n',
            LIGHTNING + 'self.log("a", x, sync_dist=True, on_step=False, on_epoch=True)\n',
        ),
        (
            "PTM403",
            'import os, torch\nos.environ["MASTER_PORT"] = "1"  # ours\n',
            'import os, torch\nos.environ.setdefault("MASTER_PORT", "1")  # ours\n',
        ),
        ("PTM412", "import torch\nm = torch.nn.DataParallel(net).cuda()\n", "import torch\nm = net.cuda()\n"),
        ("PTM412", "import torch\nm = torch.nn.DataParallel(m)  # all\nf(m)\n", "import torch\nf(m)\n"),
        ("PTM412", "import torch\nif n:\n    a.m = torch.nn.DataParallel(a.m)\n", "import torch\nif n:\n    pass\n"),
        ("PTM412", "import torch\nif n: m = torch.nn.DataParallel(m); f()\n", "import torch\nif n: pass; f()\n"),
        (
            "PTM411",
            "import torch\nm = torch.nn.DataParallel(net)\ntorch.save(m.state_dict(), p)\n",
            "import torch\nm = torch.nn.DataParallel(net)\ntorch.save(m.module.state_dict(), p)\n",
        ),
        (
            "PTM416",
            "import torch.distributed as dist\ndist.isend(t, 1)\n",
            "import torch.distributed as dist\ndist.isend(t, 1).wait()\n",
        ),
        (
            "PTM603",
            "import torch\nx = x.cuda(0, async = True)  # async=True\ndist.all_reduce(x, async=True)\n",
            "import torch\nx = x.cuda(0, non_blocking = True)  # async=True\ndist.all_reduce(x, async_op=True)\n",
        ),
        (
            "PTM605",
            "import torch\nfrom torch.cuda.amp import autocast\nwith autocast(amp, torch.float16):\n    pass\n",
            "import torch\nfrom torch.cuda.amp import autocast\n"
            'with torch.amp.autocast("cuda", enabled=amp, dtype=torch.float16):\n    pass\n',
        ),
        (
            "PTM606",
            "import torch\nfrom torch.nn.init import constant, zeros_\nconstant(w, 0); constant(b, 1)\n",
            "import torch\nfrom torch.nn.init import constant_, zeros_\nconstant_(w, 0); constant_(b, 1)\n",
        ),
        (
            "PTM602",
            "import torch\nf = torch.nn.MSELoss(False)\n",
            'import torch\nf = torch.nn.MSELoss(reduction="sum")\n',
        ),
        (
            "PTM103",
            MODULE + "        return self.f(x.cuda())\nn = N().cuda()\n",
            MODULE + "        return self.f(x)\nn = N().cuda()\n",
        ),
    ],
)
def test_repaired(code, before, after):
    after = after or before.replace("x.cuda()", "x.cuda(non_blocking=True)")
    assert fixed(before.encode(), code).decode() == after


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("PTM301", STEP + "    losses.append(loss.item())\n"),  # the list is of numbers
        ("PTM301", STEP + "    meter.total += loss.item()\n"),  # whose total is read who knows where
        ("PTM404", LOADER + "d, 32, True, None)\n"),  # what follows by position would move
        ("PTM412", "import torch\nm = torch.nn.DataParallel(net)\nsave(m.module)\n"),
        ("PTM407", LIGHTNING + 'self.log("a", x, on_step=True, sync_dist=True)\n'),
        ("PTM414", "from torch.utils.data import random_split\na, b = random_split(d, [1, 2])\n"),  # no torch to name
        ("PTM603", "import torch\nx = launch(async=True)  # nobody knows what this is called today\n"),
        ("PTM605", "from torch.cuda.amp import autocast\nwith autocast():\n    pass\n"),
        ("PTM606", "import torch\nfrom torch.nn.init import constant\nconstant(w, 0)\nf = constant\n"),
        ("PTM608", "import torch\nparser.add_argument('--local_rank')\n"),  # no os
        (
            "PTM104",
            "import torch\nclass N(torch.nn.Module):\n    def forward(self, n):\n        return torch.zeros(n)\n",
        ),
        ("PTM109", "import torch\nx = torch.load(*paths)\n"),
        ("PTM109", "import torch\nx = torch.load(p)  # noqa: PTM109 - on one machine\n"),
    ],
)
def test_left(code, text):
    source = decode(text.encode(), "a.py")
    rules = choose([code])
    assert fixed_text(source, Linter(rules).lint_source(source), rules, True) == text


def test_bytes_elsewhere_are_kept():
    text = "# coding: latin-1\nimport torch\n\x0c\ns = 'é'\n\tif_ = 1\n".replace("\tif_", "if_")
    tail = "x = torch.load(s)   # é  \ny = [1,\n\t2]  "
    before = (text + tail).replace("\n", "\r\n").encode("latin-1")
    assert fixed(before, "PTM109") == before.replace(b"load(s)", b'load(s, map_location="cpu")')
    bom = b"\xef\xbb\xbfimport torch\nx = torch.load('\xc3\xa9')"
    assert fixed(bom, "PTM109") == bom.replace(b"')", b'\', map_location="cpu")')


def test_unsafe_repairs_are_asked_for():
    before = b"import torch\nx = torch.load(p)\nfrom torch.cuda.amp import GradScaler\ns = GradScaler()\n"
    assert fixed(before, "PTM", unsafe=False) == before.replace(b"= GradScaler()", b'= torch.amp.GradScaler("cuda")')


LABELLED = sorted((Path(__file__).parent / "labelled").glob("*.py"))
SNIPPETS = [
    *(text for rule in all_rules() for text in examples(rule.BAD)),
    *(text for path in LABELLED for text in re.split(r"^# ======.*\n", path.read_text(), flags=re.M)[1:]),
]


@pytest.mark.parametrize("text", SNIPPETS, ids=range(len(SNIPPETS)))
def test_all_at_once(text):
    """Everything that can be fixed, fixed together: it parses, finds no more than before, and is done."""
    rules = choose()
    source = decode(text.encode(), "a.py")
    before = Linter(rules).lint_source(source)
    after = decode(fixed(text.encode(), "ALL"), "a.py")
    assert len(Linter(rules).lint_source(after)) <= len(before)
