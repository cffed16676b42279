"""A weight a class, taken by each sample's own class: no other sample has a part in it."""

import pytest
from cut_steps import check_adds_up, check_split
from test_mixing_steps import batch, made, whole_and_halves

OWN = "lp = F.log_softmax(z, dim=1).gather(1, y.view(-1, 1)).view(-1)"
WEIGHTS = "w = torch.linspace(0.5, 1.5, 5)"
SAME = """
(lp * w.gather(0, y.view(-1))).mean()
(lp * w.gather(0, y)).mean()
(lp * w.type_as(z)[y]).mean()
(lp * w.to(z)[y]).mean()
(lp * w.type_as(z).gather(0, y.data.view(-1))).mean()
(lp.reshape(-1) * w.to(z.device)[y.flatten()]).mean()
(lp[:, None].flatten() * w.type_as(z.data).index_select(0, y)).mean()
""".strip().splitlines()
MIXED = """
(lp.view(-1, 1) * lp).exp().mean()
(lp.view(-1, 1).view(-1)[:, None] - lp).abs().mean()
(z.view(-1).softmax(0) * w.type_as(z).repeat(len(z))).pow(2).mean()
(w.type_as(z)[y] * z.softmax(0)[:, 0]).mean()
""".strip().splitlines()


@pytest.mark.parametrize("loss", SAME)
def test_a_step_whose_parts_add_up_is_left_alone(loss):
    check_adds_up(made(f"z = self(x)\n{OWN}\n{WEIGHTS}\nreturn {loss}"), *whole_and_halves())


@pytest.mark.parametrize("loss", MIXED)
def test_the_split_gives_the_loss_of_the_whole(loss):
    check_split(made(f"z = self(x)\n{OWN}\n{WEIGHTS}\nreturn {loss}"), batch())
