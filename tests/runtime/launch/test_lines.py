"""What ranks print: each line is whole, however many ranks write at once."""

import pytest

from tests.runtime.launching import ptrun, run

SCRIPT = """
import ptmigrate.runtime, os, sys
print("whole", [(s.line_buffering, s.write_through) for s in (sys.stdout, sys.stderr)])
for i in range(2000):
    print("rank", os.environ["RANK"], "says", i)
    print("rank", os.environ["RANK"], "warns", i, file=sys.stderr)
"""


def test_the_lines_of_two_ranks_stay_whole(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = ptrun("--accelerator", "cpu", "--devices", "2", str(script))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("whole [(True, False), (True, False)]\n") == 2
    for word, output in (("says", done.stdout), ("warns", done.stderr)):
        wanted = [f"rank {rank} {word} {i}" for rank in (0, 1) for i in range(2000)]
        assert sorted(line for line in output.splitlines() if word in line) == sorted(wanted)


STARTS = """
import ptmigrate.runtime, os, sys, torch
from ptmigrate.runtime import Module, Trainer

class Says(Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def training_step(self, batch, batch_idx):
        print("rank", os.environ["RANK"], [(s.line_buffering, s.write_through) for s in (sys.stdout, sys.stderr)])
        return self.layer(batch).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(torch.ones(2, 1))
    Trainer(accelerator="cpu", devices=2, strategy=sys.argv[1], max_epochs=1).fit(Says(), loader)
"""


@pytest.mark.parametrize("strategy", ["ddp", "ddp_spawn", "ddp_fork"])
def test_lines_are_whole_too_where_a_script_starts_the_ranks(strategy, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(STARTS)
    done = run("-u", str(script), strategy, PYTHONUNBUFFERED="1")
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stdout.splitlines() if line.startswith("rank")]
    assert sorted(said) == [f"rank {rank} [(True, False), (True, False)]" for rank in (0, 1)]
