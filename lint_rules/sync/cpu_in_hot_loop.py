"""PTM303: copying to the CPU at every step makes the host wait for the device."""

from __future__ import annotations

from .copying import Copying


class CpuInHotLoop(Copying):
    code = "PTM303"
    name = "cpu-in-hot-loop"
    why = (
        "`.cpu()` waits until the device has caught up; at every step this keeps it idle. "
        "Keep the tensors where they are and copy them once after the loop, or every n-th step."
    )
    calls = ("cpu", "to")

    BAD = (
        """
        import torch
        for x, y in loader:
            output = model(x)
            criterion(output, y).backward()
            outputs.append(output.detach().cpu())
        """,
        """
        import torch
        for x, y in loader:
            output = model(x)
            criterion(output, y).backward()
            outputs.append(output.detach().to("cpu"))
        """,
    )
    GOOD = """
        import torch
        for x, y in loader:
            output = model(x)
            criterion(output, y).backward()
            outputs.append(output.detach())
            labels.append(y.cpu())
        result = torch.cat(outputs).cpu()
        """
