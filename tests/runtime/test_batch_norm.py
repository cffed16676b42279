"""Batch norm over the global batch: N processes train as one, with unequal, empty and tiny shares."""

import copy
import pickle

import pytest
import torch
from launching import MANY, SCRIPTS
from ptmigrate.runtime import Module, Trainer
from ptmigrate.runtime.batch_norm import can_join, joined_class

from tests.forked import answers, ptrun

SLOW = [pytest.param(case, marks=pytest.mark.slow) for case in ("few", "accumulated", "manual", "penalty", "asked")]


@pytest.mark.parametrize("processes", [2, *MANY])
@pytest.mark.parametrize("case", ["flat", "images", "hooked", *SLOW])
def test_as_one_process(processes, case):
    if case == "penalty" and processes == 3:
        pytest.skip("the penalty is written for equal shares")
    one, several = answers("batch_norm.py", 1)[case], answers("batch_norm.py", processes)[case]
    assert several["losses"] == pytest.approx(one["losses"], rel=2e-5, abs=2e-5)
    assert several["weights"] == pytest.approx(one["weights"], rel=2e-4, abs=2e-4)
    assert several["val"] == pytest.approx(one["val"], rel=1e-4)
    assert several["classes"] == one["classes"], "afterwards the layers are plain ones"


def test_a_rank_that_skips_its_batch_takes_part():
    assert answers("batch_norm.py", 2)["skips"]["val"] > 0


def test_alone_a_share_of_one_sample_says_what_to_do():
    done = ptrun(*("--accelerator", "cpu", "--devices", "2", "--global-batch", str(SCRIPTS / "batch_norm.py"), "alone"))
    assert done.returncode == 1
    assert "holds one sample of the batch: use Trainer(sync_batchnorm=True)" in done.stderr


@pytest.mark.parametrize(
    ("options", "joined"),
    [
        ({}, False),
        ({"sync_batchnorm": True}, True),
        ({"global_batch": True}, True),
        ({"global_batch": True, "sync_batchnorm": False}, False),
    ],
)
def test_asked_for_or_part_of_the_same_run(options, joined):
    assert Trainer(accelerator="cpu", **options).sync_batchnorm is joined


def test_one_process_keeps_torchs_own():
    class Net(Module):
        def __init__(self):
            super().__init__()
            self.norm = torch.nn.BatchNorm1d(2)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

        def training_step(self, batch, batch_idx):
            assert type(self.norm) is torch.nn.BatchNorm1d
            return self.norm(batch).square().mean()

    Trainer(accelerator="cpu", max_epochs=1, sync_batchnorm=True).fit(Net(), [torch.randn(4, 2)])


class Own(torch.nn.BatchNorm1d):
    def forward(self, input):
        return super().forward(input) * 2


@pytest.mark.parametrize(
    ("part", "joins"),
    [
        (torch.nn.BatchNorm1d(2), True),
        (torch.nn.BatchNorm3d(2), True),
        (Own(2), False),
        (torch.nn.SyncBatchNorm(2), False),
        (torch.nn.InstanceNorm1d(2), False),
        (torch.nn.GroupNorm(1, 2), False),
    ],
)
def test_which_layers_join(part, joins):
    assert can_join(part) is joins


def test_copies_and_pickles_are_plain():
    norm = torch.nn.BatchNorm2d(3)
    norm.__class__ = joined_class(torch.nn.BatchNorm2d)
    assert isinstance(norm, torch.nn.BatchNorm2d)
    for other in (copy.deepcopy(norm), pickle.loads(pickle.dumps(norm))):
        assert type(other) is torch.nn.BatchNorm2d and other.state_dict().keys() == norm.state_dict().keys()
