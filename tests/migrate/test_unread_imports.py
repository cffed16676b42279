"""What only the removed lines imported goes with them; what was never read, or is read still, stays."""

import pytest
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.migrate import Options, migrate_text
from ptmigrate.migrate.unread_imports import without_unread_imports

USE = "DDP(DistributedSampler(Dataset))\n"


def removed(before, after, taken=None):
    return without_unread_imports(Facts(before), Facts(after), taken)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from a import DDP\n", ""),
        ("from a import DDP  # wraps\nx = 1\n", "x = 1\n"),
        ("from a import b, DDP\n", "from a import b\n"),
        ("from a import DDP, b\n", "from a import b\n"),
        ("from a import DDP, b, Dataset, DistributedSampler\n", "from a import b\n"),
        ("from a import b as DDP, c\n", "from a import c\n"),
        ("from a import (\n    b,  # b\n    DDP,\n    c,\n)\n", "from a import (\n    b,  # b\n    c,\n)\n"),
        ("from a import (\n    b,\n    DDP,\n)\n", "from a import (\n    b,\n)\n"),
        ("import a.b as DDP, c\r\n", "import c\r\n"),
    ],
)
def test_an_import_goes_with_its_last_reader(before, after):
    text, edits = removed(before + USE, before)
    assert text == after and edits and all(e.line == 1 for e in edits)
    assert removed(before + USE, text)[0] == text


@pytest.mark.parametrize(
    "before",
    [
        "from a import b\n",
        "from a import DDP\nf(DDP)\n",
        "from a import DDP\n__all__ = ['DDP']\n",
        "from a import DDP\ndef f(x: 'DDP'): ...\n",
        "from a import DDP; x = 1\n",
        "try:\n    from a import DDP\nexcept ImportError:\n    pass\n",
        "from __future__ import annotations\n",
        "import torch_npu as DDP\n",
    ],
)
def test_unchanged(before):
    assert removed(before + USE, before) == (before, [])


def test_a_library_keeps_what_is_imported_from_it():
    """Through a star, too, and whatever it is: `from model import *` and then `Variable(x)`."""
    source = "from torch.nn import DataParallel as DDP\nfrom mine import Dataset\n"
    assert removed(source + USE, source, lambda name: True) == (source, [])
    assert removed(source + USE, source, "DDP".__eq__)[0] == "from torch.nn import DataParallel as DDP\n"


def test_a_library_of_which_no_reader_is_known_keeps_its_imports():
    before = "import torch\nfrom torch.autograd import Variable\n\n\ndef f():\n    return Variable(torch.ones(1))\n"
    for is_script in (False, True):
        assert migrate_text(before, Options(), is_script).text == before.replace(
            "Variable(torch.ones(1))", "torch.ones(1)"
        )


def test_an_else_that_has_nothing_left_goes():
    source = (
        "import torch\nfor x, y in loader:\n    if a:\n        y = 1\n    else:\n        x = x.cuda()\n"
        "    if b:\n        y = 2\n    elif c:\n        x = x.cuda()\n    if d:\n        x = x.cuda()\n"
        "    if f():\n        x = x.cuda()\n    g(x, y)\n"
    )
    after = (
        "import torch\nfor x, y in loader:\n    if a:\n        y = 1\n    if b:\n        y = 2\n"
        "    if f():\n        pass\n    g(x, y)\n"
    )
    assert migrate_text(source, Options(), is_script=False).text == after


def test_prose_reads_nothing():
    before = 'from a import DDP\nprint("Running the DDP example")\nDDP(x)\n'
    assert removed(before, before.replace("DDP(x)\n", ""))[0] == 'print("Running the DDP example")\n'
