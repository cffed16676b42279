"""Every option of the command, and what pyproject.toml may say."""

import json
import subprocess
import sys

import pytest
from ptmigrate.lint_rules import run
from ptmigrate.lint_rules.engine import Linter
from ptmigrate.lint_rules.parallel import lint_parallel
from ptmigrate.lint_rules.registry import choose
from ptmigrate.lint_rules.result import Result
from ptmigrate.lint_rules.run import lint_for_a_while
from test_cli import BAD, ptlint

PYPROJECT = "[tool.ptmigrate]\n"
LOOP = "import torch\nfor x, y in loader:\n    loss = criterion(x, y)\n    loss.backward()\n    total += loss.item()\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "bad.py").write_text(BAD)
    (tmp_path / "loop.py").write_text(LOOP)
    return tmp_path


def ptlint_bytes(*arguments, cwd, input):
    command = [sys.executable, "-c", "from ptmigrate.lint_rules.cli import main; main()", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, input=input, timeout=60)


def codes(done):
    return [line.split()[1] for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ["PTM101", "PTM301"]),
        (["--select", "PTM1"], ["PTM101"]),
        (["--select", "PTM1,PTM3"], ["PTM101", "PTM301"]),
        (["--select", "item-in-hot-loop"], ["PTM301"]),
        (["--ignore", "PTM3"], ["PTM101"]),
        (["--select", "PTM301", "--ignore", "PTM3"], ["PTM301"]),
        (["--select", "PTM3", "--ignore", "PTM301"], []),
    ],
)
def test_select_and_ignore(folder, arguments, expected):
    assert codes(ptlint("--ignore", "PTM5", *arguments, cwd=folder)) == expected


def test_an_unknown_code_names_the_nearest(folder):
    done = ptlint("--select", "item-in-hot-lop", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean 'item-in-hot-loop'" in done.stderr


def test_statistics(folder):
    done = ptlint("--statistics", "--select", "PTM1,PTM3", cwd=folder)
    assert done.stdout.splitlines() == ["     1 PTM101 hard-coded-device", "     1 PTM301 item-in-hot-loop"]


def test_standard_input(folder):
    done = ptlint("--stdin-filename", "sub/name.py", "--select=PTM101", cwd=folder, input=BAD)
    assert done.stdout.startswith("sub/name.py:2:9: PTM101")
    assert done.returncode == 1


def test_standard_input_is_mended_to_standard_output(folder):
    """What stands on the disk under the name is left alone."""
    old = "from torch.autograd import Variable\r\nx = Variable(x)  # é\r\ny = x.cuda()\r\n".encode()
    done = ptlint_bytes("--fix", "--stdin-filename", "bad.py", "-", cwd=folder, input=old)
    assert done.stdout == b"from torch.autograd import Variable\r\ny = x.cuda()\r\n"
    assert done.stderr.startswith(b"bad.py:2:5: PTM101 ")
    assert done.returncode == 1
    assert (folder / "bad.py").read_text() == BAD
    done = ptlint_bytes("--diff", "--stdin-filename", "bad.py", cwd=folder, input=old)
    assert b"-x = Variable(x)" in done.stdout
    done = ptlint_bytes("--fix", "-", cwd=folder, input=b"import torch\nx = (\n")
    assert (done.returncode, done.stdout) == (2, b"import torch\nx = (\n")
    assert b"<stdin>:2:5: syntax error" in done.stderr
    assert ptlint_bytes("--add-noqa", "-", cwd=folder, input=old).returncode == 2


def test_full_output_of_standard_input_shows_its_lines(folder):
    done = ptlint(
        "--stdin-filename", "bad.py", "--output-format=full", cwd=folder, input="import torch\nother.cuda()\n"
    )
    assert "2 | other.cuda()\n" in done.stdout


def test_configuration_of_the_file_that_standard_input_stands_for(folder):
    (folder / "sub").mkdir()
    (folder / "sub" / "pyproject.toml").write_text(PYPROJECT + 'select = ["PTM3"]')
    assert ptlint("--stdin-filename", "sub/x.py", cwd=folder, input=BAD).returncode == 0


def test_a_wait_now_and_then_is_a_lesser_thing_and_says_so(folder):
    text = LOOP.replace("    total", "    if i % 100 == 0:\n        total")
    done = ptlint("--stdin-filename", "x.py", "--output-format=full", cwd=folder, input=text)
    assert done.returncode == 0
    assert "Lesser findings are not shown (1 of PTM302): --select PTM302 shows them." in done.stdout
    done = ptlint("--stdin-filename", "x.py", "--select=PTM302", "--output-format=sarif", cwd=folder, input=text)
    (found,) = json.loads(done.stdout)["runs"][0]["results"]
    assert found["level"] == "note" and "now and then" in found["message"]["text"]


def test_unsafe_fixes_need_no_other_option(folder):
    assert ptlint("--unsafe-fixes", "--select=PTM101", "bad.py", cwd=folder).returncode == 0
    assert "cuda" not in (folder / "bad.py").read_text()


def test_list(folder):
    assert "PTM301 item-in-hot-loop" in ptlint("--list", cwd=folder).stdout


# -- pyproject.toml ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ('select = ["PTM101"]', ["PTM101"]),
        ('ignore = ["PTM101", "PTM5"]', ["PTM301"]),
        ('select = ["PTM1", "PTM3"]\nexclude = ["loop.py"]', ["PTM101"]),
        ('select = ["PTM1", "PTM3"]\n[tool.ptmigrate.per-file-ignores]\n"bad.py" = ["PTM1"]', ["PTM301"]),
        ('select = ["PTM1", "PTM3"]\n[tool.ptmigrate.per-file-ignores]\n"*.py" = ["ALL"]', []),
    ],
)
def test_configuration(folder, table, expected):
    (folder / "pyproject.toml").write_text(PYPROJECT + table)
    assert codes(ptlint(cwd=folder)) == expected


def test_the_command_line_wins(folder):
    (folder / "pyproject.toml").write_text(PYPROJECT + 'select = ["PTM101"]')
    assert codes(ptlint("--select", "PTM301", cwd=folder)) == ["PTM301"]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('selct = ["PTM101"]', "no key 'selct'; did you mean 'select'?"),
        ('select = "PTM101"', "select must be a list of strings"),
        ('output-format = "xml"', "output-format must be one of concise, full"),
        ("jobs = 0", "jobs must be a number of processes"),
        ('select = ["PTM9"]', "no rule 'PTM9'"),
        ('[tool.ptmigrate.per-file-ignores]\n"a.py" = ["PTM310x"]', "no rule 'PTM310x'; did you mean"),
        ("select = [", "pyproject.toml: "),
    ],
)
def test_wrong_configuration(folder, table, said):
    (folder / "pyproject.toml").write_text(PYPROJECT + table)
    done = ptlint(cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


# -- suppressions -----------------------------------------------------------------------------------------------------


def test_unused_suppressions_are_reported(folder):
    (folder / "bad.py").write_text(BAD + "x = 1  # noqa: PTM301\ny = 2  # noqa: E501\nz = 3  # noqa\n")
    done = ptlint("bad.py", cwd=folder)
    assert codes(done) == ["PTM101", "PTM001"]
    assert "bad.py:3:8: PTM001 unused suppression of PTM301" in done.stdout
    assert codes(ptlint("bad.py", "--ignore", "PTM001", cwd=folder)) == ["PTM101"]
    assert codes(ptlint("bad.py", "--select", "PTM101", cwd=folder)) == ["PTM101"]  # PTM301 was not looked for


def test_a_suppression_in_a_string_is_none(folder):
    (folder / "bad.py").write_text('import torch\nx = f(" # noqa: PTM101 ").cuda()\n')
    assert codes(ptlint("bad.py", cwd=folder)) == ["PTM101"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_add_noqa(folder, end):
    text = "# coding: latin-1\nimport torch\ns = 'é'\n"
    text += "m = net.cuda()  # noqa: E501\nn = net.cuda()  # why\nk = (net.\n  cuda())\n"
    (folder / "bad.py").write_bytes(text.replace("\n", end).encode("latin-1"))
    done = ptlint("--add-noqa", "bad.py", cwd=folder)
    assert (done.returncode, done.stdout) == (0, "")
    after = (folder / "bad.py").read_bytes().decode("latin-1").split(end)
    assert after[3:7] == [
        "m = net.cuda()  # noqa: E501, PTM101",
        "n = net.cuda()  # why  # noqa: PTM101",
        "k = (net.  # noqa: PTM101",
        "  cuda())",
    ]
    assert ptlint("bad.py", cwd=folder).returncode == 0


def test_add_noqa_leaves_strings_alone(folder):
    (folder / "bad.py").write_text('import torch\nx = f"""{net.cuda()}\n"""\n')
    done = ptlint("--add-noqa", "bad.py", cwd=folder)
    assert "noqa" not in (folder / "bad.py").read_text()
    assert done.returncode == 1


# -- fixing -----------------------------------------------------------------------------------------------------------


def test_fix_takes_out_unused_suppressions(folder):
    text = (
        "import torch\nx = 1  # noqa: PTM301 - was slow\ny = 2  # noqa: E501, PTM301\nz = 3  # noqa: PTM301  # kept\n"
    )
    (folder / "bad.py").write_text(text)
    shown = ptlint("--diff", "bad.py", cwd=folder)
    assert "-x = 1  # noqa: PTM301 - was slow\n" in shown.stdout
    assert (folder / "bad.py").read_text() == text
    done = ptlint("--fix", "bad.py", cwd=folder)
    assert done.returncode == 0
    assert (folder / "bad.py").read_text() == "import torch\nx = 1\ny = 2  # noqa: E501\nz = 3  # kept\n"


def test_fix_without_anything_to_fix_leaves_the_bytes(folder):
    before = (folder / "loop.py").read_bytes()
    assert ptlint("--fix", "--select=PTM301", "loop.py", cwd=folder).returncode == 1
    assert (folder / "loop.py").read_bytes() == before


# -- many files -------------------------------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path):
    for i in range(60):
        (tmp_path / f"m{i:02}.py").write_text(f"import torch\nx{i} = net.cuda()\n" if i % 3 else f"y = {i}\n")
    (tmp_path / "m03.py").write_text("import torch\nx = (\n")
    return tmp_path


def run_json(tree, *arguments):
    done = ptlint("--output-format=json", *arguments, cwd=tree)
    return done.returncode, json.loads(done.stdout)


def test_cores_and_cache_change_nothing(tree):
    plain = run_json(tree, "--no-cache", "--jobs=1")
    assert plain[0] == 2
    assert len(plain[1]["findings"]) == 40
    assert not (tree / ".ptlint_cache").exists()
    assert run_json(tree, "--no-cache", "--jobs=2") == plain
    assert run_json(tree) == plain
    assert (tree / ".ptlint_cache").exists()
    assert run_json(tree) == plain
    assert run_json(tree, "--jobs=2") == plain


def test_processes_are_started_for_what_is_left_when_that_takes_long(tree, monkeypatch):
    files = sorted(str(path) for path in tree.glob("*.py"))
    linter, alone, begun = Linter(choose()), Result(), Result()
    assert lint_for_a_while(files, linter, None, alone) == []  # so little is done before anyone thinks of processes
    monkeypatch.setattr(run, "LOOK", 0)
    monkeypatch.setattr(run, "WORTH", 0)
    left = lint_for_a_while(files, linter, None, begun)
    assert begun.files == 8 and left == files[8:]
    lint_parallel(left, [rule.code for rule in linter.rules], True, None, 2, begun)
    assert begun.findings == alone.findings
    assert [str(e) for e in begun.errors] == [str(e) for e in alone.errors]


def test_a_changed_file_and_a_broken_cache(tree):
    run_json(tree)
    (tree / "m01.py").write_text("import torch\n")
    assert len(run_json(tree)[1]["findings"]) == 39
    for path in (tree / ".ptlint_cache").glob("*.json"):
        path.write_text('{"a": [1')
    assert len(run_json(tree)[1]["findings"]) == 39


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[tool.ptmigrate]\nselect = ["NOPE"]\n', "[tool.ptmigrate]: no rule 'NOPE'"),
        ('[tool.ptmigrate]\nignore = ["PTM999"]\n', "[tool.ptmigrate]: no rule 'PTM999'"),
        ("[[tool.ptmigrate]]\n", "[tool.ptmigrate] must be a table"),
    ],
)
def test_what_is_wrong_in_a_file_is_told_with_its_name(tmp_path, text, says):
    (tmp_path / "pyproject.toml").write_text(text)
    (tmp_path / "a.py").write_text("import torch\n")
    done = ptlint("a.py", cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.startswith("error: ") and "Traceback" not in done.stderr
    assert f"pyproject.toml: {says}" in done.stderr
