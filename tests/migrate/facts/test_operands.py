"""Parts of expressions: parentheses where what stands around would take them apart, and none elsewhere."""

import ast
import itertools

import pytest
from ptmigrate.migrate.facts.operands import AND, ANY, ATOM, FACTOR, OR, TERM, closed, joined, negated, tightness

TEXTS = ["a", "f(a, b)", "a.b", "a[0]", "[a, b]", "(a, b)", "(a), (b)", "a, b", "(a or b)", "(a) or (b)", "a or b",
         "a and b", "not a", "a < b", "a in b", "a | b", "a & b", "a << b", "a + b", "a * b", "a @ b", "-a", "a ** b",
         "a if b else c", "lambda: a", "(a := b)", "'x' 'y'", "{a}", "[i for i in a]", "(i for i in a)"]  # fmt: skip


def same(text: str, expected: str) -> bool:
    return ast.dump(ast.parse(f"({text})")) == ast.dump(ast.parse(f"({expected})"))


@pytest.mark.parametrize("text", TEXTS)
def test_an_operand_is_itself(text):
    for place, form in [(ATOM, "{}.x"), (FACTOR, "n * {}"), (TERM, "{} - n"), (AND, "{} and n"), (ANY, "x[{}]")]:
        if tightness(text) != place:  # `a and b and c` is one operation
            assert same(form.format(closed(text, place)), form.format(f"({text})"))


@pytest.mark.parametrize("text", ["a", "f(a)", "(a or b)", "(a, b)", "[a\n, b]", "(a\n or b)"])
def test_what_holds_together_gets_no_parentheses(text):
    assert closed(text, ATOM) == text and tightness(text) == ATOM


@pytest.mark.parametrize("text", ["a\n or b", "a\n.b", "(a)\n or (b)"])
def test_lines_that_only_others_held_together(text):
    assert closed(text, ANY) == f"({text})"


@pytest.mark.parametrize("word", ["and", "or"])
def test_conditions_joined(word):
    conditions = [t for t in TEXTS if t not in ("a, b", "(a), (b)")]
    for pair in itertools.product(conditions, repeat=2):
        if all(tightness(p) != (AND if word == "and" else OR) for p in pair):  # `a and b and c` is one operation
            assert same(joined(pair, word), f" {word} ".join(f"({p})" for p in pair))
    assert joined(["a or b"], "and") == "a or b"
    assert joined(["a and b", "c"], "and") == "a and b and c"


@pytest.mark.parametrize(
    ("text", "opposite"),
    [("a", "not a"), ("not a", "a"), ("not a and b", "not (not a and b)"), ("not (a or b)", "(a or b)"),
     ("a < b", "not (a < b)"), ("not_a", "not not_a"), ("not a if b else c", "not (not a if b else c)")],
)  # fmt: skip
def test_opposites(text, opposite):
    assert negated(text) == opposite
