"""PTM107: CUDA_VISIBLE_DEVICES belongs to whoever starts the program."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..file import File
from ..rule import Finding, Rule

VARIABLES = {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"}


class VisibleDevices(Rule):
    code = "PTM107"
    name = "visible-devices-in-code"
    why = (
        "Set in the code, it overrides what the launcher or the cluster gave to the process, and once CUDA has started "
        "it has no effect at all. Set it where the program is started."
    )
    calls = ("setdefault", "putenv", "update")

    BAD = """
        import os
        import torch
        os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"
        """
    GOOD = """
        import os
        import torch
        print(os.environ.get("CUDA_VISIBLE_DEVICES"))
        os.environ["OMP_NUM_THREADS"] = "1"
        """

    def check_assign(self, assign: ast.Assign, file: File) -> Iterator[Finding]:
        for target in assign.targets:
            if isinstance(target, ast.Subscript) and file.resolve(target.value) == "os.environ":
                yield from self._named(target.slice, assign, file)

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        full = file.resolve(call.func)
        if full in ("os.environ.setdefault", "os.putenv") and call.args:
            yield from self._named(call.args[0], call, file)
        elif full == "os.environ.update":
            for k in call.keywords:
                if k.arg in VARIABLES:
                    yield self.finding(call, f"{k.arg} set in the code", file)
            for d in call.args:
                for key in d.keys if isinstance(d, ast.Dict) else ():
                    if key is not None:
                        yield from self._named(key, call, file)

    def _named(self, name: ast.expr, at: ast.AST, file: File) -> Iterator[Finding]:
        if isinstance(name, ast.Constant) and name.value in VARIABLES:
            yield self.finding(at, f"{name.value} set in the code", file)
