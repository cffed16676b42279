"""Gradients that an engine has taken: who may look for one, and when."""

import pytest
import torch
from ptmigrate.runtime.strategies.given_away import GivenAway


@pytest.fixture
def watched():
    net = torch.nn.Linear(2, 1)
    watcher = GivenAway(net, "they are elsewhere", "/nowhere")
    yield net, watcher
    watcher.release()


def backward(net):
    net(torch.ones(1, 2)).sum().backward()


def test_before_a_backward_they_may_be_looked_for(watched):
    net, _ = watched
    assert net.weight.grad is None
    net.weight.grad = torch.ones(1, 2)
    del net.weight.grad


def test_after_it_reading_and_writing_are_told(watched):
    net, watcher = watched
    backward(net)
    watcher.came()
    with pytest.raises(RuntimeError, match="they are elsewhere"):
        _ = net.weight.grad
    with pytest.raises(RuntimeError, match="does not have it"):
        net.weight.grad = None
    with pytest.raises(RuntimeError, match="does not have it"):
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)


def test_where_they_are_here_they_are_torchs(watched):
    net, watcher = watched
    watcher.came()
    with watcher.here():
        backward(net)
        assert net.weight.grad.tolist() == [[1.0, 1.0]]


def test_a_module_that_zeroes_what_waits_is_told_and_what_does_not_is_not(watched):
    net, watcher = watched
    backward(net)
    watcher.came()
    with pytest.raises(RuntimeError, match="does not have it"):
        net.zero_grad()
    watcher.waiting = False
    net.zero_grad()
    net.double()
    watcher.gone = False
    assert net.weight.grad is None


def test_other_parameters_and_copies_are_nobodys(watched):
    watched[1].came()
    other = torch.nn.Linear(2, 1)
    backward(other)
    assert other.weight.grad is not None
    other.weight.grad = None


def test_released_nothing_is_left():
    first, second = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    watchers = [GivenAway(net, "", "/nowhere") for net in (first, second)]
    for watcher in watchers:
        assert "grad" in vars(torch.nn.Parameter)
        watcher.came()
        watcher.release()
    assert "grad" not in vars(torch.nn.Parameter)
    assert first.weight.grad is None
