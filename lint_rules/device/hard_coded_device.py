"""PTM101: a device written into the code is the wrong one on other machines, and the same one for every process."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..file import File, argument, last_part
from ..rule import Finding, Rule
from .literal import ACCELERATOR, NUMBERED, in_decorator, text_of, under_choice
from .own_classes import MOVING_METHODS, places_nothing

MOVES = ("cuda", "xpu")
OLD_TYPES = {
    f"{kind}Tensor" for kind in ("Float", "Double", "Half", "BFloat16", "Byte", "Char", "Short", "Int", "Long", "Bool")
}
# `torch.Tensor.to(x, device)`
UNBOUND = {"torch.Tensor.to", "torch.nn.Module.to"}
# what takes the name of a device without placing anything; `to` is told of as a call
ASKS = re.compile(r"(to|add_argument)\Z|_?(check|is|has|assert|skip|supports?|requires?|can)_")
OWN = "own_device"  # of the runtime, which makes a process's own card of it
OLD_TYPE = re.compile(r"torch\.cuda\.(\w+Tensor)\Z")


class HardCodedDevice(Rule):
    code = "PTM101"
    name = "hard-coded-device"
    why = (
        "The script runs only where that device is, and all processes of a distributed run would share it. "
        "Take the device from one place that asks the machine, or leave placing to the runtime."
    )
    fix = "unsafe"
    settled_by = "remove_device_calls"
    calls = ("cuda", "xpu", "to", "type", "device", *sorted(OLD_TYPES))

    BAD = (
        """
        import torch
        model = torch.nn.Linear(2, 2).cuda()
        """,
        """
        import torch
        device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
        """,
        """
        import torch
        x = torch.zeros(3, device="cuda")
        """,
        """
        import torch
        def run(model):
            return model.to("cuda:1")
        """,
        """
        import torch
        moved = [torch.Tensor.cuda(x) for x in batch]
        """,
        """
        import torch
        def run(model):
            return getattr(model, "cuda")()
        """,
        """
        import torch
        def run(model):
            return getattr(model, "to")("cuda")
        """,
        """
        import torch
        devices = ["cuda:0", "cuda:1"]
        parts = [part.to(device) for part, device in zip(parts, devices)]
        """,
    )
    GOOD = (
        """
        import torch
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        model = torch.nn.Linear(2, 2).to(device)
        x = torch.zeros(3, device=device)
        """,
        """
        import torch
        if torch.cuda.is_available():
            device = torch.device("cuda")
        else:
            device = torch.device("cpu")
        """,
        """
        import torch
        torch.cuda.empty_cache()
        x = torch.zeros(3).cpu()
        """,
        """
        import torch
        class Money:
            def to(self, unit):
                return Money(self.value * RATES[unit])
        def exchanged(money):
            return money.to("cuda")
        price = exchanged(Money(3).to("cuda"))
        """,
        """
        import torch
        class Store(dict):
            def cuda(self):
                return "mine"
        print(Store(a=torch.ones(1)).cuda())
        """,
        """
        import torch
        wanted = getattr(args, "cuda", False)
        half = getattr(x, "to")(torch.float16)
        moved = torch.Tensor.to(x, y.device)
        """,
        """
        import torch
        if device in ("cuda:0", "cuda:1"):
            print("one of two")
        known = {"cuda:0": 1, "cuda:1": 2}
        """,
        """
        import torch
        from ptmigrate.runtime import Runtime
        runtime = Runtime()
        device = runtime.own_device(torch.device("cuda:0" if torch.cuda.is_available() else "cpu"))
        """,
    )

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        full = file.resolve(call.func)
        if full is None:
            if isinstance(call.func, ast.Attribute) and not _in_module(call, file):
                yield from self._method(call, call.func, file)
        elif full == "torch.device":
            yield from self._made(call, file)
        elif full == "torch.cuda.device":
            if call.args and _names_card(call.args[0]):
                yield self.finding(call, f"`{file.source(call)}` is there on some machines only", file)
        elif OLD_TYPE.match(full) and not under_choice(call, file):
            yield self.finding(call, f"`{file.source(call)}` makes a tensor on the first CUDA device", file)
        elif full in UNBOUND and len(call.args) > 1 and _names_card(call.args[1]):  # torch.Tensor.to(x, "cuda")
            yield self.finding(call, f"`{file.source(call)}` places by a device written into the code", file)

    def _method(self, call: ast.Call, func: ast.Attribute, file: File) -> Iterator[Finding]:
        if func.attr in (*MOVES, "to") and places_nothing(func, file):
            return
        if func.attr in MOVES:
            yield from self._moved(call, func, file)
        elif func.attr == "to":
            device = argument(call, 0, "device")
            if device is not None and _names_card(device):
                yield self.finding(call, f"`{file.source(call)}` places by a device written into the code", file)
        elif func.attr == "type" and len(call.args) == 1:
            wanted = text_of(call.args[0]) or file.resolve(call.args[0]) or ""
            if OLD_TYPE.match(wanted) and not under_choice(call, file):
                yield self.finding(call, f"`{file.source(call)}` moves to the first CUDA device", file)

    def _moved(self, call: ast.Call, func: ast.Attribute, file: File) -> Iterator[Finding]:
        method = file.classes.method_of(call)
        if isinstance(func.value, ast.Call) and last_part(func.value.func) == "super":
            return
        if method is None or method.name not in MOVING_METHODS:
            yield self.finding(call, f"`{file.source(call)}` places by hand, and on {func.attr.upper()} only", file)

    def _made(self, call: ast.Call, file: File) -> Iterator[Finding]:
        """`torch.device("cuda")` is fine where a condition chose it, `torch.device("cuda:0")` never is."""
        parent = file.nodes.parents.get(call)
        own = isinstance(parent, ast.Call) and last_part(parent.func) == OWN
        if own or isinstance(parent, ast.Compare) or in_decorator(call, file):
            return
        value = argument(call, 0, "type") or argument(call, 0, "device")
        if value is None:
            return
        index = argument(call, 1, "index")
        if ACCELERATOR.match(text_of(value)) and isinstance(index, ast.Constant) and type(index.value) is int:
            yield self.finding(call, f"every process would take `{file.source(call)}`", file)
            return
        options = (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,)
        for option in options:
            text = text_of(option)
            if NUMBERED.match(text):
                yield self.finding(call, f"every process would take {text!r}", file)
            elif ACCELERATOR.match(text) and option is value and not under_choice(call, file):
                yield self.finding(call, f"`{file.source(call)}` is there on some machines only", file)

    def check_file(self, file: File) -> Iterator[Finding]:
        """`device="cuda"` passed to anything, and `device = "cuda:0"`."""
        yield from self._by_class(file)
        for node in file.nodes.of(ast.Constant):
            if not isinstance(node.value, str) or not ACCELERATOR.match(node.value):
                continue
            parent = file.nodes.parents.get(node)
            if NUMBERED.match(node.value) and isinstance(parent, (ast.List, ast.Tuple, ast.Dict)):
                yield from self._among_others(node, parent, file)
            if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Call):
                yield from self._to_by_text(parent, file)
            if node.value in MOVES and isinstance(parent, ast.Call):
                yield from self._by_text(node, parent, file)
            if isinstance(parent, ast.keyword) and parent.arg in ("device", "map_location"):
                call = file.nodes.parents.get(parent)
                if isinstance(call, ast.Call) and not ASKS.match(last_part(call.func) or ""):
                    yield self.finding(node, f"`{parent.arg}={file.source(node)}` is written into the code", file)
                continue
            chosen = isinstance(parent, ast.IfExp)
            above = file.nodes.parents.get(parent) if chosen and parent is not None else parent
            if isinstance(above, ast.Assign) and _names_device(above.targets[0]):
                if NUMBERED.match(node.value):
                    yield self.finding(node, f"every process would take {node.value!r}", file)
                elif not chosen and not under_choice(node, file):
                    yield self.finding(node, f"`{file.source(above)}` is there on some machines only", file)

    def _among_others(
        self, card: ast.Constant, holder: ast.List | ast.Tuple | ast.Dict, file: File
    ) -> Iterator[Finding]:
        """`devices = ["cuda:0", "cuda:1"]`, of which the first is told."""
        values = holder.values if isinstance(holder, ast.Dict) else holder.elts
        up = file.nodes.parents.get(holder)
        first = next((v for v in values if NUMBERED.match(text_of(v))), None)
        taken = isinstance(up, (ast.Assign, ast.For, ast.comprehension)) and not in_decorator(card, file)
        if card is first and taken and all(ACCELERATOR.match(text_of(v)) for v in values):
            yield self.finding(card, f"every process would take {card.value!r}", file)

    def _by_class(self, file: File) -> Iterator[Finding]:
        """`torch.Tensor.cuda`, called or handed on: `map(torch.Tensor.cuda, batch)`."""
        for node in file.nodes.of(ast.Attribute):
            full = file.resolve(node) if node.attr in MOVES else None
            if full is not None and full.endswith((f"Tensor.{node.attr}", f"nn.Module.{node.attr}")):
                yield self.finding(node, f"`{file.source(node)}` places by hand, on {node.attr.upper()} only", file)

    def _to_by_text(self, call: ast.Call, file: File) -> Iterator[Finding]:
        """`getattr(x, "to")("cuda")`"""
        f = call.func
        if not (isinstance(f, ast.Call) and last_part(f.func) == "getattr" and len(f.args) > 1 and call.args):
            return
        if getattr(f.args[1], "value", None) == "to" and _names_card(call.args[0]):
            yield self.finding(call, f"`{file.source(call)}` places by a device written into the code", file)

    def _by_text(self, name: ast.Constant, call: ast.Call, file: File) -> Iterator[Finding]:
        """`getattr(x, "cuda")()`, `methodcaller("cuda")`; an option of that name is asked for with a default."""
        up = file.nodes.parents.get(call)
        got = last_part(call.func) == "getattr" and call.args[1:] == [name] and isinstance(up, ast.Call)
        asked = file.resolve(call.func) == "operator.methodcaller" and call.args[:1] == [name]
        if asked or (got and up.func is call):  # type: ignore[union-attr]
            yield self.finding(call, f"`{file.source(call)}` places by hand, on {str(name.value).upper()} only", file)


def _names_card(node: ast.expr) -> bool:
    """`"cuda:1"`, or the number of a card."""
    return bool(ACCELERATOR.match(text_of(node))) or (isinstance(node, ast.Constant) and type(node.value) is int)


def _names_device(node: ast.AST) -> bool:
    name = (last_part(node) or "").lower()
    return name == "device" or name.endswith("_device")


def _in_module(call: ast.Call, file: File) -> bool:
    """In the method of a module PTM103 says more."""
    return file.classes.is_module(call) and file.classes.method_of(call) is not None
