"""ptrun: run a migrated script on any number of devices.

ptrun --devices 4 train.py --epochs 10 ptrun --devices 8 --nodes 2 --node-rank 0 --rdzv head:29400 train.py ptrun
--doctor
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click

from . import environment
from .errors import ConfigurationError
from .nearest import near_files

PASSED_ON = ("accelerator", "devices", "strategy", "precision", "global_batch", "monitor")  # to the processes
OPTIONS = {"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": ["-h", "--help"]}


@click.command(context_settings=OPTIONS, options_metavar="[OPTIONS]")
@click.option("--devices", metavar="N", help="Processes on this node: a count, a list of numbers (0,2), or auto.")
@click.option("--accelerator", metavar="NAME", help="cpu, gpu, tpu, mps or auto.")
@click.option("--strategy", metavar="NAME", help="How the processes work together: ddp, ...")
@click.option("--precision", metavar="P", help="32, 64, bf16 or 16 (and Lightning's longer names).")
@click.option(
    "--nodes", metavar="N", default="1", show_default=True, help="How many machines; MIN:MAX: they may change."
)
@click.option("--node-rank", type=click.IntRange(0), help="Which of them this is.")
@click.option("--rdzv", metavar="HOST:PORT", help="Where they meet; the same on all.")
@click.option("--rdzv-backend", metavar="NAME", help="How they meet: c10d, static, etcd or etcd-v2.")
@click.option("--rdzv-id", metavar="ID", help="The job's name there, where several jobs meet.")
@click.option("--max-restarts", type=click.IntRange(0), default=0, help="Start all again so often when one fails.")
@click.option("--global-batch", is_flag=True, help="Cut the script's batch among the processes: the same run.")
@click.option("--monitor", is_flag=True, help="Show a live table of what the devices do.")
@click.option("-m", "--module", is_flag=True, help="SCRIPT is a module's name, as in `python -m`.")
@click.option("--doctor", is_flag=True, help="Print what was found here, and stop.")
@click.version_option(version("ptmigrate"), prog_name="ptrun")
@click.argument("script", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def command(ctx: click.Context, script: str | None, arguments: tuple[str, ...], doctor: bool, **options: Any) -> None:
    """Run SCRIPT on several devices. These options win over the script's Trainer arguments; what follows SCRIPT is
    the script's.
    """
    if doctor:
        from .doctor import report

        click.echo(report())
        return
    if script is None:
        raise click.UsageError("which SCRIPT?", ctx)
    if script.startswith("-"):
        raise click.NoSuchOption(script, possibilities=_near_options(ctx, script), ctx=ctx)
    file = _file_of(script) if options["module"] else script
    _check_script(file)
    ctx.exit(_launch(script, file, arguments, options))


def _near_options(ctx: click.Context, name: str) -> list[str]:
    import difflib

    known = [option for parameter in ctx.command.params for option in parameter.opts if option.startswith("--")]
    return difflib.get_close_matches(name.split("=")[0], known)


def _check_script(script: str) -> None:
    if Path(script).is_dir():
        raise ConfigurationError(f"script {script!r} is a folder: name a file of it")
    if not Path(script).is_file():
        near = near_files(script)
        hint = f"; did you mean {near!r}?" if near else "."
        raise ConfigurationError(f"script {script!r} was not found{hint}")


def _file_of(module: str) -> str:
    """The file that `python -m module` runs: a package's is its `__main__`."""
    from importlib.util import find_spec

    sys.path.insert(0, "")  # as python -m does
    try:
        spec = find_spec(module)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = find_spec(f"{module}.__main__")
    except (ImportError, ValueError):
        spec = None
    finally:
        sys.path.remove("")
    if spec is None or spec.origin is None:
        raise ConfigurationError(
            f"module {module!r} was not found: name it as in `python -m`, from the folder it is in"
        )
    return spec.origin


def _check_program(script: str, file: str, several: bool, processes: int) -> None:
    """What of its text tells that it cannot be started `several` times, or would gain nothing by it."""
    from .launch.own_processes import starts_processes
    from .launch.unmigrated import trains_alone

    if several and (where := starts_processes(file)):
        raise ConfigurationError(
            f"{script} starts its own processes ({where}), so that ptrun cannot start it several times: "
            "run it with python, or migrate it with ptmigrate"
        )
    if processes > 1 and trains_alone(file):
        says = f"each of the {processes} processes trains all of it by itself"
        click.echo(
            f"note: {script} names neither a Trainer nor a Runtime: {says}; `ptmigrate {file}` writes a script that "
            "shares the work",
            err=True,
        )


def _launch(script: str, file: str, arguments: tuple[str, ...], options: dict[str, Any]) -> int:
    """Check everything that can be checked before a process starts, then start them. `file`: what is run."""
    from .accelerators import choose
    from .launch.agent import Job
    from .launch.nodes import check_meeting, counts
    from .precision import choose_precision
    from .strategies.registry import accelerator_for, choose_strategy

    least, nodes = counts(options["nodes"])
    check_meeting(least, nodes, options["rdzv"], options["rdzv_backend"], options["node_rank"])
    options["accelerator"] = accelerator_for(options["strategy"], options["accelerator"])
    devices = choose(options["accelerator"], options["devices"] or None)
    strategy = choose_strategy(options["strategy"], len(devices.numbers), nodes, kind=devices.kind)
    if options["precision"]:
        choose_precision(options["precision"], "xla" if devices.kind == "tpu" else devices.kind)
    processes = 1 if strategy.one_process_a_node else len(devices.numbers)
    _check_program(script, file, len(devices.numbers) * nodes > 1, processes * nodes)
    variables = environment.as_variables({name: options[name] for name in PASSED_ON})
    if devices.kind == "cpu":
        variables["CUDA_VISIBLE_DEVICES"] = ""  # what the script asks of CUDA by itself gets the same answer
    job = Job(
        script=script,
        arguments=arguments,
        processes=processes,
        nodes=nodes,
        least=least,
        backend=options["rdzv_backend"],
        run_id=options["rdzv_id"],
        node_rank=options["node_rank"],
        rdzv=options["rdzv"],
        max_restarts=options["max_restarts"],
        module=options["module"],
    )
    return strategy.run_job(job, variables)


def main(arguments: list[str] | None = None) -> None:
    """The console script. Wrong usage and what cannot be done here: one line, exit code 2."""
    try:
        command(args=arguments, prog_name="ptrun")
    except ConfigurationError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
