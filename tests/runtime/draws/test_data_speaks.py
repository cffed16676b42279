"""What a data set's code, and the transforms that it keeps, say of drawing."""

import random
from functools import partial

import pytest
import torch
from ptmigrate.runtime.draws.speaking import data_may_draw
from torch.utils.data import ConcatDataset, Dataset, Subset


class Data(Dataset):
    def __init__(self, transform=None, **more):
        torch.randn(3)
        self.transform, self.more = transform, more

    def __len__(self):
        return 3

    def __getitem__(self, index):
        return self.transform(index)

    def unused(self):
        return random.random()


class Jittered(Data):
    def __getitem__(self, index):
        return self.jitter(index)

    def jitter(self, index):
        return index + torch.rand(1)


class Turned:
    def __call__(self, x):
        return x.flip(0) if random.random() < 0.5 else x


class Together:
    def __init__(self, transforms):
        self.transforms = transforms


def noisy(x, amount=1):
    return x + amount * torch.randn_like(x)


def plain(x):
    return x + 1


def of_two(first, second):
    return lambda x: second(first(x))


# named as torchvision's are, which is not installed with this
Crop = type("RandomCrop", (), {"__module__": "torchvision.transforms.transforms"})
Jitter = type("ColorJitter", (), {"__module__": "torchvision.transforms.v2._color"})
Middle = type("CenterCrop", (), {"__module__": "torchvision.transforms.transforms"})
Other = type("RandomForest", (), {"__module__": "forest"})

DRAW = {
    "its own method": Jittered(),
    "a function": Data(noisy),
    "an object": Data(Turned()),
    "in a list of an object": Data(Together([plain, Turned()])),
    "a lambda": Data(lambda x: x + torch.rand(1)),
    "with arguments": Data(partial(noisy, amount=2)),
    "given to another": Data(partial(plain, noisy)),
    "closed over": Data(of_two(plain, noisy)),
    "a method of an object": Data(Turned().__call__),
    "in a dictionary": Data(plain, train=Turned()),
    "a part of one": Subset(Jittered(), [0]),
    "one of two": ConcatDataset([Data(plain), Jittered()]),
    "of torchvision": Data(Together([Middle(), Crop()])),
    "of its second version": Data(Jitter()),
    "a collate_fn": noisy,
}
DRAW_NOT = {
    "nothing": Data(plain),
    "a part of it": Subset(Data(plain), [0]),
    "of torchvision": Data(Middle()),
    "of another library": Data(Other()),
    "a tensor": torch.utils.data.TensorDataset(torch.randn(3)),
    "a list": [1, 2, 3],
    "a collate_fn": plain,
    "torch's own": torch.utils.data.default_collate,
}


@pytest.mark.parametrize("data", DRAW.values(), ids=DRAW.keys())
def test_it_may_draw(data):
    assert data_may_draw(data)


@pytest.mark.parametrize("data", DRAW_NOT.values(), ids=DRAW_NOT.keys())
def test_it_does_not(data):
    assert not data_may_draw(data)


def test_what_holds_itself_ends():
    data = Data(plain)
    data.more["itself"] = data
    assert not data_may_draw(data)
