"""T1: functions that move what they are given, of lists and dictionaries each element, go with their calls."""

import pytest

from tests.migrate.codemods.helpers import check, migrated

MOVER = """\
def to_device(data, device):
    if isinstance(data, (list, tuple)):
        return [to_device(x, device) for x in data]
    return data.to(device, non_blocking=True)
"""
HEAD = "import torch\nfrom torch import nn\nfrom n import show\n"
USES = """\
model = nn.Linear(3, 2)
to_device(model, 'cuda')
other = to_device(nn.Linear(3, 2), 'cuda')
show(model, other)
"""
GONE = "model = nn.Linear(3, 2)\nother = nn.Linear(3, 2)\nshow(model, other)\n"
FORMS = {
    "lists": MOVER,
    "dictionaries, too": """\
def to_device(data, device):
    if isinstance(data, dict):
        return {k: to_device(v, device) for k, v in data.items()}
    if isinstance(data, list):
        return [to_device(x, device) for x in data]
    return data.to(device)
""",
    "tensors first": """\
def to_device(data, device):
    if torch.is_tensor(data) or isinstance(data, nn.Module):
        return data.to(device)
    elif isinstance(data, (list, tuple)):
        return type(data)(to_device(x, device) for x in data)
    else:
        return data
""",
    "what has a move": MOVER.replace(
        "    return data.to", '    if not hasattr(data, "to"):\n        raise TypeError(data)\n    return data.to'
    ),
    "by kinds": """\
def to_device(data, device):
    match data:
        case torch.Tensor() | nn.Module():
            return data.to(device)
        case dict():
            return {k: to_device(v, device) for k, v in data.items()}
        case _:
            return data
""",
    "tuples": MOVER.replace("[to_device(x, device) for x in data]", "tuple(to_device(x, device) for x in data)"),
    "by one expression": MOVER.replace(
        "return data.to(device, non_blocking=True)", 'return data.to(device) if hasattr(data, "to") else data'
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_it_goes(form):
    check(HEAD + FORMS[form] + USES, HEAD + GONE)


MORE = {
    "of some": MOVER.replace("for x in data]", "for x in data if x is not None]"),
    "of others": MOVER.replace("for x in data]", "for x in data[1:]]"),
    "of a part": MOVER.replace("[to_device(x, device)", "[to_device(x[0], device)"),
    "by another": MOVER.replace("return [to_device(", "return [show("),
    "doubled": MOVER.replace("non_blocking=True)", "non_blocking=True) * 2"),
    "with a type": MOVER.replace("device, non_blocking=True", "device, torch.float"),
    "printed": MOVER.replace("    return data.to", "    print(data)\n    return data.to"),
    "counted": MOVER.replace("    return data.to", "    data = data * 2\n    return data.to"),
    "by its keys": MOVER.replace(
        "[to_device(x, device) for x in data]", "{k: to_device(k, device) for k, v in data.items()}"
    ),
    "asked of another": MOVER.replace("isinstance(data, (list, tuple))", "show(data)"),
    "decorated": "@torch.no_grad()\n" + MOVER,
}


@pytest.mark.parametrize("more", MORE)
def test_what_does_more_stays(more):
    assert "def to_device(data" in migrated(HEAD + MORE[more] + USES).text


@pytest.mark.parametrize("use", ["show(to_device)", "to_device(*show)", "show(to_device(show(), 'cuda'))"])
def test_what_is_used_otherwise_stays(use):
    assert "def to_device(data" in migrated(HEAD + MOVER + USES + use + "\n").text
