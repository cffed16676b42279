"""An evaluation in one expression stays, whole on every process, and that is told."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_same_run import NESTED
from tests.migrate.running import check_same

TOLD = "the evaluation stays as it is written, and every process runs all of it: `test_loader` is gone through in an"
GOES = {
    "a list": "torch.cat([model(x).argmax(1) for x, _ in test_loader]).sum().item()",
    "a generator": "sum((model(x).argmax(1) == y).sum().item() for x, y in test_loader)",
}
NOT = {
    "a list of numbers": "sum(k for k in range(len(test_loader)))",
    "weights": "sum(p.sum().item() for p in model.parameters())",
}


def script(value):
    return NESTED.replace("print('done'", f"    print(f'{{{value}:.3f}}')\nprint('done'")


@pytest.mark.parametrize("value", GOES.values(), ids=GOES)
def test_it_is_told(value):
    text = script(value)
    check_same(text, "module")
    assert [TOLD in n.message for n in migrate_text(text).attention].count(True) == 1


@pytest.mark.parametrize("value", NOT.values(), ids=NOT)
def test_others_are_not(value):
    text = script(value)
    check_same(text, "module")
    assert not any("evaluation stays" in n.message for n in migrate_text(text).attention)
