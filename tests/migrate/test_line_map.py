"""Which line of the original one of the result was."""

from ptmigrate.migrate.line_map import _in_both_orders, line_map
from ptmigrate.migrate.migrate import migrate_text

OLD = "def f(m, loader):\n    for x in loader:\n        a = m(x)\n        b = g(a)\n    return b\n"


def test_lines_that_stayed():
    line = line_map("# new\n" + OLD, OLD)
    assert [line(n) for n in range(2, 7)] == [1, 2, 3, 4, 5]


def test_a_line_in_a_method_is_the_one_that_says_the_same():
    new = "class M:\n    def step(self, x):\n        self.a = self.m(x)\n            self.b = g(self.a)\n" + OLD[:52]
    line = line_map(new, OLD)
    assert [line(3), line(4)] == [3, 4]


def test_of_several_that_say_the_same_none_is_taken_for_the_other():
    old = "if a:\n    f(1)\nelse:\n    f(1)\n"
    assert line_map("if a:\n    f(1)\nelif b:\n  f(1)\n", old)(4) in (2, 3, 4)


def test_a_line_that_is_new_is_where_it_stands():
    assert line_map("x = 1\nq = 7\ny = 2\n", "x = 1\np = 3\ny = 2\n")(2) == 2


def test_what_is_told_of_a_lifted_step_stands_at_its_own_line():
    text = """import torch
def train(net, loader, opt, crit, writer):
    for i, (a, b) in enumerate(loader):
        loss = crit(net(a), b); loss.backward(); opt.step()
        writer.add_scalar("x", loss.item(), i)
        writer.add_scalar("y", loss.cpu().detach().numpy(), i)
        grad = net.w.grad.cpu().numpy()
        writer.add_histogram("g", grad, i)
"""
    result = migrate_text(text)
    assert result.plan == "manual"
    assert [n.line for n in result.attention if n.code == "PTM304"] == [6, 7]


def test_a_line_that_is_written_otherwise_is_the_one_most_like_it():
    old = "dtype = t.FloatTensor\nnet = Net()\nfor i in range(3):\n    x = t.randn(4, 2).type(dtype)\n    print(i, x)\n"
    new = "class M:\n    def step(self, i):\n        x = t.randn(4, 2).type(self.dtype_)\n\n\nrun(M())\n"
    assert line_map(new, old)(3) == 4


def test_a_line_that_is_like_none_is_where_it_stands():
    old = "a = 1\nnet = Net()\nb = 2\n"
    assert line_map("a = 1\nwhile True: go(3)\nb = 2\n", old)(2) == 2


def test_of_a_block_that_became_shorter_each_line_is_the_one_most_like_it():
    """`g(x)` stood at the third line of the block, and further down once more."""
    old = "def f(x):\n    a = V(\n        h(x).long()).to(0)\n    b = V(g(x)).to(0)\n    c = 1\n"
    new = "def f(x):\n    a = h(x).long().to(0)\n    b = g(x).to(0)\n    c = 1\n"
    assert [line_map(new + new, old + old)(n) for n in (3, 7)] == [4, 9]


def test_lines_that_changed_places():
    old = "".join(f"line_{n} = {n}\n" for n in (1, 2, 3, 4, 5))
    new = "".join(f"line_{n} = {n}\n" for n in (4, 1, 2, 3, 5))  # the most that stand in the same order stay
    assert [line_map(f"q\n{new}", f"{old}")(n) for n in (3, 4, 5, 6)] == [1, 2, 3, 5]


def test_a_line_of_a_long_text_that_is_written_otherwise():
    old = "".join(f"other_{n} = {n}\n" for n in range(30)) + "total = weigh(first, second) + rest\n"
    new = "".join(f"new_{n} = {n}\n" for n in range(30)) + "x = 0\n\n\n\n"
    new = "class M:\n    total = weigh(first, second) + self.rest_\n" + new
    assert line_map(new, old)(2) == 31


def test_the_most_lines_that_stand_in_the_same_order():
    assert _in_both_orders({"a": 0, "b": 1, "c": 2}, {"a": 2, "b": 0, "c": 1}) == [(1, 0), (2, 1)]
    assert _in_both_orders({"a": 0, "b": 1, "c": 2, "d": 3}, {"d": 3, "b": 0, "a": 1}) == [(1, 0), (3, 3)]


def test_no_loop_is_another_by_the_words_of_every_loop():
    old = "class M:\n    def f(self):\n        for i in range(self.n):\n            g(i)\n\n\n"
    old += "for x in loader:\n    step(x)\n"
    new = old.replace("for x in loader:\n    step", "for epoch in range(1):\n    for x in loader:\n        step")
    assert line_map(new, old)(7) in (6, 7)
