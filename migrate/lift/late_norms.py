"""Batch norm that a network makes when it is first called: the layers of a model are synchronised before that."""

from __future__ import annotations

import ast

from ..facts.nodes import walk
from ..facts.script import Facts
from .recipe import CannotLift


def late_norms(facts: Facts) -> CannotLift | None:
    """Why the step needs whole batches: `self.bn = nn.BatchNorm1d(h.size(1))` in forward(), here or there."""
    here = [facts] if "BatchNorm" in facts.text.text else []
    there = [home for o in facts.others if "BatchNorm" in o.text and (home := o.facts()) is not None]
    for home in (*here, *there):
        for c in home.classes.modules:
            f = home.classes.methods(c).get("forward") if isinstance(c, ast.ClassDef) else None
            for call in walk(f, ast.Call) if f is not None else ():
                if (home.names.resolve(call.func) or "").startswith("torch.nn.BatchNorm"):
                    says = f"`{home.short(call)}` is made in forward(), where nothing synchronises it any more"
                    return CannotLift(call if home is facts else facts.tree.body[0], says)
    return None
