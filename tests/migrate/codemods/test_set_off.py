"""Parentheses that only a choice needed go with it; those that keep words or lines apart stay."""

import pytest
from helpers import check

HEAD = "import torch\nuse = torch.cuda.is_available()\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a = {k: (v.cuda() if use else v) for k, v in s.items()}", "a = {k: v for k, v in s.items()}"),
        ("a = [(v.cuda() if use else v), 1]", "a = [v, 1]"),
        ("a = (v.cuda() if use else v) + (w.cuda() if use else w)", "a = v + w"),
        ("a = (f(v).cuda() if use else f(v)).mean()", "a = f(v).mean()"),
        ("a = {k:((v.cuda() if use else v)) for k in s}", "a = {k:(v) for k in s}"),
        ("a = (v.cuda() if torch.is_tensor(v) else v)", "a = v"),
        ("def f(v):\n    return(v.cuda() if use else v)", "def f(v):\n    return(v)"),
        ("a = x if y else(v.cuda() if use else v)", "a = x if y else(v)"),
        ("a = (v + 1).cuda() if use else (v + 1)", "a = (v + 1)"),
        ("a = 2 * ((v + 1).cuda() if use else (v + 1))", "a = 2 * ((v + 1))"),
        ("a = (\n    v.cuda() if use else v\n)", "a = (\n    v\n)"),
    ],
)
def test_what_is_left_of_a_choice(before, after):
    check(HEAD + before + "\n", HEAD + after + "\n", select="PTM101")
