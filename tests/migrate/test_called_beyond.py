"""A method, or a function, that another file of the project calls is not written into the loop of its own file."""

import pytest
from ptmigrate.migrate.migrate import Options
from ptmigrate.migrate.project import collect, migrate_all

from tests import forked

OTHER = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

class Before:
    def __init__(self):
        torch.manual_seed(0)
        self.loader = DataLoader(TensorDataset(torch.randn(32, 4), torch.randn(32, 1)), batch_size=8)
        self.model = torch.nn.Linear(4, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def train(self):
        for epoch in range(2):
            self.model.train()
            for x, y in self.loader:
                self.optimizer.zero_grad()
                loss = ((self.model(x) - y) ** 2).mean()
                loss.backward()
                self.optimizer.step()
            print(epoch, loss.item())
"""
FITTER = """\
import torch
from other import Before
from torch.utils.data import DataLoader

class Fitter:
    def __init__(self):
        before = Before()
        before.train()
        self.model = before.model
        self.train_loader = DataLoader(before.loader.dataset, batch_size=8)
        self.loader = DataLoader(before.loader.dataset, batch_size=8)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def train(self):
        for epoch in range(2):
            self.model.train()
            for x, y in self.train_loader:
                self.optimizer.zero_grad()
                loss = ((self.model(x) - y) ** 2).mean()
                loss.backward()
                self.optimizer.step()
            found = {call}
            print(epoch, found)

    def test(self, says=False):
        total = 0
        self.model.eval()
        with torch.no_grad():
            for x, y in self.loader:
                total += ((self.model(x) - y) ** 2).mean().item()
        if says:
            print("test")
        return total

def evaluate(model, loader):
    total = 0
    model.eval()
    with torch.no_grad():
        for x, y in loader:
            total += ((model(x) - y) ** 2).mean().item()
    return total
"""
CALLS = {"method": "self.test()", "function": "evaluate(self.model, self.loader)"}
FIT = "from fitter import Fitter\nfitter = Fitter()\nfitter.train()\n"


def migrated(folder, main, call):
    """What a project's files become, and what it prints before and after."""
    folder.mkdir()
    for name, text in (("main", main), ("fitter", FITTER.replace("{call}", call)), ("other", OTHER)):
        (folder / f"{name}.py").write_text(text)
    before = forked.run("main.py", cwd=folder)
    for m in migrate_all(collect([folder]), Options()):
        m.path.write_bytes(m.data)
    after = forked.run("main.py", cwd=folder)
    assert before.returncode == after.returncode == 0, before.stderr + after.stderr
    assert [s for s in after.stdout.splitlines() if not s.startswith("ptmigrate")] == before.stdout.splitlines()
    return (folder / "fitter.py").read_text()


@pytest.mark.parametrize(
    ("call", "main"),
    [
        ("method", FIT + "print(fitter.test(says=True))\n"),
        ("method", FIT + "def again(it):\n    print(it.test())\nagain(fitter)\n"),
        ("method", "from fitter import Fitter\nclass Mine(Fitter):\n    def all(self):\n        self.train()\n"
         "        print(self.test())\nMine().all()\n"),
        ("method", "import fitter as f\nit = f.Fitter()\nit.train()\nprint(it.test())\n"),
        ("function", FIT + "from fitter import evaluate\nprint(evaluate(fitter.model, fitter.loader))\n"),
        ("function", FIT + "import fitter as f\nprint(f.evaluate(fitter.model, fitter.loader))\n"),
    ],
)  # fmt: skip
def test_it_stays(tmp_path, call, main):
    after = migrated(tmp_path / "project", main, CALLS[call])
    assert "(Module)" in after and ("    def test(self, says" if call == "method" else "\ndef evaluate(model") in after


@pytest.mark.parametrize(
    ("call", "main"),
    [
        ("method", FIT),
        ("method", FIT + "import os\nprint(os.path.exists('test'), 'it.test()')\n"),
        ("method", FIT + "class Net:\n    def test(self):\n        print(1)\nnet = Net()\nnet.test()\n"),
    ],
)
def test_what_nobody_else_calls_is_written_in(tmp_path, call, main):
    after = migrated(tmp_path / "project", main, CALLS[call])
    assert "validation_step" in after and "def test(" not in after


PASSES = """\
import torch
from torch.utils.data import DataLoader

class Fitter:
    def __init__(self, model, data, test_data):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.train_loader, self.test_loader = DataLoader(data, 4), DataLoader(test_data, 4)

    def _run_batch(self, x, y, train):
        with torch.set_grad_enabled(train):
            loss = ((self.model(x) - y) ** 2).mean()
        if train:
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss.item()

    def _run_epoch(self, epoch, loader, train):
        for i, (x, y) in enumerate(loader):
            found = self._run_batch(x, y, train)
            print(epoch, i, train, found)

    def fit(self):
        for epoch in range(2):
            self._run_epoch(epoch, self.train_loader, train=True)
            self._run_epoch(epoch, self.test_loader, train=False)
"""
FITS = """\
import torch
from fitter import Fitter

torch.manual_seed(0)
data = [(torch.randn(4), torch.randn(1)) for i in range(20)]
Fitter(torch.nn.Linear(4, 1), data, data[:9]).fit()
"""


def test_what_a_class_calls_of_its_own_where_it_was_is_no_call_of_another_file(tmp_path):
    (tmp_path / "fitter.py").write_text(PASSES)
    (tmp_path / "train.py").write_text(FITS)
    done = {m.path.name: m.result for m in migrate_all(collect([tmp_path / "train.py"]), Options())}
    assert done["train.py"].plan == "module"


DERIVED = {
    "itself": "from fitter import Fitter\n\nclass Mine(Fitter):\n",
    "by its module": "import fitter\n\nclass Mine(fitter.Fitter):\n",
    "by a class between": "from fitter import Fitter\n\nclass Between(Fitter):\n    pass\n\nclass Mine(Between):\n",
}
TESTS = "    def all(self):\n        self.train()\n        print(self.test())\nMine().all()\n"


@pytest.mark.parametrize("derived", DERIVED)
def test_a_class_that_derives_from_it_calls_it(tmp_path, derived):
    after = migrated(tmp_path / "project", DERIVED[derived] + TESTS, CALLS["method"])
    assert "(Module)" in after and "    def test(self, says" in after


NOT_ITS_OWN = {
    "the second argument": "class S:\n    def all(self, it):\n        print(it.test())\nS().all(fitter)\n",
    "of a static method": "class S:\n    @staticmethod\n    def all(it):\n        print(it.test())\nS.all(fitter)\n",
    "a name bound anew": "class S:\n    def all(self):\n        self = fitter\n        print(self.test())\nS().all()\n",
}


@pytest.mark.parametrize("call", NOT_ITS_OWN)
def test_what_is_no_object_of_the_class_that_calls_it_may_be_one_of_it(tmp_path, call):
    after = migrated(tmp_path / "project", FIT + NOT_ITS_OWN[call], CALLS["method"])
    assert "(Module)" in after and "    def test(self, says" in after
