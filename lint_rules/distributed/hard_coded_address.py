"""PTM403: an address or a port in the code is taken by the next job on the machine."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ptmigrate.migrate.facts.text import Text

from ..edits import Edit, Repair
from ..file import File, argument
from ..rule import Finding, Rule

VARIABLES = ("MASTER_ADDR", "MASTER_PORT")
TCP = re.compile(r"tcp://[\w.\-]+:\d+$")


class HardCodedAddress(Rule):
    code = "PTM403"
    name = "hard-coded-address"
    why = (
        "A second job on the machine finds the port in use, and a second node never finds the first. The launcher sets "
        "MASTER_ADDR and MASTER_PORT, and picks a free port."
    )
    fix = "unsafe"
    calls = ("init_process_group", "TCPStore", "update")

    BAD = (
        """
        import os
        import torch
        os.environ["MASTER_PORT"] = "12355"
        """,
        """
        import os
        import torch
        os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = args.address, "12355"
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
        full = file.resolve(call.func)
        if full == "torch.distributed.TCPStore":
            host, port = argument(call, 0, "host_name"), argument(call, 1, "port")
            number = file.constant(port)
            if isinstance(file.constant(host), str) and type(number) is int and number:
                yield self.finding(call, f"`{file.source(call)}`: the address and the port are in the code", file)
        elif full == "os.environ.update":
            yield from self._updated(call, file)
        elif full == "torch.distributed.init_process_group":
            method = argument(call, 1, "init_method")
            url = _text(method, file)
            if method is not None and TCP.match(url):
                yield self.finding(method, f'"{url}" in the code; use "env://" and a launcher', file)

    def _updated(self, call: ast.Call, file: File) -> Iterator[Finding]:
        """`os.environ.update({"MASTER_PORT": "29500"})`"""
        given = [(k.arg, k.value) for k in call.keywords]
        for d in call.args:
            if isinstance(d, ast.Dict):
                given += [
                    (str(k.value), v) for k, v in zip(d.keys, d.values, strict=True) if isinstance(k, ast.Constant)
                ]
        for name, value in given:
            if name in VARIABLES and _text(value, file):
                yield self.finding(value, f"{name} {_text(value, file)} in the code; leave it to the launcher", file)

    def check_assign(self, node: ast.Assign, file: File) -> Iterator[Finding]:
        for target in node.targets:
            parts, values = [target], [node.value]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                parts, values = target.elts, node.value.elts
            for part, given in zip(parts, values, strict=False):
                name = _variable(part, file)
                value = _text(given, file) if name else ""
                if value and not _is_missing(node, file):
                    text = f"{name} {value} in the code; leave it to the launcher, or use os.environ.setdefault"
                    yield self.finding(node, text, file, _as_default(node, part))


def _variable(target: ast.expr, file: File) -> str:
    """`MASTER_PORT` of `os.environ["MASTER_PORT"]`."""
    if not (isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant)):
        return ""
    name = target.slice.value
    return str(name) if name in VARIABLES and file.resolve(target.value) == "os.environ" else ""


def _as_default(node: ast.Assign, target: ast.expr) -> Repair | None:
    """`os.environ.setdefault("MASTER_PORT", "29500")`"""
    if node.targets != [target] or not isinstance(target, ast.Subscript):
        return None

    def repair(text: Text) -> list[Edit] | None:
        stop = text.span(node)[1]
        new = f"{text.get(target.value)}.setdefault({text.get(target.slice)}, {text.get(node.value)})"
        return [Edit(text.span(node)[0], stop, new)]

    return repair


def _text(node: ast.expr | None, file: File) -> str:
    """The text that an expression always has: a literal, `str(29500)`, `"tcp://localhost:%d" % 29500`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str" and len(node.args) == 1:
        node = node.args[0]
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mod, ast.Add)):
        left, right = _text(node.left, file), _text(node.right, file)
        if left and right:
            return re.sub("%[ds]", right, left) if isinstance(node.op, ast.Mod) else left + right
        return ""
    if isinstance(node, ast.JoinedStr):
        parts = [_text(v.value if isinstance(v, ast.FormattedValue) else v, file) for v in node.values]
        return "".join(parts) if all(parts) else ""
    value = file.constant(node)
    return str(value) if isinstance(value, str) or type(value) is int else ""


def _is_missing(node: ast.AST, file: File) -> bool:
    """Under `if "MASTER_PORT" not in os.environ:` it is a default."""
    return any(
        isinstance(up, ast.If) and ("environ" in file.source(up.test, 300) or "getenv" in file.source(up.test, 300))
        for up in file.nodes.ancestors(node)
    )
