"""Bagua's algorithms on torch's collectives: each learns scikit-learn's digits on two processes."""

import json
from functools import cache

import pytest
import torch
from launching import SCRIPTS
from ptmigrate.runtime import BaguaStrategy, Trainer
from ptmigrate.runtime.errors import ConfigurationError
from ptmigrate.runtime.strategies.algorithms import HOMES, choose
from ptmigrate.runtime.strategies.algorithms.asynchronous import Averaging
from ptmigrate.runtime.strategies.algorithms.bytes import pack, unpack
from ptmigrate.runtime.strategies.algorithms.decentralized import Decentralized
from ptmigrate.runtime.strategies.algorithms.low_precision import LowPrecisionDecentralized

from tests.forked import ptrun

ALL = [*HOMES, "shift_one", "bytegrad-manual", "qadam-manual"]


@cache
def trained():
    done = ptrun("--accelerator", "cpu", "--devices", "2", str(SCRIPTS / "bagua.py"), "6", limit=280)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALL)
def test_learns_the_digits(algorithm):
    answers, _ = trained()
    exact = answers["gradient_allreduce"]["accuracy"]
    assert exact > 0.82 and answers[algorithm]["accuracy"] > exact - 0.03
    assert answers[algorithm]["spread_after"] == 0, "ranks end with the same weights"


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALL)
def test_ranks_differ_only_where_the_algorithm_says_so(algorithm):
    while_training = trained()[0][algorithm]["spread_while"]
    local = algorithm in ("decentralized", "shift_one", "low_precision_decentralized", "async")
    assert (while_training > 0) == local
    assert while_training < 0.2


@pytest.mark.slow
def test_averages_behind_trainings_back_come_a_step_later():
    """Exactly: a mean of what all ranks had before a step is added before the next, and to all at the end."""
    done = ptrun("--accelerator", "cpu", "--devices", "2", str(SCRIPTS / "bagua_async.py"))
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    batches = torch.tensor(found["batches"])  # (rank, step, sample, three inputs and what they should give)
    ranks = torch.tensor([found["begin"]] * 2)
    late = torch.zeros_like(ranks)
    for step in range(batches.shape[1]):
        inputs, wanted = batches[:, step, :, :3], batches[:, step, :, 3]
        off = (inputs * ranks[:, None, :3]).sum(2) + ranks[:, 3:] - wanted
        gradients = torch.cat([(2 * off[:, :, None] * inputs).mean(1), 2 * off.mean(1, keepdim=True)], 1)
        if step < 2:  # warmup_steps
            ranks = ranks - 0.1 * gradients.mean(0)
            continue
        ranks = ranks + late
        late = ranks.mean(0) - ranks
        ranks = ranks - 0.1 * gradients
    assert (ranks[0] - ranks[1]).abs().max() > 0.01
    assert torch.allclose(torch.tensor(found["last"]), ranks, atol=1e-6)
    assert torch.allclose(torch.tensor(found["end"]), (ranks + late).mean(0), atol=1e-6)
    assert found["rounds"] == batches.shape[1] - 2


def test_no_average_begins_before_its_time():
    averaging = Averaging(None)
    assert averaging.ready(0) and not averaging.ready(3600)
    averaging.hand_in(torch.zeros(1))
    assert not averaging.ready(0)


@pytest.mark.slow
def test_bytes_that_are_saved():
    answers, told = trained()
    for name in ("bytegrad", "bytegrad-manual"):
        sent, whole = answers[name]["sent"], answers[name]["whole"]
        assert 0.25 < sent / whole < 0.27
        assert f"bytegrad: {sent} bytes of gradients sent by a rank, 75 % less than in float32" in told
    assert answers["async"]["rounds"] > 3


def test_eight_bits():
    torch.manual_seed(0)
    chunks = torch.randn(3, 1001) * torch.tensor([[1.0], [1e-6], [1e4]])
    chunks[:, ::7] = 0
    packed = pack(chunks)
    assert packed.numbers.dtype == torch.uint8 and packed.nbytes == 3 * 1001 + 3 * 8
    back = unpack(packed)
    width = (chunks.amax(1) - chunks.amin(1)) / 255
    assert ((back - chunks).abs().amax(1) <= 1.01 * width).all()
    assert (back[:, ::7] == 0).all(), "no gradient stays no gradient"
    for same in (torch.zeros(1, 5), torch.full((1, 5), 3.0), torch.full((1, 5), -3.0)):
        assert torch.allclose(unpack(pack(same)), same)


@pytest.mark.parametrize("world", [2, 4, 6])
def test_everyone_is_paired_and_meets_everyone_across(world):
    peers = []
    for rank in range(world):
        algorithm = Decentralized(peer_selection_mode="shift_one")
        algorithm.rank, algorithm.world = rank, world
        peers.append([algorithm.peer(turn) for turn in range(world // 2)])
    for rank in range(world):
        assert all(peers[peer][turn] == rank for turn, peer in enumerate(peers[rank]))
        assert len(set(peers[rank])) == world // 2


def test_papers():
    for name in HOMES:
        assert any(year in str(type(choose(name, {})).__doc__) for year in ("2016", "2017", "2018", "2020", "2021")), (
            name
        )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"algorithm": "bytegrd"}, "unknown algorithm 'bytegrd'; did you mean 'bytegrad'"),
        ({"algorithm": "qadam", "warmup": 3}, "did you mean 'warmup_steps'"),
        ({"algorithm": "qadam", "warmup_steps": 0}, "at least 1"),
        ({"algorithm": "decentralized", "peer_selection_mode": "al"}, "unknown peer_selection_mode"),
        ({"algorithm": "decentralized", "communication_interval": 0}, "at least 1"),
        ({"algorithm": "async", "sync_interval_ms": -1}, "from 0 up"),
    ],
)
def test_refused(options, says):
    with pytest.raises(ConfigurationError, match=says):
        BaguaStrategy(**options)


def test_hierarchies_are_the_package_s():
    with pytest.raises(ConfigurationError, match="hierarchical=True"):
        Trainer(accelerator="cpu", devices=2, strategy=BaguaStrategy("bytegrad", hierarchical=True))


def test_pairs_need_an_even_number():
    strategy = BaguaStrategy("decentralized", peer_selection_mode="shift_one")
    with pytest.raises(ConfigurationError, match="3 cannot be paired"):
        Trainer(accelerator="cpu", devices=3, strategy=strategy)


def test_qadam_is_for_adam():
    algorithm = choose("qadam", {})
    from ptmigrate.runtime.strategies.algorithms.qadam import QuantizedAdam

    layer = torch.nn.Linear(2, 2)
    with pytest.raises(ConfigurationError, match="made a SGD"):
        QuantizedAdam(torch.optim.SGD(layer.parameters(), 0.1), algorithm.warmup_steps)


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW])
def test_qadam_warms_up_as_adam(kind):
    from ptmigrate.runtime.strategies.algorithms.qadam import QuantizedAdam

    layers = []
    for wrap in (lambda o: o, lambda o: QuantizedAdam(o, 100)):
        torch.manual_seed(0)
        layer = torch.nn.Linear(3, 3)
        optimizer = wrap(kind(layer.parameters(), 0.01, weight_decay=0.1))
        for _ in range(5):
            optimizer.zero_grad()
            layer(torch.ones(2, 3)).square().sum().backward()
            optimizer.step()
        layers.append(layer)
    assert torch.allclose(layers[0].weight, layers[1].weight, atol=1e-6)


def test_parameters_that_come_later_are_known_to_the_neighbours():
    first, later = torch.nn.Linear(2, 2), torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(first.parameters(), 0.1)
    algorithm = LowPrecisionDecentralized()
    algorithm.known = {}
    algorithm.before_step(optimizer)
    own = algorithm.known[id(optimizer)][0].clone()
    optimizer.add_param_group({"params": list(later.parameters())})
    algorithm.before_step(optimizer)
    for copy in algorithm.known[id(optimizer)]:
        assert torch.equal(copy, torch.cat([own, later.weight.detach().flatten(), later.bias.detach()]))


def test_eight_bits_are_for_dense_gradients():
    with pytest.raises(ConfigurationError, match="'bytegrad' cannot do sparse gradients"):
        BaguaStrategy(algorithm="bytegrad").check({"sparse": True})
    BaguaStrategy().check({"sparse": True})
