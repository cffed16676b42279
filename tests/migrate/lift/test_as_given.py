"""What a function of the script's own gives back as it was given it is what it was: a mean, a sum, a number."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_printed_by_two import EPOCHS, HEAD
from tests.migrate.running import check_same

FUNCTIONS = """
def identity(loss):
    return loss

def log(name, x):
    print(name, x)
    return x

def as_number(t):
    return t.item()

def checked(v):
    if v != v:
        raise ValueError(v)
    return v

def reduced(t):
    rt = t.clone()
    return rt

def first_set(t):
    rt = t.clone()
    rt[...] = 1
    return rt

def in_place(t):
    rt = t.clone()
    rt.exp_()
    return rt

def copied(t):
    t = t.clone()
    return t

def scaled(t):
    t = t.clone()
    return t / 4

def bent(t):
    t = t.exp()
    return t

def halved(v):
    v = v / 2
    return v

def worse(a, b):
    if b > a:
        return b
    return a
"""


def script(each: str) -> str:
    epochs = EPOCHS.replace("BEFORE", "total, m = 0, []").replace("EACH", each).replace("LAST", "")
    return HEAD + FUNCTIONS + epochs.replace("AFTER", "print(total, sum(m))")


@pytest.mark.parametrize(
    ("each", "brought"),
    [
        ("total += identity(loss.item())", "self.total += identity(loss.item()) * self.share"),
        ("total += identity(loss).item()", "self.total += identity(loss).item() * self.share"),
        ("total += as_number(loss)", "self.total += as_number(loss) * self.share"),
        ("total += reduced(loss).item()", "self.total += reduced(loss).item() * self.share"),
        ("print(reduced(loss.detach()).item())", "self.print(self.batch_mean(reduced(loss.detach()).item()))"),
        ("total += copied(loss).item()", "self.total += copied(loss).item() * self.share"),
        ("total += scaled(loss.detach()).item()", "self.total += scaled(loss.detach()).item() * self.share"),
        ("total += checked(loss.item())", "self.total += checked(loss.item()) * self.share"),
        ("print(identity(loss).item())", "self.print(self.batch_mean(identity(loss).item()))"),
        ("m.append(identity(loss.item()))", "self.m.append(self.batch_mean(identity(loss.item())))"),
    ],
)
def test_it_is_brought_together(each, brought):
    assert brought in check_same(script(each), "module")
    assert not [n for n in migrate_text(script(each)).attention if n.code == "PTM703"]


def test_what_it_shows_of_a_share_is_told():
    each = "total += log('loss', loss.item())"
    result = check_same(script(each), "module")
    assert "* self.share" in result and "divide_batches" not in result
    assert any("shows what the process sees" in n.message for n in migrate_text(script(each)).attention)


@pytest.mark.parametrize(
    "given", ["halved(loss.item())", "worse(loss.item(), 1)", "first_set(loss)", "in_place(loss)", "bent(loss)"]
)
def test_another_value_is_not(given):
    assert [n for n in migrate_text(script(f"total += {given}")).attention if n.code == "PTM703"]
