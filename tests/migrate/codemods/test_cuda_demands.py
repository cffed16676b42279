"""A script that ends where there is no CUDA demands it no more; what else it asks, and of whom, stays."""

import pytest
from helpers import check, check_unchanged

HEAD = "import sys\nimport torch\n"
DEMANDS = {
    "assert torch.cuda.is_available()\ngo()": "go()",
    "assert torch.cuda.device_count() > 0, 'no card'\ngo()": "go()",
    "if not torch.cuda.is_available():\n    raise RuntimeError('no card')\ngo()": "go()",
    "# cards\nif not torch.cuda.is_available():\n    print('no card')\n    sys.exit(1)\ngo()": "# cards\ngo()",
    "if torch.cuda.device_count() == 0: exit('no card')\ngo()": "go()",
    "if torch.cuda.is_available():\n    go()\nelse:\n    sys.exit('no card')": "go()",
    "if not torch.cuda.is_available():\n    sys.exit()\nelse:\n    go()": "go()",
    "if not torch.cuda.is_available():\n    sys.exit()\nelif a:\n    go()\nstay()": "if a:\n    go()\nstay()",
    "if torch.cuda.is_available() is False:\n    raise OSError('no card')\ngo()": "go()",
    "assert torch.cuda.is_available() != False\ngo()": "go()",
    "if torch.cuda.is_available() == True:\n    go()\nelse:\n    sys.exit('no card')": "go()",
    "if a:\n    f()\nelif torch.cuda.is_available():\n    go()\nelse:\n    log.error('no card')\n    sys.exit(1)":
        "if a:\n    f()\nelse:\n    go()",
    "if a:\n    f()\nelif not torch.cuda.is_available():\n    raise SystemExit\ngo()": "if a:\n    f()\ngo()",
    "def main():\n    if not torch.cuda.is_available():\n        raise SystemExit\n    go()": "def main():\n    go()",
    "there = torch.cuda.is_available()\nif not there:\n    sys.exit()\ngo(there)":
        "there = torch.cuda.is_available()\ngo(there)",
}  # fmt: skip


@pytest.mark.parametrize("before, after", DEMANDS.items())
def test_a_demand_goes(before, after):
    check(f"{HEAD}{before}\n", f"{HEAD}{after}\n", select="PTM113")


STAYS = [
    "if args.cuda and not torch.cuda.is_available():\n    raise SystemExit('no card')\n",
    "if not torch.cuda.is_available():\n    print('slow')\n",
    "if not torch.cuda.is_available():\n    args.epochs = 1\n    sys.exit()\n",
    "def f():\n    if not torch.cuda.is_available():\n        return\n    go()\n",
    "def test_cards():\n    assert torch.cuda.is_available()\n",
    "assert not torch.cuda.is_available()\n".replace("not ", "args.cpu or "),
    "assert torch.cuda.is_bf16_supported()\n",
    "if torch.cuda.is_available():\n    raise SystemExit('not here')\n",
    "if torch.cuda.is_available() is True:\n    raise SystemExit('not here')\n",
    "if torch.cuda.is_available() is None:\n    raise SystemExit('not here')\n",
    "if True is torch.cuda.is_available() is False:\n    raise SystemExit('not here')\n",
    "there = True\nif many: there = torch.cuda.is_available()\nif not there: sys.exit()\n",
    "def f(there):\n    if not there: sys.exit()\n",
    "if not mine.cuda.is_available(): sys.exit()\n",
    "while not torch.cuda.is_available(): wait()\n",
]


@pytest.mark.parametrize("text", STAYS)
def test_what_else_is_asked_stays(text):
    check_unchanged(HEAD + text, select="PTM113")


def test_a_demand_for_so_many_cards_is_told_of():
    text = f"{HEAD}if torch.cuda.device_count() < 2:\n    raise RuntimeError('two cards')\ngo()\n"
    check_unchanged(text, ["PTM113 line 3: `if torch.cuda.device_count() < 2:` ends the script"], select="PTM113")
