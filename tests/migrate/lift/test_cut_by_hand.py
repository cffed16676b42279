"""Batches that a loop cuts by hand: gone over as `Batches`, with the same losses, on two processes too."""

import pytest
import torch
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.lift.shape.cut_by_hand import cut_and_moved, cut_by_the_loop
from ptmigrate.migrate.migrate import Options, migrate_text

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_on_card, check_same, on_one_and_two

STEP = """        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
"""
START = f"{HEAD}bs = 8\nn = len(xs)\nfor epoch in range(3):\n    total = 0\n"
END = "    print(f'{epoch} {total:.6f}')\n"


def script(loop: str, above: str = "", step: str = STEP) -> str:
    return f"{START}{above}{loop}{step}{END}"


SLICES = script("    for i in range(0, len(xs), bs):\n        x, y = xs[i:i + bs], ys[i:i + bs]\n")
ORDERED = script(
    "    for i in range(0, n, bs):\n        idx = perm[i:i + bs]\n        x = xs[idx]\n        y = ys[idx]\n",
    "    perm = torch.randperm(n)\n",
)
INLINE = script(
    "    for i in range(0, n, bs):\n        x, y = xs[perm[i:i + bs]] * 1.0, ys[perm[i:i + bs]]\n",
    "    perm = torch.randperm(n)\n",
)
NUMBERED = script("    for k in range(n // bs):\n        x, y = xs[k * bs:(k + 1) * bs], ys[k * bs:(k + 1) * bs]\n")
ENDS = script("    for s in range(0, n, bs):\n        e = min(s + bs, n)\n        x = xs[s:e]\n        y = ys[s:e]\n")
ROWS = script("    for i in range(0, len(xs), bs):\n        x, y = xs[i:i + bs, :], ys[i:i + bs]\n")
BAR = script(
    "    for k, i in enumerate(tqdm(range(0, n, bs), disable=True)):\n        x, y = xs[i:i + bs], ys[i:i + bs]\n",
    step=f"{STEP}        if k % 2 == 0:\n            print(k)\n",
).replace("import time", "import time\nfrom tqdm import tqdm")
SHOWN = script(
    "    for k in range(n // bs):\n        x, y = xs[k * bs:(k + 1) * bs], ys[k * bs:(k + 1) * bs]\n",
    step=f"{STEP}        if k % 2 == 0:\n            print(k)\n",
)
READ = ORDERED.replace("        loss = ", "        print(len(idx))\n        loss = ")
NUMBERED_ENDS = NUMBERED.replace("(k + 1) * bs]", "min((k + 1) * bs, n)]").replace("n // bs)", "-(-n // bs))")
TWICE = SLICES.replace("        loss = ", "        x = x * 2\n        x = x + xs[i:i + bs]\n        loss = ")
FUNCTION = f"""{HEAD}
def train_step(x, y):
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()

def fit(xs, ys, size=8):
    for epoch in range(3):
        total = 0
        for i in range(0, xs.size(0), size):
            total += train_step(xs[i:i + size], ys[i:i + size])
        print(f'{{epoch}} {{total:.6f}}')

fit(xs, ys)
"""
ARRAYS = script(
    "    for i in range(0, n, bs):\n        x, y = torch.from_numpy(a[i:i + bs]), ys[i:i + bs]\n",
    "    a = xs.numpy()\n",
)
ALONE = script(
    "    for i in range(0, n, batch_size):\n        x = xs[i:i + batch_size]\n        y = model(x).argmax(1)\n",
    "    batch_size = 8\n",
)
DIVIDED = {
    "slices": SLICES, "an order": ORDERED, "an order in place": INLINE, "by number": NUMBERED, "an end": ENDS,
    "rows": ROWS, "a bar": BAR, "a number that is shown": SHOWN, "a step function": FUNCTION, "arrays": ARRAYS,
    "rows that are read": READ, "by number, with an end": NUMBERED_ENDS,
    "cut twice": TWICE, "one array, a size of batches": ALONE,
}  # fmt: skip


@pytest.mark.parametrize("text", DIVIDED.values(), ids=DIVIDED)
def test_the_loop_goes_over_batches(text):
    result = check_same(text, "module")
    assert "Batches(" in result and "divide_batches" not in result
    migrated = migrate_text(text)
    assert not [n for n in migrated.attention if "is no DataLoader" in n.message or "nothing here shows" in n.message]


ABOVE = "        loss = "
NEXT = script("    for i in range(0, n - bs - 1, bs):\n        x, y = xs[i:i + bs], ys[i + 1:i + bs + 1]\n")
WHOLE = {
    "cut in two ways": NEXT,
    "a move of the script's own": SLICES.replace("model(x)", "model(x.to(device))"),
    "one sequence": script("    for i in range(0, n, k):\n        x = xs[i:i + k]\n        y = model(x).argmax(1)\n",
                           "    k = 8\n"),
    "a sequence as one sample": SLICES.replace("model(x)", "model(x.unsqueeze(0))[0]"),
    "unsqueezed by name": SLICES.replace("model(x)", "model(x.unsqueeze(dim=0))[0]"),
    "unsqueezed by torch": SLICES.replace("model(x)", "model(torch.unsqueeze(x, 0))[0]"),
    "a shape with one sample": SLICES.replace("model(x)", "model(x.reshape((1, -1, 5)))[0]"),
    "a view with one sample": SLICES.replace("model(x)", "model(x.view(1, -1, 5))[0]"),
    "a new axis": SLICES.replace("model(x)", "model(x[None])[0]"),
    "data that is changed": SLICES.replace("        loss = ", "        xs[0] = 1.0\n        loss = "),
    "data that is given away": SLICES.replace("        loss = ", "        torch.nn.init.zeros_(xs)\n        loss = "),
    "data made anew": SLICES.replace("        loss = ", "        xs = xs + 1\n        loss = "),
    "another step": SLICES.replace("xs[i:i + bs]", "xs[i:i + bs:2]").replace("ys[i:i + bs]", "ys[i:i + bs:2]"),
    "a number that is computed with": SLICES.replace("model(x)", "model(x + i)"),
    "a number read below": SLICES.replace("print(f'", "print(i, f'"),
    "an end of its own": ENDS.replace("bs, n)", "bs, 30)"),
    "an end of two values": ENDS.replace("bs, n)", "bs, m)").replace("bs = 8", "bs = 8\nm = len(xs)\nm = n - 1"),
    "an end that is read": ENDS.replace("        loss = ", "        print(e)\n        loss = "),
    "an end that is set again": ENDS.replace("        x = ", "        e = e + 1\n        x = "),
    "an else": SLICES.replace(END, f"    else:\n        print(1)\n{END}"),
    "what is filled": SLICES.replace("bs = 8", "bs = 8\nseen = torch.zeros(37)").replace(
        "        loss = ", "        seen[i:i + bs] = 1.0\n        loss = "),
    "a comprehension": SLICES.replace("ys[i:i + bs]", "[a[i:i + bs] for a in (ys,)][0]"),
    "a name of a lambda's own": SLICES.replace("ys[i:i + bs]", "(lambda xs: xs[i:i + bs])(ys)"),
    "backwards": SLICES.replace("range(0, len(xs), bs)", "reversed(range(0, len(xs), bs))"),
    "not from the first": NUMBERED.replace("range(n // bs)", "range(1, n // bs)"),
    "two at once": NUMBERED.replace("k + 1", "k + 2"),
    "two statements on a line": ORDERED.replace("bs]\n        x", "bs]; x"),
    "a number beside another": BAR.replace("print(k)", "print(i)").replace("range(0, n, bs)", "range(n // bs)").replace(
        "[i:i + bs]", "[i * bs:(i + 1) * bs]"),
    "a number of batches that is computed with": NUMBERED.replace("model(x)", "model(x) * (k + 1)"),
    "a part of the rows": ROWS.replace("bs, :]", "bs, :5]"),
    "a size that is asked for": SLICES.replace("bs = 8", "bs = 8\npick = lambda: bs").replace("i + bs", "i + pick()"),
    "a size asked for by number": NUMBERED.replace("bs = 8", "bs = 8\npick = lambda: bs").replace(
        "(k + 1) * bs", "(k + 1) * pick()").replace("k * bs", "k * pick()"),
    "a place beside a number": ENDS.replace("e = min(s + bs, n)", "t, q = s, 3").replace("s:e", "t:t + bs"),
    "a size that changes": SLICES.replace("        total +=", "        bs = 4\n        total +="),
    "a sample's number that is shown": SLICES.replace("        loss = ", "        print(i)\n        loss = "),
    "parts of a loader's batch": script(
        "    for x, y in train_loader:\n        for i in range(0, len(x), 4):\n",
        step="            loss = criterion(model(x[i:i + 4]), y[i:i + 4])\n            optimizer.zero_grad()\n"
        "            loss.backward()\n            optimizer.step()\n            total += loss.item()\n"),
    "parts of one step": script(
        "    optimizer.zero_grad()\n    for i in range(0, n, bs):\n        x, y = xs[i:i + bs], ys[i:i + bs]\n",
        step="        loss = criterion(model(x), y)\n        loss.backward()\n        total += loss.item()\n"
        "    optimizer.step()\n"),
    "a view that is changed": SLICES.replace(ABOVE, f"        x += 0.5\n{ABOVE}"),
    "a view that is filled": SLICES.replace(ABOVE, f"        x[0] = 0.5\n{ABOVE}"),
    "a view that is changed by a method": SLICES.replace(ABOVE, f"        x[1:].mul_(0.5)\n{ABOVE}"),
    "a view whose data is changed": SLICES.replace(ABOVE, f"        x.data += 0.5\n{ABOVE}"),
    "its own Batches": SLICES.replace("bs = 8", "bs = 8\nBatches = list"),
}  # fmt: skip


CUT = "xs[i:i + bs], ys[i:i + bs]"
MOVED = {
    "where they are cut": SLICES.replace(CUT, "xs[i:i + bs].to(device), ys[i:i + bs].to(device)"),
    "where they have names": ORDERED.replace(ABOVE, f"        x, y = x.to(device), y.to(device)\n{ABOVE}"),
    "where they are read": SLICES.replace("model(x), y", "model(x.float().to(device)), y.to(device)"),
    "under a condition": ORDERED.replace(
        ABOVE, f"        if torch.cuda.is_available():\n            x, y = x.cuda(), y.cuda()\n{ABOVE}"),
    "as Variables": SLICES.replace(CUT, "V(xs[i:i + bs].to(device)), V(ys[i:i + bs]).to(device)").replace(
        "import time", "import time\nfrom torch.autograd import Variable as V"),
}  # fmt: skip


@pytest.mark.parametrize("text", MOVED.values(), ids=MOVED)
def test_batches_that_the_script_moves_are_the_trainers_to_move(text, tmp_path):
    result = check_same(text, "module")
    assert "Batches(" in result and "divide_batches" not in result and "self.device" not in result
    migrated = migrate_text(text)
    lines = [text.splitlines()[e.line - 1] for e in migrated.edits if e.code == "PTM101"]
    assert any(line.startswith("        ") and (".to(device)" in line or ".cuda()" in line) for line in lines)
    assert not migrated.attention
    check_on_card(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        SLICES.replace("ys[i:i + bs]\n", "ys[i:i + bs].to(device)\n"),  # the others may be there already
        MOVED["where they are cut"].replace("        loss = ", "        z = torch.ones(3).to(device)\n        loss = "),
    ],
)
def test_where_it_moves_other_things_it_goes_on_cutting_them(text):
    assert cut_and_moved(Facts(text)) is None and cut_by_the_loop(Facts(text)) is None


def test_a_loop_that_cannot_be_lifted_names_its_own_line():
    text = MOVED["where they have names"].replace(
        "        total += loss.item()\n",
        "        total += loss.item()\n        if total > 99:\n            exec('pass')\n",
    )
    result = migrate_text(text)
    assert result.plan == "loop" and "x.to(" in result.text
    (told,) = [n for n in result.attention if n.code == "PTM701"]
    assert "exec(" in text.splitlines()[told.line - 1]


def shaped(text: str) -> str:
    return cut_by_the_loop(Facts(text)) or ""


def test_what_it_reads_has_the_names_that_the_loop_gave():
    assert "for x, y in Batches(xs, ys, at=range(0, len(xs), bs), size=bs):" in shaped(SLICES)
    assert "for x, y in Batches(xs, ys, at=range(0, n, bs), size=bs, order=perm):" in shaped(ORDERED)
    assert "at=range(0, (n // bs) * bs, bs), size=bs):" in shaped(NUMBERED)
    assert "at=range(0, (n - 33) * bs, bs), size=bs):" in shaped(NUMBERED.replace("n // bs", "n - 33"))
    assert "for k, (x, y) in enumerate(Batches(" in shaped(SHOWN)
    assert "for k, (x, y) in enumerate(tqdm(Batches(" in shaped(BAR)
    assert "Batches(xs, ys," in shaped(INLINE) and "x, y = xs_batch * 1.0, ys_batch\n" in shaped(INLINE)


def test_a_name_that_is_read_above_its_place_stays_there():
    text = shaped(SLICES.replace("        x, y", "        if total > 1e9: print(x)\n        x, y"))
    assert "for xs_batch, ys_batch in" in text and "x, y = xs_batch, ys_batch" in text


def test_comments_stay():
    text = shaped(
        ORDERED.replace("x = xs[idx]", "x = xs[idx]  # inputs").replace("        y =", "        # wanted\n        y =")
    )
    assert "        # inputs\n        # wanted\n        loss = " in text


def test_a_copy_may_be_changed():
    text = ORDERED.replace(ABOVE, f"        x += 0.5\n        x[0].mul_(2)\n{ABOVE}")
    assert "Batches(" in check_same(text, "module")


def test_a_name_of_two_parts_is_no_name_of_a_batch():
    text = shaped(SLICES.replace("x, y = xs[i:i + bs], ys[i:i + bs]", "x = xs[i:i + bs]\n        x = ys[i:i + bs]"))
    assert "for x, x" not in text and "Batches(xs, ys" in text


def test_a_target_with_a_star_is_no_place():
    assert "Batches(" in shaped(SLICES.replace("        loss = ", "        one, *more = 1, 2, 3\n        loss = "))


@pytest.mark.parametrize("text", WHOLE.values(), ids=WHOLE)
def test_what_else_is_cut_stays(text):
    compile(text, "script", "exec")
    assert cut_by_the_loop(Facts(text)) is None
    assert "Batches(" not in migrate_text(text).text


def test_a_sequence_cut_in_two_ways_runs_as_before_and_is_told_of():
    check_same(NEXT, "module")
    assert any("is no DataLoader" in n.message for n in migrate_text(NEXT).attention)


def test_another_librarys_batches_are_not_the_runtimes():
    text = SLICES.replace("xs, ys = ", "from numbers import Number as Batches\nxs, ys = ").replace(
        " ys[i:", " Batches and ys[i:"
    )
    result = check_same(text, "module")
    assert "import Number as Batches" in result and "runtime import Module, Trainer\n" in result


@pytest.mark.parametrize(
    "call", ["x.unsqueeze(1).squeeze(1)", "x.view(-1, 5)", "x.view(x.size(0), 1, 5)[:, 0]", "x[:, None][:, 0]"]
)
def test_other_views_keep_the_samples(call):
    assert "Batches(" in check_same(SLICES.replace("model(x)", f"model({call})"), "module")


def test_lightning_has_no_batches():
    assert "Batches(" not in migrate_text(SLICES, Options(framework="lightning")).text


@pytest.mark.parametrize("more", ["model(x) * torch.ones(bs, 1)[:len(x)]", "model(x) + torch.zeros(bs, 3)[:len(x)]"])
def test_a_step_that_names_the_size_has_whole_batches(more):
    result = check_same(SLICES.replace("model(x)", more), "module")
    assert "Batches(" in result and "divide_batches = False" in result


def test_what_mixes_its_samples_still_has_whole_batches():
    result = check_same(SLICES.replace("model(x)", "model(x - x.mean(0))"), "module")
    assert "divide_batches = False" in result


@pytest.mark.parametrize("order", ["torch.randperm(n)", "torch.randperm(n, device=device)"])
def test_on_a_card_batches_and_their_order_meet(order, tmp_path):
    text = ORDERED.replace("torch.randperm(n)", order).replace(
        "bs = 8", "bs = 8\nxs, ys = xs.to(device), ys.to(device)"
    )
    assert "Batches(" in check_on_card(tmp_path, text)


@pytest.mark.parametrize("text", [ORDERED, NUMBERED, SHOWN], ids=["an order", "by number", "a number that is shown"])
def test_two_processes_have_the_weights_of_one(text, tmp_path):
    text = text.replace("nn.Dropout(0.2), ", "") + "torch.save(model.state_dict(), 'net.pt')\n"
    result = migrate_text(text)
    assert "Batches(" in result.text
    one, two = (torch.load(f / "net.pt") for f in on_one_and_two(tmp_path, text, result.text))
    for name in one:
        torch.testing.assert_close(two[name], one[name], rtol=1e-5, atol=1e-6)
