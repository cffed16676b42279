"""A loop that a package hands on comes from the file that defines it, where nothing else has it of the package."""

import pytest
from ptmigrate.migrate.migrate import Options
from ptmigrate.migrate.project import collect, migrate_all
from ptmigrate.migrate.verify.runs import python, run

from tests.migrate.test_bring_in import ENGINE, HELPERS, TRAIN, migrated, written

HANDS_ON = "from .engine import evaluate, train_one_epoch  # noqa: F401\nfrom .helpers import Meter\n"
FILES = {
    "train.py": TRAIN.replace("from engine import evaluate,", "from lib import Meter, evaluate,"),
    "lib/__init__.py": HANDS_ON,
    "lib/engine.py": ENGINE.replace("from helpers", "from .helpers"),
    "lib/helpers.py": HELPERS,
}
BY_STAR = {**FILES, "lib/__init__.py": "from .helpers import *\nfrom .engine import *\n"}
DEEPER = {
    **{name.replace("lib/", "lib/core/"): text for name, text in FILES.items()},
    "lib/__init__.py": "from lib.core import Meter, evaluate, train_one_epoch\n",
}
LOUD = {**FILES, "lib/__init__.py": HANDS_ON + "print('lib')\n"}
COME = {"by name": FILES, "by a star": BY_STAR, "through two packages": DEEPER, "that does something": LOUD}


@pytest.mark.parametrize("files", COME.values(), ids=COME.keys())
def test_comes_and_is_lifted(tmp_path, forked_runs, files):
    before = written(tmp_path / "before", files)
    done = migrated(before)
    assert done["train.py"].report.plan == "module" and "def training_step(" in done["train.py"].result.text
    assert not any("backward(" in m.result.text for name, m in done.items() if name != "train.py")
    after = written(tmp_path / "after", {name: done[name].data.decode() for name in files})
    old, new = (run(python(), f / "train.py", [], tmp_path / f"{f.name}.out", 100) for f in (before, after))
    assert old.ok and new.ok, old.output + new.output
    assert new.losses == old.losses and new.parameters == old.parameters and len(old.losses[0]) == 8
    assert [line for line in new.output.splitlines() if not line.startswith("ptmigrate:")] == old.output.splitlines()
    assert not any(m.report.changed for m in migrate_all(collect([after / "train.py"]), Options()))


def test_what_else_a_package_hands_on_it_goes_on_handing_on(tmp_path):
    both = "from .engine import train_one_epoch, check, evaluate  # noqa: F401\nfrom .helpers import Meter\n"
    engine = FILES["lib/engine.py"] + "\n\ndef check():\n    return torch.ones(1)\n"
    done = migrated(written(tmp_path, {**FILES, "lib/__init__.py": both, "lib/engine.py": engine}))
    assert done["lib/__init__.py"].result.text == both.replace("train_one_epoch, check, evaluate", "check")
    assert "from lib import Meter\n" in done["train.py"].result.text
    told = [(e.line, e.message) for e in done["lib/__init__.py"].report.edits]
    assert told == [
        (1, f"{n}() is not handed on any more: its loop is in train.py") for n in ("train_one_epoch", "evaluate")
    ]


def test_the_report_names_the_lines_of_the_files(tmp_path):
    done = migrated(written(tmp_path, FILES))
    engine, own = (done[name].report.edits for name in ("lib/engine.py", "train.py"))
    lines = FILES["lib/engine.py"].splitlines()
    assert all(".to(device)" in lines[e.line - 1] for e in engine if e.code == "PTM101")
    lines = FILES["train.py"].splitlines()
    assert all(".to(device)" in lines[e.line - 1] for e in own if e.code == "PTM101")
    came = [e for e in own if "came from engine.py" in e.message]
    assert {lines[e.line - 1] for e in came} == {"from lib import Meter, evaluate, train_one_epoch"}


STAY = {
    "the package reads it": ("lib/__init__.py", HANDS_ON + "step = train_one_epoch\n"),
    "the package lists it": ("lib/__init__.py", HANDS_ON + "__all__ = ['train_one_epoch', 'evaluate']\n"),
    "by another name": ("lib/__init__.py", HANDS_ON.replace("train_one_epoch", "fit as train_one_epoch")),
    "another file has it of the package": (
        "lib/helpers.py",
        HELPERS + "\n\nimport torch\nfrom lib import train_one_epoch\n",
    ),
    "another file has it of the package around it": (
        "lib/helpers.py",
        HELPERS + "\n\nfrom . import train_one_epoch\n",
    ),
    "another file has it of its own": (
        "lib/helpers.py",
        HELPERS + "\n\nimport torch\nfrom .engine import train_one_epoch\n",
    ),
    "one of two": (
        "lib/__init__.py",
        HANDS_ON + "try:\n    from .fast import train_one_epoch\nexcept ImportError:\n    pass\n",
    ),
    "on a line with others": ("lib/__init__.py", HANDS_ON.replace("  # noqa: F401\n", "; ")),
}


@pytest.mark.parametrize(("name", "text"), STAY.values(), ids=STAY.keys())
def test_stays(tmp_path, name, text):
    files = {**FILES, name: text}
    if "fit as" in text:
        files["lib/engine.py"] = files["lib/engine.py"].replace("train_one_epoch", "fit")
    done = migrated(written(tmp_path, files))
    assert done["train.py"].report.plan == "loop" and done["lib/__init__.py"].result.text == files["lib/__init__.py"]


def test_what_the_script_has_of_the_file_the_package_goes_on_having(tmp_path):
    """The package imported an evaluate() that its file had no more: ImportError."""
    train = FILES["train.py"].replace(
        "from lib import Meter, evaluate,", "from lib.engine import evaluate\nfrom lib import Meter,"
    )
    done = migrated(written(tmp_path, {**FILES, "train.py": train}))
    assert "evaluate" in done["lib/__init__.py"].result.text and "def evaluate(" in done["lib/engine.py"].result.text


@pytest.mark.parametrize("read", ["lib.train_one_epoch", "lib.evaluate", "getattr(lib, 'evaluate')"])
def test_what_the_script_reads_of_the_package_itself_stays_in_it(tmp_path, read):
    """The package had it no more: AttributeError where the script asked for it."""
    train = (
        FILES["train.py"].replace("import torch\n", "import torch\nimport lib\n", 1) + f"    print({read} is None)\n"
    )
    done = migrated(written(tmp_path, {**FILES, "train.py": train}))
    name = "train_one_epoch" if "train" in read else "evaluate"
    assert name in done["lib/__init__.py"].result.text and f"def {name}(" in done["lib/engine.py"].result.text


def test_in_place_a_script_beside_it_finds_it_in_the_package(tmp_path):
    other = "from lib import train_one_epoch\n\ntrain_one_epoch(1)\n"
    done = migrated(written(tmp_path, {**FILES, "more.py": other}), in_place=True)
    assert done["train.py"].report.plan == "loop" and done["lib/__init__.py"].result.text == HANDS_ON
