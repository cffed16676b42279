"""Makes launching.py importable for the tests in the folders below."""
