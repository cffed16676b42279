"""Lightning's smaller callbacks do here what they do there; those that are not here say what to use instead."""

import json
import sys
import time

import pytest
import torch
from ptmigrate import runtime
from ptmigrate.runtime import Module, Trainer, callbacks
from ptmigrate.runtime.errors import ConfigurationError
from torch.utils.data import DataLoader

sys.path.insert(0, __file__.rsplit("/", 2)[0])
from launching import SCRIPTS
from sides import check, common, data, fit, outcome, their_callbacks

from tests.forked import ptrun

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def written(side, interval, loaders):
    notes = []

    class Writer(side.callbacks.BasePredictionWriter):
        def write_on_batch_end(self, trainer, module, prediction, batch_indices, batch, batch_idx, dataloader_idx):
            notes.append(["batch", prediction, list(batch_indices), len(batch[0]), batch_idx, dataloader_idx])

        def write_on_epoch_end(self, trainer, module, predictions, batch_indices):
            notes.append(["epoch", predictions, batch_indices])

    class Predicts(common(side)):
        def predict_step(self, batch, batch_idx, dataloader_idx=0):
            return batch[0].sum()

    quiet = {"logger": False, "enable_progress_bar": False, "accelerator": "cpu", "enable_model_summary": False}
    trainer = side.Trainer(**quiet, callbacks=[Writer(interval)])
    torch.manual_seed(4)
    trainer.predict(Predicts(), loaders)
    return json.loads(json.dumps(notes, default=float))


@case
def prediction_writer_batches(side):
    return written(side, "batch", DataLoader(data(21), 5))


@case
def prediction_writer_epoch(side):
    return written(side, "epoch", DataLoader(data(21), 5))


@case
def prediction_writer_both_of_two_loaders_with_workers(side):
    loaders = [DataLoader(data(11), 5, num_workers=1), DataLoader(data(8), batch_size=3)]
    return written(side, "batch_and_epoch", loaders)


@case
def lambdas(side):
    notes = []
    callback = side.callbacks.LambdaCallback(
        setup=lambda trainer, module, stage: notes.append("setup"),
        on_train_epoch_end=lambda trainer, module: notes.append(trainer.current_epoch),
        on_train_batch_end=lambda trainer, module, outputs, batch, batch_idx: notes.append(batch_idx),
    )
    return [outcome(*fit(side, common(side), {"callbacks": [callback]})), notes]


@case
def accumulation(side):
    callback = side.callbacks.GradientAccumulationScheduler(scheduling={1: 4, 2: 2})
    return outcome(*fit(side, common(side), {"callbacks": [callback], "max_epochs": 4}))


@case
def accumulation_twice(side):
    callback = side.callbacks.GradientAccumulationScheduler(scheduling={1: 4})
    return outcome(*fit(side, common(side), {"callbacks": [callback], "accumulate_grad_batches": 2}))


@case
def logs_of_its_own(side):
    class Watch(side.callbacks.Callback):
        def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
            self.log("size", float(len(batch[0])), on_epoch=True)

        def on_validation_epoch_end(self, trainer, module):
            self.log_dict({"a": 1.0, "b": 2.0 * trainer.current_epoch})

    return outcome(*fit(side, common(side), {"callbacks": [Watch()]}))


@case
def time_is_up(side):
    timer = side.callbacks.Timer(duration={"seconds": 0.0}, verbose=False)
    _, trainer = fit(side, common(side), {"callbacks": [timer]})
    return [trainer.global_step, trainer.current_epoch, timer.time_remaining() <= 0, timer.time_elapsed("test")]


@case
def time_is_up_after_epochs(side):
    timer = side.callbacks.Timer(duration="00:00:00:00", interval="epoch", verbose=False)
    _, trainer = fit(side, common(side), {"callbacks": [timer]})
    return [trainer.global_step, trainer.current_epoch, sorted(timer.state_dict())]


@pytest.mark.parametrize("name", CASES)
def test_like_lightning(name, tmp_path, monkeypatch):
    check(CASES[name], tmp_path, monkeypatch)


@pytest.mark.parametrize("name", their_callbacks.__all__)
def test_each_of_lightnings_is_here_or_says_what_to_use(name):
    if name in callbacks.__all__:
        assert getattr(runtime, name) is getattr(callbacks, name)
        return
    with pytest.raises(ImportError, match=f"'{name}' is not here: .+"):
        getattr(runtime, name)


class Net(Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Sequential(torch.nn.Linear(3, 1)))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

    def training_step(self, batch, batch_idx):
        with self.trainer.profiler.profile("mine"):
            return self.net(batch).mean()


def run(**options):
    trainer = Trainer(accelerator="cpu", max_epochs=1, **options)
    trainer.fit(Net(), [torch.ones(4, 2)] * 3)
    return trainer


@pytest.mark.parametrize("hooks", [{"on_trian_end": print}])
def test_a_hook_that_there_is_not(hooks):
    with pytest.raises(ConfigurationError, match="did you mean 'on_train_end'"):
        callbacks.LambdaCallback(**hooks)


def test_depth_of_the_summary(capsys):
    run(callbacks=[callbacks.ModelSummary(max_depth=-1)])
    assert "net.1.0" in capsys.readouterr().out
    run(callbacks=[callbacks.RichModelSummary()])
    assert "net.1" not in capsys.readouterr().out


@pytest.mark.parametrize(("options", "rate"), [({}, 3), ({"enable_progress_bar": False}, None)])
def test_a_progress_bar_as_a_callback(options, rate):
    progress = run(callbacks=[callbacks.TQDMProgressBar(refresh_rate=3)], **options).progress
    assert (progress and progress.refresh_rate) == rate


@pytest.mark.parametrize("profiler", ["simple", "advanced"])
def test_profilers_tell_of_each_part(profiler, capsys):
    run(profiler=profiler)
    told = capsys.readouterr().err
    parts = ("run_training_batch", "training_step", "backward", "optimizer_step", "train_dataloader_next", "mine")
    assert [part for part in parts if part not in told] == []


def test_a_profile_to_a_file(tmp_path):
    run(profiler=runtime.SimpleProfiler(dirpath=tmp_path, filename="times"))
    row = next(line for line in (tmp_path / "fit-times.txt").read_text().splitlines() if line.startswith("backward"))
    assert row.split()[2] == "3"


@pytest.mark.parametrize(("profiler", "says"), [("simpel", "did you mean 'simple'"), ("pytorch", "torch.profiler")])
def test_profilers_that_there_are_not(profiler, says):
    with pytest.raises(ConfigurationError, match=says):
        Trainer(accelerator="cpu", profiler=profiler)


def test_the_timer_of_a_run_that_goes_on():
    timer = callbacks.Timer()
    timer.load_state_dict({"time_elapsed": {"train": 100.0, "validate": 0.0, "test": 0.0}})
    timer.on_train_start(None, None)
    time.sleep(0.01)
    assert 100.0 < timer.time_elapsed() < 110.0 and timer.time_remaining() is None


def test_device_statistics(tmp_path, monkeypatch):
    pytest.importorskip("psutil")
    logger = runtime.CSVLogger(tmp_path)
    run(logger=logger, callbacks=[callbacks.DeviceStatsMonitor()], log_every_n_steps=1)
    assert [row for row in logger.rows if "DeviceStatsMonitor.on_train_batch_start/cpu_percent" in row]
    with pytest.raises(ConfigurationError, match="needs a logger"):
        run(callbacks=[callbacks.DeviceStatsMonitor()])


def test_each_rank_writes_what_it_has_predicted():
    done = ptrun("--accelerator", "cpu", "--devices", "2", str(SCRIPTS / "writer.py"))
    assert done.returncode == 0, done.stderr[-2000:]
    ours = json.loads(done.stdout.splitlines()[-1])
    assert ours == [[[[0, 1, 2, 3], [8, 9]], [0.0, 8.0]], [[[4, 5, 6, 7]], [4.0]]]
