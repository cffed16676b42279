"""The tree of a text near another is what `ast` makes of it, and shares what both have."""

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ptmigrate.migrate.facts.text import Text
from ptmigrate.migrate.facts.trees import tree_near

BEFORE = '''\
"""What it does."""
import torch

@torch.no_grad()
def test(model):
    return model  # as it is

class Trainer(Base, metaclass=Meta):
    """Trains."""

    kind = 1; other = 2

    def fit(self, data):
        for x in data:
            self.step(x)

    @property
    def ready(self): return True

if torch.cuda.is_available():
    a = 1
b = (2,
     3); c = 4
try:
    import apex
except ImportError:
    pass
'''
LINES = BEFORE.splitlines(keepends=True)
NEW = """x = 1
    y = 2
        z = 3;
else:
    else:
'''
(
# no code
    # in a class
@property
    @property
\td = 1
\f
v = 1; \\
é = 'ü'
class A:

""".splitlines(keepends=True)
EDITS = st.lists(
    st.tuples(st.integers(0, len(LINES)), st.integers(0, 3), st.lists(st.sampled_from(NEW), max_size=3)), max_size=3
)


def dumped(tree: ast.Module) -> str:
    return ast.dump(tree, include_attributes=True)


def near(text: str, before: str = BEFORE) -> tuple[ast.Module, ast.Module]:
    """The tree of a text, and the one that it was made from."""
    tree = ast.parse(before)
    return tree_near(Text(text), Text(before), tree), tree


@settings(max_examples=400, deadline=None)
@given(edits=EDITS)
def test_is_what_ast_makes_of_the_text(edits):
    lines = list(LINES)
    for at, gone, new in edits:
        lines[at : at + gone] = new
    text = "".join(lines)
    try:
        whole = ast.parse(text)
    except SyntaxError as why:
        with pytest.raises(SyntaxError) as raised:
            near(text)
        assert str(raised.value) == str(why)
        return
    assert dumped(near(text)[0]) == dumped(whole)


@pytest.mark.parametrize(
    "text",
    [
        BEFORE.replace("a = 1\n", "a = 1\nelse:\n    a = 2\n"),
        BEFORE.replace("    a = 1\n", "    a = 1;\n"),
        BEFORE.replace("self.step(x)", "self.step(x);"),
        BEFORE.replace("\n    @property\n    def ready(self): return True\n", ""),
        BEFORE.replace("    @property\n", "\n"),
        BEFORE.replace("    @property\n    def ready(self): return True\n", "    x = 1\n    y = 2;\n"),
        BEFORE.replace("import torch\n", "\n"),
        BEFORE.rstrip("\n"),
        "",
        BEFORE.replace("class Trainer(Base, metaclass=Meta)", "class Trainer"),
        BEFORE.replace("\n", "\r\n"),
    ],
)
def test_in_hard_places(text):
    assert dumped(near(text)[0]) == dumped(ast.parse(text))
    assert dumped(near(BEFORE, text)[0]) == dumped(ast.parse(BEFORE))


def test_what_stands_at_another_margin_is_no_part_of_a_block():
    with pytest.raises(SyntaxError):
        near(BEFORE.replace("    kind = 1;", "      kind = 1;"))


def test_statements_above_the_change_are_the_same_nodes():
    tree, before = near(BEFORE.replace("    a = 1\n", "    a = 1\n    d = 1\n"))
    assert [new is old for new, old in zip(tree.body, before.body, strict=True)] == [True] * 4 + [False] * 4


def test_where_no_line_moves_those_below_it_are_the_same_nodes():
    tree, before = near(BEFORE.replace("import torch\n", "import torch as t\n"))
    assert [new is old for new, old in zip(tree.body, before.body, strict=True)] == [True, False] + [True] * 6


@pytest.mark.parametrize("new", ["self.step(x)\n            x = 1", "self.walk(x)"])
def test_methods_above_and_below_the_change_are_the_same_nodes(new):
    tree, before = near(BEFORE.replace("self.step(x)", new))
    (new_class, old_class) = (t.body[3] for t in (tree, before))
    stays = [new is old for new, old in zip(new_class.body, old_class.body, strict=True)]
    assert stays == [True] * 3 + [False] + ["walk" in ast.unparse(new_class)]
    assert old_class.body[3] is not new_class.body[3] and "walk" not in ast.unparse(before)
