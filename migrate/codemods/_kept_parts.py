"""Parts of a batch that a list keeps: tensors, or the names of files, which no device has."""

from __future__ import annotations

import ast
import re
from typing import Any

from ..facts.script import Facts
from ..facts.tensor_methods import METHODS
from ._left_beyond import JOINS
from ._lengths import is_tensor

OF_TENSORS = re.compile(r"\bTensorDataset\(|torchvision\.datasets|torchvision import [^#\n]*\bdatasets\b")
OF_ANY = {f"numpy.{n}" for n in "array asarray asanyarray append concatenate hstack unique isin save".split()}
OWN_DATA = re.compile(r"\bdef __getitem__\b|\bcollate_fn\b")


def is_surely_tensor(facts: Facts, part: ast.expr, held: ast.expr) -> bool:
    """Whether a part shows itself to be a tensor, by what is asked of it or of what keeps it, or by the data."""
    ups = (up for up in facts.scopes.ancestors(part) if isinstance(up, ast.Call))
    joined = any(facts.names.resolve(up.func) in JOINS for up in ups)
    if joined or is_tensor(facts, part) or _is_read_as_tensor(facts, held):
        return True
    text = facts.text.text
    return not facts.others and OF_TENSORS.search(text) is not None and OWN_DATA.search(text) is None


def may_be_texts(facts: Facts, call: ast.Call, given: ast.expr) -> bool:
    """`np.array(names)`, of a part of a batch that shows itself to be nothing: arrays may be of texts."""
    return facts.names.resolve(call.func) in OF_ANY and not is_surely_tensor(facts, given, given)


def _is_read_as_tensor(facts: Facts, held: ast.expr) -> bool:
    """`torch.cat(labels)`, `(guesses == labels).sum()` of what keeps it."""
    scope = facts.scopes.scope_of(held).lookup(held.id) if isinstance(held, ast.Name) else None
    reads: list[ast.Name] | list[ast.Attribute] = list(facts.attributes.get(getattr(held, "attr", ""), ()))
    if scope is not None and isinstance(held, ast.Name):
        reads = list(facts.scopes.reads(held.id, scope))
    for read in reads:
        up = facts.scopes.parents.get(read)
        up = facts.scopes.parents.get(up) if isinstance(up, (ast.Tuple, ast.List)) else up
        if isinstance(up, ast.Call) and facts.names.resolve(up.func) in JOINS:
            return True
        asked = facts.scopes.parents.get(up) if isinstance(up, (ast.Compare, ast.BinOp)) else None
        if isinstance(asked, ast.Attribute) and asked.attr in METHODS:
            return True
    return False


def if_tensor(torch: str) -> Any:
    """`names.cpu() if torch.is_tensor(names) else names`"""

    def rewritten(original: Any, updated: Any) -> Any:
        import libcst as cst

        return cst.IfExp(
            test=cst.parse_expression(f"{torch}.is_tensor(x)").with_changes(args=[cst.Arg(updated)]),
            body=cst.Call(cst.Attribute(updated.deep_clone(), cst.Name("cpu"))),
            orelse=updated.deep_clone(),
        )

    return rewritten
