"""Operands that are given by name are those by place, by numbers."""

import pytest
from cut_steps import check_adds_up, check_split
from test_mixing_steps import batch, made, whole_and_halves

MIXED = """
torch.matmul(input=z, other=z.t()).exp().mean()
torch.matmul(other=z.t(), input=z).exp().mean()
torch.mm(input=z, mat2=z.t()).exp().mean()
torch.cdist(x1=z, x2=z).exp().mean()
torch.cdist(z, x2=z).exp().mean()
z.matmul(other=z.t()).exp().mean()
z.mm(mat2=z.t()).exp().mean()
torch.addmm(input=torch.zeros(1), mat1=z, mat2=z.t()).exp().mean()
F.softmax(input=z, dim=0).pow(2).mean()
torch.div(other=F.mse_loss(z, t), input=torch.ones(()))
torch.mul(input=F.mse_loss(z, t), other=F.cross_entropy(z, y))
F.cosine_similarity(x1=z[:, None], x2=z[None], dim=2).exp().mean()
""".strip().splitlines()
SAME = """
torch.mul(input=z, other=t).mean()
torch.add(input=z, other=t, alpha=2).pow(2).mean()
F.cosine_similarity(x1=z, x2=t, dim=1).mean()
torch.matmul(input=z, other=torch.ones(5, 2)).pow(2).mean()
torch.matmul(other=self.encoder.weight, input=z).pow(2).mean()
z.mul(other=t).mean()
F.softmax(input=z, dim=1).pow(2).mean()
F.mse_loss(input=z, target=t)
torch.sub(input=z, other=t).abs().mean()
""".strip().splitlines()


@pytest.mark.parametrize("loss", MIXED)
def test_the_split_gives_the_loss_of_the_whole(loss):
    check_split(made(f"z = self(x)\nreturn {loss}"), batch())


@pytest.mark.parametrize("loss", SAME)
def test_a_step_whose_parts_add_up_is_left_alone(loss):
    check_adds_up(made(f"z = self(x)\nreturn {loss}"), *whole_and_halves())
