"""PTM109: a checkpoint is loaded onto the device that it was saved from."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edits import with_argument
from ..file import File, argument, last_part, passes_unknown
from ..rule import Finding, Rule


class LoadWithoutMapLocation(Rule):
    code = "PTM109"
    name = "load-without-map-location"
    why = (
        "Without `map_location`, tensors go back to the device they were saved from: it may not be there, and all "
        "processes of a distributed run load onto the same card. Load to the CPU, or to this process's device."
    )
    fix = "unsafe"
    calls = ("load",)

    BAD = """
        import torch
        model.load_state_dict(torch.load("model.pt"))
        """
    GOOD = """
        import torch
        import numpy as np
        model.load_state_dict(torch.load("model.pt", map_location="cpu"))
        torch.load("model.pt", device)
        x = np.load("x.npy")
        """

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        if file.resolve(call.func) != "torch.load" or passes_unknown(call):
            return
        if argument(call, 1, "map_location") is None and not _is_in_memory(argument(call, 0, "f"), file):
            yield self.finding(
                call,
                f"`{file.source(call)}` loads onto the device that it was saved from",
                file,
                with_argument(call, 'map_location="cpu"'),
            )


def _is_in_memory(source: ast.expr | None, file: File) -> bool:
    """A buffer that this program has written itself, with its tensors on the devices that it wants."""
    if isinstance(source, ast.Call):
        return (file.resolve(source.func) or "").endswith("BytesIO")
    if not isinstance(source, ast.Name):
        return False
    function = file.nodes.function_of(source)
    parameters = function.args.args if function is not None else []
    annotated = any(
        a.arg == source.id and a.annotation is not None and "BytesIO" in file.source(a.annotation) for a in parameters
    )
    values = file.tensors.assigned(source) or file.module_values.get(source.id, [])
    made = any(isinstance(v, ast.Call) and (file.resolve(v.func) or "").endswith("BytesIO") for v in values)
    checked = any(
        len(c.args) == 2 and last_part(c.args[0]) == source.id and "BytesIO" in file.source(c.args[1])
        for c in file.nodes.calls.get("isinstance", ())
    )
    return annotated or made or checked or _was_saved_here(source, function, file)


def _was_saved_here(source: ast.Name, function: ast.AST | None, file: File) -> bool:
    """`torch.save(model, f)` and then `torch.load(f)`, in one function."""
    return any(
        len(c.args) > 1
        and last_part(c.args[1]) == source.id
        and c.lineno < source.lineno
        and file.nodes.function_of(c) is function
        and file.resolve(c.func) == "torch.save"
        for c in file.nodes.calls.get("save", ())
    )
