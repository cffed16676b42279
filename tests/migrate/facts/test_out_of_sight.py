"""A script whose training does not show keeps its moves; where it starts processes by hand, it is refused."""

import pytest
from ptmigrate.migrate.migrate import migrate_text
from ptmigrate.migrate.project import collect, migrate_all
from ptmigrate.migrate.result import Options

SCALED = """
import torch
from timm.utils import NativeScaler

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = torch.nn.Linear(2, 1).to(device)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
loss_scaler = NativeScaler()
for x, y in loader:
    loss = (net(x.to(device)) - y.to(device)).square().mean()
    loss_scaler(loss, optimizer, parameters=net.parameters())
"""
BY_HAND = SCALED.replace(
    "\ndevice =", "\ntorch.distributed.init_process_group('nccl')\ndevice ="
).replace("optimizer = ", "net = torch.nn.parallel.DistributedDataParallel(net)\noptimizer = ")  # fmt: skip
OWN = "def loss_scaler(loss, optimizer, parameters):\n    optimizer.step()\n"


def of_project(folder, **texts):
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    return migrate_all(collect([folder / "main.py"], folder), Options())


@pytest.mark.parametrize(
    "call",
    [
        "loss_scaler(loss, optimizer)",
        "engine.train(step, loader, 10, optimizer)",
        "engine.train(step, loader, optim=self.optimizer)",
        "fit(net, optimiser)",
    ],
)
def test_moves_stay_where_a_library_trains(call):
    text = SCALED.replace("loss_scaler(loss, optimizer, parameters=net.parameters())", call)
    assert migrate_text(text).text == text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("loss_scaler(loss,", "loss.backward()\n    loss_scaler(loss,"),
        ("loss_scaler(loss, optimizer", "loss_scaler(loss"),  # nothing has its gradients
        ("loss_scaler(loss, optimizer", "log(loss, optimizer"),
        ("loss_scaler(loss, optimizer", "save_train_state(loss, optimizer"),
        ("loss_scaler(loss, optimizer, parameters=net.parameters())", "torch.fit(optimizer)"),
        ("from timm.utils import NativeScaler\n", OWN),
    ],
)
def test_moves_go_otherwise(old, new):
    text = SCALED.replace(old, new).replace("loss_scaler = NativeScaler()\n", "" if new == OWN else "loss_scaler = 1\n")
    assert "Linear(2, 1).to(device)" not in migrate_text(text).text


def test_a_script_that_starts_processes_is_refused():
    result = migrate_text(BY_HAND)
    assert (result.plan, result.text) == ("refused", BY_HAND)
    assert "`loss_scaler(loss, optimizer, parameters=net.parameters())` trains" in result.attention[0].message


@pytest.mark.parametrize(
    "text",
    [BY_HAND.replace("loss_scaler(loss, optim", "loss.backward()\n    show(loss, optim"), "def f():\n    pass\n"],
)
def test_others_are_not(text):
    assert migrate_text(text).plan != "refused"


def test_a_library_that_starts_them_is_not():
    inner = "".join(f"    {line}\n" for line in BY_HAND.splitlines()[3:])
    text = f"import torch\n\ndef main(loader, loss_scaler):\n{inner}"
    assert migrate_text(text, is_script=False).plan != "refused"


STEP = """
def train(net, loader, optimizer, loss_scaler, device):
    for x, y in loader:
        loss = (net(x.to(device)) - y.to(device)).square().mean()
        loss_scaler(loss, optimizer)
"""
CALLS = "\n".join(SCALED.splitlines()[:-3]) + "\ntrain(net, loader, optimizer, loss_scaler, device)\n"


def test_of_several_files_all_keep_theirs(tmp_path):
    engine = f"import torch\n{STEP}"
    done = of_project(
        tmp_path, main=CALLS.replace("import torch\n", "import torch\nfrom engine import train\n"), engine=engine
    )
    assert all("device)" in m.result.text.replace("device =", "") for m in done)
    assert [m.result.text for m in done if m.path.stem == "engine"] == [engine]


def test_a_step_elsewhere_that_hides_it_refuses_the_script(tmp_path):
    main = "import torch\nfrom engine import train\n" + "\n".join(BY_HAND.splitlines()[2:-3])
    main += "\ntrain(net, loader, optimizer, loss_scaler, device)\n"
    engine = f"import torch\n{STEP}"
    done = of_project(tmp_path, main=main, engine=engine)
    assert [m.report.plan for m in done] == ["refused", "none"]
    done = of_project(
        tmp_path, main=main, engine=engine.replace("loss_scaler(loss, opt", "loss.backward(), show(loss, opt")
    )
    assert done[0].report.plan != "refused"
