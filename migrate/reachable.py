"""What each node of a graph leads to, itself among it: in one pass, as nodes that lead to one another share it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

N = TypeVar("N", bound=Hashable)


def reachable(edges: Mapping[N, Iterable[N]]) -> dict[N, frozenset[N]]:
    """Of each node that `edges` names, every node that a path of them leads to. A node without edges leads nowhere.

    Tarjan's strongly connected components (SIAM J. Comput. 1, 1972), without recursion.
    """
    found: dict[N, frozenset[N]] = {}
    index: dict[N, int] = {}
    low: dict[N, int] = {}
    stack: list[N] = []
    for first in edges:
        if first in index:
            continue
        work = [(first, iter(edges[first]))]
        index[first] = low[first] = len(index)
        stack.append(first)
        while work:
            node, rest = work[-1]
            new = next((n for n in rest if n not in index), None)
            if new is not None:
                index[new] = low[new] = len(index)
                stack.append(new)
                work.append((new, iter(edges.get(new, ()))))
                continue
            work.pop()
            inside = (n for n in edges.get(node, ()) if n not in found)  # those are on the stack still
            low[node] = min([low[node], *(low[n] for n in inside)])
            if low[node] == index[node]:
                at = stack.index(node)
                together = stack[at:]
                del stack[at:]
                beyond = (found[n] for member in together for n in edges.get(member, ()) if n in found)
                whole = frozenset(together).union(*beyond)
                found.update(dict.fromkeys(together, whole))
    return {node: found[node] for node in edges}
