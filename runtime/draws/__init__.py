"""Random numbers under `--global-batch`: those of one process, each rank keeps the rows of its own samples.

`stream.py`: within a step every rank draws from rank 0's stream. `rows.py`: which rows of what is drawn are a rank's.
`tensors.py` and `arrays.py`: torch's and NumPy's draws, for the whole batch. `validation.py`: a validation that draws.
"""

from .stream import OneStream
from .validation import ValidationDraws

__all__ = ["OneStream", "ValidationDraws"]
