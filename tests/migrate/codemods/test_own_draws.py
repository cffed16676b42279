"""T9: a sampler of the script's own goes with the branch of connected processes, and is told of."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

SCRIPT = """\
import torch.distributed as dist
from torch.utils.data import BatchSampler, DataLoader
from torch.utils.data.sampler import Sampler

class Repeated(Sampler):
    def __init__(self, dataset, num_images, num_replicas=None, rank=None, shuffle=True):
        self.dataset, self.num_images = dataset, num_images
    def __iter__(self):
        return iter(range(self.num_images))

def loader_of(data):
    if dist.is_initialized():
        sampler = {made}
        return DataLoader(data, batch_sampler=BatchSampler(sampler, 4, True))
    return DataLoader(data, batch_size=4)

dist.init_process_group("nccl")
loader = loader_of(list(range(8)))
"""


def told(made, edit=lambda script: script):
    result = migrate_text(edit(SCRIPT.format(made=made)))
    assert "dist." not in result.text
    return [n for n in result.attention if "draws by it" in n.message]


@pytest.mark.parametrize("made", ["Repeated(data, 40)", "Repeated(data, num_images=40, shuffle=False)"])
def test_it_is_told(made):
    (note,) = told(made)
    assert note.code == "PTM420" and note.line == 13


@pytest.mark.parametrize(
    "made, edit",
    [
        ("Repeated(data, rank=0)", lambda script: script),
        ("Repeated(data, 40)", lambda script: script.replace("(Sampler)", "(object)")),
        ("range(40)", lambda script: script),
        ("Repeated(data, 40)", lambda script: script.replace("dist.is_initialized()", "dist.get_world_size() > 1")),
    ],
)
def test_nothing_to_tell(made, edit):
    assert not told(made, edit)
