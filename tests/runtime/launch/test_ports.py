"""The port that processes meet at is taken by nobody, and by nobody else in the meantime."""

import socket
from pathlib import Path

import pytest
from ptmigrate.runtime.errors import ConfigurationError
from ptmigrate.runtime.launch import ports

GIVEN_AWAY = Path("/proc/sys/net/ipv4/ip_local_port_range")


@pytest.fixture
def taken():
    with socket.socket() as listening:
        listening.bind(("", 0))
        listening.listen()
        yield listening.getsockname()[1]


@pytest.mark.skipif(not GIVEN_AWAY.exists(), reason="Linux says which")
def test_it_is_none_that_the_system_gives_away():
    first, last = map(int, GIVEN_AWAY.read_text().split())
    if first < 32768:
        pytest.skip("this system gives away more than Linux does unless it is told to")
    assert not set(ports.PORTS) & set(range(first, last + 1))


def test_one_that_is_taken_is_passed_over(taken, monkeypatch):
    free = ports.free_port()
    in_turn = iter([taken, free])
    monkeypatch.setattr(ports.secrets, "choice", lambda _: next(in_turn))
    assert ports.free_port() == free


def test_where_none_is_free_it_says_so(taken, monkeypatch):
    monkeypatch.setattr(ports, "PORTS", [taken])
    with pytest.raises(ConfigurationError, match=f"no port from {taken} to {taken} is free"):
        ports.free_port()
