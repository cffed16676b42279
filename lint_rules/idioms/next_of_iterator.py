"""PTM610: the iterators of torch's loaders have no method `next` since torch 1.13."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ptmigrate.migrate.facts.old_draws import old_draws
from ptmigrate.migrate.facts.text import Text

from ..edits import Edit
from ..file import File
from ..rule import Finding, Rule


class NextOfIterator(Rule):
    code = "PTM610"
    name = "next-of-iterator"
    why = "`batches.next()` was Python 2's word; torch's loaders knew it until 1.13, and raise an AttributeError now."
    fix = "safe"

    BAD = (
        """
        import torch
        images, labels = iter(loader).next()
        """,
        """
        import torch
        batches = iter(loader)
        x, y = batches.next()
        """,
    )
    GOOD = """
        import torch
        images, labels = next(iter(loader))
        batch = prefetcher.next()
        """

    def check_file(self, file: File) -> Iterator[Finding]:
        for call in old_draws(file.nodes):
            of = call.func.value  # type: ignore[attr-defined]
            says = f"`{file.source(call)}` is gone since torch 1.13; use `next({file.source(of)})`"

            def repair(text: Text, call: ast.Call = call, of: ast.expr = of) -> list[Edit]:
                start, stop = text.span(call)
                return [Edit(start, stop, f"next({text.text[slice(*text.span(of))]})")]

            yield self.finding(call, says, file, repair)
