"""T9: MPI by hand, which ptrun's processes know nothing of: told once a file, and left as it is.

`comm = MPI.COMM_WORLD`, `comm.Get_rank()`, `comm.allreduce(loss)`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.script import Facts
from ..report import Note

WORLD = ("mpi4py.MPI.COMM_WORLD",)


def told_of_mpi(facts: Facts, code: str) -> Iterator[Note]:
    """A note where a file first asks for MPI's processes."""
    if "mpi4py" not in facts.text.text:
        return
    reads = [*facts.walk(ast.Attribute), *(n for n in facts.walk(ast.Name) if isinstance(n.ctx, ast.Load))]
    asked = [n for n in reads if (facts.names.resolve(n) or "").startswith(WORLD)]
    for node in sorted(asked, key=facts.text.key)[:1]:
        line, column, _, _ = facts.text.key(node)
        says = f"`{facts.short(node)}`: MPI by hand stays as it is: for MPI each of ptrun's processes is rank 0 of 1"
        yield Note(line, column + 1, code, f"{says}, and its sums are of one process; write it for one device")
