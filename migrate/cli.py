"""The command `ptmigrate`."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from ..lint_rules.streams import make_streams, not_written

if TYPE_CHECKING:
    from .one_file import Migrated
    from .report import Report
    from .verify.ladder import Ladder


def _version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"ptmigrate {version('ptmigrate')}")
        ctx.exit()


def _listing(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        from .codes import all_codes

        for code, (name, what) in sorted(all_codes().items()):
            click.echo(f"{code}  {name:24} {what}")
        ctx.exit()


def _explained(ctx: click.Context, param: click.Parameter, code: str | None) -> None:
    if code is not None and not ctx.resilient_parsing:
        from .explain import UnknownCode, explain

        try:
            click.echo(explain(code))
        except UnknownCode as error:
            raise click.BadParameter(str(error), ctx, param) from None
        ctx.exit()


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH... [-- SCRIPT ARGS]")
@click.option("-o", "--output", default="migrated", help="Folder for the results, `-` prints one file.  [migrated]")
@click.option("--in-place", is_flag=True, help="Rewrite the files themselves.")
@click.option("--force", is_flag=True, help="Write over existing results and uncommitted changes.")
@click.option("--diff", is_flag=True, help="Show what would change, write nothing.")
@click.option("--check", is_flag=True, help="Write nothing, exit 1 if something would change.")
@click.option(
    "--plan", type=click.Choice(["auto", "module", "loop"]), default="auto", help="How loops are migrated.  [auto]"
)
@click.option(
    "--framework",
    type=click.Choice(["ptmigrate", "lightning"]),
    default="ptmigrate",
    help="The package that a lifted result imports.  [ptmigrate]",
)
@click.option("--select", default="", help="Only these codes (prefixes, separated by commas).")
@click.option("--ignore", default="", help="Not these codes.")
@click.option(
    "--checkpoint",
    default="",
    metavar="NAMES",
    help="Attributes of modules whose activations are computed again in backward (needs fairscale).",
)
@click.option("--list", is_flag=True, is_eager=True, expose_value=False, callback=_listing, help="List the codes.")
@click.option(
    "--explain",
    metavar="CODE",
    is_eager=True,
    expose_value=False,
    callback=_explained,
    help="Say what a code means, with an example.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json", "sarif", "html"]),
    default="text",
    help="Form of the report.  [text]",
)
@click.option("--report", type=click.Path(path_type=Path), help="Write the report to a file instead.")
@click.option(
    "--verify", is_flag=True, help="Run original and result on the CPU and compare; script arguments after `--`."
)
@click.option(
    "--devices", default=1, type=click.IntRange(1), help="With --verify: the distributed run too, on N processes."
)
@click.option(
    "--timeout",
    default=600.0,
    show_default=True,
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="With --verify: the longest that one run may take.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    help="Processes for a folder.  [as many as idle cores, for a large one]",
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
@click.pass_context
def command(
    ctx: click.Context,
    paths: tuple[Path, ...],
    output: str,
    in_place: bool,
    force: bool,
    diff: bool,
    check: bool,
    plan: str,
    framework: str,
    select: str,
    ignore: str,
    checkpoint: str,
    format_: str,
    report: Path | None,
    verify: bool,
    devices: int,
    timeout: float,
    jobs: int | None,
) -> None:
    """Rewrite plain PyTorch training scripts for any number of devices.

    A script is followed into the local modules that it imports; a runnable copy is written to `migrated/`.
    """
    from .project import collect, migrate_all
    from .result import Options

    script_args: list[str] = list(ctx.obj or ())
    named = ctx.get_parameter_source("output") is not ParameterSource.DEFAULT
    _check_usage(paths, output if named else None, in_place, verify, diff or check, script_args)
    _check_places(paths, output, report, writes=not (in_place or diff or check))
    options = Options(plan, _codes(select), _codes(ignore), _names(checkpoint), framework, in_place)
    files = collect(paths, None if in_place or output == "-" else Path(output))
    if not files:
        click.echo(f"{', '.join(map(str, paths))}: no Python file there: nothing to do", err=True)
    done = migrate_all(files, options, _progress(len(files)), jobs)
    for name in options.checkpoint:
        said = [e for m in done for e in (*m.report.edits, *m.report.attention) if e.code == "PTM520"]
        if not any(f"`self.{name}`" in e.message for e in said):
            raise click.UsageError(f"--checkpoint: no module here is given an attribute self.{name}")
    wrote = True
    if diff:
        for m in done:
            _show_diff(m)
    elif output == "-" and not check:
        _print_one(done)
    elif not check:
        wrote = _write(done, output, in_place, force)
    ladder = _verify(done[0], script_args, devices, timeout) if verify and wrote else None
    code = _report(done, format_, report, to_stderr=diff or output == "-", wrote=wrote, ladder=ladder)
    if (check and any(m.report.changed for m in done)) or (ladder is not None and not ladder.proven):
        code = max(code, 1)
    ctx.exit(code if wrote else 2)


def _verify(m: Migrated, script_args: list[str], devices: int, timeout: float) -> Ladder:
    """The proof of one script; on a terminal a bar shows what is running and how far it is."""
    from .verify.ladder import climb, refused

    if m.result is None or m.report.plan == "refused" or m.report.output is None:
        return refused("the script is not migrated", devices)
    result = Path(m.report.output)
    carried = m.result.framework == "ptmigrate"
    if not sys.stderr.isatty():
        return climb(m.path, result, script_args, devices, limit=timeout, carried=carried, root=m.root)
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("running {task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("the original", total=1.0)
        return climb(
            m.path,
            result,
            script_args,
            devices,
            limit=timeout,
            carried=carried,
            root=m.root,
            show=lambda what, part: bar.update(task, description=what, completed=part),
        )


def _names(text: str) -> tuple[str, ...]:
    return tuple(n.strip().removeprefix("self.") for n in text.split(",") if n.strip())


def _codes(text: str) -> tuple[str, ...]:
    """The codes and prefixes of a list; one that no code starts with is wrong usage."""
    from .codes import all_codes

    known = all_codes() if text else {}
    codes = tuple(c.strip().upper() for c in text.split(",") if c.strip())
    for code in codes:
        if not any(k.startswith(code) for k in known):
            raise click.UsageError(f"no code starts with {code!r}: `ptmigrate --list` shows all")
    return codes


def _check_usage(
    paths: tuple[Path, ...], output: str | None, in_place: bool, verify: bool, reads: bool, script_args: list[str]
) -> None:
    """Options that do not go together; `reads`: --diff or --check."""
    if script_args and not verify:
        raise click.UsageError("arguments after `--` are the script's, for --verify")
    if verify and (len(paths) != 1 or not paths[0].is_file()):
        raise click.UsageError("--verify takes one script")
    if in_place and output is not None:
        raise click.UsageError(
            "-o names a place for the results, and --in-place writes none there: leave out one of them"
        )
    if verify and reads:
        raise click.UsageError("--verify runs the result, and --diff and --check write none: leave out one of them")
    if verify and (output == "-" or in_place):
        raise click.UsageError("--verify compares the original with a copy: it goes with neither --in-place nor `-o -`")


def _check_places(paths: tuple[Path, ...], output: str, report: Path | None, writes: bool) -> None:
    """What is asked for is looked at before anything starts."""
    if writes and output == "-" and (len(paths) != 1 or paths[0].is_dir()):
        raise click.UsageError("-o - prints one file")
    for folder in (Path(output), *Path(output).parents) if writes and output != "-" else ():
        if folder.exists() and not folder.is_dir():
            raise click.UsageError(f"-o names a folder, and {folder} is a file")
    if report is not None and (report.is_dir() or not report.parent.is_dir()):
        why = "it is a folder" if report.is_dir() else f"there is no folder {report.parent}"
        raise click.UsageError(f"--report {report}: {why}")
    if report is not None and any(path.exists() and report.exists() and path.samefile(report) for path in paths):
        raise click.UsageError(f"--report {report}: it is a script to migrate itself")


def _progress(n: int) -> Callable[[Path], None] | None:
    """A progress bar for folders, on a terminal only."""
    if n < 20 or not sys.stderr.isatty():
        return None
    from rich.progress import Progress

    bar = Progress(transient=True)
    task = bar.add_task("migrating", total=n)
    seen = [0]

    def tick(path: Path) -> None:
        bar.start()  # its thread comes after the processes that are forked
        seen[0] += 1
        bar.update(task, advance=1, description=path.name)
        if seen[0] == n:
            bar.stop()

    return tick


def _show_diff(m: Migrated) -> None:
    from .diff import unified

    if m.result is None or m.source is None or not m.report.changed:
        return
    for line in unified(m.source.text, m.result.text, str(m.path)):
        click.echo(line, nl=False)


def _print_one(done: list[Migrated]) -> None:
    if done and done[0].result is not None:
        sys.stdout.buffer.write(done[0].data)
        sys.stdout.flush()


def _write(done: list[Migrated], output: str, in_place: bool, force: bool) -> bool:
    """Write every result or, when one may not be written, none."""
    from .outputs import CannotWrite, write_results

    try:
        write_results(done, output, in_place, force)
    except CannotWrite as error:
        click.echo(f"error: {error}", err=True)
        return False
    return True


def _report(
    done: list[Migrated], format_: str, where: Path | None, to_stderr: bool, wrote: bool, ladder: Ladder | None
) -> int:
    from .one_file import note_nothing
    from .report import Report

    report = Report([m.report for m in done])
    for m in done:
        if m.report.error:
            click.echo(m.report.error, err=True)
        elif (line := note_nothing(m)) and len(done) == 1:
            click.echo(line, err=format_ != "text" or to_stderr)
    try:
        _show(done, report, format_, where, to_stderr, wrote, ladder)
    except OSError as error:
        if where is None:
            raise
        click.echo(f"error: --report {where} cannot be written: {error.strerror}", err=True)
        return 2
    return report.exit_code


def _show(
    done: list[Migrated],
    report: Report,
    format_: str,
    where: Path | None,
    to_stderr: bool,
    wrote: bool,
    ladder: Ladder | None,
) -> None:
    if format_ != "text":
        from .formats import FORMATS

        text = FORMATS[format_](done, report, ladder)
        if where is not None:
            where.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
        else:
            click.echo(text, nl=False, err=to_stderr)
    elif wrote:
        from .render import render, render_ladder

        render(report, where, to_stderr)
        if ladder is not None:
            render_ladder(ladder)


def main() -> None:
    """Entry point: what stands after a bare `--` belongs to the script that --verify runs."""
    make_streams()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # what was started is ended on the way
    args = sys.argv[1:]
    own, rest = (args[: args.index("--")], args[args.index("--") + 1 :]) if "--" in args else (args, [])
    try:
        code = command.main(args=own, prog_name="ptmigrate", obj=rest, standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped", err=True)
        code = 128 + signal.SIGINT
    except OSError as error:
        code = not_written(error)
    sys.exit(code)


if __name__ == "__main__":
    main()
