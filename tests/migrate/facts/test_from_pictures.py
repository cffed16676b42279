"""What torchvision makes of a picture is on the CPU: its move stays, and goes where the network is."""

import ast

import pytest
from ptmigrate.migrate.facts.from_pictures import is_from_picture
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.migrate import migrate_text

TEXT = """\
import torch
import torchvision.transforms.functional as TF
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader
from torchvision import transforms

device = torch.device("cuda")
to_tensor = transforms.Compose([transforms.Resize(8), transforms.ToTensor()])
smaller = transforms.Compose([transforms.Resize(8)])


def shown(img, model):
    img = MADE
    img = img.unsqueeze(0).to(device)
    return model(img)


def main(dataset):
    model = nn.Linear(4, 3).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for x, y in DataLoader(dataset, 4):
            x, y = x.to(device), y.to(device)
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(shown(Image.open("a.png"), model))
"""
PICTURES = (
    "transforms.ToTensor()(img)",
    "TF.to_tensor(img)",
    "to_tensor(img)",
    "transforms.PILToTensor()(img).float()",
)


@pytest.mark.parametrize("made", PICTURES)
def test_its_move_stays(made):
    text = migrate_text(TEXT.replace("MADE", made)).text
    assert "img = img.unsqueeze(0).to(next(model.parameters()).device)" in text


@pytest.mark.parametrize("made", ["smaller(img)", "transforms.Normalize(0.5, 0.5)(img)", "TF.hflip(img)", "other(img)"])
def test_what_may_be_of_a_tensor_does_not_show_where_it_is(made):
    facts = Facts(TEXT.replace("MADE", made))
    assert not any(is_from_picture(facts, call) for call in facts.walk(ast.Call))
