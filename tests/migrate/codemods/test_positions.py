"""The positions that edits are found by are those that libcst's own provider tells."""

from pathlib import Path

import libcst as cst
import pytest
from libcst.metadata import MetadataWrapper, PositionProvider
from ptmigrate.migrate.codemods._positions import positions_of

FILES = sorted((Path(__file__).parents[3] / "migrate").rglob("*.py"))[:20]
TEXTS = [
    "def f(a, /, b=1, *c, d: int = 2, **e) -> int:\r\n\treturn (a\r\n\t\t+ b)  # x\r\n",
    "@a\n@b(1)\nclass C(D, metaclass=E):\n    x: int = 1; y = 2\n\n    async def g(self): ...\n\x0c\n# end",
    "x = [\n  i  # one\n  for i in y if (z := i)\n]\nwith a as b: pass\ntry:\n  1\nexcept E as e:\n  2\nfinally: 3\n",
    "ü = f'{x!r:>{w}}' 'b'  # ß\nmatch x:\n    case [1, *_] | {'a': b}: pass\n",
]


@pytest.mark.parametrize("text", [*TEXTS, *(p.read_text(encoding="utf-8") for p in FILES)])
def test_positions_are_libcsts(text):
    module = cst.parse_module(text)
    expected = PositionProvider()._gen(MetadataWrapper(module, unsafe_skip_copy=True))
    found = positions_of(module)
    assert {id(n): (r.start.line, r.start.column, r.end.line, r.end.column) for n, r in expected.items()} == found
