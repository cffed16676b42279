"""T9: names of a wrapped model's parameters, which nothing wraps any more, are told of."""

import pytest
from helpers import migrated

HEAD = """import torch
from torch.nn.parallel import DistributedDataParallel as DDP
torch.distributed.init_process_group('gloo')
model = WRAPPED
"""
LOOP = "for n, p in model.named_parameters():\n    "


def told(wrapped: str, lines: str) -> list[int]:
    result = migrated(HEAD.replace("WRAPPED", wrapped) + lines + "\n", "PTM420")
    assert lines in result.text
    return [n.line for n in result.attention if "begin with no `module.`" in n.message and n.line > 4]


@pytest.mark.parametrize(
    "lines",
    [
        "for n in KEPT:\n    heads[n] = n.startswith('module.fc'), model.named_parameters",
        LOOP + "p.requires_grad = n not in ('module.fc.weight', 'bias')",
        LOOP + "names.append(n[7:])",
        LOOP + "names.append(n[len('module.'):])",
        LOOP + "new['module.' + n] = p",
        LOOP + "key = f'module.{n}'",
        LOOP + "new['module.%s' % n] = p",
        LOOP + "new['module.{}'.format(n)] = p",
        LOOP + "p.data = old.pop('module.' + n)",
        "a = 1\nmodel.load_state_dict({f'module.{k}': v for k, v in state.items()})",
    ],
)
def test_told(lines):
    """Every parameter was frozen, or none: no name began so."""
    assert told("DDP(model)", lines) == [6]
    assert told("torch.nn.DataParallel(model)", lines) == [6]
    assert told("build()", lines) == []


@pytest.mark.parametrize(
    "lines",
    [
        LOOP + "names.append(n[7:] if n.startswith('module.') else n)",
        LOOP + "names.append(n.replace('module.', ''))",
        LOOP + "names.append(n[7:9] + n[8:])",
        LOOP + "print(f'module.{n}')",
        LOOP + "found = importlib.import_module('module.' + n)",
        LOOP + "path = f'{n}/module.'",
        LOOP + "new['net.' + n] = p",
        LOOP + "print('module. Its name is', n)",
        LOOP + "p.requires_grad = 'fc' in n",
    ],
)
def test_what_asks_or_says_no_such_name(lines):
    assert told("DDP(model)", lines) == []


RESUME = """state = torch.load('last.pt')
model.load_state_dict(state)
torch.save(SAVED, 'last.pt')
"""


@pytest.mark.parametrize(
    ("saved", "is_told"),
    [
        ("model.module.state_dict()", False),
        ("{'net': model.module.state_dict(), 'epoch': 1}", False),
        ("model.state_dict()", True),
        ("model.state_dict() if wrapped else model.module.state_dict()", True),
        ("None", True),
    ],
)
def test_a_state_that_is_saved_of_what_is_wrapped_has_plain_keys(saved, is_told):
    result = migrated(HEAD.replace("WRAPPED", "DDP(model)") + RESUME.replace("SAVED", saved), "PTM420")
    assert bool([n for n in result.attention if "saved of the wrapped one" in n.message]) is is_told


RATE = """import torch
torch.distributed.init_process_group('gloo')
world = torch.distributed.get_world_size()
total = 8 * args.accumulate * world
LINE
"""


@pytest.mark.parametrize(
    ("line", "is_told"),
    [
        ("args.lr = args.blr * total / 256", True),
        ("opt = torch.optim.SGD(params, lr=0.1 * total)", True),
        ("lr = 0.1\nprint(total, lr)", False),
        ("steps = len(data) // total", False),
    ],
)
def test_a_rate_that_is_scaled_by_way_of_a_name_is_told(line, is_told):
    result = migrated(RATE.replace("LINE", line), "PTM420")
    assert "total = 8 * args.accumulate\n" in result.text
    assert [n.line for n in result.attention if "the rate was scaled" in n.message] == [4] * is_told


IN_PLACE = """import torch
torch.distributed.init_process_group('gloo')
world = torch.distributed.get_world_size()
rank = torch.distributed.get_rank()
LINE
print(args)
"""


@pytest.mark.parametrize(
    ("line", "goes", "is_told"),
    [
        ("args.lr *= world", True, True),
        ("lr *= torch.distributed.get_world_size()", True, True),
        ("args.batch_size //= world", True, False),
        ("args.batch_size /= world", True, False),
        ("args.seed += rank", True, False),
        ("args.lr *= 2", False, False),
        ("args.batch_size -= world", False, False),
        ("args.seed *= 3 + rank", False, False),
        ("args.names[0] += rank", False, False),
    ],
)
def test_what_is_scaled_in_place(line, goes, is_told):
    result = migrated(IN_PLACE.replace("LINE", line), "PTM420")
    target = line.split()[0]
    assert (f"\n{target} " not in result.text) is goes
    assert [n.line for n in result.attention if "the rate was scaled" in n.message] == [5] * is_told
    compile(result.text, "result", "exec")


def test_one_alone_in_its_block_goes_with_it():
    text = IN_PLACE.replace("LINE", "if world > 1:\n    args.lr *= world\nfor _ in range(2):\n    args.lr *= world")
    compile(migrated(text, "PTM420").text, "result", "exec")


@pytest.mark.parametrize(
    ("test", "after"),
    [
        ("'module.fc' in n", "n.startswith('fc')"),
        ("'module.fc' not in n", "not n.startswith('fc')"),
        ("n == 'module.fc.weight'", "n == 'fc.weight'"),
        ("n.startswith('module.fc')", "n.startswith('fc')"),
        ("(not n.startswith('module.fc'))", "(not n.startswith('fc'))"),
    ],
)
def test_what_the_names_are_compared_with_loses_its_prefix(test, after):
    """No parameter was frozen: `module.fc` was in no name."""
    lines = LOOP + f"p.requires_grad = {test}\n" + f"heads = [p for n, p in model.named_parameters() if {test}]\n"
    result = migrated(HEAD.replace("WRAPPED", "DDP(model)") + lines, "PTM420")
    assert result.text.count(after) == 2 and "module." not in result.text
    assert not [n for n in result.attention if n.line > 4]


@pytest.mark.parametrize(
    "lines",
    [
        LOOP + "rates.append(by[n.split('.')[1]])",
        LOOP + "rates.append(by['.'.join(n.split('.')[1:])])",
        "for i, (n, p) in enumerate(model.named_parameters()):\n    rates.append(by[n.split('.')[1]])",
        "for child in model.children():\n    child.eval()",
        "for n, child in model.named_children():\n    child.eval()",
        "for i, m in enumerate(model.modules()):\n    m.eval()",
        "second = list(model.modules())[1]",
    ],
)
def test_what_counts_parts_is_told(lines):
    result = migrated(HEAD.replace("WRAPPED", "DDP(model)") + lines + "\n", "PTM420")
    assert lines in result.text
    assert ["less deep now" in n.message for n in result.attention if n.line > 4] == [True]


@pytest.mark.parametrize(
    "lines",
    [
        LOOP + "names.append(n.split('.')[-1])",
        "for m in model.modules():\n    m.eval()",
        "for child in model.module.children():\n    child.eval()",
        "for n, p in other.named_parameters():\n    rates.append(by[n.split('.')[1]])",
    ],
)
def test_what_counts_none_is_not(lines):
    result = migrated(HEAD.replace("WRAPPED", "DDP(model)") + lines + "\n", "PTM420")
    assert not [n for n in result.attention if "less deep now" in n.message]


def test_a_model_that_is_wrapped_on_several_cards_alone_has_both_names():
    lines = LOOP + "p.requires_grad = 'module.fc' in n\n"
    wraps = HEAD.replace("model = WRAPPED", "if several:\n    model = DDP(model)")
    assert lines in migrated(wraps + lines, "PTM420").text


@pytest.mark.parametrize("part", ["self.gate_module", "self.module", "parts['gate_module']"])
def test_a_part_whose_name_ends_so_has_the_text_in_its_own(part):
    lines = f"def build(self, parts):\n    {part} = 3\n" + LOOP + "p.requires_grad = 'module.fc' in n\n"
    result = migrated(HEAD.replace("WRAPPED", "DDP(model)") + lines, "PTM420")
    assert "'module.fc' in n" in result.text
    assert [n.line for n in result.attention if "begin with no `module.`" in n.message] == [8]


def test_a_model_of_that_name_in_another_function_is_another():
    lines = "def build():\n    model = load()\n    return list(model.children())\n"
    result = migrated(HEAD.replace("WRAPPED", "DDP(model)") + lines, "PTM420")
    assert not [n for n in result.attention if "less deep now" in n.message]
