"""PTM6xx: what newer versions of torch spell otherwise."""

RULES = (
    "variable",
    "volatile_argument",
    "async_argument",
    "data_zero",
    "size_average",
    "old_amp",
    "renamed_in_place",
    "implicit_softmax_dimension",
    "local_rank_argument",
    "next_of_iterator",
)
