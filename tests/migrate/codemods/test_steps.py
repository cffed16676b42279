import pytest
from helpers import check, check_unchanged

LIT = "import torch\nimport pytorch_lightning as pl\nclass Lit(pl.LightningModule):\n"
LOOP = "import torch\nfor x, y in train_loader:\n    loss = f(model(x), y)\n    optimizer.step()\n"


def test_empty_cache_at_every_step():
    check(LOOP + "    torch.cuda.empty_cache()\n", LOOP, ["PTM309 line 5"], select="PTM309")


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ntorch.cuda.empty_cache()\n",
        LOOP + "torch.cuda.empty_cache()\n",
        LOOP + "    if i % 100 == 0:\n        torch.cuda.empty_cache()\n",
        LOOP + "    x = torch.cuda.empty_cache()\n",
        LOOP + "    try:\n        go(x)\n    except RuntimeError:\n        torch.cuda.empty_cache()\n",
        LOOP + "    oom = full(x)\n    if oom:\n        torch.cuda.empty_cache()\n",
        LOOP + "    if torch.cuda.memory_reserved() > most:\n        torch.cuda.empty_cache()\n",
    ],
)
def test_empty_cache_now_and_then_stays(source):
    check_unchanged(source, [], select="PTM309")


SHARDED = (
    "import torch\nfrom fairscale.nn.data_parallel import ShardedDataParallel\n"
    "model = ShardedDataParallel(net, optimizer)\n"
)


def test_sharded_gradients_are_zeroed_not_let_go():
    source = SHARDED + "optimizer.zero_grad()\n"
    check(source, source.replace("()\n", "(set_to_none=False)\n"), ["PTM510 line 4"], select="PTM510")


@pytest.mark.parametrize(
    "source",
    [
        SHARDED + "optimizer.zero_grad(set_to_none=False)\n",
        SHARDED.replace("= Sharded", "= Other") + "optimizer.zero_grad()\n",
        "import torch\noptimizer.zero_grad()\n",
    ],
)
def test_zero_grad_elsewhere_is_torchs(source):
    check_unchanged(source, [], select="PTM510")


def test_zero_grad_goes_from_an_automatic_step():
    step = "    def training_step(self, batch, i):\n        {}return self(batch)\n"
    check(LIT + step.format("self.opt.zero_grad()\n        "), LIT + step.format(""), ["PTM505 line 5"])


def test_zero_grad_now_and_then_in_an_automatic_step_goes_too():
    step = "    def training_step(self, batch, i):\n        {}return self(batch)\n"
    now = "if i % 4 == 0:\n            self.opt.zero_grad()\n        "
    check(LIT + step.format(now), LIT + step.format(""), ["PTM505 line 5"])
    check_unchanged(LIT + step.format(now.replace("i % 4 == 0", "self.is_late(i)")))
    counts = "if i % 4 == 0:\n            self.n += 1\n            {}"
    both = step.format(counts.format("self.opt.zero_grad()\n        "))
    check(LIT + both, LIT + both.replace("            self.opt.zero_grad()\n", ""), ["PTM505 line 7"])


def test_the_name_of_the_optimizer_goes_with_its_last_use():
    step = "    def training_step(self, batch, i):\n        {}return self(batch)\n"
    taken = "opt = self.optimizers()\n        "
    zeroed = "opt.zero_grad()\n        "
    check(LIT + step.format(taken + zeroed), LIT + step.format(""), ["PTM505 line 5", "PTM505 line 6"])
    pair = "a, b = self.optimizers()\n        a.zero_grad()\n        b.zero_grad()\n        "
    check(LIT + step.format(pair), LIT + step.format(""))
    read = "self.log('lr', opt.param_groups[0]['lr'])\n        "
    check(LIT + step.format(taken + zeroed + read), LIT + step.format(taken + read), ["PTM505 line 6"])
    other = "opt = self.other()\n        "
    check(LIT + step.format(other + zeroed), LIT + step.format(other), ["PTM505 line 6"])
    check_unchanged(LIT + step.format(taken))


def test_a_zero_grad_of_an_own_class_stays():
    made = "class Meter:\n    def zero_grad(self):\n        self.v = 0\n"
    step = "    def __init__(self):\n        super().__init__()\n        self.meter = Meter()\n"
    step += "    def training_step(self, batch, i):\n        self.meter.zero_grad()\n        return self(batch)\n"
    check_unchanged(LIT + step + made)
    check(LIT + step, LIT + step.replace("        self.meter.zero_grad()\n", ""))  # of a class that is not seen


@pytest.mark.parametrize(
    "source",
    [
        "    def training_step(self, b, i):\n        self.optimizers().zero_grad()\n"
        "        self.manual_backward(self(b))\n",
        "    automatic = 1\n    def fit(self):\n        self.opt.zero_grad()\n",
        "    def optimizer_zero_grad(self, e, i, o):\n        o.zero_grad()\n"
        "    def training_step(self, b, i):\n        self.opt.zero_grad()\n        return self(b)\n",
        "    def optimizer_zero_grad(self, e, i, o):\n        pass\n\n\nclass Child(Lit):\n"
        "    def training_step(self, b, i):\n        self.opt.zero_grad()\n        return self(b)\n",
        "    def training_step(self, b, i):\n        (opt := self.optimizers()).zero_grad()\n"
        "        return self(b, opt)\n",
    ],
)
def test_zero_grad_stays(source):
    check_unchanged(LIT + source)


def test_gradients_that_a_sharded_script_lets_go_of_are_told():
    check_unchanged(SHARDED + "optimizer.zero_grad(set_to_none=True)\n", ["PTM510 line 4: `optimizer.zero_grad"])


def test_zeros_that_the_step_looks_at_stay():
    step = "    def training_step(self, batch, i):\n        self.opt.zero_grad(set_to_none=False)\n"
    look = "        n = [p.grad.norm() for p in self.parameters() if p.grad is not None]\n        return self(batch)\n"
    check_unchanged(LIT + step + look, [], select="PTM505")
    write = "        for p in self.parameters():\n            p.grad = None\n        return self(batch)\n"
    check(LIT + step + write, LIT + step.splitlines(True)[0] + write, ["PTM505 line 5"])


ZEROED = "    def training_step(self, batch, i):\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "for opt in self.optimizers():\n            opt.zero_grad()\n        return self(batch)",
            "return self(batch)",
        ),
        (
            "if i == 0:\n            self.g.zero_grad()\n            return self(batch)\n        return batch",
            "if i == 0:\n            return self(batch)\n        return batch",
        ),
        (
            "with torch.no_grad():\n            self.zero_grad()\n            z = batch * 2\n        return self(z)",
            "with torch.no_grad():\n            z = batch * 2\n        return self(z)",
        ),
    ],
)
def test_zeros_in_a_block_of_the_step(before, after):
    check(LIT + f"{ZEROED}        {before}\n", LIT + f"{ZEROED}        {after}\n", select="PTM505")


def test_zeros_that_take_back_what_is_accumulated_are_told():
    step = f"{ZEROED}        self.zero_grad()\n        return self(batch)\n\n\n"
    trainer = "trainer = pl.Trainer(accumulate_grad_batches={})\n"
    check_unchanged(LIT + step + trainer.format(4), ["PTM505 line 5: `self.zero_grad()`: it takes back"], "PTM505")
    check(LIT + step + trainer.format(1), LIT + step.replace("        self.zero_grad()\n", "") + trainer.format(1))


@pytest.mark.parametrize(
    "line", ["optimizer.zero_grad(set_to_none=fast)", "optimizer.zero_grad(**how)", "p.grad = None"]
)
def test_what_may_let_go_of_a_sharded_gradient_is_told(line):
    check_unchanged(SHARDED + line + "\n", ["PTM510 line 4"], select="PTM510")


@pytest.mark.parametrize(
    ("line", "of"),
    [
        ("try:\n            opt.zero_grad()\n        except ValueError:\n            pass", "opt.zero_grad()"),
        ("list(map(lambda o: o.zero_grad(), [opt]))", "o.zero_grad()"),
        ("self.reset(opt)", "it.zero_grad()"),
        ("reset(opt)", "opt.zero_grad()"),
    ],
)
def test_zeros_that_stay_in_an_automatic_step_are_told(line, of):
    step = f"{ZEROED}        opt = self.opt\n        {line}\n        return self(batch)\n\n\n"
    own = "    def reset(self, it):\n        it.zero_grad()\n\n\n" if "self" in line else ""
    own += "def reset(opt):\n    opt.zero_grad()\n" if line.startswith("reset") else ""
    result = check_unchanged(LIT + step + own, select="PTM505")
    assert [n.message.split(":")[0] for n in result.attention] == [f"`{of}`"]
