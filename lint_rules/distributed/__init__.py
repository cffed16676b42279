"""PTM4xx: what is wrong, slow or hangs on more than one process."""

RULES = (
    "manual_sampler",
    "missing_set_epoch",
    "sampler_replaced",
    "shuffled_evaluation",
    "dropped_evaluation",
    "missing_sync_dist",
    "sync_dist_every_step",
    "log_on_some_ranks",
    "collective_on_some_ranks",
    "written_by_every_rank",
    "wrapped_state",
    "data_parallel",
    "unsynchronised_batch_norm",
    "random_split",
    "numpy_random_in_dataset",
    "unwaited_request",
    "hard_coded_address",
    "scaled_by_world",
)
