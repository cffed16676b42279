"""A checkpoint is whole or absent; a damaged one is named, with what is wrong and the last good one."""

import os

import pytest
import torch
from ptmigrate.runtime import Module, Runtime, Trainer
from ptmigrate.runtime.checkpoint.read import DamagedCheckpoint, problem, read
from ptmigrate.runtime.checkpoint.write import write_atomically
from ptmigrate.runtime.errors import ConfigurationError
from torch.utils.data import DataLoader, TensorDataset


class Net(Module):
    def __init__(self, width=3, name="net"):
        super().__init__()
        self.save_hyperparameters()
        self.layer = torch.nn.Linear(2, width)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

    def training_step(self, batch, batch_idx):
        return self.layer(batch[0]).mean()


def loader():
    return DataLoader(TensorDataset(torch.randn(16, 2)), 4)


def trained(folder, width=5):
    net, trainer = Net(width, name="mine"), Trainer(max_epochs=1)
    trainer.fit(net, loader())
    trainer.save_checkpoint(folder / "a.ckpt")
    return net, folder / "a.ckpt"


def test_hyperparameters_and_weights_come_back(tmp_path):
    net, path = trained(tmp_path)
    again = Net.load_from_checkpoint(path)
    assert dict(again.hparams) == {"width": 5, "name": "mine"}
    assert torch.equal(again.layer.weight, net.layer.weight)
    assert Net.load_from_checkpoint(path, name="other").hparams.name == "other"


def test_keys_are_lightnings(tmp_path):
    keys = set(torch.load(trained(tmp_path)[1], weights_only=True))
    assert {"epoch", "global_step", "state_dict", "optimizer_states", "lr_schedulers", "callbacks"} <= keys


@pytest.mark.parametrize("at", [0.3, 0.6])
def test_one_changed_byte_is_found(tmp_path, at):
    _, good = trained(tmp_path)
    data = bytearray(good.read_bytes())
    start = data.find(b"\x50\x4b\x03\x04", int(len(data) * at)) + 200
    data[start] ^= 0x10
    damaged = tmp_path / "b.ckpt"
    damaged.write_bytes(data)
    if problem(damaged) is None:
        pytest.skip("the byte was padding")
    with pytest.raises(DamagedCheckpoint, match=r"b\.ckpt.*last good one there is.*a\.ckpt"):
        read(damaged)


def test_a_cut_file_is_found(tmp_path):
    _, good = trained(tmp_path)
    cut = tmp_path / "cut.ckpt"
    cut.write_bytes(good.read_bytes()[:-100])
    with pytest.raises(DamagedCheckpoint, match=r"not a whole checkpoint.*a\.ckpt"):
        Trainer(max_epochs=2).fit(Net(5), loader(), ckpt_path=cut)


def test_missing(tmp_path):
    with pytest.raises(DamagedCheckpoint, match="no such file"):
        Trainer().fit(Net(), loader(), ckpt_path=tmp_path / "none.ckpt")


@pytest.mark.parametrize("saved", [torch.nn.Linear(2, 5).state_dict(), torch.zeros(3), [1, 2]], ids=type)
def test_what_is_no_checkpoint_of_a_trainer(tmp_path, saved):
    torch.save(saved, tmp_path / "a.ckpt")
    with pytest.raises(ConfigurationError, match=r"a\.ckpt' is no checkpoint of a Trainer.*load_state_dict"):
        Trainer(max_epochs=1).fit(Net(), loader(), ckpt_path=tmp_path / "a.ckpt")


def test_code_is_not_run(tmp_path):
    torch.save({"state_dict": {}, "x": Net}, tmp_path / "bad.ckpt")
    with pytest.raises(ConfigurationError, match="weights_only=False"):
        read(tmp_path / "bad.ckpt")


def test_a_failed_write_leaves_what_was_there(tmp_path):
    path = tmp_path / "model.pt"
    Runtime().save({"a": 1}, path)

    def fails(file):
        file.write(b"half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, fails)
    assert torch.load(path) == {"a": 1}
    assert os.listdir(tmp_path) == ["model.pt"]


def test_the_mode_of_a_file_is_kept(tmp_path):
    path = tmp_path / "model.pt"
    path.touch()
    path.chmod(0o640)
    Runtime().save([1], path)
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_disk_that_is_full_is_named_and_leaves_what_was_there(tmp_path):
    resource = pytest.importorskip("resource")
    path = tmp_path / "a.ckpt"
    Runtime("cpu").save({"a": 1}, path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))  # of this process, in bytes
    try:
        with pytest.raises(OSError, match=r"a\.ckpt"):
            Runtime("cpu").save(torch.zeros(100_000), path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert torch.load(path) == {"a": 1} and os.listdir(tmp_path) == ["a.ckpt"]
