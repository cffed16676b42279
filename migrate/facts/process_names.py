"""The names under which scripts speak of processes: calls, variables of the environment, and what people call them."""

import re

D = "torch.distributed."
RANKS = {D + "get_rank", D + "get_node_local_rank"}
OF_A_NODE = re.compile("local", re.IGNORECASE)  # in the names of what tells the processes of one machine apart
WORLDS = {D + "get_world_size"}
LAUNCHED = {D + "is_initialized", D + "is_torchelastic_launched"}
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
