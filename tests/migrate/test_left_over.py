"""Seen, not handled: what the linter still finds in a result about devices, pickling and distribution is told of."""

from pathlib import Path

import pytest
from ptmigrate.lint_rules.engine import Linter
from ptmigrate.lint_rules.registry import all_rules
from ptmigrate.lint_rules.rule import examples
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.facts.source import decode
from ptmigrate.migrate.left_over import left_over
from ptmigrate.migrate.line_map import line_map
from ptmigrate.migrate.migrate import Options, migrate_text, what_is_there
from ptmigrate.migrate.project import collect, migrate_all
from ptmigrate.migrate.report import Note

FIXTURES = sorted((Path(__file__).parents[2] / "fixtures").rglob("*.py"))
RULES = [r for r in all_rules() if r.code[3] in "124" and not r.lesser]
BAD = [(r.code, text) for r in all_rules() for text in examples(r.BAD)]


def found(text):
    return Linter(RULES, report_unused=False).lint_bytes(text.encode(), "x.py")


def silent(text, **options):
    """The findings in the result of a text that its report does not speak of."""
    result = migrate_text(text, Options(**options))
    line = line_map(result.text, text)
    told = {n.line for n in result.attention}
    return [f for f in found(result.text) if line(f.line) not in told and ".own_device(" not in _line(result.text, f)]


def _line(text, finding):
    return text.splitlines()[finding.line - 1]


@pytest.mark.parametrize("code,text", BAD)
@pytest.mark.parametrize("plan", ["auto", "loop"])
def test_nothing_that_a_rule_was_made_for_is_left_silently(code, text, plan):
    assert not silent(text, plan=plan)


@pytest.mark.parametrize("path", FIXTURES, ids=lambda p: p.stem)
def test_nothing_is_left_silently_in_whole_scripts(path):
    text = decode(path.read_bytes()).text
    assert "torch" not in text or not silent(text)


REFUSED = [
    "import torch\nimport torch.distributed.rpc as rpc\nrpc.init_rpc('m', rank=0)\nx = x.cuda()\nloss.backward()\n",
    "import torch, deepspeed\nm, o, _, _ = deepspeed.initialize(model=m)\nfor x in y:\n    m(x.cuda()).backward()\n",
]


@pytest.mark.parametrize("text", REFUSED)
def test_all_of_a_refused_script_is_told(text):
    result = migrate_text(text)
    assert result.plan == "refused" and result.text == text and found(text) and not silent(text)


def test_all_of_the_modules_of_a_refused_script_is_told(tmp_path):
    (tmp_path / "train.py").write_text(REFUSED[0] + "import net\n")
    (tmp_path / "net.py").write_text("import torch\ndef f(x):\n    return x.to('cuda:1')\n")
    done = {m.path.name: m.report for m in migrate_all(collect([tmp_path / "train.py"]), Options())}
    assert not done["net.py"].changed and [(n.code, n.line) for n in done["net.py"].attention] == [("PTM101", 3)]


def test_a_script_that_another_library_carries_is_told_of_too():
    text = "import torch\nfrom accelerate import Accelerator\nacc = Accelerator()\nx = x.to('cuda:0')\n"
    result = migrate_text(text)
    assert result.plan == "none" and [(n.code, n.line) for n in result.attention] == [("PTM101", 4)]


def test_a_note_hides_nothing_of_another_theme():
    facts = Facts("import torch\nx = x.cuda()\n")
    others = [Note(2, 1, code, "") for code in ("PTM104", "PTM401", "PTM703")]
    found = [left_over(facts, [note], lambda n: n, lambda code: True) for note in others]
    assert [[(n.code, n.line) for n in notes] for notes in found] == [[], [("PTM101", 2)], [("PTM101", 2)]]


def test_what_is_left_is_told_at_its_line_in_the_original():
    source = (
        "import threading\nimport torch\nx = x.cuda()\ny = y.cuda()\n"
        "class Data(torch.utils.data.Dataset):\n    def __init__(self):\n        self.lock = threading.Lock()\n"
    )
    result = migrate_text(source, Options(), is_script=False)
    assert [(n.code, n.line) for n in result.attention if n.code == "PTM205"] == [("PTM205", 7)]
    assert [
        (n.code, n.line) for n in migrate_text(source, Options(ignore=("PTM2",))).attention if "205" in n.code
    ] == []


def test_tensors_copied_to_the_host_at_every_step_are_told():
    source = (
        "import torch\nfor x in xs:\n    loss = f(x)\n    loss.backward()\n"
        "    kept.append(loss.detach().cpu().numpy())\n    more.extend(f(x).tolist())\nprint(loss.tolist())\n"
    )
    told = [(n.code, n.line) for n in migrate_text(source, Options(plan="loop")).attention if n.code[:5] == "PTM30"]
    assert told == [("PTM304", 5), ("PTM305", 6)]


GUARDED = "if not rank{0}:\n    dist.barrier()\n"
DEEP = f"import torch.distributed as dist\nx = x.cuda()\n{GUARDED}{GUARDED}"


@pytest.mark.parametrize("depth,told", [(3, [("PTM101", 2), ("PTM409", 4), ("PTM409", 6)]), (600, [("PTM707", 5)])])
def test_a_file_that_is_nested_too_deep_for_the_rules_says_so(depth, told):
    notes = what_is_there(DEEP.format(".T" * depth), Options())
    assert [(n.code, n.line) for n in notes] == told
    assert not what_is_there(DEEP.format(".T" * 600), Options(ignore=("PTM7",)))


def test_the_lines_that_a_rule_names_are_the_originals():
    """`training_step (line 29)` was a line of the result."""
    text = (
        "import torch\nfrom torch import nn\nnet = nn.Linear(2, 2)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
    )
    text += "for x, y in loader:\n    loss = nn.functional.cross_entropy(net(x), y)\n    opt.zero_grad()\n"
    text += "    loss.backward()\n    opt.step()\n    seen.append(loss.detach().cpu().numpy())\n"
    result = migrate_text(text)
    notes = [n.message for n in result.attention if n.code == "PTM304"]
    assert result.plan == "module" and len(notes) == 1
    assert int(notes[0].rpartition("line ")[2].strip(")")) <= 10


def test_a_file_that_asks_nothing_of_the_runtime_makes_none():
    helper = "import torch\ndef tell(x):\n    print('loss', x)\n    return torch.ones(3)\n"
    result = migrate_text(helper, is_script=False, kept=True)
    assert "Runtime.shared()" not in result.text


def test_a_card_by_its_number_is_told_beside_what_reads_it():
    text = "import torch\n\n\ndef main(make):\n    device = 'cuda:0'\n    net = torch.nn.Linear(1, 1).to(device)\n"
    told = [(n.line, n.code) for n in migrate_text(text + "    return make(net, device)\n").attention]
    assert told == [(5, "PTM102"), (5, "PTM101")]


SPLIT = (
    "import torch\nfrom torch.utils.data import random_split\n\n\ndef halves(d):\n    return random_split(d, [4, 4])\n"
)
USES = (
    "import torch\nfrom halves import halves\n\na, b = halves(torch.ones(8, 2))\nnet = torch.nn.Linear(2, 1)\n"
    "optimizer = torch.optim.SGD(net.parameters(), 0.1)\nfor epoch in range(2):\n"
    "    for x in torch.utils.data.DataLoader(a, 2):\n        loss = net(x).sum()\n        optimizer.zero_grad()\n"
    "        loss.backward()\n        optimizer.step()\n        print(loss.item())\n"
)


@pytest.mark.parametrize(("framework", "told"), [("ptmigrate", False), ("lightning", True)])
def test_on_the_runtime_one_split_is_every_process_s(tmp_path, framework, told):
    (tmp_path / "halves.py").write_text(SPLIT + "\n\ndef tell(x):\n    print(x)\n")
    (tmp_path / "train.py").write_text(USES)
    here = USES.replace("from halves", "from torch.utils.data import random_split #").replace(
        "halves(", "random_split("
    )
    options = Options(framework=framework)
    done = migrate_all(collect([tmp_path / "train.py"]), options)
    assert done[0].report.plan == "module"
    assert any(n.code == "PTM414" for m in done for n in m.report.attention) is told
    alone = migrate_text(here.replace("torch.ones(8, 2))", "torch.ones(8, 2), [4, 4])"), options)
    assert alone.plan == "module" and any(n.code == "PTM414" for n in alone.attention) is told
