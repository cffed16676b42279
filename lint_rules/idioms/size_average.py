"""PTM602: size_average and reduce have been one option, reduction, since torch 0.4.1."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edits import Repair, replaced
from ..file import File, keyword, last_part
from ..rule import Finding, Rule

LOSSES = (
    "L1Loss", "MSELoss", "NLLLoss", "NLLLoss2d", "CrossEntropyLoss", "BCELoss", "BCEWithLogitsLoss", "KLDivLoss",
    "SmoothL1Loss", "HuberLoss", "PoissonNLLLoss", "SoftMarginLoss", "MultiLabelMarginLoss", "MultiMarginLoss",
    "HingeEmbeddingLoss", "MarginRankingLoss", "CosineEmbeddingLoss", "TripletMarginLoss", "MultiLabelSoftMarginLoss",
    "l1_loss", "mse_loss", "nll_loss", "cross_entropy", "binary_cross_entropy", "binary_cross_entropy_with_logits",
    "kl_div", "smooth_l1_loss", "huber_loss", "poisson_nll_loss", "soft_margin_loss", "triplet_margin_loss",
    "margin_ranking_loss", "cosine_embedding_loss",
)  # fmt: skip


class SizeAverage(Rule):
    code = "PTM602"
    name = "size-average"
    why = (
        "`size_average` and `reduce` are deprecated. Whether a loss is a sum or a mean decides how the gradients of "
        "several processes are weighted; `reduction=` says it in one word."
    )
    fix = "safe"
    settled_by = "old_idioms"
    calls = LOSSES

    BAD = """
        import torch.nn.functional as F
        loss = F.binary_cross_entropy(x, y, size_average=False)
        """
    GOOD = """
        import torch.nn.functional as F
        loss = F.binary_cross_entropy(x, y, reduction="sum")
        """

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        average, reduce = keyword(call, "size_average"), keyword(call, "reduce")
        if average is None and reduce is None:
            average = _by_position(call)
        if (average is None and reduce is None) or not (file.resolve(call.func) or "").startswith("torch.nn."):
            return
        if any(isinstance(v, ast.Name) for v in (average, reduce)):
            return  # a wrapper that hands on what it was given
        given = "size_average" if average is not None else "reduce"
        text = f"`{given}` is deprecated; use reduction={_reduction(average, reduce)}"
        yield self.finding(call, text, file, _as_keyword(call, average))


def _as_keyword(call: ast.Call, average: ast.expr | None) -> Repair | None:
    """The positional form, which the codemod leaves."""
    if average is None or not call.args or average is not call.args[-1]:
        return None
    return replaced(average, f"reduction={_reduction(average, None)}")


def _reduction(average: ast.expr | None, reduce: ast.expr | None) -> str:
    if isinstance(reduce, ast.Constant) and reduce.value is False:
        return '"none"'
    if isinstance(average, ast.Constant):
        return '"mean"' if average.value in (True, None) else '"sum"'
    return '"mean"' if average is None and isinstance(reduce, ast.Constant) else '"mean" or "sum"'


def _by_position(call: ast.Call) -> ast.expr | None:
    """`nn.CrossEntropyLoss(weight, False)`: a truth value by position is size_average, where nothing else is one."""
    if last_part(call.func) in ("PoissonNLLLoss", "poisson_nll_loss"):
        return None
    return next((a for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, bool)), None)
