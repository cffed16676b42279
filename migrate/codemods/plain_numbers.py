"""T9: sums and products with a rank or a world, which are 0 and 1 in a plain script."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..facts.device_words import number_of_card
from ..facts.distribution import distribution_of
from ..facts.effects import only_asks
from ..facts.nodes import walk
from ..facts.script import Facts
from ..facts.spelled import spelled
from ..facts.world import PEERS, PLAIN
from ..report import Note
from ._set_off import stands_alone
from .base import Change, Codemod
from .rewrites import bare, source, take_operand, whole_slice

WHY = "the runtime starts and connects the processes"
# what counts samples, batches or workers, in whole numbers
COUNTS = re.compile(r"batch|worker|bs\b|num_|len\(|steps|samples|size", re.IGNORECASE)
RATE = re.compile(r"\b(\w*_)?lr\b|learning_rate", re.IGNORECASE)
WORLD_KEY = re.compile(r"world(_?size)?$|n_?gpus?|num_?gpus|num_replicas|nprocs", re.IGNORECASE)
DIVIDES = (ast.Div, ast.FloorDiv)
# in a plain script, and in each of several processes
RANKS = [0, *(w.rank for w in PEERS)]
WORLDS = [1, *(w.size for w in PEERS)]


class PlainNumbers(Codemod):
    code = "PTM420"
    name = "plain-numbers"

    def __init__(self, gone: set[ast.AST]) -> None:
        self.gone = gone  # what is planned to go already
        self.left: list[Note] = []

    def plan(self, facts: Facts) -> Iterator[Change]:
        """`batch // world_size` is the batch, `seed + rank` the seed, in a plain script."""
        found = distribution_of(facts)
        yield from self._shares(facts)
        yield from self._cards(facts)
        yield from self._in_place(facts)
        for node in facts.walk(ast.BinOp):
            holder = facts.scopes.statement_of(node)
            if node in self.gone or facts.is_fixed(node) or holder in self.gone:
                continue
            if isinstance(holder, ast.Assign) and found.divides_batch(holder):
                continue
            left = self._neutral(facts, node)
            if left is None:
                self._tell_of_entry(facts, node, holder)
                continue
            part = node.right if left is node.left else node.left
            whole: ast.expr = node
            up = facts.scopes.parents.get(node)
            if isinstance(node.op, ast.Div):
                if not (
                    isinstance(up, ast.Call) and ast.unparse(up.func) == "int" and COUNTS.search(ast.unparse(left))
                ):
                    continue
                whole = up if _is_whole(left) else node  # int(0.1 * steps / world) is still no 0.1 * steps
            rounded = _rounded_up(node) if whole is up or isinstance(node.op, ast.FloorDiv) else None
            if rounded is not None:
                says = f"`{facts.short(whole)}` is `{facts.short(rounded)}` in a plain script: {WHY}"
                text = facts.text.get(rounded)
                simple = isinstance(rounded, (ast.Name, ast.Attribute, ast.Constant, ast.Call))
                stays = set(walk(rounded))
                gone = tuple(n for n in walk(whole) if isinstance(n, ast.expr) and n not in stays)
                yield Change(whole, self.edit(facts, whole, says), source(text if simple else f"({text})"), gone)
                continue
            says = f"`{facts.short(whole)}` is `{facts.short(left)}` in a plain script: {WHY}"
            if isinstance(node.op, ast.Mult) and self._scales_rate(facts, node, holder):
                at = facts.text.key(node)
                told = f"`{facts.short(node)}`: the rate was scaled with the number of processes; it is that of one now"
                self.left.append(Note(at[0], at[1] + 1, self.code, told))
            if isinstance(holder, ast.Assign) and self._is_itself(facts, holder, whole, left):
                yield Change(
                    holder, self.edit(facts, holder, f"`{facts.short(holder)}` removed: {WHY}"), None, (holder,)
                )
                continue
            new = facts.text.get(left)
            side = "left" if left is node.left else "right"
            alone = stands_alone(facts, whole, left) and not isinstance(left, ast.Call)
            rewrite = bare(new) if alone else take_operand(side, of_call=whole is up)
            yield Change(whole, self.edit(facts, whole, says), rewrite, (part,))

    def _in_place(self, facts: Facts) -> Iterator[Change]:
        """`args.lr *= args.world_size`, `args.batch_size //= world`, `seed += rank`"""
        for s in facts.walk(ast.AugAssign):
            if s in self.gone or facts.is_fixed(s) or not isinstance(s.target, (ast.Name, ast.Attribute)):
                continue
            if not isinstance(s.value, (ast.Name, ast.Attribute, ast.Call)) or distribution_of(facts).averages(s):
                continue
            world = isinstance(s.op, (ast.Mult, *DIVIDES)) and numbers_of(facts, s.value) == WORLDS
            if not world and not (isinstance(s.op, (ast.Add, ast.Sub)) and numbers_of(facts, s.value) == RANKS):
                continue
            if world and isinstance(s.op, ast.Mult) and RATE.search(ast.unparse(s.target)):
                at = facts.text.key(s)
                told = f"`{facts.short(s)}`: the rate was scaled with the number of processes; it is that of one now"
                self.left.append(Note(at[0], at[1] + 1, self.code, told))
            yield Change(s, self.edit(facts, s, f"`{facts.short(s)}` removed: {WHY}"), None, (s,))

    def _is_itself(self, facts: Facts, s: ast.Assign, whole: ast.expr, left: ast.expr) -> bool:
        """`args.lr = args.lr * args.world_size`, `args.rank = args.rank * n + gpu`"""
        while (inner := self._neutral(facts, left) if isinstance(left, ast.BinOp) else None) is not None:
            left = inner
        return s.value is whole and len(s.targets) == 1 and spelled(s.targets[0]) == spelled(left)

    def _shares(self, facts: Facts) -> Iterator[Change]:
        """`xs[rank::world]` is `xs[:]`."""
        for node in facts.walk(ast.Subscript):
            part = node.slice
            if node in self.gone or not isinstance(part, ast.Slice) or part.lower is None or part.step is None:
                continue
            if numbers_of(facts, part.lower) != RANKS or numbers_of(facts, part.step) != WORLDS:
                continue
            if not facts.is_fixed(node):
                says = f"`{facts.short(node)}` is all of it in a plain script: {WHY}"
                yield Change(node, self.edit(facts, node, says), whole_slice, (part.lower, part.step))

    def _cards(self, facts: Facts) -> Iterator[Change]:
        """`return f"cuda:{rank}"` gives the first card, and where that stays it is told of as every such is."""
        given = (n for s in facts.walk(ast.Return) if s.value is not None and s not in self.gone for n in walk(s.value))
        for node in (n for n in given if isinstance(n, ast.expr)):
            number = number_of_card(node)
            if number is not None and numbers_of(facts, number) == RANKS:
                says = f"`{facts.short(node)}` is 'cuda:0' in a plain script: {WHY}"
                yield Change(node, self.edit(facts, node, says), source('"cuda:0"'), (number,))

    def _tell_of_entry(self, facts: Facts, node: ast.BinOp, holder: ast.stmt) -> None:
        """`lr * cfg["world_size"]`, of which nothing shows that it is 1 now."""
        keys = [getattr(s.slice, "value", None) for s in (node.left, node.right) if isinstance(s, ast.Subscript)]
        rate = isinstance(node.op, ast.Mult) and (RATE.search(ast.unparse(holder)) or self._is_rate(facts, node))
        if rate and any(isinstance(k, str) and WORLD_KEY.match(k) for k in keys):
            at = facts.text.key(node)
            told = (
                f"`{facts.short(node)}`: the rate is scaled with the number of processes, and the runtime has its own"
            )
            self.left.append(Note(at[0], at[1] + 1, self.code, told))

    def _scales_rate(self, facts: Facts, node: ast.BinOp, holder: ast.stmt) -> bool:
        """Also by a name between: `total = batch * world_size`, `lr = base * total / 256`."""
        if RATE.search(ast.unparse(holder)) or self._is_rate(facts, node):
            return True
        if not isinstance(holder, ast.Assign) or len(holder.targets) != 1:
            return False
        name = ast.unparse(holder.targets[0])
        given = [k.value for k in facts.walk(ast.keyword) if RATE.fullmatch(k.arg or "")]
        given += [s.value for s in facts.walk(ast.Assign) if any(RATE.search(ast.unparse(t)) for t in s.targets)]
        return any(isinstance(n, ast.expr) and ast.unparse(n) == name for g in given for n in walk(g))

    def _is_rate(self, facts: Facts, node: ast.BinOp) -> bool:
        """`SGD(model.parameters(), 0.1 * world_size)`"""
        above = [node, *facts.scopes.ancestors(node)]
        made = [u for u in above if isinstance(u, ast.Call)]
        made = [c for c in made if (facts.names.resolve(c.func) or "").startswith("torch.optim.")]
        return any(len(c.args) > 1 and c.args[1] in above for c in made)

    def _neutral(self, facts: Facts, node: ast.BinOp) -> ast.expr | None:
        """What is left of a product or sum in which one side is the world of one process, or its rank."""
        for side, other in ((node.right, node.left), (node.left, node.right)):
            if isinstance(node.op, ast.Add) and self._times_rank(facts, side):
                return other
            if isinstance(node.op, ast.Add) and self._is_false(facts, side):
                return other
            if not isinstance(side, (ast.Name, ast.Attribute, ast.Call, ast.IfExp)):
                continue
            found = numbers_of(facts, side)
            if found is None:
                continue
            world, rank = found == WORLDS, found == RANKS
            if rank and isinstance(node.op, ast.Sub) and side is node.right:
                return other
            if world and (isinstance(node.op, ast.Mult) or (side is node.right and isinstance(node.op, DIVIDES))):
                return other
            if rank and isinstance(node.op, ast.Add):
                return other
        return None

    def _is_false(self, facts: Facts, node: ast.expr) -> bool:
        """`distributed and len(part) < len(whole)`, which adds nothing."""
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And) and self._is_false(facts, node.values[0]):
            return True  # nothing asks the others
        known = facts.worlds.plain(node)
        return known is not None and known.value is False and only_asks(facts.names, node)

    def _times_rank(self, facts: Facts, node: ast.expr) -> bool:
        """`rank * 1000`, which is nothing on the one process."""
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)):
            return False
        sides = ((node.left, node.right), (node.right, node.left))
        plain = [side for side, other in sides if isinstance(other, (ast.Constant, ast.Name, ast.Attribute))]
        return any(numbers_of(facts, side) == RANKS for side in plain)


def numbers_of(facts: Facts, node: ast.expr) -> list[int] | None:
    """What a whole number that asks for its process is in a plain script, and in each of several processes.

    `get_world_size() if args.distributed else 1` is the world wherever that is true, and 1 wherever it is not.
    """
    if isinstance(node, ast.IfExp) and facts.worlds.plain(node.test) is None and only_asks(facts.names, node.test):
        for arm, other in ((node.body, node.orelse), (node.orelse, node.body)):
            plain = getattr(other, "value", None)
            if type(plain) is int and (there := numbers_of(facts, arm)) is not None and there[0] == plain:
                return there
    found: list[int] = []
    for world in (PLAIN, *PEERS):
        known = facts.worlds.value(node, world)
        if known is None or not known.asked or type(known.value) is not int:
            return None
        found.append(known.value)
    return found


def _rounded_up(node: ast.BinOp) -> ast.expr | None:
    """The workers of `(workers + world - 1) / world`, or of `(workers + (world - 1)) // world`."""
    top, world = node.left, ast.unparse(node.right)
    if not isinstance(top, ast.BinOp):
        return None
    if isinstance(top.op, ast.Sub) and ast.unparse(top.right) == "1" and isinstance(top.left, ast.BinOp):
        added = top.left
        return added.left if isinstance(added.op, ast.Add) and ast.unparse(added.right) == world else None
    return top.left if isinstance(top.op, ast.Add) and ast.unparse(top.right) == f"{world} - 1" else None


def _is_whole(node: ast.expr) -> bool:
    """A number that is counted: nothing in it divides, and no number in it has a point."""
    for n in walk(node):
        divides = isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div)
        if divides or (isinstance(n, ast.Constant) and isinstance(n.value, float)):
            return False
    return True
