"""T9: a launcher's variables that are asked for under names of the script's own: ptrun sets them, too."""

import re

import pytest
from helpers import check, check_unchanged, migrated
from ptmigrate.migrate.facts.environment import LAUNCHED_WITH
from ptmigrate.migrate.migrate import Options, migrate_text
from ptmigrate.runtime.environment import ALONE, plain_environ

HEAD = "import os\nimport torch.distributed as dist\n"
INIT = "dist.init_process_group('gloo')\n"
LEFT = HEAD + "from ptmigrate.runtime import plain_environ\n"
HELPER = "def env(name, default=0):\n    return int({})\n"


@pytest.mark.parametrize(
    ("asked", "new"),
    [
        ("os.environ.get(name, default)", "plain_environ().get(name, default)"),
        ("os.getenv(name, default)", "plain_environ().get(name, default)"),
        ("os.environ[name]", "plain_environ()[name]"),
        ("os.environ[name] if name in os.environ else 1", "plain_environ()[name] if name in plain_environ() else 1"),
        ("name in os.environ.keys()", "name in plain_environ().keys()"),
    ],
)
@pytest.mark.parametrize("use", ["f(env('WORLD_SIZE', 1))", "f(env(name='RANK'))", "K = 'RANK'\nf(env(K))"])
def test_a_function_that_is_asked_for_them(asked, new, use):
    check(HEAD + HELPER.format(asked) + INIT + use + "\n", LEFT + HELPER.format(new) + use + "\n", select="PTM420")


@pytest.mark.parametrize("names", ["('RANK', 'PMI_RANK')", "['PMI_RANK', 'SLURM_PROCID']", "{'RANK'}"])
def test_a_loop_over_them(names):
    loop = f"for k in {names}:\n    if k in os.environ:\n        n = int(os.environ[k])\nf(n)\n"
    check(HEAD + INIT + loop, LEFT + loop.replace("os.environ", "plain_environ()"), select="PTM420")


@pytest.mark.parametrize(
    "script",
    [
        HELPER.format("os.environ.get(name, default)") + "f(env('WORKERS'))",
        HELPER.format("settings.get(name, default)") + "f(env('RANK'))",
        "for k in ('HOME', 'PATH'):\n    f(os.environ[k])",
        "for k in ('RANK', 'PATH'):\n    f(settings[k])",
        "os.environ[k] = f('RANK')",
        "os.environ.pop(k, 'RANK')",
        "f(os.environ.get('HOME'), 'RANK')",
    ],
)
def test_what_asks_for_others_stays(script):
    check_unchanged(f"{HEAD}{script}\n", [], select="PTM420")
    text = migrated(HEAD + INIT + script + "\n", select="PTM420").text
    assert text == f"{HEAD}{script}\n"


def test_without_processes_of_its_own_it_stays():
    check_unchanged(HEAD + HELPER.format("os.environ[name]") + "f(env('RANK'))\n", [], select="PTM420")


def test_lightning_is_told():
    text = HEAD + HELPER.format("os.environ[name]") + INIT + "f(env('RANK'))\nloss.backward()\n"
    result = migrate_text(text, Options(framework="lightning"), is_script=True)
    assert "plain_environ" not in result.text
    assert any(n.line == 4 and "what the launcher sets" in n.message for n in result.attention)


def test_both_know_the_same_names():
    assert ALONE == LAUNCHED_WITH


def test_the_only_process(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "OTHER"):
        monkeypatch.setenv(name, "3")
    found = plain_environ()
    assert "RANK" not in found and found.get("WORLD_SIZE", "7") == "7" and found["OTHER"] == "3"
    assert (found["RANK"], found["WORLD_SIZE"]) == ("0", "1")
    with pytest.raises(KeyError, match=re.escape("NEITHER")):
        found["NEITHER"]
