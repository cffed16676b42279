"""PTM103: a module that moves its own parts or inputs takes a decision that belongs to whoever uses it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ptmigrate.migrate.facts.nodes import walk

from ..file import File, argument, keyword, last_part
from ..rule import Finding, Rule
from .literal import ACCELERATOR, text_of
from .own_classes import MOVING_METHODS, places_nothing
from .tensor_in_forward import FACTORIES


class DeviceCallInModule(Rule):
    code = "PTM103"
    name = "device-call-in-module"
    why = (
        "A module that calls `.cuda()` or moves to a global device ends up in two places when it is moved, or "
        "sits on another card than its inputs. Follow the inputs (`x.device`), or register buffers, which move along."
    )
    fix = "unsafe"
    settled_by = "place_like_inputs"
    calls = ("cuda", "to", *sorted(FACTORIES))

    BAD = (
        """
        import torch
        class Net(torch.nn.Module):
            def forward(self, x):
                return self.layer(x.cuda())
        """,
        """
        import torch
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        class Net(torch.nn.Module):
            def forward(self, x):
                h0 = torch.zeros(2, x.size(0), 16).to(device)
                return self.rnn(x, h0)
        """,
    )
    GOOD = (
        """
        import torch
        class Net(torch.nn.Module):
            def forward(self, x, device):
                noise = torch.randn(3, device=x.device).to(x)
                return self.layer(x + noise.to(x.device)).to(device)
        """,
        """
        import torch
        class Net(torch.nn.Module):
            def cuda(self):
                self.extra = self.extra.cuda()
                return super().cuda()
        """,
        """
        import torch
        class Budget:
            def to(self, unit):
                return self.amount * RATES[unit]
        class Net(torch.nn.Module):
            def forward(self, x):
                return self.layer(x) * Budget().to("cuda")
        """,
    )

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        full = file.resolve(call.func)
        if full is not None:
            yield from self._made(call, full, file)
            return
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("cuda", "to"):
            return
        method = file.classes.method_of(call)
        if method is None or method.name in MOVING_METHODS or not file.classes.is_module(call):
            return
        if _follows(call, file) or places_nothing(call.func, file):
            return
        if call.func.attr == "cuda":
            if not (isinstance(call.func.value, ast.Call) and last_part(call.func.value.func) == "super"):
                yield self.finding(call, f"`{file.source(call)}` in a module; follow the device of its inputs", file)
            return
        device = argument(call, 0, "device")
        if device is None:
            return
        if ACCELERATOR.match(text_of(device)):
            yield self.finding(call, f"`{file.source(call)}` in a module; follow the device of its inputs", file)
        elif isinstance(device, ast.Name) and device.id in file.global_devices and _is_global(device, method):
            yield self.finding(call, f"`{file.source(call)}` in a module moves to a global device", file)

    def _made(self, call: ast.Call, full: str, file: File) -> Iterator[Finding]:
        """`torch.zeros(3, device=device)` with a device of the whole file."""
        device = keyword(call, "device")
        if not (isinstance(device, ast.Name) and device.id in file.global_devices) or full.count(".") != 1:
            return
        method = file.classes.method_of(call)
        if method is None or not full.startswith("torch.") or not file.classes.is_module(call):
            return
        if _is_global(device, method):
            yield self.finding(call, f"`{file.source(call)}` in a module is made on a global device", file)


def _follows(call: ast.Call, file: File) -> bool:
    """Under `if x.is_cuda:` it follows its inputs already."""
    return any(
        isinstance(up, ast.If) and any(n.attr == "is_cuda" for n in walk(up.test, ast.Attribute))
        for up in file.nodes.ancestors(call)
    )


def _is_global(name: ast.Name, method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    a = method.args
    given = {arg.arg for arg in (*a.posonlyargs, *a.args, *a.kwonlyargs)}
    stored = {n.id for n in walk(method, ast.Name) if isinstance(n.ctx, ast.Store)}
    return name.id not in given | stored
