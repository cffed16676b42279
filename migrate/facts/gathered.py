"""What a process that is alone gathers from its peers: what it has itself."""

from .process_names import D, H

# what a gathering statement is among one process: its result's place, and what goes there
ALONE = {
    D + "all_gather": ("tensor_list", 0, "tensor", 1, "{0}[0].copy_({1})"),
    D + "all_gather_into_tensor": ("output_tensor", 0, "input_tensor", 1, "{0}.copy_({1})"),
    D + "all_gather_object": ("object_list", 0, "obj", 1, "{0}[0] = {1}"),
    D + "gather": ("gather_list", 1, "tensor", 0, "{0}[0].copy_({1})"),
    D + "gather_object": ("object_gather_list", 1, "obj", 0, "{0}[0] = {1}"),
    D + "scatter": ("tensor", 0, "scatter_list", 1, "{0}.copy_({1}[0])"),
    D + "reduce_scatter": ("output", 0, "input_list", 1, "{0}.copy_({1}[0])"),
}
TO_ONE = (D + "gather", D + "gather_object")
# those that give their result back, gradients and all
ALONE_VALUES = {D + f"{m}{n}": new for m in ("nn.", "nn.functional.")
                for n, new in (("all_gather", "({0},)"), ("all_reduce", "{0}"), ("broadcast", "{0}"))}  # fmt: skip
# Horovod's, each of which takes a tensor, or an object, and a name: https://horovod.readthedocs.io/en/stable/api.html
ALONE_VALUES |= {H + n + asynchronous + in_place: "{0}"
                 for n in ("allreduce", "grouped_allreduce", "broadcast", "allgather", "grouped_allgather")
                 for asynchronous in ("", "_async") for in_place in ("", "_")}  # fmt: skip
ALONE_VALUES |= {H + n: "{0}" for n in ("broadcast_object", "synchronize", "sparse_allreduce_async")}
ALONE_VALUES[H + "allgather_object"] = "[{0}]"
