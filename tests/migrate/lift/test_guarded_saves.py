"""A save that the script leaves to rank 0 needs no second guard; any other is one of rank 0 alone."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

SCRIPT = """\
import logging
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group('gloo')
rank = dist.get_rank()
log = logging.getLogger()
model = DistributedDataParallel(torch.nn.Linear(3, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.randn(20, 3), 4)
for epoch in range(3):
    for i, x in enumerate(loader):
        loss = model(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if GUARD:
        torch.save(model.module.state_dict(), 'a.pt')
        log.info('saved')
"""
SECOND = "if self.trainer.is_global_zero:\n"


def lifted(guard):
    return migrate_text(SCRIPT.replace("GUARD", guard)).text


@pytest.mark.parametrize("guard", ["rank == 0", "dist.get_rank() == 0 and epoch % 2 == 0", "epoch > 0 and not rank"])
def test_rank_zeros_own(guard):
    result = lifted(guard)
    assert "is_global_zero()" in result and SECOND not in result


@pytest.mark.parametrize("guard", ["epoch % 2 == 0", "rank == 0 or epoch > 1", "rank < 2", "frank == 0"])
def test_any_others(guard):
    assert SECOND in lifted(guard)


def test_the_other_branch_of_rank_zeros():
    script = SCRIPT.replace("    if GUARD:", "    if rank == 0:\n        log.info('0')\n    else:")
    assert SECOND in migrate_text(script).text


def test_a_save_of_several_lines_moves_in_as_a_whole_but_for_its_strings():
    given = '{\'note\': """a\n b""", \'net\': model.module.state_dict()}'
    call = f"torch.save(\n            {given},\n            'a.pt',\n        )"
    text = SCRIPT.replace("torch.save(model.module.state_dict(), 'a.pt')", call).replace("GUARD", "epoch % 2 == 0")
    result = migrate_text(text).text
    assert (
        '                torch.save(\n                    {\'note\': """a\n b""", \'net\': self.model.state_dict()},\n'
        "                    'a.pt',\n                )\n"
    ) in result
