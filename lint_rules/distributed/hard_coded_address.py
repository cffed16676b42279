"""PTM403: an address or a port in the code is taken by the next job on the machine."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..file import File, argument
from ..rule import Finding, Rule

TCP = re.compile(r"tcp://[\w.\-]+:\d+$")


class HardCodedAddress(Rule):
    code = "PTM403"
    name = "hard-coded-address"
    why = (
        "A second job on the machine finds the port in use, and a second node never finds the first. The launcher sets "
        "MASTER_ADDR and MASTER_PORT, and picks a free port."
    )
    calls = ("init_process_group",)

    BAD = (
        """
        import os
        import torch
        os.environ["MASTER_PORT"] = "12355"
        """,
        """
        import torch.distributed as dist
        dist.init_process_group("nccl", init_method="tcp://127.0.0.1:23456", rank=rank, world_size=4)
        """,
    )
    GOOD = """
        import os
        import torch.distributed as dist
        os.environ.setdefault("MASTER_PORT", "29500")
        os.environ["MASTER_ADDR"] = args.address
        dist.init_process_group("nccl")
        dist.init_process_group("nccl", init_method="env://")
        """

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        method = argument(call, 1, "init_method")
        if isinstance(method, ast.Constant) and isinstance(method.value, str) and TCP.match(method.value):
            yield self.finding(method, f'"{method.value}" in the code; use "env://" and a launcher', file)

    def check_assign(self, node: ast.Assign, file: File) -> Iterator[Finding]:
        target = node.targets[0]
        if not (isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant)):
            return
        name = target.slice.value
        if name not in ("MASTER_ADDR", "MASTER_PORT") or file.resolve(target.value) != "os.environ":
            return
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            text = f"{name} {node.value.value} in the code; leave it to the launcher, or use os.environ.setdefault"
            yield self.finding(node, text, file)
