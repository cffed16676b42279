"""ptlint: what breaks or slows distributed training, found from `ast` alone."""
