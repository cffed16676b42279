"""T2: a name that a tensor is made of is an array or a list there, and says nothing of where the tensor goes."""

import pytest
from helpers import check
from ptmigrate.migrate.migrate import migrate_text

HEAD = """
import numpy as np
import torch
from torch import nn
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

class Agent:
    def __init__(self):
        self.actor = nn.Linear(3, 2).to(device)
        self.optimizer = torch.optim.Adam(self.actor.parameters())

    def act(self, state):
"""
THERE = "next(self.actor.parameters()).device"
MADE = {
    "by a method": "torch.FloatTensor(state.reshape(1, -1))",
    "by methods": 'torch.as_tensor(state.reshape(1, -1).astype("float32"))',
    "by an index": "torch.tensor(state.reshape(1, -1)[None])",
    "by a property": "torch.Tensor(state.T.reshape(1, -1))",
    "by numbers": "torch.from_numpy(-state.transpose(1, 0) / 255.0)",
    "in a list": "torch.FloatTensor([state.reshape(-1), state.flatten()])",
    "below a method of the tensor": "torch.from_numpy(state.reshape(1, -1)).float()",
    "by numpy": "torch.from_numpy(np.array(state).reshape(1, -1))",
    "by numpy, of what a method gives": "torch.from_numpy(np.stack([state.reshape(1, -1)]))",
}
OF_TENSORS = {
    "its size": "torch.zeros(state.size(0), 3)",
    "a number of its shape": "torch.tensor(state.shape[0])",
    "numbers of its size": "torch.tensor([state.size(0), 1])",
    "what only a tensor is asked for": "torch.from_numpy(state.cpu().numpy())",
    "a number of it": "torch.tensor([state.mean().item()])",
    "its numbers": "torch.tensor(state.tolist())",
    "a table that it chooses of": "torch.tensor(TABLE[state])",
    "what torch makes of it": "torch.tensor(torch.clamp(state, 0, 1).numpy())",
}
FORMS = ["{}.to(device)", "{}.cuda()"]


def act(*lines):
    text = migrate_text(HEAD + "".join(f"        {line}\n" for line in lines), is_script=False).text
    assert migrate_text(text, is_script=False).text == text
    return text


@pytest.mark.parametrize("name", ["state", "given"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_a_tensor_made_of_an_array_goes_where_the_network_is(made, form, name):
    assert f"{name} = {made}.to({THERE})" in act(f"{name} = {form.format(made)}", f"return self.actor({name})")


@pytest.mark.parametrize("made", ["torch.tensor", "torch.as_tensor"])
def test_so_does_one_that_is_told_its_device(made):
    line = f"state = {made}(state.reshape(1, -1), device={{}})"
    assert line.format(THERE) in act(line.format("device"), "return self.actor(state)")


def test_an_array_that_is_in_a_list_is_one_though_the_tensor_has_its_name():
    text = act("state = torch.FloatTensor([state]).to(device)", "state = state.view(1, -1)", "return self.actor(state)")
    assert f"torch.FloatTensor([state]).to({THERE})" in text


@pytest.mark.parametrize("made", OF_TENSORS.values(), ids=OF_TENSORS)
def test_a_tensor_that_another_says_something_of_goes_where_that_is(made):
    head = "import torch\nfrom torch import nn\nTABLE = [1, 2]\nclass Net(nn.Module):\n    def forward(self, state):\n"
    body = f"        made = {made}.cuda()\n        return state.reshape(-1).float() + made\n"
    text = migrate_text(head + body, is_script=False).text
    assert ".cuda()" not in text and (".to(state.device)" in text or ".type_as(state)" in text)


MOVED = {
    "of an array": "state = torch.FloatTensor(state.reshape(1, -1)).to(device)",
    "of a list": "state = torch.tensor([state]).cuda()",
    "as it came": "state = torch.from_numpy(state).to(device)",
}
NOT_MOVED = {
    "of an array": ("state = torch.FloatTensor(state.reshape(1, -1))",),
    "and an array again": (MOVED["as it came"], "state = state.cpu().numpy()", "again = torch.from_numpy(state)"),
    "in a branch": ("if state.ndim:", f"    {MOVED['as it came']}"),
    "by another name": ("given = torch.FloatTensor(state.reshape(1, -1)).to(device)",),
}
ZEROS = "zeros = torch.zeros(state.shape[0], 3).to(device)"


@pytest.mark.parametrize("line", MOVED.values(), ids=MOVED)
def test_a_name_that_was_given_a_moved_tensor_is_one_below(line):
    text = act(line, ZEROS, "return self.actor(state + zeros)")
    assert (
        ZEROS.replace("to(device)", "to(state.device)") in text or ZEROS.replace("to(device)", "type_as(state)") in text
    )


@pytest.mark.parametrize("lines", NOT_MOVED.values(), ids=NOT_MOVED)
def test_one_that_was_not_is_none(lines):
    text = act(*lines, ZEROS, "return self.actor(zeros)")
    assert "state.device" not in text and "type_as(state)" not in text


def test_nor_is_it_one_above():
    text = act(ZEROS, MOVED["of an array"], "return self.actor(state + zeros)")
    assert "state.device" not in text and "type_as(state)" not in text


def helper(body):
    return migrate_text(f"import numpy as np\nimport torch\n\ndef f(y, n):\n    {body}\n", is_script=False).text


@pytest.mark.parametrize("like", ["ones", "zeros", "rand", "empty"])
def test_what_another_is_made_like_is_a_tensor(like):
    text = helper(f"return torch.zeros(n).cuda().index_add_(0, y, torch.{like}_like(y))")
    assert f"torch.zeros(n).to(y.device).index_add_(0, y, torch.{like}_like(y))" in text


def test_what_numpy_makes_another_like_may_be_none():
    assert "y.device" not in helper("return torch.zeros(n).cuda() + torch.from_numpy(np.ones_like(y)).cuda()")


SAID = """
import torch
from torch import Tensor
from typing import List, Optional

def loops(n, edges{}):
    return torch.cat([edges, torch.arange(n, {})])
"""


def with_said(said, told="device='cuda'"):
    text = migrate_text(SAID.format(said, told), is_script=False).text
    assert migrate_text(text, is_script=False).text == text
    return text


@pytest.mark.parametrize("said", [": torch.Tensor", ": Tensor"])
def test_a_parameter_that_is_said_to_be_a_tensor_says_where(said):
    assert "torch.arange(n, device=edges.device)" in with_said(said)


@pytest.mark.parametrize(
    "said", ["", ": list", ": List[Tensor]", ": Optional[Tensor]", ": Tensor = None", ": torch.Size"]
)
def test_one_that_is_not_said_to_be_one_does_not(said):
    assert "edges.device" not in with_said(said)


def test_what_is_asked_for_another_type_is_a_tensor_before_as_after():
    body = "    y = x.type(torch.cuda.HalfTensor)\n    return y + torch.zeros(3, device='cuda')\n"
    text = migrate_text(f"import torch\ndef f(x):\n{body}", is_script=False).text
    assert text.endswith("    y = x.to(torch.float16)\n    return y + torch.zeros(3, device=x.device)\n")
    assert migrate_text(text, is_script=False).text == text


def test_an_attribute_type_and_one_of_a_network_say_nothing():
    for given in ("x.type == 'a'", "model.type(torch.float64)"):
        text = f"import torch\ndef f(x, model):\n    y = {given}\n    return y, torch.zeros(3, device='cuda')\n"
        assert ".device" not in migrate_text(text, is_script=False).text


HANDED = """\
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
    def sample(self, n, x=None):
        return self.fc(torch.ones(n, 3{}))
    def forward(self, n):
        return {} + torch.zeros(2{})
"""


@pytest.mark.parametrize("call", ["self.sample(n)", "self.sample(n=n)", "self.sample(2, n) + torch.ones(n)"])
def test_how_many_is_no_tensor_where_another_method_is_told_it(call):
    """The one parameter of a forward is taken for a tensor where nothing says otherwise."""
    text = HANDED.format("{}", call.replace("torch.ones(n)", "torch.ones(n{})"), "{}")
    k = text.count("{}")
    there = ", device=self.fc.weight.device"
    check(text.format(*[", device='cuda'"] * k), text.format(*[there] * k), select="PTM104")


def test_what_a_method_takes_as_a_tensor_is_one():
    text = HANDED.format("", "self.sample(2, n)", "{}")
    check(text.format(", device='cuda'"), text.format(", device=n.device"), select="PTM104")
