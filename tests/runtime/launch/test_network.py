"""Machines whose own name means 127.0.0.1 to them find one another: two network namespaces stand for two hosts."""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from launching import SCRIPTS, environment
from ptmigrate.runtime.launch.network import way_to
from ptmigrate.runtime.launch.ports import free_port

from tests.forked import answers

NODE = ("-m", "ptmigrate.runtime.cli", "--accelerator", "cpu", "--devices", "1", "--global-batch", "--nodes", "2")
HEAD, OTHER = "10.213.77.1", "10.213.77.2"


@pytest.mark.parametrize("meeting", ["127.0.0.1:29400", "localhost:29400", "no-such-host.invalid:1", "head", "head:x"])
def test_torch_does_as_it_does(meeting):
    assert way_to(meeting) is None


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@pytest.fixture
def hosts():
    """The names of two network namespaces, joined by a cable."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("network namespaces need root and ip (Debian: apt-get install iproute2)")
    names = [f"ptmigrate-{os.getpid()}-{number}" for number in (0, 1)]
    ends = [f"pt{os.getpid()}-{number}" for number in (0, 1)]
    made = []
    try:
        try:
            for name in names:
                ip("netns", "add", name)
                made.append(name)
            ip("link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
        except subprocess.CalledProcessError as error:
            pytest.skip(f"network namespaces cannot be made here: {error.stderr.decode().strip()}")
        for name, end, address in zip(names, ends, (HEAD, OTHER), strict=True):
            ip("link", "set", end, "netns", name)
            ip("-n", name, "addr", "add", f"{address}/24", "dev", end)
            ip("-n", name, "link", "set", end, "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield names
    finally:
        for name in made:
            ip("netns", "delete", name)


def run(hosts, strategy, backend="static"):
    meet = ["--rdzv", f"{HEAD}:{free_port()}", "--rdzv-id", "job", "--strategy", strategy]
    nodes = []
    try:
        for number, name in enumerate(hosts):
            how = ["--node-rank", str(number)] if backend == "static" else ["--rdzv-backend", backend]
            script = [str(SCRIPTS / "cells.py"), strategy, "fit"]
            command = ["ip", "netns", "exec", name, sys.executable, *NODE, *meet, *how, *script]
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
            nodes.append(subprocess.Popen(command, env=environment(), text=True, **pipes))
        out = [node.communicate(timeout=200) for node in nodes]
    finally:
        for node in nodes:
            node.kill()
    return nodes, out


def check(out):
    line = next(line for text, _ in out for line in text.splitlines() if line.startswith("{"))
    one = answers("cells.py", 1, "single", "fit")["fit"]
    for mine, wanted in zip(json.loads(line)["fit"]["weights"], one["weights"], strict=True):
        assert mine == pytest.approx(wanted, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("strategy", "backend"), [("ddp", "static"), ("fsdp", "c10d")])
def test_two_hosts_train_as_one_process(hosts, strategy, backend):
    resolves = Path("/etc/hosts").read_text()
    assert HEAD not in resolves and OTHER not in resolves  # nobody's name helps
    nodes, out = run(hosts, strategy, backend)
    assert [node.returncode for node in nodes] == [0, 0], out
    check(out)


@pytest.fixture
def names(hosts):
    """This machine's name means each host's own address there."""
    folders = [Path("/etc/netns", host) for host in hosts]
    try:
        for folder, address in zip(folders, (HEAD, OTHER), strict=True):
            folder.mkdir(parents=True)
            (folder / "hosts").write_text(f"{address} {socket.gethostname()}\n")
        yield
    finally:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.slow
def test_horovod_where_the_machines_names_are_known(hosts, names):
    pytest.importorskip("horovod")
    nodes, out = run(hosts, "horovod")
    assert [node.returncode for node in nodes] == [0, 0], out
    check(out)


@pytest.mark.slow
def test_horovod_says_what_it_misses(hosts):
    pytest.importorskip("horovod")
    _, out = run(hosts, "horovod")
    told = [json.loads(line)["fit"] for text, _ in out for line in text.splitlines() if line.startswith("{")]
    assert told and "write the machine's address beside its name into its /etc/hosts" in told[0]["refused"]
