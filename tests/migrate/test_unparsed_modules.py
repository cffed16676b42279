"""A module that a script imports somewhere and Python cannot read: it is told of, and stands in nobody's way."""

import pytest
from ptmigrate.migrate.cli import main as ptmigrate
from ptmigrate.migrate.migrate import Options
from ptmigrate.migrate.project import collect, migrate_all

SCRIPT = """\
import sys
import torch

net = torch.nn.Linear(2, 1).cuda()
if len(sys.argv) > 9:
    import other
"""
BROKEN = "import torch\n\nclass torch.Net:\n    pass\n\nif __name__ == '__main__':\n    torch.ones(2).cuda()\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "other.py").write_text(BROKEN)
    return tmp_path


def test_it_keeps_its_bytes_and_the_script_is_migrated(folder):
    script, module = migrate_all(collect([folder / "train.py"]), Options())
    assert script.report.changed and "cuda" not in script.data.decode()
    assert module.report.error is None and module.result is None
    assert (folder / "other.py").read_text() == BROKEN
    (note,) = module.report.attention
    assert note.line == 3 and note.message.startswith("syntax error") and note.code == "PTM704"


@pytest.mark.parametrize(("given", "code"), [("train.py", 1), ("other.py", 2), (".", 2)])
def test_what_is_asked_for_has_to_be_read(folder, monkeypatch, capsys, given, code):
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.argv", ["ptmigrate", given, "-o", "out"])
    with pytest.raises(SystemExit) as ended:
        ptmigrate()
    assert ended.value.code == code
    assert ("other.py:3:12" in capsys.readouterr().err) is (code == 2)
    assert (folder / "out" / "train.py").exists() is (given != "other.py")


def test_a_module_that_is_not_there_to_be_read_is_an_error_still(folder, monkeypatch):
    (folder / "other.py").write_bytes(b"import torch\nx = '\xff'\n")
    module = migrate_all(collect([folder / "train.py"]), Options())[1]
    assert module.report.error is not None and module.result is None
