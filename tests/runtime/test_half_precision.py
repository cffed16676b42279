"""Precision 16 scales the loss: whoever makes the step, it has gradients that are not scaled.

Lightning takes bf16 on a CPU, so this is checked against a fit whose step is the Trainer's.
"""

import pytest
import torch
from launching import MANY
from ptmigrate.runtime import Module, Trainer
from ptmigrate.runtime.errors import ConfigurationError
from ptmigrate.runtime.precision.overflow import SharedScaler
from ptmigrate.runtime.precision.plugin import choose_precision
from torch.optim import LBFGS, SGD

from tests.forked import answers


class Net(Module):
    def __init__(self, optimizer=SGD):
        super().__init__()
        torch.manual_seed(0)
        self.net, self.optimizer, self.norms = torch.nn.Linear(4, 1), optimizer, []

    def training_step(self, batch, batch_idx):
        return self.net(batch).pow(2).mean() if batch_idx != 2 else None

    def on_before_optimizer_step(self, optimizer):
        self.norms.append(self.net.weight.grad.norm().item() if self.net.weight.grad is not None else None)

    def configure_optimizers(self):
        return self.optimizer(self.parameters(), 0.05)


class WithClosure(Net):
    def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_closure):
        optimizer.step(closure=optimizer_closure)


class ClosureFirst(Net):
    def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_closure):
        optimizer_closure()
        optimizer.step()


class Warmup(Net):
    def optimizer_step(self, *args, **kwargs):
        super().optimizer_step(*args, **kwargs)


def trained(module, clip):
    trainer = Trainer(accelerator="cpu", devices=1, max_epochs=1, precision=16, gradient_clip_val=clip)
    trainer.fit(module, torch.randn(6, 8, 4, generator=torch.Generator().manual_seed(1)))
    return [module.net.weight.tolist(), module.net.bias.tolist(), module.norms]


@pytest.mark.parametrize("clip", [None, 0.3])
@pytest.mark.parametrize("kind", [WithClosure, ClosureFirst, Warmup])
def test_own_steps(kind, clip):
    assert str(trained(kind(), clip)) == str(trained(Net(), clip))  # the first scale overflows: nan is among them


def test_closures_that_are_evaluated_again_are_refused():
    with pytest.raises(ConfigurationError, match="precision 16 scales the loss"):
        trained(Net(LBFGS), None)


@pytest.mark.parametrize("processes", [2, *MANY])
def test_batches_that_are_cut_leave_the_same_steps_out(tmp_path, processes):
    """Each process has gradients that are as many times as large as one process's, but sums them in float32."""
    one, several = (answers("half.py", n, str(tmp_path / f"{n}.ckpt")) for n in (1, processes))
    assert one["scale"] < 2**16  # some steps were left out
    assert len(set(map(str, one["weights"]))) > 2  # others were not
    assert flat(several["weights"]) == pytest.approx(flat(one["weights"]), abs=1e-3)
    assert several["scale"] == pytest.approx(one["scale"] / processes)
    assert several["saved"] == pytest.approx(one["saved"])  # one process may go on from it


def flat(value):
    return [x for each in value for x in flat(each)] if isinstance(value, list) else [value]


def test_a_loss_in_half_precision_is_scaled_in_float32():
    loss = torch.full((), 3.0, dtype=torch.float16)
    assert SharedScaler("cpu", 2.0**16, 1, None).scale(loss).item() == 3 * 2**16


def test_a_scale_is_shared_by_all_that_have_parts():
    precision = choose_precision(16, "cpu")
    precision.cut(1, None)
    assert type(precision.scaler) is torch.amp.GradScaler
    for parts in (4, 4, 2, 1):
        precision.cut(parts, None)
        assert isinstance(precision.scaler, SharedScaler) and precision.scaler.get_scale() == 2**16 / parts


def test_what_one_process_has_saved_others_share():
    one, several = choose_precision(16, "cpu"), choose_precision(16, "cpu")
    one.scaler.scale(torch.ones(()))
    one.scaler.update(2.0**10)
    several.share(None)
    assert isinstance(several.scaler, SharedScaler) and several.scaler.get_scale() == 2**16
    several.cut(4, None)
    several.load_scaler_state(one.scaler_state())
    assert several.scaler.get_scale() == 2**8 and several.scaler_state()["scale"] == 2**10
