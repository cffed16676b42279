"""T10: loops with apex.amp, before and after: its level O1 is the Trainer's precision, and the rest stays."""

import pytest
import torch
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import run

SCRIPT = """
import torch
from apex import amp
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(12, 2), torch.randn(12, 1)), 4)
model = nn.Linear(2, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
fp16 = {flag}
{begin}
for epoch in range(2):
    for i, (x, y) in enumerate(loader):
        loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
{scaled}
        optimizer.step()
    print(epoch, loss.item())
"""
BEGIN = 'model, optimizer = amp.initialize(model, optimizer, opt_level="O1")'
SCALED = "        with amp.scale_loss(loss, optimizer) as scaled:\n            scaled.backward()"
PLAIN = "        loss.backward()"
CLIPS = "\n        nn.utils.clip_grad_norm_({}, 0.1)"
CHOSEN = """\
        if fp16:
            with amp.scale_loss(loss, optimizer) as scaled:
                scaled.backward()
        else:
            loss.backward()"""


def script(begin: str = BEGIN, scaled: str = SCALED, flag: str = "True") -> str:
    return SCRIPT.format(begin=begin, scaled=scaled, flag=flag)


@pytest.mark.parametrize(
    ("begin", "scaled", "precision"),
    [
        (BEGIN, SCALED, '"16-mixed" if torch.cuda.is_available() else "32-true"'),
        (BEGIN.replace('opt_level="O1"', "verbosity=0"), SCALED, '"16-mixed" if torch.cuda.is_available()'),
        (BEGIN, SCALED + CLIPS.format("amp.master_params(optimizer)"), "gradient_clip_val=0.1, precision="),
        (f"if fp16:\n    {BEGIN}", CHOSEN, '"16-mixed" if fp16 and torch.cuda.is_available() else "32-true"'),
    ],
)
def test_level_o1_is_the_trainers(begin, scaled, precision):
    result = migrate_text(script(begin, scaled))
    assert precision in result.text and "amp." not in result.text and ".cuda()" not in result.text
    assert result.plan == "module" and not result.attention
    assert migrate_text(result.text).text == result.text
    clips = CLIPS.format("model.parameters()") if "clip" in scaled else ""
    plain = script("", PLAIN + clips).replace("from apex import amp\n", "").replace(".cuda()", "")
    before, after = run(plain), run(result.text)
    assert before.losses == after.losses
    assert all(torch.equal(a, b) for a, b in zip(before.parameters, after.parameters, strict=True))


@pytest.mark.parametrize(
    ("begin", "scaled"),
    [
        (BEGIN.replace("O1", "O2"), SCALED),
        (BEGIN.replace('"O1"', "level"), SCALED),
        (BEGIN.replace("O1", 'O1", loss_scale="128'), SCALED),
        (BEGIN, SCALED.replace("optimizer)", "optimizer, delay_unscale=True)")),
        (BEGIN, SCALED.replace("optimizer)", "other)")),
        (BEGIN, SCALED + "\n            print(scaled)"),
        (BEGIN, SCALED + "\n        (loss * 2).backward()"),
        (BEGIN, SCALED + "\n        print(amp.state_dict())"),
        (BEGIN, SCALED + CLIPS.format("amp.master_params(other)")),
        (BEGIN, CHOSEN),
        (f"if fp16:\n    {BEGIN}", SCALED),
        (f"if fp16:\n    {BEGIN}", CHOSEN.replace("            loss.b", "            (loss / 2).b")),
    ],
)
def test_what_the_trainer_does_not_do_stays_and_is_told(begin, scaled):
    """The model is on a GPU when apex is given it, or it raises."""
    source = script(begin, scaled)
    result = migrate_text(source)
    assert "amp.initialize(" in result.text and "amp.scale_loss(" in result.text
    assert "Linear(2, 1).cuda()" in result.text or "Linear(2, 1).to(runtime.device)" in result.text
    assert "PTM605" in {n.code for n in result.attention}
    assert migrate_text(result.text).text == result.text


PARSER = """\
import argparse
parser = argparse.ArgumentParser()
parser.add_argument('--fp16', action='store_true')
parser.add_argument('--opt-level', default={level!r})
args = parser.parse_args()
"""
ASKED = """\
if args.fp16:
    {imports}
    model, optimizer = amp.initialize(model, optimizer, opt_level=args.opt_level)"""
IMPORTS = (
    "from apex import amp",
    "try:\n        from apex import amp\n    except ImportError:\n        raise ImportError('install apex')",
)
CLIPPED = (
    CHOSEN
    + """
        if args.fp16:
            nn.utils.clip_grad_norm_(amp.master_params(optimizer), 0.1)
        else:
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)"""
)


def asked(imports: str, scaled: str, level: str = "O1", alone: str = "") -> str:
    """A script whose options say whether there is apex, and its level; nothing is imported without."""
    text = script(ASKED.format(imports=imports) + alone, scaled.replace("if fp16", "if args.fp16"))
    return PARSER.format(level=level) + text.replace("from apex import amp\n", "", 1).replace("fp16 = True\n", "")


@pytest.mark.parametrize("imports", IMPORTS)
@pytest.mark.parametrize("scaled", [CHOSEN, CLIPPED])
@pytest.mark.parametrize("alone", ["", "\nif args.fp16:\n    from apex import amp"])
def test_a_level_that_an_option_says_is_o1_or_none(imports, scaled, alone):
    result = migrate_text(asked(imports, scaled, alone=alone))
    precision = '"16-mixed" if args.fp16 and args.opt_level != "O0" and torch.cuda.is_available() else "32-true"'
    assert result.plan == "module" and precision in result.text
    assert "amp." not in result.text and "apex" not in result.text and ".cuda()" not in result.text
    told = [n for n in result.attention if n.code == "PTM605"]
    assert len(told) == 1 and "O2 and O3 train as O1 does" in told[0].message
    clips = CLIPS.format("model.parameters()") if "clip" in scaled else ""
    plain = script("", PLAIN + clips).replace("from apex import amp\n", "").replace(".cuda()", "")
    assert run(plain).losses == run(result.text).losses


@pytest.mark.parametrize(
    "text",
    [
        asked(IMPORTS[0], CHOSEN, level="O2"),
        asked(IMPORTS[0], CHOSEN).replace("opt_level=args.opt_level", "opt_level=other.level"),
        asked(IMPORTS[0], CLIPPED).replace("(model.parameters(), 0.1)", "(model.parameters(), 0.2)"),
        asked(IMPORTS[0] + "\n    print('half')", CHOSEN),
        asked(IMPORTS[1].replace("raise ImportError('install apex')", "amp = None"), CHOSEN),
    ],
    ids=["begins at O2", "no option", "clips otherwise", "says so", "goes on without"],
)
def test_an_option_that_says_something_else_stays_and_is_told(text):
    result = migrate_text(text)
    assert "amp.initialize(" in result.text and "PTM605" in {n.code for n in result.attention}
    assert migrate_text(result.text).text == result.text


@pytest.mark.parametrize("also", ["", "        if not fp16:\n            loss.backward()\n"])
def test_an_optimizer_that_takes_the_gradients_itself_keeps_its_loop(also):
    begin = "from apex.fp16_utils import FP16_Optimizer\noptimizer = FP16_Optimizer(optimizer, dynamic_loss_scale=True)"
    result = migrate_text(script(begin, also + "        optimizer.backward(loss)"))
    assert result.plan == "loop" and "        optimizer.backward(loss)\n" in result.text
    assert result.text.count("runtime.backward(loss)") == bool(also)
    told = [n.message for n in result.attention]
    assert sum("`optimizer.backward(loss)` takes the gradients itself" in m for m in told) == 1
    assert any(m.startswith("`FP16_Optimizer(optimizer, dynamic_loss_scale=True)` left as it is") for m in told)
