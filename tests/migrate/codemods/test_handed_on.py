"""What a module keeps of its arguments and only hands on: whether it is a tensor does not show, and that is told."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

MODULE = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, {name}):
        super().__init__()
        {kept}
        self.layer = nn.Linear(3, 3)

    def forward(self, h):
        {used}
        return self.layer(h)
"""
SAYS = "a module moves its parameters and buffers alone"


def told(text: str) -> list[tuple[int, str]]:
    result = migrate_text(text)
    assert ".cuda()" not in result.text and 'to("cuda")' not in result.text
    assert migrate_text(result.text).text == result.text
    return [(n.line, n.message.rpartition("`self.register")[2]) for n in result.attention if SAYS in n.message]


@pytest.mark.parametrize(
    ("name", "kept", "used"),
    [
        ("table", "self.table = table.cuda()", "h = mix(h, self.table)"),
        ("table", 'self.table = table.to("cuda")', "h = mix(h, rows=self.table)"),
        ("a, table", "self.a = self.table = table.cuda()", "h = mix(self.a, [self.table])"),
    ],
)
def test_told(name, kept, used):
    found = told(MODULE.format(name=name, kept=kept, used=used))
    assert [line for line, _ in found] == [8] and "table)`" in found[0][1]


@pytest.mark.parametrize(
    ("name", "kept", "used"),
    [
        ("part", "self.part = part.cuda()", "h = self.part(h)"),
        ("part", "self.part = part.cuda()", "h = run(self.part, h, self.part.training)"),
        ("model", "self.model = model.cuda()", "h = run(self.model, h)"),
        ("part", "self.part = part.cuda()\n        self.both = nn.Sequential(part, self.part)", "h = self.both(h)"),
        ("part", "self.part = part.cuda()", "h = run(copy.deepcopy(self.part), h)"),
        ("part", "self.part = part.cuda()\n        part.eval()", "h = run(self.part, h)"),
        ("part", "self.part = part.cuda()", "pass"),
    ],
)
def test_a_module_is_not(name, kept, used):
    assert (
        told(MODULE.format(name=name, kept=kept, used=used).replace("import torch\n", "import copy\nimport torch\n", 1))
        == []
    )


def test_a_tensor_becomes_a_buffer():
    text = MODULE.format(name="table", kept="self.table = table.cuda()", used="h = h + self.table")
    assert told(text) == [] and "register_buffer" in migrate_text(text).text
