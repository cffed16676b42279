"""T6 on Lightning, which lost dp and `*_step_end` with 2.0: a step is split for a Trainer that asks for dp."""

import pytest
from cut_steps import HEAD, end, step
from helpers import check, check_unchanged, migrated
from ptmigrate.migrate.codemods.split_steps import SplitSteps
from ptmigrate.migrate.facts.other_files import OtherFile
from ptmigrate.migrate.facts.script import Facts

PACKAGES = ["pytorch_lightning", "lightning", "lightning.pytorch"]
MIXED = "return self(batch).softmax(0).sum()"
OPTION = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--strategy', {})\nargs = p.parse_args()\n"
MAY = OPTION.format("choices=['dp', 'ddp']")


def lit(package: str = "pytorch_lightning") -> str:
    return HEAD.replace("ptmigrate.runtime as pl", f"{package} as pl") + step(MIXED)


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("given", ["strategy='dp', devices=2", "accelerator='ddp2'", "distributed_backend='dp'"])
def test_a_trainer_that_names_dp_is_heard(package, given):
    trainer = f"\n\npl.Trainer({given})\n"
    head = HEAD.replace("ptmigrate.runtime as pl", f"{package} as pl")
    after = head + step("return self(batch)") + end("return output.softmax(0).sum()", "output") + trainer
    check(head + step(MIXED) + trainer, after, attention=[], select="PTM430")


@pytest.mark.parametrize(
    "trainer",
    [
        "pl.Trainer(strategy=args.strategy)",
        "pl.Trainer(strategy='dp' if args.two else None)",
        "mode = 'dp'\npl.Trainer(strategy=mode)",
        "pl.Trainer(strategy=pl.strategies.DataParallelStrategy())",
        "pl.Trainer(devices=1)\npl.Trainer(strategy='dp')",
        "kw = {'accelerator': 'dp', 'gpus': 2}\npl.Trainer(**kw)",
        "pl.Trainer(**dict(devices=2, strategy='dp'))",
    ],
)
def test_dp_by_another_name(trainer):
    source = lit() + "\n\n" + OPTION.format("default='dp'") + trainer + "\n"
    assert "training_step_end" in migrated(source, "PTM430").text


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize(
    "trainer",
    [
        "pl.Trainer(max_epochs=2, accelerator='cpu')",
        "pl.Trainer(strategy='ddp', devices=2)",
        "pl.Trainer(strategy=pl.strategies.DDPStrategy())",
        "pl.Trainer(strategy=args.strategy)",
        "mode = 'ddp' if args.two else 'auto'\npl.Trainer(strategy='ddp' if args.two else 'auto')",
        "pl.Trainer(strategy='ddp', **vars(args))",
        "kw = dict(accelerator='ddp', gpus=2)\npl.Trainer(**kw)",
    ],
)
def test_a_trainer_that_asks_for_no_parts_has_the_step_as_it_was(package, trainer):
    check_unchanged(lit(package) + "\n\n" + OPTION.format("default='ddp'") + trainer + "\n", [], select="PTM430")


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize(
    "given", ["", "Trainer(**vars(args))", "Trainer.from_argparse_args(args)", "Trainer(strategy=args.strategy)"]
)
def test_where_it_does_not_show_the_step_stays_and_that_is_told(package, given):
    result = check_unchanged(lit(package) + "\n\n" + (MAY + "pl." + given if given else ""), select="PTM430")
    assert ["2.0" in n.message for n in result.attention] == [True]


@pytest.mark.parametrize(
    ("trainer", "cuts", "tells"),
    [
        ("pl.Trainer(strategy='dp')", True, 0),
        ("pl.Trainer(devices=1)", False, 0),
        ("print(1)", False, 1),
    ],
)
def test_the_trainer_of_another_file(trainer, cuts, tells):
    facts = Facts(lit())
    facts.others = (OtherFile("main", f"import pytorch_lightning as pl\nfrom net import Net\n\n{trainer}\n"),)
    kind = SplitSteps()
    assert bool(list(kind.plan(facts))) == cuts
    assert len(list(kind.notes(facts))) == tells


def test_a_base_of_another_file_that_is_of_the_runtime():
    base = OtherFile("base", "import ptmigrate.runtime as pl\n\n\nclass Base(pl.Module):\n    pass\n")
    source = (
        lit()
        .replace("(pl.LightningModule)", "(Base)")
        .replace("import pytorch_lightning as pl", "from base import Base")
    )
    facts = Facts(source + "\n    def configure_optimizers(self):\n        return None\n")
    facts.others = (base,)
    assert list(SplitSteps().plan(facts))


def test_a_weighted_loss_that_lightning_runs_stays():
    body = "x, y = batch\nreturn F.cross_entropy(self(x), y, weight=self.w)"
    source = lit().replace(step(MIXED), step(body)) + "\n\npl.Trainer(accelerator='cpu')\n"
    check_unchanged(source, [], select="PTM430")
