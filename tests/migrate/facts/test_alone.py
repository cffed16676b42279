"""Who comes to a place: one process alone, all of them, or either, as the caller tells."""

import ast

import pytest
from ptmigrate.migrate.facts.other_files import OtherFile
from ptmigrate.migrate.facts.script import Facts

CASES = [
    ("def f():\n    here()\n\nf()\n", {False}),
    ("def f():\n    here()\n\nif rank == 0:\n    f()\nmain(1)\n", {True}),
    ("def f():\n    here()\n\nf()\nif rank == 0:\n    f()\n", {True, False}),
    ("def f():\n    if rank != 0:\n        return\n    here()\n\nf()\n", {True}),
    ("def f():\n    here()\n    f()\n\nif rank == 0:\n    f()\nmain(1)\n", {True}),  # itself
    ("def chief():\n    return dist.get_rank() == 0\nif chief():\n    here()\n", {True}),
    ("def chief():\n    return is_global_zero()\nif not chief():\n    exit()\n    raise E\nhere()\n", {True}),
    (
        "class C:\n    @property\n    def lead(self):\n        return not dist.get_rank()\nif c.lead:\n    here()\n",
        {True},
    ),
    ("def many():\n    return dist.get_rank() != -1\nif many():\n    here()\n", {False}),
    ("def chief():\n    return n == 0\nif chief():\n    here()\n", {False}),
    ("def chief():\n    return dist.get_rank()\nif best(chief):\n    here()\n", {True}),
    ("def is_main():\n    return dist.get_rank() == 0\nif is_main:\n    here()\n", {False}),  # without its call
    ("def is_main():\n    return dist.get_rank() == 0\nif x and not is_main:\n    here()\n", {False}),
    ("def is_main():\n    return dist.get_rank() == 0\nif is_main and rank == 0:\n    here()\n", {True}),
    ("def is_main():\n    return dist.get_rank() == 0\nif is_main():\n    here()\n", {True}),
    ("def is_main():\n    return dist.get_rank() == 0\nis_main = is_main()\nif is_main:\n    here()\n", {True}),
    ("def is_main(): ...\ndef f(is_main):\n    if is_main:\n        here()\n", {True}),
    ("from util import is_main\nif is_main:\n    here()\n", {True}),  # of a file that is not known
    ("def f():\n    here()\n    f()\n\nmain(1)\n", {False}),  # nobody that is known calls them
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_reached_by(text, expected):
    facts = Facts("import torch.distributed as dist\n" + text)
    assert facts.alone.reached_by(_here(facts)) == expected


@pytest.mark.parametrize(
    ("there", "expected"),
    [("def is_main():\n    return 1\n", {False}), ("class is_main:\n    x = 1\n", {True}), ("is_main = 1\n", {True})],
)
@pytest.mark.parametrize("asks", ["from util import is_main\nif is_main:", "import util\nif util.is_main:"])
def test_a_function_of_another_file_that_is_not_called(there, expected, asks):
    facts = Facts(f"{asks}\n    here()\n")
    facts.others = (OtherFile("util", there),)
    assert facts.alone.reached_by(_here(facts)) == expected


def test_methods_of_one_name_that_call_each_other_are_looked_at_once():
    layers = "".join(
        f"class Layer{i}(nn.Module):\n    def forward(self, x):\n        here()\n"
        f"        return self.forward(self.run(x))\n"
        f"    def run(self, x):\n        return self.forward(self.c.forward(x)) + self.run(x)\n"
        for i in range(40)
    )
    facts = Facts(layers + "net.run(x)\n")
    steps = 0
    look = facts.alone._here

    def counted(*given):
        nonlocal steps
        steps += 1
        return look(*given)

    facts.alone._here = counted
    assert facts.alone.reached_by(_here(facts)) == {False}
    assert steps <= len(facts.walk(ast.Call)) + 1


def _here(facts):
    return next(c for c in facts.walk(ast.Call) if getattr(c.func, "id", "") == "here")
