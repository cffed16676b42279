"""`ptrun`'s processes, on torch's elastic agent (torch.distributed.launcher).

The agent starts one process a device, lets nodes meet at a rendezvous, restarts all when asked, and ends all when one
fails.
"""

from __future__ import annotations

import logging
import os
import sys
import uuid
from dataclasses import dataclass

from ..environment import PREFIX
from .threads import thread_variables


@dataclass(frozen=True)
class Job:
    """What to run and where. `rdzv` is HOST:PORT, the same on every node; None on one node."""

    script: str
    arguments: tuple[str, ...]
    processes: int
    nodes: int = 1
    node_rank: int | None = None
    rdzv: str | None = None
    max_restarts: int = 0


def run(job: Job, variables: dict[str, str]) -> int:
    """Run the job under these environment variables; returns the exit code for the command line."""
    os.environ.update(variables)
    if job.processes == 1 and job.nodes == 1 and not job.max_restarts:
        os.execv(sys.executable, [sys.executable, job.script, *job.arguments])
    return _run_agent(job)


def _run_agent(job: Job) -> int:
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import elastic_launch

    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    os.environ[PREFIX + "LAUNCHER"] = "ptrun"
    os.environ.update(thread_variables(job.processes))
    command = [sys.executable, "-u", job.script, *job.arguments]
    try:
        elastic_launch(_config(job), command[0])(*command[1:])
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        others = "; the other ranks were ended." if job.processes * job.nodes > 1 else "."
        print(f"rank {rank} ended with exit code {failure.exitcode}{others}", file=sys.stderr)
        return 1
    except SignalException as error:
        return 128 + int(error.sigval)
    except KeyboardInterrupt:
        return 130
    return 0


def _config(job: Job):
    from torch.distributed.launcher.api import LaunchConfig

    configs = {"timeout": 300}
    if job.rdzv is not None and job.node_rank is not None:
        backend, configs = "static", {**configs, "rank": job.node_rank}
    else:
        backend = "c10d"
    return LaunchConfig(
        min_nodes=job.nodes,
        max_nodes=job.nodes,
        nproc_per_node=job.processes,
        run_id=os.environ.get(PREFIX + "RUN_ID") or (job.rdzv or uuid.uuid4().hex),
        rdzv_backend=backend,
        rdzv_endpoint=job.rdzv or "localhost:0",
        rdzv_configs=configs,
        max_restarts=job.max_restarts,
        monitor_interval=0.1,
        local_addr="localhost" if job.nodes == 1 else None,
    )
