"""Build and install Horovod 0.28.1 against the torch that is here: `python -m ptmigrate.runtime.engines.build_horovod`.

`pip install horovod` fails with today's torch for two reasons: Horovod's CMakeLists.txt asks for C++14 while torch's
headers need C++20, and its setup.py needs a setuptools from before version 81. A compiler wrapper puts `-std=c++20`
last (the last one wins), and the older setuptools stands in a temporary folder, so that neither Horovod's sources nor
this environment change. It needs g++, make and cmake, and some seven minutes on two cores; the wheel is kept, and the
next time takes seconds.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

VERSION = "0.28.1"
NEEDS = ("cloudpickle", "psutil", "pyyaml", "packaging")
WRAPPER = '#!/bin/sh\nexec g++ "$@" -std=c++20\n'


def main() -> None:
    options = _arguments()
    wheel = kept(options.cache)
    if wheel is None:
        missing = [tool for tool in ("g++", "make", "cmake") if shutil.which(tool) is None]
        if missing:
            sys.exit(f"error: building Horovod needs {', '.join(missing)} (Debian: apt-get install g++ make cmake)")
        print(f"Building Horovod {VERSION} against torch {_torch()}; this takes some minutes.", flush=True)
        wheel = build(options.cache, options.jobs)
    print(f"Installing {wheel}", flush=True)
    _pip("install", "--no-deps", "--force-reinstall", str(wheel))
    _pip("install", *NEEDS)
    subprocess.run([sys.executable, "-c", "import horovod.torch as hvd; hvd.init(); hvd.shutdown()"], check=True)
    print(f"Horovod {VERSION} is installed.")


def kept(cache: Path) -> Path | None:
    """The wheel of an earlier build for this Python and this torch."""
    return next(iter(sorted(_folder(cache).glob("horovod-*.whl"))), None)


def build(cache: Path, jobs: int) -> Path:
    """Build the wheel and keep it in `cache`."""
    with tempfile.TemporaryDirectory(prefix="horovod-build-") as work:
        tools, wheels, compiler = Path(work, "tools"), Path(work, "wheels"), Path(work, "c++20")
        _pip("install", "--target", str(tools), "setuptools==80.9.0", "wheel")
        compiler.write_text(WRAPPER)
        compiler.chmod(0o755)
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, (str(tools), os.environ.get("PYTHONPATH")))),
            "CXX": str(compiler),
            "MAKEFLAGS": f"-j{jobs}",
            "HOROVOD_WITH_PYTORCH": "1",
            "HOROVOD_WITHOUT_TENSORFLOW": "1",
            "HOROVOD_WITHOUT_MXNET": "1",
            "HOROVOD_WITH_GLOO": "1",
            **({} if shutil.which("mpicxx") else {"HOROVOD_WITHOUT_MPI": "1"}),
        }
        _pip(
            "wheel",
            "--no-build-isolation",
            "--no-deps",
            "-w",
            str(wheels),
            f"horovod=={VERSION}",
            environment=environment,
        )
        built = next(wheels.glob("horovod-*.whl"))
        folder = _folder(cache)
        folder.mkdir(parents=True, exist_ok=True)
        partial = folder / f"{built.name}.partial"
        shutil.copyfile(built, partial)
        partial.replace(folder / built.name)
    return folder / built.name


def _arguments() -> argparse.Namespace:
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ptmigrate" / "wheels"
    parser = argparse.ArgumentParser(
        prog="python -m ptmigrate.runtime.engines.build_horovod", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--cache", type=Path, default=default, help="where wheels are kept (default: %(default)s)")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="compilers at a time (default: %(default)s)"
    )
    return parser.parse_args()


def _folder(cache: Path) -> Path:
    """A wheel fits one Python and one torch: both are in the folder's name."""
    return cache / f"torch-{_torch()}-{sysconfig.get_config_var('SOABI') or platform.python_version()}"


def _torch() -> str:
    import torch

    return torch.__version__


def _pip(*arguments: str, environment: dict[str, str] | None = None) -> None:
    subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", *arguments], check=True, env=environment
    )


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"error: {' '.join(map(str, error.cmd))} failed with exit code {error.returncode}")
