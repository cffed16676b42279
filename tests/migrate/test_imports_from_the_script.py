"""What a module imports starts at the folder of the script that runs it: `lib/data.py` has `lib.sampler`."""

from ptmigrate.migrate.elsewhere import of_projects
from ptmigrate.migrate.migrate import Options
from ptmigrate.migrate.project import collect, migrate_all
from ptmigrate.migrate.sources import Imports

DATA = """\
import torch.distributed as dist
from torch.utils.data import BatchSampler, DataLoader
from lib.sampler import Repeated

def loader_of(data):
    if dist.is_initialized():
        sampler = Repeated(data, 40)
        return DataLoader(data, batch_sampler=BatchSampler(sampler, 4, True))
    return DataLoader(data, batch_size=4)
"""
SAMPLER = """\
from torch.utils.data.sampler import Sampler

class Repeated(Sampler):
    def __init__(self, dataset, num_images):
        self.dataset, self.num_images = dataset, num_images
    def __iter__(self):
        return iter(range(self.num_images))
"""
TRAIN = """\
import torch.distributed as dist
from lib.data import loader_of
dist.init_process_group("nccl")
loader = loader_of(list(range(8)))
"""


def write(folder, train):
    """The script, and its modules below."""
    (folder / "lib").mkdir()
    for name, text in (("train.py", train), ("lib/data.py", DATA), ("lib/sampler.py", SAMPLER)):
        (folder / name).write_text(text)
    return [folder / name for name in ("train.py", "lib/data.py", "lib/sampler.py")]


def others(folder, train):
    found = of_projects(write(folder, train), Imports())
    return {path.name: sorted(o.stem for o in e.others) for path, e in found.items() if e.others}


def test_a_module_is_shown_what_it_imports_where_its_script_runs(tmp_path):
    assert others(tmp_path, TRAIN) == {"train.py": ["data", "sampler"], "data.py": ["sampler"]}


def test_what_that_imports_too(tmp_path):
    paths = [*write(tmp_path, TRAIN), tmp_path / "lib" / "base.py"]
    paths[2].write_text(f"from lib.base import first\n{SAMPLER}")
    paths[3].write_text("import torch\ndef first(): ...\n")
    found = of_projects(paths, Imports())
    assert sorted(o.stem for o in found[paths[1]].others) == ["base", "sampler"]


def test_not_what_only_others_import(tmp_path):
    known = others(tmp_path, f"{TRAIN}import lib.sampler\n")
    assert known["data.py"] == ["sampler"] and "sampler.py" not in known


def test_no_script_shows_where_they_start(tmp_path):
    assert "data.py" not in others(tmp_path, "from lib.data import loader_of\n")


def test_scripts_that_import_each_other(tmp_path):
    paths = write(tmp_path, TRAIN)
    (tmp_path / "eval.py").write_text("import train\nfrom lib.sampler import Repeated\nprint(Repeated)\n")
    paths[0].write_text(f"{TRAIN}import eval\n")
    found = of_projects([*paths, tmp_path / "eval.py"], Imports())
    assert sorted(o.stem for o in found[paths[1]].others) == ["sampler"]
    assert sorted(o.stem for o in found[paths[0]].others) == ["data", "eval", "sampler"]


def test_a_sampler_of_the_project_is_told_of(tmp_path):
    done = migrate_all(collect([write(tmp_path, TRAIN)[0]]), Options())
    (data,) = (m.report for m in done if m.path.name == "data.py")
    assert [n.line for n in data.attention if "draws by it" in n.message] == [7]
