"""T2: what a helper makes for a network goes where the network is, where the helper is given no tensor."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

HEAD = """
import numpy as np
import torch
from torch import nn
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
G = nn.Linear(9, 2).to(device)
D = nn.Linear(2, 1)
other = nn.ReLU()
optimizer = torch.optim.Adam(G.parameters(), lr=0.1)
"""
THERE = "next(G.parameters()).device"
PLACED = {
    "by a name": ("z = torch.rand(4, 9).to(device)\n    return G(z)", f"z = torch.rand(4, 9).to({THERE})"),
    "at once": ("return G(torch.rand(4, 9).cuda())", f"G(torch.rand(4, 9).to({THERE}))"),
    "made there": ("z = torch.rand(4, 9, device=device)\n    return G(z)", f"z = torch.rand(4, 9, device={THERE})"),
    "by keyword": ("z = torch.rand(4, 9).cuda()\n    return G(input=z)", f"z = torch.rand(4, 9).to({THERE})"),
    "by its type": ("z = torch.cuda.FloatTensor(4, 9)\n    return G(z)", f"z = torch.FloatTensor(4, 9).to({THERE})"),
    "below another": ("z = other(torch.rand(4, 9).cuda())\n    return G(z)", f"torch.rand(4, 9).to({THERE})"),
}
AS_BEFORE = {
    "of a network without parameters": "z = torch.rand(4, 9).to(device)\n    return other(z)",
    "of one that nothing asks for them": "z = torch.rand(4, 2).to(device)\n    return D(z)",
    "of a network of its own": "G = nn.Linear(9, 2)\n    G.parameters()\n    z = torch.rand(4, 9).cuda()\n    G(z)",
    "of none": "z = torch.rand(4, 9).to(device)\n    return z",
    "given before": "G(torch.ones(2, 9))\n    z = torch.rand(4, 9).to(device)\n    return z",
    "of another name": "z = torch.rand(4, 9).to(device)\n    y = torch.ones(2, 9)\n    return G(y)",
}


def migrated(body):
    return migrate_text(f"{HEAD}\ndef sample(n):\n    {body}\n", is_script=False).text


@pytest.mark.parametrize(("body", "line"), PLACED.values(), ids=PLACED)
def test_it_goes_where_the_network_is(body, line):
    text = migrated(body)
    assert line in text
    assert migrate_text(text, is_script=False).text == text


@pytest.mark.parametrize("body", AS_BEFORE.values(), ids=AS_BEFORE)
def test_it_does_not(body):
    assert "next(" not in migrated(body)


HELPERS = """
def generate(net, z, times=2):
    for _ in range(times):
        z = net(z)
    return z

def kept(net, z):
    return net.weight.shape, z
"""
HANDED_ON = {
    "by a name": ("z = torch.rand(4, 9).to(device)\n    return generate(G, z)", f"z = torch.rand(4, 9).to({THERE})"),
    "at once": ("return generate(G, torch.rand(4, 9).cuda(), 3)", f"generate(G, torch.rand(4, 9).to({THERE}), 3)"),
    "by keyword": (
        "z = torch.rand(4, 9, device=device)\n    generate(z=z, net=G)",
        f"z = torch.rand(4, 9, device={THERE})",
    ),
}
NOT_HANDED_ON = {
    "to one that calls no network": "z = torch.rand(4, 9).to(device)\n    return kept(G, z)",
    "with a network of its own": "G = nn.Linear(9, 2)\n    G.parameters()\n    generate(G, torch.rand(4, 9).cuda())",
    "with one that nothing asks for parameters": "z = torch.rand(4, 2).to(device)\n    return generate(D, z)",
    "to one of another file": "z = torch.rand(4, 9).to(device)\n    return np.generate(G, z)",
    "and another is": "z = torch.rand(4, 9).to(device)\n    y = torch.ones(2, 9)\n    return generate(G, y)",
}


@pytest.mark.parametrize(("body", "line"), HANDED_ON.values(), ids=HANDED_ON)
def test_so_it_does_beside_the_network_that_is_handed_on(body, line):
    text = migrate_text(f"{HEAD}{HELPERS}\ndef sample(n):\n    {body}\n", is_script=False).text
    assert line in text
    assert migrate_text(text, is_script=False).text == text


@pytest.mark.parametrize("body", NOT_HANDED_ON.values(), ids=NOT_HANDED_ON)
def test_it_is_not_handed_on(body):
    assert "next(" not in migrate_text(f"{HEAD}{HELPERS}\ndef sample(n):\n    {body}\n", is_script=False).text


def test_an_option_says_where_the_trainer_goes_and_is_not_asked_again():
    options = 'import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument("--device", default="cpu")\n'
    head = HEAD.replace("device = ", f"{options}args = parser.parse_args()\nunused = ").replace(
        "(device)", "(args.device)"
    )
    helper = f"{HELPERS}\ndef sample():\n    z = torch.rand(4, 9).to(args.device)\n    return generate(G, z)\n"
    text = migrate_text(head + helper + LOOP.format(more="", call="sample()")).text
    assert f"to({THERE})" in text and text.count("args.device") == 1
    assert "accelerator=torch.device(args.device).type" in text


def test_a_tensor_at_hand_comes_first():
    body = "z = torch.rand(4, 9).to(device)\n    return G(z) + x.view(-1).float()"
    text = migrate_text(f"{HEAD}\ndef sample(x):\n    {body}\n", is_script=False).text
    assert "z = torch.rand(4, 9).to(x.device)" in text or "z = torch.rand(4, 9).type_as(x)" in text


LOOP = """
def train(loader):
    for x, _ in loader:
        loss = G(x).mean(){more}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {call}
"""


def test_a_helper_that_a_step_calls():
    helper = "\ndef sample():\n    z = torch.rand(4, 9).to(device)\n    return G(z)\n"
    assert f"to({THERE})" in migrate_text(HEAD + helper + LOOP.format(more="", call="sample()")).text


def test_a_step_itself_has_a_device():
    text = migrate_text(HEAD + LOOP.format(more=" + G(torch.rand(4, 9).to(device)).sum()", call="") + "train(x)\n").text
    assert "next(" not in text


def test_the_network_of_the_function_around():
    inner = "    def sample(n):\n        z = torch.rand(n, 9).to(device)\n        return G(z)\n    return sample(3)\n"
    text = migrate_text(
        HEAD.replace("G", "H") + f"\ndef main():\n    G = nn.Linear(9, 2)\n    G.parameters()\n{inner}"
    ).text
    assert f"z = torch.rand(n, 9).to({THERE})" in text
