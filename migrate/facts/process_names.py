"""The names under which scripts speak of processes: calls, variables of the environment, and what people call them."""

import re

D, H = "torch.distributed.", "horovod.torch."
RANKS = {D + "get_rank", D + "get_node_local_rank", H + "rank", H + "local_rank", H + "cross_rank"}
OF_A_NODE = re.compile("local", re.IGNORECASE)  # in the names of what tells the processes of one machine apart
WORLDS = {D + "get_world_size", H + "size", H + "local_size", H + "cross_size"}
# what a plain script says no to; of what Horovod was built with it is asked for such a script's sake alone
BUILT = {H + n for n in ("nccl_built", "mpi_built", "gloo_built", "ccl_built", "ddl_built", "cuda_built", "rocm_built",
                         "mpi_enabled", "gloo_enabled", "mpi_threads_supported")}  # fmt: skip
CARDS = ("torch.cuda.device_count", "torch.accelerator.device_count")
LAUNCHED = {D + "is_initialized", D + "is_torchelastic_launched", H + "is_initialized"} | BUILT
# by whom a process is launched: torch's launchers, MPI, Slurm
RANK_VARIABLES = {"RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK", "SLURM_PROCID", "SLURM_LOCALID",
                  "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"}  # fmt: skip
WORLD_VARIABLES = {"WORLD_SIZE", "LOCAL_WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE"}
RANK_NAME = re.compile(
    r"_?((local|global|world|proc|process|node|dist|ddp|my|cur|current|this)_?)*rank\Z", re.IGNORECASE
)
WORLD_NAME = re.compile(
    r"_?(ddp_|dist_)?(world_?size|n_?procs?|num_procs|n_?gpus?(_?per_?node)?|num_?gpus(_?per_?node)?|gpus(_?per_?node)?)\Z",
    re.IGNORECASE,
)
FLAG_NAME = re.compile(
    r"_?((use|is|enable|run|multiprocessing|mp)_?)?(ddp|distributed|dist|multiprocessing_distributed)\Z", re.IGNORECASE
)
