"""What is no Python file, cannot be read, or leads nowhere: told in one line, and the rest goes on."""

from __future__ import annotations

import ctypes
import json
import os
import socket
import sys

import pytest
from ptmigrate.lint_rules.walk import python_files
from ptmigrate.migrate.facts.source import SourceError
from test_cli import BAD, ptlint

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs links and pipes")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "bad.py").write_text(BAD)
    return tmp_path


def goes_on(folder, *arguments, **options):
    """What standard error says, where the one finding is told all the same and the status is 2."""
    done = ptlint(*arguments, cwd=folder, **options)
    assert done.returncode == 2, done.stderr
    assert done.stdout.startswith("bad.py:2:9: PTM101")
    assert "Traceback" not in done.stderr
    document = json.loads(ptlint("--output-format=json", *arguments, cwd=folder, **options).stdout)
    assert len(document["errors"]) == len(done.stderr.splitlines())
    return done.stderr


def test_a_pipe_is_not_waited_for(folder):
    os.mkfifo(folder / "pipe.py")
    assert "pipe.py:1:1: cannot be read: not a regular file" in goes_on(folder)
    assert "pipe.py:1:1: cannot be read: not a regular file" in goes_on(folder, "pipe.py", "bad.py")


def test_a_socket(folder, monkeypatch):
    monkeypatch.chdir(folder)  # the name of a socket has to be short
    with socket.socket(socket.AF_UNIX) as s:
        s.bind("socket.py")
        assert "socket.py:1:1: cannot be read: not a regular file" in goes_on(folder)


def test_a_link_to_nothing(folder):
    (folder / "gone.py").symlink_to("nowhere.py")
    assert "gone.py:1:1: cannot be read: no such file" in goes_on(folder).lower()


def test_a_link_to_a_folder_elsewhere_is_left(folder, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "bad.py").write_text(BAD)
    (folder / "there").symlink_to(elsewhere)
    assert ptlint(cwd=folder).stdout.count("PTM101") == 1
    assert ptlint("there", cwd=folder).stdout.count("PTM101") == 1  # named, so wanted


def test_links_in_a_ring(folder):
    for name in ("a", "b"):
        (folder / name).mkdir()
    (folder / "a" / "to").symlink_to(folder / "b")
    (folder / "b" / "to").symlink_to(folder / "a")
    (folder / "one.py").symlink_to("two.py")
    (folder / "two.py").symlink_to("one.py")
    said = goes_on(folder)
    assert said.count("a symbolic link that leads back to itself") == 2


def test_a_folder_called_like_a_file(folder):
    (folder / "folder.py").mkdir()
    (folder / "folder.py" / "inner.py").write_text("import torch\n")
    assert ptlint(cwd=folder).returncode == 1


def test_what_vanishes_between_listing_and_reading(folder):
    """Folders are listed one after the other, so that one can be gone when its turn comes."""
    (folder / "a").mkdir()
    (folder / "z").mkdir()
    (folder / "a" / "x.py").write_text("import torch\n")
    found = []
    for path in python_files([str(folder)]):
        found.append(path)
        if str(path).endswith("x.py"):
            (folder / "z").rmdir()
    assert isinstance(found[-1], SourceError)
    assert "cannot list the folder: no such file or directory" in str(found[-1])


def _obeys_permissions():
    """In the child: root without the capabilities to read whatever is there."""
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs capabilities")
def test_without_permission(folder):
    options = {"preexec_fn": _obeys_permissions} if os.geteuid() == 0 else {}
    (folder / "closed").mkdir()
    (folder / "closed").chmod(0)
    (folder / "secret.py").write_text(BAD)
    (folder / "secret.py").chmod(0)
    try:
        said = goes_on(folder, **options)
    finally:
        (folder / "closed").chmod(0o700)
    assert "closed:1:1: cannot list the folder: permission denied" in said
    assert "secret.py:1:1: cannot be read: permission denied" in said.lower()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs capabilities")
def test_a_file_that_cannot_be_written_is_told(folder):
    options = {"preexec_fn": _obeys_permissions} if os.geteuid() == 0 else {}
    (folder / "old.py").write_text("from torch.autograd import Variable\nx = Variable(x)\n")
    folder.chmod(0o500)
    try:
        done = ptlint("--fix", "--no-cache", "old.py", "bad.py", cwd=folder, **options)
    finally:
        folder.chmod(0o700)
    assert done.returncode == 2
    assert "old.py:1:1: cannot be written: permission denied" in done.stderr
    assert "PTM601" in done.stdout and "PTM101" in done.stdout
    assert "Variable(x)" in (folder / "old.py").read_text()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\xff\xfei\x00m\x00", "NUL byte: UTF-16 text"),
        (b"\x7fELF\x02\x01\x01\x00torch", "NUL byte: a binary file"),
        (b"# coding: utf-8\nimport torch\ns = '\xe9'\n", "3:6: not valid utf-8"),
        (b"\xef\xbb\xbf# coding: latin-1\nimport torch\n", "declares 'latin-1'"),
        (b"# coding: rot13\nvzcbeg gbepu  # torch\n", "1:1: "),
        (b"import torch\nx = 'abc\n", "2:5: syntax error"),
        (b"import torch\n\tx = 1\n", "2:1: syntax error: IndentationError"),
        (b"import torch\n" + b"[" * 5000 + b"]" * 5000, "2:"),
        (b"import torch\n" + b"-" * 20000 + b"1\n", "too large or nested too deep"),
        (b"import torch\nx = " + b"9" * 5000 + b"\n", "2:1: syntax error: Exceeds the limit"),
    ],
)
def test_data_that_is_no_python(folder, data, said):
    (folder / "odd.py").write_bytes(data)
    assert said in goes_on(folder).partition("odd.py:")[2]


def test_five_hundred_deep(folder):
    """Nested as deep as the parser takes it: linted like any other."""
    text = "import torch\n" + "".join(" " * i + "if x:\n" for i in range(95)) + " " * 95 + "m = net.cuda()\n"
    (folder / "blocks.py").write_text(text)
    chain = "import torch\ny = " + "f(" * 90 + "net.cuda()" + ")" * 90 + "\n"
    (folder / "calls.py").write_text(chain)
    (folder / "sum.py").write_text("import torch\nz = net.cuda()" + " + 1" * 500 + "\n")
    (folder / "elif.py").write_text("import torch\nif a: pass\n" + "elif b: pass\n" * 500 + "else: net.cuda()\n")
    (folder / "chain.py").write_text("import torch\nw = net.cuda()" + ".a()" * 500 + "\n")
    done = ptlint("--select", "PTM101", cwd=folder)
    assert done.stderr == ""
    names = {line.partition(":")[0] for line in done.stdout.splitlines()}
    assert names == {"bad.py", "blocks.py", "calls.py", "sum.py", "elif.py", "chain.py"}


def test_a_long_generated_file(folder):
    lines = "\n".join(f"t{i} = torch.zeros({i}, device='cuda' if flag else 'cpu')" for i in range(50_000))
    (folder / "long.py").write_text(f"import torch\n{lines}\nm = net.cuda()\n")
    done = ptlint("--select", "PTM101", "long.py", cwd=folder)
    assert done.stdout == "long.py:50002:5: PTM101 `net.cuda()` places by hand, and on CUDA only\n"


def test_a_comprehension_that_goes_through_its_own_name(folder):
    (folder / "own.py").write_text("import torch\ndef f(x):\n    return [x.cuda() for x in x]\n")
    done = ptlint("--select", "PTM101", "own.py", cwd=folder)
    assert done.stdout == "own.py:3:13: PTM101 `x.cuda()` places by hand, and on CUDA only\n"


@pytest.mark.slow
def test_ten_thousand_files(folder):
    for i in range(100):
        (folder / f"d{i}").mkdir()
        for j in range(100):
            text = "import torch\nm = net.cuda()\n" if j % 10 == 0 else f"x = {j}\n"
            (folder / f"d{i}" / f"f{j}.py").write_text(text)
    plain = ptlint("--no-cache", "--jobs", "1", cwd=folder)
    assert (plain.returncode, plain.stdout.count("PTM101")) == (1, 1001)
    assert ptlint("--no-cache", "--jobs", "2", cwd=folder).stdout == plain.stdout
    assert ptlint(cwd=folder).stdout == ptlint(cwd=folder).stdout == plain.stdout
