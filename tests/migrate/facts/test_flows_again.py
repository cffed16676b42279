"""A function that is followed again with the same arguments gives what it gave, whatever its callers added to that."""

import ast

from ptmigrate.migrate.facts.batch_values import BATCH
from ptmigrate.migrate.facts.script import Facts

TEXT = "import torch\ndef step(x):\n    return torch.softmax(x, 0)\n"


def test_what_a_caller_adds_is_its_own():
    facts = Facts(TEXT)
    f = facts.tree.body[1]
    first = facts.mixing.flow(f, {"x": BATCH}, None)
    mixes = list(first.mixes)
    first.mixes.append(f)
    again = facts.mixing.flow(f, {"x": BATCH}, None)
    assert len(mixes) == 1 and isinstance(mixes[0], ast.Call) and again.mixes == mixes


def test_other_arguments_are_followed_anew():
    facts = Facts(TEXT)
    f = facts.tree.body[1]
    assert facts.mixing.flow(f, {"x": BATCH}, None).mixes
    assert not facts.mixing.flow(f, {}, None).mixes
