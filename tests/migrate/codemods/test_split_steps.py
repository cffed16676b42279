"""T6, by its text and by what it computes: parts put together again give what the whole batch gave."""

import pytest
import torch
from cut_steps import HEAD, end, gathered, net, step
from helpers import check, check_unchanged, migrated


def test_one_value_crosses():
    check(
        HEAD + step("x, y = batch\nz = self(x)\n# of all\np = F.softmax(z, dim=0)  # here\nreturn p.mean()"),
        HEAD
        + step("x, y = batch\nz = self(x)\nreturn z")
        + end("# of all\np = F.softmax(z, dim=0)  # here\nreturn p.mean()", "z"),
        ["PTM430 line 21: `F.softmax(z, dim=0)` mixes the samples of a batch: training_step returns z, "],
    )


@pytest.mark.parametrize(
    ("imported", "made"),
    [
        ("from losses import NCE_Loss", "NCE_Loss()"),
        ("from pytorch_metric_learning import losses", "losses.AngularLoss()"),
        ("import segmentation_models_pytorch as smp", 'smp.losses.DiceLoss(mode="binary")'),
        ("from lightly.loss import NegativeCosineSimilarity", "NegativeCosineSimilarity()"),
    ],
)
def test_a_loss_of_a_package_that_compares_the_samples(imported, made):
    head = HEAD.replace("nn.CrossEntropyLoss()", made)
    check(
        imported + "\n" + head + step("x, y = batch\nz = self(x)\nreturn self.criterion(z)"),
        imported + "\n" + head + step("x, y = batch\nz = self(x)\nreturn z") + end("return self.criterion(z)", "z"),
    )
    called = "from losses import nce_loss\n" + HEAD + step("z = self(batch)\nreturn nce_loss(z)")
    assert "training_step_end" in migrated(called).text


def test_several_values_cross_in_a_dictionary():
    check(
        HEAD + step("a, b = batch\nza, zb = self(a), self(b)\nsim = za @ zb.t()\nreturn sim.logsumexp(1).mean()"),
        HEAD
        + step('a, b = batch\nza, zb = self(a), self(b)\nreturn {"za": za, "zb": zb}')
        + end('za = outputs["za"]\nzb = outputs["zb"]\nsim = za @ zb.t()\nreturn sim.logsumexp(1).mean()', "outputs"),
    )


def test_a_model_call_within_the_operation_stays_in_the_step():
    check(
        HEAD + step("x, y = batch\nreturn torch.softmax(self.encoder(x), 0).mean()"),
        HEAD
        + step("x, y = batch\nreturn self.encoder(x)")
        + end("return torch.softmax(encoder_output, 0).mean()", "encoder_output"),
    )


def test_numbers_and_sizes_are_made_again_and_their_logs_go_with_them():
    check(
        HEAD
        + step("""
            x, y = batch
            z = self(x)
            n = len(x)
            ce = self.criterion(z, y)
            self.log("ce", ce)
            spread = (z - z.mean(0)).pow(2).sum() / n
            return ce + spread
        """),
        HEAD
        + step('x, y = batch\nz = self(x)\nreturn {"x": x, "y": y, "z": z}')
        + end(
            """
            x = outputs["x"]
            y = outputs["y"]
            z = outputs["z"]
            n = len(x)
            ce = self.criterion(z, y)
            self.log("ce", ce)
            spread = (z - z.mean(0)).pow(2).sum() / n
            return ce + spread
        """,
            "outputs",
        ),
    )


def test_statements_that_share_a_line_part_where_the_cut_is():
    check(
        HEAD + step("x, y = batch; z = self(x)\nn = 3; p = z.softmax(0); q = p * n  # of all\nreturn q.mean()"),
        HEAD
        + step("x, y = batch; z = self(x)\nreturn z")
        + end("n = 3\np = z.softmax(0); q = p * n  # of all\nreturn q.mean()", "z"),
    )


def test_a_method_of_what_the_model_gives_is_called_behind_the_cut():
    check(
        HEAD + step("x, y = batch\nz = self(x)\nreturn z.softmax(0).mean() + self.encoder(z).sum()"),
        HEAD
        + step(
            "x, y = batch\nz = self(x)\nencoder_output = self.encoder(z)\n"
            'return {"z": z, "encoder_output": encoder_output}'
        )
        + end(
            'z = outputs["z"]\nencoder_output = outputs["encoder_output"]\n'
            "return z.softmax(0).mean() + encoder_output.sum()",
            "outputs",
        ),
    )


def test_autocast_that_becomes_the_precision_goes_before_the_cut():
    check(
        HEAD + step("with torch.cuda.amp.autocast():\n    z = self(batch)\nreturn z.softmax(0).mean()"),
        HEAD + step("z = self(batch)\nreturn z") + end("return z.softmax(0).mean()", "z"),
    )


def test_validation_and_test_steps_too():
    for kind in ("validation", "test"):
        check(
            HEAD + step("z = self(batch)\nself.log('v', torch.cdist(z, z).mean())", kind),
            HEAD
            + step("z = self(batch)\nreturn z", kind)
            + end("self.log('v', torch.cdist(z, z).mean(), sync_dist=True)", "z", kind),
        )


def test_a_helper_of_several_steps_is_cut_itself():
    helper = "\n    def _shared(self, batch, stage='x'):\n        z = self(batch)\n        {}\n"
    check(
        HEAD
        + step("return self._shared(batch, 'train')")
        + "\n"
        + step("loss = self._shared(batch, stage='val')\nreturn loss", "validation")
        + helper.format("s = z.std(0)\n        self.log(stage + '_s', s.mean())\n        return s.sum()"),
        HEAD
        + step("return self._shared(batch, 'train')")
        + end("return self._shared_end(outputs, stage='train')", "outputs")
        + "\n"
        + step("return self._shared(batch, stage='val')", "validation")
        + end("loss = self._shared_end(outputs, stage='val')\nreturn loss", "outputs", "validation")
        + helper.format("return z")
        + "\n    def _shared_end(self, z, stage='x'):\n"
        + '        """The whole batch, put together again on dp and ddp2."""\n'
        + "        s = z.std(0)\n        self.log(stage + '_s', s.mean(), sync_dist=not self.training)\n"
        + "        return s.sum()\n",
    )


MIXED = [
    "z = self(batch[0])\nreturn z.mean(dim=0).pow(2).sum()",
    "z = self(batch[0])\nreturn z.sum(0).pow(2).sum()",
    "z = self(batch[0])\nreturn torch.sort(z, dim=0)[0][0].sum()",
    "z = self(batch[0])\nreturn self.soft(z).pow(2).sum()",
    "z = self(batch[0])\nreturn z.max(0)[0].pow(2).sum()",
    "z = self(batch[0])\nbest = torch.max(z, dim=0)\nreturn best.values.pow(2).sum()",
    "z = self(batch[0])\nreturn (z - z.mean()).abs().sum()",
    "z = self(batch[0])\nd = z[:, None] - z[None, :]\nreturn d.norm(dim=-1).sum()",
    "x, y = batch\nsame = y.unsqueeze(0) == y.unsqueeze(1)\nz = self(x)\nreturn (z @ z.T)[same].sum()",
    "z = F.normalize(self(batch[0]), dim=1)\nreturn F.cross_entropy(z @ z.transpose(0, 1), torch.arange(z.size(0)))",
    "z = self(batch[0])\nc = torch.einsum('nd,ne->de', z, z)\nreturn c.pow(2).sum()",
    "z = self(batch[0])\nreturn F.cosine_similarity(z.unsqueeze(1), z.unsqueeze(0), dim=-1).pow(2).mean()",
    "z = self(batch[0])\nw = z.exp()\nreturn (w * z).sum() / w.sum()",
    "x, y = batch\nz = torch.cat([self(x), self(x * 2)])\nn = len(x)\nreturn (z[:n] @ z.t()).logsumexp(1).sum()",
    "x, y = batch\nx = torch.cat([x, x * 2], dim=0)\nz = self(x)\nreturn (z @ z.t()).triu(5).pow(2).sum()",
    "x, y = batch\nviews = [x, x * 2, x * 3]\nxs = torch.cat(views)\nz = self(xs)\nreturn (z @ z.t()).triu(7).sum()",
    "x, y = batch\nl = F.cross_entropy(self(x), y)\nz = self(x)\nreturn l + torch.mm(z, z.t()).softmax(1).pow(2).sum()",
    "x, y = batch\nif (z := self(x)) is not None:\n    z = z - z.mean(0)\nreturn z.pow(2).mean()",
    "x, y = batch\nlosses = F.cross_entropy(self(x), y, reduction='none')\nk = int(losses.numel() * 0.7)\n"
    "return losses.topk(k)[0].pow(2).mean()",
    "z = self(batch[0]).pow(2).view(-1)\nbest, _ = z.sort(descending=True)\nreturn best[:3].sum()",
    "x, y = batch\nz = self(x)\noutputs = z * 2\nk = z.shape[1]\nreturn (outputs.cumsum(0)[0] * z.mean(0)).sum() / k",
]


@pytest.mark.parametrize("body", MIXED)
def test_the_parts_put_together_give_the_same_as_the_whole(body):
    source = HEAD + step(body)
    result = migrated(source, "PTM430")
    assert "training_step_end" in result.text and not result.attention, result.attention
    torch.manual_seed(1)
    whole, parts = net(source), net(result.text)
    parts.load_state_dict(whole.state_dict())
    x, y = torch.randn(8, 6), torch.randint(0, 5, (8,))
    expected = whole.training_step((x, y), 0)
    outputs = [parts.training_step((x[at], y[at]), 0) for at in (slice(0, 4), slice(4, 8))]
    loss = parts.training_step_end(gathered(outputs))
    assert loss.dtype == expected.dtype and loss.shape == expected.shape
    torch.testing.assert_close(loss, expected)
    one = parts.training_step_end(parts.training_step((x, y), 0))
    assert torch.equal(one, expected), "on one device, bit for bit"
    expected.backward()
    loss.backward()
    for a, b in zip(whole.parameters(), parts.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad)


BANK = '        self.register_buffer("bank", torch.zeros(5, 40))\n\n    def forward('


@pytest.mark.parametrize(
    "kept",
    [
        "self.bank = torch.cat([self.bank[:, len(z):], z.t()], dim=1)",
        "self.bank[:, :len(z)] = z.t()",
        "self.bank += z.sum()",
        "self.bank[0].copy_(z)",
    ],
)
def test_a_buffer_gets_the_whole_batch(kept):
    head = HEAD.replace("\n    def forward(", BANK)
    check(
        head + step(f"z = self(batch)\n{kept}\nreturn z.mean()"),
        head + step("z = self(batch)\nreturn z") + end(f"{kept}\nreturn z.mean()", "z"),
    )
    check_unchanged(HEAD + step(f"z = self(batch)\n{kept}\nreturn z.mean()"), [], select="PTM430")


def test_a_model_that_nothing_mixed_goes_into_stays_in_the_step():
    given = 'y = outputs["y"]\nz = outputs["z"]\n'
    last = "same = y[None] == y[:, None]\nreturn (z @ z.t())[same].sum()"
    source = HEAD + step("x, y = batch\nsame = y[None] == y[:, None]\nz = self(x)\nreturn (z @ z.t())[same].sum()")
    after = HEAD + step('x, y = batch\nz = self(x)\nreturn {"y": y, "z": z}') + end(given + last, "outputs")
    assert migrated(source).text == after
    drawn = source.replace("self(x)", "self(x) * torch.rand(1)")  # before which nothing else may be drawn
    assert "z = self(x) * torch.rand(1)\n        return (z" in migrated(drawn, "PTM430").text


def test_a_loss_of_the_class_that_scales_by_a_parameter_calls_no_model():
    loss = "    def nce(self, a, b):\n        return ((a @ b.t()) * self.scale.exp()).softmax(1).mean()\n\n"
    text = migrated(HEAD + loss + step("a, b = batch\nza, zb = self(a), self(b)\nreturn self.nce(za, zb)")).text
    assert "    def training_step_end(self, outputs):" in text and '        return {"za": za, "zb": zb}\n' in text


def test_a_step_that_a_class_below_goes_on_with_is_told():
    below = "\n\nclass More(Net):\n" + step("return super().training_step(batch, batch_idx) * 2")
    source = HEAD + step("z = self(batch)\nreturn (z @ z.T).logsumexp(1).mean()") + below
    check_unchanged(source, ["PTM430 line "], select="PTM430")


def test_a_step_that_another_one_calls_is_cut_with_it():
    mixing = 'z = self(batch)\nloss = z.softmax(0).pow(2).mean()\nreturn {"loss": loss}'
    check(
        HEAD + step(mixing, "validation") + "\n" + step("return self.validation_step(batch, batch_idx)", "test"),
        HEAD
        + step("z = self(batch)\nreturn z", "validation")
        + end('loss = z.softmax(0).pow(2).mean()\nreturn {"loss": loss}', "z", "validation")
        + "\n"
        + step("return self.validation_step(batch, batch_idx)", "test")
        + end("return self.validation_step_end(outputs)", "outputs", "test"),
    )


def test_a_step_that_another_one_calls_and_that_cannot_be_cut_is_told_with_it():
    mixing = "z = self(batch)\nreturn z.softmax(0).mean() * batch_idx"
    source = HEAD + step(mixing, "validation") + step("return self.validation_step(batch, batch_idx)", "test")
    check_unchanged(source, ["PTM430 line 19: `z.softmax(0)` in val", "PTM430 line 21: `self.validation_step(batch"])


@pytest.mark.parametrize(
    "body",
    [
        "x, y = batch\nreturn F.cross_entropy(self(x), y)",
        "x, y = batch\nloss = self.criterion(self(x), y)\nself.log('loss', loss)\nreturn {'loss': loss}",
        "x, y = batch\nz = self(x).softmax(dim=1)\nreturn (z * y).sum(-1).mean()",
        "x, y = batch\nz = self(x)\nacc = (z.argmax(dim=1) == y).float().mean()\nself.log('a', acc)\nreturn z.mean()",
        "x, y = batch\nreg = sum(p.norm() for p in self.parameters())\nreturn F.mse_loss(self(x), y) + reg",
        "x, y = batch\nq, k, v = self(x).chunk(3, dim=-1)\nreturn ((q @ k.transpose(-2, -1)).softmax(-1) @ v).mean()",
        "x, y = batch\nw = self.encoder.weight.softmax(0)\nreturn F.mse_loss(x @ w.t(), y)",
        "x, y = batch\nx = x.permute(1, 0, 2)\nreturn F.mse_loss(self(x).mean(0), y)",
        "x = torch.cat(batch)\na, b = self(x).chunk(2)\nreturn F.mse_loss(a, b)",
        "x, y = batch\nreturn torch.einsum('nd,nd->n', self(x), y).mean()",
        "x, y = batch\nreturn torch.bmm(self(x), y.transpose(1, 2)).mean()",
        "x, y = batch\nfor name, p in self.named_parameters():\n    self.log(name, p.std())\nreturn self(x).mean()",
        "x, y = batch\nz = torch.max(self(x), y)\nreturn z.mean()",
        "mu, log = self(batch), self(batch)\nreturn torch.mean(-0.5 * torch.sum(1 + log - mu**2, dim=1), dim=0)",
        "x, y = batch\nreturn (self(x) - y).pow(2).flatten(1).sum(1).mean(0)",
        "x, y = batch\nreturn nn.TripletMarginLoss()(self(x), self(y), y)",
        "x, y = batch\nreturn (self(x).max(1)[1] == y).float().mean()",
        "x, y = batch\nguess = torch.max(self(x), dim=1)[1].squeeze()\nreturn (guess == y).float().mean()",
        "x, y = batch\ntop = self(x).topk(5)[1]\nreturn (top == y[:, None]).any(1).float().mean()",
        "x, y = batch\nfirst = self(x).sort(1, descending=True)[1][:, 0]\nreturn (first == y).float().mean()",
        "x, y = batch\nbest = self(x).max(dim=1)\nreturn (best.indices == y).float().mean() + best.values.mean()",
        "x, y = batch\nreturn F.mse_loss(self.rnn(x)[0], y) + (self.rnn(x)[0] * y).mean()",
        "x, y = batch\nleft = torch.unbind(self(x), 1)[0]\nreturn (left * y).mean()",
        "x, y = batch\nreturn (self(x) - y).pow(2).view(-1).mean(0)",
        "x, y = batch\nreturn (self(x) - y).topk(2)[0].sort()[0].mean()",
        "x, y = batch\nl = F.cross_entropy(self(x), y, reduction='none')\nself.last = l\nreturn (l * (l > 1)).mean()",
        "x, y = batch\nx = x.view(x.size(0), -1)\nreturn (self(x).argmax(-1) == y).float().mean()",
        "x, y = batch\nx = torch.flatten(x, start_dim=1)\nreturn F.nll_loss(self(x).log_softmax(-1), y)",
        "x, y = batch\nx = x.repeat(1, n)\nreturn F.mse_loss(self(x).reshape(-1, n, 2).softmax(-1), y)",
        "x, y = batch\nself.bank = self.bank + len(x)\nself.bank.add_(1)\nreturn self(x).view(-1).abs().mean(-1)",
    ],
)
def test_a_step_that_mixes_nothing_is_left_alone(body):
    check_unchanged(HEAD + step(body), [], select="PTM430")


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (HEAD + step("x, y = batch\nif batch_idx == 0:\n    return None\nreturn self(x).softmax(0).mean()"), "line 20"),
        (HEAD + step("z = self(batch)\nz = z.softmax(0)\nself.manual_backward(z.sum())"), "by hand"),
        (HEAD + step("x, y = batch\nx = x[torch.randperm(len(x))]\nreturn self(x).mean()"), "one device alone"),
        (HEAD + step("return self.encoder(batch - batch.mean(0)).mean()"), "one device alone"),
        (HEAD + step("z = self(batch).softmax(0)\nif batch_idx % 9 == 0:\n    self.log('z', z.sum())"), "`batch_idx`"),
        (
            HEAD + step("z = self(batch)\nn = torch.randn(3)\nz = z + n\nz = z.softmax(0)\nreturn (z * n).sum()"),
            "random",
        ),
        (
            HEAD.replace("return self.encoder(x)", "return self.encoder(x).softmax(0)")
            + step("return self(batch).sum()"),
            "forward()",
        ),
    ],
)
def test_what_cannot_be_cut_is_told(source, why):
    result = migrated(source, "PTM430")
    assert result.text == source and not result.edits
    assert len(result.attention) == 1 and why in result.attention[0].message, result.attention


@pytest.mark.parametrize(
    "source",
    [
        HEAD
        + step("return self(batch)")
        + "\n    def training_step_end(self, z):\n        return z.softmax(0).sum()\n",
        HEAD.replace("pl.LightningModule", "nn.Module") + step("return self(batch).softmax(0).sum()"),
    ],
)
def test_nothing_to_do_where_no_part_is_seen_or_it_is_done(source):
    check_unchanged(source, [], select="PTM430")


def test_a_step_with_an_end_of_its_own_that_mixes_is_told():
    source = HEAD + step("return self(batch).softmax(0).sum()")
    source += "\n    def training_step_end(self, z):\n        return z.sum()\n"
    result = migrated(source, "PTM430")
    assert result.text == source
    assert [n.message for n in result.attention if "there is a training_step_end already" in n.message]


def test_a_batch_that_a_generator_moves_is_taken_apart_where_the_cut_is_too():
    after = step("x, y = batch\nz = self(x)\nreturn z") + end("return z.softmax(0).sum()", "z")
    check(
        HEAD + step("x, y = (t.to(self.device) for t in batch)\nz = self(x)\nreturn z.softmax(0).sum()"), HEAD + after
    )


@pytest.mark.parametrize("asked", ["torch.cuda.amp.autocast()", 'torch.autocast("cuda", dtype=torch.bfloat16)'])
def test_a_cut_within_an_autocast_that_becomes_the_precision(asked):
    """The model stays on the devices; the `with` goes first."""
    check(
        HEAD + step(f"with {asked}:\n    # views\n    z = self(batch)\n    s = z @ z.t()\nreturn s.mean()"),
        HEAD + step("# views\nz = self(batch)\nreturn z") + end("s = z @ z.t()\nreturn s.mean()", "z"),
    )


@pytest.mark.parametrize("opened", ["torch.autocast('cuda', enabled=self.half)", "self.profiler.profile('step')"])
def test_a_model_within_a_block_that_stays_is_not_taken_along(opened):
    source = step(f"with {opened}:\n    z = self(batch)\n    s = z @ z.t()\nreturn s.mean()")
    notes = check_unchanged(HEAD + source).attention
    assert any(n.code == "PTM430" and "called in the same `with`" in n.message for n in notes)


@pytest.mark.parametrize("body", ["torch.tril(z)", "z.triu(1)", "z.softmax(-2)", "z.mean(dim=-2)"])
def test_what_the_number_of_dimensions_decides_is_told(body):
    notes = check_unchanged(HEAD + step(f"z = self(batch)\nreturn {body}.sum()")).attention
    assert [n.code for n in notes] == ["PTM430"] and "may mix" in notes[0].message


@pytest.mark.parametrize("body", ["torch.tril(z)", "z.softmax(-2)"])
def test_two_dimensions_that_show(body):
    check(
        HEAD + step(f"z = self(batch).flatten(1)\nreturn {body}.sum()"),
        HEAD + step("z = self(batch).flatten(1)\nreturn z") + end(f"return {body}.sum()", "z"),
    )


@pytest.mark.parametrize(
    "body",
    [
        "torch.tril(self.encoder.weight)",
        "self(batch).softmax(-1)",
        "torch.triu(z[:, None])",
        "z.view(len(z), 2, 3).mean(-2)",
        "z.flatten(1).softmax(-1)",
    ],
)
def test_dimensions_of_a_sample(body):
    check_unchanged(HEAD + step(f"z = self(batch)\nreturn {body}.sum()"), [])


CARRIES = "z = self(batch)\nlast = loss = 0\nfor c in z:\n    {}\nreturn loss"


def test_a_loop_that_meets_one_with_another_is_told():
    notes = check_unchanged(HEAD + step(CARRIES.format("loss += (c - last).sum()\n    last = c"))).attention
    assert [n.code for n in notes] == ["PTM430"]


@pytest.mark.parametrize("body", ["loss += c.sum()", "loss = loss + c.sum()", "d = c * 2\n    loss += d.sum()"])
def test_a_loop_that_adds_up(body):
    check_unchanged(HEAD + step(CARRIES.format(body)), [])


def test_a_power_of_a_loss_that_training_logs_under_dp_is_told():
    body = "loss = F.cross_entropy(self(batch[0]), batch[1])\nself.log('ppl', torch.exp(loss))\nreturn loss"
    told = "PTM430 line 19: `torch.exp(loss)` in training_step is logged for each device's part"
    check_unchanged(HEAD + step(body) + "pl.Trainer(strategy='dp')\n", [told])
    check_unchanged(HEAD + step(body) + "pl.Trainer(strategy='ddp')\n", [])
    check_unchanged(HEAD + step(body.replace("torch.exp(loss)", "loss * 2")) + "pl.Trainer(strategy='dp')\n", [])


SOFTMAX = "return self(batch).softmax(0).sum()"
OWN = "`self(batch).softmax(0)` in training_step mixes the samples of a batch: of several processes each mixes its own"


@pytest.mark.parametrize("strategy", ["ddp", "ddp_spawn", "horovod"])
def test_what_each_of_several_processes_mixes_is_told(strategy):
    text = f"{HEAD}{step(SOFTMAX)}\nTrainer(strategy='{strategy}')\n"
    notes = [n.message for n in migrated(text, "PTM430").attention]
    assert f"{OWN}; `divide_batches = False` in Net gives it the whole" in notes


@pytest.mark.parametrize(
    "source",
    [
        f"{HEAD}{step(SOFTMAX)}\nTrainer(strategy='dp')\n",  # one process, whose parts come together
        *(
            f"{HEAD}{step(SOFTMAX)}\nTrainer(strategy='ddp')\n".replace(
                "    def __init__", f"{says}    def __init__", 1
            )
            for says in ("    divide_batches = False\n\n", "    divide_batches: bool = False\n\n")
        ),
        HEAD + step("return self(batch).softmax(1).sum()"),
    ],
)
def test_where_none_has_a_share_it_is_not(source):
    assert not [n for n in migrated(source, "PTM430").attention if "of several processes" in n.message]
