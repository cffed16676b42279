"""From bytes to findings: one parse, one walk, each node sent to the rules that asked for it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from ptmigrate.migrate.facts.nodes import forget_nodes
from ptmigrate.migrate.facts.source import Source, SourceError, decode, mentions_torch, parse

from .file import File
from .noqa import Suppressions
from .rule import NODE_CHECKS, Finding, Rule

Check = Callable[[Any, File], Iterator[Finding]]

# A file that imports none of these trains nothing; what it says of torch stands in comments and strings.
FAMILY = ("lightning", "accelerate", "apex", "deepspeed", "fairscale", "horovod", "ignite", "timm", "transformers")


class Linter:
    """A set of rules, ready to look at files."""

    def __init__(self, rules: list[Rule], report_unused: bool = True) -> None:
        self.rules = rules
        self.codes = {rule.code for rule in rules} | ({"PTM001"} if report_unused else set())
        self.by_call: dict[str, list[Check]] = {}
        self.by_type: dict[type[ast.AST], list[Check]] = {}
        self.whole: list[Callable[[File], Iterator[Finding]]] = []
        for rule in rules:
            self._register(rule)

    def _register(self, rule: Rule) -> None:
        for name in rule.calls:
            self.by_call.setdefault(name, []).append(rule.check_call)
        for method, kinds in NODE_CHECKS.items():
            check: Check | None = getattr(rule, method, None)
            if check is not None:
                for kind in kinds:
                    self.by_type.setdefault(kind, []).append(check)
        if type(rule).check_file is not Rule.check_file:
            self.whole.append(rule.check_file)

    def lint_bytes(self, data: bytes, path: str) -> list[Finding]:
        """The findings of a file, in the order of the text; SourceError where it cannot be read as Python."""
        source = decode(data, path)  # says what is wrong with files that are no text at all
        if not mentions_torch(data):
            return []
        return self.lint_source(source)

    def lint_source(self, source: Source) -> list[Finding]:
        try:
            return self.lint_file(file_of(source), source)
        finally:
            forget_nodes()

    def lint_file(self, file: File, source: Source) -> list[Finding]:
        try:
            findings = list(self._run(file)) if imports_torch(file) else []
        except RecursionError:
            raise SourceError(source.path, 1, 1, "nested too deep to be checked") from None
        if "noqa" in source.text.lower():
            findings = Suppressions(file.lines, file.nodes).apply(findings, self.codes)
        return sorted(set(findings), key=lambda f: (f.line, f.column, f.code, f.message))

    def _run(self, file: File) -> Iterator[Finding]:
        calls = file.nodes.calls
        for name in self.by_call.keys() & calls.keys():
            for check in self.by_call[name]:
                for call in calls[name]:
                    yield from check(call, file)
        for local, name in file.renamed:
            for check in self.by_call.get(name, ()):
                for call in calls.get(local, ()):
                    yield from check(call, file)
        for kind, checks in self.by_type.items():
            nodes = file.nodes.by_type.get(kind, ())
            for check in checks:
                for node in nodes:
                    yield from check(node, file)
        for whole in self.whole:
            yield from whole(file)


def file_of(source: Source) -> File:
    """The file of a source; one that only `async=` keeps from being parsed is read as what it means today."""
    try:
        return File(source.text, parse(source))
    except SourceError:
        if "async" not in source.text:
            raise
        from .idioms.async_argument import parse_mended

        mended = parse_mended(source.text)
        if mended is None:
            raise
        file = File(source.text, mended[0])
        file.old_async = mended[1]
        return file
    except RecursionError:
        raise SourceError(source.path, 1, 1, "nested too deep to be checked") from None


def imports_torch(file: File) -> bool:
    for plain in file.nodes.of(ast.Import):
        if any(_is_family(a.name) for a in plain.names):
            return True
    return any(
        _is_family(node.module or "") or any("torch" in a.name or a.name == "*" for a in node.names)
        for node in file.nodes.of(ast.ImportFrom)
    )


def _is_family(module: str) -> bool:
    return "torch" in module or module.partition(".")[0] in FAMILY
