"""Dimensions that have names in a text: where the samples are counted behind `rearrange`, `reduce` and `einsum`."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

HEAD = """\
import torch
import einops
from einops import rearrange, reduce, repeat
import ptmigrate.runtime as pl


class Net(pl.Module):
    def training_step(self, batch, batch_idx):
        x, y = batch
        s = self.net(x)
        own = 'b d, b d -> b'
        pairs = 'i d, j d -> i j'
        shown = self.shown
        loss = {}
        return loss.mean()
"""
MIXES = [
    "rearrange(s, 'b t d -> (b t) d').softmax(0)",
    "rearrange(s, 'b t d -> t d b').softmax(-1)",
    "rearrange(s, '(n b) d -> n b d', n=2).std(0)",
    "rearrange(s, '(b n) d -> b n d', n=2).std(1)",
    "rearrange(self.net(torch.cat([x, y])), '(n b) d -> n b d', n=2).std(1)",
    "reduce(s, 'b t d -> t d', 'mean')",
    "reduce(s, 'b t d -> ', 'max')",
    "einops.einsum(s, self.net(y), 'i d, j d -> i j')",
    "torch.einsum('i..., j... -> ij', s, s)",
    "torch.einsum('id,jd', s, s)",
    "torch.einsum(pairs, s, s)",
    "torch.einsum(shown, s, s)",  # which nothing shows
]
NOT = [
    "rearrange(s, 'b t d -> b (t d)').softmax(1)",
    "rearrange(s, 'b t d -> t b d').softmax(0)",
    "rearrange(s, 'b (h d) -> b h d', h=2).softmax(-1)",
    "rearrange(rearrange(s, 'b t d -> (b t) d'), '(b t) d -> b t d', t=3).std(1)",
    "rearrange(self.net(torch.cat([x, y])), '(n b) d -> n b d', n=2).std(0)",
    "repeat(s, 'b d -> b t d', t=3).softmax(1)",
    "reduce(s, 'b t d -> b d', 'max')",
    "reduce(s, 'b t d -> ', 'mean')",
    "einops.einsum(s, self.net(y), 'b d, b d -> b')",
    "torch.einsum('...d,...d->...', s, s)",
    "torch.einsum('bd,bd', s, s)",
    "torch.einsum(own, s, s)",
    "torch.einsum(shown, s, self.w)",
    "einops.einsum(s, self.net(y), own)",
]


@pytest.mark.parametrize("expression", MIXES)
def test_mixes(expression):
    result = migrate_text(HEAD.format(expression), is_script=False)
    assert "training_step_end" in result.text or any(n.code == "PTM430" for n in result.attention)
    assert migrate_text(result.text, is_script=False).text == result.text


@pytest.mark.parametrize("expression", NOT)
def test_mixes_not(expression):
    result = migrate_text(HEAD.format(expression), is_script=False)
    assert "training_step_end" not in result.text and not any(n.code == "PTM430" for n in result.attention)
