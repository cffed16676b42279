"""Why an original does not run here: what it lacks is no fault of the migration, and each lack has its way out."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass

from .runs import Run


@dataclass(frozen=True)
class Lack:
    """`kind` for machines; what to do about it for people."""

    kind: str  # data, package, arguments, device, launcher, time, training or error
    reason: str
    way_out: str

    def as_json(self) -> dict[str, str]:
        return asdict(self)


# in this order: the first that is found in the output's end
KINDS = [
    (
        "launcher",
        r"environment variable (RANK|WORLD_SIZE|MASTER_\w+) expected|KeyError: '(LOCAL_|)(RANK|WORLD_SIZE)'",
        "start it as its launcher would",
    ),
    ("package", r"ModuleNotFoundError|ImportError|PackageNotFoundError", "install what it imports"),
    (
        "data",
        r"FileNotFoundError|NotADirectoryError|No such file or directory|[Dd]ataset not found|download=True"
        r"|URLError|HTTPError|ConnectionError|ConnectTimeout|MaxRetryError|gaierror|Name or service not known"
        r"|Temporary failure in name resolution|LocalEntryNotFound|[Cc]ouldn't (find|reach)|Can't load",
        "put its data where it looks for it, or tell it where they are after `--`",
    ),
    (
        "device",
        r"Torch not compiled with CUDA|No CUDA GPUs|no NVIDIA driver|invalid device ordinal|CUDA error"
        r"|needs? (a )?(GPU|CUDA)|[Nn]o GPU|AcceleratorError",
        "it needs a GPU: tell it to use the CPU after `--`, where it can",
    ),
    (
        "arguments",
        r"the following arguments are required|error: argument|invalid choice|unrecognized arguments|^usage:"
        r"|IndexError: list index out of range.*\n?.*sys\.argv",
        "give its arguments after `--`",
    ),
]


def lack(run: Run, limit: float) -> Lack:
    """What an original lacked whose run did not succeed."""
    if run.timed_out:
        return Lack("time", f"it had not ended after {limit:.0f} s", "give it less to do after `--`, or a --timeout")
    if run.code == 0:
        return Lack("training", run.reason, "give the arguments with which it trains after `--`")
    tail = "\n".join([*run.output.strip().splitlines()[-6:], run.error])
    for kind, pattern, way_out in KINDS:
        if re.search(pattern, tail, re.MULTILINE):
            return Lack(kind, run.reason, way_out)
    return Lack("error", run.reason, "see whether it runs with `python`")
