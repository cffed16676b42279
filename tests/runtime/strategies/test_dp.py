"""dp: one process, the batch cut among devices; the run is that of one device."""

import pytest
import torch
import torch.nn.functional as F
from ptmigrate.runtime import Module, Trainer
from ptmigrate.runtime.errors import ConfigurationError
from ptmigrate.runtime.strategies.pieces import gather, scatter
from torch.utils.data import DataLoader, TensorDataset

CPU = torch.device("cpu")


class Net(Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.net = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))
        self.seen, self.total = [], 0.0

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)

    def training_step(self, batch, batch_idx):
        loss = F.cross_entropy(self.net(batch[0]), batch[1])
        self.seen.append(len(batch[1]))
        self.total += loss.item() * self.share
        self.log("loss", loss, on_step=True, on_epoch=True)
        self.log("largest", batch[0].max(), on_step=False, on_epoch=True, reduce_fx="max")
        self.log("samples", float(len(batch[1])), on_step=False, on_epoch=True, reduce_fx="sum")
        return loss


class Summed(Net):
    loss_reduction = "sum"

    def training_step(self, batch, batch_idx):
        return {"loss": F.cross_entropy(self.net(batch[0]), batch[1], reduction="sum") / 8, "n": len(batch[1])}


class Softmax(Net):
    """Normalised over the batch, as the guide's step_end: wrong on a part of the batch."""

    def training_step(self, batch, batch_idx):
        return {"out": self.net(batch[0]), "y": batch[1]}

    def training_step_end(self, outputs):
        self.seen.append(tuple(outputs["out"].shape))
        return -(outputs["out"].softmax(0) * F.one_hot(outputs["y"], 3)).mean()


class Ends(Net):
    """All losses of the devices come back from step_end."""

    def training_step_end(self, losses):
        self.seen.append(tuple(losses.shape))
        return losses


class Contrast(Net):
    """Compares the samples of a batch: it asks for them whole."""

    divide_batches = False

    def training_step(self, batch, batch_idx):
        self.seen.append(len(batch[0]))
        z = F.normalize(self.net(batch[0]))
        return F.cross_entropy(3 * z @ z.T, torch.arange(len(z)))


def data(samples=21):
    torch.manual_seed(5)
    return TensorDataset(torch.randn(samples, 4), torch.randint(0, 3, (samples,)))


def trained(module, devices, **options):
    torch.manual_seed(3)
    trainer = Trainer(devices=devices, accelerator="cpu", strategy="dp", max_epochs=2, **options)
    trainer.fit(module, DataLoader(data(), 8, shuffle=True))
    return module, trainer


@pytest.mark.parametrize("kind", [Net, Summed, Softmax])
@pytest.mark.parametrize("devices", [2, 3])
def test_weights_of_one_device(kind, devices):
    one, two = trained(kind(), 1)[0], trained(kind(), devices)[0]
    for a, b in zip(one.parameters(), two.parameters(), strict=True):
        assert torch.allclose(a, b, atol=1e-6, rtol=0)


def test_a_step_of_whole_batches_gets_them():
    one, (two, _) = trained(Contrast(), 1)[0], trained(Contrast(), 2)
    assert two.seen == [8, 8, 5] * 2
    for a, b in zip(one.parameters(), two.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_validation_that_asks_for_whole_batches_gets_them():
    class Validates(Net):
        divide_validation = False

        def validation_step(self, batch, batch_idx):
            self.seen.append(("validation", len(batch[0])))

    module = Validates()
    trainer = Trainer(devices=2, accelerator="cpu", strategy="dp", max_epochs=1, num_sanity_val_steps=0)
    trainer.fit(module, DataLoader(data(), 8), DataLoader(data(10), 8))
    assert module.seen[-2:] == [("validation", 8), ("validation", 2)] and module.seen[0] == 4


def test_an_evaluation_that_adds_up_means_gets_whole_batches():
    class Validates(Net):
        mean = 0.0

        def validation_step(self, batch, batch_idx):
            self.mean += F.cross_entropy(self.net(batch[0]), batch[1]).item()

        test_step = validation_step

    found = []
    for devices in (1, 2):
        torch.manual_seed(0)
        module, held_out = Validates(), DataLoader(data(10), 8)
        trainer = Trainer(devices=devices, accelerator="cpu", strategy="dp" if devices > 1 else None, max_epochs=1)
        trainer.fit(module, DataLoader(data(), 8), held_out)
        trainer.test(module, held_out)
        found.append(module.mean)
    assert found[1] == pytest.approx(found[0], rel=1e-5)


def test_what_is_logged_is_the_batch_s():
    (one, t1), (two, t2) = trained(Net(), 1), trained(Net(), 2)
    assert t2.callback_metrics.keys() == t1.callback_metrics.keys()
    for name, value in t1.callback_metrics.items():
        assert float(t2.callback_metrics[name]) == pytest.approx(float(value), abs=1e-6)
    assert float(t2.callback_metrics["samples"]) == 21
    assert two.total == pytest.approx(one.total, abs=1e-5), "share is the device's"


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("reduce_fx", ["mean", "max", "sum"])
def test_a_loss_that_is_logged_is_the_batch_s_however_it_is_reduced(reduction, reduce_fx):
    class Logs(Net):
        loss_reduction = reduction

        def training_step(self, batch, batch_idx):
            loss = F.cross_entropy(self.net(batch[0]), batch[1], reduction=reduction) / 8
            self.log("loss", loss, on_step=False, on_epoch=True, reduce_fx=reduce_fx)
            self.log("number", loss.item(), on_step=False, on_epoch=True, reduce_fx=reduce_fx)
            return loss

    one, two = (trained(Logs(), devices)[1].callback_metrics for devices in (1, 2))
    for name in ("loss", "number"):
        assert float(two[name]) == pytest.approx(float(one[name]), abs=1e-6)


def test_each_device_gets_its_part():
    module, trainer = trained(Net(), 2)
    assert module.seen[:6] == [4, 4, 4, 4, 3, 2]
    assert (trainer.world_size, trainer.num_devices, trainer.strategy.name) == (1, 2, "dp")


def test_step_end_sees_the_whole_batch():
    assert trained(Softmax(), 2)[0].seen[:3] == [(8, 3), (8, 3), (5, 3)]


def test_losses_of_the_devices_handed_back_by_step_end():
    one, two = trained(Net(), 1)[0], trained(Ends(), 2)[0]
    assert two.seen[2::3] == [(2,)] * 6, "a value of shape () a device is gathered as one of shape (devices,)"
    assert torch.allclose(one.net[0].weight, two.net[0].weight, atol=1e-6)


def test_one_sample_alone_is_gathered_too():
    """A last batch with one sample: step_end sees what it sees otherwise."""
    torch.manual_seed(3)
    module = Ends()
    trainer = Trainer(devices=2, accelerator="cpu", strategy="dp", max_epochs=1)
    trainer.fit(module, DataLoader(data(17), 8))
    assert [shape for shape in module.seen if isinstance(shape, tuple)] == [(2,), (2,), (1,)]


def test_evaluation_and_prediction():
    class Evaluates(Net):
        outputs: list

        def validation_step(self, batch, batch_idx):
            out = self.net(batch[0])
            self.log("loss", F.cross_entropy(out, batch[1]))
            return out

        def validation_step_end(self, out):
            return out.sum(0)

        def validation_epoch_end(self, outputs):
            self.outputs = outputs

        def predict_step(self, batch, batch_idx):
            return self.net(batch[0]), {"n": len(batch[0])}

    modules = [Evaluates(), Evaluates()]
    one, two = (Trainer(devices=n, accelerator="cpu", strategy="dp") for n in (1, 2))
    loader = DataLoader(data(), 8)
    found = [t.validate(m, loader)[0]["loss"] for t, m in zip((one, two), modules, strict=True)]
    assert found[1] == pytest.approx(found[0], abs=1e-6)
    for a, b in zip(modules[0].outputs, modules[1].outputs, strict=True):
        assert a.shape == (3,) and torch.allclose(a, b, atol=1e-5)
    for (a, _), (b, numbers) in zip(one.predict(modules[0], loader), two.predict(modules[0], loader), strict=True):
        assert torch.allclose(a, b, atol=1e-6) and int(numbers["n"].sum()) == len(b)


def test_running_statistics_of_the_first_device():
    class Normed(Net):
        def __init__(self):
            super().__init__()
            self.net[1] = torch.nn.BatchNorm1d(5)

    module, trainer = trained(Normed(), 2)
    assert int(module.net[1].num_batches_tracked) == trainer.global_step == 6


def test_pieces_begin_with_the_same_buffers():
    """Spectral norm moves its vectors at every call, and divides by what they give."""

    class Normed(Net):
        def __init__(self):
            super().__init__()
            self.net[0] = torch.nn.utils.parametrizations.spectral_norm(self.net[0])

    one, two = trained(Normed(), 1)[0], trained(Normed(), 3)[0]
    for name, value in one.state_dict().items():
        assert torch.allclose(value, two.state_dict()[name], atol=1e-6), name


class Moves(Net):
    """In place, which leaves a trace, or by `.data`, which leaves none."""

    def __init__(self, traceless):
        super().__init__()
        self.traceless = traceless

    def training_step(self, batch, batch_idx):
        last = self.net[2].bias
        with torch.no_grad():
            (last.data if self.traceless else last).mul_(0.9)
        return super().training_step(batch, batch_idx)


@pytest.mark.parametrize("traceless", [False, True])
def test_a_step_that_changes_parameters_would_do_so_once_a_device(traceless):
    with pytest.raises(ConfigurationError, match=r"changes the parameter 'net\.2\.bias'"):
        trained(Moves(traceless), 2)
    assert trained(Moves(traceless), 1)[1].global_step == 6


class Diverged(Net):
    def on_train_batch_start(self, batch, batch_idx):
        if self.global_step == 1:
            self.net[2].bias.data.fill_(float("nan"))


def test_a_training_that_has_diverged_goes_on_as_on_one_device():
    assert trained(Diverged(), 1)[1].global_step == trained(Diverged(), 2)[1].global_step == 6


class MovesLate(Net):
    def training_step(self, batch, batch_idx):
        if self.global_step >= 2:
            self.net[2].bias.data.mul_(0.9)
        return super().training_step(batch, batch_idx)


def test_a_step_that_changes_parameters_later_without_a_trace_is_found():
    with pytest.raises(ConfigurationError, match=r"changes the parameter 'net\.2\.bias'"):
        trained(MovesLate(), 2)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"precision": 16}, "precision 16"),
        ({"num_nodes": 2}, "several nodes"),
    ],
)
def test_refused_before_it_starts(options, says):
    trainer = Trainer(devices=2, accelerator="cpu", strategy="dp", max_epochs=1, **options)
    with pytest.raises(ConfigurationError, match=says):
        trainer.fit(Net(), DataLoader(data(), 8))


def test_manual_optimization_is_refused():
    module = Net()
    module.automatic_optimization = False
    with pytest.raises(ConfigurationError, match=r"manual optimization.*use ddp, or divide_batches = False"):
        trained(module, 2)


class ByHand(Net):
    """Two optimizers that the step itself steps, on whole batches."""

    automatic_optimization = divide_batches = False

    def configure_optimizers(self):
        return torch.optim.SGD(self.net[0].parameters(), 0.1), torch.optim.Adam(self.net[2].parameters(), 0.01)

    def training_step(self, batch, batch_idx):
        loss = super().training_step(batch, batch_idx)
        for optimizer in self.optimizers():
            optimizer.zero_grad()
        self.manual_backward(loss)
        for optimizer in self.optimizers():
            optimizer.step()


def test_manual_optimization_of_whole_batches():
    (one, t1), (two, t2) = trained(ByHand(), 1), trained(ByHand(), 2)
    assert all(a.equal(b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert (two.seen, t2.global_step, t2.callback_metrics) == (one.seen, t1.global_step, t1.callback_metrics)


def test_scatter_and_gather():
    batch = {"x": torch.arange(10).reshape(5, 2), "names": ["a", "b", "c", "d", "e"], "scale": 2.0}
    pieces = scatter(batch, [CPU, CPU])
    assert [piece.size for piece in pieces] == [3, 2] and pieces[1].batch["names"] == ["d", "e"]
    assert [piece.share for piece in pieces] == [0.6, 0.4]
    assert torch.equal(gather([piece.batch["x"] for piece in pieces], CPU), batch["x"])
    assert len(scatter(torch.zeros(1, 2), [CPU, CPU])) == 1, "one sample is not cut"
    assert gather([(torch.tensor(1.0), None), (torch.tensor(2.0), None)], CPU)[0].tolist() == [1.0, 2.0]
    assert gather([{"n": 1}, {"n": 2}], CPU)["n"].tolist() == [1, 2]
    assert gather(["a", "b"], CPU) == ["a", "b"]
    assert gather([["a", "b"], ["c"]], CPU) == ["a", "b", "c"], "a list of samples"
    assert gather([[torch.ones(2)], [torch.zeros(1)]], CPU)[0].tolist() == [1.0, 1.0, 0.0], "a list of fields"
