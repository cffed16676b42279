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

from .. import alike
from ..environment import PREFIX
from ..oneline import USAGE
from .ended import how_it_ended
from .network import Way, way_to
from .threads import thread_variables

LAST_CALL = 5  # seconds that a rendezvous waits for more nodes when enough are there


@dataclass(frozen=True)
class Job:
    """What to run and where. `rdzv` is HOST:PORT, the same on every node; None on one node.

    `least` nodes are enough to go on with, where fewer than `nodes` are there; nodes may come and go then.
    `script` is a module's name where `module` says so.
    """

    script: str
    arguments: tuple[str, ...]
    processes: int
    nodes: int = 1
    node_rank: int | None = None
    rdzv: str | None = None
    max_restarts: int = 0
    least: int | None = None
    backend: str | None = None  # of the rendezvous: one of nodes.BACKENDS
    run_id: str | None = None
    module: bool = False

    @property
    def program(self) -> tuple[str, ...]:
        """What Python is given to run it."""
        return ("-m", self.script, *self.arguments) if self.module else (self.script, *self.arguments)

    @property
    def elastic(self) -> bool:
        return self.least is not None and self.least < self.nodes


def run(job: Job, variables: dict[str, str]) -> int:
    """Run the job under these environment variables; returns the exit code for the command line."""
    os.environ.update(variables)
    os.environ[PREFIX + "ONE_LINE"] = "1"
    if job.processes == 1 and job.nodes == 1 and not job.max_restarts:
        os.execv(sys.executable, [sys.executable, *job.program])
    return _run_agent(job)


def _run_agent(job: Job) -> int:
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import elastic_launch

    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    if job.backend == "etcd":
        from torch.distributed.elastic.rendezvous import etcd_rendezvous

        logging.getLogger(etcd_rendezvous.__name__).setLevel(logging.CRITICAL)  # importing it sets a level of its own
    os.environ[PREFIX + "LAUNCHER"] = "ptrun"
    os.environ[PREFIX + "LAUNCHER_PID"] = str(os.getpid())
    os.environ.update(thread_variables(job.processes))
    os.environ.setdefault("PYTHONHASHSEED", alike.hash_seed(job.rdzv and f"{job.rdzv} {job.run_id}"))
    if job.nodes == 1:
        os.environ.update(alike.serve())
    if job.max_restarts or job.elastic:
        os.environ["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"  # restarted ranks met the keys of those before them
    way = way_to(job.rdzv) if job.nodes > 1 and job.rdzv else None
    if way is not None and way.interface:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", way.interface)
    command = [sys.executable, "-u", *job.program]
    try:
        elastic_launch(_config(job, way), command[0])(*command[1:])
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        if failure.exitcode == USAGE:
            return USAGE  # the script has said what is wrong
        others = "; the other ranks were ended." if job.processes * job.nodes > 1 else "."
        print(f"{how_it_ended(rank, failure.exitcode)}{others}", file=sys.stderr)
        return 1
    except SignalException as error:
        return 128 + int(error.sigval)
    except KeyboardInterrupt:
        return 130
    return 0


def _config(job: Job, way: Way | None):
    from torch.distributed.launcher.api import LaunchConfig

    backend = job.backend or ("static" if job.rdzv and job.node_rank is not None else "c10d")
    configs: dict[str, object] = {"timeout": 300, "last_call_timeout": LAST_CALL}
    if backend == "static":
        configs["rank"] = job.node_rank or 0
    if backend == "c10d" and way is not None and way.hosts:
        configs["is_host"] = True
    return LaunchConfig(
        min_nodes=job.nodes if job.least is None else job.least,
        max_nodes=job.nodes,
        nproc_per_node=job.processes,
        run_id=job.run_id or os.environ.get(PREFIX + "RUN_ID") or (job.rdzv or uuid.uuid4().hex),
        rdzv_backend=backend,
        rdzv_endpoint=job.rdzv or "localhost:0",
        rdzv_configs=configs,
        max_restarts=job.max_restarts,
        monitor_interval=0.1,
        local_addr="localhost" if job.nodes == 1 else way.address if way is not None else None,
    )
