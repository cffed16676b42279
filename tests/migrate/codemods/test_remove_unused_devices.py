import pytest
from helpers import check, check_unchanged, dedent, migrated

LOOP = """
for x, y in loader:
    x, y = x.to(device), y.to(device)
    step(model(x), y)
"""
LOOP_AFTER = """
for x, y in loader:
    step(model(x), y)
"""


@pytest.mark.parametrize(
    "chosen",
    [
        'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")',
        'use_cuda = torch.cuda.is_available()\ndevice = torch.device("cuda" if use_cuda else "cpu")',
        'device = "cuda"',
        'if torch.cuda.is_available():\n    device = torch.device("cuda")\nelse:\n    device = torch.device("cpu")',
        'device = torch.device("cpu")\nif torch.cuda.is_available():\n    device = torch.device("cuda:0")',
        "n = 0\ndevice = f'cuda:{n}'",
    ],
)
def test_the_choice_goes_with_its_last_use(chosen):
    left = "n = 0" if chosen.startswith("n = 0") else ""
    check("import torch\n" + chosen + LOOP, "import torch\n" + left + (LOOP_AFTER if left else LOOP_AFTER[1:]))


@pytest.mark.parametrize(
    "reader",
    [
        "print(device)",
        "state = torch.load('p', map_location=device)",
        "mask = torch.ones(3, device=device)",
        "h = torch.zeros(3).to(device)",
        "def later():\n    return device",
        "print(f'on {device}')",
        "with torch.cuda.device(device), open('log'):\n    pass",
        "save(locals(), device=device)",
    ],
)
def test_the_choice_stays_while_something_reads_it(reader):
    chosen = 'import torch\ndevice = torch.device("cuda" if torch.cuda.is_available() else "cpu")\n' + reader
    check(chosen + LOOP, chosen + LOOP_AFTER)


@pytest.mark.parametrize("ids", ["[int(i) for i in args.gpus.split(',')]", "list(range(n))", "[0, 1]"])
def test_the_numbers_of_several_cards_go_with_their_last_use(ids):
    made = "import torch\n{ids}net = torch.nn.Linear(2, 1){placed}\n"
    check(made.format(ids=f"ids = {ids}\n", placed=".cuda(ids[0])"), made.format(ids="", placed=""))


@pytest.mark.parametrize("ids", ["[pick(i) for i in args.gpus.split(',')]", "list(cards)", "[int(i) for i in ask()]"])
def test_what_is_more_than_numbers_stays(ids):
    made = "import torch\nids = {ids}\nnet = torch.nn.Linear(2, 1){placed}\n"
    check(made.format(ids=ids, placed=".cuda(ids[0])"), made.format(ids=ids, placed=""))


@pytest.mark.parametrize("test", ["torch.cuda.is_available()", "args.gpu is not None", "use_cuda and args.gpu != -1"])
def test_an_elif_with_nothing_left_goes(test):
    made = "import torch\nif quiet:\n    say()\n{rest}go(net)\n"
    check(made.format(rest=f"elif {test}:\n    net = net.cuda()\n"), made.format(rest=""))


def test_an_elif_that_does_something_by_asking_stays():
    made = "import torch\nif quiet:\n    say()\nelif ask():\n    {rest}\ngo(net)\n"
    check(made.format(rest="net = net.cuda()"), made.format(rest="pass"))


def test_a_flag_stays_while_something_reads_it():
    check(
        """
        import torch
        use_cuda = torch.cuda.is_available()
        if use_cuda:
            model.cuda()
        kwargs = {"pin_memory": True} if use_cuda else {}
        main()
        """,
        """
        import torch
        use_cuda = torch.cuda.is_available()
        kwargs = {"pin_memory": True} if use_cuda else {}
        main()
        """,
        ["PTM102 line 3: `if use_cuda:` removed", "PTM101 line 4: `model.cuda()`: the runtime places"],
    )


def test_a_branch_keeps_what_is_left_in_it():
    check(
        """
        import torch
        if torch.cuda.is_available():
            # the fast way
            model.cuda()
            torch.backends.cudnn.benchmark = True
        main()
        """,
        """
        import torch
        if torch.cuda.is_available():
            # the fast way
            torch.backends.cudnn.benchmark = True
        main()
        """,
    )


STATE = """
for state in opt.state.values():
    # onto the card
    for k, v in state.items():
        if torch.is_tensor(v):
            state[k] = v.to(device)
"""


@pytest.mark.parametrize(("more", "left"), [("main()", ""), ("main(k)", "for"), ("log(state)", "for")])
def test_a_loop_with_nothing_left_in_it(more, left):
    result = migrated(f"import torch\ndevice = torch.device('cuda'){STATE}{more}\n")
    assert "to(device)" not in result.text
    assert ("for state" in result.text) == bool(left) and ("is_tensor" not in result.text)


@pytest.mark.parametrize("over", ["load(x)", "d.pop().values()", "iter(d)"])
def test_a_loop_that_does_something_by_going_through_stays(over):
    source = f"import torch\nfor k, v in {over}:\n    v = v.cuda()\nmain()\n"
    check(source, source.replace("v = v.cuda()", "pass"))


def test_one_line_branch():
    check("import torch\nif args.cuda: model.cuda()\nmain()\n", "import torch\nmain()\n")


def test_parameter_and_arguments_go():
    check(
        """
        import torch
        def train(model, device, loader):
            for x in loader:
                x = x.to(device)
                step(model(x))
        def main():
            device = torch.device("cuda")
            train(Net(), device, load())
            train(model=Net(), loader=load(), device=device)
        main()
        """,
        """
        import torch
        def train(model, loader):
            for x in loader:
                step(model(x))
        def main():
            train(Net(), load())
            train(model=Net(), loader=load())
        main()
        """,
    )


MOVER = """\
import torch
def to_device(data, device):
    if isinstance(data, list):
        return [to_device(x, device) for x in data]
    return data.to(device)
"""


@pytest.mark.parametrize(
    ("parameters", "given", "left", "stays"),
    [
        ("x, device, gpu, a, b", "x, device, gpu, 2, 5", "x, a, b", "x, 2, 5"),
        ("device, x, gpu, a, b", "device, x, gpu, 2, b=5", "x, a, b", "x, 2, b=5"),
        ("x, a, device, b, gpu", "x, 2, device, 5, gpu", "x, a, b", "x, 2, 5"),
        ("x, device, a, b, gpu", "x, device, 2, gpu=gpu, b=5", "x, a, b", "x, 2, b=5"),
        ("device, gpu, x, a, b", "gpu=gpu, device=device, b=5, a=2, x=x", "x, a, b", "b=5, a=2, x=x"),
    ],
)
def test_several_parameters_and_arguments_go_at_once(parameters, given, left, stays):
    chosen = 'device = torch.device("cuda")\ngpu = 0\n'
    used = "    x = x.to(device)\n    x = x.cuda(gpu)\n"
    source = "import torch\nx = torch.ones(3)\n{}def f({}):\n{}    return x * a + b\nprint(f({}))\n"
    check(source.format(chosen, parameters, used, given), source.format("", left, "", stays))


@pytest.mark.parametrize(
    ("parameters", "left"),
    [
        ("x, *, device", "x"),
        ("x, *, device, more=1", "x, *, more=1"),
        ("x, *, more=1, device=None", "x, *, more=1"),
        ("device, /, x", "x"),
        ("x, device, /", "x, /"),
        ("x, device, /, more=1", "x, /, more=1"),
        ("x, device, ", "x, "),
        ("x, device, *rest, **more", "x, *rest, **more"),
        ("x, *rest, device", "x, *rest"),
        ("\n    x,  # the input\n    device,  # where\n", "\n    x,  # the input\n"),
        ("\n    device,  # where\n    x,\n", "\n    x,\n"),
    ],
)
def test_what_is_left_of_the_parameters_is_a_list(parameters, left):
    given = "device, x" if parameters.strip().startswith("device") else "x, device"
    given = "x, device=device" if "*, " in parameters or "*rest, device" in parameters else given
    chosen = 'device = torch.device("cuda")\n'
    above = "# where\n" if "# where" in parameters else ""
    source = "import torch\nx = torch.ones(3)\n{}def f({}):\n    return {}\nprint(f({}))\n"
    check(source.format(chosen, parameters, "x.to(device)", given), source.format(above, left, "x", "x"))


@pytest.mark.parametrize("way", ["to_device(x, device)", "to_device(x, device=device)"])
def test_a_function_that_calls_itself(way):
    before = MOVER.replace("to_device(x, device)", way) + "device = torch.device('cuda')\nto_device(load(), device)\n"
    after = MOVER.replace("data, device", "data").replace("x, device", "x").replace(".to(device)", "")
    check(before, after + "to_device(load())\n", attention=[])


def test_a_function_that_reads_the_device_for_more_than_itself():
    before = (
        MOVER.replace("    return data.to", "    other(device)\n    return data.to") + "to_device(load(), 'cuda')\n"
    )
    check(before, before.replace(".to(device)", ""))


CHOOSES = "def choose():\n    if torch.cuda.is_available():\n        return 'cuda'\n    return 'cpu'\n"


def test_the_function_that_chose_goes_too():
    before = "import torch\n" + CHOOSES + "device = choose()\nmodel = Net().to(device)\n"
    check(before, "import torch\nmodel = Net()\n", attention=[])


@pytest.mark.parametrize("more", ["print(choose())", "run(choose)"])
def test_the_function_that_chose_stays_where_it_is_read(more):
    before = "import torch\n" + CHOOSES + f"device = choose()\nmodel = Net().to(device)\n{more}\n"
    check(before, before.replace("device = choose()\n", "").replace(".to(device)", ""))


def test_a_function_that_does_more_than_choose_stays():
    said = CHOOSES.replace("    return 'cpu'", "    print('no card')\n    return 'cpu'")
    before = "import torch\n" + said + "device = choose()\nmodel = Net().to(device)\n"
    assert "def choose" in migrated(before).text


@pytest.mark.parametrize(
    "call",
    ["run(train)", "train(*everything)", "train(**everything)"],
)
def test_parameter_stays_where_calls_are_not_known(call):
    f = "import torch\ndef train(device, x):\n    return x.to(device)\n"
    check(f + call + "\n", f.replace(".to(device)", "") + call + "\n")


def test_a_library_keeps_its_names_and_parameters():
    before = 'import torch\ndevice = torch.device("cuda")\ndef f(x):\n    return x.to(device)\n'
    check(before, before.replace(".to(device)", ""))
    before = "import torch\ndef f(x, device):\n    return x.to(device)\ndef g(x):\n    return f(x, 'cuda')\n"
    check(before, before.replace(".to(device)", ""))
    asks = before + "if g is None:\n    SIZE = f(3, 'cuda')\n"
    check(asks, asks.replace(".to(device)", ""))


def test_what_moves_in_a_branch_of_its_own_lines_is_no_library():
    """`if args.train:` at the top of a script, without a main guard."""
    before = (
        "import torch\nfrom n import Net\nimport sys\ndef f(net, x, device):\n    x = x.to(device)\n    return net(x)\n"
        "if len(sys.argv) > 1:\n    device = torch.device('cuda')\n    net = Net().to(device)\n    f(net, 1, device)\n"
    )
    after = before.replace(".to(device)", "").replace(", device", "").replace("    device = torch.device('cuda')\n", "")
    check(before, after.replace("    x = x\n", ""))


@pytest.mark.parametrize(
    "source",
    [
        'device = torch.device("cuda")',
        'device = torch.device("cuda")\nmain()',
        "use_cuda = torch.cuda.is_available()\nmain()",
        "def f(device):\n    pass\nf('cuda')",
        "if torch.cuda.is_available():\n    pass\nmain()",
        "args.cuda = not args.no_cuda and torch.cuda.is_available()\nmain()",
        "parser.add_argument('--no-cuda', action='store_true')\nmain()",
        "class A:\n    device = torch.device('cuda')\nA()",
    ],
)
def test_unchanged(source):
    check_unchanged("import torch\n" + source + "\n")


def test_a_flag_of_the_command_line_stays_accepted():
    check(
        """
        import argparse
        import torch
        parser = argparse.ArgumentParser()
        parser.add_argument("--cuda", action="store_false", help="use CUDA (default: True)")
        args = parser.parse_args()
        if args.cuda:
            model.cuda()
        """,
        """
        import argparse
        import torch
        parser = argparse.ArgumentParser()
        parser.add_argument("--cuda", action="store_false", help="use CUDA (default: True)")
        args = parser.parse_args()
        """,
    )


FLAG = """
import argparse
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--cuda", action="store_true")
args = parser.parse_args([])


def doubled(x, use_cuda{0}):
    if use_cuda:
        x = x.cuda()
    return x * 2{1}


print(doubled(torch.ones(2), {2}))
"""


@pytest.mark.parametrize("given", ["args.cuda", "use_cuda=args.cuda and torch.cuda.is_available()", "not args.cuda"])
def test_a_flag_of_a_function_goes_with_the_branch_that_read_it(given):
    result = migrated(FLAG.format("=False", "", given))
    assert "def doubled(x):\n    return x * 2\n" in result.text and "doubled(torch.ones(2))" in result.text


@pytest.mark.parametrize(
    "default, more, given",
    [("", " + use_cuda", "args.cuda"), ("", "", "ask()"), ("", "", "*[args.cuda]"), ("", "", "**dict(use_cuda=1)")],
)
def test_a_flag_that_more_reads_or_that_is_given_with_an_effect_stays(default, more, given):
    result = migrated(FLAG.format(default, more, given))
    assert "def doubled(x, use_cuda)" in result.text and given in result.text


def test_what_objects_keep_is_told_in_the_order_of_the_text():
    classes = "".join(
        f"""
class C{i}(object):
    def __init__(self):
        self.device = torch.device("cuda")

    def f(self, x):
        return x.to(self.device) + self.device
"""
        for i in range(8)
    )
    told = [n.line for n in migrated(f"import torch\n{classes}\nC0()\n").attention]
    assert len(told) >= 8
    assert told == sorted(told)


FOLLOWS = """
    import torch
    def evaluate(model, loader):
        device = {}
        for x, y in loader:
            x{} = x{}
            model(x)
"""


@pytest.mark.parametrize("given", ["next(model.parameters()).device", "next(iter(loader))[0].device", "model.device"])
def test_a_device_that_follows_something_goes_with_its_last_use(given):
    result = migrated(dedent(FOLLOWS.format(given, "", ".to(device)")))
    assert ("device" in result.text) == ("iter(loader)" in given)  # which begins an epoch


def test_where_it_is_read_it_stays():
    source = dedent(FOLLOWS.format("next(model.parameters()).device", "", ".to(device)")) + "    print(device)\n"
    assert "device = next(model.parameters()).device" in migrated(source).text


EMPTIES = "import torch\ndef f(net, x, cuda):\n    {}\n    return net(x)\n"


@pytest.mark.parametrize(
    "block",
    [
        "if cuda:\n        x = x.cuda()\n    else:\n        pass",
        "if not cuda:\n        pass\n    else:\n        x = x.cuda()",
        "with torch.cuda.device(0):\n        x = x.cuda()",
        "if cuda:\n        try:\n            net.cuda()\n        except RuntimeError:\n            print('none')",
        "try:\n        x = x.cuda()\n        net.cuda()\n    except (RuntimeError, AssertionError):\n        pass",
    ],
)
def test_what_stood_around_goes_with_the_last_move(block):
    check(EMPTIES.format(block), EMPTIES.format("#").replace("    #\n", ""), select="PTM101,PTM102")


@pytest.mark.parametrize(
    "block",
    [
        "if cuda:\n        pass",
        "with torch.cuda.device(0):\n        pass",
        "try:\n        pass\n    except RuntimeError:\n        pass",
        "with open(cuda):\n        x = x + 1",
    ],
)
def test_what_was_empty_before_stays(block):
    check_unchanged(EMPTIES.format(block), select="PTM101,PTM102")


@pytest.mark.parametrize(
    ("block", "left"),
    [
        (
            "with torch.cuda.device(0), x.lock:\n        x = x.cuda()",
            "with torch.cuda.device(0), x.lock:\n        pass",
        ),
        ("with net.timer() as t:\n        x = x.cuda()", "with net.timer() as t:\n        pass"),
        (
            "try:\n        x = x.cuda()\n    finally:\n        net.close()",
            "try:\n        pass\n    finally:\n        net.close()",
        ),
    ],
)
def test_what_does_something_itself_stays(block, left):
    check(EMPTIES.format(block), EMPTIES.format(left), select="PTM101,PTM102")


@pytest.mark.parametrize("flag", ["not use_cuda", "use_cuda and True", "bare or not use_cuda"])
def test_a_flag_of_a_flag_goes_with_its_last_use(flag):
    before = f"import torch\nbare = False\nuse_cuda = torch.cuda.is_available()\nflag = {flag}\n"
    check(before + "if not flag:\n    net = net.cuda()\ngo(net)\n", "import torch\nbare = False\ngo(net)\n")


def test_a_flag_of_other_things_stays():
    kept = "import torch\nbare = ask()\nflag = not bare\n"
    check(kept + "if not flag:\n    net = net.cuda()\ngo(net)\n", kept + "go(net)\n")
