"""A Module that somebody wrote for the runtime is looked at as those of Lightning are; one that was lifted is done."""

from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import run

WRITTEN = """
import torch
import torch.nn.functional as F
from {imported}

class Net(Module):{doc}
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(4, 3)

    def training_step(self, batch, batch_idx):
        x, y = batch
        z = self.net(x)
        loss = F.cross_entropy(z @ z.t(), torch.arange(len(x), device=x.device))
        print(loss.detach())
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("loss", self.net(batch[0]).pow(2).mean())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

torch.manual_seed(0)
data = torch.utils.data.TensorDataset(torch.randn(8, 4), torch.randn(8))
loader = torch.utils.data.DataLoader(data, 4)
Trainer(max_epochs=2).fit(Net(), loader, loader)
"""
BY_NAME = "ptmigrate.runtime import Module, Trainer"


def test_its_steps_are_split_and_its_logs_synchronised():
    text = WRITTEN.format(imported=BY_NAME, doc="")
    result = migrate_text(text)
    assert "def training_step_end(self, " in result.text and "sync_dist=True)" in result.text
    assert "rank_zero_print" not in result.text and result.plan == "definitions"
    assert migrate_text(result.text).text == result.text
    before, after = run(text), run(result.text)
    assert before.losses and before.losses == after.losses and before.output == after.output


def test_a_lifted_one_stays():
    text = WRITTEN.format(imported=BY_NAME, doc='\n    """Lifted from train()."""\n')
    assert migrate_text(text).text == text
