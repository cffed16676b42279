"""Saves that no two processes make at the same place."""

import ast

import pytest
from ptmigrate.migrate.facts.own_files import saves_its_own
from ptmigrate.migrate.facts.script import Facts

HEAD = "import io, os, tempfile, uuid\nimport torch\n"
KEEPER = """
class Keeper:
    def __init__(self, path):
        self.path = path

    def keep(self, state):
        torch.save(state, self.path)

"""


def saved(source):
    facts = Facts(HEAD + source)
    (call,) = (c for c in facts.walk(ast.Call) if facts.names.resolve(c.func) == "torch.save")
    return saves_its_own(facts, call)


@pytest.mark.parametrize(
    "source",
    [
        "torch.save(x, io.BytesIO())",
        "torch.save(x, f=io.BytesIO())",
        "kept = io.BytesIO()\ntorch.save(x, kept)",
        "path = 'models/' + uuid.uuid4().hex + '.pt'\ntorch.save(x, path)",
        "name = uuid.uuid4().hex\npath = f'models/{name}.pt'\ndef f():\n    torch.save(x, path)",
        "torch.save(x, os.path.join(tempfile.mkdtemp(), 'a.pt'))",
        "torch.save(x, '%d.pt' % os.getpid())",
        KEEPER + "Keeper(uuid.uuid4().hex)",
    ],
)
def test_of_this_process_alone(source):
    assert saved(source)


@pytest.mark.parametrize(
    "source",
    [
        "torch.save(x, 'a.pt')",
        "torch.save(x)",
        "torch.save(uuid.uuid4().hex, 'a.pt')",
        "torch.save(x, tempfile.gettempdir() + '/a.pt')",
        "torch.save(x, os.path.join(tempfile.gettempdirb().decode(), 'a.pt'))",
        "path = 'a.pt'\nif y:\n    path = uuid.uuid4().hex\ntorch.save(x, path)",
        "def f(path):\n    torch.save(x, path)\nf(g())",
        "import time\ntorch.save(x, time.strftime('%H') + '.pt')",  # in one second it is the same
        KEEPER + "Keeper('a.pt')",
        KEEPER + "Keeper(uuid.uuid4().hex)\nKeeper('a.pt')",
        KEEPER + "k = Keeper(uuid.uuid4().hex)\nk.path = 'a.pt'",
    ],
)
def test_of_all(source):
    assert not saved(source)
