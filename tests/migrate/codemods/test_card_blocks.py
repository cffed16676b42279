"""`with torch.cuda.device(...)` of a script: the runtime chooses the device, and without CUDA it raises."""

import pytest
from helpers import check, check_unchanged, dedent

SCRIPT = """
import torch
from torch import cuda as card

def main(args):
    model = torch.nn.Linear(2, 2)
{}


if __name__ == "__main__":
    main(options())
"""
TRAINS = """
    {}
        loss = model(torch.ones(1, 2)).sum()  # its loss
        loss = loss * 2
    print(loss)"""
PLAIN = """
    {}loss = model(torch.ones(1, 2)).sum()  # its loss
    loss = loss * 2
    print(loss)"""


@pytest.mark.parametrize(
    "opened",
    [
        "with torch.cuda.device(args.gpu_index):",
        "with torch.cuda.device(0):",
        "with card.device(args.device):",
        "# a no-op for a negative number\n    with torch.cuda.device(args.gpu):",
    ],
)
def test_the_block_goes_and_its_body_stays(opened):
    above = opened.rpartition("with ")[0]
    check(SCRIPT.format(TRAINS.format(opened)), SCRIPT.format(PLAIN.format(above)), select="PTM420")


@pytest.mark.parametrize(
    "opened",
    [
        "with torch.cuda.device(model.weight.device):",
        "with torch.cuda.device(model.weight.get_device()):",
        "where = model.weight.device\n    with torch.cuda.device(where):",
        "with torch.cuda.device_of(model.weight):",
        "with torch.cuda.device(0), torch.no_grad():",
        "with torch.cuda.device(0) as chosen:",
        "with args.cuda.device(0):",
        "with torch.cuda.stream(args.stream):",
    ],
)
def test_what_chooses_no_card_or_more_stays(opened):
    check_unchanged(SCRIPT.format(TRAINS.format(opened)), select="PTM420")


def test_a_library_is_left_its_own():
    library = """
        import torch

        def run(net, x, device):
            with torch.cuda.device(device):
                return net(x)
        """
    check_unchanged(dedent(library), select="PTM420")


LIBRARY = "import torch\nfrom torch import cuda\n\n\ndef run(net, x, i):\n    with {}:\n        return net(x)\n"


@pytest.mark.parametrize("opened", ["torch.cuda.device(i)", "cuda.device(x.device)", "torch.no_grad(), cuda.device(i)"])
def test_one_that_stays_is_told(opened):
    check_unchanged(LIBRARY.format(opened), ["PTM112 line 6: "], select="PTM112")


@pytest.mark.parametrize(
    "opened", ["torch.cuda.device(x.get_device())", "torch.cuda.device_of(x)", "torch.cuda.stream(i)", "x.device(i)"]
)
def test_what_does_nothing_without_cuda(opened):
    check_unchanged(LIBRARY.format(opened), [], select="PTM112")


def test_one_that_is_asked_for():
    blocks = "    if x.is_cuda:\n        with torch.cuda.device(i):\n            return x\n"
    check_unchanged("import torch\ndef run(x, i):\n" + blocks, [], select="PTM112")


def test_a_block_of_moves_alone_goes_with_them():
    moves = "    with torch.cuda.device(args.gpu):\n        model.cuda()\n    print(model)"
    check(SCRIPT.format(moves), SCRIPT.format("    print(model)"), select="PTM420,PTM101,PTM102")


def test_the_choice_of_a_card_goes_with_its_last_block():
    chosen = 'import torch\ndevice = torch.device("cuda" if torch.cuda.is_available() else "cpu")\n'
    block = "with torch.cuda.device(device):\n    run()\n"
    check(chosen + block, "import torch\nrun()\n", select="PTM420,PTM101,PTM102")
