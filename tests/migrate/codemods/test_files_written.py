"""Files that every process would write, one over the other, are rank 0's; what is read again is waited for."""

import pytest
from helpers import dedent
from ptmigrate.migrate.codemods.base import apply
from ptmigrate.migrate.codemods.once import Once
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import on_one_and_two


def once(source: str, waits: bool = True) -> str:
    facts = Facts(dedent(source))
    return apply(facts, list(Once(waits=waits).plan(facts)))


WRITTEN = {
    "with open('a.txt', 'w') as f:\n    f.write('x')": "open",
    "f = open(file='a.txt', mode='wb')": "open",
    "import io\nf = io.open('a.txt', 'x')": "io.open",
    "import gzip\nwith gzip.open('a.gz', 'wt') as f:\n    f.write('x')": "gzip.open",
    "import codecs\nf = codecs.open(p, 'w', 'utf-8')": "codecs.open",
    "import zipfile\nwith zipfile.ZipFile('a.zip', 'w') as z:\n    z.write(p)": "zipfile.ZipFile",
    "import tarfile\nt = tarfile.open('a.tgz', 'w:gz')": "tarfile.open",
    "import h5py\nf = h5py.File('a.h5', 'w')": "h5py.File",
    "from pathlib import Path\nwith Path('a').open('w') as f:\n    f.write('x')": "Path('a').open",
    "from pathlib import Path\nPath('a').write_text('x')": "Path('a').write_text",
    "mode = 'a' if resume else 'w'\nf = open('a.txt', mode)": "open",
    "f = open('a.txt', 'a' if resume else 'w')": "open",
    "import numpy as np\nnp.save('a.npy', x)": "np.save",
    "import numpy as np\nnp.savetxt('a.txt', x)": "np.savetxt",
    "from scipy.io import savemat\nsavemat('a.mat', x)": "savemat",
    "import joblib\njoblib.dump(x, 'a')": "joblib.dump",
    "import cv2\ncv2.imwrite('a.png', x)": "cv2.imwrite",
    "import imageio\nimageio.mimsave('a.gif', xs)": "imageio.mimsave",
    "frame.to_csv('a.csv')": "frame.to_csv",
    "pd.DataFrame(rows).to_csv(p, index=False)": "pd.DataFrame(rows).to_csv",
    "fig.savefig('a.png')": "fig.savefig",
    "import matplotlib.pyplot as plt\nplt.savefig(p)": "plt.savefig",
    "img.save('a.png')": "img.save",
    "import os\nimg.save(os.path.join(d, f'{i}.jpg'))": "img.save",
    "from PIL import Image\nmade = Image.fromarray(x)\nmade.save(p)": "made.save",
    "from PIL import Image\nImage.open('a.png').convert('L').resize((2, 2)).save(p)": (
        "Image.open('a.png').convert('L').resize((2, 2)).save"
    ),
}


@pytest.mark.parametrize("source", WRITTEN)
def test_rank_0_alone_writes(source):
    name = WRITTEN[source]
    assert once(source) == source.replace(f"{name}(", f"on_rank_zero({name})(")


@pytest.mark.parametrize(
    "source",
    [
        "open('a.txt')",
        "open('a.txt', 'r')",
        "open('a.txt', 'r+')",
        "open('a.txt', mode)",
        "mode = 'w' if x else 'r'\nopen('a.txt', mode)",
        "open(f'{rank}.txt', 'w')",
        "import os\nopen(os.devnull, 'w')",
        "import tempfile\nopen(tempfile.mktemp(), 'w')",
        "if rank == 0:\n    f = open('a.txt', 'w')",
        "import io, numpy\nkept = io.BytesIO()\nnumpy.save(kept, x)",
        "import gzip\ngzip.open('a.gz')",
        "import tarfile\ntarfile.open('a.tgz', 'r:gz')",
        "from PIL import Image\nImage.open('a.png')",
        "text = frame.to_csv()",
        "text = frame.to_csv('a.csv')",
        "model.save('a')",
        "from PIL import Image\nmade = Image.open(p) if p else model\nmade.save(q)",
        "class Own(torch.utils.data.Dataset):\n    def __getitem__(self, i):\n        open(f'{i}.txt', 'w').write('x')",
        "class Own:\n    def __getitem__(self, i):\n        return self.made(i)\n"
        "    def made(self, i):\n        with open(f'{i}.txt', 'w') as f:\n            f.write('x')",
    ],
)
def test_what_is_read_or_each_process_s_own_stays(source):
    assert once(source) == source


STOPPING = """\
import torch


class Stopping:
    def __init__(self, path):
        self.path = path

    def __call__(self, loss, net):
        if loss < 1:
            self.keep(net)
        {given}

    def keep(self, net):
        torch.save({saved}, self.path)
"""


@pytest.mark.parametrize(
    "given, saved",
    [
        ("self.last = loss", "net"),
        ("return", "net"),
        ("return False", "net"),
        ("return loss < 1", "net"),
        ("return self.stopped", "net.state_dict()"),
        ("return self.stopped", "{'net': net.state_dict()}"),
    ],
)
def test_what_an_object_saves_that_gives_no_sample_is_rank_0_s(given, saved):
    assert "        on_rank_zero(torch.save)(" in once(STOPPING.format(given=given, saved=saved), waits=False)


@pytest.mark.parametrize("given", ["return loss", "yield loss", "return self.made"])
def test_what_a_transform_saves_is_every_process_s(given):
    text = STOPPING.format(given=given, saved="loss")
    assert once(text, waits=False) == text


def test_a_library_s_call_that_is_given_an_open_file_stays():
    source = "import numpy as np\nwith open('a.npy', 'wb') as f:\n    np.save(f, x)"
    assert once(source) == source.replace("open(", "on_rank_zero(open)(")


READ_AGAIN = {
    "x = json.load(open('v.json'))": True,
    "with open(f'{name}.json') as f:\n    x = json.load(f)": True,
    "x = open(os.path.join(d, 'v.json')).read()": True,
    "x = Vocabulary('v.json')": True,
    "x = pathlib.Path('v.json').read_text()": True,
    "path = 'v.json'\nx = load(path)": True,
    "def f(path):\n    return open(path).read()\nf('v.json')": True,
    "os.system('cat v.json')": True,
    "import glob\nfound = glob.glob('*.json')": True,
    "import glob\nfound = glob.glob('*.png')": False,
    "x = json.load(open('other.json'))": False,
    "there = os.path.exists('v.json')": False,
    "logger.info('written to %s', 'v.json')": False,
}


@pytest.mark.parametrize("reads", READ_AGAIN)
def test_what_is_read_again_is_waited_for(reads):
    head = "import json, os, pathlib\n"
    written = "with open('v.json', 'w') as f:\n    json.dump(x, f)\n"
    name = "rank_zero_file" if READ_AGAIN[reads] else "on_rank_zero"
    assert once(head + written + reads) == head + written.replace("open(", f"{name}(open)(") + reads


@pytest.mark.parametrize(
    "writes",
    [
        "f = open('v.json', 'w')\njson.dump(x, f)\nf.close()",  # when it is whole does not show
        "class Own:\n    def keep(self):\n        with open('v.json', 'w') as f:\n            json.dump(x, f)",
        "if os.path.exists('a'):\n    class Own:\n        def __init__(self):\n            self.keep()\n",
    ],
)
def test_what_no_rank_can_wait_for_is_every_process_s_own(writes):
    source = f"import json, os\n{writes}\nx = json.load(open('v.json'))"
    assert once(source) == source


def test_what_is_added_is_added_once_in_any_case():
    source = "f = open('v.json', 'a')\nf.write('x')\nx = open('v.json').read()"
    assert once(source) == source.replace("open(", "on_rank_zero(open)(", 1)


@pytest.mark.parametrize(
    ("opened", "adds"),
    [("'v', 'at'", True), ("'v', mode", True), ("'a', 'w'", False), ("'v', 'w', encoding='a'", False)],
)
def test_what_adds_is_told_by_its_mode(opened, adds):
    source = f"mode = 'a'\nf = open({opened})\nf.write('x')\nx = [open(p).read() for p in ('v', 'a')]\nkept('v', 'a')"
    assert ("on_rank_zero(open)(" in once(source)) is adds


def test_a_folder_that_is_listed_is_read():
    source = "import os\nimport numpy as np\nfolder = 'made'\nnp.save(os.path.join(folder, 'a.npy'), x)\n"
    assert "rank_zero_file(np.save)" in once(source + "for name in os.listdir(folder):\n    use(name)")
    assert "on_rank_zero(np.save)" in once(source + "for name in os.listdir('data'):\n    use(name)")


SCRIPT = """
import json, os, pickle, time
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
class Data(Dataset):
    def __init__(self, root):
        self.path = os.path.join(root, 'data.npy')
        os.makedirs(root, exist_ok=True)
        if not os.path.exists(self.path):
            self.build()
        self.x = torch.from_numpy(np.load(self.path))
    def build(self):
        np.save(self.path, np.random.RandomState(0).randn(32, 4).astype('float32'))
    def __len__(self):
        return 32
    def __getitem__(self, i):
        path = self.path + f'{i}.pt'
        if not os.path.exists(path):
            torch.save(self.x[i], path)
        return torch.load(path)
if os.environ.get('LOCAL_RANK') == 'LATE':
    time.sleep(2)
torch.manual_seed(0)
data = Data('made')
with open('vocabulary.json', 'w') as f:
    json.dump(list(range(99)), f)
words = json.load(open('vocabulary.json'))
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
log = open('log.txt', 'w')
for epoch in range(2):
    for x in DataLoader(data, batch_size=8, shuffle=True, num_workers=WORKERS):
        loss = net(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    log.write(f'{epoch} {loss.item():.4f}\\n')
log.close()
with open('weights.pkl', 'wb') as f:
    pickle.dump(net.state_dict(), f)
"""


@pytest.mark.parametrize(("late", "workers"), [("0", "0"), ("1", "1")])
def test_two_processes_write_what_one_writes(tmp_path, late, workers):
    text = SCRIPT.replace("LATE", late).replace("WORKERS", workers)
    result = migrate_text(text)
    assert "if not rank_zero_value(os.path.exists(self.path)):" in result.text
    assert "            torch.save(self.x[i], path)" in result.text
    one, two = on_one_and_two(tmp_path, text, result.text)
    assert (one / "log.txt").read_text() == (two / "log.txt").read_text()
    assert all((folder / "weights.pkl").stat().st_size > 100 for folder in (one, two))


LIBRARY = """
import numpy as np
def keep(path, x):
    np.save(path, x)
"""


def test_in_a_file_that_others_call_it_is_rank_0_s_where_all_come_by():
    facts = Facts(LIBRARY)
    assert not list(Once(waits=False).plan(facts))  # a step may give it the name of a sample
    facts.together_elsewhere = frozenset({"keep"})
    assert "on_rank_zero(np.save)(path, x)" in apply(facts, list(Once(waits=False).plan(facts)))
    named = Facts(LIBRARY.replace("np.save(path", "np.save('a.npy'"))
    assert "on_rank_zero(np.save)('a.npy', x)" in apply(named, list(Once(waits=False).plan(named)))


HOOK = """
from ptmigrate.runtime import Module
import numpy as np
class Net(Module):
    def training_step(self, batch, batch_idx):
        names, x = batch
        i, epoch = batch_idx, self.current_epoch
        self.name = names[0]
        np.save(PATH, x)
"""


@pytest.mark.parametrize("path", ["names[0]", "f'{self.name}.npy'", "str(batch)"])
def test_a_step_that_names_the_file_by_its_samples_writes_those_that_the_rank_has(path):
    source = HOOK.replace("PATH", path).strip("\n")
    assert once(source) == source
    whole = source.replace("    def", "    divide_batches = False\n    def")
    assert once(whole) == whole.replace("np.save(", "on_rank_zero(np.save)(")


@pytest.mark.parametrize("path", ["'a.npy'", "f'{i}.npy'", "f'{epoch}.npy'", "self.folder + str(i)"])
def test_one_that_names_it_by_the_step_writes_it_once(path):
    source = HOOK.replace("PATH", path).strip("\n")
    assert once(source) == source.replace("np.save(", "on_rank_zero(np.save)(")


def test_what_a_hook_writes_and_reads_again_is_every_process_s_own_and_told():
    source = (
        "class Net(Module):\n    def training_step(self, batch, i):\n        self.loss = batch.mean()\n"
        "    def on_train_epoch_end(self):\n        if self.loss < 1:\n            np.save('a.npy', x)\n"
        "        np.load('a.npy')\n"
    )
    source = f"import numpy as np\nfrom ptmigrate.runtime import Module\n{source}"
    assert once(source) == source
    assert [n.line for n in Once().notes(Facts(source))] == [8]
    alike = source.replace("self.loss < 1", "self.current_epoch % 5 == 0")
    assert once(alike) == alike.replace("np.save(", "rank_zero_file(np.save)(")
    assert not list(Once().notes(Facts(source.replace("np.load('a.npy')", "np.load('b.npy')"))))


def test_a_picture_is_rank_0_s_though_it_may_be_read_again():
    source = HOOK.replace("np.save(PATH, x)", "fig.savefig('a.png')\n        np.load('a.png')").strip("\n")
    assert once(source) == source.replace("fig.savefig(", "on_rank_zero(fig.savefig)(")


CACHED = """
import os
import numpy as np
def cached(path):
    if os.path.isfile(path):
        return np.load(path)
    x = np.random.RandomState(0).randn(3)
    np.save(path, x)
    return x
"""


def test_a_way_out_where_the_file_is_there_is_rank_0_s_answer():
    text = once(f"{CACHED}cached('x.npy')")
    assert "if rank_zero_value(os.path.isfile(path)):" in text and "rank_zero_file(np.save)(path, x)" in text
    facts = Facts(CACHED)
    facts.together_elsewhere = frozenset({"", "cached"})
    text = apply(facts, list(Once(waits=False).plan(facts)))
    assert "if rank_zero_value(os.path.isfile(path)):" in text and "rank_zero_file(np.save)(path, x)" in text
    assert not list(Once(waits=False).plan(Facts(CACHED)))


def test_a_path_that_a_function_gives_back_may_be_read_by_its_caller():
    source = (
        "import os\ndef make(folder):\n    made = os.path.join(folder, 'v.txt')\n"
        "    with open(made, 'w') as f:\n        f.write('x')\n    return GIVEN\n"
    )
    for given, name in (("made", "rank_zero_file"), ("made, 3", "rank_zero_file"), ("folder", "on_rank_zero")):
        before = source.replace("GIVEN", given)
        assert once(before) == before.replace("open(", f"{name}(open)(")
