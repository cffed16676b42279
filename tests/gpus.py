"""The GPUs of this machine, which tests/conftest.py hides from what does not ask for them.

Two processes share one GPU as two nodes of a process each: NCCL refuses that within a host, and takes a host for two by
the name that it is told.
"""

from __future__ import annotations

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from ptmigrate.runtime.launch.ports import free_port

from tests.runtime import launching

LIMIT = 300


@cache
def count() -> int:
    tool = shutil.which("nvidia-smi")
    listed = subprocess.run([tool, "-L"], capture_output=True, text=True, timeout=60).stdout if tool else ""
    return sum(line.startswith("GPU ") for line in listed.splitlines())


VISIBLE = {
    "CUDA_VISIBLE_DEVICES": ",".join(map(str, range(count()))),
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",  # sums in one order
    "NVIDIA_TF32_OVERRIDE": "0",  # float32 as on a CPU
}
needs_gpu = pytest.mark.skipif(count() == 0, reason="no GPU")


def run(folder: Path, *command: Any, **environment: str) -> subprocess.CompletedProcess:
    """`python COMMAND` with the GPUs."""
    return launching.run(*map(str, command), cwd=folder, limit=LIMIT, **VISIBLE, **environment)


def on_two_nodes(folder: Path, *arguments: Any) -> subprocess.CompletedProcess:
    """`ptrun ARGUMENTS` on two nodes with one GPU, the same. What rank 0 prints, and what both say of errors."""
    command = ["-m", "ptmigrate.runtime.cli", "--devices", "1", "--global-batch"]
    command += ["--nodes", "2", "--rdzv", f"127.0.0.1:{free_port()}", "--node-rank"]

    def node(rank: int) -> subprocess.CompletedProcess:
        return run(folder, *command, rank, *arguments, NCCL_HOSTID=f"host{rank}", NCCL_SOCKET_IFNAME="lo")

    with ThreadPoolExecutor() as pool:
        first, second = pool.map(node, (0, 1))
    code = first.returncode or second.returncode
    return subprocess.CompletedProcess(command, code, first.stdout, first.stderr + second.stderr)
