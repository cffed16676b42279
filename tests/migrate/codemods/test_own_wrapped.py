"""A model with a `module` of its own beside models that are wrapped now and then."""

import pytest
from helpers import check, check_unchanged, migrated

HEAD = "import torch\nimport torch.nn as nn\n"
OWN = """\
class Scaled(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
"""
SOMETIMES = "net = Scaled(nn.Linear(2, 2))\nif torch.cuda.device_count() > 1:\n    net = nn.DataParallel(net)\n"
ALWAYS = "net = nn.DataParallel(Scaled(nn.Linear(2, 2)))\n"
ASKED = (
    'inner = net.module if hasattr(net, "module") else net\n',
    'inner = net if not hasattr(net, "module") else net.module\n',
    'if hasattr(net, "module"):\n    net = net.module\n',
    'if hasattr(net, "module"):\n    f(net.module.state_dict())\nelse:\n    f(net.state_dict())\n',
    'inner = getattr(net, "module", net)\n',
)


@pytest.mark.parametrize("asked", ASKED)
def test_the_own_one_is_still_asked_for(asked):
    result = migrated(HEAD + OWN + SOMETIMES + asked)
    assert result.text.endswith(asked)
    assert not result.attention


def test_in_a_function_it_is_told_where_another_model_is_wrapped_always():
    f = 'def bare(m):\n    return m.module if hasattr(m, "module") else m\n'
    result = migrated(f"{HEAD}{OWN}{f}{ALWAYS}g(bare(net), bare(Scaled(net)))\n")
    assert f in result.text
    assert ["`m.module`: a class has a `module` of its own" in n.message for n in result.attention] == [True]


def test_what_is_wrapped_always_has_none_of_its_own():
    check(HEAD + OWN + ALWAYS + ASKED[0], HEAD + OWN + "net = Scaled(nn.Linear(2, 2))\ninner = net\n", select="PTM420")
    result = migrated(HEAD + OWN + ALWAYS + ASKED[-1])
    assert any('`getattr(net, "module", net)`: a class has' in n.message for n in result.attention)


def test_an_average_has_one():
    bare = 'def bare(m):\n    return m.module if hasattr(m, "module") else m\n'
    made = "net = nn.Linear(2, 2)\nif torch.cuda.device_count() > 1:\n    net = nn.DataParallel(net)\n"
    ema = "ema = torch.optim.swa_utils.AveragedModel(net)\n"
    assert bare in migrated(f"{HEAD}{bare}{made}{ema}f(bare(net), bare(ema))\n").text


@pytest.mark.parametrize("asked", ASKED[:2])
def test_no_class_has_one(asked):
    made = "net = nn.Linear(2, 2)\n"
    wrapped = "if torch.cuda.device_count() > 1:\n    net = nn.DataParallel(net)\n"
    check(HEAD + made + wrapped + asked, f"{HEAD}{made}inner = net\n", select="PTM420,PTM102")


def test_nothing_is_wrapped():
    check_unchanged(HEAD + OWN + "net = Scaled(nn.Linear(2, 2))\n" + ASKED[0], [], select="PTM420")


USES = "net.module.bias.data.zero_()\n"
IN_TURNS = "for i in range(3):\n    net.module.bias.data.zero_()\n    net = nn.DataParallel(net)\n"


def test_above_the_wrapping_it_is_the_own_one():
    made, wrapping = SOMETIMES.partition("\n")[0] + "\n", SOMETIMES.partition("\n")[2]
    result = migrated(HEAD + OWN + made + USES + wrapping + "f(net.module.parameters())\n")
    assert result.text == HEAD + OWN + made + USES + "f(net.parameters())\n"


@pytest.mark.parametrize(
    "above",
    [ALWAYS + USES, ALWAYS + IN_TURNS, f"net = Scaled(nn.Linear(2, 2))\n{IN_TURNS}"],
)
def test_below_a_wrapping_it_is_what_was_wrapped(above):
    assert "net.bias.data.zero_()" in migrated(HEAD + OWN + above).text


@pytest.mark.parametrize(
    "asked",
    [
        "n = net.module.in_features if not isinstance(net, nn.DataParallel) else 0\n",
        "if isinstance(net, nn.DataParallel):\n    n = 0\nelse:\n    n = net.module.in_features\n",
    ],
)
def test_where_the_script_has_no_wrapper_at_hand_it_is_the_own_one(asked):
    assert "net.module.in_features" in migrated(HEAD + OWN + SOMETIMES + asked + "f(n)\n").text


@pytest.mark.parametrize(
    "asked",
    [
        "n = net.module.in_features if isinstance(net, nn.DataParallel) else 0\n",
        "if not isinstance(net, nn.DataParallel):\n    n = 0\nelse:\n    n = net.module.in_features\n",
    ],
)
def test_where_it_has_one_it_is_the_wrappers(asked):
    assert "net.module.in_features" not in migrated(HEAD + OWN + SOMETIMES + asked + "f(n)\n").text
