"""Stand-ins for the GPU libraries that a CUDA build of torch is linked with, on a machine that has no GPU.

    python -m ptmigrate.runtime.engines.without_gpu VENV

torch_xla fits one version of torch each, and PyPI has those as CUDA builds, which load several gigabytes of libraries
that a machine without a GPU never calls. After `pip install --no-deps torch` this writes small ones beside torch that
say "no device" (cudaErrorNoDevice) whatever they are asked, so that torch imports and finds no GPU. Libraries that are
there stay as they are; a CPU build of torch lacks none. Needs gcc and binutils.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

NO_DEVICE = 100  # cudaErrorNoDevice
TELLS = re.compile(r"(String|Name|LastError)$")  # functions that give a text
OURS = re.compile(r"(cu|nccl|nv)[A-Z]|(cusparseLt|nvshmemx?_)")  # names that no library's version stands beside


def main(venv: str) -> None:
    found = sorted(Path(venv).glob("lib*/python3*/site-packages/torch/lib"))
    if not found:
        sys.exit(f"error: {venv} holds no torch")
    folder = found[0]
    libraries = sorted(folder.glob("*.so"))
    lacking = missing(libraries)
    versioned, plain = wanted(libraries)
    for name in lacking:
        write(folder / name, versioned.get(name, {"": plain}))
    print(f"{folder}: {len(lacking)} libraries written" + (f" ({', '.join(lacking)})" if lacking else ""))


def missing(libraries: Iterable[Path]) -> list[str]:
    """The names of the libraries that these are linked with and the loader does not find."""
    return sorted(set(re.findall(r"^\s*(\S+) => not found", output("ldd", *map(str, libraries)), re.M)))


def wanted(libraries: Iterable[Path]) -> tuple[dict[str, dict[str, set[str]]], set[str]]:
    """({library: {version: functions}}, the functions of libraries without versions)."""
    files: dict[str, str] = {}  # a version's library
    functions: dict[str, set[str]] = defaultdict(set)
    for library in libraries:
        file = ""
        for kind, name in re.findall(r"(File|Name): (\S+)", output("readelf", "-VW", str(library))):
            file = name if kind == "File" else file
            if kind == "Name":
                files[name] = file
        for name, version in re.findall(r" U (\w+)(?:@(\S+))?$", output("nm", "-D", str(library)), re.M):
            functions[version].add(name)
    versioned: dict[str, dict[str, set[str]]] = defaultdict(dict)
    for version, file in files.items():
        versioned[file][version] = functions[version]
    return versioned, {name for name in functions[""] if OURS.match(name)}


def write(path: Path, versions: dict[str, set[str]]) -> None:
    """A shared library with these functions, each under its version ("": none)."""
    names = sorted({name for every in versions.values() for name in every})
    source = "\n".join(
        f'const char *{name}(void) {{ return "no GPU"; }}'
        if TELLS.search(name)
        else f"int {name}(void) {{ return {NO_DEVICE}; }}"
        for name in names
    )
    script = "\n".join(
        f"{version} {{ global: {' '.join(f'{name};' for name in sorted(every))} }};"
        for version, every in versions.items()
        if version and every
    )
    with tempfile.TemporaryDirectory() as work:
        code, map_file = Path(work, "empty.c"), Path(work, "versions")
        code.write_text(source + "\n")
        map_file.write_text(script + "\n")
        options = [f"-Wl,--version-script={map_file}"] if script else []
        command = ["gcc", "-w", "-shared", "-fPIC", "-fno-builtin", "-o", str(path), str(code)]
        subprocess.run([*command, f"-Wl,-soname,{path.name}", *options], check=True)


def output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m ptmigrate.runtime.engines.without_gpu VENV")
    main(sys.argv[1])
