"""Files whose names are no text of any encoding, and terminals that cannot show what a report has to say."""

import json
import os
import subprocess
import sys

import pytest

from tests.sarif_schema import faults

pytestmark = pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="needs names of any bytes")

SCRIPT = """import torch
x = torch.zeros(1).cuda()
print("中文", x.cuda())
model = Net("é").cuda()
for x, y in loader:
    optimizer.zero_grad()
    model(x.cuda()).backward()
    optimizer.step()
"""
ENCODINGS = ["ascii", "utf-8:strict"]


@pytest.fixture
def folder(tmp_path):
    for name in (b"name\xff.py", "ünï.py".encode(), b"plain.py"):
        with open(os.path.join(os.fsencode(tmp_path), name), "w", encoding="utf-8") as f:
            f.write(SCRIPT)
    return tmp_path


def run(folder, module, *args, encoding="utf-8:strict"):
    return subprocess.run(
        [sys.executable, "-m", f"ptmigrate.{module}.cli", *args],
        cwd=folder,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
    )


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("format_", ["text", "json", "sarif", "html"])
def test_ptmigrate_tells_of_every_file(folder, format_, encoding):
    done = run(folder, "migrate", "-o", "out", "--format", format_, ".", encoding=encoding)
    assert done.returncode in (0, 1) and done.stderr == b"", done.stderr.decode()
    assert {b"name\xff.py", "ünï.py".encode(), b"plain.py"} == set(os.listdir(os.fsencode(folder / "out")))
    if format_ == "json":
        assert json.loads(done.stdout)["summary"]["changed"] == 3
    if format_ == "sarif":
        document = json.loads(done.stdout)
        assert faults(document) == []
        places = {
            r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in document["runs"][0]["results"]
        }
        assert places == {"name%FF.py", "%C3%BCn%C3%AF.py", "plain.py"}


@pytest.mark.parametrize("format_", ["text", "json", "sarif", "html"])
def test_a_report_is_written_of_every_file(folder, format_):
    done = run(folder, "migrate", "--check", "--format", format_, "--report", "r", ".")
    assert done.returncode == 1 and done.stderr == b"", done.stderr.decode()
    assert b"plain.py" in (folder / "r").read_bytes() and (folder / "r").read_bytes().decode("utf-8")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_diff_is_shown_of_every_file(folder, encoding):
    for module, args in (("migrate", ["--diff"]), ("lint_rules", ["--diff", "--unsafe-fixes", "--no-cache"])):
        done = run(folder, module, *args, ".", encoding=encoding)
        assert done.returncode in (0, 1) and b"Traceback" not in done.stderr, done.stderr.decode()
        assert sum(line.startswith(b"+++ ") for line in done.stdout.splitlines()) == 3


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("format_", ["concise", "full", "json", "sarif", "github", "junit"])
def test_ptlint_tells_of_every_file(folder, format_, encoding):
    done = run(folder, "lint_rules", "--no-cache", "--output-format", format_, ".", encoding=encoding)
    assert done.returncode == 1 and done.stderr == b"", done.stderr.decode()
    assert b"plain.py" in done.stdout and done.stdout.count(b"PTM101") >= 6
    if format_ == "sarif":
        assert faults(json.loads(done.stdout)) == []
