"""What a module imports and its rewriting reads no more leaves, unless another file takes it from there."""

import pytest
from ptmigrate.migrate.migrate import Options
from ptmigrate.migrate.project import collect, migrate_all

MODEL = """\
import torch
from torch.autograd import Variable
from marks import mark


class Net(torch.nn.Module):
    def forward(self, x):
        return Variable(torch.ones_like(x)) * x
"""
PLAIN = MODEL.replace("Variable(torch.ones_like(x))", "torch.ones_like(x)")
IMPORT = "from torch.autograd import Variable\n"
MAIN = "import torch\n{}\n\nprint(Net()(torch.ones(1)))\n"


def migrated(folder, main, model=MODEL, options=None, **more):
    texts = {"main": MAIN.format(main), "model": model, "marks": "mark = 1\n", **more}
    for name, text in texts.items():
        path = folder / f"{name.replace('.', '/')}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    done = migrate_all(collect([folder / "main.py"]), options or Options())
    return {m.path.name: m.data.decode() for m in done}


@pytest.mark.parametrize(
    "main",
    [
        "from model import Net",
        "import model\nNet = model.Net",
        "from model import Net\nVariable = 3\nprint(Variable)",
        "from model import Net\nfrom torch.autograd import Variable\nprint(Variable)",
    ],
)
def test_what_nobody_takes_leaves(tmp_path, main):
    assert migrated(tmp_path, main)["model.py"] == PLAIN.replace(IMPORT, "")


@pytest.mark.parametrize(
    "main",
    [
        "from model import Net, Variable\nprint(Variable)",
        "from model import *\nprint(Variable)",
        "import model\nfrom model import Net\nprint(model.Variable)",
        "import model as m\nfrom model import Net\nprint(m.Variable)",
        "import model\nfrom model import Net\nprint(getattr(model, 'Variable'))",
        "import importlib\nNet = importlib.import_module('model').Net\nVariable = 3",
    ],
)
def test_what_is_taken_stays(tmp_path, main):
    assert migrated(tmp_path, main)["model.py"] == PLAIN


def test_what_another_module_takes_stays(tmp_path):
    text = migrated(tmp_path, "from model import Net\nimport other", other="from model import Variable as V\n")[
        "model.py"
    ]
    assert text == PLAIN


@pytest.mark.parametrize("in_place", [True, False])
def test_a_file_beside_it_counts_where_it_is_rewritten_itself(tmp_path, in_place):
    (tmp_path / "beside.py").write_text("from model import Variable\n")
    text = migrated(tmp_path, "from model import Net", options=Options(in_place=in_place))["model.py"]
    assert (IMPORT in text) is in_place


def test_a_package_gives_what_it_imports(tmp_path):
    init = MODEL.replace("from marks", "from .marks").replace("import mark", "import mark  # here")
    more = {"parts.__init__": init, "parts.marks": "mark = 1\n"}
    for taken, stays in (("from parts import Net", False), ("from parts import Net, Variable", True)):
        assert (IMPORT in migrated(tmp_path, taken, **more)["__init__.py"]) is stays


def test_what_was_not_read_before_stays(tmp_path):
    assert "from marks import mark\n" in migrated(tmp_path, "from model import Net")["model.py"]


@pytest.mark.parametrize(
    ("marks", "stays"),
    [
        ("def mark(x): ...\n", False),
        ("import torch\n@torch.no_grad()\ndef mark(x): ...\n", False),
        ('"""Marks."""\nmark = print\n', False),
        ("import torch\ntorch.manual_seed(1)\nmark = print\n", True),
        ("from names import register\n@register('mark')\ndef mark(x): ...\n", True),
    ],
)
def test_a_module_that_runs_something_is_imported_still(tmp_path, marks, stays):
    """`mark` is read in a branch of several processes alone."""
    model = MODEL.replace("import torch\n", "import torch\nimport torch.distributed as dist\n", 1)
    model += "\n\ndef start():\n    if dist.get_world_size() > 1:\n        mark(1)\n"
    main = "import torch.distributed as dist\nfrom model import Net, start\ndist.init_process_group('gloo')\nstart()"
    text = migrated(tmp_path, main, model, marks=marks)["model.py"]
    assert "mark(1)" not in text and ("from marks import mark\n" in text) is stays
