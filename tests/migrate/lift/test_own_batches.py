"""A batch of the script's own class, whose to() does more than move, is brought to the device by the step, once."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_on_card, check_same

TEXT = """
import torch
from torch import nn
from torch.utils.data import DataLoader

device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')


class Batch:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def to(self, device):
        TO
        return self


def collate(rows):
    return Batch(torch.stack([r[0] for r in rows]), torch.stack([r[1] for r in rows]))


torch.manual_seed(0)
data = [(torch.randint(0, 255, (3,), dtype=torch.uint8), torch.rand(1)) for _ in range(12)]
train, test = DataLoader(data[:8], 4, collate_fn=collate), DataLoader(data[8:], 2, collate_fn=collate)
net = nn.Linear(3, 1).to(device)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    net.train()
    for batch in train:
        batch = batch.to(device)
        loss = nn.functional.mse_loss(net(batch.x), batch.y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    total = 0.0
    with torch.no_grad():
        for batch in test:
            batch = batch.to(device)
            total += nn.functional.mse_loss(net(batch.x), batch.y).item()
    print(epoch, f'{loss.item():.5f} {total:.5f}')
"""
SCALES = "self.x, self.y = self.x.float().to(device) / 255, self.y.to(device)"
CASTS = "self.x, self.y = self.x.to(device).float(), self.y.to(device)"
MOVES = "self.x, self.y = self.x.to(device), self.y.to(device)"
FLOATS = TEXT.replace("torch.randint(0, 255, (3,), dtype=torch.uint8)", "torch.rand(3)")
HOOK = "def transfer_batch_to_device(self, batch, device, dataloader_idx):\n        return batch"
SCALED = TEXT.replace("TO", SCALES)
ROWS = "__init__(self, rows):\n        self.x, self.y = map(torch.stack, zip(*rows))"
FROM_ROWS = SCALED.replace("__init__(self, x, y):\n        self.x, self.y = x, y", ROWS)
MORE = {
    "it scales": SCALED,
    "it casts": TEXT.replace("TO", CASTS),
    "it scales in place": TEXT.replace(
        "TO", "self.x, self.y = self.x.float().to(device), self.y.to(device)\n        self.x /= 255"
    ),
    "it casts by an argument": TEXT.replace(
        "TO", "self.x = self.x.to(device, torch.float32)\n        self.y = self.y.to(device)"
    ),
    "it casts by a keyword": TEXT.replace(
        "TO", "self.x = self.x.to(device=device, dtype=torch.float32)\n        self.y = self.y.to(device)"
    ),
    "it counts": FLOATS.replace("TO", MOVES + "\n        self.moved = True"),
    "it cuts": FLOATS.replace("TO", MOVES + "\n        self.x, self.y = self.x[:3], self.y[:3]"),
    "partial": SCALED.replace("collate_fn=collate", "collate_fn=functools.partial(collate)").replace(
        "import torch\n", "import functools\nimport torch\n", 1
    ),
    "counted": SCALED.replace("for batch in train:", "for i, batch in enumerate(train):"),
    "not assigned": SCALED.replace("batch = batch.to(device)", "batch.to(device)"),
    "a loader made in the loop": SCALED.replace("in train:", "in DataLoader(data[:8], 4, collate_fn=collate):"),
    "the class is the collate_fn": FROM_ROWS.replace("collate_fn=collate", "collate_fn=Batch"),
    "a lambda": FROM_ROWS.replace("collate_fn=collate", "collate_fn=lambda rows: Batch(rows)"),
}


@pytest.mark.parametrize("text", MORE.values(), ids=MORE.keys())
def test_what_does_more_is_called_once(tmp_path, text):
    migrated = check_same(text, "module")
    assert migrated.count("batch.to(self.device)") == 2 and HOOK in migrated
    check_on_card(tmp_path, text)


LESS = {
    "it moves": FLOATS.replace("TO", MOVES),
    "it moves what it holds": FLOATS.replace(
        "TO", "for k, v in vars(self).items():\n            setattr(self, k, v.to(device))"
    ),
    "no collate_fn": FLOATS.replace("TO", SCALES)
    .replace(", collate_fn=collate", "")
    .replace("batch.x", "batch[0]")
    .replace("batch.y", "batch[1]")
    .replace("batch = batch.to(device)", "batch = [b.to(device) for b in batch]"),
    "its parts": FLOATS.replace("TO", MOVES).replace(
        "batch = batch.to(device)", "batch.x, batch.y = batch.x.to(device), batch.y.to(device)"
    ),
}


@pytest.mark.parametrize("text", LESS.values(), ids=LESS.keys())
def test_what_moves_alone_is_left_to_the_runtime(tmp_path, text):
    result = migrate_text(text)
    assert result.plan == "module" and "to(self.device)" not in result.text and "transfer_batch" not in result.text
    check_same(text, "module")
    check_on_card(tmp_path, text)
