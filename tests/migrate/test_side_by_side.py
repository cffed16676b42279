"""Several processes migrate a folder as one does."""

import multiprocessing
import os
import signal

import pytest
from ptmigrate.migrate import side_by_side as module
from ptmigrate.migrate.project import collect, migrate_all
from ptmigrate.migrate.result import Options
from ptmigrate.migrate.side_by_side import side_by_side
from test_order import ENGINE, MAIN

PLAIN = "import torch\nx = torch.ones({n}).cuda()\n"
forks = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="processes are not forked here"
)


def folder_of_all_kinds(tmp_path):
    """A script whose loop stands in another file, files by themselves, one that is refused and one that is broken."""
    (tmp_path / "train.py").write_text(MAIN.format(engine="engine"))
    (tmp_path / "engine.py").write_text(ENGINE)
    for n in range(1, 7):
        (tmp_path / f"plain{n}.py").write_text(PLAIN.format(n=n))
    (tmp_path / "rpc.py").write_text("import torch.distributed.rpc as rpc\nrpc.init_rpc('a')\nloss.backward()\n")
    (tmp_path / "broken.py").write_text("import torch\nx = (\n")
    (tmp_path / "bare.py").write_text("print('no tensors here')\n")


def told(tmp_path, jobs):
    done = migrate_all(collect([tmp_path]), Options(), jobs=jobs)
    return [(m.path, m.report, m.result and m.result.text) for m in done]


@forks
@pytest.mark.parametrize("jobs", [2, 3])
def test_the_results_are_those_of_one_process(tmp_path, jobs):
    folder_of_all_kinds(tmp_path)
    by_one = told(tmp_path, 1)
    assert told(tmp_path, jobs) == by_one
    assert {report.plan for _, report, _ in by_one} >= {"module", "definitions", "refused", "none"}


@forks
def test_each_process_does_its_share(tmp_path):
    paths = [tmp_path / f"{n}.py" for n in range(4)]
    with side_by_side(paths, lambda path: (path, os.getpid()), 2) as of:
        came = [of(path) for path in paths]
    assert [path for path, _ in came] == paths and os.getpid() not in {pid for _, pid in came}
    assert not multiprocessing.active_children()


@forks
def test_what_a_killed_process_leaves_is_for_the_parent(tmp_path):
    paths = [tmp_path / f"{n}.py" for n in range(4)]
    with side_by_side(paths, lambda _: os.kill(os.getpid(), signal.SIGKILL), 2) as of:
        assert [of(path) for path in paths] == [None] * 4
    assert not multiprocessing.active_children()


@forks
def test_a_failure_ends_the_others(tmp_path):
    paths = [tmp_path / f"{n}.py" for n in range(4)]
    with pytest.raises(KeyError), side_by_side(paths, lambda _: {}["missing"], 2) as of:
        of(paths[0])
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("jobs", [None, 1])
def test_a_small_folder_starts_no_process(tmp_path, monkeypatch, jobs):
    monkeypatch.setattr(module, "ProcessPoolExecutor", None)  # which nothing can call
    folder_of_all_kinds(tmp_path)
    assert len(told(tmp_path, jobs)) == 11


@forks
def test_a_large_folder_starts_as_many_as_cores_are_idle(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "WORTH", 100)
    monkeypatch.setattr(module, "idle_cores", lambda: 2)
    folder_of_all_kinds(tmp_path)
    paths = sorted(tmp_path.glob("plain*.py"))
    with side_by_side(paths, lambda _: os.getpid(), None) as of:
        assert os.getpid() not in {of(path) for path in paths}
