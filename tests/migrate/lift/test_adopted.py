"""Where the loop stands in a function, the module level's models and parameters are the Module's: else they would stay
where they are on a GPU, and no process would average them.
"""

import pytest

from tests.migrate.running import check_same

SCRIPT = """
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.there, self.back = nn.Linear(4, 2), nn.Linear(2, 4)

    def loss(self, x):
        return ((self.back(self.there(x)) - x) ** 2).mean()


torch.manual_seed(0)
model = nn.Linear(4, 1)
weight = nn.Parameter(torch.zeros(1))
opt = torch.optim.Adam([*model.parameters(), weight], lr=0.01)
loader = DataLoader(TensorDataset(torch.randn(24, 4), torch.randn(24, 1)), batch_size=8)


def main():
    for epoch in range(3):
        for x, y in loader:
            loss = (torch.exp(-weight) * (model(x) - y) ** 2 + weight).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(epoch, loss.item())


main()
"""
MADE = "weight = nn.Parameter(torch.zeros(1))"
OTHERS = "coder = Coder()\nopt = torch.optim.Adam([*coder.parameters(), *model.parameters(), weight]"


def test_a_parameter_of_the_module_level():
    assert "self.weight = weight" in check_same(SCRIPT, "module")


@pytest.mark.parametrize(
    "made",
    ["torch.nn.parameter.Parameter(torch.zeros(1))", "Parameter(torch.zeros(1), requires_grad=True)"],
)
def test_a_parameter_by_another_name(made):
    text = SCRIPT.replace(MADE, f"from torch.nn import Parameter\nweight = {made}")
    assert "self.weight = weight" in check_same(text, "module")


def test_a_parameter_that_a_branch_chooses():
    chosen = "if len(model.weight) > 2:\n    weight = nn.Parameter(torch.ones(1))\nelse:\n    " + MADE
    assert "self.weight = weight" in check_same(SCRIPT.replace(MADE, chosen), "module")


def test_a_list_of_parameters():
    text = SCRIPT.replace(MADE, "weights = nn.ParameterList([nn.Parameter(torch.zeros(1))])")
    text = (
        text.replace(", weight]", ", *weights]")
        .replace("-weight)", "-weights[0])")
        .replace("+ weight)", "+ weights[0])")
    )
    assert "self.weights = weights" in check_same(text, "module")


def test_a_parameter_that_the_function_is_given():
    text = SCRIPT.replace("def main():", "def main(scale):").replace("\n\nmain()", "\n\nmain(weight)")
    text = text.replace("-weight", "-scale").replace("+ weight)", "+ scale)")
    result = check_same(text, "module")
    assert "self.scale = scale" in result


def test_a_parameter_that_the_training_pass_is_given():
    text = SCRIPT.replace("def main():\n    for epoch in range(3):\n        for", "def train(scale):\n        for")
    text = text.replace("        print(epoch, loss.item())", "        return loss")
    text = text.replace("-weight", "-scale").replace("+ weight)", "+ scale)")
    main = "def main():\n    for epoch in range(3):\n        print(epoch, train(weight).item())\n\n\nmain()\n"
    assert "self.weight = weight" in check_same(text.replace("main()\n", main), "module")


def test_a_network_that_is_asked_by_a_method_of_its_own():
    text = SCRIPT.replace("opt = torch.optim.Adam([*model.parameters(), weight]", OTHERS)
    result = check_same(text.replace("loss = (", "loss = coder.loss(x) + ("), "module")
    assert "self.coder = coder" in result and "self.coder.loss(x)" in result


@pytest.mark.parametrize(
    "made", ["weight = torch.zeros(1)", "weight = 0.5 * torch.ones(1)", "weight = torch.tensor([2.0])"]
)
def test_tensors_that_nothing_learns_are_no_parameters_of_the_module(made):
    text = SCRIPT.replace(MADE, made).replace(", weight], lr", "], lr")
    result = check_same(text, "module")
    assert "self.weight = weight" not in result


def test_a_parameter_that_no_step_reads_stays_the_scripts():
    text = SCRIPT.replace("torch.exp(-weight) * ", "").replace(" + weight)", ")")
    assert "self.weight" not in check_same(text, "module")


def test_a_name_of_the_functions_own_is_not_the_module_levels():
    text = SCRIPT.replace(", weight], lr", "], lr").replace(
        "def main():\n", "def main():\n    weight = torch.ones(1)\n"
    )
    result = check_same(text, "module")
    assert "    weight = torch.ones(1)\n" in result and result.count("weight = nn.Parameter") == 1
