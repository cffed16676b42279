"""The codes of a report: each is a codemod's, or a place that wants a person.

A place that ptlint would still flag has the code of its rule.
"""

from __future__ import annotations

CODES = {
    "PTM101": ("remove-device-calls", "`.cuda()` and `.to(device)`: the runtime places modules and batches"),
    "PTM102": ("remove-unused-devices", "a device goes with its last use: variable, branch, parameter, argument"),
    "PTM104": ("place-like-inputs", "a tensor made in forward, a step or a helper goes where its inputs are"),
    "PTM105": ("register-buffers", "a tensor that a module keeps becomes a buffer, and a key of the state dict"),
    "PTM108": (
        "tensor-types",
        "types that name a device (torch.cuda.FloatTensor, set_default_tensor_type) become a dtype and a place",
    ),
    "PTM109": ("load-on-cpu", "a state is loaded on the CPU, and goes from there to its module"),
    "PTM112": ("ask-for-cuda", "what raises without CUDA is called where there is CUDA: torch.cuda.synchronize()"),
    "PTM113": ("cuda-demands", "a script that ends where there is no CUDA demands it no more"),
    "PTM114": (
        "back-on-cpu",
        "what the runtime places is brought to the CPU where it meets the CPU: `y.cpu().numpy()`",
    ),
    "PTM115": ("left-cuda", "a `.cuda()` that is left goes where there is CUDA, and stays on the CPU elsewhere"),
    "PTM201": ("name-lambdas", "a lambda that meets pickling becomes a named function"),
    "PTM202": ("name-local-functions", "a function made inside of another that meets pickling moves to the module"),
    "PTM301": ("item-in-hot-loop", "a total stays a tensor while it is summed; other `.item()` at every step are told"),
    "PTM303": ("cpu-in-hot-loop", "`.cpu()` right before `.item()` goes"),
    "PTM304": ("numpy-in-hot-loop", "told of: `.numpy()` at every step makes the host wait"),
    "PTM305": ("tolist-in-hot-loop", "told of: `.tolist()` at every step makes the host wait"),
    "PTM309": ("empty-cache", "torch.cuda.empty_cache() at every step goes"),
    "PTM401": (
        "remove-samplers",
        "DistributedSampler and set_epoch go, shuffle comes back: the runtime divides the batches",
    ),
    "PTM402": ("sync-logging", "what validation and test steps log is reduced over the processes"),
    "PTM410": ("rank-zero-output", "print and torch.save are done by rank 0 alone"),
    "PTM420": (
        "plain-process",
        "process groups, ranks, wrappers and hand reductions go: the runtime starts the processes",
    ),
    "PTM430": (
        "split-steps",
        "what a step does with the whole batch goes to training_step_end, which sees it on dp and ddp2 too",
    ),
    "PTM505": ("zeroed-gradients", "zero_grad() by hand in a step that a Trainer optimizes goes"),
    "PTM510": ("sharded-needs-zeros", "zero_grad(set_to_none=False) under FairScale's ShardedDataParallel"),
    "PTM520": (
        "checkpoint-activations",
        "activations are computed again in backward where that is asked for, batch norm counted once",
    ),
    "PTM601": ("remove-variables", "a tensor is its own Variable"),
    "PTM602": ("old-idioms", "size_average and reduce are reduction="),
    "PTM603": ("mend-async", "`async=` is non_blocking= or async_op="),
    "PTM604": ("data-zero", "`loss.data[0]` is `loss.item()`"),
    "PTM605": ("precision", "autocast in a step is the Trainer's precision=; elsewhere told of"),
    "PTM610": ("next-of-iterators", "`batches.next()` of what `iter(loader)` gave is `next(batches)`"),
    "PTM690": ("unread-imports", "what only removed lines read is imported no more"),
    "PTM700": ("lift-loop", "the training loop becomes a Module and a Trainer"),
    "PTM701": ("kept-loop", "the loop is not shown to be liftable, and is kept"),
    "PTM702": ("keep-loop", "a kept loop runs on Runtime: backward, optimizers and devices go through it"),
    "PTM706": ("own-draws", "told of: on several processes other random numbers are drawn than on one"),
    "PTM707": ("not-looked-through", "told of: the file is nested too deep for the rules that say what is left in it"),
    "PTM705": ("not-in-lightning", "with --framework lightning: what today's Lightning does not have"),
    "PTM704": (
        "refused",
        "what cannot be carried keeps its bytes: a script by the way that it is distributed, a module by its syntax",
    ),
    "PTM703": ("whole-batches", "a kept loop's data is not divided over processes"),
}


def all_codes() -> dict[str, tuple[str, str]]:
    """All that a report may have: those of the rules by which a result is looked through, too."""
    from ptmigrate.lint_rules.pages import summary

    from .left_over import rules

    return {**{r.code: (r.name, f"told of: {summary(r).rstrip('.')}") for r in rules()}, **CODES}
