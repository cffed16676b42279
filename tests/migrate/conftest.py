"""Proofs whose runs are forks, for tests of what they prove."""

from tests.forked import forked_runs  # noqa: F401  a fixture
