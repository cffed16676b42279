"""What two and three ranks draw for their parts is, put together, what one process draws for the whole batch."""

import warnings

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from ptmigrate.runtime.data.divide import bounds
from ptmigrate.runtime.draws import tensors
from ptmigrate.runtime.draws.rows import Rows
from ptmigrate.runtime.draws.tensors import WholeDraws
from torch.distributions import Beta, Categorical, Normal
from torch.utils.checkpoint import checkpoint

SAMPLES = 8
torch.manual_seed(3)
LSTM, LSTM_TIME_FIRST = nn.LSTM(6, 6, 2, dropout=0.5, batch_first=True), nn.LSTM(6, 6, 2, dropout=0.5)
GRU = nn.GRU(6, 6, 2, dropout=0.5, batch_first=True, bidirectional=True)
ATTENTION, TIME_FIRST = nn.MultiheadAttention(6, 2, 0.3, batch_first=True), nn.MultiheadAttention(6, 2, 0.3)
ENCODER = nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8, 0.2, batch_first=True), 2)
LINEAR = nn.Linear(6, 6)


def recomputed(x, reentrant, differentiate):
    y = x.clone().requires_grad_()
    loss = checkpoint(lambda value: F.dropout(LINEAR(value), 0.5), y, use_reentrant=reentrant).sum()
    if differentiate:
        return torch.autograd.grad(loss, y)[0]
    loss.backward()
    return y.grad


def packed(x):
    return nn.utils.rnn.pack_padded_sequence(x, [5, 4, 2, 1], batch_first=True)


def frozen(run):
    with torch.no_grad():
        return run()


DRAWS = {
    "dropout": lambda x: F.dropout(x, 0.5),
    "dropout in place": lambda x: F.dropout(x.clone(), 0.3, inplace=True),
    "dropout1d": nn.Dropout1d(0.5),
    "dropout2d": lambda x: F.dropout2d(x[..., None], 0.5),
    "alpha dropout": nn.AlphaDropout(),
    "feature alpha dropout": lambda x: F.feature_alpha_dropout(x, 0.5, True),
    "dropout of doubles": lambda x: F.dropout(x.double(), 0.5),
    "dropout of channels last": lambda x: F.dropout(x[..., None].contiguous(memory_format=torch.channels_last), 0.5),
    "dropout of a view": lambda x: F.dropout(x.transpose(1, 2), 0.5),
    "the fused dropout": lambda x: torch.native_dropout(x, 0.5, True)[0],
    "rand": lambda x: torch.rand(x.size(0), 3),
    "randn": lambda x: torch.randn((x.size(0), 100)),
    "randint": lambda x: torch.randint(0, 9, (x.size(0),)),
    "randint from": lambda x: torch.randint(9, (x.size(0), 2)),
    "normal": lambda x: torch.normal(1.0, 2.0, (x.size(0), 3)),
    "randn_like": torch.randn_like,
    "rand_like": torch.rand_like,
    "randint_like": lambda x: torch.randint_like(x, 5),
    "normal of tensors": lambda x: torch.normal(x, x.abs()),
    "bernoulli": lambda x: torch.bernoulli(x.sigmoid()),
    "multinomial": lambda x: torch.multinomial(x[:, 0].abs(), 3),
    "multinomial with replacement": lambda x: torch.multinomial(x[:, 0].abs(), 9, replacement=True),
    "uniform_": lambda x: x.new(x.size(0), 3).uniform_(),
    "normal_": lambda x: torch.Tensor(x.size(0), 3).normal_(),
    "exponential_": lambda x: torch.empty_like(x).exponential_(),
    "random_": lambda x: torch.empty(x.size(0), dtype=torch.int64).random_(9),
    "a distribution": lambda x: Normal(x, x.abs() + 0.1).rsample(),
    "a categorical": lambda x: Categorical(logits=x).sample(),
    "gumbel": F.gumbel_softmax,
    "lstm": lambda x: LSTM(x)[0],
    "gru": lambda x: GRU(x)[0],
    "attention": lambda x: ATTENTION(x, x, x)[0],
    "attention without weights": lambda x: ATTENTION(x, x, x, need_weights=False)[0],
    "scaled dot product": lambda x: F.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None], dropout_p=0.4),
    "transformer": ENCODER,
    "views": lambda x: F.dropout(torch.cat([x, x]), 0.5).view(2, -1, 5, 6).transpose(0, 1),
    "a beta": lambda x: Beta(2.0, 3.0).sample((len(x), 1)),
    "poisson of one rate": lambda x: torch.poisson(torch.tensor(3.0).expand(len(x), 2)),
    "chosen by one row of weights": lambda x: torch.multinomial(torch.ones(6), len(x), replacement=True),
    "dropout of a teacher": lambda x: frozen(lambda: F.dropout(LINEAR(x[:, 0, :]), 0.5)),
    "a checkpoint": lambda x: recomputed(x, False, False),
    "a reentrant checkpoint": lambda x: recomputed(x, True, False),
    "a checkpoint and grad": lambda x: recomputed(x, False, True),
}
TIME = {
    "dropout": lambda x: F.dropout(x, 0.5),
    "lstm": lambda x: LSTM_TIME_FIRST(x)[0],
    "lstm as long as there are samples": lambda x: LSTM_TIME_FIRST(x[:4])[0],
    "attention": lambda x: TIME_FIRST(x, x, x)[0],
}
ALIKE = {
    "a coin": lambda x: torch.rand(1),
    "noise of a size of its own": lambda x: torch.randn(64, 100),
    "noise for all samples": lambda x: torch.randn(SAMPLES, 2),
    "one beta": lambda x: Beta(2.0, 3.0).sample(),
    "a parameter": lambda x: torch.randn_like(nn.Parameter(torch.ones(4, 9))),
    "dropped weights": lambda x: F.dropout(nn.Parameter(torch.ones(4, 9)), 0.5),
}


def several(draw, x, world, dim=0):
    """What `world` ranks get, and where their streams stand afterwards."""
    found, ends = [], []
    for rank in range(world):
        rows = Rows()
        start, stop = bounds(SAMPLES, rank, world)
        rows.set(start, stop, SAMPLES)
        torch.manual_seed(0)
        with WholeDraws(rows, rank, []):
            found.append(draw(x.narrow(dim, start, stop - start)))
        ends.append(torch.get_rng_state())
    return found, ends


def one(draw, x):
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return draw(x), torch.get_rng_state()


@pytest.mark.parametrize("world", [2, 3])
@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS.keys())
def test_rows_of_the_whole(draw, world):
    x = torch.randn(SAMPLES, 5, 6, generator=torch.Generator().manual_seed(1))
    whole, end = one(draw, x)
    parts, ends = several(draw, x, world)
    torch.testing.assert_close(torch.cat(parts), whole, rtol=1e-6, atol=1e-6)
    assert all(torch.equal(each, end) for each in ends), "every rank's stream goes on as one process's does"


@pytest.mark.parametrize("draw", TIME.values(), ids=TIME.keys())
def test_rows_of_a_batch_behind_time(draw):
    x = torch.randn(5, SAMPLES, 6, generator=torch.Generator().manual_seed(1))
    whole, end = one(draw, x)
    parts, ends = several(draw, x, 2, dim=1)
    torch.testing.assert_close(torch.cat(parts, 1), whole, rtol=1e-6, atol=1e-6)
    assert all(torch.equal(each, end) for each in ends)


@pytest.mark.parametrize("draw", ALIKE.values(), ids=ALIKE.keys())
def test_what_is_no_batch_s_is_drawn_alike(draw):
    x = torch.zeros(SAMPLES, 5, 6)
    assert torch.equal(*several(draw, x, 2)[0])


def test_noise_for_weights_is_drawn_alike():
    weight = torch.zeros(4, 9)
    rows = Rows()
    rows.set(0, 4, SAMPLES)
    torch.manual_seed(0)
    alone = torch.randn_like(weight)
    torch.manual_seed(0)
    with WholeDraws(rows, 0, [weight]), torch.no_grad():
        assert torch.equal(torch.randn_like(weight), alone)


def test_noise_for_gradients_is_drawn_alike():
    """Though it has as many rows as this rank has samples, and gradients are on."""
    weight = nn.Parameter(torch.zeros(4, 9))
    weight.grad = torch.ones(4, 9)
    rows = Rows()
    rows.set(0, 4, SAMPLES)
    torch.manual_seed(0)
    alone = torch.randn_like(weight.grad)
    torch.manual_seed(0)
    with WholeDraws(rows, 0, [weight]):
        assert torch.equal(torch.randn_like(weight.grad), alone)
        torch.randn_like(torch.ones(4, 9))
    assert rows.found, "what is no gradient is a batch's"


@pytest.mark.parametrize("draw", [lambda x: torch.poisson(x.abs() + 9), lambda x: F.rrelu(-x.abs(), training=True)])
def test_what_cannot_be_drawn_whole_differs_by_rank(draw):
    first, second = several(draw, torch.ones(SAMPLES, 50), 2)[0]
    assert not torch.equal(first[:3], second)


@pytest.mark.parametrize(
    ("draw", "why"),
    [
        (lambda x: torch.poisson(x.abs()), "poisson, depending on values"),
        (lambda x: x[torch.randperm(len(x))], "randperm of the samples"),
        (lambda x: LSTM(packed(x))[0].data, "lstm, of sequences of several lengths"),
        (lambda x: F.dropout(x, 0.5), ""),
        (lambda x: x[:, torch.randperm(5)], ""),
        (lambda x: LSTM.eval()(packed(x))[0].data, ""),
    ],
)
def test_what_is_not_drawn_as_one_process_does_is_noted(draw, why):
    LSTM.train()
    rows = Rows()
    rows.set(0, 4, SAMPLES)
    with WholeDraws(rows, 0, []):
        draw(torch.ones(4, 5, 6))
    LSTM.train()
    reasons = rows.readings.reasons
    assert [reason.startswith(why) for reason in reasons] == [True] * bool(why)
    assert all(line.startswith("test_whole_draws.py:") for line in reasons.values())


def test_one_sample_s_memory_is_laid_out_as_several_samples_is():
    x = torch.randn(5, 3, 6, generator=torch.Generator().manual_seed(1))  # time first, seen batch first
    whole, _ = one(lambda x: F.dropout(x.transpose(0, 1), 0.5), x)
    rows = Rows()
    rows.set(2, 3, 3)
    torch.manual_seed(0)
    with WholeDraws(rows, 2, []):
        assert torch.equal(F.dropout(x[:, 2:].transpose(0, 1), 0.5), whole[2:])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_nested_tensors_are_let_through(layout):
    made = lambda x: torch.nested.nested_tensor([x[0], x[0, :2]], layout=layout)  # noqa: E731
    first, second = several(lambda x: F.dropout(made(x), 0.5), torch.ones(SAMPLES, 5, 6), 2)[0]
    assert first.is_nested and len(first.unbind()) == len(second.unbind()) == 2


def test_a_batch_too_large_is_drawn_in_parts(monkeypatch):
    monkeypatch.setattr(tensors, "LARGEST", 10)
    parts, ends = several(lambda x: F.dropout(x, 0.5), torch.ones(SAMPLES, 50), 2)
    assert not torch.equal(parts[0][:3], parts[1]) and torch.equal(*ends)


def test_a_method_that_somebody_watches_is_called_once(monkeypatch):
    calls, backward = [], torch.Tensor.backward
    monkeypatch.setattr(torch.Tensor, "backward", lambda self, *a, **k: calls.append(1) or backward(self, *a, **k))
    rows = Rows()
    rows.set(0, 4, 8)
    x = torch.ones(4, requires_grad=True)
    with WholeDraws(rows, 0, []):
        F.dropout(x, 0.5).sum().backward(retain_graph=True)
    assert calls == [1] and x.grad is not None


@pytest.mark.parametrize(("name", "before"), [("_cudnn_rnn", 11), ("miopen_rnn", 9)])
def test_a_fused_recurrent_network_draws_only_where_it_drops(name, before):
    """Without dropout nothing is drawn, and the script's stream, by which loaders shuffle, stays where it is."""
    schema = [argument.name for argument in getattr(torch.ops.aten, name).default._schema.arguments]
    assert schema[before : before + 2] == ["dropout", "train"]
    given = [None] * before
    assert tensors._drops(name, [*given, 0.2, True], {})
    assert not tensors._drops(name, [*given, 0.0, True], {}) and not tensors._drops(name, [*given, 0.2, False], {})
