"""Layers for series that are given the samples as one: attention over a batch, a lost batch_first; by numbers."""

import pytest
from cut_steps import check_adds_up, check_split
from helpers import check_unchanged
from test_mixing_steps import batch, made, whole_and_halves

ATTRIBUTES = """\
        layer = nn.TransformerEncoderLayer(5, 1, 7, 0.0)
        self.among = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.each = nn.TransformerEncoderLayer(5, 1, 7, 0.0, batch_first=True)
        self.attend = nn.MultiheadAttention(5, 1, batch_first=True)
        self.series = nn.LSTM(6, 5)
"""
MIXED = {
    "attention among the samples": "z = self(x)\nz = self.among(z.unsqueeze(1)).squeeze(1)\n"
    + "return F.cross_entropy(z, y)",
    "attention among the samples, batch first": "z = self(x)[None]\nz, _ = self.attend(z, z, z)\n"
    + "return z[0].pow(3).mean()",
    "one series of all": "z = self(x).flatten(1)\nreturn self.each(z).pow(3).mean()",
}
SAME = {
    "attention in a sample": "z = self(x)[:, None]\nreturn self.each(z).pow(3).mean()",
    "attention in a sample, time first": "z = self(x)[:, None].transpose(0, 1)\nreturn self.among(z).pow(3).mean()",
    "attention of heads": "z = self(x.view(len(x), 1, 6))\nz, _ = self.attend(z, z, z)\nreturn z.pow(3).mean()",
    "a series of each": "o, _ = self.series(x.view(len(x), 1, 6).permute(1, 0, 2))\nreturn o.pow(3).mean()",
}


def text_of(body: str) -> str:
    last = "        self.pair = lambda x: (self.encoder(x), 1)\n"
    return made(body).replace(last, last + ATTRIBUTES)


@pytest.mark.parametrize("body", MIXED.values(), ids=MIXED)
def test_the_split_gives_the_loss_of_the_whole(body):
    check_split(text_of(body), batch(), exact=False)


@pytest.mark.parametrize("body", SAME.values(), ids=SAME)
def test_a_step_whose_parts_add_up_is_left_alone(body):
    check_adds_up(text_of(body), *whole_and_halves())


def test_a_recurrent_layer_without_batch_first_goes_from_sample_to_sample():
    body = "b, t, d = x.shape\no, _ = self.series(x)\nreturn o.pow(2).mean()"
    result = check_unchanged(text_of(body), select="PTM430")
    assert "`self.series(x)` in training_step mixes the samples" in result.attention[0].message
