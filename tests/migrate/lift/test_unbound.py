"""A name that a step tries before it has a value is an attribute then, which the handler has to know."""

import pytest

from tests.migrate.running import check_same

TEXT = """
import torch
torch.manual_seed(0)
loader = torch.utils.data.DataLoader(torch.randn(8, 4), batch_size=2, shuffle=True)
others = torch.utils.data.DataLoader(torch.randn(4, 4), batch_size=2, shuffle=True)
net = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

def train(epochs):
    for epoch in range(epochs):
        for x in loader:
            try:
                other = next(it)
            except StopIteration:
                it = iter(others)
                other = next(it)
            except CAUGHT:
                print("first")
                it = iter(others)
                other = next(it)
            loss = net(x).pow(2).mean() + net(other).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(f'{loss.item():.5f}')

train(3)
"""
CAUGHT = {
    "UnboundLocalError": "except (UnboundLocalError, AttributeError):",
    "NameError as e": "except (NameError, AttributeError) as e:",
    "(TypeError, NameError)": "except (TypeError, NameError, AttributeError):",
    "(NameError, AttributeError)": "except (NameError, AttributeError):",
    "Exception": "except Exception:",
}


@pytest.mark.parametrize("caught", CAUGHT)
def test_it_is_caught_as_before(caught):
    assert CAUGHT[caught] in check_same(TEXT.replace("CAUGHT", caught), "module")


@pytest.mark.parametrize("more", ["k += 1", "k = k + 1"])
def test_a_number_that_is_added_to(more):
    tried = f"try:\n                {more}\n            except NameError:\n                k = 1\n"
    tried += "            loss = k * net(x)"
    text = check_same(TEXT.replace("CAUGHT", "Exception").replace("loss = net(x)", tried), "module")
    assert "except (NameError, AttributeError):" in text


def test_what_stays_a_name_is_caught_by_its_own():
    tried = (
        "try:\n                unknown\n            except NameError:\n                pass\n            loss = net(x)"
    )
    text = check_same(TEXT.replace("CAUGHT", "NameError").replace("loss = net(x)", tried), "module")
    assert text.count("except NameError:") == 1 and text.count("except (NameError, AttributeError):") == 1
