"""A choice or a lambda in parentheses right behind a word: files with one are read."""

import pytest
from helpers import check


@pytest.mark.parametrize(
    "line",
    [
        "return(a if b else c)",
        "return(lambda: 1)",
        "assert(a if b else c)",
        "x = a if b else(a if b else c)",
        "x = not(lambda: 1)",
        "x = (a if b else c)if a else b",
        "return(a if b else c).shape",
        "y = [i for i in(a if b else c)]",
    ],
)
def test_the_rest_of_the_line_is_as_it_was(line):
    before = f"import torch\ndef f(a, b, c):\n    a = a.cuda()\n    {line}\n    d = a.cuda() + 1; {line}\n"
    after = f"import torch\ndef f(a, b, c):\n    {line}\n    d = a + 1; {line}\n"
    check(before, after, select="PTM101")
