"""What a script asks its cluster for, to tell its processes where to meet, and what of that stays."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..facts.environment import LAUNCHED_WITH, is_environment
from ..facts.nodes import walk
from ..facts.script import Facts

CLUSTER = re.compile(r"(SLURM|OMPI|PMIX?|MV2|PBS|LSB|FLUX)_")
OF_ADDRESSES = re.compile(r"port|host|addr|master|node", re.IGNORECASE)
DRAWS = ("random.", "numpy.", "torch.", "secrets.")  # what a script computes with, or draws from


def only_for_addresses(facts: Facts, going: set[ast.AST]) -> list[ast.Assign]:
    """Assignments whose names only statements read that go: `hosts = expand(os.environ["SLURM_JOB_NODELIST"])`."""
    found: list[ast.Assign] = []
    left = [s for s in facts.walk(ast.Assign) if s not in going and _asks(facts, s)] if going else []
    grew = True
    while grew:
        grew = False
        for s in left:
            target = s.targets[0]
            scope = facts.scopes.scope_of(target).lookup(target.id)  # type: ignore[attr-defined]
            if s in found or scope is None or len(scope.stores.get(target.id, ())) > 1:  # type: ignore[attr-defined]
                continue
            reads = list(facts.scopes.reads(target.id, scope))  # type: ignore[attr-defined]
            goes = (any(up in going or up in found for up in facts.scopes.ancestors(r)) for r in reads)
            if reads and all(goes):
                found.append(s)
                grew = True
    return found


def _asks(facts: Facts, s: ast.Assign) -> bool:
    """Whether a name is given what is asked of the system, and nothing is drawn or computed for the training."""
    if len(s.targets) > 1 or not isinstance(s.targets[0], ast.Name) or facts.is_library:
        return False
    for n in walk(s.value, ast.Call):
        full = facts.names.resolve(n.func)
        own = isinstance(n.func, ast.Name) and facts.scopes.scope_of(n.func).lookup(n.func.id) is not None
        if (full or "").startswith(DRAWS) or (own and full is None and not OF_ADDRESSES.search(ast.unparse(n.func))):
            return False
    return True


def demanded(facts: Facts) -> Iterator[ast.Subscript]:
    """`os.environ["SLURM_JOB_ID"]`, which is an error where that cluster does not start the script."""
    for node in facts.walk(ast.Subscript) if CLUSTER.search(facts.text.text) else ():
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        of_cluster = isinstance(key, str) and CLUSTER.match(key) and key not in LAUNCHED_WITH
        if of_cluster and isinstance(node.ctx, ast.Load) and is_environment(facts, node.value):
            yield node
