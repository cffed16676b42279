"""Batches of loops that no Trainer runs."""

from types import SimpleNamespace

import pytest
import torch
from ptmigrate.runtime import on_device, placed
from torch.utils.data import DataLoader

META = SimpleNamespace(device=torch.device("meta"), on_cpu=False, models_on_cpu=False)
CPU = SimpleNamespace(device=torch.device("cpu"), on_cpu=True, models_on_cpu=True)


@pytest.fixture
def loader():
    return DataLoader(torch.arange(6.0), batch_size=2)


@pytest.mark.parametrize(("runtime", "there"), [(META, "meta"), (CPU, "cpu")])
def test_they_are_where_the_runtime_is(loader, monkeypatch, runtime, there):
    monkeypatch.setattr(placed, "latest", runtime)
    assert [batch.device.type for batch in on_device(loader)] == [there] * 3
    assert (on_device(loader) is loader) is runtime.on_cpu


def test_an_iterator_from_above_the_trainer_gives_them_where_the_runtime_is_by_then(loader, monkeypatch):
    monkeypatch.setattr(placed, "latest", None)
    asked = on_device(loader)
    batches = iter(asked)
    assert next(batches).device.type == "cpu" and len(asked) == 3 and asked.batch_size == 2
    monkeypatch.setattr(placed, "latest", META)
    assert next(batches).device.type == "meta"


def test_such_an_iterator_draws_as_the_loaders_own(monkeypatch):
    monkeypatch.setattr(placed, "latest", None)
    shuffled = DataLoader(torch.arange(9.0), batch_size=3, shuffle=True)
    torch.manual_seed(0)
    batches = iter(on_device(shuffled))
    torch.rand(1)
    given = [*batches]
    torch.manual_seed(0)
    own = iter(shuffled)
    torch.rand(1)
    assert all(torch.equal(a, b) for a, b in zip(given, own, strict=True))


def test_they_stay_where_they_are_once_the_models_are_back_on_the_cpu(loader, monkeypatch):
    runtime = SimpleNamespace(device=torch.device("meta"), on_cpu=False, models_on_cpu=False)
    monkeypatch.setattr(placed, "latest", runtime)
    asked, without_weights = on_device(loader), on_device(loader, torch.nn.ReLU())
    runtime.models_on_cpu = True
    assert [batch.device.type for batch in (*asked, *without_weights, *on_device(loader))] == ["cpu"] * 9


@pytest.mark.parametrize("runtime", [None, META, CPU])
def test_those_of_a_network_that_no_trainer_knows_are_where_it_is(loader, monkeypatch, runtime):
    monkeypatch.setattr(placed, "latest", runtime)
    network = torch.nn.Linear(2, 1)
    asked = on_device(loader, network)
    assert [batch.device.type for batch in asked] == ["cpu"] * 3 and len(asked) == 3
    network.to("meta")
    assert [batch.device.type for batch in asked] == ["meta"] * 3


@pytest.mark.parametrize(("runtime", "there"), [(META, "meta"), (CPU, "cpu"), (None, "cpu")])
def test_a_network_without_weights_is_where_the_models_are(loader, monkeypatch, runtime, there):
    monkeypatch.setattr(placed, "latest", runtime)
    assert [batch.device.type for batch in on_device(loader, torch.nn.ReLU())] == [there] * 3


def test_what_is_no_network_says_nothing(loader, monkeypatch):
    monkeypatch.setattr(placed, "latest", META)
    assert [batch.device.type for batch in on_device(loader, len)] == ["meta"] * 3
