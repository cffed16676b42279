"""T9: a wrapped model that is a part of another: the keys of that one's state have no `module.` within any more."""

import pytest
from ptmigrate.migrate.elsewhere import Elsewhere
from ptmigrate.migrate.facts.other_files import OtherFile
from ptmigrate.migrate.migrate import migrate_text

HEAD = "import copy\nimport torch\nfrom torch import nn\n\n\n"
NET = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.DataParallel(nn.Linear(2, 2))
        self.g = nn.Linear(2, 2)

    def forward(self, x):
        return self.g(self.f(x))


"""
OUTER = "class Outer(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.net = Net()\n\n\n"
EDIT = "the keys of the state that it is a part of have no `module.` now"
SAVED = "net.load_state_dict(torch.load('x.pt'))"
FEATURES = "net.features = nn.DataParallel(net.features)\n"


def told(text: str, others: tuple[OtherFile, ...] = ()) -> tuple[bool, list[int]]:
    """Whether the removal says it, and the lines of the notes."""
    result = migrate_text(HEAD + text, is_script=not others, elsewhere=Elsewhere(others=others) if others else None)
    removals = [e.message for e in result.edits if e.code == "PTM420" and "DataParallel" in e.message]
    assert removals and "DataParallel" not in result.text
    return any(EDIT in m for m in removals), [n.line for n in result.attention if "`module.`" in n.message]


@pytest.mark.parametrize(
    ("made", "says"),
    [
        ("print(sorted(net.state_dict()))", []),
        ("torch.save(net.state_dict(), 'x.pt')", []),
        (SAVED, [SAVED]),
        ("state = torch.load('x.pt')\nnet.load_state_dict(state['net'])", ["net.load_state_dict"]),
        ("net.load_state_dict({'f.module.weight': w, 'f.module.bias': b, 'g.bias': b})", ["net.load"] * 2),
        ("best = copy.deepcopy(net.state_dict())\nnet.load_state_dict(best)", []),
        ("net.load_state_dict({k.replace('module.', ''): v for k, v in torch.load('x.pt').items()})", []),
    ],
)
@pytest.mark.parametrize(
    "nets",
    [
        NET + "net = Net()\n",
        NET + "net = Net().cuda()\n",
        NET + OUTER + "net = Outer()\n",
        NET + "class More(Net):\n    pass\n\n\nnet = More()\n",
        NET.replace("self.f = nn.DataParallel(nn.Linear(2, 2))", "self.f = nn.Sequential(nn.DataParallel(nn.ReLU()))")
        + "net = Net()\n",
        "from torchvision.models import alexnet\nnet = alexnet()\n" + FEATURES.replace("features", "f"),
        "net = nn.Sequential(nn.DataParallel(nn.Linear(2, 2)), nn.ReLU())\n",
    ],
)
def test_keys_of_what_holds_a_wrapped_model(nets, made, says):
    if ".Sequential" in nets:
        made = made.replace("f.module", "0.module")
    lines = (HEAD + nets + made).splitlines()
    assert told(nets + made + "\n") == (True, [n for n, at in enumerate(lines, 1) for s in says if at.startswith(s)])


@pytest.mark.parametrize(
    "text",
    [
        NET + "net = Net()\nprint(net)\n",
        NET + "net = Net()\nopt = torch.optim.SGD(net.parameters(), 0.1)\nopt.load_state_dict(torch.load('x.pt'))\n",
        NET + f"net = nn.Linear(2, 2)\n{SAVED}\n",
        NET.replace("(nn.Module)", "").replace("super().__init__()", "pass") + f"net = nn.Linear(2, 2)\n{SAVED}\n",
        f"net = nn.Linear(2, 2)\nother = nn.Sequential(nn.ReLU())\n{FEATURES.replace('net', 'other')}{SAVED}\n",
    ],
)
def test_states_of_others(text):
    assert told(text) == (False, [])


@pytest.mark.parametrize(
    ("reading", "expected"),
    [
        (SAVED, (True, [9])),
        ("torch.save(net.state_dict(), 'x.pt')", (True, [])),
        ("net.load_state_dict({k.replace('.module.', '.module.'[7:]): v for k, v in s.items()})", (True, [])),
        ("net(x)", (False, [])),
        ("optimizer.load_state_dict(torch.load('x.pt'))", (False, [])),
    ],
)
def test_states_in_the_file_that_takes_the_class(reading, expected):
    other = OtherFile("train", f"import torch\nfrom nets import Net\nnet = Net()\n{reading}\n")
    assert told(NET, (other,)) == expected


def test_names_of_parameters():
    loop = "net = Net()\nfor n, p in net.named_parameters():\n    p.requires_grad = n.startswith('f.module.w')\n"
    assert told(NET + loop)[1] == [len((HEAD + NET + loop).splitlines())]
    assert told(NET + loop.replace("f.module.w", "g.weight"))[1] == []
