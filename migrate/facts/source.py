"""A Python file from bytes to text to tree, and why that failed when it did.

Nothing is lost on the way: the encoding, the byte order mark and the line ends are kept, so that `encode` gives back
the bytes that an unchanged text came from.
"""

from __future__ import annotations

import ast
import os
import re
import stat
import warnings

from .annotated import as_assignments

UTF8_BOM = b"\xef\xbb\xbf"
# https://peps.python.org/pep-0263/ : a comment on one of the first two lines
COOKIE = re.compile(rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
ONLY_COMMENT = re.compile(rb"[ \t\f]*(?:#.*)?\Z")
LINE = re.compile(rb"[^\r\n]*")

PYTHON_2_MESSAGES = (
    "Missing parentheses in call to",
    "multiple exception types must be parenthesized",
    "leading zeros in decimal integer",
)
PYTHON_2_LINE = re.compile(
    r"\s*print\s+[^=(\s]|\s*print\s*>>|\s*exec\s+[\"'\w]|\s*raise\s+[\w.]+\s*,|.*\bexcept\s+[\w.]+\s*,\s*\w+\s*:"
    r"|.*<>|.*`.+`|.*\b[uU][rR][\"']|.*\b\d+L\b|.*\b0[0-7]+\b|\s*def\s+\w+\(.*\(\s*\w+\s*,"
)
ASYNC_ARGUMENT = re.compile(r"[(,]\s*async\s*=[^=]")


class SourceError(Exception):
    """Why a file could not be read or parsed, and where (1-based line and column)."""

    def __init__(self, path: str, line: int, column: int, reason: str) -> None:
        super().__init__(path, line, column, reason)
        self.path = path
        self.line = line
        self.column = column
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}: {self.reason}"


class Source:
    """One file: its bytes, and its text with line ends as they are and without the byte order mark."""

    __slots__ = ("bom", "encoding", "path", "raw", "text")

    def __init__(self, path: str, raw: bytes, text: str, encoding: str, bom: bytes) -> None:
        self.path = path
        self.raw = raw
        self.text = text
        self.encoding = encoding
        self.bom = bom

    def encode(self, text: str) -> bytes:
        """The bytes of a text in this file's encoding, with its byte order mark."""
        return self.bom + text.encode(self.encoding)


def mentions_torch(raw: bytes) -> bool:
    """Whether the bytes hold the word at all; a file without it is never parsed."""
    return b"torch" in raw


def read_source(path: str | os.PathLike[str]) -> Source:
    """Read and decode a file; raises SourceError."""
    return decode(read_bytes(path), os.fspath(path))


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a regular file (a pipe would wait for ever); raises SourceError."""
    name = os.fspath(path)
    try:
        if not stat.S_ISREG(os.stat(name).st_mode):
            raise SourceError(name, 1, 1, "cannot be read: not a regular file")
        with open(name, "rb", buffering=0) as f:
            return f.read()
    except (OSError, ValueError) as e:  # ValueError: a name with a NUL
        raise SourceError(name, 1, 1, f"cannot be read: {getattr(e, 'strerror', None) or e}") from None


def decode(raw: bytes, path: str = "<stdin>") -> Source:
    """The text of bytes, by their byte order mark, their PEP 263 comment, or as UTF-8; raises SourceError."""
    if b"\0" in raw:
        what = "UTF-16 text" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "a binary file"
        raise SourceError(path, *_place(raw, raw.index(b"\0")), f"NUL byte: {what}, not Python source")
    bom = UTF8_BOM if raw.startswith(UTF8_BOM) else b""
    body = raw[len(bom) :]
    encoding, line = declared_encoding(body)
    if bom and _normal(encoding) not in ("utf8", "utf8sig"):
        raise SourceError(path, line, 1, f"the file starts as UTF-8 (byte order mark) but declares {encoding!r}")
    try:
        return Source(path, raw, body.decode("utf-8" if bom else encoding), "utf-8" if bom else encoding, bom)
    except UnicodeDecodeError as e:
        bad = body[e.start : e.start + 1].hex()
        raise SourceError(path, *_place(body, e.start), f"not valid {encoding}: byte 0x{bad} ({e.reason})") from None
    except LookupError:
        raise SourceError(path, line, 1, f"unknown encoding {encoding!r}") from None
    except (UnicodeError, ValueError, TypeError) as e:
        raise SourceError(path, line, 1, f"cannot be decoded as {encoding}: {e}") from None


def declared_encoding(body: bytes) -> tuple[str, int]:
    """The encoding that a comment in the first two lines declares, and on which line; UTF-8 when none does."""
    if b"coding" not in body[:1000]:
        return "utf-8", 1
    start = 0
    for number in (1, 2):
        end = LINE.match(body, start).end()  # type: ignore[union-attr]
        line = body[start:end]
        found = COOKIE.match(line)
        if found:
            name = found.group(1).decode("ascii", "replace")
            return ("utf-8" if _normal(name) == "utf8" else name), number
        if not ONLY_COMMENT.match(line):
            break
        start = end + (2 if body[end : end + 2] == b"\r\n" else 1)
    return "utf-8", 1


_parsed: dict[str, ast.Module] = {}  # at most one


def parse(source: Source, keep: bool = False) -> ast.Module:
    """The tree of a source; raises SourceError, which says so when the file is Python 2.

    `keep`: until `parsed_before` asks for it.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes and their like are other tools' business
            tree = as_assignments(ast.parse(source.text))
    except SyntaxError as e:
        line, column = max(e.lineno or 1, 1), max(e.offset or 1, 1)
        raise SourceError(source.path, line, column, _syntax_reason(e, source.text)) from None
    except RecursionError:
        raise SourceError(source.path, 1, 1, "nested too deep to be parsed") from None
    except MemoryError:
        raise SourceError(source.path, 1, 1, "too large or nested too deep to be parsed") from None
    except ValueError as e:
        raise SourceError(source.path, 1, 1, f"cannot be parsed: {e}") from None
    if keep:
        _parsed[source.text] = tree
    return tree


def parsed_before(text: str) -> ast.Module | None:
    """The tree of a source that was parsed and kept, for who works on it; once."""
    return _parsed.pop(text, None)


def forget_parsed() -> None:
    """Nobody works on what is kept any more."""
    _parsed.clear()


def _syntax_reason(error: SyntaxError, text: str) -> str:
    message = error.msg or "invalid syntax"
    line = error.text or ""
    if ASYNC_ARGUMENT.search(line):
        return (
            "`async=` is no argument since Python 3.7, where async became a keyword; use non_blocking= (or async_op=)"
        )
    if message.startswith(PYTHON_2_MESSAGES) or (message.startswith("invalid") and PYTHON_2_LINE.match(line)):
        return f"Python 2, which is not supported ({message})"
    kind = "" if type(error) is SyntaxError else f"{type(error).__name__}: "
    return f"syntax error: {kind}{message}"


def is_expression(text: str) -> bool:
    """Is it one expression as it stands, or only within parentheses that were around it?"""
    return parses(text, "eval")


def parses(text: str, mode: str = "exec") -> bool:
    """Is it Python, as today's parser takes it?"""
    try:
        ast.parse(text, mode=mode)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _place(raw: bytes, offset: int) -> tuple[int, int]:
    before = raw[:offset]
    line = before.count(b"\n") + before.count(b"\r") - before.count(b"\r\n") + 1
    return line, offset - max(before.rfind(b"\n"), before.rfind(b"\r"))


def _normal(encoding: str) -> str:
    return encoding.lower().replace("-", "").replace("_", "")
