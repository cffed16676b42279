"""`if local_rank == 0:` is the first process of each machine where it brings files there, else rank 0."""

import pytest
from helpers import migrated

HEAD = (
    "import os\nimport shutil\nimport subprocess\nimport torch\nimport torch.distributed as dist\n"
    "import urllib.request\nimport wandb\nfrom torch.utils.tensorboard import SummaryWriter\n"
    "from torchvision.datasets import MNIST\nlocal_rank = int(os.environ['LOCAL_RANK'])\n"
    "dist.init_process_group('nccl')\n"
    "def fetch(to):\n    os.makedirs(to, exist_ok=True)\ndef start(to):\n    return wandb.init(dir=to)\n"
)


@pytest.mark.parametrize(
    "block",
    [
        "os.makedirs(d, exist_ok=True)",
        "MNIST(d, download=True)",
        "urllib.request.urlretrieve(url, d)\n    shutil.unpack_archive(d)",
        "subprocess.run(['tar', 'xf', d])\n    subprocess.run('wget ' + url, shell=True)",
        "fetch(d)",
        "path.mkdir(parents=True)",
        "print('downloads')\n    download_and_extract_archive(url, d)",
        "try:\n        archive.extractall(d)\n    except OSError:\n        pass",
    ],
)
def test_each_machine_prepares_its_files(block):
    for asked in ("local_rank == 0", "local_rank in (-1, 0) and not there"):
        text = migrated(f"{HEAD}if {asked}:\n    {block}\ngo()\n", select="PTM420").text
        assert "if is_local_zero()" in text and "is_global_zero" not in text


@pytest.mark.parametrize(
    "block",
    [
        "copy(x)",
        "os.makedirs(d, exist_ok=True)\n    writer = SummaryWriter(d)",
        "os.makedirs(d, exist_ok=True)\n    start(d)",
        "os.makedirs(d, exist_ok=True)\n    torch.save(x, d + '/x.pt')\n    shutil.rmtree(old)",
        "wandb.init(dir=d)",
        "subprocess.run(['nvidia-smi'])",
        "MNIST(d, download=False)",
    ],
)
def test_results_are_rank_0s(block):
    text = migrated(f"{HEAD}if local_rank == 0:\n    {block}\ngo()\n", select="PTM420").text
    assert "if is_global_zero():" in text and "is_local_zero" not in text


def test_a_rank_among_all_is_one_process_whatever_it_does():
    text = migrated(f"{HEAD}if dist.get_rank() == 0:\n    os.makedirs(d, exist_ok=True)\n", select="PTM420").text
    assert "if is_global_zero():" in text
