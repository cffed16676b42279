"""Copies of weights that are made before a Trainer places the model stay where it was, and are told of."""

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text

from tests.migrate.lift.test_same_run import NESTED
from tests.migrate.running import check_same

BEGUN = "\nfor epoch in range(args.epochs):"
CLASS = """
class EMA:
    def __init__(self, model):
        self.shadow = {}
        self.register(model)

    def register(self, model):
        for name, p in model.named_parameters():
            if p.requires_grad:
                self.shadow[name] = p.data.clone()

    def update(self, model):
        for name, p in model.named_parameters():
            self.shadow[name].mul_(0.9).add_(p.data, alpha=0.1)

ema = EMA(model)
"""


def told(text):
    return [n.line for n in migrate_text(text).attention if n.code == "PTM105" and "a copy of weights" in n.message]


@pytest.mark.parametrize(
    "made",
    [
        "first = [p.detach().clone() for p in model.parameters()]\nn = len(first)\n",
        "first = {k: v.clone() for k, v in model.state_dict().items()}\nn = len(first)\n",
        "first = {k: v.clone().to(device) for k, v in model.state_dict().items()}\nn = len(first)\n",
        "first = []\nfor p in model.parameters():\n    first.append(p.clone().detach())\n",
        "def copied(net):\n    return [p.clone() for p in net.parameters()][:2]\nfirst = copied(model)\n",
        CLASS,
    ],
)
def test_copies_made_above_the_loop(made):
    text = NESTED.replace(BEGUN, "\n" + made + BEGUN)
    assert len(told(text)) == 1
    assert not [n for n in migrate_text(text, Options(ignore=("PTM105",))).attention if n.code == "PTM105"]


@pytest.mark.parametrize(
    "made",
    [
        "first = [p.detach().cpu().clone() for p in model.parameters()]\n",
        "first = [p.detach().clone().to('cpu') for p in model.parameters()]\n",
        "sizes = [p.numel() for p in model.parameters()]\n",
        "first = {k: v.clone() for k, v in model.state_dict().items()}\nmodel.load_state_dict(first)\n",
        "first = [x.clone() for x in xs]\n",
        CLASS.replace("ema = EMA(model)\n", ""),
        "for p in model.parameters():\n    q = p.clone()\n    print(q.sum().item())\n",
    ],
)
def test_what_is_no_copy_or_is_not_kept(made):
    assert told(NESTED.replace(BEGUN, "\n" + made + BEGUN)) == []


def test_copies_made_while_it_trains_or_after():
    during = NESTED.replace(
        "        loss = crit", "        kept = [p.clone() for p in model.parameters()]\n        loss = crit"
    )
    after = NESTED + "kept = [p.clone() for p in model.parameters()]\nprint(len(kept))\n"
    assert told(during) == [] and told(after) == []


def test_the_run_is_the_same():
    average = NESTED.replace(BEGUN, CLASS + BEGUN).replace(
        "optimizer.step()\n", "optimizer.step()\n        ema.update(model)\n"
    )
    check_same(average + "print(sorted(float(v.sum()) for v in ema.shadow.values()))\n", "manual")
