"""In a kept loop a device that is written down becomes this rank's own, whatever it is written as."""

import pytest
from helpers import migrated


@pytest.mark.parametrize("device", ["0", '"cuda:1"', "'cuda'", 'f"cuda:{n}"', "gpu_id", "self.rank"])
def test_a_literal_is_found(device):
    source = f"import torch\nfor x in xs:\n    loss = model(x.to({device}))\n    loss.backward()\n"
    result = migrated(source)
    assert result.plan == "loop" and f"x.to(runtime.own_device({device}))" in result.text


@pytest.mark.parametrize("device", ["rank", "args.gpu", "1", 'f"cuda:{n}"'])
@pytest.mark.parametrize(
    "made", ["torch.zeros(2, device={})", "torch.ones_like(x, device={})", "torch.zeros(2).to({})"]
)
def test_what_is_made_on_it_is_found(made, device):
    source = f"import torch\nfor x in xs:\n    loss = model(x, {made.format(device)})\n    loss.backward()\n"
    assert made.format(f"runtime.own_device({device})") in migrated(source).text


@pytest.mark.parametrize("rank", ["torch.half", "torch.ones(1)", "torch.ones(1).long()"])
def test_a_dtype_or_a_tensor_of_such_a_name_stays(rank):
    source = f"import torch\nrank = {rank}\nfor x in xs:\n    loss = model(x.to(rank))\n    loss.backward()\n"
    assert "x.to(rank)" in migrated(source).text


@pytest.mark.parametrize(
    "given",
    [
        "torch.half",
        '"cpu"',
        "other",
        "y.device",
        "True",
        "torch.device('cpu')",
        '"meta"',
        "dtype=torch.half",
        "x.dtype",
        "memory_format=torch.channels_last",
        "*where",
        "**where",
        "device='cpu'",
        "torch.float64, copy=True",
    ],
)
def test_what_is_no_accelerator_stays(given):
    source = f"import torch\nfor x in xs:\n    loss = model(x.to({given}))\n    loss.backward()\n"
    assert f"x.to({given})" in migrated(source).text


@pytest.mark.parametrize(
    "given",
    [
        "torch.zeros(2, device='cpu')",
        "torch.zeros(2, device=x.device)",
        "torch.zeros(rank)",
        "net.rank",
        "record(x, device=0)",
        "np.zeros(0)",
        "torch.zeros(2, device=None)",
        "mail.to('anna')",
        "text.format('cuda')",
        "torch.randint(0, 1, (2,))",
        "len('cuda:0')",
    ],
)
def test_what_is_no_tensor_on_a_device_stays(given):
    source = f"import torch\nfor x in xs:\n    loss = model(x, {given})\n    loss.backward()\n"
    text = migrated(source).text
    assert f"model(x, {given})" in text and "own_device" not in text


LOOP = "import torch\n{}\nfor x in xs:\n    loss = model(x.to({}))\n    loss.backward()\n"
CLASS = (
    "class Model:\n    def __init__(self, device):\n        self.where = device\n"
    "    def __call__(self, x):\n        return net(x.to(self.where))\nmodel = Model({})"
)


@pytest.mark.parametrize(
    ("above", "device"),
    [
        ("config = {'device': 'cuda:0', 'lr': 0.1}", "config['device']"),
        ("config = {'device': 'cuda:0' if torch.cuda.is_available() else 'cpu'}", "config['device']"),
        ("config = vars(parser.parse_args())", "config['device']"),
        ("args = parser.parse_args()", "args.device"),
        ("args = parser.parse_args()\nwhere = args.device", "where"),
    ],
)
def test_a_text_that_an_option_or_a_dictionary_has_is_found(above, device):
    assert f"x.to(runtime.own_device({device}))" in migrated(LOOP.format(above, device)).text


def test_a_text_that_an_object_is_given_is_found():
    text = migrated(LOOP.format("args = parser.parse_args()\n" + CLASS.format("args.device"), "torch.float32")).text
    assert "x.to(runtime.own_device(self.where))" in text


@pytest.mark.parametrize(
    ("above", "device"),
    [
        ("config = {'device': 'cpu', 'lr': 0.1}", "config['device']"),
        ("config = {'device': torch.device('cuda:0')}", "config['device']"),
        ("args.device = torch.device(args.name)", "args.device"),
        ("config = {'dtype': torch.half}", "config['dtype']"),
    ],
)
def test_one_that_is_made_above_is_this_ranks_already(above, device):
    text = migrated(LOOP.format(above, device)).text
    assert f"x.to({device})" in text and ("torch.device(" not in above or "runtime.own_device(torch.device(" in text)


def test_an_object_that_is_given_a_device_has_this_ranks_already():
    text = migrated(LOOP.format(CLASS.format("torch.device('cuda')"), "torch.float32")).text
    assert "x.to(self.where)" in text and "Model(runtime.own_device(torch.device('cuda')))" in text
