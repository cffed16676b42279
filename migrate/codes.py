"""The codes of a report: each is a codemod's, or a place that wants a person."""

CODES = {
    "PTM101": ("remove-device-calls", "`.cuda()` and `.to(device)`: the runtime places modules and batches"),
    "PTM102": ("remove-unused-devices", "a device goes with its last use: variable, branch, parameter, argument"),
    "PTM410": ("rank-zero-output", "print and torch.save are done by rank 0 alone"),
    "PTM700": ("lift-loop", "the training loop becomes a Module and a Trainer"),
    "PTM701": ("kept-loop", "the loop is not shown to be liftable, and is kept"),
    "PTM702": ("keep-loop", "a kept loop runs on Runtime: backward, optimizers and devices go through it"),
    "PTM703": ("whole-batches", "a kept loop's data is not divided over processes"),
}
