"""PTM2xx: what cannot be handed to another process."""

RULES = (
    "unpicklable_lambda",
    "local_function",
    "class_under_guard",
    "open_file",
    "lock_in_state",
    "generator_in_state",
    "missing_main_guard",
    "local_class",
)
