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


STAYS = {
    "args = parser.parse_args()\nprint(args.gpu)\n": "line 7 reads it",
    "args = parser.parse_args()\nprint(args)\n": "all options are looked at in line 7",
    "args = parser.parse_args()\nprint(vars(args))\n": "all options are looked at in line 7",
    "args = parser.parse_args()\nkept = [args, 1]\n": "all options are looked at in line 7",
    "args = parser.parse_args()\nimport mine\nmine.run(args)\n": "all options are looked at in line 8",
    "args = parser.parse_args()\nprint(getattr(args, 'gpu'))\n": "line 7 names it in a text",
    "args = parser.parse_args()\nargs.gpu = args.gpu or 0\n": "line 7 reads it",
}


@pytest.mark.parametrize("source, why", STAYS.items())
def test_an_option_that_is_read_or_seen_stays_and_the_report_says_why(source, why):
    source = HEAD + "parser.add_argument('--gpu', default=0)\n" + source
    result = migrated(source + LOOP.replace("(x)", "(x.cuda(args.gpu))"))
    assert result.text == source + LOOP
    assert f"`args.gpu` stays: {why}" in [n.message for n in result.attention]


def test_of_an_option_that_says_nothing_of_devices_nothing_is_told():
    source = HEAD + "parser.add_argument('--lr')\nargs = parser.parse_args()\nprint(args, args.lr)\n"
    text = source + LOOP.replace("(x)", "(x.cuda(int(args.lr)))")
    assert "--lr" in migrated(text).text and not any("stays" in n.message for n in migrated(text).attention)


SPAWNED = """\
def main(gpu, args):
    torch.cuda.set_device(gpu)
    torch.distributed.init_process_group('nccl', init_method=args.dist_url)
parser.add_argument('--dist-url')
args = parser.parse_args()
torch.multiprocessing.spawn(main, nprocs=2, args=(args,))
"""


def test_options_handed_to_processes_are_looked_into_there():
    assert "--dist-url" not in migrated(HEAD + SPAWNED).text
    assert "--dist-url" not in migrated(HEAD + SPAWNED.replace("spawn(main", "spawn(fn=main")).text
    assert "--dist-url" in migrated(HEAD + SPAWNED + "print((args, 1))\n").text
    elsewhere = "from mine import main as run\n" + SPAWNED.replace("spawn(main", "spawn(run")
    assert "--dist-url" in migrated(HEAD + elsewhere).text


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


GIVEN = {
    "print(args.device)\n": "line 7 reads it",
    "def noise(n):\n    return helpers.noise(n, args.device)\n": "line 8 reads it",
}


@pytest.mark.parametrize("reads, why", GIVEN.items())
def test_an_option_that_no_parser_has_is_told_where_it_is_given(reads, why):
    source = HEAD + "args = parser.parse_args()\nargs.device = torch.device('cuda')\n" + reads
    result = migrated(source + LOOP.replace("(x)", "(x.to(args.device))"))
    assert result.text == source + LOOP
    assert [n.message for n in result.attention if n.code == "PTM102"] == [f"`args.device` stays: {why}"]


def test_of_an_assignment_that_the_trainer_or_nothing_reads_nothing_is_told():
    source = HEAD + "args = parser.parse_args()\nargs.device = torch.device('cuda')\nargs.seed = 1\nprint(args.seed)\n"
    result = migrated(source + LOOP.replace("(x)", "(x.to(args.device))"))
    assert "args.device" not in result.text and not result.attention
