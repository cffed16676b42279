"""PTM5xx: how quickly data arrives, and what is wasted at every step."""

RULES = ("no_workers", "workers_under_spawn", "no_pin_memory", "blocking_copy", "zeroed_gradients")
