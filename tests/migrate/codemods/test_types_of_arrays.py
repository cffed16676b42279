"""T11: what a tensor's type placed and nothing beside it does: it is made of arrays, which are on no device."""

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text

from tests.migrate.running import check_on_card, check_same

THERE = '.to("cuda" if torch.cuda.is_available() else "cpu")'
HEAD = "import numpy as np\nimport torch\n"
TYPE = "cuda = torch.cuda.is_available()\nTensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor\n"
ONE_HOT = """
def one_hot(y, n):
    hot = np.zeros((y.shape[0], n))
    hot[range(y.shape[0]), y] = 1.0
    return Tensor(hot)
"""
SCALED = """
def scaled(y):
    return Tensor([2.0]) * y.mean()
"""
SCRIPT = """
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
np.random.seed(0)
net = torch.nn.Linear(4, 4)
if cuda:
    net.cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.randn(16, 4), torch.randint(0, 4, (16,))), batch_size=8)
fixed = Tensor(np.zeros((3, 4)))
classes = one_hot(np.array([0, 1, 2]), 4)


def sample():
    z = Tensor(np.random.normal(0, 1, (3, 4)))
    print((net(fixed) + net(z) - classes).mean().item())


for epoch in range(2):
    for x, y in loader:
        x = x.type(Tensor)
        hot = one_hot(y.numpy(), 4)
        drawn = one_hot(np.random.randint(0, 4, len(x)), n=4)
        loss = (net(x) - hot).pow(2).mean() + net(drawn).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    sample()
"""


def test_it_is_placed_by_its_type_on_a_card(tmp_path):
    text = HEAD + TYPE + ONE_HOT + SCRIPT
    new = check_on_card(tmp_path, text)
    assert f"return Tensor(hot){THERE}\n" in new and "y.device" not in new
    check_same(text, "module")


@pytest.mark.parametrize(
    ("helper", "uses"),
    [
        (ONE_HOT, ""),  # written into an array
        (SCALED, "scaled(np.ones(3))\nscaled(y=np.arange(2))\n"),  # given arrays alone
    ],
)
def test_an_array_has_no_device(helper, uses):
    result = migrate_text(HEAD + TYPE + helper + uses, is_script=False)
    assert f"){THERE}" in result.text and ".device" not in result.text and not result.attention


@pytest.mark.parametrize(
    ("helper", "uses"),
    [
        (SCALED, "scaled(torch.ones(3))\nscaled(np.ones(3))\n"),
        (SCALED, "scaled(x)\n"),
        (SCALED, ""),
        (ONE_HOT.replace("hot = np.zeros((y.shape[0], n))", "hot = torch.zeros(y.shape[0], n)"), ""),
    ],
)
def test_a_tensor_has_one(helper, uses):
    assert ".to(y.device)" in migrate_text(HEAD + TYPE + helper + uses, is_script=False).text


def test_without_the_question_for_cuda_it_is_told():
    result = migrate_text(HEAD + TYPE + ONE_HOT, Options(ignore=("PTM115",)), is_script=False)
    assert "    return Tensor(hot)\n" in result.text
    assert ["nothing here shows which it should be" in n.message for n in result.attention] == [True]


def test_an_import_that_nothing_reads_leaves_a_script_with_such_a_tensor_too():
    text = (
        HEAD + "from torch.autograd import Variable\n" + TYPE + ONE_HOT.replace("Tensor(hot)", "Variable(Tensor(hot))")
    )
    assert "import Variable" not in migrate_text(text + SCRIPT).text
