"""PTM3xx: what makes the host wait for the device at every step."""

RULES = (
    "item_in_hot_loop",
    "now_and_then",
    "cpu_in_hot_loop",
    "numpy_in_hot_loop",
    "tolist_in_hot_loop",
    "number_of_tensor",
    "branch_on_tensor",
    "print_of_tensor",
    "empty_cache",
    "synchronize",
    "total_keeps_graph",
)
