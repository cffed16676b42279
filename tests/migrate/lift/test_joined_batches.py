"""Batches that a collate_fn joins end to end: a loss or a metric of their rows needs them whole."""

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text
from ptmigrate.migrate.project import collect, migrate_all

from tests.migrate.printed_on_two import by_originals, by_results
from tests.migrate.running import check_same

DATA = """
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Trees(Dataset):
    def __init__(self):
        g = torch.Generator().manual_seed(1)
        self.x = [torch.randn(int(n), 4, generator=g) for n in torch.randint(1, 9, (18,), generator=g)]

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], (self.x[i].sum(1) > 0).long(), i % 2


def hits(out, y):
    return (out.argmax(1) == y).float().mean().item()


class Bags(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x, sizes):
        return torch.stack([self.layer(part).mean(0) for part in x.split(sizes.tolist())])
"""
COLLATE = """

def collate(batch):
    COLLATES


torch.manual_seed(0)
loader = DataLoader(Trees(), batch_size=4, shuffle=True, collate_fn=collate)
"""
TRAINS = """
model = nn.Linear(4, 2)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        STEP
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, f"{loss.item():.5f}", SHOWN)
"""
JOINED = "return torch.cat([x for x, y, _ in batch]), torch.cat([y for x, y, _ in batch])"
ZIPPED = "xs, ys, _ = zip(*batch)\n    return torch.cat(xs, 0), torch.cat(ys, dim=0).long()"
FILLED = (
    "xs, ys = [], []\n    for x, y, _ in batch:\n        xs.append(x)\n        ys.append(y)\n"
    "    xs = torch.cat(xs)\n    return xs, torch.cat(ys)"
)
LISTS = "return [x for x, y, _ in batch], [y for x, y, _ in batch]"
LOSS = "loss = criterion(model(x), y)"


def script(collates=JOINED, step=LOSS, shown="0", trains=TRAINS):
    return DATA + COLLATE.replace("COLLATES", collates) + trains.replace("STEP", step).replace("SHOWN", shown)


WHOLE = {
    "joined": script(),
    "of a zip": script(ZIPPED),
    "of lists that are filled": script(FILLED),
    "in the step": script(LISTS, f"x, y = torch.cat(x), torch.cat(y)\n        {LOSS}"),
    "a sum, with a metric": script(JOINED, f"{LOSS}\n        hit = hits(model(x), y)", "f'{hit:.5f}'").replace(
        "Loss()", "Loss(reduction='sum')"
    ),
    "under another name": script(JOINED, "target = y.view(-1)\n        loss = F.cross_entropy(model(x), target)"),
    "as one name": script(trains=TRAINS.replace("for x, y in loader:", "for batch in loader:\n        x, y = batch")),
}
BAGS = TRAINS.replace("nn.Linear(4, 2)", "Bags()").replace("for x, y in", "for y, x, sizes in")
# the shape of https://docs.pytorch.org/tutorials/beginner/text_sentiment_ngrams_tutorial.html
LABELLED = (
    "ys, xs, sizes = [], [], []\n    for x, _, y in batch:\n        ys.append(y)\n        xs.append(x)\n"
    "        sizes.append(len(x))\n    return torch.tensor(ys), torch.cat(xs), torch.tensor(sizes)"
)
DIVIDED = {
    "labels of the samples": script(LABELLED, "loss = criterion(model(x, sizes), y)", trains=BAGS),
    "a row each": script("return torch.cat([x[:1] * 1 for x, y, _ in batch]), torch.tensor([y for x, _, y in batch])"),
    "a row each, of both": script(
        "return torch.cat([x.sum(0)[None] for x, *_ in batch]), torch.cat([torch.tensor([y]) for *_, y in batch])"
    ),
    "stacked": script("return torch.stack([x.sum(0) for x, *_ in batch]), torch.tensor([y for *_, y in batch])"),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_loss_of_joined_rows_needs_whole_batches(name):
    assert "divide_batches = False" in check_same(WHOLE[name], "module")
    assert any("may have any number of rows" in n.message for n in migrate_text(WHOLE[name]).attention)


@pytest.mark.parametrize("name", DIVIDED)
def test_one_of_the_samples_is_divided(name):
    result = check_same(DIVIDED[name], "module")
    assert not any("number of rows" in n.message for n in migrate_text(DIVIDED[name]).attention)
    assert name == "labels of the samples" or "divide_batches = False" not in result  # whose network splits a batch


def test_by_a_function_of_another_file(tmp_path):
    (tmp_path / "data.py").write_text(DATA + COLLATE.partition("torch.manual_seed")[0].replace("COLLATES", JOINED))
    main = (
        "import torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader\nfrom data import Trees, collate\n"
    )
    text = script().partition("torch.manual_seed(0)")[2]
    (tmp_path / "main.py").write_text(f"{main}torch.manual_seed(0){text}")
    done = {m.path.stem: m for m in migrate_all(collect([tmp_path / "main.py"]), Options())}
    assert b"divide_batches = False" in done["main"].data


@pytest.mark.slow
def test_two_processes_print_what_one_printed(tmp_path):
    texts = [*WHOLE.values(), *DIVIDED.values()]
    assert by_results(tmp_path, texts) == by_originals(tmp_path, texts)
