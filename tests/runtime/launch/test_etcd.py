"""Two machines that meet at an etcd server, a real one on the loopback: restarts go on from the last checkpoint."""

import contextlib
import importlib.util
import json
import shutil
import subprocess
import sys
import time
import urllib.request

import pytest
from launching import SCRIPTS, environment
from ptmigrate.runtime.launch.ports import free_port

SCRIPT = str(SCRIPTS / "elastic.py")
NODE = ("-m", "ptmigrate.runtime.cli", "--accelerator", "cpu", "--devices", "1", "--global-batch", "--nodes", "1:2")


@pytest.fixture
def server(tmp_path):
    """HOST:PORT of an etcd that speaks the second version of its interface."""
    if shutil.which("etcd") is None:
        pytest.skip("no etcd on PATH (Debian: apt-get install etcd-server)")
    if importlib.util.find_spec("etcd") is None:
        pytest.skip("python-etcd is not installed")
    clients, peers = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    options = ["--listen-client-urls", clients, "--advertise-client-urls", clients, "--listen-peer-urls", peers]
    options += ["--initial-advertise-peer-urls", peers, "--initial-cluster", f"default={peers}"]
    command = ["etcd", "--enable-v2", "--data-dir", str(tmp_path / "etcd"), *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        limit = time.monotonic() + 60
        while not healthy(clients):
            assert process.poll() is None and time.monotonic() < limit
            time.sleep(0.1)
        yield clients.removeprefix("http://")
    finally:
        process.kill()
        process.wait()


def healthy(address):
    with contextlib.suppress(OSError), urllib.request.urlopen(f"{address}/health", timeout=2) as answer:
        return b"true" in answer.read()
    return False


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "how"), [("etcd", "kill"), ("etcd-v2", "raise")])
def test_starts_again_after_a_failure(server, backend, how, tmp_path):
    options = ["--rdzv", server, "--rdzv-backend", backend, "--rdzv-id", "job", "--max-restarts", "3"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, *NODE, *options, SCRIPT, str(tmp_path), how]
    nodes = [subprocess.Popen(command, env=environment(), text=True, **pipes) for _ in range(2)]
    try:
        out = [node.communicate(timeout=250) for node in nodes]
    finally:
        for node in nodes:
            node.kill()
    assert [node.returncode for node in nodes] == [0, 0], out
    assert "INFO" not in out[0][1] + out[1][1]
    line = next(line for text, _ in out for line in text.splitlines() if line.startswith("{"))
    assert json.loads(line)["steps"] == 28 and (tmp_path / "failed").exists()
    epochs = [line.split()[1] for file in tmp_path.glob("worlds.*") for line in file.read_text().splitlines()]
    assert epochs.count("0") <= 2 * 7  # the first epoch is not run again
