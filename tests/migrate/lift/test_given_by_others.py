"""A script that names no device, and gives its network what another file made: nothing moves that, so it stays."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_project_on_card

DATA = """\
import torch

def make(name):
    x = torch.linspace(0, 1, 160).reshape(2, 20, 4)
    return x, x.sum(2, keepdim=True)

class Task:
    def sample(self):
        return make("a")
"""
MAIN = """\
import torch
from data import Task, make

def fit(name):
    {data}
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        optimizer.zero_grad()
        loss = ((model({given}) - y[0]) ** 2).mean()
        loss.backward()
        optimizer.step()
        print(loss.item())

fit("a")
"""


@pytest.mark.parametrize("data", ["x, y = make(name)", "x, y = make('a')", "task = Task()\n    x, y = task.sample()"])
@pytest.mark.parametrize("given", ["x[0]", "x[epoch % 1].float()"])
def test_it_runs_where_it_did(tmp_path, data, given):
    after = check_project_on_card(tmp_path, main=MAIN.format(data=data, given=given), data=DATA)["main"]
    assert 'accelerator="cpu"' in after


LOADER = """\
import torch
from data import loader

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for {batch} in loader:
        optimizer.zero_grad()
        model({given}).mean().backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("batch", "given"), [("x, y", "x"), ("batch", "batch[0]"), ("x", "x.float()"), ("x", "x, epoch"), ("x", "x + 1")]
)
def test_what_a_loader_gives_is_placed(batch, given):
    text = migrate_text(LOADER.format(batch=batch, given=given)).text
    assert "Trainer(max_epochs=3)" in text


def test_what_names_a_device_says_itself_where_its_data_are(tmp_path):
    main = MAIN.format(data="x, y = make(name)", given="x[0].to(device)").replace("- y[0]", "- y[0].to(device)")
    main = main.replace("Linear(4, 1)", "Linear(4, 1).to(device)")
    main = main.replace("def fit", 'device = "cuda" if torch.cuda.is_available() else "cpu"\n\ndef fit')
    after = check_project_on_card(tmp_path, main=main, data=DATA)["main"]
    assert "trainer.fit(" in after and 'accelerator="cpu"' not in after
