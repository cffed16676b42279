"""A loader's worker waits for no rank: what it saves is of its own samples."""

from tests.forked import ptrun

SCRIPT = """
from pathlib import Path
import torch
from torch.utils.data import DataLoader, Dataset
from ptmigrate.runtime import Module, Trainer, rank_zero_file, rank_zero_save, rank_zero_value

class Kept(Dataset):
    def __len__(self):
        return 12
    def __getitem__(self, i):
        rank_zero_save(torch.ones(2) * rank_zero_value(i), f'{i}.pt')
        with rank_zero_file(open)(f'{i}.txt', 'w') as f:
            f.write('x')
        rank_zero_file(Path(f'{i}.note').write_text)('x')
        return torch.load(f'{i}.pt')

class Net(Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(2, 1)
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)
    def training_step(self, batch, batch_idx):
        return self.net(batch).mean()

Trainer(max_epochs=2).fit(Net(), DataLoader(Kept(), batch_size=3, num_workers=2))
"""


def test_what_a_worker_saves_is_there_and_nobody_waits(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    done = ptrun("--accelerator", "cpu", "--devices", "2", "script.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert all(len(list(tmp_path.glob(f"*.{kind}"))) == 12 for kind in ("pt", "txt", "note"))
