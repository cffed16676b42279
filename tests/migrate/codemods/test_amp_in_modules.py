import pytest
from helpers import check, check_unchanged, migrated

HEAD = "import torch\nimport pytorch_lightning as pl\n"
STEP = "class Lit(pl.LightningModule):\n    def training_step(self, batch, i):\n"
TRAINER = "trainer = pl.Trainer(devices=2{})\n"


@pytest.mark.parametrize(
    ("context", "precision"),
    [
        ("torch.cuda.amp.autocast()", "16-mixed"),
        ("torch.autocast('cuda', dtype=torch.bfloat16)", "bf16-mixed"),
        ("torch.amp.autocast('cuda')", "16-mixed"),
    ],
)
def test_the_trainer_is_told(context, precision):
    check(
        HEAD
        + STEP
        + f"        with {context}:\n            # half\n            loss = self(batch)\n        return loss\n"
        + TRAINER.format(""),
        HEAD
        + STEP
        + "        # half\n        loss = self(batch)\n        return loss\n"
        + TRAINER.format(f', precision="{precision}"'),
    )


@pytest.mark.parametrize("above", ["", "    @torch.no_grad()\n"])
def test_a_step_with_a_decorator(above):
    step = STEP.replace("    def", f"    # half\n{above}    @torch.autocast('cuda')\n    def")
    after = STEP.replace("    def", f"    # half\n{above}    def")
    body = "        return self(batch)\n"
    check(HEAD + step + body + TRAINER.format(""), HEAD + after + body + TRAINER.format(', precision="16-mixed"'))


SCALED = """\
class Lit(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.scaler = torch.amp.GradScaler("cuda")

    def training_step(self, batch, i):
        opt = self.optimizers()
        with torch.autocast("cuda"):
            loss = self(batch)
        self.scaler.scale(loss / 2).backward()
        if i % 2:
            self.scaler.step(opt)
            self.scaler.update()
            opt.zero_grad()
"""


def test_a_scaler_of_the_module_goes_with_its_autocast():
    after = SCALED.replace('        self.scaler = torch.amp.GradScaler("cuda")\n', "")
    after = after.replace('        with torch.autocast("cuda"):\n            loss', "        loss")
    after = after.replace("self.scaler.scale(loss / 2).backward()", "self.manual_backward(loss / 2)")
    after = after.replace("self.scaler.step(opt)", "opt.step()").replace("            self.scaler.update()\n", "")
    check(HEAD + SCALED + TRAINER.format(""), HEAD + after + TRAINER.format(', precision="16-mixed"'))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.scaler.step(opt)\n", "self.scaler.unscale_(opt)\n            self.scaler.step(opt)\n"),
        ("self.scaler.step(opt)\n", "self.scaler.step(opt)\n            self.scaler.step(self.other)\n"),
        ("self.scaler.update()", "self.log('scale', self.scaler.get_scale())"),
        ('GradScaler("cuda")', 'GradScaler("cuda", init_scale=8.0)'),
        ('GradScaler("cuda")', 'GradScaler("cuda") if HALF else None'),
        ("self.scaler.scale(loss / 2).backward()", "self.manual_backward(self.scaler.scale(loss / 2))"),
    ],
)
def test_a_scaler_that_does_more_keeps_its_autocast(old, new):
    """With the Trainer's precision and the module's own scaler gradients would be scaled twice."""
    assert old in SCALED
    check_unchanged(HEAD + SCALED.replace(old, new) + TRAINER.format(""), ["PTM605 line 7", "PTM605 line 11"], "PTM605")


def test_a_trainer_elsewhere_is_asked_for():
    check(
        HEAD + STEP + "        with torch.cuda.amp.autocast():\n            return self(batch)\n",
        HEAD + STEP + "        return self(batch)\n",
        ["PTM605 line 5"],
        ["PTM605 line 1: pass precision="],
    )


IN_EVALUATION = (
    STEP
    + """        return self(batch)

    def validation_step(self, batch, i):
        with torch.cuda.amp.autocast():
            return self(batch)
"""
)


def test_half_precision_that_training_has_not_is_left_and_told():
    check_unchanged(HEAD + IN_EVALUATION, ["PTM605 line 8: `torch.cuda.amp.autocast()` left as it is"])


def test_half_precision_of_what_training_calls_is_its_own():
    before = IN_EVALUATION.replace("validation_step(self, batch, i)", "forward(self, batch)")
    before = before.replace("            return self(batch)", "            return self.net(batch)")
    after = before.replace("        with torch.cuda.amp.autocast():\n    ", "")
    check(HEAD + before, HEAD + after, None, ["PTM605 line 1: pass precision="])


def test_a_trainer_that_is_told_full_precision_keeps_it():
    source = STEP + "        with torch.cuda.amp.autocast():\n            return self(batch)\n"
    check_unchanged(
        HEAD + source + TRAINER.format(", precision=32"), ["PTM605 line 5: `torch.cuda.amp.autocast()` left"]
    )


def test_full_precision_within_half_stays_and_asks_for_nothing():
    check_unchanged(
        HEAD + STEP + "        with torch.autocast('cuda', enabled=False):\n            return self(batch)\n", []
    )


@pytest.mark.parametrize(
    "source",
    [
        STEP + "        with torch.no_grad():\n            return self(batch)\n",
        STEP + "        with autocast():\n            return self(batch)\n",
        TRAINER.format(", precision=16"),
    ],
)
def test_unchanged(source):
    check_unchanged(HEAD + source, [])


@pytest.mark.parametrize(
    "source",
    [
        "with torch.cuda.amp.autocast():\n    loss = f(x)\n",
        "scaler = torch.cuda.amp.GradScaler()\n",
        "from apex import amp\nmodel, opt = amp.initialize(model, opt)\n",
        *(
            STEP + f"        with {context}:\n            return self(batch)\n"
            for context in (
                "torch.cuda.amp.autocast(enabled=self.half)",
                "torch.cuda.amp.autocast(False)",
                "torch.autocast('cuda', torch.float16, False)",
                "torch.autocast('cpu')",
                "torch.autocast(**how)",
            )
        ),
    ],
)
def test_left_and_told(source):
    check_unchanged(HEAD + source, ["PTM605 line "])


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("half = autocast if wanted else nullcontext", True),
        ("half = functools.partial(autocast, 'cuda')", True),
        ("holder.half = autocast", True),
        ("half = autocast", False),
        ("def run(half: autocast): ...", False),
    ],
)
def test_one_that_is_handed_on_is_told(line, told):
    source = f"import functools\nfrom torch.cuda.amp import autocast\n{line}\n"
    check_unchanged(source, ["PTM605 line 3: `autocast` left as it is, handed on"] * told, select="PTM605")


def test_a_step_that_computes_in_full_precision_beside_autocast_keeps_it():
    body = "        with torch.autocast('cuda'):\n            z = self(batch)\n        return (z @ z.t()).mean()\n"
    check_unchanged(HEAD + STEP + body + TRAINER.format(""), ["PTM605 line 5"], select="PTM605")


@pytest.mark.parametrize(("within", "told"), [("torch.autocast('cuda')", False), ("torch.no_grad()", True)])
def test_a_step_that_evaluates_in_full_precision_is_told(within, told):
    body = "        with {}:\n            return self(batch)\n"
    source = STEP + body.format("torch.autocast('cuda')")
    source += "\n    def test_step(self, batch, i):\n" + body.format(within)
    result = migrated(HEAD + source + TRAINER.format(""), "PTM605")
    assert 'precision="16-mixed"' in result.text
    assert ["evaluated in full precision" in n.message for n in result.attention] == [True] * told


def test_a_forward_in_half_precision_is_that_of_every_step():
    source = (
        STEP + "        return self(batch)\n\n    def validation_step(self, batch, i):\n        return self(batch)\n"
    )
    source += "\n    @torch.autocast('cuda')\n    def forward(self, batch):\n        return self.net(batch)\n"
    result = migrated(HEAD + source + TRAINER.format(""), "PTM605")
    assert 'precision="16-mixed"' in result.text and not result.attention
