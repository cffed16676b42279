"""An option about devices leaves the parser with its last reader, and only then."""

import pytest
from helpers import check, migrated

HEAD = """\
import argparse
import torch
import torch.nn as nn
parser = argparse.ArgumentParser()
"""
LOOP = "model = nn.Linear(2, 2)\nfor x, y in loader:\n    model(x)\n"


@pytest.mark.parametrize(
    "source",
    [
        "parser.add_argument('--gpu', type=int, default=0)\nargs = parser.parse_args()\n"
        "model = nn.Linear(2, 2).cuda(args.gpu)\nfor x, y in loader:\n    x = x.cuda(args.gpu)\n    model(x)\n",
        "parser.add_argument('-g', '--gpu-id', dest='card', default=0)\nargs = parser.parse_args()\n"
        "torch.cuda.set_device(args.card)\nmodel = nn.Linear(2, 2)\n"
        "for x, y in loader:\n    model(x.cuda(args.card))\n",
        "parser.add_argument('--local_rank', default=0)\nargs = parser.parse_args()\n"
        "model = nn.Linear(2, 2).to(args.local_rank)\nfor x, y in loader:\n    model(x)\n",
    ],
)
def test_an_option_goes_with_its_last_reader(source):
    check(HEAD + source, HEAD + "args = parser.parse_args()\n" + LOOP)


def test_the_assignment_between_goes_too():
    check(
        HEAD
        + "args = parser.parse_args()\nargs.device = torch.device('cuda', args.rank)\n"
        + LOOP.replace("(x)", "(x.to(args.device))"),
        HEAD + "args = parser.parse_args()\n" + LOOP,
    )


@pytest.mark.parametrize(
    "source",
    [
        "parser.add_argument('--gpu', default=0)\nargs = parser.parse_args()\nprint(args.gpu)\n",
        "parser.add_argument('--gpu', default=0)\nargs = parser.parse_args()\nprint(args)\n",
        "parser.add_argument('--gpu', default=0)\nargs = parser.parse_args()\nprint(vars(args))\n",
        "from mine import run\nparser.add_argument('--gpu', default=0)\nargs = parser.parse_args()\nrun(args)\n",
        "parser.add_argument('--gpu', default=0)\nargs = parser.parse_args()\nprint(getattr(args, 'gpu'))\n",
        "parser.add_argument('--gpu', default=0)\nargs = parser.parse_args()\nargs.gpu = args.gpu or 0\n",
    ],
)
def test_an_option_that_is_read_or_seen_stays(source):
    text = HEAD + source + LOOP.replace("(x)", "(x.cuda(args.gpu))")
    assert migrated(text).text == HEAD + source + LOOP


def test_an_option_without_readers_of_its_own_is_not_ours():
    """`--seed` was never read: whatever it is for, it has nothing to do with devices."""
    source = HEAD + "parser.add_argument('--seed')\nargs = parser.parse_args()\n"
    assert "--seed" in migrated(source + LOOP.replace("(x)", "(x.cuda())")).text


def test_the_trainer_reads_what_the_user_chose():
    """`--no-cuda` still means the CPU: the Trainer gets it, so that the parser keeps it."""
    source = HEAD + (
        "parser.add_argument('--no-cuda', action='store_true')\nargs = parser.parse_args()\n"
        "args.cuda = not args.no_cuda and torch.cuda.is_available()\n"
    )
    text = migrated(source + LOOP.replace("    model(x)", "    if args.cuda:\n        x = x.cuda()\n    model(x)")).text
    assert "--no-cuda" in text and "x.cuda()" not in text


def test_a_device_that_is_read_elsewhere_stays_and_the_report_says_why():
    source = HEAD + "device = torch.device('cuda')\nmodel = nn.Linear(2, 2).to(device)\nprint(device)\n"
    result = migrated(source)
    assert result.text == source.replace(".to(device)", "")
    assert [n.message for n in result.attention if n.code == "PTM102"] == ["`device` stays: line 7 reads it"]
