"""What the lift or the plain script was the last to read goes; a block keeps a statement."""

import pytest
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.unread_devices import without_unread_devices

BEFORE = """
import torch
import torch.distributed as dist

def main(args):
    if args.many:
        rank, size = connect(args)
        device = rank
    else:
        device = 'cpu'
        rank = 0
        size = 1
    net = torch.nn.Linear(1, 1).to(device)
    return net, rank, size
"""
AFTER = BEFORE.replace(".to(device)", "").replace("net, rank, size", "net")


def left(after, before=BEFORE):
    text = without_unread_devices(Facts(before), Facts(after))[0].text.text
    compile(text, "left", "exec")
    assert without_unread_devices(Facts(before), Facts(text))[0].text.text == text
    return text


def test_the_last_statement_of_a_block_stays_where_all_of_them_could_go():
    text = left(AFTER)
    assert "device" not in text
    assert "    else:\n        size = 1\n" in text and "rank = 0" not in text


@pytest.mark.parametrize("block", ["if args.many:", "while args.many:", "with args.many:", "for x in args.many:"])
def test_in_any_block(block):
    before = f"import torch\ndef f(args):\n    {block}\n        device = 'cpu'\n        rank = 0\n    g(device, rank)\n"
    after = before.replace("g(device, rank)", "g()")
    assert f"    {block}\n        rank = 0\n    g()\n" in left(after, before)


def test_all_of_them_go_beside_a_statement_that_stays():
    assert "    else:\n        args.show()\n" in left(AFTER.replace("        size = 1\n", "        args.show()\n"))


@pytest.mark.parametrize("read", ["return net, rank", "return net, size", "return net, rank, size"])
def test_what_is_read_stays(read):
    text = left(AFTER.replace("return net", read))
    assert all(f"        {name} = " in text for name in ("rank", "size") if name in read)
