"""The proof, with real runs: a true migration climbs, an untrue one is caught, missing data is told apart."""

import json
import subprocess
import sys
from pathlib import Path

from ptmigrate.migrate.migrate import migrate_text
from ptmigrate.migrate.render import render_ladder
from ptmigrate.migrate.verify.ladder import climb

DIGITS = Path(__file__).parents[3] / "fixtures" / "plain" / "digits.py"
SMALL = ["--epochs", "1", "--log-interval", "100"]


def migrated(tmp_path, text):
    (tmp_path / "original.py").write_text(text, encoding="utf-8")
    (tmp_path / "result.py").write_text(migrate_text(text).text, encoding="utf-8")
    return tmp_path / "original.py", tmp_path / "result.py"


def results(ladder):
    return {r.name: r.result for r in ladder.rungs}


def test_digits_climb_the_whole_ladder(tmp_path):
    command = [
        sys.executable,
        "-m",
        "ptmigrate.migrate.cli",
        "--verify",
        "--devices",
        "2",
        "--format",
        "json",
        str(DIGITS),
    ]
    done = subprocess.run([*command, "--", "--epochs", "2"], cwd=tmp_path, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    proof = json.loads(done.stdout)["verify"]
    assert proof["proven"] and proof["original_runs"] == "yes"
    names = [r["name"] for r in proof["rungs"]]
    assert names == ["parses", "runs", "same losses", "runs on 2", "same losses on 2"]
    assert all(r["result"] == "yes" for r in proof["rungs"])
    assert (tmp_path / "migrated" / "digits.py").exists()


def test_a_result_that_trains_differently_is_caught(tmp_path, capsys):
    original, result = migrated(tmp_path, DIGITS.read_text(encoding="utf-8"))
    result.write_text(
        result.read_text(encoding="utf-8").replace("lr=self.args.lr", "lr=self.args.lr * 2"), encoding="utf-8"
    )
    ladder = climb(original, result, SMALL, 1)
    assert results(ladder) == {"parses": "yes", "runs": "yes", "same losses": "no"} and not ladder.proven
    assert "at step 1" in ladder.rungs[-1].detail
    render_ladder(ladder)
    assert "not proven" in capsys.readouterr().out


def test_a_result_whose_losses_agree_but_whose_parameters_do_not_is_caught(tmp_path):
    original, result = migrated(tmp_path, DIGITS.read_text(encoding="utf-8"))
    text = result.read_text(encoding="utf-8")
    at = text.index("    if args.save_model")
    result.write_text(text[:at] + "    torch.nn.init.zeros_(model.fc2.bias)\n" + text[at:], encoding="utf-8")
    assert results(climb(original, result, SMALL, 1))["same losses"] == "no"


def test_a_result_that_fails_says_why(tmp_path):
    original, result = migrated(tmp_path, DIGITS.read_text(encoding="utf-8"))
    result.write_text("raise RuntimeError('broken')\n", encoding="utf-8")
    ladder = climb(original, result, SMALL, 1)
    assert results(ladder)["runs"] == "no" and "broken" in ladder.rungs[1].detail


def test_an_original_that_does_not_find_its_data_is_told_apart(tmp_path, capsys):
    text = DIGITS.read_text(encoding="utf-8").replace("load_digits()", "open('/no/such/data')")
    ladder = climb(*migrated(tmp_path, text), SMALL, 2)
    assert not ladder.proven and "No such file" in ladder.original
    assert set(results(ladder).values()) == {"yes", "not tried"}
    render_ladder(ladder)
    assert "the original does not run here" in capsys.readouterr().out
