"""A lifted script that keeps its best weights in a file of its own name, and loads them at the end."""

from tests import forked
from tests.migrate.running import check_same

TEXT = """
import os
import tempfile
import uuid
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
xs = torch.randn(24, 4)
loader = DataLoader(TensorDataset(xs, xs.sum(1, keepdim=True)), batch_size=8)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
kept = os.path.join(tempfile.gettempdir(), uuid.uuid4().hex + '.pt')
for epoch in range(3):
    for x, y in loader:
        loss = ((model(x) - y) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch < 2:
        torch.save(model.state_dict(), kept)
model.load_state_dict(torch.load(kept))
os.remove(kept)
print(f'{model.weight.sum().item():.5f}')
"""


def test_every_process_finds_its_own_file(tmp_path):
    result = check_same(TEXT, "module")
    assert "            torch.save(self.model.state_dict(), self.kept)\n" in result and "is_global_zero" not in result
    script = tmp_path / "train.py"
    script.write_text(result)
    two = ("--accelerator", "cpu", "--devices", "2", "--global-batch")
    one, two = forked.run(script), forked.ptrun(*two, script)
    assert two.returncode == 0, two.stderr
    assert two.stdout == one.stdout and one.stdout.strip()
