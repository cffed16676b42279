"""What a step draws for its part of the batch is told of; what it draws for no batch of its own is not."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_same_run import NESTED

AT = "        out = model(x)\n"
HELPER = "\ndef noisy(x):\n    return x + torch.randn_like(x)\n\nfor epoch in"

DRAWS = {
    "noise": NESTED.replace(AT, "        out = model(x + torch.randn(x.size(0), 5))\n"),
    "in place": NESTED.replace(AT, "        out = model(x + torch.empty_like(x).normal_())\n"),
    "numpy": NESTED.replace(AT, "        out = model(x) * np.random.rand()\n").replace(
        "import time", "import time\nimport numpy as np"
    ),
    "in a helper": NESTED.replace("\nfor epoch in", HELPER).replace(AT, "        out = model(noisy(x))\n"),
}
DATASET = "\nclass Data:\n    def __getitem__(self, i):\n        return xs[i] + torch.rand(5), ys[i]\n\nfor epoch in"
DRAWS["in the data set"] = NESTED.replace("\nfor epoch in", DATASET)
DRAWS_NOT = {
    "nothing": NESTED,
    "before the loop": NESTED.replace("\nfor epoch in", "\nw = torch.randn(5)\nfor epoch in"),
    "a generator of its own": NESTED.replace(AT, "        out = model(x + torch.rand(5, generator=g))\n").replace(
        "\nfor epoch in", "\ng = torch.Generator().manual_seed(1)\nfor epoch in"
    ),
    "whole batches": NESTED.replace(AT, "        out = model(x + torch.randn(5))\n        out = out.softmax(0)\n"),
}


@pytest.mark.parametrize("text", DRAWS.values(), ids=DRAWS.keys())
def test_told(text):
    result = migrate_text(text)
    (note,) = [n for n in result.attention if n.code == "PTM706"]
    assert result.plan in ("module", "manual") and "on several processes other numbers" in note.message
    assert text.splitlines()[note.line - 1].count("rand") or "normal_" in text.splitlines()[note.line - 1]


@pytest.mark.parametrize("text", DRAWS_NOT.values(), ids=DRAWS_NOT.keys())
def test_not_told(text):
    assert not [n for n in migrate_text(text).attention if n.code == "PTM706"]
