import pytest
from helpers import check, check_unchanged

HEAD = "import torch\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("m.load_state_dict(torch.load('p'))", "m.load_state_dict(torch.load('p', map_location=\"cpu\"))"),
        ("m.load_state_dict(torch.load('p', 'cuda:0'))", "m.load_state_dict(torch.load('p', \"cpu\"))"),
        (
            "state = torch.load('p', map_location='cuda', weights_only=True)\nm.load_state_dict(state['m'])",
            "state = torch.load('p', map_location=\"cpu\", weights_only=True)\nm.load_state_dict(state['m'])",
        ),
        (
            "loc = 'cuda:{}'.format(gpu)\ns = torch.load(p, map_location=loc)\nm.load_state_dict(s)",
            's = torch.load(p, map_location="cpu")\nm.load_state_dict(s)',
        ),
        (
            "def f(rank):\n    loc = {'cuda:0': 'cuda:%d' % rank}\n    m.load_state_dict(torch.load(p, loc))",
            "def f(rank):\n    loc = {'cuda:0': 'cuda:%d' % rank}\n    m.load_state_dict(torch.load(p, \"cpu\"))",
        ),
        (
            "s = torch.load(p)\nm.load_state_dict({k: v for k, v in s.items()})",
            's = torch.load(p, map_location="cpu")\nm.load_state_dict({k: v for k, v in s.items()})',
        ),
        (
            "s = torch.load(p) if gpu is None else torch.load(p, f'cuda:{gpu}')\nm.load_state_dict(s)",
            's = torch.load(p, map_location="cpu") if gpu is None else torch.load(p, "cpu")\nm.load_state_dict(s)',
        ),
        (
            "s: dict = torch.load(p, 'cuda')['m']['net']\nm.load_state_dict(s)",
            "s: dict = torch.load(p, \"cpu\")['m']['net']\nm.load_state_dict(s)",
        ),
        (
            "if (s := torch.load(p)) is not None:\n    m.load_state_dict(s)",
            'if (s := torch.load(p, map_location="cpu")) is not None:\n    m.load_state_dict(s)',
        ),
    ],
)
def test_a_state_is_loaded_on_the_cpu(before, after):
    check(HEAD + before + "\n", HEAD + after + "\n", select="PTM109,PTM102")


@pytest.mark.parametrize(
    "source",
    [
        "m.load_state_dict(torch.load('p', map_location='cpu'))",
        "m.load_state_dict(torch.load('p', map_location=device))",
        "m.load_state_dict(torch.load('p', map_location=lambda storage, loc: storage))",
        "d = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\nm.load_state_dict(torch.load('p', d))",
        "m.load_state_dict(torch.load('p', map_location=torch.device('cpu')))",
        "m.load_state_dict(torch.load('p', **how))",
        "m.load_state_dict(load('p'))",
    ],
)
def test_unchanged(source):
    check_unchanged(HEAD + source + "\n", [], select="PTM109")


@pytest.mark.parametrize(
    "source",
    [
        "model = torch.load('model.pt')",
        "x = torch.load('x', map_location='cuda:0').sum()",
        "s = 1 if torch.load('p') else 2\nm.load_state_dict(s)",
        "s = table[torch.load('p')]\nm.load_state_dict(s)",
    ],
)
def test_what_is_no_state_is_told(source):
    check_unchanged(HEAD + source + "\n", ["PTM109 line 2: `torch.load("], select="PTM109")


TRAINS = "import torch\nfor x, y in loader:\n    loss(net(x), y).backward()\ntorch.save(net, 'net.pkl')\n"


def test_a_script_that_names_no_device_loads_what_it_saved_on_the_cpu():
    load = "again = torch.load('net.pkl'{})\nprint(again(x))\n"
    check(TRAINS + load.format(""), TRAINS + load.format(', map_location="cpu"'), select="PTM109")


@pytest.mark.parametrize("script", [TRAINS.replace("net(x)", "net(x.cuda())"), "import torch\n"])
def test_another_file_may_mean_a_device(script):
    check_unchanged(script + "again = torch.load('net.pkl')\nprint(again(x))\n", select="PTM109")
