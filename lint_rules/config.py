"""`[tool.ptmigrate]` in the nearest pyproject.toml, checked: a misspelt key is an error that names the nearest one."""

from __future__ import annotations

import os
from typing import Any

from .cli import FORMATS

LISTS = ("select", "ignore", "exclude")
KEYS = (*LISTS, "per-file-ignores", "output-format", "jobs", "cache", "unsafe-fixes")


class ConfigError(ValueError):
    """What is wrong with a configuration file, with its path."""


class Config:
    def __init__(self, root: str = "", values: dict[str, Any] | None = None) -> None:
        self.root = root or os.getcwd()
        self.path = ""  # of the file that it was read from
        values = values or {}
        self.select: list[str] = values.get("select", [])
        self.ignore: list[str] = values.get("ignore", [])
        self.exclude: list[str] = values.get("exclude", [])
        self.per_file_ignores: dict[str, list[str]] = values.get("per-file-ignores", {})
        self.output_format: str | None = values.get("output-format")
        self.jobs: int | None = values.get("jobs")
        self.cache: bool = values.get("cache", True)
        self.unsafe_fixes: bool = values.get("unsafe-fixes", False)

    def ignored(self, path: str) -> list[str]:
        """The codes that per-file-ignores names for a path."""
        if not self.per_file_ignores:
            return []
        from fnmatch import fnmatch

        inside = os.path.relpath(os.path.abspath(path), self.root).replace(os.sep, "/")
        name = inside.rpartition("/")[2]
        return [
            code
            for pattern, codes in self.per_file_ignores.items()
            if fnmatch(inside, pattern) or fnmatch(name, pattern) or fnmatch(inside, pattern.rstrip("/") + "/*")
            for code in codes
        ]


def load(start: str, named: str | None = None) -> Config:
    """The configuration that holds for a folder: the nearest pyproject.toml upwards that has our table."""
    if named is not None:
        try:
            with open(named, "rb") as file:
                return _read(named, file.read())
        except OSError as error:
            raise ConfigError(f"{named}: {error.strerror}") from None
    folder = os.path.abspath(start)
    while True:
        path = os.path.join(folder, "pyproject.toml")
        if os.path.isfile(path):
            try:
                with open(path, "rb") as file:
                    data = file.read()
            except OSError:
                data = b""
            if b"[tool.ptmigrate" in data:
                return _read(path, data)
        above = os.path.dirname(folder)
        if above == folder:
            return Config()
        folder = above


def _read(path: str, data: bytes) -> Config:
    import sys

    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        document = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from None
    tools = document.get("tool", {})
    table = tools.get("ptmigrate", {}) if isinstance(tools, dict) else {}
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: [tool.ptmigrate] must be a table, not {table!r}")
    _check(path, table)
    config = Config(os.path.dirname(os.path.abspath(path)), table)
    config.path = path
    return config


def _check(path: str, table: dict[str, Any]) -> None:
    for key, value in table.items():
        where = f"{path}: [tool.ptmigrate] {key}"
        if key in LISTS:
            good = isinstance(value, list) and all(isinstance(v, str) for v in value)
            wanted = "a list of strings"
        elif key == "per-file-ignores":
            good = isinstance(value, dict) and all(
                isinstance(codes, list) and all(isinstance(c, str) for c in codes) for codes in value.values()
            )
            wanted = "a table of lists of codes"
        elif key == "output-format":
            good, wanted = value in FORMATS, "one of " + ", ".join(FORMATS)
        elif key == "jobs":
            good, wanted = type(value) is int and value > 0, "a number of processes"
        elif key in ("cache", "unsafe-fixes"):
            good, wanted = isinstance(value, bool), "true or false"
        else:
            raise ConfigError(f"{path}: [tool.ptmigrate] has no key {key!r}" + _nearest(key))
        if not good:
            raise ConfigError(f"{where} must be {wanted}, not {value!r}")


def _nearest(key: str) -> str:
    import difflib

    near = difflib.get_close_matches(key, KEYS, 1, 0.5)
    return f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(KEYS)}"
