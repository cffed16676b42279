"""Annotated assignments are assignments, wherever they are no fields of a class."""

import ast

import pytest
from ptmigrate.migrate.facts.annotated import as_assignments
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.migrate import migrate_text


def nodes(source):
    return list(ast.walk(as_assignments(ast.parse(source))))


@pytest.mark.parametrize(
    "source",
    [
        "x: int = 3",
        "def f():\n    x: int = 3",
        "class A:\n    def f(self):\n        self.x: int = 3",
        "if a:\n    pass\nelse:\n    x: int = 3",
        "try:\n    pass\nexcept E:\n    x: int = 3",
        "match a:\n    case 1:\n        x: int = 3",
        "with a:\n    for b in c:\n        x[0]: 'a b' = 3",
    ],
)
def test_what_assigns_is_an_assignment(source):
    (found,) = (n for n in nodes(source) if isinstance(n, ast.Assign))
    assert isinstance(found.value, ast.Constant) and len(found.targets) == 1
    assert ast.unparse(as_assignments(ast.parse(source))) == ast.unparse(ast.parse(source))


@pytest.mark.parametrize(
    "source",
    [
        "x: int",
        "class A:\n    x: int = 3",
        "class A:\n    if a:\n        x: int = 3",
        "class A:\n    try:\n        x: int = 3\n    except E:\n        pass",
        "def f():\n    class A:\n        x: int = 3",
    ],
)
def test_fields_and_names_without_a_value_stay(source):
    assert not any(isinstance(n, ast.Assign) for n in nodes(source))
    assert any(isinstance(n, ast.AnnAssign) for n in nodes(source))


def test_what_an_annotation_reads_is_read():
    facts = Facts("import t\nx: t.A = 3\n")
    assert [n.id for n in facts.walk(ast.Name)].count("t") == 1
    assert len(facts.walk(ast.Assign)) == 1 and not facts.walk(ast.AnnAssign)


SCRIPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader

device{} = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model{} = nn.Linear(2, 1).to(device)
optimizer{} = torch.optim.SGD(model.parameters(), lr=0.1)
criterion{} = nn.MSELoss()
loader{} = DataLoader(data, batch_size=4)
for epoch in range(3):
    total{} = 0.0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss{} = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(epoch, total)
"""


def test_a_script_of_annotated_names_becomes_what_a_plain_one_does():
    plain = migrate_text(SCRIPT.replace("{}", ""))
    annotated = migrate_text(SCRIPT.replace("{}", ": object"))
    assert plain.plan == annotated.plan == "module"
    assert annotated.text.replace(": object", "") == plain.text


def test_an_iterator_made_anew_is_found_under_annotations_too():
    source = """\
import torch
loader = make()
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
it{} = iter(loader)
for step in range(100):
    try:
        x{} = next(it)
    except StopIteration:
        it = iter(loader)
        x = next(it)
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
"""
    plain, annotated = (migrate_text(source.replace("{}", a)) for a in ("", ": object"))
    assert "next(" not in plain.text and annotated.text.replace(": object", "") == plain.text
