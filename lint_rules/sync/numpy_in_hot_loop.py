"""PTM304: going through NumPy at every step makes the host wait for the device."""

from __future__ import annotations

from .copying import Copying


class NumpyInHotLoop(Copying):
    code = "PTM304"
    name = "numpy-in-hot-loop"
    why = (
        "`.numpy()` needs the values on the host, which waits for the device and takes the gradient away. "
        "Do the arithmetic with torch, or copy once after the loop."
    )
    calls = ("numpy",)

    BAD = """
        import torch
        for x, y in loader:
            output = model(x)
            criterion(output, y).backward()
            outputs.append(output.detach().numpy())
        """
    GOOD = """
        import torch
        for x, y in loader:
            output = model(x)
            criterion(output, y).backward()
            outputs.append(output.detach())
            labels.append(y.numpy())
        result = torch.cat(outputs).numpy()
        """
