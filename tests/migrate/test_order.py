"""Files of a folder, whatever they are called: a script gets the loop of another file before that one is looked at."""

import pytest
from ptmigrate.migrate.project import collect, migrate_all
from ptmigrate.migrate.result import Options

ENGINE = """\
import torch


def train_one_epoch(model, criterion, loader, optimizer, device):
    model.train()
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
MAIN = """\
import torch
from torch.utils.data import DataLoader, TensorDataset
from {engine} import train_one_epoch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = torch.nn.Linear(4, 3).to(device)
criterion = torch.nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.randn(32, 4), torch.randint(0, 3, (32,))), batch_size=4)
for epoch in range(2):
    train_one_epoch(model, criterion, loader, optimizer, device)
"""


@pytest.mark.parametrize(("main", "engine"), [("train", "engine"), ("a_train", "engine"), ("train", "z_engine")])
def test_the_loop_comes_into_the_script(tmp_path, main, engine):
    (tmp_path / f"{main}.py").write_text(MAIN.format(engine=engine))
    (tmp_path / f"{engine}.py").write_text(ENGINE)
    done = migrate_all(collect([tmp_path]), Options())
    assert [m.path.stem for m in done] == sorted((main, engine))  # told in the order that was asked for
    plans = {m.path.stem: m.report.plan for m in done}
    assert plans == {main: "module", engine: "definitions"}


def test_files_that_import_each_other(tmp_path):
    for one, other in (("a", "b"), ("b", "a")):
        (tmp_path / f"{one}.py").write_text(f"import torch\nimport {other}\n\nx = torch.ones(2).cuda()\n")
    assert [m.path.stem for m in migrate_all(collect([tmp_path]), Options())] == ["a", "b"]


UTILS = """\
import torch.distributed as dist


def init(args):
    dist.init_process_group("nccl")
"""
FEATURES = """\
import torch
import torch.distributed as dist
import utils


def features(model, loader):
    for x in loader:
        y = model(x.cuda())
        parts = list(torch.empty(dist.get_world_size(), *y.shape).unbind(0))
        dist.all_gather(parts, y, async_op=True).wait()
        yield torch.cat(parts)


if __name__ == "__main__":
    utils.init(None)
    print(list(features(torch.nn.Linear(2, 2).cuda(), torch.utils.data.DataLoader(torch.ones(4, 2)))))
"""


def test_what_is_refused_stays_refused(tmp_path):
    """That processes are started by hand stood in another file, which the first run rewrote."""
    (tmp_path / "utils.py").write_text(UTILS)
    (tmp_path / "features.py").write_text(FEATURES)
    (tmp_path / "show.py").write_text("import torch\nfrom features import features\n\nprint(features)\n")
    plans = []
    for _ in range(2):
        done = {m.path.stem: m for m in migrate_all(collect([tmp_path]), Options(in_place=True))}
        plans.append(done["features"].report.plan)
        for m in done.values():
            m.path.write_bytes(m.data)
    assert plans == ["refused", "refused"] and (tmp_path / "features.py").read_text() == FEATURES


GROUPS = """\
import torch
import torch.distributed


class Step:
    def __init__(self, ranks):
        self.group = torch.distributed.new_group(ranks=ranks)
        self.count = torch.cuda.IntTensor([0])

    def sum(self, x):
        torch.distributed.all_reduce(x, group=self.group)
        return x
"""


def test_a_library_that_talks_by_itself_is_the_same_however_others_start(tmp_path):
    (tmp_path / "utils.py").write_text(UTILS)
    (tmp_path / "groups.py").write_text(GROUPS)
    (tmp_path / "train.py").write_text("import utils\nfrom groups import Step\n\nutils.init(None)\nprint(Step([0]))\n")
    texts = []
    for _ in range(2):
        for m in migrate_all(collect([tmp_path]), Options(in_place=True)):
            m.path.write_bytes(m.data)
        texts.append((tmp_path / "groups.py").read_text())
    assert texts[0] == texts[1] and "all_reduce(x, group=self.group)" in texts[0]
    assert 'torch.IntTensor([0]).to("cuda" if torch.cuda.is_available() else "cpu")' in texts[0]
