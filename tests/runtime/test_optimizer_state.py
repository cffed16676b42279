"""A state that was loaded before the module had its device."""

import torch
from ptmigrate.runtime.optimizers import follow_parameters


def test_a_loaded_state_follows_its_parameters():
    here, there = torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(3, device="meta"))
    optimizer = torch.optim.Adam([here, there])
    for p in (here, there):
        optimizer.state[p] = {"step": torch.tensor(2.0), "exp_avg": torch.ones(3)}
    kept = optimizer.state[here]["exp_avg"]
    follow_parameters([optimizer])
    assert optimizer.state[here]["exp_avg"] is kept
    assert optimizer.state[there]["exp_avg"].device.type == "meta"
    assert optimizer.state[there]["step"].device.type == "cpu"


def test_an_optimizer_of_ones_own_without_a_state():
    follow_parameters([object()])
