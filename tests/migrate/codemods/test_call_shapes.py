"""Generated calls: whatever their shape, the result compiles, a second run changes nothing, and values stay."""

import ast

import torch
from helpers import migrated
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

QUIET = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))

DEVICES = ["'cuda'", "'cuda:1'", "0", "device", "torch.device('cuda', 0)", "f'cuda:{n}'", "self.device", "args.gpu"]
KEPT = ["torch.float64", "dtype=torch.float64", "memory_format=torch.contiguous_format"]
SPACES = ["", " ", "\n        ", "  # why\n        "]


@st.composite
def moves(draw):
    """`x.to(...)` with a device and what else may stand there, spread over lines or not."""
    space = draw(st.sampled_from(SPACES))
    if draw(st.booleans()):
        given_ = draw(st.lists(st.sampled_from(["0", "device", "non_blocking=True"]), unique=True, max_size=2))
        given_.sort(key=lambda a: "=" in a)
        return f".cuda({space}{', '.join(given_[:1] if len(given_) > 1 and '=' not in given_[1] else given_)})"
    device = draw(st.sampled_from(DEVICES))
    kept = draw(st.sampled_from(["", *KEPT]))
    named = "=" in kept or not kept
    arguments = [f"device={device}" if named and draw(st.booleans()) else device]
    if kept:
        arguments.append(kept)
    if draw(st.booleans()):
        arguments.append("non_blocking=True")
    if draw(st.booleans()):
        arguments[-1] += ","
    between = "," + (space or " ")
    return f".to({space}{between.join(arguments)})"


@st.composite
def expressions(draw):
    """What is moved, and what is done with it then."""
    moved = "x" + draw(moves())
    form = draw(
        st.sampled_from(
            [
                "({}) + 1", "[v * 2 for v in [{}]]", "{{'k': {}}}['k']", "({} if flag else x)", "(lambda v: v)({})",
                "torch.stack([{}, x.float()]).sum(0)", "({})\\\n    .sum()", "max(({}).flatten().tolist())",
            ]
        )
    )  # fmt: skip
    return form.format(moved)


def runs(text, flag):
    space: dict = {}
    exec(text, space)
    return space["f"](torch.arange(6.0).reshape(2, 3), None, None, "cuda", 0, flag)


@QUIET
@given(expressions(), st.booleans())
def test_moves_leave_and_the_rest_keeps_its_value(expression, flag):
    source = f"import torch\ndef f(x, self, args, device, n, flag):\n    return {expression}\n"
    ast.parse(source)
    result = migrated(source, "PTM101")
    assert ".cuda(" not in result.text and "'cuda" not in result.text.partition("return")[2]
    assert migrated(result.text, "PTM101").text == result.text
    plain = source.replace(expression, _by_hand(expression))
    new, old = runs(result.text, flag), runs(plain, flag)
    assert _same(new, old), result.text


def _by_hand(expression):
    """The same without devices, by Python's own tree."""

    class Plain(ast.NodeTransformer):
        def visit_Call(self, node):
            self.generic_visit(node)
            if isinstance(node.func, ast.Attribute) and node.func.attr == "cuda":
                return node.func.value
            if isinstance(node.func, ast.Attribute) and node.func.attr == "to":
                keep = [a for a in [*node.args, *node.keywords] if "torch." in ast.unparse(a)]
                keep = [a for a in keep if "torch.device" not in ast.unparse(a)]
                if not keep:
                    return node.func.value
                node.args = [a for a in keep if not isinstance(a, ast.keyword)]
                node.keywords = [a for a in keep if isinstance(a, ast.keyword)]
            return node

    return ast.unparse(Plain().visit(ast.parse(expression, mode="eval")))


def _same(a, b):
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b) and a.dtype == b.dtype and a.shape == b.shape
    if isinstance(a, list):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    return a == b


PARAMETERS = ("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers")
VALUES = {"dataset": "ds", "batch_size": "4", "shuffle": "False", "batch_sampler": "None", "num_workers": "0"}


@QUIET
@given(
    st.integers(0, 5),
    st.lists(st.sampled_from(PARAMETERS[1:]), unique=True),
    st.sampled_from(["", "shuffle=False", "shuffle=True", "drop_last=True"]),
    st.sampled_from(["train", "loader", "val_loader", "test"]),
)
def test_loaders_in_every_shape(positional, named, sampler, name):
    places = list(PARAMETERS[: max(positional, 1)])
    arguments = [_value(p, sampler) for p in places]
    arguments += [f"{p}={_value(p, sampler)}" for p in named if p not in places]
    loader = f"{name} = DataLoader({', '.join(arguments)})"
    head = "import torch\nfrom torch.utils.data import DataLoader, DistributedSampler, TensorDataset\n"
    source = f"{head}{loader}\n"
    result = migrated(source, "PTM401")
    assert migrated(result.text, "PTM401").text == result.text
    assert "DistributedSampler(" not in result.text
    space: dict = {"ds": list(range(10))}
    exec(result.text, space)
    made = space[name]
    shuffles = isinstance(made.sampler, torch.utils.data.RandomSampler)
    has = "sampler" in [*places, *named]
    assert shuffles == (has and "shuffle=False" not in sampler and name in ("train", "loader"))
    assert made.batch_size == (4 if "batch_size" in [*places, *named] else 1)


def _value(parameter, sampler):
    return f"DistributedSampler(ds, {sampler})" if parameter == "sampler" else VALUES[parameter]
