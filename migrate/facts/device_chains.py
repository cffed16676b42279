"""Which devices a script chooses of, and by which conditions: `"cuda" if a else "mps" if b else "cpu"`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from .devices import DEVICE_MAKERS
from .nodes import walk
from .script import Facts
from .spelled import spelled

OF_MACS = ("torch.backends.mps.is_available", "torch.mps.is_available")


@dataclass(frozen=True)
class DeviceChain:
    """A choice of CUDA, of others, and else of the CPU, in any order; `asks`: what asks whether MPS is there."""

    cuda: ast.expr
    mps: ast.expr | None
    asks: str | None


def device_chains(facts: Facts) -> Iterator[DeviceChain]:
    calls = (n for n in facts.walk(ast.Call) if facts.names.resolve(n.func) in OF_MACS)
    asks = next((ast.unparse(n) for n in calls), None) if "mps" in facts.text.text else None
    choices: list[ast.If | ast.IfExp] = [*facts.walk(ast.If), *facts.walk(ast.IfExp)]
    for node in choices:
        if not is_further(facts, node):
            links = list(_links(facts, node))
            by = {word: test for test, word in links[:-1] if test is not None}
            if len(links) > 2 and links[-1][1] == "cpu" and "cuda" in by and by.keys().isdisjoint({"cpu", None}):
                yield DeviceChain(by["cuda"], by.get("mps"), asks)


def is_further(facts: Facts, node: ast.If | ast.IfExp) -> bool:
    """Whether a condition is asked where another has failed: `elif b:`"""
    up = facts.scopes.parents.get(node)
    while isinstance(up, ast.Call) and isinstance(node, ast.IfExp):  # torch.device(...)
        up = facts.scopes.parents.get(up)
    if isinstance(up, ast.IfExp):
        return any(n is node for n in walk(up.orelse))
    return isinstance(up, ast.If) and up.orelse == [node]


def _links(facts: Facts, node: ast.If | ast.IfExp) -> Iterator[tuple[ast.expr | None, str | None]]:
    """The conditions one after the other, each with the device that it stands before; None for what is left."""
    first = node
    while True:
        given = node.body if isinstance(node, ast.IfExp) else _value(facts, node.body)
        yield node.test, _word(facts, given)
        other = node.orelse
        further: ast.If | ast.IfExp | None
        if isinstance(other, list):
            further = other[0] if len(other) == 1 and isinstance(other[0], ast.If) else None
            above = given_above(facts, first) if isinstance(first, ast.If) else []
            last = _value(facts, other or above)
        else:
            held = other.args[0] if isinstance(other, ast.Call) and len(other.args) == 1 else other
            further, last = (held if isinstance(held, ast.IfExp) else None), other
        if further is None:
            yield None, _word(facts, last)
            return
        node = further


def _word(facts: Facts, node: ast.expr | None) -> str | None:
    """`cuda`, `mps` or `cpu`, where that shows."""
    if node is None or kind_of(facts, node) is None:
        return None
    texts = (n.value for n in walk(node, ast.Constant) if isinstance(n.value, str))
    return next((t.partition(":")[0] for t in texts), None)


def _value(facts: Facts, block: list[ast.stmt]) -> ast.expr | None:
    """The device that a block gives a name."""
    return next((s.value for s in block if isinstance(s, ast.Assign) and kind_of(facts, s.value)), None)


def kind_of(facts: Facts, node: ast.expr) -> str | None:
    """ "cpu" or "accelerator" for a device whose kind shows, else None."""
    if isinstance(node, ast.Call) and facts.names.resolve(node.func) in DEVICE_MAKERS:
        if facts.names.resolve(node.func) != "torch.device":
            return "accelerator"
        return kind_of(facts, node.args[0]) if node.args else None
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and facts.devices.is_device(node):
        return "cpu" if node.value.startswith("cpu") else "accelerator"
    if isinstance(node, (ast.JoinedStr, ast.Call, ast.BinOp)) and facts.devices.is_device(node):
        return "accelerator"  # f"cuda:{n}", "cuda:{}".format(n)
    return None


def device_given(facts: Facts, block: list[ast.stmt]) -> str | None:
    for s in block:
        if isinstance(s, ast.Assign):
            kind = kind_of(facts, s.value)
            if kind:
                return kind
    return None


def given_above(facts: Facts, branch: ast.If) -> list[ast.stmt]:
    """`device = "cpu"` right above `if args.cuda: device = "cuda"`."""
    holder = facts.scopes.parents.get(branch)
    block: list[ast.stmt] = getattr(holder, "body", [])
    above = block[block.index(branch) - 1] if branch in block[1:] else None
    if not isinstance(above, ast.Assign):
        return []
    targets = [t for s in branch.body if isinstance(s, ast.Assign) for t in map(spelled, s.targets)]
    return [above] if [spelled(t) for t in above.targets] == targets else []
