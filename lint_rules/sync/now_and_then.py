"""PTM302: the same waits, but only every n-th step: a lesser thing, shown when it is asked for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..file import File
from ..rule import Finding, Rule
from .copying import WAITING, is_copy
from .where import leaves_the_loop, where


class NowAndThen(Rule):
    code = "PTM302"
    name = "wait-now-and-then"
    why = (
        "Under `if step % n == 0` the host waits for the device at every n-th step only, which is how it should be; "
        "with a small n it is still felt. Not shown unless it is selected."
    )
    lesser = True
    calls = tuple(sorted(WAITING))

    BAD = """
        import torch
        for i, (x, y) in enumerate(loader):
            loss = criterion(model(x), y)
            loss.backward()
            if i % 10 == 0:
                print(loss.item())
        """
    GOOD = """
        import torch
        for i, (x, y) in enumerate(loader):
            loss = criterion(model(x), y)
            loss.backward()
        print(loss.item())
        """

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        hot = file.hot(call)
        if hot is not None and hot.guarded and is_copy(call, file) and not leaves_the_loop(call, file):
            yield self.finding(call, f"`{file.source(call)}` makes the host wait now and then in {where(hot)}", file)
