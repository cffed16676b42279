"""Names that a `match` binds: parts of a batch are placed as such, and a loop that has such names is kept."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_same

MODULE = """import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def predict(self, batch):
        BODY
"""
MATCH = """match batch:
            case {"x": x}:
                x = x.cuda()
            case (x, _) | [_, x]:
                x = x.cuda(0)
            case _:
                x = batch.to("cuda")
"""
LOOP = (
    HEAD
    + """
for epoch in range(2):
    for batch in train_loader:
        match batch:
            case {"x": x, "y": y}:
                x, y = x * 2, y
            case [x, y]:
                x = x * 1
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
"""
)
STEP = (
    HEAD
    + """
def step(batch):
    match batch:
        case [x, y]:
            loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()

x = 3
for epoch in range(2):
    for batch in train_loader:
        loss = step(batch)
    print(epoch, x, loss)
"""
)


def migrated(body):
    return migrate_text(MODULE.replace("BODY", body), is_script=False).text


def test_what_a_pattern_takes_of_a_batch_is_placed_with_it():
    text = migrated(f"{MATCH}        return self.fc(x)")
    assert "cuda" not in text and "device" not in text


def test_what_is_matched_as_a_dictionary_has_no_device():
    assert "z = torch.zeros(2).to(self.fc.weight.device)" in migrated(
        f"{MATCH}        z = torch.zeros(2).cuda()\n        return self.fc(x) + z"
    )


def test_a_name_that_is_deleted_was_placed_all_the_same():
    text = migrated("x = batch[0]\n        x = x.cuda()\n        out = self.fc(x)\n        del x\n        return out")
    assert "cuda" not in text and "device" not in text


def test_a_part_of_what_is_made_here_is_moved():
    made = """match {"x": torch.zeros(3)}:
            case {"x": x}:
                x = x.cuda()
        return self.fc(x)"""
    assert "x = x.to(" in migrated(made)


@pytest.mark.parametrize("script", [LOOP, STEP], ids=["loop", "step"])
def test_a_loop_with_such_names_is_kept(script):
    check_same(script, "loop")


def test_a_match_that_binds_nothing_is_lifted():
    script = LOOP.replace('{"x": x, "y": y}:\n                x, y = x * 2, y', "{}:\n                raise KeyError")
    check_same(script.replace("[x, y]:\n                x = x * 1", "_:\n                x, y = batch"), "module")
