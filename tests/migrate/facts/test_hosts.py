"""Places that are the CPU: what is brought there stays there."""

import pytest
from ptmigrate.migrate.facts.hosts import names_no_device
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.migrate import migrate_text

HEAD = """\
import torch
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
flag = torch.cuda.is_available()
class Run:
    def __init__(self, args):
        self.cpu = torch.device("cpu")
        self.device = torch.device(args.device)
        self.store = "cpu" if args.offload else self.device
def f(self, net, x, args, pin, gpu, local_rank):
    x = x.to(device)
"""
STAYS = {
    "inline": 'return x.to("cpu" if pin else device)',
    "a device made of it": 'y = {}\n    y[0] = x.to(torch.device("cpu" if pin else device))\n    return y',
    "an option": 'return x.to(args.device if not args.offload else "cpu")',
    "a literal, inline": 'return x.to("cpu" if args.offload else "cuda")',
    "a name for it": 'store = torch.device("cpu") if args.keep_on_cpu else device\n    return x.to(store)',
    "a statement": 'if pin:\n        where = "cpu"\n    else:\n        where = device\n    return x.to(where)',
    "an attribute": "return x.to(self.store)",
    "an attribute that is the CPU": "return x.to(self.cpu)",
}
GOES = {
    "asks for a card": 'return x.to("cpu" if args.no_cuda else device)',
    "asks by another name": 'return x.to(device if flag else "cpu")',
    "a flag for the CPU": 'return x.to("cpu" if args.cpu else "cuda")',
    "a rank": 'return x.to("cpu" if local_rank < 0 else device)',
    "the one device of a script": 'where = "cpu" if args.debug else args.device\n    return x.to(where)',
    "one with literals": 'where = "cpu" if args.debug else "cuda"\n    return x.to(where)',
    "the device by its name": 'dev = "cpu" if args.debug else device\n    return x.to(dev)',
    "a card by its number": 'where = torch.device("cpu" if args.slow else f"cuda:{args.n}")\n    return x.to(where)',
}


def migrated(body):
    result = migrate_text(f"{HEAD}    {body}\n")
    assert migrate_text(result.text).text == result.text
    return result.text


@pytest.mark.parametrize("body", STAYS.values(), ids=STAYS)
def test_what_the_script_wants_on_the_cpu(body):
    text = migrated(body)
    assert body in text and "    x = x.to(device)\n" not in text


@pytest.mark.parametrize("body", GOES.values(), ids=GOES)
def test_a_choice_of_the_device_goes(body):
    assert "    return x\n" in migrated(body)


@pytest.mark.parametrize("says", ["x = x.to(torch.float64)", "x = x.to(dtype=torch.long)", "y = x + 1\nx = y.to(x)"])
def test_a_type_or_another_tensor_is_no_device(says):
    assert names_no_device(Facts(f"import torch\nx = torch.ones(3)\n{says}\n"))


@pytest.mark.parametrize("says", ["# no cuda here", '"""Without a GPU."""', "pass  # .to(device)"])
def test_comments_and_docstrings_name_none(says):
    assert names_no_device(Facts(f"import torch\n{says}\nx = torch.ones(3)\n"))


@pytest.mark.parametrize(
    "says",
    [
        "x = x.to(y)",
        "x = x.to(torch.device(y))",
        "x = x.to(y, torch.float64)",
        "x = x.cuda()",
        "use_gpu = True\nopen(use_gpu)",
        "where = 'cuda:0'\nopen(where)",
        "from gpus import first",
        "run(device=0)",
        "def on_device(f):\n    pass",
        "class Device:\n    pass",
        "def f(gpu):\n    pass",
    ],
)
def test_code_names_one(says):
    assert not names_no_device(Facts(f"import torch\nx = torch.ones(3)\n{says}\n"))
