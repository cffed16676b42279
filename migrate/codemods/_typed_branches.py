"""Branches that make the same with a type of the GPU and with one of the CPU: `if cuda: torch.cuda.FloatTensor(n)`."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from ..facts.effects import only_asks
from ..facts.nodes import walk
from ..facts.script import Facts

OF_CUDA = re.compile(r"\b(\w+)\.cuda\.(\w*Tensor)\b")


def typed_branches(facts: Facts, is_placed: Callable[[ast.Call], bool]) -> Iterator[ast.If]:
    """Those of them where all that is made on the GPU is placed like what it is made for: the other branch can go."""
    for branch in facts.walk(ast.If):
        up = facts.scopes.parents.get(branch)
        chained = isinstance(up, ast.If) and up.orelse == [branch]
        if chained or not branch.orelse or not only_asks(facts.names, branch.test):
            continue
        body, other = ("\n".join(map(ast.unparse, block)) for block in (branch.body, branch.orelse))
        if OF_CUDA.search(body) is None or OF_CUDA.sub(r"\1.\2", body) != other:
            continue
        made = [c for s in branch.body for c in walk(s, ast.Call) if OF_CUDA.fullmatch(ast.unparse(c.func))]
        if len(made) == len(OF_CUDA.findall(body)) and all(map(is_placed, made)):
            yield branch
