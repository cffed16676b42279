"""Two nodes as the guide starts them: the same script on each, with MASTER_ADDR, MASTER_PORT and NODE_RANK."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from launching import SCRIPTS, run
from ptmigrate.runtime.launch.ports import free_port

from tests.forked import answers

SCRIPT = """
import json, sys
sys.path.insert(0, {scripts!r})
from cells import Cells, Trainer
cells = Cells({strategy!r}, num_nodes=2, devices={devices}, global_batch=True)
found = cells.run(["fit"])
print(json.dumps([found, cells.trainer().global_rank]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("strategy", "devices"), [("ddp", 1), ("ddp2", 2)])
def test_two_nodes_train_as_one_process(strategy, devices, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.format(scripts=str(SCRIPTS), strategy=strategy, devices=devices))
    meet = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    with ThreadPoolExecutor() as pool:
        nodes = [pool.submit(run, str(script), limit=200, NODE_RANK=str(node), **meet) for node in (0, 1)]
    done = [node.result() for node in nodes]
    assert [node.returncode for node in done] == [0, 0], done[0].stderr + done[1].stderr
    found = [json.loads(node.stdout.splitlines()[-1]) for node in done]
    assert [rank for _, rank in found] == [0, 1]
    one = answers("cells.py", 1, "single", "fit")["fit"]
    for answer, _ in found:
        for mine, wanted in zip(answer["fit"]["weights"], one["weights"], strict=True):
            assert mine == pytest.approx(wanted, abs=1e-6)
