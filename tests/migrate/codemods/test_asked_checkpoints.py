"""T12 by name: the wrapper goes around what is called, wherever an attribute is given it; the rest is told."""

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text

WITH = "from fairscale.nn import checkpoint_wrapper\n"


def net(made: str, called: str = "return self.block(x)", given: str = "") -> str:
    return (
        "import torch\nimport torch.nn as nn\n\n\nclass Net(nn.Module):\n"
        f"    def __init__(self{given}):\n        super().__init__()\n        {made}\n\n"
        f"    def forward(self, x):\n        {called}\n"
    )


def asked(source: str):
    result = migrate_text(source, Options(select=("PTM520",), checkpoint=("block",)), is_script=False)
    again = migrate_text(result.text, Options(select=("PTM520",), checkpoint=("block",)), is_script=False)
    assert again.text == result.text
    compile(result.text, "net.py", "exec")
    return result


LAYER = "nn.Linear(2, 2)"
WRAPPED = f"checkpoint_wrapper({LAYER})"


@pytest.mark.parametrize(
    ("made", "given"),
    [
        (f"self.block: nn.Module = {LAYER}", ""),
        (f"self.block, self.head = {LAYER}, nn.ReLU()", ""),
        (f"self.block = self.other = {LAYER}", ""),
        (f"self.add_module('block', {LAYER})", ""),
        (f"setattr(self, 'block', {LAYER})", ""),
        (f"self.block = {LAYER} if wide else None", ", wide"),
        (f"self.block = nn.ModuleList()\n        for _ in range(3):\n            self.block.append({LAYER})", ""),
        (f"self.block = nn.ModuleList()\n        self.block += [{LAYER}]", ""),
        (f"self.block = nn.ModuleList()\n        self.block.extend([{LAYER}])", ""),
        (f"self.block = nn.ModuleDict()\n        self.block['a'] = {LAYER}", ""),
        (f"self.block = nn.ModuleDict(dict(a={LAYER}))", ""),
        (f"layers = []\n        layers.append({LAYER})\n        self.block = nn.ModuleList(layers)", ""),
    ],
)
def test_wherever_it_is_given(made, given):
    assert asked(net(made, given=given)).text == WITH + net(made.replace(LAYER, WRAPPED), given=given)


@pytest.mark.parametrize(
    ("made", "after", "given"),
    [
        ("self.block = block", "self.block = checkpoint_wrapper(block)", ", block"),
        (
            f"self.block = {LAYER}\n        self.block = nn.Sequential(self.block, nn.ReLU())",
            f"self.block = {LAYER}\n        self.block = checkpoint_wrapper(nn.Sequential(self.block, nn.ReLU()))",
            "",
        ),
        (
            "layers = [nn.ReLU()]\n        self.block = nn.Sequential(*layers)",
            "layers = [nn.ReLU()]\n        self.block = checkpoint_wrapper(nn.Sequential(*layers))",
            "",
        ),
    ],
)
def test_a_variable_and_the_last_of_several(made, after, given):
    assert asked(net(made, given=given)).text == WITH + net(after, given=given)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (net("self.block = nn.Parameter(torch.zeros(2))"), "no module"),
        (net("self.block = torch.zeros(2)"), "no module"),
        (net("self.block = 3"), "does not show"),
        (net("self.block = block", given=", block=None"), "may be None"),
        (net("self.block = nn.ModuleList(make())"), "its parts do not show"),
        (net("self.block = nn.ModuleList([*a, *b])", given=", a, b"), "its parts do not show"),
        (net(f"self.block = nn.Sequential({LAYER})", "for f in self.block:\n            x = f(x)"), "one by one"),
        (WITH + net(f"self.block = {WRAPPED}"), "wrapped already"),
        (WITH.replace(".nn ", ".nn.checkpoint ") + net(f"self.block = {WRAPPED}"), "wrapped already"),
        (WITH + net(f"block = {WRAPPED}\n        self.block = block"), "wrapped already"),
        ("def checkpoint_wrapper(m):\n    return m\n\n\n" + net(f"self.block = {LAYER}"), "something else"),
    ],
)
def test_what_is_not_wrapped_is_told(source, why):
    result = asked(source)
    assert result.text == source
    assert len(result.attention) == 1 and why in result.attention[0].message, result.attention


def test_a_class_without_the_attribute_is_left():
    assert not asked(net(f"self.other = {LAYER}", "return self.other(x)")).attention
