"""What a result has of the runtime gets another name where the script has such, and is imported before its use."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

SCRIPT = """
import os
import torch
import torch.distributed as dist
{top}

def main():
    dist.init_process_group("gloo")
    {first}
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = torch.utils.data.DataLoader(torch.ones(8, 4), 4)
    say = print if {asks} else None
    for epoch in range(2):
        for x in loader:
            loss = model(x).mean()
            optimizer.zero_grad()
            loss.backward()
            {step}
        say and say(epoch)


main()
"""
OWN = "def is_global_zero():\n    return dist.get_rank() == 0"
LIFTED, KEPT = "optimizer.step()", "optimizer.step() if fetch() else (yield 0)"
CALLED = "from ptmigrate.runtime import"


def migrated(top="", first="pass", asks="is_global_zero()", step=LIFTED):
    text = migrate_text(SCRIPT.format(top=top, first=first, asks=asks, step=step)).text
    compile(text, "result", "exec")
    assert migrate_text(text).text == text
    return text


@pytest.mark.parametrize("step", [LIFTED, KEPT], ids=["lifted", "kept"])
def test_an_own_question_for_rank_0_does_not_ask_itself(step):
    text = migrated(OWN, step=step)
    assert "def is_global_zero():\n    return pt_is_global_zero()\n" in text
    assert "is_global_zero as pt_is_global_zero" in text


def test_nor_is_a_variable_of_that_name_read_before_it_is_there():
    text = migrated(first="is_global_zero = dist.get_rank() == 0", asks="is_global_zero")
    assert "say = print if pt_is_global_zero() else None" in text or "is_global_zero = pt_is_global_zero()" in text


def test_a_name_that_another_file_gives_stays_its_own():
    text = migrated("from util import rank_zero_print, on_rank_zero", "print(3); os.remove('a')", "3")
    assert "pt_rank_zero_print(3); pt_on_rank_zero(os.remove)('a')" in text
    assert "on_rank_zero as pt_on_rank_zero, rank_zero_print as pt_rank_zero_print\n" in text


def test_a_parameter_of_that_name():
    top = "def log(text, rank_zero_print=True):\n    if rank_zero_print:\n        print(text)"
    assert "    if rank_zero_print:\n        pt_rank_zero_print(text)" in migrated(top, "log(3)", "3")


def test_a_class_of_the_name_of_the_handle():
    text = migrated("class Runtime:\n    pass", step=KEPT)
    assert "import Runtime as RuntimeRuntime" in text and "runtime = RuntimeRuntime.shared()" in text


def test_names_that_the_script_has_not_stay():
    text = migrated(first="print(3)", asks="dist.get_rank() == 0")
    assert f"{CALLED} Module, Trainer, is_global_zero, rank_zero_print\n" in text and "pt_" not in text


@pytest.mark.parametrize("step", [LIFTED, KEPT], ids=["lifted", "kept"])
def test_what_is_read_between_imports_is_imported_before(step):
    top = "print(torch.__version__)\nif int(os.environ['RANK']) == 0:\n    os.makedirs('x')\nimport sys"
    text = migrated(top, asks="dist.get_rank() == 0", step=step)
    at = text.index(CALLED)
    assert text.index("import torch\n") < at < text.index("rank_zero_print(torch") < text.index("if is_global_zero():")
    assert text.count(CALLED) == 1


def test_it_stays_after_the_imports_where_nothing_reads_it_before():
    text = migrated("import sys\nsys.setrecursionlimit(3000)\nimport json", "json.dumps(sys.argv)")
    assert text.index("import json") < text.index(CALLED)
