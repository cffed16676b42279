"""What each node of a graph leads to."""

from hypothesis import given, settings
from hypothesis import strategies as st
from ptmigrate.migrate.reachable import reachable


def test_a_chain_and_a_circle():
    edges = {"train": ["engine", "data"], "engine": ["utils"], "utils": ["engine"], "data": ["torch"]}
    found = reachable(edges)
    assert found["train"] == {"train", "engine", "utils", "data", "torch"}
    assert found["engine"] == found["utils"] == {"engine", "utils"}
    assert found["data"] == {"data", "torch"}
    assert found.keys() == edges.keys()


def test_none():
    assert reachable({}) == {}
    assert reachable({"a": []}) == {"a": {"a"}}


def test_a_chain_longer_than_the_stack():
    n = 5000
    found = reachable({i: [i + 1] for i in range(n)})
    assert len(found[0]) == n + 1


@settings(deadline=None)
@given(st.dictionaries(st.integers(0, 9), st.lists(st.integers(0, 12), max_size=4)))
def test_it_is_what_following_gives(edges):
    for node, found in reachable(edges).items():
        seen, queue = {node}, [node]
        while queue:
            new = set(edges.get(queue.pop(), ())) - seen
            seen |= new
            queue += new
        assert found == seen
