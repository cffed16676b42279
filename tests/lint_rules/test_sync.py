"""PTM3xx beyond the rules' own examples: each source is the body of a training loop."""

import textwrap

import pytest
from checking import found

TRAIN = """\
import numpy as np
import torch
def train(model, loader, optimizer, criterion):
    for i, (x, y) in enumerate(loader):
        output = model(x.to(device))
        loss = criterion(output, y)
        loss.backward()
        optimizer.step()
"""


def in_loop(body, *select):
    source = TRAIN + textwrap.indent(textwrap.dedent(body), " " * 8)
    return [line.split()[0] for line in found(source, *(select or ("PTM3",)))]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("total += loss.item()", ["PTM301"]),
        ("print(loss.detach().cpu().numpy())", ["PTM304"]),
        ("outs.append(output.cpu())", ["PTM303"]),
        ("outs += output.argmax(1).tolist()", ["PTM305"]),
        ("total += float(loss)", ["PTM306"]),
        ("n += int((output.argmax(1) == y).sum())", ["PTM306"]),
        ("if loss > 10: skipped += 1", ["PTM307"]),
        ("if torch.isnan(loss): print('nan')", ["PTM307"]),
        ("print('loss: %f' % loss)", ["PTM308"]),
        ("print('loss: {}'.format(loss))", ["PTM308"]),
        ("bar.set_postfix(loss=loss)", ["PTM308"]),
        ("torch.cuda.empty_cache()", ["PTM309"]),
        ("torch.cuda.synchronize()", ["PTM310"]),
        ("total += loss", ["PTM311"]),
        ("total = total", []),
        ("self.losses.append(loss)", ["PTM311"]),
        ("total += loss * len(x)", ["PTM311"]),
        ("x_host = x.numpy(); n += y.sum().item()", []),  # what the loader gave is on the host
        ("n += np.mean(a).item()", []),
        ("total += loss.detach(); n += x.size(0); m += float(rate)", []),
        ("if i % 50 == 0:\n  print(loss.item(), float(loss), loss)", []),
        ("if i % 50 == 0:\n  torch.cuda.empty_cache()", []),
        ("oom = full(x)\nif oom:\n  torch.cuda.empty_cache()", []),
        ("if torch.isnan(loss).any() and i % 10 == 0:\n  pass", []),
        ("if loss is None: pass\nif x.size(0) > 2: pass\nif verbose: pass", []),
        ("if math.isnan(i):\n  raise ValueError(loss.item())", []),
        ("if i > 100:\n  print(loss.item())\n  break", []),
        ("print('step', i, x.shape, output.shape)", []),
        ("model.cpu()", []),
    ],
)
def test_in_a_training_loop(body, expected):
    assert in_loop(body) == expected


def test_outside_of_hot_loops():
    assert found("import torch\nfor x in things:\n  print(x.item(), x.cpu().numpy(), x.tolist())", "PTM3") == []
    assert found(TRAIN + "    return loss.item(), float(loss)", "PTM3") == []


def test_every_nth_step_is_a_lesser_thing():
    assert in_loop("if i % 50 == 0:\n  print(loss.item())", "PTM302") == ["PTM302"]
    assert in_loop("if i % 50 == 0:\n  print(loss.item())", "PTM301") == []


def test_a_function_that_only_the_loop_calls():
    helper = "def helper(loss):\n    return loss.item()\n"
    called = TRAIN + "        helper(loss)\n"
    assert found("import torch\n" + helper + called, "PTM301") == ["PTM301 3"]
    assert found("import torch\n" + helper + called + "helper(z)\n", "PTM301") == []


@pytest.mark.parametrize(("gives", "expected"), [("3", []), ("self.x.item()", ["PTM301", "PTM301"])])
def test_an_item_of_a_class_of_the_script_is_read_in_it(gives, expected):
    source = f"class Box:\n  x = 0\n  def item(self):\n    return {gives}\n{TRAIN}        print(Box().item())\n"
    assert [line.split()[0] for line in found(source, "PTM301")] == expected
