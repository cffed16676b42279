"""What torch's operations do to the dimension that counts the samples of a batch: tables, by name.

Functions and methods share their names; the places are those of a method's arguments (a function's are one further on).
Source: the signatures in https://docs.pytorch.org/docs/stable/torch.html and .../nn.functional.html
"""

from __future__ import annotations

import ast
import re

# along one dimension: where `dim` stands; these keep the shape
KEEPS_SHAPE = {
    "softmax": 0, "log_softmax": 0, "softmin": 0, "sort": 0, "argsort": 0, "cumsum": 0, "cumprod": 0, "cummax": 0,
    "cummin": 0, "logcumsumexp": 0, "flip": 0, "roll": 1, "normalize": 1, "diff": 1, "gumbel_softmax": 3,
    "unique_consecutive": 2, "unique": 3, "glu": 0, "unfold": 0, "gradient": 1, "trapz": 1, "trapezoid": 1,
    "cumulative_trapezoid": 1, "fft": 1, "ifft": 1, "rfft": 1, "irfft": 1, "hfft": 1, "ihfft": 1,
}  # fmt: skip
# along one dimension, or over everything where none is given
REDUCES = {
    "mean": 0, "sum": 0, "nanmean": 0, "nansum": 0, "std": 0, "var": 0, "prod": 0, "max": 0, "min": 0, "amax": 0,
    "amin": 0, "argmax": 0, "argmin": 0, "median": 0, "nanmedian": 0, "mode": 0, "logsumexp": 0, "norm": 1,
    "quantile": 1, "kthvalue": 1, "topk": 1, "all": 0, "any": 0, "count_nonzero": 0, "aminmax": 0, "vector_norm": 1,
    "std_mean": 0, "var_mean": 0, "nanquantile": 1,
}  # fmt: skip
# what gives a tuple, values and places or two measures: always, or along a dimension
PAIRED = {
    **dict.fromkeys("topk kthvalue mode sort cummax cummin".split(), "always"),
    **dict.fromkeys("max min median nanmedian aminmax std_mean var_mean".split(), "along"),
}
# these work along the last dimension where none is given
LAST_BY_DEFAULT = {"topk", "kthvalue", "mode"}
ORDERS = {"sort", "argsort", "msort"}
# a mean of the parts' means, or a sum of their sums, is that of the whole: not so with these
NOT_ADDED_UP = {
    "std", "var", "prod", "max", "min", "amax", "amin", "argmax", "argmin", "median", "nanmedian", "norm", "quantile",
    "vector_norm", "std_mean", "var_mean", "unique", "aminmax", "logsumexp", "nanquantile",
}  # fmt: skip
ALWAYS_MIXES = {
    "pdist", "cov", "corrcoef", "msort", "cartesian_prod", "combinations", "trace", "bincount", "histc", "dist",
    "meshgrid", "block_diag", "rot90", "fftn", "ifftn", "rfftn", "irfftn",
}  # fmt: skip
# what they give has a length that goes by the values
PICKS = {
    "masked_select", "nonzero", "unique", "unique_consecutive", "compress", "index_select", "pack_padded_sequence",
    "argwhere", "flatnonzero", "take", "narrow", "select",
}  # fmt: skip
ALONG = {"index_select", "narrow", "select"}  # of these along the dimension that is named
# along a dimension, by an index: of the samples themselves these take or add others' values
BY_INDEX = {"gather", "index_add", "index_copy", "index_reduce", "scatter_add", "scatter_reduce"}
# of matrices, each on its own: of the samples together where they are the rows of one
DECOMPOSED = set(
    "svd svdvals eig eigh eigvals eigvalsh matrix_rank matrix_norm slogdet logdet det qr pinv pinverse inv cond".split()
)
# what these make of a mean is not the mean of what they make of its parts
BENDS = set(
    "sqrt rsqrt exp exp2 expm1 log log2 log10 log1p pow square reciprocal sigmoid tanh logsigmoid softplus relu abs "
    "clamp clip clamp_min clamp_max".split()
)
# of several means, or of those and others, these take some: which, all samples together say
CHOOSES = set(
    "max min amax amin maximum minimum median nanmedian quantile topk kthvalue sort logsumexp softmax prod std "
    "var".split()
)
TIMES, OVER = {"mul", "multiply"}, {"div", "divide", "true_divide"}  # `*` and `/` by their names
ADDED_PRODUCTS = {"dot", "vdot"}
TRIANGLES = {"tril", "triu"}  # of the last two dimensions
SWAPS = {"transpose", "swapaxes", "swapdims", "movedim", "moveaxis"}
RANDOM_ORDERS = {
    "torch.randperm", "torch.randint", "torch.triu_indices", "torch.tril_indices", "numpy.random.permutation",
    "numpy.random.choice", "numpy.random.randint", "random.sample", "random.choices",
}  # fmt: skip
# of the samples, or of their numbers, these give pairs
PAIRS_UP = {
    "itertools.combinations", "itertools.permutations", "itertools.pairwise", "itertools.combinations_with_replacement",
}  # fmt: skip
SHUFFLES = {"random.shuffle", "numpy.random.shuffle"}
OTHER_ORDER = {"flip", "roll", "fliplr", "sort", "argsort"}  # of the numbers of the samples
SAME_ORDER = {"to", "cuda", "cpu", "long", "int", "detach", "numpy", "tolist", "clone", "contiguous", "type"}
AS_TENSORS = {"from_numpy", "as_tensor", "tensor", "LongTensor"}
ALIKE_ALONE = {"type_as", "to"}  # these take the type and the place of what they are given, and nothing else of it
PRODUCTS = {"mm", "matmul", "bmm", "addmm", "linear", "outer", "ger", "tensordot", "chain_matmul", "inner", "kron"}
ROWS = {"linear", "outer", "ger", "inner", "kron", "tensordot"}  # of these products each row meets each
PAIRS = {"cdist"}
JOINS = {"cat", "concat", "concatenate", "vstack", "row_stack"}
PARTS = {"chunk": 1, "split": 1, "tensor_split": 1, "unbind": 0}
SIZES = {"size", "dim", "numel", "nelement", "ndimension", "is_floating_point", "stride", "get_device", "new_zeros",
         "new_ones", "new_empty", "new_full", "new_tensor"}  # fmt: skip
TO_HOST = {"tolist", "numpy"}  # what dp does not put together
NO_VALUES = {"len", "isinstance", "hasattr", "print", "id", "type", "issubclass", "callable"}
SIZE_ATTRIBUTES = {"shape", "device", "dtype", "ndim", "is_cuda", "requires_grad", "layout", "training"}

# losses of torch itself: a mean or a sum over the samples, one number
LOSS = re.compile(r"loss|cross_entropy|nll|criterion|kl_div|objective|(^|_)(mse|bce|mae|l1|huber)($|_)", re.IGNORECASE)
# with reduction="none" these give a number per sample, but for dense targets, of which nobody asks the largest of a row
OF_A_SAMPLE = {"cross_entropy", "nll_loss", "CrossEntropyLoss", "NLLLoss"}
MEASURE = re.compile(r"metric|acc(uracy)?($|_)|auroc|f1|precision|recall|psnr|ssim|iou|dice", re.IGNORECASE)
# of packages: what these measure on parts has another mean than what they measure on the whole
MEASURES_ALL = re.compile(
    r"(sklearn\.metrics|torchmetrics\.functional)\.(.*\.)?\w*(f1|fbeta|precision|recall|auc|auroc|jaccard|matthews|kappa|r2|"
    r"pearson|spearman|kendall|concordance|explained|specificity|balanced|peak_signal|calibration|mutual_info|rand_score|"
    r"v_measure|silhouette|dice)"
)
PAIRWISE = re.compile(r"(sklearn\.metrics|torchmetrics\.functional)\.(.*\.)?pairwise_(?!accuracy)")
# losses that compare every sample of a batch with every other
CONTRASTIVE = re.compile(
    r"info_?nce|(^|_)nce($|_)|nt_?xent|sup_?con|contrastive|simclr|barlow|vic_?reg|clip_?loss|batch_?(hard|all)|multi_?similarity"
    r"|n_?pairs?_?loss|lifted_?struct|circle_?loss|triplets?_?miner|decorrelat|dino_?loss|swav|sinkhorn|"
    r"proxy_?(nca|anchor)|(^|_)mmd($|_)|coral_?loss|uniformity",
    re.IGNORECASE,
)
# of packages: these are about all samples together, whatever they are called
OF_THE_BATCH = re.compile(
    r"pytorch_metric_learning\.losses|lightly\.loss|segmentation_models_pytorch\.losses\.(Dice|Jaccard|Tversky|Lovasz|MCC)"
)
# solvers that choose their steps by the error of the whole batch, unless they are asked for steps of one size
ADAPTIVE = re.compile(r"torchdiffeq\.(\w+\.)*odeint\w*|torchcde\.(\w+\.)*cdeint|torchdyn\.(\w+\.)*odeint\w*")
OF_FIXED_STEPS = ("euler", "midpoint", "rk4", "heun2", "heun3", "explicit_adams", "implicit_adams", "fixed_adams")
# what mixes each sample with another of its batch
MIXUP = re.compile(r"(^|_)(mix_?up|cut_?mix)", re.IGNORECASE)
# what looks contrastive by its name and compares a sample with its own partners only
PER_SAMPLE_LOSS = {"torch.nn.TripletMarginLoss", "torch.nn.CosineEmbeddingLoss", "torch.nn.MarginRankingLoss"}


def brings_together(name: str) -> bool:
    """Whether a loss, by its full name, is about all samples together."""
    by_name = CONTRASTIVE.search(name.rpartition(".")[2]) is not None
    return by_name or OF_THE_BATCH.match(name) is not None or PAIRWISE.match(name) is not None


def steps_by_error(name: str, call: ast.Call) -> bool:
    """`odeint(field, x, t)` of dopri5, whose steps for a share of the batch are others than for the whole.

    https://github.com/rtqichen/torchdiffeq, "Choice of solver"
    """
    method = next((k.value for k in call.keywords if k.arg == "method"), None)
    fixed = isinstance(method, ast.Constant) and method.value in OF_FIXED_STEPS
    return ADAPTIVE.fullmatch(name) is not None and not fixed


def bends(name: str, kind: str) -> bool:
    """Whether what a function, by its full name, makes of a mean or of the samples is not the mean of the parts'."""
    if kind == "reduced":
        return name.rpartition(".")[2] in BENDS | CHOOSES
    return kind == "batch" and MEASURES_ALL.match(name) is not None
