"""What data sets, buffers, tokenizers and other libraries give is on the CPU: its move stays, or goes by T2."""

import textwrap

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text

from tests.migrate.running import check_on_card

HEAD = """
import random
import torch
from collections import deque
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset, random_split
from torchvision.datasets import MNIST
from PIL import Image
class Samples(Dataset):
    pass
class Images:
    def __len__(self):
        return 3
    def __getitem__(self, i):
        return torch.ones(2), i
class Memory:
    def __init__(self):
        self.kept = deque(maxlen=9)
        self.seen = []
    def take(self, k):
        batch = random.sample(self.kept, k)
        return torch.stack([b[0] for b in batch]), len(batch)
    def net(self):
        return nn.Linear(2, 2)
    def last(self, device):
        return self.seen[-1].to(device)
"""

STAYS = {
    "an item": "def f(dataset, device):\n    return dataset[3].to(device)\n",
    "an item that is asked for by its method": "def f(self, device):\n"
    "    x = self.data_loader.dataset.__getitem__(3)[0]\n    x = x.to(device)\n    return x\n",
    "a part of an item": "def f(self, device):\n    x, y = self.train_set[3]\n    return x.unsqueeze(0).to(device)\n",
    "an attribute": "test = MNIST('.', train=False)\ndef f(device):\n    return test.data[:200].to(device)\n",
    "a class of the file": "def f(device):\n    items = Samples()\n    return items[0].cuda()\n",
    "a class with the methods of one": "def f(model):\n    images = Images()\n    for i in range(len(images)):\n"
    "        x, n = images[i]\n        x = x[None].cuda()\n        model(x)\n",
    "a list of what is made here": "def f(n, grad):\n    rows = []\n    for i in range(n):\n"
    "        rows.append(torch.zeros(3, requires_grad=grad).long())\n"
    "    for i in range(n):\n        rows[i] = rows[i].cuda()\n    return rows\n",
    "a part of one": "def f(whole, device):\n    a, b = random_split(whole, [1, 2])\n    return b[0].to(device)\n",
    "of a list of batches": "def f(loader, device):\n    seen = list(loader)\n    return seen[0].to(device)\n",
    "of a counted list": "def f(target, device, i):\n    seen = list(enumerate(target))\n    _, (x, y) = seen[i]\n"
    "    return x.view(-1).to(device)\n",
    "an item that is asked by words": "def f(dataset, device):\n    data = dataset[0]\n    data = data.to(device)\n"
    "    return [data.y[m] for m in data('train_mask', 'test_mask')]\n",
    "a part of what an iterator of the script's own gives": "class Forever:\n    def __init__(self, loader):\n"
    "        self.loader = loader\n    def __next__(self):\n        return next(iter(self.loader))\n"
    "def f(loader, device):\n    its = Forever(loader)\n    x, y = next(its)[:2]\n    return x.to(device)\n",
    "each of them": "def f(val_set, device):\n    return [v.to(device) for v in val_set]\n",
    "a loop that is none over batches": "def f(dataset):\n    for i, v in enumerate(dataset):\n        g(v.cuda())\n",
    "some of them": "def f(ds, device):\n    return torch.stack([ds[i] for i in range(3)]).to(device)\n",
    "made in a list": "def f(rows, device):\n    return torch.stack([torch.from_numpy(r) for r in rows]).to(device)\n",
    "made by map": "def f(rows, device):\n    return torch.stack(list(map(torch.from_numpy, rows))).to(device)\n",
    "made and padded": "def f(rows):\n    return pad_sequence([torch.LongTensor(r) for r in rows]).cuda()\n",
    "a method": "def f(device):\n    memory = Memory()\n    x, n = memory.take(3)\n    return x.to(device)\n",
    "by its name": "def f(buffer, device):\n    x, y = buffer.sample(3)\n    return x.to(device), y.to(device)\n",
    "a text": "def f(tok, text, device):\n    return tok(text, return_tensors='pt').to(device)\n",
    "its parts": "def f(tok, text, device):\n    t = tok(text, return_tensors='pt')\n"
    "    return {k: v.to(device) for k, v in t.items()}\n",
    "a part of a storage": "def f(storage, i, device):\n    return storage.rewards[i].to(device)\n",
    "all of a list": "class A:\n    def __init__(self):\n        self.seen = []\n    def f(self, device):\n"
    "        return torch.stack([s[0] for s in self.seen]).to(device)\n",
    "made of a size by a method": "class Steps:\n    def draw(self, n):\n        return torch.randint(0, 9, (n,))\n"
    "def f(x, device):\n    return Steps().draw(x).to(device)\n",
    "made like what it is given": "class Noise:\n    def like(self, x):\n        return torch.rand(x.shape)\n"
    "def f(x, device):\n    return Noise().like(x).to(device)\n",
    "of a corpus of another file": "from words import Corpus\ncorpus = Corpus()\nids = corpus.get_data('a.txt', 20)\n"
    "def f(i, device):\n    return ids[:, i : i + 5].to(device)\n",
    "of a data set of a library": "from pairs import Pairs\nsplit = Pairs('a').get_idx_split()\n"
    "pairs = Pairs('b')\nboth = pairs.halves()\ndef f(device):\n    return both[0].to(device)\n",
    "a picture": "def f(path, convert, device):\n    return convert(Image.open(path).convert('RGB')).to(device)\n",
}


@pytest.mark.parametrize("source", STAYS.values(), ids=STAYS)
def test_what_is_held_keeps_its_move(source):
    result = migrate_text(HEAD + source, Options(ignore=("PTM115",)))
    assert result.text == HEAD + source
    assert "PTM104" in [n.code for n in result.attention]


GOES = {
    "a batch": ("def f(batch, device):\n    return batch[0].to(device)\n", "return batch[0]"),
    "a loader's": ("def f(test_loader, device):\n    return [x.to(device) for x in test_loader]\n", "[x for x in"),
    "a memory that is a tensor": (
        "def f(memory, device):\n    return memory.transpose(0, 1).to(device)\n",
        "return memory.transpose(0, 1)\n",
    ),
    "a view of one": ("def f(memory, device):\n    return memory.T.to(device)\n", "return memory.T\n"),
    "of a model of another file": (
        "from nets import Net\nnet = Net()\noptimizer = torch.optim.Adam(net.parameters())\nw = net.embedded()\n"
        "def f(device):\n    return w[0].to(device)\n",
        "return w[0]\n",
    ),
    "what a helper of another file computes": (
        "from nets import Loss\nloss = Loss()\ndef f(x, device):\n    return loss.parts(x.detach())[0].to(device)\n",
        "return loss.parts(x.detach())[0]\n",
    ),
    "a module that a method makes": (
        "def f(device):\n    return Memory().net().to(device)\n",
        "return Memory().net()\n",
    ),
    "a method that is given a tensor": (
        "def f(noise, x, device):\n    return noise.add(x, x.size(0)).to(device)\n",
        "ze(0))\n",
    ),
    "a module that is called": (
        "def f(self, x, device):\n    return self.positions(x.size(1)).to(device)\n",
        "return self.positions(x.size(1))\n",
    ),
    "a view": ("def f(x, y, device):\n    return y.view(x.size(0), -1).to(device)\n", "return y.view(x.size(0), -1)\n"),
    "several of a tensor": (
        "def f(x, y, device):\n    return y.chunk(len(x), 1)[0].to(device)\n",
        "return y.chunk(len(x), 1)[0]\n",
    ),
    "an item that is called": (
        "def f(dataset, x, device):\n    net = dataset[0]\n    net = net.to(device)\n    return net(x)\n",
        "    net = dataset[0]\n    return net(x)\n",
    ),
    "a part of a batch as a list": (
        "def f(batch, device):\n    parts = list(batch)\n    return parts[0].to(device)\n",
        "return parts[0]\n",
    ),
    "a list of a batch": ("def f(xs, device):\n    return torch.stack([x for x in xs]).to(device)\n", "in xs])\n"),
}


@pytest.mark.parametrize(("source", "left"), GOES.values(), ids=GOES)
def test_batches_and_modules_are_placed(source, left):
    result = migrate_text(HEAD + source)
    assert left in result.text and "to(device)\n    return" not in result.text
    assert "cuda" not in result.text and migrate_text(result.text).text == result.text


def test_so_is_a_module_that_a_function_wraps():
    script = "from torch import nn\nnet = nn.utils.spectral_norm(nn.Linear(2, 2))"
    assert migrate_text(f"{script}.cuda()\n").text == f"{script}\n"


@pytest.mark.parametrize("made", ["schedule.draw(x.shape[0])", "draw(x.size(0))", "schedule.draw(len(x), 3)"])
def test_what_is_made_of_sizes_goes_where_the_tensor_is(made):
    script = "def f(net, schedule, x, device):\n{}    t = {}.to({})\n    return net(x, t)\n"
    before = script.format("    x = x.to(device)\n", made, "device")
    assert migrate_text(HEAD + before).text == HEAD + script.format("", made, "x.device")


def test_the_one_graph_of_a_data_set_stays_where_the_script_puts_it():
    script = textwrap.dedent("""
        import torch
        from torch_geometric.datasets import Planetoid
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        dataset = Planetoid("data", "Cora")
        data = dataset[0].to(device)
        model = torch.nn.Linear(3, 4).to(device)
        optimizer = torch.optim.Adam(model.parameters())
        def train():
            optimizer.zero_grad()
            loss = model(data.x).mean()
            loss.backward()
            optimizer.step()
        def test():
            return model(data.x).mean().item()
        for epoch in range(200):
            train()
            print(test())
        """)
    result = migrate_text(script)
    assert result.plan == "module" and "data = dataset[0].to(device)" in result.text
    assert "model = torch.nn.Linear(3, 4)\n" in result.text


def test_texts_of_a_batch_go_where_their_module_is():
    script = textwrap.dedent("""
        import torch
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        model = Net().to(device)
        optimizer = torch.optim.Adam(model.parameters())
        loader = torch.utils.data.DataLoader(load(), 4)
        for epoch in range(2):
            for batch in loader:
                inputs = tokenizer(batch["text"], return_tensors="pt").to(device)
                loss = model(inputs, batch["label"].to(device))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """)
    result = migrate_text(script).text
    assert 'return_tensors="pt").to(self.device)' in result and 'self.model(inputs, batch["label"])' in result


def test_texts_that_methods_put_together_go_where_their_module_is(tmp_path):
    script = """
import torch


class Texts:
    def encode(self, text, return_tensors):
        return torch.tensor([[ord(letter) % 16 for letter in text]])


class Runner:
    def __init__(self, model, tokenizer):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model, self.tokenizer = model.to(self.device), tokenizer

    def mask(self, inputs):
        labels = inputs.clone()
        inputs[torch.rand(labels.shape) < 0.3] = 0
        return inputs, labels

    def encode(self, batch):
        return torch.cat([self.tokenizer.encode(text, return_tensors="pt") for text in batch])

    def train(self, loader):
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        for epoch in range(2):
            for batch in loader:
                inputs, labels = self.mask(self.encode(batch))
                inputs, labels = inputs.to(self.device), labels.to(self.device)
                loss = torch.nn.functional.cross_entropy(self.model(inputs).view(-1, 16), labels.view(-1))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                print(loss.item())


torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Embedding(16, 8), torch.nn.Linear(8, 16))
Runner(model, Texts()).train(torch.utils.data.DataLoader(["some", "text", "more", "here"] * 2, 4))
"""
    assert "inputs, labels = inputs.to(self.device), labels.to(self.device)" in check_on_card(tmp_path, script)


@pytest.mark.parametrize("given", ["x.unsqueeze(0)", "x[None].float()", "x"])
@pytest.mark.parametrize(("called", "stays"), [("predict(torch.ones(3))\n", True), ("", False)])
def test_what_a_function_hands_on_is_made_where_its_caller_made_it(given, called, stays):
    script = f"""
def move(v, device):
    return v.to(device)
device = "cuda" if torch.cuda.is_available() else "cpu"
net = move(nn.Linear(3, 1), device)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
def predict(x):
    return net(move({given}, device))
for epoch in range(2):
    for x in torch.utils.data.DataLoader(torch.ones(8, 3), 4):
        optimizer.zero_grad()
        net(move(x, device)).mean().backward()
        optimizer.step()
"""
    result = migrate_text(HEAD + script + called)
    assert result.plan == "module" and ("v.to(device)" in result.text) == stays


AGENT = """
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

class Env:
    def reset(self):
        self.t, self.s = 0, torch.zeros(4)
        return self.s
    def step(self, action):
        self.t += 1
        self.s = self.s * 0.9 + (action * 2 - 1) * torch.tensor([0.1, 0.2, -0.1, 0.3])
        return self.s, float(self.s.sum()), self.t >= 6

class Agent:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).to(device)
        self.opt = torch.optim.Adam(self.net.parameters(), 0.01)
        self.env, self.logs, self.rewards = Env(), [], []
    def act(self, state):
        policy = torch.distributions.Categorical(logits=self.net(state.unsqueeze(0).to(device)))
        action = policy.sample()
        self.logs.append(policy.log_prob(action))
        return action.item()
    def play(self):
        state, done = self.env.reset(), False
        while not done:
            DRAW
            self.rewards.append(reward)
        return sum(self.rewards)
    def update(self):
        loss = torch.cat([-log * reward for log, reward in zip(self.logs, self.rewards)]).sum()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.logs.clear()
        self.rewards.clear()
        return loss.item()

torch.manual_seed(0)
agent = Agent()
for episode in range(4):
    gained = agent.play()
    loss = agent.update()
    print(gained, loss)
"""


@pytest.mark.parametrize(
    "draw",
    [
        "state, reward, done = self.env.step(self.act(state))",
        "action = self.act(state)\n            state, reward, done = self.env.step(action)",
    ],
)
def test_a_state_of_an_environment_that_a_method_is_given(tmp_path, draw):
    text = check_on_card(tmp_path, AGENT.replace("DRAW", draw))
    assert "state.unsqueeze(0).to(next(self.net.parameters()).device)" in text
