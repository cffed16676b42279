"""libcst does not read the statements that go, and gives what it would give when it read them."""

import ast
import re

import pytest
from ptmigrate.migrate.codemods import _together
from ptmigrate.migrate.codemods.base import Change, apply
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.report import Edit

READ = "spare_words_of_what_goes"
NOT_READ = [
    f"a()\n# above\ngone({READ})  # beside\n# below\nb()\n",
    f"a()\n\n\ndef gone(x):\n    # inside\n    {READ}(x)\n    # its end\n\n    # and more\n# above b\n\n\nb()\n",
    f"@d\n@e({READ})\ndef gone():\n    pass\n# the end\n",
    f"def f():\n    if gone:\n        {READ}\n    else:\n        c()\n        # of else\n    # of f\n    return 1\n",
    f"def f():\n    gone(\n        {READ},\n    )\n",
    f"for x in y:\n\tgone({READ})\n\t# of the loop\nb()",
    f"try:\n    a()\nexcept E:\n    b()\ntry:\n    gone\nexcept {READ}:\n    c()\n    # of the handler\n# after\nb()\n",
    f"if a:\n    gone({READ})\n    gone({READ})\nelif b:\n    c()\n",
    f"gone('ß', {READ})  # ß\nb()\n",
    f"a()\ngone({READ})",
]
READ_ALL_THE_SAME = [  # what shares a line with others
    f"é = 'ü'\ngone('ß', {READ}); é = 2\nb()\n",
    f"a(); gone({READ}); b()\n",
    f"if a: gone({READ})\nb()\n",
    f"gone({READ});\nb()\n",
    f"a()\n\f\ngone({READ})\nb()\n",
    f"match gone:\n    case 1:\n        {READ}()\n        # of the case\n    # of match\nb()\n",
]


GONE = re.compile(r"gone|(@d\s+@e\(\w+\)\s+)?def gone|if gone|match gone|try:\s+gone")


def without_gone(source: str) -> str:
    facts = Facts(source)
    going = [s for s in ast.walk(facts.tree) if isinstance(s, ast.stmt) and GONE.match(facts.text.get(s))]
    inner = {n for s in going for n in ast.walk(s) if n is not s}
    return apply(facts, [Change(s, Edit(s.lineno, 1, "PTM101", "gone"), None) for s in going if s not in inner])


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("source", NOT_READ + READ_ALL_THE_SAME)
def test_the_same_as_when_they_are_read(source, newline, monkeypatch):
    source = source.replace("\n", newline)
    result = without_gone(source)
    assert "gone" not in result
    monkeypatch.setattr(_together, "not_read", lambda *of: [])
    assert result == without_gone(source)


@pytest.mark.parametrize(("source", "read"), [*((s, False) for s in NOT_READ), *((s, True) for s in READ_ALL_THE_SAME)])
def test_what_is_read(source, read, monkeypatch):
    texts = []
    rewritten = _together.rewritten
    monkeypatch.setattr(_together, "rewritten", lambda text, wanted: texts.append(text) or rewritten(text, wanted))
    without_gone(source)
    assert (READ in texts[0]) == read
