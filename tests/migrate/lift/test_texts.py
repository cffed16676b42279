"""Names that are asked for by their text: the loop stays, since a lift moves them."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_same_run import FUNCTIONS, NESTED
from tests.migrate.running import check_same

SHOWN = "    print('{epoch} {total:.6f}'.format(**NAMES))\n    return total"


@pytest.mark.parametrize("names", ["locals()", "vars()", "{'epoch': eval('epoch'), 'total': eval('total')}"])
def test_a_pass_that_asks_for_all_names_is_kept(names):
    text = FUNCTIONS.replace("    return total", SHOWN.replace("NAMES", names))
    assert text != FUNCTIONS
    check_same(text, "loop")
    assert any("reads names by their text" in n.message for n in migrate_text(text).attention)


@pytest.mark.parametrize(
    "text",
    [
        FUNCTIONS.replace("    return total", SHOWN.replace("NAMES", "dict(epoch=epoch, total=total)")),
        FUNCTIONS.replace("    return total", SHOWN.replace("NAMES", "{**vars(args), 'epoch': epoch, 'total': total}")),
        NESTED.replace("import time\n", "import time\nbefore = sorted(locals())\n"),
    ],
)
def test_what_names_them_is_lifted(text):
    check_same(text, "module")


def test_a_function_that_is_called_eval_reads_no_text():
    asks = FUNCTIONS.replace("    return total", SHOWN.replace("NAMES", "eval(epoch, total)"))
    function = "def eval(epoch, total):\n    return {'epoch': epoch, 'total': total}\n\n\n"
    own = asks.replace("def train(", function + "def train(")
    assert own != asks
    check_same(own, "module")
