"""The port that processes meet at is taken by nobody, and by nobody else in the meantime."""

import socket

import pytest
from ptmigrate.runtime.errors import ConfigurationError
from ptmigrate.runtime.launch import ports


@pytest.fixture
def taken():
    with socket.socket() as listening:
        listening.bind(("", 0))
        listening.listen()
        yield listening.getsockname()[1]


@pytest.mark.parametrize(
    ("given_away", "kept"),
    [
        ("32768\t60999\n", ports.PORTS),
        ("25000\t65535\n", range(20000, 25000)),
        ("1024\t65535\n", ports.PORTS),
        ("none", ports.PORTS),
        (None, ports.PORTS),
    ],
)
def test_it_is_none_that_the_system_gives_away(given_away, kept, tmp_path, monkeypatch):
    monkeypatch.setattr(ports, "GIVEN_AWAY", tmp_path / "range")
    if given_away is not None:
        (tmp_path / "range").write_text(given_away)
    assert list(ports.kept_ports()) == list(kept) and ports.free_port() in kept


def test_one_that_is_taken_is_passed_over(taken, monkeypatch):
    free = ports.free_port()
    in_turn = iter([taken, free])
    monkeypatch.setattr(ports.secrets, "choice", lambda _: next(in_turn))
    assert ports.free_port() == free


def test_where_none_is_free_it_says_so(taken, monkeypatch):
    monkeypatch.setattr(ports, "kept_ports", lambda: [taken])
    with pytest.raises(ConfigurationError, match=f"no port from {taken} to {taken} is free"):
        ports.free_port()
