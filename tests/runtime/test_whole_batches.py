"""Steps that need whole batches: every process computes all of them, draws alike, and ends where one process does."""

import pytest
import torch
from ptmigrate.runtime import Module, Trainer
from ptmigrate.runtime.errors import ConfigurationError
from torch.utils.data import DataLoader

from tests.forked import ptrun

SCRIPT = """
import torch
from torch.utils.data import DataLoader, TensorDataset
from ptmigrate.runtime import Module, Trainer

torch.manual_seed(0)
X, Y = torch.randn(20, 4), torch.randn(20, 1)

class Around:
    def __init__(self, inner):
        self.inner = inner

    def __iter__(self):
        yield from self.inner

    def __len__(self):
        return len(self.inner)

class Carries(Module):
    divide_batches = {rule}

    def __init__(self, automatic):
        super().__init__()
        self.automatic_optimization = automatic
        self.net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
        self.smooth = 0.0

    def train_dataloader(self):
        return {loader}

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

    def training_step(self, i, batch_idx):
        x, y = {batch}
        loss = ((self.net(x) - y) ** 2).mean()
        self.smooth = 0.9 * self.smooth + loss.item()
        if not self.automatic_optimization:
            self.optimizers().zero_grad()
            self.manual_backward(loss)
            self.optimizers().step()
        return loss

    def on_train_epoch_end(self):
        self.smooth += sum(float(p.double().abs().sum()) for p in self.parameters())
        print(f"rank {{self.global_rank}}: {{self.current_epoch}} {{self.smooth:.15f}} {{torch.rand(1).item():.6f}}")

if __name__ == "__main__":
    for automatic in {automatic}:
        Trainer(max_epochs=3, reload_dataloaders_every_n_epochs=1).fit(Carries(automatic))
"""
INDEX = {"loader": "range(self.current_epoch, 20, 5)", "batch": "X[i : i + 5], Y[i : i + 5]"}
OF_PACKAGES = {"ddp_sharded": "fairscale", "deepspeed": "deepspeed", "horovod": "horovod"}
LOADER = {"loader": "DataLoader(TensorDataset(X, Y), batch_size=6, shuffle=True)", "batch": "i"}
# as a progress bar: around the loader, and on rank 0 alone
BAR = {**LOADER, "loader": f"(lambda given: given if self.global_rank else Around(given))({LOADER['loader']})"}


def on(processes, script, *options):
    return ptrun("--accelerator", "cpu", "--devices", str(processes), "--global-batch", *options, str(script))


def said(output, rank):
    return [line.split(": ", 1)[1] for line in output.splitlines() if line.startswith(f"rank {rank}: ")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "batches", "automatic", "processes"),
    [
        ("False", INDEX, (True,), 2),
        ("False", LOADER, (True, False), 3),
        ('"loaders"', INDEX, (True,), 2),
        ('"loaders"', BAR, (True,), 2),
    ],
    ids=["index", "loader, and by hand", "decided", "bar of rank 0"],
)
def test_every_process_runs_what_one_process_runs(tmp_path, rule, batches, automatic, processes):
    """To the last bit, on three processes, too."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(rule=rule, automatic=automatic, **batches))
    one = on(1, script)
    several = on(processes, script)
    assert one.returncode == several.returncode == 0, several.stderr
    assert len(said(one.stdout, 0)) == 3 * len(automatic)
    assert all(said(several.stdout, rank) == said(one.stdout, 0) for rank in range(processes))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A script that trains by itself and by hand, and what it says on one process."""
    script = tmp_path_factory.mktemp("script") / "script.py"
    script.write_text(SCRIPT.format(rule="False", automatic=(True, False), **LOADER))
    one = on(1, script)
    assert one.returncode == 0 and len(said(one.stdout, 0)) == 6, one.stderr
    return script, said(one.stdout, 0)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["ddp_spawn", "ddp_fork", "bagua", "fsdp", "ddp_sharded", "deepspeed", "horovod"])
def test_so_do_the_processes_of_other_engines(trained, strategy):
    """On two, where the mean of two equal gradients is exact."""
    if strategy in OF_PACKAGES:
        pytest.importorskip(OF_PACKAGES[strategy])
    script, wanted = trained
    two = on(2, script, "--strategy", strategy)
    assert two.returncode == 0, two.stderr
    assert said(two.stdout, 0) == wanted


@pytest.mark.parametrize(
    ("draws", "kinds"),
    [
        ("torch.rand(1) if self.global_rank == 0 else None", "torch"),
        ("self.global_rank or __import__('random').random()", "random"),
        ("torch.rand(1)", None),
        ("self.global_rank or torch.rand(1, generator=torch.Generator())", None),
    ],
)
def test_what_rank_0_alone_draws_in_a_step_is_told_once(tmp_path, draws, kinds):
    script = tmp_path / "script.py"
    text = SCRIPT.format(rule="False", automatic=(True,), **INDEX)
    script.write_text(text.replace("        x, y = ", f"        {draws}\n        x, y = "))
    done = on(2, script)
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stderr.splitlines() if "not those of one process" in line]
    assert len(told) == (kinds is not None)
    assert kinds is None or f" numbers from {kinds} on some" in told[0]


def test_the_loader_of_an_epoch_is_made_anew():
    made = []

    class Module_(Module):
        def train_dataloader(self):
            made.append(self.current_epoch)
            return DataLoader(torch.zeros(4, 2), batch_size=2)

        def training_step(self, batch, batch_idx): ...

    Trainer(max_epochs=5, reload_dataloaders_every_n_epochs=2).fit(Module_())
    assert made == [0, 2, 4]


def test_an_unknown_rule_is_refused():
    class Module_(Module):
        divide_batches = "batches"

        def training_step(self, batch, batch_idx): ...

    with pytest.raises(ConfigurationError, match="divide_batches"):
        Trainer(max_epochs=1).fit(Module_(), [torch.zeros(2)])
