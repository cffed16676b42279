"""PTM305: making a list of a tensor at every step makes the host wait for the device."""

from __future__ import annotations

from .copying import Copying


class TolistInHotLoop(Copying):
    code = "PTM305"
    name = "tolist-in-hot-loop"
    why = (
        "`.tolist()` copies to the host and waits for the device, element by element into Python objects. "
        "Keep tensors in the loop and make the list once after it."
    )
    calls = ("tolist",)

    BAD = """
        import torch
        for x, y in loader:
            output = model(x)
            criterion(output, y).backward()
            outputs.append(output.detach().tolist())
        """
    GOOD = """
        import torch
        for x, y in loader:
            output = model(x)
            criterion(output, y).backward()
            outputs.append(output.detach())
            labels.append(y.tolist())
        result = torch.cat(outputs).tolist()
        """
