"""What stands in f-strings is rewritten as it is elsewhere, but for what shows its own text."""

import pytest
from helpers import check_unchanged
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_on_card

SCRIPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
sizes = {{"n": 2}}
{above}
for epoch in range(2):
    for x in DataLoader(torch.randn(8, 4), batch_size=4):
        loss = net(x.to(device)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())
{below}
"""
SHOWN = [
    'print(f"{net(torch.ones(1, 4).to(device)).item():.5f}")',
    'print(f"before: {net(torch.ones(1, 4, device=device)).item():.5f}!")',
    'print("torch.ones(1, 4).to(device)" f" is {net(torch.ones(1, 4).to(device)).item():.5f}")',
    'print(f"torch.ones(1, 4).to(device): {net(torch.ones(1, 4).to(device)).item():.5f}")',
    "print(f'''\n  {net(torch.ones(1, 4).to(device)).item():.5f} {net(torch.zeros(1, 4).to(device)).sum():.5f}\n''')",
    "print(f\"ü {{}} {( net(torch.ones(sizes['n'], 4).to(device)) ).sum().item():>{sizes['n'] * 8}.5f}\")",
    "print(f\"{f'{net(torch.ones(1, 4).to(device)).item():.5f}'}\")",
]


@pytest.mark.parametrize("place", ["above", "below"])
@pytest.mark.parametrize("shown", SHOWN)
def test_what_a_network_is_given_goes_where_that_is(tmp_path, shown, place):
    text = SCRIPT.format(**{"above": "", "below": "", place: shown})
    result = migrate_text(text)
    assert not result.attention, result.attention
    assert ".to(device)" not in check_on_card(tmp_path, text).replace('"torch.ones(1, 4).to(device)"', "").replace(
        "torch.ones(1, 4).to(device): ", ""
    )


FIXED = ["f'{net.cuda()=}'", "f'{net.cuda() = !r}'", "f'{net.cuda()=:>20}'", "f'{( net.cuda() )=}'"]


@pytest.mark.parametrize("shown", FIXED)
def test_what_shows_its_own_text_stays(shown):
    check_unchanged(f"import torch\nfrom torch import nn\nnet = nn.Linear(2, 2)\nprint({shown})\n", select="PTM101")


def test_a_text_that_looks_like_an_expression_stays():
    text = "import torch\nfrom torch import nn\nnet = nn.Linear(2, 2)\nprint(f'{{net.cuda()}} {net.cuda()}')\n"
    assert migrate_text(text).text.endswith("print(f'{{net.cuda()}} {net}')\n")


QUOTES = [
    ('f"{dist.get_backend()}"', "f\"{'gloo'}\""),
    ("f'{dist.get_backend()}'", "f'{\"gloo\"}'"),
    ("f\"{dist.get_backend() + 'x'}\"", "f\"{'gloo' + 'x'}\""),
    ('f"""{dist.get_backend()}"""', 'f"""{"gloo"}"""'),
]


@pytest.mark.parametrize(("before", "after"), QUOTES)
def test_what_is_written_has_other_quotes_than_the_string(before, after):
    text = f'import torch\nimport torch.distributed as dist\ndist.init_process_group("gloo")\nprint({before})\n'
    assert migrate_text(text).text.endswith(f"print({after})\n")


FORMS = [
    ("x.cuda()", "x"),
    ("it.next()", "next(it)"),
    ("nn.parallel.data_parallel(net, x)", "net(x)"),
]


@pytest.mark.parametrize(("before", "after"), FORMS)
def test_other_codemods_rewrite_there_as_they_do_elsewhere(before, after):
    head = "import torch\nfrom torch import nn\nnet = nn.Linear(2, 2)\nit = iter(loader)\n\n\ndef f(x):\n"
    assert migrate_text(f"{head}    return f'{{{before}}}'\n").text == f"{head}    return f'{{{after}}}'\n"


def test_what_a_lambda_is_given_that_is_called_where_it_stands_keeps_its_move(tmp_path):
    shown = "print(f'{(lambda v: net(v.to(device)).item())(torch.ones(4)):.4f}')"
    assert "net(v.to(device))" in check_on_card(tmp_path, SCRIPT.format(above="", below=shown))
