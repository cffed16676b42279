"""The methods of tensors and the functions of torch whose result is one tensor where they are given one."""

from __future__ import annotations

import ast

# methods of a tensor whose result is one tensor, whatever their arguments
METHODS = set(
    """
    abs acos add addmm all any argmax argmin argsort asin atan bfloat16 bitwise_and bitwise_not bmm bool byte ceil clamp
    clip clone contiguous copy_ cos cosh cpu cuda cumprod cumsum detach diag diagonal diff div dot double eq erf exp
    expand expand_as expm1 fill_ flatten flip float floor fmod gather ge gt half index_select int inverse isnan le lerp
    log log10 log1p log2 log_softmax logical_not long lt masked_fill masked_fill_ matmul mean mm movedim mul mul_ ne neg
    norm normal_ outer permute pow prod reciprocal remainder repeat repeat_interleave reshape roll rot90 round rsqrt
    scatter scatter_ short sigmoid sign sin sinh softmax sqrt square squeeze std sub sum swapaxes t tan tanh tile to
    transpose tril triu trunc type type_as unflatten unfold uniform_ unsqueeze var view view_as where zero_
    clamp_ add_ sub_ div_ exp_ bernoulli_ random_ clamp_min clamp_max floor_divide true_divide maximum minimum cross
""".split()
)
# these give one tensor without arguments, and a pair with a dimension
ONE_WITHOUT_ARGUMENTS = {"max", "min", "median", "mode"}
FUNCTIONS = METHODS | set(
    """
    cat stack hstack vstack concat block_diag einsum kron normalize pad one_hot interpolate relu gelu softplus cdist ger
    nan_to_num searchsorted bincount linear conv2d
""".split()
)
VIEWS = {"T", "mT", "H", "data", "real", "imag"}
# methods whose result may be the tensor itself, or shares its memory
VIEW_METHODS = set(
    """
    detach view view_as reshape flatten unflatten squeeze unsqueeze t transpose permute swapaxes expand expand_as
    contiguous narrow select unbind chunk split float double half to type type_as cpu cuda requires_grad_
""".split()
)
# methods of a tensor that give several, or whose result another is to decide
OTHERS = {
    "chunk",
    "split",
    "tensor_split",
    "topk",
    "kthvalue",
    "narrow",
    "select",
    "unbind",
    "index_add",
    "multinomial",
}


def root(node: ast.expr) -> ast.Name | None:
    """The x of `x[0].float().unsqueeze(0)`; None where it is no name, or a method may give something else."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
            node = node.func.value
        elif isinstance(node, ast.Subscript):
            node = node.value
        else:
            return None
    return node
