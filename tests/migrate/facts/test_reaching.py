"""Which bindings of a name a read of it may see, in a loop that comes back to it."""

import ast

import pytest
from ptmigrate.migrate.facts.script import facts_of

LOOPS = {
    "bound anew above it": ("for b in d:\n    x, y = b\n    use(y)\n    if x:\n        y = 3\n", [2]),
    "in a while": ("while d:\n    x, y = next(d)\n    use(y)\n    if x:\n        y = 3\n", [2]),
    "in some steps alone": ("for b in d:\n    if b:\n        y = b\n    use(y)\n    y = 3\n", [3, 5]),
    "by a loop that may have no step": ("for b in d:\n    for y in b:\n        pass\n    use(y)\n    y = 3\n", [2, 5]),
    "below it alone": ("y = 0\nfor b in d:\n    use(y)\n    y = b\n", [1, 4]),
    "of a loop around": ("for e in n:\n    y = 1\n    for b in d:\n        use(y)\n        y = 3\n", [2, 5]),
    "nowhere else": ("for b in d:\n    y = b\n    use(y)\n", [2]),
}


@pytest.mark.parametrize("loop", LOOPS)
def test_a_read_sees_what_the_step_may_have_left(loop):
    source, lines = LOOPS[loop]
    facts = facts_of(source)
    (read,) = [n for n in facts.walk(ast.Name) if n.id == "y" and isinstance(n.ctx, ast.Load)]
    assert sorted(s.lineno for s in facts.placed.reaching(read, facts.scopes.module)) == lines
