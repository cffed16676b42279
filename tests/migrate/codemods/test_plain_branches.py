# ruff: noqa: E501
"""T9: of branches that ask how many processes there are, the one of a plain script."""

import textwrap

import pytest
from helpers import check, check_unchanged, migrated

HEAD = "import os\nimport sys\nimport torch\nimport torch.distributed as dist\nimport torch.multiprocessing as mp\n"
INIT = "dist.init_process_group('nccl')\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if dist.is_initialized():\n    a()\nelse:\n    # alone\n    b()", "# alone\nb()"),
        ("if x:\n    a()\nelif 'RANK' in os.environ:\n    b()\nelse:\n    c()", "if x:\n    a()\nelse:\n    c()"),
        ("if x:\n    a()\nelif 'RANK' not in os.environ:\n    b()\nelse:\n    c()", "if x:\n    a()\nelse:\n    b()"),
        ("if 'RANK' in os.environ:\n    a()\nelif x:\n    b()", "if x:\n    b()"),
        ("many = int(os.environ.get('WORLD_SIZE', 1)) > 1\nif many and x:\n    a()\ngo()", "go()"),
        ("if x and not dist.is_initialized():\n    a()", "if x:\n    a()"),
        ("y = a if dist.is_initialized() else b", "y = b"),
        ("def world():\n    if not dist.is_available():\n        return 1\n    if not dist.is_initialized():\n        return 1\n    return dist.get_world_size()\nif world() > 1:\n    a()\ngo()", "go()"),
        ("def mean(t):\n    n = dist.get_world_size()\n    if n < 2:\n        return t\n    dist.all_gather(ts, t)\n    return sum(ts) / n\nmean(x)", "def mean(t):\n    return t\nmean(x)"),
        ("assert dist.get_world_size() > 1\ngo()", "go()"),
        ("if dist.get_world_size() < 2:\n    raise ValueError('more')\ngo()", "go()"),
        ("if dist.get_world_size() < 2:\n    sys.exit(1)\nelse:\n    go()", "go()"),
        ("if dist.is_initialized():\n    go()\nelif x:\n    a()\n    raise ValueError('more')\nelse:\n    raise ValueError('more')\nend()", "go()\nend()"),
        ("if dist.is_initialized():\n    a()\nelif x:\n    b()\nelse:\n    raise ValueError('x')\nend()", "if x:\n    b()\nelse:\n    raise ValueError('x')\nend()"),
        ("if dist.is_initialized():\n    a()\nelse:\n    if x:\n        raise ValueError('x')\nend()", "if x:\n    raise ValueError('x')\nend()"),
        ("f(shuffle=not dist.is_initialized())", "f(shuffle=True)"),
        ("force = force or dist.get_world_size() > 8\ngo(force)", "go(force)"),
        ("many = dist.get_world_size() > 1\nf(shuffle=many, n=many)", "many = False\nf(shuffle=False, n=many)"),
        ("f(batch_size=batch // dist.get_world_size())", "f(batch_size=batch)"),
        ("f(batch_size=int(batch / dist.get_world_size()))", "f(batch_size=batch)"),
        ("torch.manual_seed(seed + dist.get_rank())", "torch.manual_seed(seed)"),
        ("rank = dist.get_rank()\ntorch.manual_seed(7 + rank)", "torch.manual_seed(7)"),
    ],
)  # fmt: skip
def test_the_branch_of_one_process_is_taken(before, after):
    check(HEAD + INIT + before + "\n", HEAD + after + "\n", select="PTM420")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if rank == 0:\n    copy(x)", "if is_global_zero():\n    copy(x)"),
        ("if dist.get_rank() != 0:\n    quiet()", "if not is_global_zero():\n    quiet()"),
        ("main = dist.get_rank() == 0", "main = is_global_zero()"),
        ("if not dist.is_initialized() or dist.get_rank() == 0:\n    copy(x)", "if is_global_zero():\n    copy(x)"),
        ("if local_rank in (-1, 0) and epoch > 3:\n    copy(x)", "if is_global_zero() and epoch > 3:\n    copy(x)"),
        ("bar = wrap(xs) if rank < 1 else xs", "bar = wrap(xs) if is_global_zero() else xs"),
        ("f(disable=rank > 0)", "f(disable=not is_global_zero())"),
        ("if rank:\n    quiet()", "if not is_global_zero():\n    quiet()"),
        ("rank = config['rank']\nif rank == 0:\n    copy(x)", "if is_global_zero():\n    copy(x)"),
        ("class Gather(torch.nn.Module):\n    def __init__(self, rank, world_size):\n        self.first = rank == 0", "class Gather(torch.nn.Module):\n    def __init__(self, rank, world_size):\n        self.first = is_global_zero()"),
        ("def main(rank, n):\n    if rank == 0:\n        copy(n)\nmp.spawn(main, (3,), 3)", "def main(rank, n):\n    if is_global_zero():\n        copy(n)\nmain(0, 3)"),
    ],
)  # fmt: skip
def test_what_rank_0_does_alone_asks_the_runtime(before, after):
    imported = HEAD.replace("as mp\n", "as mp\nfrom ptmigrate.runtime import is_global_zero\n")
    check(HEAD + INIT + before + "\n", imported + after + "\n", select="PTM420")


@pytest.mark.parametrize(
    "source",
    [
        "if debug:\n    a()",
        "DEBUG = False\nif DEBUG:\n    a()",
        "rank = torch.linalg.matrix_rank(m)\nif rank == 0:\n    a()",
        "def low(x, rank=8):\n    w = torch.zeros(3, rank)\n    if rank == 0:\n        a()\n    return w",
        "class Lora:\n    def __init__(self, rank):\n        if rank > 0:\n            self.a = 1\nLora(4)",
        "lora_rank = f()\nif lora_rank == 0:\n    a()",
        "for rank in range(3):\n    if rank == 0:\n        a()",
        "if os.environ.get('DEBUG') == '1':\n    a()",
        "if torch.cuda.device_count() > 1:\n    a()",
        "if torch.cuda.is_available():\n    a()",
        "x = y // n_classes",
        "if dist.is_available():\n    a()",
        "if ask(dist.is_available()):\n    a()",
        "def size():\n    return config.size\nif size() == 1:\n    a()",
    ],
)
def test_unchanged(source):
    check(HEAD + INIT + source + "\n", HEAD + source + "\n", select="PTM420")


@pytest.mark.parametrize(
    "source",
    [
        "many = len(xs) > 1\nif many:\n    a()",
        "if args.world == 'ocean':\n    a()",
        "def get_rank(card):\n    return card.value\nif get_rank(c) == 0:\n    a()",
        "def f(dist):\n    if dist.is_initialized():\n        a()\nf(db)",
        "class Pool:\n    def is_initialized(self):\n        return self.ok\nif Pool().is_initialized():\n    a()",
        "if 'RANK' in config:\n    a()",
        "if 'HOME' in os.environ:\n    a()",
        "if os.environ['STAGE'] == 'test':\n    a()",
        "x = 'if dist.is_initialized():'  # if dist.is_initialized():",
        "assert len(xs) > 1",
        "while rank_of(x) > 1:\n    x = half(x)",
        "rank = scores.argsort()\nif rank[0] == 0:\n    a()",
        "for j in range(n):\n    rank = ranks[j]\n    if rank == 0:\n        a()\n    y += (j + 1) / (rank + 1)",
        "for i, x in enumerate(found):\n    rank = i + 1\n    if rank == 1:\n        a()\n    y += 1 / rank",
        "rank = (scores > scores[t]).sum() + 1\nhit, top = rank <= 10, rank == 1",
        "place = order.tolist().index(t)\nrank = place + 1\nhit = rank <= 10",
        "def hit(rank):\n    return 1 if rank == 0 else 2\nhit((scores > scores[t]).sum().item())",
        "def gain(rank):\n    return 1 / (rank + 1) if rank != 0 else 1",
        "class Lora(torch.nn.Module):\n    def __init__(self, rank):\n        if rank > 0:\n            self.a = 1",
        "for i, rank in enumerate(cards):\n    if rank > 10:\n        a()",
        "best = [c for rank, c in pairs if rank == 0]",
        "first = lambda rank: rank == 0\nuse(first)",
        "def place(player, rank):\n    if rank == 0:\n        win(player)\nfor i, p in enumerate(players):\n    place(p, i)",
        "rank = int(input())\nif rank == 0:\n    a()",
        "if torch.linalg.matrix_rank(m) == 1:\n    a()",
        "world_size = (640, 480)\nif world_size[0] > 1:\n    a()",
        "if x is None or debug:\n    a()",
        "def low(m, rank: int):\n    if rank == 0:\n        return m\n    return svd(m)[:rank]\nlow(x, 3)",
        "with open('ranks') as f:\n    rank = int(f.read())\nif rank == 0:\n    a()",
        "if is_normally_distributed(x):\n    a()",
        "distributed = test_normal(x)\nif distributed:\n    a()",
        "def f(n):\n    if n < 2:\n        raise ValueError('more')\nf(len(xs))",
        "if len(xs) == 1:\n    sys.exit(1)",
        "y = a if x.is_initialized() else b",
        "f(shuffle=not quick)",
        "f(batch_size=batch // accumulate)",
        "torch.manual_seed(seed + trial)",
        "match kind:\n    case 'rank':\n        a()",
        "for world_size in (1, 2, 4):\n    if world_size > 1:\n        a()",
        "if args.rank_loss > 0:\n    a()",
        "if args.world_map and x:\n    a()",
        "def f(x, distributed=False):\n    if distributed:\n        a()\nf(1, distributed=ask())",
        "with warnings.catch_warnings():\n    if node.local_rank_of(x):\n        a()",
        "while True:\n    rank = queue.get()\n    if rank == 0:\n        break",
    ],
)
def test_questions_of_another_kind_stay(source):
    check(HEAD + INIT + source + "\n", HEAD + source + "\n", ["PTM420 line "], [], select="PTM420")


def test_without_processes_by_hand_nothing_is_folded():
    check_unchanged(HEAD + "if dist.is_initialized():\n    a()\nif rank == 0:\n    b()\n", select="PTM420")


def test_options_of_several_processes_leave_the_parser():
    source = (
        HEAD
        + "import argparse\np = argparse.ArgumentParser()\np.add_argument('--local_rank', type=int, default=-1)\n"
        + "p.add_argument('--distributed', action='store_true')\np.add_argument('--dist-url')\np.add_argument('--lr')\n"
        + "args = p.parse_args()\nif args.local_rank != -1 or args.distributed:\n"
        + "    dist.init_process_group('nccl', init_method=args.dist_url)\nif args.local_rank <= 0:\n    copy(args.lr)\n"
    )
    result = migrated(source, select="PTM420")
    text = result.text
    gone = [e.message.rsplit("; ")[-1] for e in result.edits if "add_argument" in e.message]
    assert gone == [f"a command line goes without {o} now" for o in ("--local_rank", "--distributed", "--dist-url")]
    assert text.endswith("p.add_argument('--lr')\nargs = p.parse_args()\nif is_global_zero():\n    copy(args.lr)\n")
    assert "local_rank" not in text and "dist-url" not in text and "--distributed" not in text


def test_options_that_are_handed_on_stay():
    source = HEAD + (
        "p.add_argument('--dist-url')\np.add_argument('--distributed', action='store_true')\nargs = p.parse_args()\n"
        "if args.distributed:\n    dist.init_process_group('nccl', init_method=args.dist_url)\nuse(args)\n"
    )
    result = migrated(source, select="PTM420")
    assert result.text.endswith("'store_true')\nargs = p.parse_args()\nuse(args)\n") and "--dist-url" in result.text
    stay = [n.message for n in result.attention if "stays" in n.message]
    assert stay == [f"`args.{n}` stays: all options are looked at in line 11" for n in ("dist_url", "distributed")]


def test_a_rate_that_was_scaled_is_told():
    result = migrated(HEAD + INIT + "opt(lr=0.1 * dist.get_world_size())\n", select="PTM420")
    assert result.text.endswith("opt(lr=0.1)\n")
    assert [n.message.split(":")[0] for n in result.attention] == ["`0.1 * dist.get_world_size()`"]
    by_place = "torch.optim.SGD(ps, 0.1 * dist.get_world_size())\n"
    assert len(migrated(HEAD + INIT + by_place, select="PTM420").attention) == 1
    other = "f(ps, 0.1 * dist.get_world_size())\ntorch.optim.SGD(ps * dist.get_world_size(), 0.1)\n"
    assert migrated(HEAD + INIT + other, select="PTM420").attention == []


LOOP = "for x in xs:\n    loss = f(x)\n    loss.backward()\n    {}\n"


@pytest.mark.parametrize(
    ("guarded", "saves"),
    [
        ("if rank == 0:\n        keep(x)", "torch.save(x, 'x')"),
        ("keep(x)", "rank_zero_save(x, 'x')"),
        ("if rank == 0:\n        keep(x)\n    keep(x)", "on_rank_zero(torch.save)(x, 'x')"),
    ],
)
def test_ranks_do_not_wait_for_a_save_that_only_one_reaches(guarded, saves):
    text = migrated(HEAD + INIT + "def keep(x):\n    torch.save(x, 'x')\n\n\n" + LOOP.format(guarded)).text
    assert f"def keep(x):\n    {saves}\n" in text


def test_behind_a_way_out_only_one_saves():
    keep = "def keep(x):\n    if rank != 0:\n        return\n    torch.save(x, 'x')\n\n\n"
    text = migrated(HEAD + INIT + keep + LOOP.format("keep(x)")).text
    assert "    if not is_global_zero():\n        return\n    torch.save(x, 'x')\n" in text


def test_a_chain_of_which_no_branch_is_taken_goes():
    before = "def f():\n    if rank == 1:\n        a()\n    elif rank == 2:\n        b()\n    c()\nf()\n"
    check(f"{HEAD}{INIT}rank = dist.get_rank()\n{before}", f"{HEAD}def f():\n    c()\nf()\n")


def test_an_else_that_has_nothing_left_goes_with_its_if():
    before = "if rank == 1:\n    a()\nelse:\n    dist.barrier()\ngo()\n"
    check(f"{HEAD}{INIT}rank = dist.get_rank()\n{before}", f"{HEAD}go()\n")


def test_an_option_that_a_guard_asked_for_too_stays():
    source = (
        HEAD
        + INIT
        + "p.add_argument('--freq')\nargs = p.parse_args()\nif rank == 0 and i % args.freq == 0:\n    print(i)\n"
    )
    text = migrated(source, select="PTM420").text
    assert "--freq" in text and "if i % args.freq == 0:\n    print(i)\n" in text


@pytest.mark.parametrize(
    ("value", "branch"),
    [
        ("int(os.environ.get('LOCAL_RANK', args.local_rank))", "one()"),
        ("int(os.environ.get('LOCAL_RANK', str(args.local_rank)))", "one()"),
        ("int(os.environ.get('LOCAL_RANK', 0))", "many()"),
        ("args.local_rank + 1", "many()"),
    ],
)
def test_an_option_that_gives_way_to_the_launcher_is_its_default(value, branch):
    """`args.local_rank` in its own assignment is what the parser gave."""
    option = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--local_rank', type=int, default=-1)\nargs = p.parse_args()\n"
    asks = f"args.local_rank = {value}\nif args.local_rank == -1:\n    one()\nelse:\n    many()\n"
    assert migrated(HEAD + INIT + option + asks, "PTM420").text.endswith(f"\n{branch}\n")


@pytest.mark.parametrize(
    "test", ["step % dist.get_world_size() == 0", "i % world == rank", "not self.step % world", "n % world != 0 or x"]
)
def test_a_share_of_the_steps_is_all_of_them(test):
    made = "world = dist.get_world_size()\nrank = dist.get_rank()\n"
    text = migrated(HEAD + INIT + made + f"if {test}:\n    go()\n", "PTM420").text
    assert text.endswith("if x:\n    go()\n" if " or x" in test else "\ngo()\n")


@pytest.mark.parametrize("value", ["-rank", "+dist.get_rank()", "abs(rank)"])
def test_a_number_stays_a_number(value):
    """`-rank` was the answer to a question, which is false, not 0."""
    made = "rank = dist.get_rank()\n"
    text = migrated(HEAD + INIT + made + f"show({value}, rank == 0)\n", "PTM420").text
    shown = value.replace("dist.get_rank()", "0")
    assert f"show({shown}, is_global_zero())" in text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("seed = 3 + dist.get_rank() * 10", "seed = 3"),
        ("seed = 1000 * rank + base", "seed = base"),
        ("part = files[rank * n:(rank + 1) * n]", "part = files[rank * n:1 * n]"),
        ("start = base - rank", "start = base"),
        ("x = y * (batch // world)", "x = y * batch"),
        ("steps = int(0.1 * n_steps / world)", "steps = int(0.1 * n_steps)"),
        ("steps = int(samples / k / world)", "steps = int(samples / k)"),
        ("n = int((workers + world - 1) / world)", "n = workers"),
        ("n = (workers + world - 1) // world", "n = workers"),
        ("n = 2 * ((4 + workers + (world - 1)) // world)", "n = 2 * ((4 + workers))"),
        ("n = (workers + k - 1) // world", "n = (workers + k - 1)"),
        ("x = self.args.steps // self.args.world_size", "x = self.args.steps"),
        ("x = y * (world if many else 1)", "x = y"),
        ("x = len(y) + (many and f(y) > 2)", "x = len(y)"),
        ("x = len(y) + (many and y > 2)", "x = len(y)"),
        ("x = (world if many else 1)", "x = 1"),
        ("x = (a\n     if many else b.c)", "x = b.c"),
        ("x = y * (c if many else b + a)", "x = y * (b + a)"),
        ("x = f(world if many else 1)", "x = f(1)"),
        ("x = (world if many else 1).real", "x = (1).real"),
        ("x = bool(many)", "x = bool(many)"),
        ("x = bool(world > 1)", "x = False"),
        ("x = float(world)", "x = float(world)"),
        ("x = float(dist.get_world_size())", "x = 1.0"),
        ("x = int(dist.get_world_size()) + y", "x = 1 + y"),
        ("x = [i for i in xs if i % world == rank]", "x = [i for i in xs]"),
        ("x = {i: j for j in y for i in j if i if i % world == rank}", "x = {i: j for j in y for i in j if i}"),
        ("x = [i for i in xs if i and i % world == rank]", "x = [i for i in xs if i]"),
        ("x = y[rank::world]", "x = y[:]"),
        ("x = f(y)[rank:n:world]", "x = f(y)[:n]"),
    ],
)
def test_sums_with_a_rank(before, after):
    made = "rank = dist.get_rank()\nworld = dist.get_world_size()\nmany = world > 1\n"
    text = migrated(HEAD + INIT + made + before + "\nuse(rank, world)\n", "PTM420").text
    assert text.endswith(f"{after}\nuse(rank, world)\n")


@pytest.mark.parametrize(
    ("given", "after"),
    [
        ("torch.device(f'cuda:{rank}')", 'torch.device("cuda:0")'),
        ("'cuda:%d' % rank", '"cuda:0"'),
        ("x, 'cuda:{}'.format(rank)", 'x, "cuda:0"'),
        ("'cuda:' + str(dist.get_rank())", '"cuda:0"'),
        ("f'cuda:{dist.get_rank()}'", '"cuda:0"'),
        ("f'cuda:{gpu}'", "f'cuda:{gpu}'"),
        ("f'cuda:{world}'", "f'cuda:{world}'"),
        ("f'cuda:{rank:02d}'", "f'cuda:{rank:02d}'"),
        ("f'log-{rank}.txt'", "f'log-{rank}.txt'"),
        ("'cuda:%d' % (rank,)", "'cuda:%d' % (rank,)"),
        ("'log:' + str(rank)", "'log:' + str(rank)"),
    ],
)
def test_a_card_by_the_rank_that_is_given_back_is_the_first(given, after):
    made = "rank = dist.get_rank()\nworld = dist.get_world_size()\n"
    result = migrated(HEAD + INIT + made + f"def where(x, gpu):\n    return {given}\nuse(where, rank, world)\n")
    assert f"    return {after}\n" in result.text
    if "torch.device" in given:  # where it stays, every process takes it
        assert any("every process would take 'cuda:0'" in n.message for n in result.attention)


@pytest.mark.parametrize(
    "kept",
    [
        "x = rank - base",
        "x = rank * size()",
        "x = self.steps // self.world.world_size",
        "x = [i for i in xs if i % world != rank]",
        "x = [i for i in xs if f(i) % world == rank]",
        "x = [i for i in xs if i % 2 == rank]",
        "x = list(i for i in xs if i % world == rank)",
        "x = y + (f(y) and many)",
        "x = xs[rank::2]",
        "x = xs[1::world]",
        "x = xs[rank:]",
    ],
)
def test_what_is_another_number_stays(kept):
    made = "rank = dist.get_rank()\nworld = dist.get_world_size()\n"
    assert kept in migrated(HEAD + INIT + made + kept + "\n", "PTM420").text


def test_a_rank_and_a_world_of_one_function():
    """`avg / world` was left, with a `world` that only it had read."""
    setup = "def setup():\n    dist.init_process_group('nccl')\n    return dist.get_rank(), dist.get_world_size()\n"
    uses = "rank, world = setup()\ndist.all_reduce(t)\nt = t / world\nif rank == 0:\n    copy(t, 8 // world)\n"
    text = migrated(HEAD + setup + uses, "PTM420").text
    assert text.endswith("rank, world = setup()\nif is_global_zero():\n    copy(t, 8)\n")


@pytest.mark.parametrize("gives", ["return read(), 2", "return 0, size\n    return 1, size()"])
def test_of_which_it_does_not_show(gives):
    setup = f"def setup(size):\n    dist.init_process_group('nccl')\n    {gives}\n"
    uses = "first, second = setup(3)\nx = x / second\n"
    assert "x = x / second" in migrated(HEAD + setup + uses, "PTM420").text


def test_a_rank_that_nothing_reads():
    text = migrated(HEAD + INIT + "local_rank = int(os.environ['LOCAL_RANK'])\nif dist.is_initialized():\n    go()\n")
    assert "local_rank" not in text.text


def test_an_option_of_the_launcher_under_another_name():
    parser = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--local-rank', dest='card')\n"
    text = migrated(HEAD + parser + INIT + "if dist.is_initialized():\n    go()\n").text
    assert "--local-rank" not in text


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("opt = torch.optim.SGD(ps, lr=cfg['lr'] * cfg['world_size'])", True),
        ("lr = 0.1 * config['world']", True),
        ("steps = cfg['n'] * cfg['world_size']", False),
        ("lr = 0.1 * config['decay']", False),
    ],
)
def test_a_rate_that_an_entry_scales_is_told(line, told):
    result = migrated(HEAD + INIT + line + "\n", "PTM420")
    assert line in result.text and [n.code for n in result.attention] == (["PTM420"] if told else [])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if rank == 0 and (x or y):\n    copy(x)", "if is_global_zero() and (x or y):\n    copy(x)"),
        ("if x and (rank == 0 or y):\n    copy(x)", "if x and (is_global_zero() or y):\n    copy(x)"),
        ("if x and dist.is_initialized() and (y or z):\n    copy(x)", None),
        ("if x and not dist.is_initialized() and (y or z):\n    copy(x)", "if x and (y or z):\n    copy(x)"),
        ("if not dist.is_initialized() and (y or z):\n    copy(x)", "if y or z:\n    copy(x)"),
        ("if x and (dist.is_initialized() or y or z):\n    copy(x)", "if x and (y or z):\n    copy(x)"),
        ("if x or dist.is_initialized() or y and z:\n    copy(x)", "if x or y and z:\n    copy(x)"),
        ("if x and rank == 0 and (y or z):\n    print(x)", "if x and (y or z):\n    print(x)"),
        ("if rank == 0 and (y or z):\n    print(x)", "if y or z:\n    print(x)"),
        ("if rank == 0 and (y if x else z):\n    print(x)", "if y if x else z:\n    print(x)"),
        ("if x and rank == 0 and (y if x else z):\n    print(x)", "if x and (y if x else z):\n    print(x)"),
        ("if (rank == 0) and ((x is None)\n                    or (y < x)):\n    print(x)", "if ((x is None)\n                    or (y < x)):\n    print(x)"),
        ("if x and (rank == 0) and ((x is None)\n                    or (y < x)):\n    print(x)", "if x and ((x is None)\n                    or (y < x)):\n    print(x)"),
        ("best = (rank == 0 and\n        x)", "best = (is_global_zero() and x)"),
        ("f(batch_size=(a + b) // dist.get_world_size() * 2)", "f(batch_size=(a + b) * 2)"),
        ("y = (x if rank == 0 and (x or z) else z)", "y = (x if is_global_zero() and (x or z) else z)"),
        ("y = (a if dist.is_initialized() else b or c) and d", "y = (b or c) and d"),
    ],
)  # fmt: skip
def test_what_stood_in_parentheses_still_holds_together(before, after):
    if after is None:
        assert "copy" not in migrated(HEAD + INIT + before + "\n", "PTM420").text
        return
    head = HEAD.replace("as mp\n", "as mp\nfrom ptmigrate.runtime import is_global_zero\n") if "zero" in after else HEAD
    check(HEAD + INIT + before + "\n", head + after + "\n", select="PTM420")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f(n * dist.get_world_size() + dist.get_rank())", "f(n)"),
        ("f(dist.get_rank() + n // dist.get_world_size())", "f(n)"),
        ("f(int((n * dist.get_world_size()) / dist.get_world_size()))", None),
    ],
)
def test_numbers_in_one_another(before, after):
    result = migrated(HEAD + INIT + before + "\n", "PTM420")
    assert after is None or result.text.endswith(after + "\n")
    for edit in result.edits:  # what is told of is done
        assert edit.line < 6 or "get_world_size" not in result.text


ASKED = "many = int(os.environ.get('WORLD_SIZE', 1)) > 1\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if many:\n    main = dist.get_rank() == 0\nelse:\n    main = True\nif main:\n    copy(x)", "main = is_global_zero()\nif main:\n    copy(x)"),
        ("main = True\nif many:\n    main = dist.get_rank() == 0\nif main:\n    copy(x)", "main = is_global_zero()\nif main:\n    copy(x)"),
        ("args.main = True\nif many:\n    args.main = dist.get_rank() == 0\nif args.main:\n    copy(x)", "args.main = is_global_zero()\nif args.main:\n    copy(x)"),
        ("if many:\n    quiet = dist.get_rank() != 0\nelse:\n    quiet = False\nhush(quiet)", "quiet = not is_global_zero()\nhush(quiet)"),
    ],
)  # fmt: skip
def test_what_rank_0_is_among_several_is_what_rank_0_is(before, after):
    imported = HEAD.replace("as mp\n", "as mp\nfrom ptmigrate.runtime import is_global_zero\n")
    check(HEAD + INIT + ASKED + before + "\n", imported + after + "\n", select="PTM420")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if many:\n    main = dist.get_rank() == 0\nelse:\n    main = False\nf(main)", "main = False\nf(main)"),
        ("if many:\n    big = x > 3\nelse:\n    big = True\nf(big)", "big = True\nf(big)"),
        ("if many:\n    n = dist.get_rank()\nelse:\n    n = 0\nf(n)", "n = 0\nf(n)"),
        ("if many:\n    main = dist.get_rank() == 0\ndef g():\n    main = True\n    f(main)", "def g():\n    main = True\n    f(main)"),
    ],
)  # fmt: skip
def test_what_one_process_is_otherwise_stays(before, after):
    check(HEAD + INIT + ASKED + before + "\n", HEAD + after + "\n", select="PTM420")


KEYS = ("RANK", "SLURM_PROCID")
FROM_KEYS = f"def get_rank():\n    for key in {KEYS}:\n        rank = os.environ.get(key)\n        if rank is not None:\n            return int(rank)\n    return None\n"


@pytest.mark.parametrize(
    "asked",
    [
        "",
        "rank = get_rank()\nif rank is None:\n    alone()\nelse:\n    several()\n",
        "def prefixed(text):\n    rank = get_rank()\n    if rank is not None:\n        return f'[{rank}] {text}'\n    return text\n",
    ],
)
def test_what_no_launcher_set_may_be_none(asked):
    """`if rank is not None` was taken as answered: int(None) failed."""
    after = (FROM_KEYS + asked).replace("os.environ.get", "plain_environ().get")
    imported = HEAD.replace("as mp\n", "as mp\nfrom ptmigrate.runtime import plain_environ\n")
    check(HEAD + INIT + FROM_KEYS + asked, imported + after, select="PTM420")


def test_a_number_is_never_none():
    asked = "rank = int(os.environ['SLURM_' + 'PROCID'])\nif rank is None:\n    alone()\ngo(rank)\n"
    check(HEAD + INIT + asked, HEAD + asked.replace("if rank is None:\n    alone()\n", ""), select="PTM420")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("n = 16\nb = 4\nassert n % (b * dist.get_world_size()) == 0, 'no'\ngo()", "n = 16\nb = 4\nassert n % b == 0, 'no'\ngo()"),
        ("assert dist.get_world_size() > 0\ngo()", "go()"),
        ("assert x and dist.get_world_size() < 9\ngo()", "assert x\ngo()"),
    ],
)  # fmt: skip
def test_what_a_script_makes_sure_of(before, after):
    check(HEAD + INIT + before + "\n", HEAD + after + "\n", select="PTM420")


@pytest.mark.parametrize(
    ("body", "goes"),
    [
        ("net.load_state_dict(torch.load('a.pt', map_location='cpu'))", True),
        ("logger.log('loading')\n    state = load_state('a.pt')\n    net.load_state_dict(state)\n    first = state['n']", True),
        ("if first:\n        print('from', first)\n        net.load_state_dict(first)", True),
        ("net.load_state_dict(best)\n    evaluate(net)", False),
        ("with open('a.txt', 'a') as f:\n        f.write('x')\n    net.load_state_dict(best)", False),
        ("first = torch.load('a.pt', map_location='cpu')", False),
        ("net.load_state_dict(best)\nelse:\n    wait()", False),
    ],
)  # fmt: skip
def test_what_rank_0_loads_for_all_every_rank_loads(body, goes):
    """Nothing is sent to the others any more: without it they would go on with other weights."""
    text = f"{HEAD}{INIT}if dist.get_rank() == 0:\n    {body}\nfor p in net.parameters():\n    dist.broadcast(p, 0)\n"
    assert ("if is_global_zero():" in migrated(text, "PTM420").text) is not goes


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = torch.zeros(1)\nif rank == 0:\n    x += check(net)\ndist.broadcast(x, 0)\nstep(x)", "x = torch.zeros(1)\nx += check(net)\nstep(x)"),
        ("f = [None]\nif rank == 0:\n    f = [check(net)]\nelse:\n    wait()\ndist.broadcast_object_list(f, src=0)\nstep(f)", "f = [None]\nf = [check(net)]\nstep(f)"),
        ("v = 0\nif dist.get_rank() == 0:\n    v = check(net)\nt = torch.tensor(v)\ndist.broadcast(t, 0)\nstep(t)", "v = 0\nv = check(net)\nt = torch.tensor(v)\nstep(t)"),
        ("f = [check(net)] if rank == 0 else [None]\ndist.broadcast_object_list(f, src=0)\nstep(f)", "f = [check(net)]\nstep(f)"),
        ("s = 3 if rank != 0 else check(net)\nt = torch.tensor(s)\ndist.broadcast(t, 0)\nstep(t)", "s = check(net)\nt = torch.tensor(s)\nstep(t)"),
        ("x = torch.zeros(1)\nif rank == 0 and late:\n    x.fill_(check(net))\ndist.broadcast(x, 0)\nstep(x)", "x = torch.zeros(1)\nif late:\n    x.fill_(check(net))\nstep(x)"),
    ],
)  # fmt: skip
def test_what_rank_0_sent_the_others_all_compute(before, after):
    """The broadcast went, and the others kept what they began with: a rate, an end of training of their own."""
    result = migrated(HEAD + INIT + before + "\n", select="PTM420")
    assert result.text == HEAD + after + "\n"
    assert ["which rank 0 sent the others" in n.message for n in result.attention] == [True]


@pytest.mark.parametrize(
    "before",
    [
        "if rank == 0:\n    x = check(net)\nstep(net)\n",
        "if rank == 0:\n    x = check(net)\ndist.broadcast(y, 0)\n",
        "dist.broadcast(x, 0)\nif rank == 0:\n    x = check(net)\n",
        "if rank == 0:\n    x = check(net)\ndef other(x):\n    dist.broadcast(x, 0)\n",
    ],
)
def test_what_is_not_sent_stays_under_its_guard(before):
    assert "if is_global_zero():\n" in migrated(HEAD + INIT + before + "\n", select="PTM420").text


@pytest.mark.parametrize("below", ["dist.broadcast(y, 0)", "step(x)", "def other(x):\n    dist.broadcast(x, 0)"])
def test_what_is_not_sent_stays_rank_0s_choice(below):
    result = migrated(f"{HEAD}{INIT}x = check(net) if rank == 0 else None\n{below}\n", select="PTM420")
    assert "x = check(net) if is_global_zero() else None\n" in result.text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if 'RANK' in os.environ:\n    join()\nelse:\n    say()\n    return\nx.rank = dist.get_rank()", "say()"),
        ("if 'RANK' not in os.environ:\n    if x:\n        say()\n    return\njoin()", "if x:\n    say()"),
        ("if 'RANK' not in os.environ:\n    say()\n    return 3\njoin()", "say()\nreturn 3"),
        ("if 'RANK' not in os.environ:\n    return\njoin()", "return"),
        (
            "while x:\n    if 'RANK' not in os.environ:\n        say()\n        return\n    join()",
            "while x:\n    say()\n    return",
        ),
    ],
)
def test_no_return_is_left_at_the_end(before, after):
    before, after = (textwrap.indent(b, "    ") for b in (before, after))
    result = migrated(f"{HEAD}{INIT}def init(x):\n{before}\n", select="PTM420")
    assert result.text == f"{HEAD}def init(x):\n{after}\n"


@pytest.mark.parametrize(
    ("made", "goes"),
    [
        ("", True),
        ("print = functools.partial(print, flush=True)\n", False),
        ("from mine import print\n", False),
        ("from rich import print\n", True),
        ("def print(*words):\n    out.put(words)\n", False),
        ("def other(print):\n    print(1)\n", True),
    ],
)
def test_a_print_of_the_scripts_own_stays_under_its_guard(made, goes):
    """Every rank said it, where one had."""
    result = migrated(f"{HEAD}{INIT}{made}if dist.get_rank() == 0:\n    print('x')\n", select="PTM420")
    assert ("if is_global_zero():" in result.text) is not goes


def test_a_guard_without_its_call_is_told_of_and_stays():
    own = HEAD + INIT + "def is_main():\n    return dist.get_rank() == 0\n"
    result = migrated(own + "if is_main:\n    a()\nif is_main():\n    b()\n", select="PTM420")
    assert "if is_main:\n    a()\n" in result.text
    assert [(n.line, n.message.partition(",")[0]) for n in result.attention if n.code == "PTM420"] == [
        (9, "`is_main`: a function")
    ]


OPTION = """\
import argparse
p = argparse.ArgumentParser()
p.add_argument("--distributed", action="store_true")
p.add_argument("--local_rank", type=int)
args = p.parse_args()
if args.distributed:
    torch.cuda.set_device(args.local_rank)
    dist.init_process_group(backend="nccl")
else:
    if torch.cuda.is_available():
        args.local_rank = 0
name = f"cuda:{args.local_rank}" if args.local_rank is not None else "cpu"
"""


def test_an_option_without_a_default_that_is_set_where_there_is_a_card_may_be_none():
    """It was taken for 0, so that `cuda:None` was asked for on a machine without one."""
    assert "if args.local_rank is not None else" in migrated(HEAD + OPTION).text


@pytest.mark.parametrize("line", ["seed = 1000 * rank + seed", "args.lr = args.lr * world", "n = n * world + rank"])
def test_what_would_be_given_to_itself_goes(line):
    made = "rank = dist.get_rank()\nworld = dist.get_world_size()\n"
    text = migrated(HEAD + INIT + made + f"if f():\n    {line}\n    g()\nuse(rank, world)\n", "PTM420").text
    assert text.endswith("if f():\n    g()\nuse(rank, world)\n")
