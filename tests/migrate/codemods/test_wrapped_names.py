"""T9: names of a wrapped model's parameters, which nothing wraps any more, are told of."""

import pytest
from helpers import migrated

HEAD = """import torch
from torch.nn.parallel import DistributedDataParallel as DDP
torch.distributed.init_process_group('gloo')
model = WRAPPED
"""
LOOP = "for n, p in model.named_parameters():\n    "


def told(wrapped: str, lines: str) -> list[int]:
    result = migrated(HEAD.replace("WRAPPED", wrapped) + lines + "\n", "PTM420")
    assert lines in result.text
    return [n.line for n in result.attention if "begin with no `module.`" in n.message and n.line > 4]


@pytest.mark.parametrize(
    "lines",
    [
        LOOP + "p.requires_grad = n.startswith('module.fc')",
        LOOP + "p.requires_grad = 'module.layer1.0' in n",
        LOOP + "p.requires_grad = n not in ('module.fc.weight', 'bias')",
        LOOP + "names.append(n[7:])",
        LOOP + "names.append(n[len('module.'):])",
    ],
)
def test_told(lines):
    """Every parameter was frozen, or none: no name began so."""
    assert told("DDP(model)", lines) == [6]
    assert told("torch.nn.DataParallel(model)", lines) == [6]
    assert told("build()", lines) == []


@pytest.mark.parametrize(
    "lines",
    [
        LOOP + "names.append(n[7:] if n.startswith('module.') else n)",
        LOOP + "names.append(n.replace('module.', ''))",
        LOOP + "names.append(n[7:9] + n[8:])",
        LOOP + "print(f'module.{n}')",
        LOOP + "print('module. Its name is', n)",
        LOOP + "p.requires_grad = 'fc' in n",
    ],
)
def test_what_asks_or_says_no_such_name(lines):
    assert told("DDP(model)", lines) == []
