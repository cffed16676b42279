"""What rank 0 does first while the others wait at a barrier stays so."""

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text

from tests.migrate.codemods.helpers import check, check_unchanged

HEAD = "import torch.distributed as dist\ndist.init_process_group('gloo')\nrank = dist.get_rank()\n"
LEFT = "import torch.distributed as dist\n"
NEW = LEFT + "from ptmigrate.runtime import {}\n"
FIRST = NEW.format("rank_zero_first")
ASKS = NEW.format("is_global_zero, rank_zero_first")
SELECT = "PTM420,PTM102,PTM690"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "if rank != 0:\n    dist.barrier()  # wait\nx = load()\n\nif rank == 0:\n    dist.barrier()\nf(x)\n",
            FIRST + "with rank_zero_first():  # wait\n    x = load()\n\nf(x)\n",
        ),
        (
            'if rank not in (-1, 0):\n    dist.barrier()\nx = """a\nb"""\nif not rank: dist.barrier()  # go on\nf(x)\n',
            FIRST + 'with rank_zero_first():\n    x = """a\nb"""\n# go on\nf(x)\n',
        ),
        (
            "if rank > 0 and not test:\n    dist.barrier()\nx = load()\n"
            "if rank == 0 and not test:\n    dist.barrier()\n",
            FIRST + "with rank_zero_first(not test):\n    x = load()\n",
        ),
        (
            "local_rank = dist.get_node_local_rank()\nif local_rank:\n    dist.barrier()\nx = load()\n"
            "if local_rank == 0:\n    dist.barrier()\n",
            FIRST + "with rank_zero_first(per_node=True):\n    x = load()\n",
        ),
        (
            "if rank == 0:\n    x = load()\n    dist.barrier()\nelse:\n    dist.barrier()\n    x = load()\nf(x)\n",
            FIRST + "with rank_zero_first():\n    x = load()\nf(x)\n",
        ),
        (
            "if rank == 0:\n    x = load(1)\n    dist.barrier()\nelse:\n    dist.barrier()\n    x = load(2)\nf(x)\n",
            ASKS + "with rank_zero_first():\n    if is_global_zero():\n        x = load(1)\n    else:\n"
            "        x = load(2)\nf(x)\n",
        ),
        (
            "if rank == 0:\n    load()\n    dist.barrier()\nelse:\n    dist.barrier()\nf()\n",
            ASKS + "with rank_zero_first():\n    if is_global_zero():\n        load()\nf()\n",
        ),
        (
            "for part in parts:\n    if rank == 0 and new(part):\n        load(part)\n    dist.barrier()\n"
            "    f(part)\n",
            ASKS + "for part in parts:\n    with rank_zero_first():\n        if is_global_zero() and new(part):\n"
            "            load(part)\n    f(part)\n",
        ),
        (
            "if args.dist and rank:\n    dist.barrier()\nload()\nif args.dist and not rank:\n    dist.barrier()\nf()\n",
            FIRST + "with rank_zero_first():\n    load()\nf()\n",
        ),
        (
            "if rank == 0:\n    # once\n    load()\ndist.barrier()\nf()\n",
            ASKS + "with rank_zero_first():\n    if is_global_zero():\n        # once\n        load()\nf()\n",
        ),
        (
            "if rank == 0:\n    load()\nif dist.is_initialized():\n    dist.barrier()\nf()\n",
            ASKS + "with rank_zero_first():\n    if is_global_zero():\n        load()\nf()\n",
        ),
    ],
)
def test_rank_0_goes_first(before, after):
    check(HEAD + before, after, select=SELECT)


NODE = NEW.format("is_local_zero, rank_zero_first") + "with rank_zero_first(per_node=True):\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("me = dist.get_node_local_rank()\nif me == 0:\n    load()\n", "    if is_local_zero():\n        load()\n"),
        ("if args.local_rank == 0 and new:\n    load()\n", "    if is_local_zero() and new:\n        load()\n"),
        ("if local_rank in (-1, 0):\n    load()\n", "    if is_local_zero():\n        load()\n"),
    ],
)
def test_each_machine_prepares_its_own(before, after):
    """Rank 0 alone prepared it, and on the next machine it was not there."""
    check(HEAD + before + "dist.barrier()\nf()\n", NODE + after + "f()\n", select=SELECT)


@pytest.mark.parametrize(
    "before",
    [
        "if dist.get_node_local_rank() == 0:\n    note()\nf()\n",  # nobody waits for it
        "local_rank = rank\nif local_rank == 0:\n    load()\ndist.barrier()\nf()\n",  # by its name alone
        "if rank == 0:\n    load()\ndist.barrier()\nf()\n",
    ],
)
def test_rank_0_alone_prepares_it(before):
    text = migrate_text(HEAD + before, Options(select=tuple(SELECT.split(","))), is_script=False).text
    assert "if is_global_zero():" in text and "per_node" not in text


def test_comments_between_go_along():
    before = "if rank:\n    dist.barrier()\n# once\nx = load()\n# over\nif not rank:\n    dist.barrier()\n# all\nf(x)\n"
    after = "with rank_zero_first():\n    # once\n    x = load()\n    # over\n# all\nf(x)\n"
    assert migrate_text(HEAD + before, Options(select=("PTM420",)), is_script=False).text == FIRST + after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if rank == 0:\n    print(1)\ndist.barrier()\nf()\n", LEFT + "print(1)\nf()\n"),  # done once by itself
        ("if rank == 0:\n    load()\ndist.barrier()\ndist.destroy_process_group()\n", None),  # nothing needs it
        ("if rank == 0:\n    load()\nf()\ndist.barrier()\ng()\n", None),  # others did not wait before f()
        ("if rank:\n    dist.barrier()\nf()\n", LEFT + "f()\n"),
        ("dist.barrier()\nf()\n", None),
        ("for e in range(3):\n    if rank == 0:\n        load()\n    dist.barrier()\n    loss().backward()\n", None),
    ],
)
def test_all_go_at_once(before, after):
    result = migrate_text(HEAD + before, Options(select=tuple(SELECT.split(","))), is_script=False)
    assert "rank_zero_first" not in result.text and "barrier" not in result.text
    assert after is None or result.text == after


CONTEXT = "from contextlib import contextmanager\n\n@contextmanager\ndef first(rank):\n{}\n\n"
WAITS = "    if rank:\n        dist.barrier()\n    yield{}\n    if not rank:\n        dist.barrier()"
TURNS = "    with rank_zero_first():\n        yield"


def test_a_context_of_the_script_is_the_runtimes():
    before = HEAD + CONTEXT.format(WAITS.format("")) + "with first(rank):\n    # once\n    x = load()\nf(x)\n"
    result = migrate_text(before, Options(select=tuple(SELECT.split(","))))
    assert result.text.endswith(
        FIRST.removeprefix(LEFT) + "\nwith rank_zero_first():\n    # once\n    x = load()\nf(x)\n"
    )


@pytest.mark.parametrize(
    ("body", "new", "used"),
    [
        (WAITS.format(" 3"), TURNS + " 3", "with first(rank):\n    x = load()\n"),
        (WAITS.format("") + "\n    count()", TURNS + "\n    count()", "with first(rank):\n    x = load()\n"),
        (WAITS.format(""), TURNS, "use(first)\n"),
    ],
)
def test_a_context_that_does_more_has_its_turns_inside(body, new, used):
    text = migrate_text(HEAD + CONTEXT.format(body) + used, Options(select=("PTM420", "PTM102"))).text
    assert f"def first(rank):\n{new}\n" in text and text.endswith(used)


def test_lightning_has_no_such_block():
    before = HEAD + "if rank != 0:\n    dist.barrier()\nx = load()\nif rank == 0:\n    dist.barrier()\nf(x)\n"
    result = migrate_text(before, Options(framework="lightning"))
    assert "rank_zero_first" not in result.text
    assert any("at once" in n.message and n.line == 4 for n in result.attention)


@pytest.mark.parametrize(
    "line",
    [
        "if first:\n    gate.barrier()\nload()\nif not first:\n    gate.barrier()",
        "from ptmigrate.runtime import rank_zero_first\nwith rank_zero_first():\n    x = load()",
        "text = 'if rank != 0: dist.barrier()'",
    ],
)
def test_unchanged(line):
    check_unchanged(f"import torch\n{line}\n")
