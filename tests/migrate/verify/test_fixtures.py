"""Every plain script of fixtures/plain goes through the whole ladder: original, result, result on two processes."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from ptmigrate.migrate.cli import command

FIXTURES = Path(__file__).parents[3] / "fixtures" / "plain"
RANKS = {"loop": 0, "manual": 1, "module": 2}
RUNGS = ["parses", "runs", "same losses", "runs on 2", "same losses on 2"]
# the least plan, and the rungs that are known not to hold, with the reason
SCRIPTS = {
    "amp_accumulate.py": ("manual", {}),
    "char_gpt.py": ("manual", {}),
    "contrastive.py": ("module", {}),
    "dcgan.py": ("manual", {"same losses on 2": "noise is drawn for each share"}),
    "ddp_spawn.py": ("module", {}),
    "ddp_torchrun.py": ("module", {}),
    "digits.py": ("module", {}),
    "feedforward.py": ("module", {}),
    "forward_forward.py": ("loop", {}),
    "karate_gcn.py": ("module", {}),
    "lbfgs.py": ("manual", {}),
    "manual_batches.py": ("module", {}),
    "param_groups.py": ("module", {}),
    "random_lengths.py": ("manual", {}),
    "resume.py": ("module", {"same losses on 2": "the data set draws its shifts, for each share"}),
    "siamese.py": ("module", {}),
    "step_function.py": ("module", {}),
    "tcn.py": ("manual", {}),
    "trainer_class.py": ("module", {}),
    "unet_plateau.py": ("manual", {}),
    "warmup.py": ("manual", {}),
    "wgan_gp.py": ("manual", {"same losses on 2": "noise is drawn for each share"}),
    "wine_nested.py": ("module", {}),
    "word_lm.py": ("manual", {}),
    "wine_project/train.py": ("manual", {}),
    "digits_project/scripts/main.py": ("loop", {}),
}


def test_every_fixture_is_here():
    at_the_top = {p.name for p in FIXTURES.glob("*.py")}
    assert at_the_top == {name for name in SCRIPTS if "/" not in name}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SCRIPTS)
def test_ladder(tmp_path, monkeypatch, forked_runs, name):
    """In a folder of its own: what a script writes stays there, and several may run at once."""
    least, known = SCRIPTS[name]
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(command, ["--verify", "--devices", "2", "--format", "json", str(FIXTURES / name)])
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert RANKS[report["files"][0]["plan"]] >= RANKS[least]
    proof = report["verify"]
    assert proof["original_runs"] == "yes"
    assert [r["name"] for r in proof["rungs"]] == RUNGS
    failed = {r["name"]: r["detail"] for r in proof["rungs"] if r["result"] != "yes"}
    assert set(failed) <= set(known), failed
    assert done.exit_code in (0, 1) and (done.exit_code == 0 or failed or report["summary"]["attention"])
