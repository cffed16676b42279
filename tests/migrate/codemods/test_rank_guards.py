"""T9: an evaluation of rank 0 alone draws what the others do not, the seed of a loader at least: all make it."""

import pytest
from helpers import check, migrated

HEAD = """\
import torch
import torch.distributed as dist

dist.init_process_group('gloo')
rank = dist.get_rank()


def batches(n):
    return [torch.randn(2, 3) for _ in range(n)]


def evaluate(model, loader):
    model.eval()
    total, seen = 0.0, []
    with torch.no_grad():
        for x in loader:
            total += model(x).pow(2).sum().item()
            seen.append(len(x))
        for x in batches(2):
            total += torch.log(1 + criterion(model(x)).abs()).item()
    model.train()
    print(total)
    return total / sum(seen)


criterion = torch.nn.Softplus()
"""
PLAIN = HEAD.replace("\ndist.init_process_group('gloo')\nrank = dist.get_rank()\n", "")
ASKING = PLAIN.replace("as dist\n", "as dist\nfrom ptmigrate.runtime import is_global_zero\n")


@pytest.mark.parametrize(
    ("guarded", "opened"),
    [
        ("if rank == 0:\n    evaluate(net, loader)\n", "evaluate(net, loader)\n"),
        (
            "if rank == 0:\n    loss = evaluate(net, loader)\n    print(loss)\n",
            "loss = evaluate(net, loader)\nprint(loss)\n",
        ),
        (
            "import wandb\nif rank == 0:\n    x = evaluate(net, loader)\n    wandb.log({'x': x})\n",
            "import wandb\nx = evaluate(net, loader)\nwandb.log({'x': x})\n",
        ),
        (
            "if step % 9 == 0 and rank == 0:\n    best = min(best, evaluate(net, loader))\n",
            "if step % 9 == 0:\n    best = min(best, evaluate(net, loader))\n",
        ),
        (
            "if rank == 0:\n    if evaluate(net, loader) < best:\n        torch.save(net.state_dict(), 'best')\n",
            "if evaluate(net, loader) < best:\n    torch.save(net.state_dict(), 'best')\n",
        ),
    ],
)
def test_an_evaluation_is_every_rank_s(guarded, opened):
    check(HEAD + guarded, PLAIN + opened, select="PTM420")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    print(total)\n", "    writer.add_scalar('total', total)\n"),
        ("    print(total)\n", "    with open('log', 'a') as f:\n        f.write(str(total))\n"),
        ("    print(total)\n", "    torch.save(total, 'total')\n"),
        ("    print(total)\n", "    global best\n    best = total\n"),
        ("    print(total)\n", "    notify(total)\n"),
        ("    with torch.no_grad():\n", "    if True:\n"),  # it may train
        ("    return [", "    os.mkdir('drawn')\n    return ["),  # what it calls does more than compute
    ],
)
def test_what_does_more_stays_rank_0_s(old, new):
    assert old in HEAD
    guarded = "if {}:\n    loss = evaluate(net, loader)\n    print(loss)\n"
    before, after = HEAD + guarded.format("rank == 0"), ASKING + guarded.format("is_global_zero()")
    check(before.replace(old, new), after.replace(old, new), select="PTM420")


def test_an_evaluation_that_rank_0_goes_on_making_alone_is_told():
    result = migrated(HEAD + "if rank == 0:\n    notify(evaluate(net, loader))\n", select="PTM420")
    assert "if is_global_zero():\n    notify(" in result.text
    assert [n.message for n in result.attention if "rank 0 alone makes this evaluation" in n.message]
    quiet = migrated(HEAD + "if rank == 0:\n    notify(net)\n", select="PTM420")
    assert not any("this evaluation" in n.message for n in quiet.attention)


@pytest.mark.parametrize(
    "body", ["    for p in net: p.grad = None\n", "    with torch.no_grad():\n        net.weight.fill_(0)\n"]
)
def test_what_trains_or_goes_over_nothing_is_none(body):
    result = migrated(f"{HEAD}def other(net):\n{body}\nif rank == 0:\n    x = notify(other(net))\n", select="PTM420")
    assert "is_global_zero()" in result.text and not any("this evaluation" in n.message for n in result.attention)


@pytest.mark.parametrize("line", ["writer.add_scalar('total', total)", "torch.save(total, 'total')", "notify(total)"])
def test_so_is_one_that_writes_what_it_finds(line):
    head = HEAD.replace("    print(total)\n", f"    {line}\n    print(total)\n")
    result = migrated(head + "if rank == 0:\n    loss = evaluate(net, loader)\n", select="PTM420")
    assert [n.message for n in result.attention if "rank 0 alone makes this evaluation" in n.message]


LOADER = "torch.utils.data.DataLoader([1.0, 2.0])"


@pytest.mark.parametrize(
    ("made", "kept"),
    [
        (LOADER, False),  # its guard goes, too
        ("load(" + LOADER + ")", True),  # who knows what that does
        ("None\nloader = " + LOADER, False),
    ],
)
def test_an_evaluation_of_what_rank_0_alone_has_stays_its_own(made, kept):
    """The others ended there: they had no loader."""
    given = f"if rank == 0:\n    loader = {made}\n".replace("\nloader", "\n    loader")
    text = migrated(HEAD + given + "if rank == 0:\n    evaluate(net, loader)\n", select="PTM420").text
    assert ("    evaluate(net, loader)\n" in text) is kept


def test_what_is_made_of_what_rank_0_alone_has_is_its_own_too():
    text = HEAD + "if rank == 0:\n    x = load()\nif rank == 0:\n    y = x.mean()\nif rank == 0:\n    print(y)\n"
    assert migrated(text, select="PTM420").text.count("if is_global_zero():") == 3


@pytest.mark.parametrize(
    ("body", "others", "kept"),
    [
        ("evaluate(net, given)", "[loader, None]", True),
        ("evaluate(net, given)", "[loader, loader]", False),
        ("print(loaders)", "None", True),
        ("print(loaders)", "loader", False),
    ],
)
def test_what_rank_0_alone_is_given(body, others, kept):
    f = f"def work(loaders):\n    first, given = loaders\n    if rank == 0:\n        {body}\n\n\n"
    calls = f"if rank == 0:\n    work([loader, loader])\nelse:\n    work({others})\n"
    text = migrated(HEAD + f + calls, select="PTM420").text
    assert (f"    if is_global_zero():\n        {body}\n" in text) is kept


ALONE = """\
seen, last, best, log = [], {}, None, open('log', 'w')


def kept(x):
    seen.append(x)


"""
LEFT = "def left(x):\n    if rank != 0:\n        return\n    seen.append(x)\n\n\nleft(1)\n"


@pytest.mark.parametrize(
    ("fills", "reads"),
    [
        ("if rank == 0:\n    seen.append(1)\n", "print(seen[-1])"),
        ("if rank == 0:\n    last['x'] = 1\n    log.write('1')\n", "print(last['x'])"),
        ("if rank == 0:\n    best = 1\n    log.write('1')\n", "print('{:.2f}'.format(best))"),
        ("if rank == 0:\n    kept(1)\n", "print(seen[-1])"),
        (LEFT, "print(seen[-1])"),
        ("if rank == 0:\n    args.seen.append(1)\n", "print(args.seen[-1])"),
        ("if rank == 0:\n    seen.append(1)\nif rank == 0:\n    best = seen[-1]\n", "print(f'{best:.2f}')"),
    ],
)
def test_what_rank_0_alone_changes_is_read_by_rank_0_alone(fills, reads):
    """The others ended there: their list was empty, and None has no format."""
    text = migrated(HEAD + ALONE + fills + f"if rank == 0:\n    {reads}\n", select="PTM420").text
    assert text.endswith(f"if is_global_zero():\n    {reads}\n")


@pytest.mark.parametrize(
    ("fills", "reads"),
    [
        ("seen.append(1)\nif rank == 0:\n    log.write('1')\n", "print(seen[-1])"),  # every rank does
        ("kept(1)\nif rank == 0:\n    kept(2)\n    log.write('1')\nseen = [3]\n", "print(best)"),
        ("if rank == 0:\n    best = 1\n", "print(best)"),  # its guard goes, too
        ("if rank == 0:\n    best = 1\n    log.write('1')\nbest = 2\n", "print(best)"),
        ("def f():\n    if rank == 0:\n        best = 1\n        log.write('1')\n\n\n", "print(best)"),  # another one
        ("if rank == 0:\n    seen.append(1)\n", "best = 3\n    print(best)"),
    ],
)
def test_what_every_rank_has_is_read_by_all(fills, reads):
    text = migrated(HEAD + ALONE + fills + f"if rank == 0:\n    {reads}\n", select="PTM420").text
    assert not text.endswith(f"if is_global_zero():\n    {reads}\n")


SENT = """\
def decided(loader):
    return len(loader) > 2


stop = torch.zeros(1)
val, seen = None, []
{given}
if rank == 0:
    {decides}
    log.write('1')
dist.broadcast(stop, 0)
"""


@pytest.mark.parametrize(
    ("given", "decides", "left"),
    [
        ("val = load() if rank == 0 else None", "stop += decided(val)", "\nval = load()\n"),
        ("val = None if rank != 0 else load()", "stop += decided(val)", "\nval = load()\n"),
        ("if rank == 0:\n    val = load()", "stop += decided(val)", "\nval = load()\n"),
        ("if rank == 0:\n    seen.append(load())", "stop += len(seen)", "\nseen.append(load())\n"),
        (
            "if rank == 0:\n    args.val = load()\n    print(1)",
            "stop += decided(args.val)",
            "\nargs.val = load()\nprint(",
        ),
    ],
)
def test_what_rank_0_sent_is_computed_from_what_all_have(given, decides, left):
    """The others ended there: `val` was None."""
    result = migrated(HEAD + ALONE + SENT.format(given=given, decides=decides), select="PTM420")
    assert left in result.text and f"\n{decides}\nlog.write('1')\n" in result.text
    told = [n.message for n in result.attention if "which rank 0 sent the others" in n.message]
    assert len(told) == 2 and not any("another value" in says for says in told)


@pytest.mark.parametrize(
    ("given", "decides"),
    [
        ("val = load() if rank == 0 else None", "stop += 1"),  # nothing that is sent needs it
        ("val = load() if rank == 0 else 3", "stop += decided(val)"),  # the others have one of their own
        ("if rank == 0:\n    val = load()\n    send(val)", "stop += 1"),
    ],
)
def test_what_nothing_that_is_sent_needs_stays_rank_0_s(given, decides):
    text = migrated(HEAD + ALONE + SENT.format(given=given, decides=decides), select="PTM420").text
    assert given.replace("rank == 0", "is_global_zero()") in text


def test_what_is_sent_and_made_of_what_rank_0_alone_has_is_told():
    given = "if rank == 0:\n    val = load()\n    send(val)"
    result = migrated(HEAD + ALONE + SENT.format(given=given, decides="stop += decided(val)"), select="PTM420")
    assert any("it reads what rank 0 alone fills" in n.message for n in result.attention)


NETWORKS = """\
class Net(torch.nn.Linear):
    pass


class Plain:
    def __init__(self, n):
        self.n = n


"""


@pytest.mark.parametrize(
    "made",
    [
        "Net(2, 1)",
        "torch.nn.Linear(2, 1)",
        "torch.nn.Linear(2, 1).eval()",
        "copy.deepcopy(model)",
        "torch.optim.swa_utils.AveragedModel(model)",
    ],
)
@pytest.mark.parametrize(
    "guarded", ["ema = {} if rank == 0 else None", "ema = None if rank != 0 else {}", "if rank == 0:\n    ema = {}"]
)
def test_a_network_is_made_on_every_rank(guarded, made):
    """A Module that has it on rank 0 alone has other parameters there, and DistributedDataParallel refuses it."""
    update = "\nif rank == 0:\n    send(ema, model)\n"
    text = migrated("import copy\n" + HEAD + NETWORKS + guarded.format(made) + update, select="PTM420").text
    assert f"\nema = {made}\n" in text
    assert text.endswith("if is_global_zero():\n    send(ema, model)\n")


@pytest.mark.parametrize("made", ["Plain(3)", "SummaryWriter('runs')", "Net(send(2), 1)", "torch.nn.init.zeros_(w)"])
def test_what_is_no_network_stays_rank_0_s(made):
    text = migrated(HEAD + NETWORKS + f"ema = {made} if rank == 0 else None\n", select="PTM420").text
    assert text.endswith(f"ema = {made} if is_global_zero() else None\n")


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ("stop = [late() and rank == 0]", "stop = [late()]"),
        ("stop = [rank == 0 and late() and 3 > n]", "stop = [late() and 3 > n]"),
    ],
)
def test_a_condition_that_rank_0_sent_is_every_rank_s(given, left):
    """On the others it would be False, and they would go on."""
    result = migrated(HEAD + f"{given}\ndist.broadcast_object_list(stop, 0)\nprint(stop)\n", select="PTM420")
    assert f"\n{left}\n" in result.text
    assert len([n for n in result.attention if "`stop`, which rank 0 sent the others" in n.message]) == 1
    alone = migrated(HEAD + f"{given}\nprint(stop)\n", select="PTM420").text
    assert f"\n{given.replace('rank == 0', 'is_global_zero()')}\n" in alone
