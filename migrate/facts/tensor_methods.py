"""The methods of tensors and the functions of torch whose result is one tensor where they are given one."""

from __future__ import annotations

import ast

# methods of a tensor whose result is one tensor, whatever their arguments
METHODS = set(
    """
    abs abs_ absolute acos acosh add add_ addbmm addcdiv addcdiv_ addcmul addcmul_ addmm addmm_ addmv addr adjoint all
    amax amin angle any arccos arcsin arctan arctan2 argmax argmin argsort argwhere asin asinh atan atan2 atanh baddbmm
    bernoulli bernoulli_ bfloat16 bincount bitwise_and bitwise_not bitwise_or bitwise_xor bmm bool broadcast_to byte
    ceil ceil_ clamp clamp_ clamp_max clamp_max_ clamp_min clamp_min_ clip clip_ clone conj contiguous copy_ copysign
    corrcoef cos cos_ cosh count_nonzero cov cpu cross cuda cumprod cumsum deg2rad det detach detach_ diag diag_embed
    diagflat diagonal diff digamma dist div div_ divide divide_ dot double eq erf erfc erfinv exp exp2 exp_ expand
    expand_as expm1 expm1_ exponential_ fill_ fill_diagonal_ flatten flip fliplr flipud float float_power floor floor_
    floor_divide floor_divide_ fmax fmin fmod fmod_ frac gather ge ger greater greater_equal gt half heaviside histc
    hypot index_add_ index_copy index_copy_ index_fill index_fill_ index_put index_put_ index_reduce index_select inner
    int inverse isclose isfinite isinf isnan istft kron le lerp lerp_ less less_equal lgamma log log10 log1p log1p_
    log2 log_ log_normal_ log_softmax logaddexp logcumsumexp logdet logical_and logical_not logical_or logical_xor
    logit logsumexp long lt masked_fill masked_fill_ masked_scatter masked_scatter_ masked_select matmul matrix_exp
    matrix_power maximum mean minimum mm moveaxis movedim msort mul mul_ multiply multiply_ mv nan_to_num nan_to_num_
    nanmean nanquantile nansum ne neg neg_ negative norm normal_ not_equal outer permute pinverse pow pow_ prelu prod
    quantile rad2deg random_ ravel reciprocal reciprocal_ relu relu_ remainder remainder_ renorm renorm_ repeat
    repeat_interleave reshape reshape_as roll rot90 round round_ rsqrt rsqrt_ scatter scatter_ scatter_add scatter_add_
    scatter_reduce scatter_reduce_ sgn short sigmoid sigmoid_ sign sin sin_ sinc sinh softmax sqrt sqrt_ square square_
    squeeze squeeze_ std stft sub sub_ subtract subtract_ sum sum_to_size swapaxes swapdims t t_ take take_along_dim
    tan tanh tanh_ tile to trace transpose transpose_ tril tril_ triu triu_ true_divide true_divide_ trunc trunc_ type
    type_as unflatten unfold uniform_ unsqueeze unsqueeze_ var vdot view view_as where xlogy zero_
""".split()
)
# these give one tensor without arguments, and a pair with a dimension
ONE_WITHOUT_ARGUMENTS = {"max", "min", "median", "mode"}
FUNCTIONS = METHODS | set(
    """
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d affine_grid avg_pool1d avg_pool2d avg_pool3d batch_norm
    bilinear block_diag bucketize cartesian_prod cat cdist column_stack combinations complex concat conv1d conv2d
    conv3d conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity dropout dstack einsum elu embedding fft
    fft2 fftn fftshift gelu glu grid_sample group_norm hardswish hardtanh hstack ifft ifft2 ifftn ifftshift
    instance_norm interpolate inv irfft irfft2 isin layer_norm leaky_relu linear logsigmoid mish multi_dot normalize
    one_hot pad pairwise_distance pdist pixel_shuffle pixel_unshuffle polar rfft rfft2 rms_norm row_stack
    scaled_dot_product_attention searchsorted selu silu softmin softplus stack tensordot threshold trapezoid trapz
    vander view_as_complex view_as_real vstack
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
