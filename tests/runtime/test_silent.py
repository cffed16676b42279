import copy
import pickle

import pytest
from ptmigrate.runtime import on_rank_zero
from ptmigrate.runtime.silent import Silent

from tests.runtime.launching import ptrun


def test_rank_0_has_the_real_thing():
    assert on_rank_zero(dict)(a=1) == {"a": 1}


def test_other_ranks_get_one_that_takes_everything(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from ptmigrate.runtime import on_rank_zero\n"
        f"log = on_rank_zero(open)({str(tmp_path / 'log')!r}, 'a')\n"
        "log.write('once')\nlog.close()\n"
    )
    done = ptrun("--accelerator", "cpu", "--devices", "2", str(script))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "log").read_text() == "once"


@pytest.mark.parametrize(
    "use",
    [
        lambda w: w.add_scalar("loss", 1.0, 3),
        lambda w: w.config.update({"lr": 1}),
        lambda w: w.plot["loss"],
        lambda w: w.__setattr__("step", 3),
        lambda w: w.__setitem__("a", 1),
        list,
        bool,
        copy.deepcopy,
        lambda w: pickle.loads(pickle.dumps(w)),
    ],
)
def test_a_silent_writer_takes(use):
    use(Silent())


def test_a_silent_writer_is_a_context():
    with Silent() as w:
        w.add_image("a", None)
