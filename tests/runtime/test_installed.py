"""A package is here when it can be imported: a user's own file of its name is not it."""

import sys

import pytest
from ptmigrate.runtime.installed import installed


@pytest.mark.parametrize("name", ["torch", "numpy"])
def test_here(name):
    assert installed(name)


@pytest.mark.parametrize("name", ["nothing_of_the_kind", "nothing.of_the_kind", ""])
def test_not_here(name):
    assert not installed(name)


@pytest.mark.parametrize("own", ["bagua.py", "bagua/readme.txt"])
def test_a_users_own_file_or_folder(tmp_path, monkeypatch, own):
    path = tmp_path / own
    path.parent.mkdir(exist_ok=True)
    path.write_text("raise SystemExit('this is no package')")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "bagua", raising=False)
    assert not installed("bagua")
