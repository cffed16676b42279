"""`seen += torch.bincount(y, minlength=3)`: a sum over the samples, wherever it shows which values there are."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_sums import TEXT
from tests.migrate.running import check_same

LIBRARIES = "import numpy as np\nfrom sklearn.metrics import confusion_matrix\n"
TOLD = "that is not shown"


def counted(tally):
    return TEXT.format(start="torch.zeros(3)", sums=f"total += {tally}")


@pytest.mark.parametrize(
    "tally",
    [
        "torch.bincount(y, minlength=3)",
        "torch.bincount(y, None, 3).float()",
        "y.bincount(minlength=3).cpu()",
        "torch.histc(out.detach(), 3, -1, 1)",
        "torch.histc(out.detach(), bins=3, min=-1, max=1)",
        "out.detach().cpu().histc(3, -1, 1)",
        "torch.bincount(3 * y + out.argmax(1), minlength=9).view(3, 3).sum(0)",
    ],
)
def test_counts_are_added_up(tally):
    result = check_same(counted(tally), "module")
    assert f"self.total += {tally}\n" in result and "total = self.all_reduce(self.total)\n" in result


@pytest.mark.parametrize(
    "tally",
    [
        "torch.from_numpy(np.bincount(y.cpu().numpy(), minlength=3))",
        "np.bincount(y.cpu().numpy(), None, 3)",
        "confusion_matrix(y, out.argmax(1), labels=[0, 1, 2])",
        "confusion_matrix(y_true=y, y_pred=out.argmax(1), labels=range(3))",
    ],
)
def test_counts_of_other_libraries(tally):
    result = migrate_text(LIBRARIES + counted(tally))
    assert f"self.total += {tally}\n" in result.text and not any(TOLD in n.message for n in result.attention)


@pytest.mark.parametrize(
    "tally",
    [
        "torch.bincount(y)",
        "torch.bincount(y, out[:, 0], 3)",
        "torch.bincount(y, weights=out[:, 0].detach() / len(y), minlength=3)",
        "np.bincount(y)",
        "y.bincount()",
        "confusion_matrix(y, out.argmax(1))",
        "confusion_matrix(y, out.argmax(1), labels=None)",
        "confusion_matrix(y, out.argmax(1), labels=[0, 1, 2], normalize='all')",
        "torch.histc(out.detach(), 3)",
        "torch.histc(out.detach(), 3, max=1)",
        "torch.histc(out.detach(), 3, 0, 0)",
        "out.detach().histc(3)",
        "bincount(y, minlength=3)",
        "torch.bincount(y, minlength=3).softmax(0)",
    ],
)
def test_what_may_be_no_sum_is_told(tally):
    result = migrate_text(LIBRARIES + counted(tally))
    assert any(TOLD in n.message for n in result.attention) or "divide_batches = False" in result.text
