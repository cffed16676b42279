"""Batches of loops that no Trainer runs."""

from types import SimpleNamespace

import pytest
import torch
from ptmigrate.runtime import on_device, placed
from torch.utils.data import DataLoader

META = SimpleNamespace(device=torch.device("meta"), on_cpu=False)
CPU = SimpleNamespace(device=torch.device("cpu"), on_cpu=True)


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
