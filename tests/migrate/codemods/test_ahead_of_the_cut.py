"""T6: what stays before the cut though it stood behind it, and what has to be known of functions that are called."""

import pytest
from cut_steps import HEAD, end, step
from helpers import check, check_unchanged, migrated

CODE = "PTM430"
SHOWS = "if batch_idx % 100 == 0:\n    self.logger.show(z[:4])"


@pytest.mark.parametrize(
    ("before", "stays", "behind"),
    [
        ("s = z.softmax(0)\n{}\nreturn s.mean()", SHOWS, "s = z.softmax(0)\nreturn s.mean()"),
        ("loss = z.std(0).mean()\nself.log('l', loss)\n{}\nreturn loss", SHOWS, None),
        ("loss = z.std(0).mean()\n{}\nreturn loss", "print(batch_idx, len(z))", None),
        ("loss = z.std(0).mean()\n{}\nreturn loss", "if batch_idx == 0:\n    seen = z[:4]\n    self.show(seen)", None),
    ],
)
def test_what_needs_the_number_of_the_batch_and_nothing_mixed_stays_before(before, stays, behind):
    behind = behind or before.replace("{}\n", "")
    check(
        HEAD + step("z = self(batch)\n" + before.format(stays)),
        HEAD + step(f"z = self(batch)\n{stays}\nreturn z") + end(behind, "z"),
        attention=[],
        select=CODE,
    )


@pytest.mark.parametrize(
    "rest",
    [
        "loss = z.std(0).mean()\nif batch_idx == 0:\n    self.show(loss)\nreturn loss",
        "loss = z.std(0).mean()\nz = z * 2\nif batch_idx == 0:\n    self.show(z)\nreturn loss",
        "loss = z.std(0).mean()\nif batch_idx == 0:\n    z = z * 2\nreturn loss + z.mean()",
        "loss = z.std(0).mean()\nif batch_idx == 0:\n    return None\nreturn loss",
        "loss = z.std(0).mean()\nloss = loss + self(batch.roll(1, 0) * loss).mean()\nself.note(batch_idx)\nreturn loss",
    ],
)
def test_what_needs_more_is_told(rest):
    result = check_unchanged(HEAD + step("z = self(batch)\n" + rest), select=CODE)
    assert ["`batch_idx` is needed" in n.message for n in result.attention] == [True]


def test_gradients_of_what_is_computed_before_the_cut():
    body = "x, y = batch\ns = torch.ones((), requires_grad=True)\nloss = self.criterion(self(x) * s, y)\n"
    body += "g = torch.autograd.grad(loss, [s], create_graph=True)[0]\nreturn loss + g.pow(2)"
    result = check_unchanged(HEAD + step(body), select=CODE)
    assert ["takes gradients" in n.message for n in result.attention] == [True]


HELPER = "\n    def shared(self, batch):\n        {}\n"


def test_views_that_are_taken_of_a_tuple():
    body = "views, y = batch\na, b = views[:2]\nreturn F.mse_loss(self(a), self(b))"
    check_unchanged(HEAD + step(body), [], select=CODE)
    assert (
        "training_step_end"
        in migrated(HEAD + step(body.replace("a, b = views[:2]", "a, b = views[:2], y[:2]")), CODE).text
    )


def test_the_last_that_a_network_gives():
    forward = HEAD.replace("return self.encoder(x)", "return self.layers(x)[-1]")
    text = migrated(forward + step("z = self(batch)\nreturn z.softmax(0).mean()"), CODE).text
    assert text == forward + step("z = self(batch)\nreturn z") + end("return z.softmax(0).mean()", "z")


def test_a_weighed_loss_beside_others_that_a_helper_gives():
    head = HEAD.replace("CrossEntropyLoss()", "CrossEntropyLoss(ignore_index=0)")
    helper = HELPER.format("x, y = batch\n        out = self(x)\n        return self.criterion(out, y), out")
    result = migrated(head + step("loss, out = self.shared(batch)\nself.log('l', loss)\nreturn loss") + helper, CODE)
    assert "def shared_end(" in result.text and "def training_step_end(self, outputs)" in result.text
    told = check_unchanged(
        head + step("loss, _ = self.shared(batch)\nreturn loss") + helper + "\nNet().shared(a)\n", select=CODE
    )
    assert ["other callers" in n.message for n in told.attention] == [True]


@pytest.mark.parametrize("kind", ["validation", "test"])
@pytest.mark.parametrize("value", ["'l', F.cross_entropy(z, y, ignore_index=0)", "{'l': F.mse_loss(z, y).sqrt()}"])
def test_what_an_evaluation_logs_is_of_the_whole_batch(kind, value):
    log = f"self.log{'_dict' if value[0] == '{' else ''}({value})"
    text = migrated(HEAD + step(f"x, y = batch\nz = self(x)\n{log}", kind), CODE).text
    assert f'return {{"y": y, "z": z}}\n\n    def {kind}_step_end(self, outputs):' in text and text.endswith(f"{log}\n")
    check_unchanged(HEAD + step(f"x, y = batch\nz = self(x)\n{log}\nreturn z.mean()"), [], select=CODE)
    plain = step("x, y = batch\nself.log('l', F.cross_entropy(self(x), y))", kind)
    check_unchanged(HEAD + plain, [], select=CODE)


def test_a_criterion_by_another_name_is_no_network():
    head = HEAD.replace("self.criterion =", "self.crit =")
    body = "x, y = batch\nz = self(x)\nloss = self.crit(z, y) + z.std(0).mean()\n"
    body += "if batch_idx == 0:\n    self.show(z)\nreturn loss"
    assert "training_step_end" in migrated(head + step(body), CODE).text
