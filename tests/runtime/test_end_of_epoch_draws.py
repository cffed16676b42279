"""An evaluation that a module goes through by itself at an epoch's end has one order on all ranks: rank 0's."""

import subprocess
import sys

TEXT = """
import torch
from ptmigrate.runtime import Module, Trainer


class Net(Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def training_step(self, batch, batch_idx):
        return torch.dropout(self.layer(batch), 0.5, True).sum()

    def on_train_epoch_end(self):
        with open(f'drawn_{self.global_rank}', 'a') as file:
            print(torch.randperm(50).tolist(), file=file)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


trainer = Trainer(max_epochs=2)
trainer.fit(Net(), torch.utils.data.DataLoader(torch.ones(9, 2), batch_size=2))
with open(f'own_{trainer.global_rank}', 'w') as file:
    print(torch.randperm(50).tolist(), file=file)
"""


def test_ranks_draw_alike_at_the_end_of_an_epoch_only(tmp_path):
    (tmp_path / "script.py").write_text(TEXT)
    command = [sys.executable, "-m", "ptmigrate.runtime.cli", "--accelerator", "cpu", "--devices", "2", "script.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    drawn = [(tmp_path / f"drawn_{rank}").read_text().splitlines() for rank in (0, 1)]
    assert drawn[0] == drawn[1] and drawn[0][0] != drawn[0][1]
    assert (tmp_path / "own_0").read_text() != (tmp_path / "own_1").read_text()
