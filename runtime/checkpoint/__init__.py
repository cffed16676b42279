"""Checkpoints: whole or absent, checked when read, resumable in the middle of an epoch."""
