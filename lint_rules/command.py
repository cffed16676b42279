"""What one call of ptlint does, from its options to its exit status."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from importlib import import_module

from ptmigrate.migrate.facts.source import SourceError, decode

from .config import Config, ConfigError, load
from .engine import Linter
from .registry import UnknownRule, all_rules, check_known, choose, matches
from .result import Result
from .rule import Rule
from .run import lint_data, lint_files, lint_for_a_while
from .walk import python_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .cache import Cache

FEW = 32  # files; for fewer, a cache costs more than it saves


def execute(options: Namespace) -> int:
    try:
        if options.explain or options.list:
            return _tell(options)
        first = options.stdin_filename or (options.paths[0] if options.paths else ".")
        config = load(first if os.path.isdir(first) else os.path.dirname(first) or ".", options.config)
        rules = _rules(options, config)
    except (ConfigError, UnknownRule) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if options.stdin_filename or options.paths == ["-"]:
        return _standard_input(options, config, rules)
    result = _lint(options, config, rules)
    _keep(result, rules, config)
    if options.fix or options.diff or options.unsafe_fixes:
        from .fix import fix

        result = fix(result, options, config, rules, lambda paths: _again(paths, rules, config))
        if options.diff:
            return result.exit_code
    if options.add_noqa:
        from .add_noqa import add_noqa

        result = add_noqa(result, lambda paths: _again(paths, rules, config))
    _write(result, options, config)
    return result.exit_code


def _rules(options: Namespace, config: Config) -> list[Rule]:
    select = [code for codes in options.select for code in codes] if options.select else config.select
    ignore = [code for codes in options.ignore or () for code in codes] + config.ignore
    ignored = (code for codes in config.per_file_ignores.values() for code in codes)
    try:
        check_known([*config.select, *config.ignore, *ignored])
    except UnknownRule as error:
        raise ConfigError(f"{config.path}: [tool.ptmigrate]: {error}") from None
    return choose(select, ignore)


def _standard_input(options: Namespace, config: Config, rules: list[Rule]) -> int:
    """Lint what comes in; with a fix the text goes out mended, and what is left of the findings to standard error."""
    if options.add_noqa:
        print("error: --add-noqa changes files, and standard input is none", file=sys.stderr)
        return 2
    name = options.stdin_filename or "<stdin>"
    data = sys.stdin.buffer.read()
    result = _of_data(name, data, rules, config)
    if not (options.fix or options.unsafe_fixes or options.diff):
        _write(result, options, config)
        return result.exit_code
    from .fix import fixed_data

    mended = fixed_data(name, data, result, config, rules, options.unsafe_fixes or config.unsafe_fixes, options.diff)
    if not options.diff:
        sys.stdout.flush()
        sys.stdout.buffer.write(mended)
        result = _of_data(name, mended, rules, config)
        for path, f in result.findings:
            print(f"{path}:{f.line}:{f.column}: {f.code} {f.message}", file=sys.stderr)
    for error in result.errors:
        print(f"error: {error}", file=sys.stderr)
    return result.exit_code


def _of_data(name: str, data: bytes, rules: list[Rule], config: Config) -> Result:
    lesser = [rule for rule in all_rules() if rule.lesser and rule not in rules]
    result = Result()
    result.add(lint_data(name, data, Linter([*rules, *lesser])))
    if result.findings:
        result.sources[name] = decode(data, name).text
    _keep(result, rules, config)
    return result


def _lint(options: Namespace, config: Config, rules: list[Rule]) -> Result:
    lesser = [rule for rule in all_rules() if rule.lesser and rule not in rules]
    report_unused = not any(code == "PTM001" for codes in options.ignore or () for code in codes)
    linter = Linter([*rules, *lesser], report_unused)
    found = list(python_files(options.paths or ["."], config.exclude))
    files = [path for path in found if isinstance(path, str)]
    cache = None
    if len(files) >= FEW and config.cache and not options.no_cache:
        from .cache import Cache

        cache = Cache(config.root, [*linter.codes])
    result = _lint_all(files, linter, cache, options.jobs or config.jobs, report_unused)
    result.errors[:0] = [error for error in found if isinstance(error, SourceError)]
    if cache is not None:
        cache.save()
    return result


def _lint_all(files: list[str], linter: Linter, cache: Cache | None, jobs: int | None, report_unused: bool) -> Result:
    """With a number of jobs, so many processes; without, one, and more for what is left where that takes long."""
    from ptmigrate.migrate.cores import idle_cores

    wanted = jobs or idle_cores()
    if wanted == 1:
        return lint_files(files, linter, cache)
    result = Result()
    left = lint_for_a_while(files, linter, cache, result) if jobs is None else files
    if len(left) > 1:
        from .parallel import lint_parallel

        lint_parallel(left, [rule.code for rule in linter.rules], report_unused, cache, wanted, result)
    elif left:
        lint_files(left, linter, cache, result)
    return result


def _again(paths: list[str], rules: list[Rule], config: Config) -> Result:
    result = lint_files(paths, Linter(rules))
    _keep(result, rules, config)
    return result


def _keep(result: Result, rules: list[Rule], config: Config) -> None:
    """Leave what was asked for: no lesser findings, nothing that per-file-ignores names."""
    codes = {rule.code for rule in rules} | {"PTM001"}
    kept = []
    by_code = {rule.code: rule for rule in rules}
    for path, finding in result.findings:
        if finding.code not in codes:
            result.lesser[finding.code] = result.lesser.get(finding.code, 0) + 1
            continue
        rule = by_code.get(finding.code)
        ignored = config.ignored(path)
        if not any(code == finding.code or (rule is not None and matches(rule, code)) for code in ignored):
            kept.append((path, finding))
    result.findings = kept


def _tell(options: Namespace) -> int:
    if options.list:
        for rule in all_rules():
            print(
                f"{rule.code} {rule.name}{' (lesser)' if rule.lesser else ''}{f' [{rule.fix} fix]' if rule.fix else ''}"
            )
        return 0
    check_known([options.explain])
    from .pages import explain

    chosen = [rule for rule in all_rules() if matches(rule, options.explain)]
    print("\n".join(explain(rule) for rule in chosen), end="")
    return 0


def _write(result: Result, options: Namespace, config: Config) -> None:
    """Findings to standard output; errors to standard error, unless the format has a place for them."""
    output_format = options.output_format or config.output_format or "concise"
    if options.statistics and output_format == "concise":
        counts = sorted(result.by_code().items(), key=lambda item: (-item[1], item[0]))
        names = {rule.code: rule.name for rule in all_rules()}
        lines = [f"{count:6} {code} {names.get(code, 'unused-noqa')}" for code, count in counts]
    else:
        writer = import_module(f".output.{output_format}", __package__)
        color = output_format == "full" and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        lines = writer.write(result, color=color)
    for line in lines:
        print(line)
    if output_format in ("concise", "full", "github"):
        for error in result.errors:
            print(f"error: {error}", file=sys.stderr)
