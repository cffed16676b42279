"""Which files a dotted name imports from a folder."""

import os

import pytest
from ptmigrate.migrate.import_folders import Folders


@pytest.fixture
def root(tmp_path):
    for name in ("train.py", "nets/__init__.py", "nets/unet.py", "nets/parts/conv.py", "nets.py", "data/sets.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("train", ["train.py"]),
        ("nets", ["nets/__init__.py"]),  # a package comes before a module
        ("nets.unet", ["nets/__init__.py", "nets/unet.py"]),
        ("nets.parts.conv", ["nets/__init__.py", "nets/parts/conv.py"]),
        ("data.sets", ["data/sets.py"]),
        (".nets.unet", ["nets/__init__.py", "nets/unet.py"]),
        ("torch", []),
        ("data", []),
        ("nets.train", []),
        ("nets.parts", []),
        ("", []),
    ],
)
def test_a_name_gives(root, name, files):
    assert Folders().find(root, tuple(name.split("."))) == tuple(root / f for f in files)


def test_a_folder_that_is_not_there(tmp_path):
    assert Folders().find(tmp_path / "gone", ("train",)) == ()


def test_a_folder_is_listed_once(root, monkeypatch):
    listed, plain = [], os.listdir
    monkeypatch.setattr(os, "listdir", lambda folder: listed.append(folder) or plain(folder))
    folders = Folders()
    for name in ("nets.unet", "nets.other", "torch.nn", "nets.unet"):
        folders.find(root, tuple(name.split(".")))
    assert listed and len(listed) == len(set(listed))
