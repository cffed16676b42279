import pytest
from helpers import check, check_unchanged
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_on_card

HEAD = "import torch\n"
LOOP = HEAD + "for x, y in test_loader:\n    out = model(x)\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("n += (out.argmax(1).cpu() == y).sum()", "n += (out.argmax(1).cpu() == y.cpu()).sum()"),
        ("n += (y == out.argmax(1).to('cpu')).sum()", "n += (y.cpu() == out.argmax(1).to('cpu')).sum()"),
        ("n += out.argmax(1).cpu().eq(y.view(-1)).sum()", "n += out.argmax(1).cpu().eq(y.view(-1).cpu()).sum()"),
        ("n += accuracy(out.cpu(), y)[0]", "n += accuracy(out.cpu(), y.cpu())[0]"),
        ("n += loss_fn(out.cpu(), target=y)", "n += loss_fn(out.cpu(), target=y.cpu())"),
        (
            "_, p = torch.max(out.cpu().data, 1)\n    n += (p == y).sum()",
            "_, p = torch.max(out.cpu().data, 1)\n    n += (p == y.cpu()).sum()",
        ),
        (
            "o = out.cpu()\n    n += (o == y).sum()\n    o = None",
            "o = out.cpu()\n    n += (o == y.cpu()).sum()\n    o = None",
        ),
        ("n += (out.cpu().numpy() - y) ** 2", "n += (out.cpu().numpy() - y.cpu()) ** 2"),
        ("n += (out.argmax(1).numpy() == y.numpy()).sum()",
         "n += (out.argmax(1).cpu().numpy() == y.cpu().numpy()).sum()"),
        ("n += ((out > 0)).numpy().sum()", "n += ((out > 0)).cpu().numpy().sum()"),
    ],
)  # fmt: skip
def test_what_was_on_the_cpu_is_brought_there(before, after):
    check(LOOP + f"    {before}\n", LOOP + f"    {after}\n", select="PTM114")


def test_of_a_batch_that_is_taken_apart_below():
    loop = "for batch in test_loader:\n    x, y = batch[0].cuda(), batch[1]\n    n += (model(x).cpu() == {}).sum()\n"
    check(HEAD + loop.format("y"), HEAD + loop.format("y.cpu()"), select="PTM114")


def test_in_a_function_that_steps_call():
    code = (
        HEAD + "def hits(out):\n    return out.argmax(1){}.numpy()\nfor x, y in test_loader:\n    n += hits(model(x))\n"
    )
    check(code.format(""), code.format(".cpu()"), select="PTM114")


HITS = "def hits(net, batch):\n    x, y = batch\n    return (net(x.cuda()).argmax(1).cpu() == {}).sum()\n"
OF_BATCHES = [
    "for batch in test_loader:\n    n += hits(model, batch)\n",
    "for x, y in train_loader:\n    model(x)\nn = sum(hits(model, batch) for batch in test_loader)\n",
    "def count(net, rows):\n    return hits(net, rows)\nfor batch in test_loader:\n    n += count(model, batch)\n",
]
OF_OTHERS = [
    "for x, y in test_loader:\n    n += hits(model, (x, y.cuda()))\n",
    "for batch in test_loader:\n    n += hits(model, batch)\nn += hits(model, (torch.ones(2, 4), torch.ones(2)))\n",
    "n = list(map(hits, [model], test_loader))\n",
]


@pytest.mark.parametrize("loop", OF_BATCHES)
def test_in_a_function_that_is_given_the_batch(loop):
    check(HEAD + HITS.format("y") + loop, HEAD + HITS.format("y.cpu()") + loop, select="PTM114")


@pytest.mark.parametrize("loop", OF_OTHERS)
def test_in_a_function_that_is_given_other_tensors_too(loop):
    check_unchanged(HEAD + HITS.format("y") + loop, select="PTM114")


@pytest.mark.parametrize(
    "step",
    [
        "n += (out.argmax(1) == y).sum()",  # both where the model is
        "y = y.cuda()\n    n += (out == y).sum()",
        "n += (out.cpu() == y.cpu()).sum()",
        "n += (out.argmax(1).cpu().numpy() == y.cpu().numpy()).sum()",
        "p = out.detach().cpu()\n    n += p.numpy().sum()",
        "t = y.cuda()\n    n += (out == t).sum() + out.cpu().sum()",
        "n += (out.cpu() == out.cpu()).sum() / y.size(0)",
        "n += out.cpu().sum() / len(y)",
        "n += out.cpu().mean() * y.size(0)",
        "n += float(out.cpu().mean()) * y.shape[0]",
        "y = torch.zeros(3)\n    n += (out.cpu() == y).sum()",  # made there
        "n += (out.cpu() == mean).sum()",  # nothing shows where that is
        "n += frame.to_numpy().sum()",
    ],
)
def test_unchanged(step):
    check_unchanged(LOOP + f"    {step}\n", [], select="PTM114")


@pytest.mark.parametrize(
    "source",
    [
        "def show(image):\n    plot(image.numpy())\n",  # no step calls it
        "class Data:\n    def __getitem__(self, i):\n        return self.x[i].numpy()\n",
        "a = torch.zeros(3).numpy()\n",
        "for i in range(10):\n    a = (x.cpu() == i)\n",
        "def hits(p):\n    return p.numpy()\nfor x, y in test_loader:\n    n += hits(model(x).cpu())\n",
        "for i, (x, y) in tqdm(enumerate(test_loader)):\n    n += (model(x).cpu() == i).sum()\n",  # a number
    ],
)
def test_unchanged_where_no_batch_is_met(source):
    check_unchanged(HEAD + source, [], select="PTM114")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("sum((model(x.to(d)).cpu() == y).sum() for x, y in test_loader)",
         "sum((model(x.to(d)).cpu() == y.cpu()).sum() for x, y in test_loader)"),
        ("[(model(x).cpu() == y).sum() + i for i, (x, y) in enumerate(tqdm(test_loader))]",
         "[(model(x).cpu() == y.cpu()).sum() + i for i, (x, y) in enumerate(tqdm(test_loader))]"),
        ("{i: f1(b[1], model(b[0].cuda()).cpu()) for i, b in enumerate(test_loader)}",
         "{i: f1(b[1].cpu(), model(b[0].cuda()).cpu()) for i, b in enumerate(test_loader)}"),
        ("[(model(x).numpy() == y.numpy()).mean() for x, y in test_loader]",
         "[(model(x).cpu().numpy() == y.cpu().numpy()).mean() for x, y in test_loader]"),
        ("[(model(x).cpu() == y).sum() for k in range(2) for x, y in test_loader if len(x) > k]",
         "[(model(x).cpu() == y.cpu()).sum() for k in range(2) for x, y in test_loader if len(x) > k]"),
    ],
)  # fmt: skip
def test_in_comprehensions_over_loaders(before, after):
    below = LOOP + "y = y.cuda()\nn = {}\n"  # another y
    check(below.format(before), below.format(after), select="PTM114")


def test_in_comprehensions_over_a_loader_that_a_function_is_given():
    before = "{i: f1(b[1], model(b[0].to(d)).cpu()) for i, b in enumerate(held)}"
    after = before.replace("b[1]", "b[1].cpu()")
    function = LOOP + "def right(model, held, d):\n    return {}\nn = right(model, test_loader, 'cuda')\n"
    check(function.format(before), function.format(after), select="PTM114")


@pytest.mark.parametrize(
    "found",
    [
        "sum((model(x.to(d)).cpu() == y.cpu()).sum() for x, y in test_loader)",
        "sum((model(x.to(d)) == y.to(d)).cpu().sum() for x, y in test_loader)",
        "[(model(x).cpu() == i).sum() for i, (x, y) in enumerate(test_loader)]",  # a number
        "[(model(x).cpu() == n).sum() for (x, y), n in zip(test_loader, counts)]",
        "[(x.cpu() == y).sum() for x, y in test_loader]",  # which no network gets: nothing places it
        "[(model(x[None].to(d)).cpu() == y).sum() for x, y in test_set]",  # of a data set, whose y may be a number
        "[(model(x.to(d)).cpu() == y).sum() for x, y in pairs]",
        "[x.numpy() for x, y in test_loader]",
        "[p.cpu() == q for p, q in zip(model.parameters(), other)]",
    ],
)
def test_unchanged_in_comprehensions(found):
    check_unchanged(LOOP + f"n = {found}\n", [], select="PTM114")


SEVERAL = (
    HEAD
    + """\
for images, targets in test_loader:
    out = model([image.cuda() for image in images])
    out = [{k: v.to("cpu") for k, v in o.items()} for o in out]
"""
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('n += sum((o["b"] - t["b"]).sum() for o, t in zip(out, targets))',
         'n += sum((o["b"] - t["b"].cpu()).sum() for o, t in zip(out, targets))'),
        ('for i, (t, o) in enumerate(zip(targets, out)):\n        n += iou(o["b"], t["b"].mean(0))',
         'for i, (t, o) in enumerate(zip(targets, out)):\n        n += iou(o["b"], t["b"].mean(0).cpu())'),
    ],
)  # fmt: skip
def test_elements_of_what_was_brought_there_meet_those_of_a_batch(before, after):
    check(SEVERAL + f"    {before}\n", SEVERAL + f"    {after}\n", select="PTM114")


MASKS = HEAD + "for x, y in test_loader:\n    out = model(x.cuda()).argmax(1).cpu()\n    for o, t in zip(out, y):\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("n += ((o == 1) & (t == 1)).sum()", "n += ((o == 1) & (t.cpu() == 1)).sum()"),
        ("n += ((t == 1) | ~(o == t)).sum()", "n += ((t.cpu() == 1) | ~(o == t.cpu())).sum()"),
        ("n += (2 * o - 3 * t).abs().sum()", "n += (2 * o - 3 * t.cpu()).abs().sum()"),
    ],
)
def test_masks_of_elements_that_meet(before, after):
    check(MASKS + f"        {before}\n", MASKS + f"        {after}\n", select="PTM114")


@pytest.mark.parametrize("step", ["n += (t == 1).sum() + 0", "n += (o == 1).sum()", "n += ((o == 1) & (o > 0)).sum()"])
def test_masks_of_one_side_stay(step):
    check_unchanged(MASKS + f"        {step}\n", [], select="PTM114")


@pytest.mark.parametrize(
    "step",
    [
        'n += sum((o["b"] - t["b"].cpu()).sum() for o, t in zip(out, targets))',
        'n += sum(o["b"].sum() for o in out)',
        'n += sum(t["b"].sum() for t in targets)',
        'res = {t["id"]: o for t, o in zip(targets, out)}\n    n += len(res)',
        "targets = [{k: v.cuda() for k, v in t.items()} for t in targets]\n    "
        'n += sum((t["b"] - 1).sum() for t in targets) + sum((o["b"] - 1).sum() for o in out)',
    ],
)
def test_unchanged_where_elements_do_not_meet(step):
    check_unchanged(SEVERAL + f"    {step}\n", [], select="PTM114")


def test_several_that_meet_several_are_told():
    note = "PTM114 line 5: `targets` is where the model is now, and what it meets in `metric.update(out, targets)`"
    check_unchanged(SEVERAL + "    metric.update(out, targets)\n", [note], select="PTM114")


def test_a_name_that_is_bound_again_below_is_what_it_was_bound_to_last():
    loop = LOOP + "    out = {}\n    n += (out == y{}).sum()\n"
    check(loop.format("out.cpu()", ""), loop.format("out.cpu()", ".cpu()"), select="PTM114")
    check_unchanged(loop.format("out.argmax(1)", ""), [], select="PTM114")


COLLECTS = """
import torch
def evaluate(model, test_loader):
    outputs, labels = [], []
    for x, y in test_loader:
        outputs.append({})
        labels.append({})
    outputs = torch.cat(outputs)
    return ({}.numpy() == {}.numpy()).mean()
"""
ALL = "torch.cat(labels)"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("model(x)", "y", "outputs", ALL), ("model(x)", "y", "outputs.cpu()", f"{ALL}.cpu()")),
        (("model(x.cuda()).cpu()", "y", "outputs", ALL), ("model(x.cuda()).cpu()", "y.cpu()", "outputs", ALL)),
    ],
)
def test_what_a_loop_collects(before, after):
    check(COLLECTS.format(*before), COLLECTS.format(*after), select="PTM114")


@pytest.mark.parametrize(
    "parts",
    [
        ("model(x.cuda()).cpu()", "y.cpu()", "outputs", ALL),
        ("model(x).cpu()", "y.cpu()", "outputs.cpu()", ALL),
        ("model(x).sum().item()", "y.sum().item()", "array", "array"),
    ],
)
def test_what_a_loop_collects_on_the_cpu(parts):
    check_unchanged(COLLECTS.format(*parts), [], select="PTM114")


EPOCHS = """
import torch
net = torch.nn.Linear(5, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
inputs, labels = torch.randn(6, 5){}, torch.ones(6).long(){}
for epoch in range(9):
    outputs = net(inputs)
    loss = torch.nn.functional.cross_entropy(outputs, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    _, best = outputs.max(1)
    print(best.data{}.numpy())
"""


@pytest.mark.parametrize("parts", [("", "", ""), ("", "", ".cpu()"), (".cuda()", ".cuda()", ".cpu()")])
def test_a_script_that_trains_on_what_it_made(parts):
    """What it made becomes the Module's, which the Trainer places where no device is named, too."""
    result = migrate_text(EPOCHS.format(*parts))
    assert "best.data.cpu().numpy()" in result.text
    assert [e.code for e in result.edits].count("PTM114") == (parts[-1] == "")


KEPT = (
    HEAD + "for i, batch in enumerate(test_loader):\n    x, y = batch[0].cuda(), batch[1]\n    out = model(x).cpu()\n"
)
KEPT += "    {}\nprint((outs == labels).sum())\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("labels = torch.cat((labels, y))", "labels = torch.cat((labels, y.cpu()))"),
        ("labels = torch.cat([labels, y.float()], 0)", "labels = torch.cat([labels, y.float().cpu()], 0)"),
        ("labels = y if i == 0 else torch.cat((labels, y))", None),
        ("labels = y", "labels = y.cpu()"),
        ("labels += [y]", "labels += [y.cpu()]"),
        ("labels = labels + [y.view(-1)]", "labels = labels + [y.view(-1).cpu()]"),
        ("labels = torch.cat(tensors=(labels, y))", "labels = torch.cat(tensors=(labels, y.cpu()))"),
    ],
)
def test_what_is_kept_for_below_the_loop(before, after):
    after = after or "labels = y.cpu() if i == 0 else torch.cat((labels, y.cpu()))"
    result = migrate_text(KEPT.format(before), is_script=False)
    assert result.text == KEPT.format(after).replace("batch[0].cuda()", "batch[0]")


@pytest.mark.parametrize(
    "line",
    [
        "labels = torch.cat((labels, y.cuda()))",  # both where the model is
        "labels = torch.cat((labels, y.cpu()))",
        "labels = labels + y",  # a sum of numbers
        "labels = 3",
        "kept = y",  # which nothing below reads
    ],
)
def test_what_is_kept_and_was_not_left_there(line):
    result = migrate_text(KEPT.format(line), is_script=False)
    assert ".cpu()" in result.text and "y.cpu()" not in result.text.replace(line, "")


@pytest.mark.parametrize(
    ("read", "kept"),
    [
        ("torch.cat(labels).cuda()", "y"),
        ("torch.stack(labels).float().to(device)", "y"),
        ("torch.cat(labels)", "y.cpu()"),
        ("torch.cat(labels).sum().item() + n.to(device)", "y.cpu()"),
    ],
)
def test_a_list_that_moves_as_a_whole_below_keeps_what_it_got(read, kept):
    loop = "labels = []\nfor x, y in test_loader:\n    out = model(x.cuda())\n    labels.append(y)\n"
    text = f"{HEAD}device = torch.device('cuda')\nn = torch.ones(1)\n{loop}labels = {read}\n"
    assert f"labels.append({kept})" in migrate_text(text, is_script=False).text


def test_where_the_loop_moves_nothing_or_what_is_kept_moves_below():
    for text in (
        KEPT.replace(".cuda()", "").format("labels = y"),
        KEPT.replace("== labels", "== labels.cuda()").format("labels = y"),
    ):
        assert "y.cpu()" not in migrate_text(text, is_script=False).text


MOVED = HEAD + "from torch.autograd import Variable\nfor batch in train_loader:\n    x, y = batch\n    y = y.view(-1)\n"
MOVED += "    {}\n    out = model(x.cuda())\n"


@pytest.mark.parametrize(
    ("move", "below"),
    [
        ("y = Variable(y).cuda()", "print(y)"),
        ("if gpu:\n        y = Variable(y).cuda()\n    else:\n        y = Variable(y)", "print(y)"),
        ("z = y", "for batch in test_loader:\n    x, y = batch\n    print(y)"),  # another y
    ],
)
def test_what_moves_in_the_loop_and_a_name_that_is_another_things_below(move, below):
    text = MOVED.format(move) + below + "\n"
    assert "PTM114" not in [e.code for e in migrate_text(text, is_script=False).edits]
    assert "y.view(-1).cpu()" in migrate_text(MOVED.format("z = y") + "print(y)\n", is_script=False).text


def test_labels_that_are_drawn_by_hand():
    text = (
        HEAD + "it = iter(test_loader)\nwith torch.no_grad():\n  for i in range(len(test_loader)):\n"
        "    x, y = next(it)\n    out = model(x.cuda()).cpu()\n    n += (out == y).sum()\n"
    )
    assert "(out == y.cpu()).sum()" in migrate_text(text, is_script=False).text


SHOWN = """\
import torch
import matplotlib.pyplot as plt
from torchvision.utils import save_image
from utils import drawn
device = torch.device('cuda')

def evaluate(model, test_loader, writer, n):
    for x, y in test_loader:
        out = model({})
        {}
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("plt.imshow(x[0])", "plt.imshow(x[0].cpu())"),
        ("drawn(x, scale=2)", "drawn(x.cpu(), scale=2)"),
        ("if n % 10 == 0:\n            writer.add_figure('x', drawn(x[0]))",
         "if n % 10 == 0:\n            writer.add_figure('x', drawn(x[0].cpu()))"),
    ],
)  # fmt: skip
def test_what_is_drawn_of_a_batch_that_moves_for_the_model_alone(before, after):
    result = migrate_text(SHOWN.format("x.to(device)", before)).text
    assert "        out = model(x)\n" in result and f"        {after}\n" in result


@pytest.mark.parametrize(
    "shows",
    [
        "save_image(x, 'x.png')",  # of torchvision, which knows of devices
        "plt.imshow(y[0])",  # which may be no tensor
        "writer.add_image('x', x[0])",
        "print(x.shape)",
        "out = model(drawn(x).to(device))",  # which is moved afterwards
        "other = drawn(x)",
    ],
)
def test_what_is_shown_where_it_is(shows):
    assert ".cpu()" not in migrate_text(SHOWN.format("x.to(device)", shows)).text


def test_what_is_drawn_of_a_batch_that_was_moved():
    text = SHOWN.format("x", "plt.imshow(x[0])").replace("        out", "        x = x.to(device)\n        out")
    assert ".cpu()" not in migrate_text(text).text


ITEMS = """\
import torch

def hits(model, data, device):
    found = []
    with torch.no_grad():
        for user, items in data:
            out = model({made}.to(device))
            best = out.topk(2)[1].cpu().tolist()
            found.append(hit(best, {right}))
    return found
"""


@pytest.mark.parametrize("made", ["torch.LongTensor(items)", "torch.tensor(items)", "torch.from_numpy(items)"])
@pytest.mark.parametrize("right", ["items[0]", "items"])
def test_what_tensors_are_made_of_is_none(made, right):
    """A list of numbers, or an array: `items[0].cpu()` raises."""
    check_unchanged(ITEMS.format(made=made, right=right), select="PTM114")


@pytest.mark.parametrize("made", ["items", "items[1:]", "torch.as_tensor(items)"])
def test_what_may_be_a_tensor_is_brought_back(made):
    before, after = (ITEMS.format(made=made, right=right) for right in ("items[0]", "items[0].cpu()"))
    check(before, after, select="PTM114")


KEEPS = """
import torch
from torch.utils.data import DataLoader
from data import Named

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = torch.nn.Linear(4, 3).to(device)
outs, kept = [], []
with torch.no_grad():
    for x, name in DataLoader(Named(), batch_size=4):
        outs.append(model(x.to(device)).cpu())
        kept.KEEP
AFTER
for x, name in DataLoader(Named(), batch_size=4):
    model(x.to(device)).sum().backward()
"""


@pytest.mark.parametrize(
    ("keep", "after", "new"),
    [
        ("append(name)", "print(kept)", "append(name.cpu() if torch.is_tensor(name) else name)"),  # files' names
        ("extend(name)", "print(kept)", "extend(name.cpu() if torch.is_tensor(name) else name)"),
        ("append(name)", "print(torch.cat(kept))", "append(name.cpu())"),
        ("extend(name)", "print(torch.stack(kept))", "extend(name.cpu())"),
        ("append(name.float())", "print(kept)", "append(name.float().cpu())"),
    ],
)
def test_what_a_list_keeps_may_be_no_tensor(keep, after, new):
    """`files.append(names)` raised on any machine: a tuple of texts has no `.cpu()`."""
    assert new in migrate_text(KEEPS.replace("KEEP", keep).replace("AFTER", after)).text


def test_data_that_is_known_gives_tensors():
    text = KEEPS.replace("from data import Named", "from torchvision.datasets import MNIST as Named")
    text = text.replace("KEEP", "append(name)").replace("AFTER", "print(kept)")
    assert "append(name.cpu())" in migrate_text(text).text


@pytest.mark.parametrize(
    ("line", "new"),
    [
        ("kept.append(np.array(name))", "np.array(name.cpu() if torch.is_tensor(name) else name)"),
        ("kept.append(np.array(name)); print((name == 3).sum())", "np.array(name.cpu())"),
        ("kept.append(np.reshape(name, [2, 2]))", "np.reshape(name.cpu(), [2, 2])"),
        ("kept.append(accuracy_score(name, outs[-1]))", "accuracy_score(name.cpu(), outs[-1])"),
        ("found[name[0]] = outs[-1].sum().item()", "found[name[0]] = "),  # a dictionary's keys
    ],
)
def test_what_arrays_and_dictionaries_get_may_be_no_tensor(line, new):
    text = KEEPS.replace(
        "import torch\n", "import numpy as np\nimport torch\nfrom sklearn.metrics import accuracy_score\n", 1
    )
    text = text.replace("kept.KEEP", line).replace("outs, kept = [], []", "outs, kept, found = [], [], {}")
    assert new in migrate_text(text.replace("AFTER", "print(kept)")).text


FIELDS = """
import torch
from collections import namedtuple
from torch import nn
from torch.utils.data import DataLoader

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
Sample = namedtuple("Sample", ["tokens", "label"])

def evaluate(model, loader, criterion, device):
    model.eval()
    guesses, truths, loss = [], [], 0.0
    with torch.no_grad():
        for b in loader:
            out = model(b.tokens.to(device))
            loss += criterion(out, b.label.to(device)).item() * len(b.label)
            guesses.append(out.argmax(-1).cpu())
            truths.append(b.label)
    guesses, truths = torch.cat(guesses), torch.cat(truths)
    return (guesses == truths).float().mean().item(), loss / len(truths)

torch.manual_seed(0)
net = nn.Linear(4, 2).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
loader = DataLoader([Sample(torch.randn(4), i % 2) for i in range(20)], 8)
for epoch in range(2):
    net.train()
    for b in loader:
        loss = criterion(net(b.tokens.to(device)), b.label.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, *evaluate(net, loader, criterion, device))
print(*evaluate(net, loader, criterion, device))
"""


def test_a_field_of_a_batch_that_is_moved_elsewhere_is_a_tensor(tmp_path):
    assert "truths.append(b.label.cpu())" in check_on_card(tmp_path, FIELDS)


@pytest.mark.parametrize("line", ["", "print(held.label.to(device))", "print(b.label.upper())"])
def test_a_field_that_nothing_shows_to_be_a_tensor(line):
    """What is moved is a field of that name of something else, and what is called of it is no move."""
    text = FIELDS.replace("criterion(out, b.label.to(device))", "out.sum()")
    text = text.replace("criterion(net(b.tokens.to(device)), b.label.to(device))", "net(b.tokens.to(device)).sum()")
    result = migrate_text(text.replace("truths.append(", f"{line}\n            truths.append("))
    assert "truths.append(b.label)" in result.text
