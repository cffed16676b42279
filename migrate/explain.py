"""`--explain CODE`: what a code means, why, and what it does to an example, made by doing it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from .codes import CODES, all_codes

LOOP = """import torch
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
"""
MODULE = (
    "import torch\nimport torch.nn.functional as F\nimport pytorch_lightning as pl\nclass Net(pl.LightningModule):\n"
)
EXAMPLES = {
    "PTM101": "import torch\nfor x, y in loader:\n    x, y = x.cuda(), y.cuda()\n    loss = criterion(model(x), y)\n",
    "PTM102": "import torch\ndevice = torch.device('cuda:0')\nmodel.to(device)\n"
    "for x, y in loader:\n    model(x.to(device))\n",
    "PTM104": "import torch\ndef mask(x):\n    return torch.ones(x.size(0)).cuda() * x\n",
    "PTM105": "import torch\nclass Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.sigma = torch.eye(3)\n",
    "PTM108": "import torch\ntorch.set_default_tensor_type(torch.DoubleTensor)\n",
    "PTM109": "import torch\nmodel.load_state_dict(torch.load('model.pt'))\n",
    "PTM112": "import torch\nstart = clock()\ntorch.cuda.synchronize()\n",
    "PTM113": "import torch\nassert torch.cuda.is_available(), 'this needs a GPU'\ntrain()\n",
    "PTM114": "import torch\nfor x, y in loader:\n    hits += (model(x.cuda()).argmax(1).cpu() == y).sum()\n",
    "PTM115": "import torch\ndata = torch.load('data.pt')\nmean = data.cuda().mean()\n",
    "PTM201": "from torch.utils.data import DataLoader\nloader = DataLoader(data, collate_fn=lambda batch: batch)\n",
    "PTM301": "import torch\ntotal = 0.0\n" + LOOP[13:] + "        total += loss.item()\n    print(total)\n",
    "PTM303": LOOP + "        print(loss.detach().cpu().item())\n",
    "PTM309": LOOP + "        torch.cuda.empty_cache()\n",
    "PTM401": "from torch.utils.data import DataLoader, DistributedSampler\nsampler = DistributedSampler(data)\n"
    "loader = DataLoader(data, 32, sampler=sampler)\nfor epoch in range(3):\n    sampler.set_epoch(epoch)\n",
    "PTM402": MODULE
    + "    def validation_step(self, batch, batch_idx):\n        self.log('loss', self(batch).mean())\n",
    "PTM410": LOOP + "    torch.save(model.state_dict(), 'model.pt')\n",
    "PTM420": "import torch\nimport torch.distributed as dist\ndist.init_process_group('nccl')\n"
    "model = torch.nn.parallel.DistributedDataParallel(model)\nif dist.get_rank() == 0:\n    log(model.module)\n",
    "PTM430": MODULE + "    def training_step(self, batch, batch_idx):\n        x, y = batch\n        z = self(x)\n"
    "        return F.cross_entropy(z @ z.t(), y)\n",
    "PTM505": MODULE
    + "    def training_step(self, batch, batch_idx):\n        self.opt.zero_grad()\n        return self(batch)\n",
    "PTM510": "from fairscale.nn.data_parallel import ShardedDataParallel\nmodel = ShardedDataParallel(net, opt)\n"
    "opt.zero_grad()  # as torch does\n",
    "PTM520": "import torch.nn as nn\nfrom torch.utils.checkpoint import checkpoint\nclass Net(nn.Module):\n"
    "    def __init__(self):\n        super().__init__()\n"
    "        self.block = nn.Sequential(nn.Linear(32, 32), nn.BatchNorm1d(32))\n"
    "    def forward(self, x):\n        return checkpoint(self.block, x)\n",
    "PTM601": "import torch\nfrom torch.autograd import Variable\n"
    "for x, y in loader:\n    x = Variable(x)\n    model(x)\n",
    "PTM602": "import torch\nloss = torch.nn.MSELoss(size_average=False)\n",
    "PTM603": "import torch\nfor x, y in loader:\n    x = x.cuda(async=True)\n",
    "PTM604": "import torch\nprint(loss.data[0])\n",
    "PTM610": "import torch\nbatches = iter(loader)\nx, y = batches.next()\n",
    "PTM605": MODULE + "    def training_step(self, batch, batch_idx):\n        with torch.autocast('cuda'):\n"
    "            return self(batch).mean()\npl.Trainer()\n",
    "PTM702": LOOP,
}


class UnknownCode(ValueError):
    """A code that no report has; the text says what is near."""


def explain(code: str) -> str:
    """The page of a code, or of its name, as text; UnknownCode for one that there is not."""
    known = all_codes()
    by_name = {name: known_code for known_code, (name, _) in known.items()}
    code = by_name.get(code.strip().lower(), code.strip().upper())
    if code not in known:
        near = difflib.get_close_matches(code, known, 1)
        raise UnknownCode(f"no code {code!r}" + (f": did you mean {near[0]}?" if near else "") + " (--list shows all)")
    name, what = known[code]
    parts = [f"{code} {name}", _sentence(what) + ".", *_more(code)]
    if code in EXAMPLES:
        parts += _example(code)
    if code not in CODES:
        return "\n\n".join([*parts, f"Leave it out with --ignore {code}; `ptlint --explain {code}` shows more."])
    parts.append(f"Leave it out with --ignore {code}, do nothing else with --select {code}.")
    return "\n\n".join(parts)


def _sentence(text: str) -> str:
    """With a capital, where it begins with a word: a name of a function is written as it is."""
    return text[0].upper() + text[1:] if re.match(r"[a-z]+(?![\w.(])", text) else text


def _more(code: str) -> Iterator[str]:
    """What the codemod's own file says of it."""
    import sys

    from .codemods.every import BY_CODE
    from .left_over import rules

    if code not in CODES:
        yield next(r.why for r in rules() if r.code == code)
    made = BY_CODE.get(code)
    text = (sys.modules[made.__module__].__doc__ or "") if made is not None else ""
    if text:
        said = re.sub(r"^T\d+(, T\d+)*( and T\d+)?: ", "", text.strip())
        yield _sentence(said)


def _example(code: str) -> Iterator[str]:
    from .migrate import migrate_text
    from .result import Options

    before = EXAMPLES[code]
    select = () if code == "PTM102" else (code,)
    result = migrate_text(before, Options(plan="loop", select=select), is_script=code in ("PTM410", "PTM702"))
    yield "For example:"
    lines = difflib.unified_diff(before.splitlines(), result.text.splitlines(), lineterm="", n=9)
    diff = "\n".join("    " + line for line in list(lines)[3:])
    yield diff or "\n".join("    " + line for line in before.splitlines())
    told = [f"    line {n.line}: {n.message}" for n in (*result.edits, *result.attention) if n.code == code]
    if told:
        yield "\n".join(told)
