"""Files that are opened in the statement that writes them, and read again: whole when it is over."""

import pickle

import pytest
import torch
from ptmigrate.migrate.migrate import migrate_text
from ptmigrate.migrate.project import collect, migrate_all
from ptmigrate.migrate.result import Options

from tests.migrate.codemods.test_files_written import once
from tests.migrate.running import check_same, on_one_and_two

HEAD = "import json, pickle, torch\n"
AGAIN = "y = pickle.load(open('a', 'rb'))\n"
WITHIN = {
    "pickle.dump(x, open('a', 'wb'))": "as f:\n    pickle.dump(x, f)",
    "pickle.dump(obj=x, file=open('a', 'wb'), protocol=4)": "as f:\n    pickle.dump(obj=x, file=f, protocol=4)",
    "open('a', 'wb').write(dumped(x))  # all": "as f:\n    f.write(dumped(x))  # all",
    "f = 3\npickle.dump(net.state_dict(), open('a', 'wb'))": "as file:\n    pickle.dump(net.state_dict(), file)",
}


@pytest.mark.parametrize("source", WITHIN)
def test_it_is_opened_in_a_with(source):
    first = "f = 3\n" if source.startswith("f = 3") else ""
    opened = "with rank_zero_file(open)('a', 'wb') " + WITHIN[source]
    assert once(f"{HEAD}# kept\n{source}\n{AGAIN}") == f"{HEAD}{first}# kept\n{opened}\n{AGAIN}".replace(
        f"{first}# kept\n", f"# kept\n{first}"
    )


@pytest.mark.parametrize(
    "source",
    [
        "pickle.dump(load('a'), open('a', 'wb'))",  # which would find it empty
        "n = open('a', 'wb').write(x)",
        "pickle.dump(x, open('a', 'wb')); x = 3",
        "if x: pickle.dump(x, open('a', 'wb'))",
    ],
)
def test_it_stays_where_it_cannot_be(source):
    assert once(f"{HEAD}{source}\n{AGAIN}") == f"{HEAD}{source}\n{AGAIN}"


def test_what_is_not_read_again_is_rank_0_s_where_it_stands():
    source = HEAD + "pickle.dump(x, open('b', 'wb'))\n"
    assert once(source) == source.replace("open(", "on_rank_zero(open)(")


@pytest.mark.parametrize("to", ["open('a', 'wb')", "f=open('a', 'wb')"])
def test_torch_saves_to_the_path(to):
    source = f"{HEAD}torch.save(x, {to})\n{AGAIN}"
    new = to.replace("open('a', 'wb')", "'a'")
    assert once(source) == f"{HEAD}rank_zero_save(x, {new})\n{AGAIN}"


SCRIPT = """
import os, pickle, time
import torch
from torch.utils.data import DataLoader, TensorDataset
if os.environ.get('LOCAL_RANK') == 'LATE':
    time.sleep(2)
torch.manual_seed(0)
pickle.dump(torch.randn(32, 4), open('data.pkl', 'wb'))
x = pickle.load(open('data.pkl', 'rb'))
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for (b,) in DataLoader(TensorDataset(x), batch_size=8, shuffle=True):
        loss = net(b).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save(net.state_dict(), open('last.pt', 'wb'))
    pickle.dump({'epoch': epoch}, open('state.pkl', 'wb'))
state = pickle.load(open('state.pkl', 'rb'))
net.load_state_dict(torch.load(open('last.pt', 'rb')))
with open('done.txt', 'w') as f:
    print(state, file=f)
"""


def test_a_hook_of_an_epoch_waits_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = check_same(SCRIPT, "module")
    assert "        with rank_zero_file(open)('state.pkl', 'wb') as f" in result.replace("as file", "as f")
    assert not [n for n in migrate_text(SCRIPT).attention if n.code == "PTM410"]


@pytest.mark.parametrize("late", ["0", "1"])
def test_two_processes_write_what_one_writes(tmp_path, late):
    text = SCRIPT.replace("LATE", late)
    one, two = on_one_and_two(tmp_path, text, migrate_text(text).text)
    assert (one / "done.txt").read_text() == (two / "done.txt").read_text() == "{'epoch': 1}\n"
    data = [pickle.loads((folder / "data.pkl").read_bytes()) for folder in (one, two)]
    assert torch.equal(*data)


LIBRARY = """
import pickle
import torch
def keep(path, x):
    pickle.dump(x, open(path, 'wb'))
def kept(path):
    return pickle.load(open(path, 'rb'))
"""
MAIN = """
import torch
from torch.utils.data import DataLoader
from library import keep, kept
keep('data.pkl', torch.randn(8, 4))
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for i, x in enumerate(DataLoader(kept('data.pkl'), batch_size=4)):
        loss = net(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        STEP
    EPOCH
"""


def migrated_library(tmp_path, step, epoch):
    (tmp_path / "library.py").write_text(LIBRARY)
    (tmp_path / "main.py").write_text(MAIN.replace("STEP", step).replace("EPOCH", epoch))
    done = migrate_all(collect([tmp_path / "main.py"]), Options())
    return next(m for m in done if m.path.stem == "library")


@pytest.mark.parametrize("epoch", ["pass", "keep('last.pkl', net.state_dict())", "if epoch: keep('last.pkl', epoch)"])
def test_in_an_imported_file_all_wait_where_all_come(tmp_path, epoch):
    library = migrated_library(tmp_path, "pass", epoch)
    assert "    with rank_zero_file(open)(path, 'wb') as f:\n        pickle.dump(x, f)" in library.data.decode()
    assert not library.report.attention


@pytest.mark.parametrize(
    ("step", "epoch"), [("keep('x.pkl', x)", "pass"), ("pass", "if x.max() < 9: keep('last.pkl', 1)")]
)
def test_where_not_all_may_come_it_is_told(tmp_path, step, epoch):
    library = migrated_library(tmp_path, step, epoch)
    told = [n.message for n in library.report.attention if n.code == "PTM410"]
    assert any("`open(path, 'wb')`: every process that comes here writes it" in m for m in told)
    assert "rank_zero" not in library.data.decode()


KEEPS = """
import json, os
class Stats:
    def __init__(self, path):
        self.path, self.rows = path, []
        if os.path.isfile(path):
            with open(path) as f:
                self.rows = json.load(f)
    def keep(self, row):
        self.rows.append(row)
        with open(self.path, 'w') as f:
            json.dump(self.rows, f)
"""
SAYS = """
def say(net, path):
    with open(path, 'w') as f:
        f.write(str(net))
def unused(net, path):
    with open(path, 'w') as f:
        f.write(str(net))
"""


@pytest.mark.parametrize(
    ("step", "epoch", "told"),
    [
        ("say(net, 'net.txt')", "pass", ["`open(path, 'w')`: every process that comes here writes it, where not each"]),
        ("pass", "say(net, 'net.txt')", []),
        (
            "pass",
            "stats.keep(epoch)",
            ["`open(self.path, 'w')`: every process that comes here writes it, and it may be"],
        ),
        ("pass", "pass", []),
    ],
)
def test_what_a_step_or_an_object_writes_in_another_file(tmp_path, step, epoch, told):
    keeps = "stats" in epoch
    (tmp_path / "says.py").write_text(KEEPS if keeps else SAYS)
    main = MAIN.replace("library import keep, kept", f"says import {'Stats' if keeps else 'say'}").replace("STEP", step)
    begins = "stats = Stats('stats.json')" if keeps else "pass"
    main = main.replace("keep('data.pkl', torch.randn(8, 4))", begins).replace("EPOCH", epoch)
    (tmp_path / "main.py").write_text(main.replace("kept('data.pkl')", "torch.randn(8, 4)"))
    done = {m.path.stem: m for m in migrate_all(collect([tmp_path / "main.py"]), Options())}
    notes = [n.message for n in done["says"].report.attention if n.code == "PTM410"]
    assert len(notes) == len(told) and all(n.startswith(t) for n, t in zip(notes, told, strict=True))
