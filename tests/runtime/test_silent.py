import copy
import os
import pickle

import pytest
from ptmigrate.runtime import on_rank_zero
from ptmigrate.runtime.silent import Silent

from tests.forked import ptrun


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


def test_paths_in_the_writers_folder_are_there_on_every_rank_and_go_with_the_others(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import logging, os\nfrom pathlib import Path\nfrom types import SimpleNamespace\n"
        "from ptmigrate.runtime import on_rank_zero\n"
        f"writer = on_rank_zero(SimpleNamespace)(log_dir={str(tmp_path / 'runs')!r})\n"
        "os.makedirs(writer.log_dir, exist_ok=True)\n"
        "logging.basicConfig(filename=os.path.join(writer.log_dir, 'training.log'), level=logging.INFO)\n"
        "logging.info('once')\n"
        "paths = [f'{writer.log_dir}/a', writer.log_dir + '/b', Path(writer.log_dir) / 'c']\n"
        "for path in paths:\n    Path(path).write_text('x')\n"
        f"Path({str(tmp_path)!r}, 'of' + os.environ['RANK']).write_text(str(writer.log_dir))\n"
    )
    done = ptrun("--accelerator", "cpu", "--devices", "2", str(script))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs" / "training.log").read_text() == "INFO:root:once\n"
    assert sorted(p.name for p in (tmp_path / "runs").iterdir()) == ["a", "b", "c", "training.log"]
    others = (tmp_path / "of1").read_text()
    assert others != (tmp_path / "of0").read_text() and not os.path.exists(others)


OPENED = """
import gzip, io, json, os, tarfile, zipfile
from pathlib import Path
from ptmigrate.runtime import on_rank_zero
with on_rank_zero(open)('a.txt', 'w+') as f:
    f.write('once')
    f.seek(0)
    assert f.read() == 'once' and f.tell() == 4
with on_rank_zero(gzip.open)('a.gz', 'wb') as f:
    f.write(b'once')
with on_rank_zero(Path('a.json').open)('w') as f:
    json.dump([1], f)
with on_rank_zero(zipfile.ZipFile)('a.zip', 'w') as z:
    z.writestr('x', 'once')
with on_rank_zero(tarfile.open)('a.tar', 'w') as t:
    t.add('a.txt' if os.environ['RANK'] == '0' else __file__)
with on_rank_zero(open)(file='b.txt', mode='a') as f:
    f.write('once')
Path('of' + os.environ['RANK']).write_text('')
"""


def test_what_opens_a_file_opens_one_on_every_rank_and_the_others_forget_it(tmp_path):
    (tmp_path / "script.py").write_text(OPENED)
    done = ptrun("--accelerator", "cpu", "--devices", "2", "script.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        ["a.txt", "a.gz", "a.json", "a.zip", "a.tar", "b.txt", "of0", "of1", "script.py"]
    )
    assert (tmp_path / "b.txt").read_text() == "once"


SETS_UP = {
    "handlers": "logger.setLevel(logging.INFO)\non_rank_zero(logger.addHandler)(logging.StreamHandler())\n",
    "all at once": "on_rank_zero(logging.basicConfig)(level=logging.INFO)\nlogger.setLevel(logging.INFO)\n",
}


@pytest.mark.parametrize("sets_up", SETS_UP.values(), ids=SETS_UP)
def test_a_logger_says_its_warnings_alone_on_the_others(tmp_path, sets_up):
    script = tmp_path / "script.py"
    head = "import logging\nfrom ptmigrate.runtime import on_rank_zero\nlogger = logging.getLogger()\n"
    script.write_text(f"{head}{sets_up}logging.info('once')\nlogging.warning('on each')\n")
    done = ptrun("--accelerator", "cpu", "--devices", "2", str(script))
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    assert (said.count("once"), said.count("on each")) == (1, 2)


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


WANDB = """\
config = None


def init(project=None, config=None, mode="online"):
    globals()["config"] = dict(config or {})
    return mode
"""
READS = """\
import os
import wandb
from ptmigrate.runtime import on_rank_zero

run = on_rank_zero(wandb.init)(project="p", config={"lr": 0.1}, mode=MODE)
with open("of" + os.environ["RANK"], "w") as f:
    f.write(f"{run} {wandb.config['lr']}")
"""


@pytest.mark.parametrize("mode", ["online", "offline"])
def test_a_run_of_wandb_has_its_settings_on_every_rank_and_is_rank_0s(tmp_path, mode):
    """A script reads `wandb.config`, which is there once a run has begun."""
    (tmp_path / "wandb.py").write_text(WANDB)
    (tmp_path / "script.py").write_text(READS.replace("MODE", repr(mode)))
    done = ptrun("--accelerator", "cpu", "--devices", "2", "script.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [(tmp_path / f"of{r}").read_text() for r in (0, 1)] == [f"{mode} 0.1", "disabled 0.1"]
