"""`to()` and `cuda()` of a script's own classes, which are about other things than devices, stay as they are."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

ROBOT = """\
import torch


class Robot:
    def __init__(self):
        self.place = 0

    def to(self, place):
        self.place = place
        return self

    def cuda(self, n=1):
        return self.place * n

    def copy(self):
        return Robot()

    def arm(self):
        return torch.ones(2)


class Box:
    def __init__(self):
        self.held = torch.ones(2)

    def half(self):
        return torch.ones(2)


def build():
    return Robot()


def named(name):
    if name:
        return Robot()
    return Robot().to(2)


"""
ROBOTS = [
    "r = Robot()\nr.to(3)\nprint(r.cuda())",
    "r = Robot().to(3)\nr.to(4)\nprint(r.cuda(2))",
    "print(Robot().to(3).to(4).cuda())",
    "r = build()\nr.to(3)\nprint(r.cuda())",
    "print(build().to(3).cuda())",
    "print(named('a').to(3).cuda())",
    "robots = [Robot() for _ in range(2)]\nfor r in robots:\n    r.to(3)\nprint(sum(r.cuda() for r in robots))",
    "robots = (Robot(), build())\nrobots[0].to(3)\nprint(robots[0].cuda())",
    "by = {'a': Robot()}\nby['a'].to(5)\nprint(by['a'].cuda())",
    "def go(r):\n    return r.to('cuda')\n\n\nprint(go(Robot()))",
    "def go(r=Robot()):\n    return r.cuda()\n\n\nprint(go())",
    "def go(r: Robot):\n    return r.cuda()\n\n\nprint(go(build()))",
    "def go(n, *, r):\n    at = r\n    return at.cuda(n)\n\n\nr = build()\nprint(go(1, r=r))",
    "def go(r):\n    return r.cuda()\n\n\ndef both(r):\n    return go(r)\n\n\nprint([both(r) for r in [Robot()]])",
    "def go(r):\n    return r.cuda()\n\n\nprint(go(Robot()), list(map(go, robots)))",
    "def go(torch):\n    return torch.cuda()\n\n\nprint(go(Robot), Robot.cuda())",
    "class Crew:\n    def send(self, r):\n        return r.to('cuda')\n\n\nprint(Crew().send(Robot()))",
    "class Crew:\n    def __init__(self, r):\n        self.r = r\n\n"
    + "    def go(self):\n        return self.r.cuda()\n\n\nprint(Crew(Robot()).go())",
    "def go(r):\n    return r.cuda()\n\n\nprint(go(Robot().copy()))",
    "r = Robot() if torch.rand(1) > 2 else build()\nprint(r.cuda())",
    "by = {n: Robot() for n in 'ab'}\nby['a'].to(5)\nprint(by['a'].cuda())",
    "class Loader(Robot):\n    pass\n\n\nprint(Loader().to(3).cuda())",
    "class Loader(Robot):\n    def load(self):\n        return self.cuda()\n\n\nprint(Loader().load())",
]
TOLD = [
    "r, n = Robot(), 3\nr.cuda()",
    "r, *rest = [Robot(), 1]\nr.cuda()",
    "print(r := Robot())\nr.cuda()",
    "import copy\nr = copy.deepcopy(Robot())\nr.cuda()",
    "for i, r in enumerate([Robot()]):\n    r.cuda()",
    "class Crew:\n    r = Robot()\n\n\nCrew().r.cuda()",
    "from contextlib import contextmanager\n\n\n@contextmanager\ndef held():\n    yield Robot()\n\n\n"
    + "with held() as r:\n    r.cuda()",
]
MODULES = [
    "net = torch.nn.Linear(2, 2)\nnet.cuda()",
    "class Crew:\n    def __init__(self):\n        self.n = torch.nn.Linear(2, 2)\n        self.n.cuda()",
    "def go(model):\n    model.cuda()\n\n\ngo(load())",
    "x = {'a': torch.nn.Identity}['a']()\nprint(x(torch.ones(2)))\nx.cuda()",
    "x = {'a': torch.nn.Identity}['a']()\nprint(list(x.parameters()))\nx.cuda()",
    "class Near(torch.nn.Linear):\n    def cuda(self, n=0):\n        return super().cuda()\n\n\n"
    + "class Loader(Near):\n    pass\n\n\nn = Loader(2, 2)\nn.cuda()",
]
TENSORS = [
    ("x = CALL\nprint(x)", "Robot().arm().to('cuda')"),
    ("x = CALL\nprint(x)", "Box().half().to('cuda')"),
    ("def go(r):\n    return CALL\n\n\nprint(go(torch.ones(2)), Robot())", "r.to('cuda')"),
    ("def go(r, x):\n    return r, CALL\n\n\nprint(go(Robot(), torch.ones(2)))", "x.cuda()"),
    (
        "class Crew:\n    def send(self, x, r):\n        return CALL\n\n\nprint(Crew().send(torch.ones(2), Robot()))",
        "x.cuda()",
    ),
    ("boxes = [Robot(), torch.nn.Linear(2, 2)]\nnet = CALL\nprint(net)", "boxes[1].cuda()"),
]


@pytest.mark.parametrize("used", ROBOTS)
def test_those_of_ones_own_class_stay(used):
    result = migrate_text(ROBOT + used + "\n")
    assert result.text == ROBOT + used + "\n"
    assert not result.attention


@pytest.mark.parametrize("used", TOLD)
def test_where_the_class_does_not_show_they_stay_and_are_told(used):
    result = migrate_text(ROBOT + used + "\n")
    assert result.text == ROBOT + used + "\n"
    assert [n.code for n in result.attention] == ["PTM101"]


@pytest.mark.parametrize("used", MODULES)
def test_modules_beside_ones_own_class_go(used):
    call = "model.cuda()" if "model" in used else "self.n.cuda()" if "self.n" in used else used.split("\n")[-1]
    result = migrate_text(ROBOT + used + "\n")
    assert call not in result.text


def test_one_that_gets_both_stays():
    used = "def go(r):\n    return r.to('cuda')\n\n\nprint(go(Robot()), go(torch.nn.Linear(2, 2)))\n"
    assert migrate_text(ROBOT + used).text == ROBOT + used


@pytest.mark.parametrize(("used", "call"), TENSORS)
def test_others_go_or_are_told_of(used, call):
    result = migrate_text(ROBOT + used.replace("CALL", call) + "\n")
    assert call not in result.text or [n for n in result.attention if call in n.message]


STEP = """
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = torch.nn.Linear(2, 2).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
robot = Robot()
for x in torch.utils.data.DataLoader(torch.ones(4, 2), batch_size=2):
    loss = (net(x.to(device)) * GIVEN).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("given", "after"),
    [
        ("robot.arm().to(device)", "robot.arm().to(x.device)"),
        ("robot.to(3).cuda()", "robot.to(3).cuda()"),
    ],
)
def test_what_a_method_gives_is_of_the_class_where_it_gives_itself(given, after):
    assert f"self.{after})" in migrate_text(ROBOT + STEP.replace("GIVEN", given)).text


MOVED_BY = """\
import torch


def move(x, device):
    if isinstance(x, dict):
        return {k: move(v, device) for k, v in x.items()}
    return x.to(device)


class Batch:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def each(self, f):
        self.y = f(self.y)

    def brought(self, x, device):
        return x.to(device)

    def to(self, device):
        def _to(y):
            return y.to(device) if hasattr(y, "to") else y

        self.x = move(self.brought(self.x, device), device)
        self.each(_to)
        return self
"""


def test_what_moves_for_a_class_that_is_moved_stays():
    """The runtime calls `to()` of a batch, which moved nothing any more."""
    result = migrate_text(MOVED_BY)
    assert result.text == MOVED_BY and not result.attention


def test_a_function_of_that_name_in_another_class_goes():
    other = "\n\nclass Net(torch.nn.Module):\n    def brought(self, x, device):\n        return x.to(device)\n"
    assert migrate_text(MOVED_BY + other).text == MOVED_BY + other.replace("x.to(device)", "x")
