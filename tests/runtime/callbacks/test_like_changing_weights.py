"""Callbacks that freeze layers and let them join, or average the weights: as Lightning's, and through a resume."""

import pickle

import pytest
import torch
import torch.nn.functional as F
from ptmigrate.runtime import ModelCheckpoint, Trainer, callbacks
from ptmigrate.runtime.errors import ConfigurationError
from sides import OURS, QUIET, check, common, data, fit, outcome
from torch.utils.data import DataLoader

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def classifier(side):
    class Net(common(side)):
        def __init__(self):
            super().__init__()
            self.net[1] = torch.nn.BatchNorm1d(8)
            self.backbone = self.net[:2]

        def validation_step(self, batch, batch_idx):
            self.log("v", F.cross_entropy(self(batch[0]), batch[1]))

        def configure_optimizers(self):
            trained = filter(lambda p: p.requires_grad, self.parameters())
            return torch.optim.SGD(trained, lr=0.1, momentum=0.9)

        def on_train_batch_end(self, *_):
            groups = self.optimizers().param_groups
            self.note([[group["lr"], len(group["params"])] for group in groups], self.net[0].weight)

    return Net


def thaws(side, at=1, **options):
    class Thaws(side.callbacks.BaseFinetuning):
        def freeze_before_training(self, module):
            self.freeze([module.net[0], module.net[1]], train_bn=at > 1)

        def finetune_function(self, module, epoch, optimizer):
            if epoch == at:
                self.unfreeze_and_add_param_group(module.net[:2], optimizer, **options)

    return Thaws()


@case
def layers_that_join(side):
    return outcome(*fit(side, classifier(side), {"callbacks": [thaws(side)]}))


@case
def layers_that_join_without_batch_norm(side):
    callback = thaws(side, at=2, lr=0.02, train_bn=False)
    return outcome(*fit(side, classifier(side), {"callbacks": [callback]}))


@case
def layers_that_never_join(side):
    return outcome(*fit(side, classifier(side), {"callbacks": [thaws(side, at=9)]}))


@case
def what_can_be_asked(side):
    tool, net = side.callbacks.BaseFinetuning, classifier(side)()
    parts = [type(part).__name__ for part in tool.flatten_modules([net.net, torch.nn.ModuleDict({"a": net.net[0]})])]
    tool.freeze(net.net, train_bn=True)
    kept = [p.numel() for p in tool.filter_params(net.net, train_bn=True)]
    return [parts, kept, [p.numel() for p in tool.filter_params(net.net, train_bn=False, requires_grad=False)]]


@case
def a_backbone_that_joins(side):
    backbone = side.callbacks.BackboneFinetuning(1, lambda epoch: 1.5, backbone_initial_lr=0.05)
    return outcome(*fit(side, classifier(side), {"callbacks": [backbone], "max_epochs": 5}))


@case
def no_backbone_to_join(side):
    return outcome(*fit(side, common(side), {"callbacks": [side.callbacks.BackboneFinetuning(1)]}))


@case
def the_mean_of_all_steps(side):
    averaging = side.callbacks.WeightAveraging()
    return outcome(*fit(side, classifier(side), {"callbacks": [averaging], "accumulate_grad_batches": 2}))


@case
def a_moving_average_from_a_step_on(side):
    averaging = side.callbacks.EMAWeightAveraging(
        decay=0.9, use_buffers=False, update_every_n_steps=3, update_starting_at_step=5
    )
    module, trainer = fit(side, classifier(side), {"callbacks": [averaging]})
    trainer.save_checkpoint("a.ckpt")
    saved = torch.load("a.ckpt", weights_only=False)
    return outcome(module, trainer, saved=saved["state_dict"], current=saved["current_model_state"])


@case
def a_moving_average_of_epochs(side):
    averaging = side.callbacks.EMAWeightAveraging(decay=0.5, update_every_n_steps=0, update_starting_at_epoch=1)
    return outcome(*fit(side, classifier(side), {"callbacks": [averaging]}))


@pytest.mark.parametrize("name", CASES)
def test_like_lightning(name, tmp_path, monkeypatch):
    check(CASES[name], tmp_path, monkeypatch)


@pytest.mark.parametrize("kind", ["joins", "averages"])
def test_a_run_that_goes_on_is_the_same_run(kind, tmp_path):
    def run(epochs, ckpt_path=None):
        own = thaws(OURS) if kind == "joins" else callbacks.EMAWeightAveraging(decay=0.8)
        saves = ModelCheckpoint(dirpath=tmp_path, filename=f"{epochs}", save_last=False)
        module = classifier(OURS)()
        trainer = Trainer(**{**QUIET, "max_epochs": epochs, "callbacks": [own, saves]})
        torch.manual_seed(7)
        trainer.fit(module, DataLoader(data(), 8, shuffle=True), DataLoader(data(41, 9), 10), ckpt_path=ckpt_path)
        return module.state_dict()

    whole = run(4)
    run(2)
    resumed = run(4, tmp_path / "2.ckpt")
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_parameters_that_are_there_already_are_told():
    layer = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    with pytest.warns(UserWarning, match="2 parameters are in the optimizer already"):
        assert callbacks.BaseFinetuning.filter_on_optimizer(optimizer, layer.parameters()) == []
    twin = torch.nn.Parameter(layer.weight.detach().clone())  # equal values are another parameter
    assert callbacks.BaseFinetuning.filter_on_optimizer(optimizer, [twin]) == [twin]


def test_averages_are_sent_to_spawned_processes():
    averaging = pickle.loads(pickle.dumps(OURS.callbacks.EMAWeightAveraging(decay=0.5)))
    assert averaging.options["avg_fn"](torch.tensor(1.0), torch.tensor(3.0), 1) == 2.0


@pytest.mark.parametrize("callback", [callbacks.EMAWeightAveraging(), callbacks.StochasticWeightAveraging(0.1)])
def test_parts_of_parameters_are_refused(callback):
    class Part(torch.nn.Parameter):
        """As fully_shard's: it has the shape of the whole."""

    class Cut(common(OURS)):
        def configure_optimizers(self):
            self.net[0].weight = Part(self.net[0].weight.detach())
            return super().configure_optimizers()

    with pytest.raises(ConfigurationError, match="needs whole parameters"):
        fit(OURS, Cut, {"callbacks": [callback]})
