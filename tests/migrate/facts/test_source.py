"""Bytes to text and back, and what is said of files that cannot be read."""

from __future__ import annotations

import os
import pickle

import pytest
from ptmigrate.migrate.facts.source import SourceError, decode, mentions_torch, parse, read_source


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"import torch\n",
        b"import torch\r\nx = 1\r\n",
        b"x = 1\ry = 2\r",
        b"x = 1\r\ny = 2\n\x0cz = 3",
        b"\xef\xbb\xbfx = '\xc3\xa9'\n",
        b"\xef\xbb\xbf# -*- coding: utf-8 -*-\r\nx = 1",
        b"# -*- coding: latin-1 -*-\nx = '\xe9'\n",
        b"#!/usr/bin/env python\r\n# vim: set fileencoding=cp1252 :\r\nx = '\x80'\r\n",
        "# coding=shift_jis\nx = '日本'\n".encode("shift_jis"),
        "x = '日本'\n".encode(),
    ],
)
def test_round_trip(raw, tmp_path):
    path = tmp_path / "a.py"
    path.write_bytes(raw)
    source = read_source(path)
    assert source.encode(source.text) == raw == source.raw
    assert not source.text.startswith("\ufeff")
    parse(source)


def test_the_encoding_is_the_declared_one():
    assert decode(b"#\n# coding: latin-1\nx = '\xe9'").text.endswith("'é'")
    assert decode(b"x = 1\n# coding: latin-1\n").encoding == "utf-8"
    assert decode(b"#\n#\n# coding: latin-1\n").encoding == "utf-8"


@pytest.mark.parametrize(
    ("raw", "line", "column", "reason"),
    [
        (b"import torch\nx = 'a\0b'\n", 2, 7, "NUL byte: a binary file"),
        ("import torch".encode("utf-16"), 1, 4, "NUL byte: UTF-16 text"),
        (b"a = 1\r\nb = '\xe9'\r\n", 2, 6, "not valid utf-8: byte 0xe9"),
        (b"# coding: klingon\n", 1, 1, "unknown encoding 'klingon'"),
        (b"#\n# coding: rot13\n", 2, 1, "unknown encoding 'rot13'"),
        (b"\xef\xbb\xbf# coding: latin-1\n", 1, 1, "declares 'latin-1'"),
    ],
)
def test_what_cannot_be_decoded(raw, line, column, reason):
    with pytest.raises(SourceError) as e:
        decode(raw, "a.py")
    assert (e.value.line, e.value.column) == (line, column)
    assert str(e.value).startswith(f"a.py:{line}:{column}: ")
    assert reason in e.value.reason


@pytest.mark.parametrize(
    "text",
    [
        "print 'x'\n",
        "print x\n",
        "try:\n    pass\nexcept ValueError, e:\n    pass\n",
        "raise ValueError, 'x'\n",
        "x = 0777\n",
        "x = 10L\n",
        "exec 'x'\n",
        "if a <> b:\n    pass\n",
        "x = `y`\n",
        "x = ur'a'\n",
    ],
)
def test_python_2_is_named(text):
    with pytest.raises(SourceError, match="Python 2"):
        parse(decode(text.encode()))


@pytest.mark.parametrize(
    "text",
    ["def f(:\n", "x = (1,\n", "if x:\npass\n", "x = 1 +\n", "\tx\n  y\n", "x = $\n", "x = 3.cuda()\n", "x = 2d\n"],
)
def test_other_syntax_errors_are_not_python_2(text):
    with pytest.raises(SourceError, match=r":\d+:\d+: syntax error") as e:
        parse(decode(text.encode()))
    assert "Python 2" not in str(e.value)


@pytest.mark.parametrize(
    "text", ["x = " + "(" * 500 + ")" * 500, "x = " + "-" * 100_000 + "1", "x = 1" + " + 1" * 100_000]
)
def test_too_deep_is_an_error_and_no_crash(text):
    try:
        parse(decode(text.encode()))
    except SourceError as e:
        assert e.line >= 1


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(SourceError, match="No such file"):
        read_source(tmp_path / "gone.py")
    with pytest.raises(SourceError, match="not a regular file"):
        read_source(tmp_path)
    loop = tmp_path / "loop.py"
    loop.symlink_to(loop)
    with pytest.raises(SourceError, match="symbolic links"):
        read_source(loop)
    os.mkfifo(tmp_path / "pipe.py")
    with pytest.raises(SourceError, match="not a regular file"):
        read_source(tmp_path / "pipe.py")


def test_errors_travel_between_processes():
    error = SourceError("a.py", 2, 3, "why")
    assert str(pickle.loads(pickle.dumps(error))) == str(error) == "a.py:2:3: why"


def test_mentions_torch():
    assert mentions_torch(b"import torch")
    assert not mentions_torch(b"import numpy")


def test_async_as_an_argument_is_named():
    with pytest.raises(SourceError, match=r":2:\d+: `async=` is no argument since Python 3.7.*non_blocking="):
        parse(decode(b"import torch\nx = x.cuda(0, async=True)\n"))
