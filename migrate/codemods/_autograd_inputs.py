"""What a function of torch.autograd is given: gradients are tensors, and so is the one thing that `forward` gets."""

from __future__ import annotations

import ast

from ..facts.script import Facts

FUNCTION = "torch.autograd.Function"


def autograd_input(facts: Facts, f: ast.FunctionDef) -> str | None:
    """The x of `forward(ctx, x)`, and the first gradient of `backward(ctx, grad, *others)`."""
    holder = facts.classes.holder(f)
    if holder is None or not any(facts.names.resolve(b) == FUNCTION for b in holder.bases):
        return None
    given = [a.arg for a in (*f.args.posonlyargs, *f.args.args)][1:]
    alone = f.name == "forward" and len(given) == 1 and not f.args.defaults
    return given[0] if given and (alone or f.name == "backward") else None
