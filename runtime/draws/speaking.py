"""What the code of a user's methods speaks of, that of what they call by name with it: may it draw random numbers?"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Set
from functools import partial
from types import FunctionType, ModuleType
from typing import Any

import torch

from ..stopping import codes_of
from .tensors import FACTORIES, IN_PLACE, OF_TENSORS, UNEVEN

DRAWS = {
    *(*FACTORIES, *IN_PLACE, *OF_TENSORS, *UNEVEN, "randperm", "gumbel_softmax", "rrelu"),
    *("sample", "rsample"),  # of distributions
    *("random", "choice", "choices", "shuffle", "permutation", "uniform", "gauss", "standard_normal"),
} - {"native_dropout"}
FOREIGN = ("torch", "numpy", "builtins", __name__.rpartition(".")[0].rpartition(".")[0])


def may_draw(module: torch.nn.Module, roots: Iterable[str]) -> bool:
    """`roots`: names of methods, of the module or its parts. What is called in another way than by name is not seen."""
    return speaks_of(DRAWS, held_by(module), roots)


# of torchvision, beside those that begin with Random; https://docs.pytorch.org/vision/stable/transforms.html
AUGMENTS = {
    *("ColorJitter", "AutoAugment", "RandAugment", "TrivialAugmentWide", "AugMix", "ElasticTransform", "GaussianBlur"),
    *("GaussianNoise", "ScaleJitter", "MixUp", "CutMix", "JPEG"),
}
MOST = 2000  # objects that are looked at


def data_may_draw(data: Any) -> bool:
    """Whether a data set, or a collate_fn, may draw as it loads samples: by its code, or a transform that it keeps."""
    held = list(itertools.islice(_reached(data), MOST))
    if any(_augments(type(value)) for value in held):
        return True
    functions = [function for value in held for function in _plain(value) if not _foreign(function)]
    return speaks_of(DRAWS, held, ("__getitem__", "__getitems__", "__call__", "forward", "transform"), functions)


def _augments(kind: type) -> bool:
    of_transforms = kind.__module__.startswith("torchvision.transforms")
    return of_transforms and (kind.__name__.startswith("Random") or kind.__name__ in AUGMENTS)


def _reached(value: Any) -> Iterator[Any]:
    """An object, and what it holds as attributes and in containers, of any depth; of functions what they close over."""
    waiting, seen = [value], set[int]()
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, (str, bytes, int, float, torch.Tensor, type, ModuleType)):
            continue
        seen.add(id(value))
        if isinstance(value, (list, tuple, set, frozenset)):
            waiting += itertools.islice(value, 100)
        elif isinstance(value, dict):
            waiting += itertools.islice(value.values(), 100)
        else:
            yield value
            waiting += getattr(value, "__dict__", {}).values()
            waiting += getattr(value, "__self__", None), getattr(value, "func", None), getattr(value, "args", None)
            waiting += [cell.cell_contents for cell in getattr(value, "__closure__", None) or () if _is_set(cell)]


def _is_set(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def held_by(module: torch.nn.Module) -> list[Any]:
    """The parts of a module, and what these keep as attributes."""
    return [value for part in module.modules() for value in (part, *vars(part).values())]


def speaks_of(
    words: Set[str], held: Iterable[Any], roots: Iterable[str], functions: Iterable[FunctionType] = ()
) -> bool:
    """Whether the code of methods of these objects or of `functions`, and of what they call by name, has one of the
    words as a name.
    """
    methods = _methods(held)
    waiting, seen = [*functions, *(function for name in roots for function in methods.get(name, ()))], set()
    while waiting:
        function = waiting.pop()
        if function in seen:
            continue
        seen.add(function)
        names = {name for code in codes_of(function.__code__) for name in code.co_names}
        if not names.isdisjoint(words):
            return True
        for name in names:
            waiting += methods.get(name, ())
            waiting += _functions_of(function.__globals__.get(name), names)
    return False


def _methods(held: Iterable[Any]) -> dict[str, list[FunctionType]]:
    """The methods of the objects' own classes, those of the user."""
    classes = {cls for value in held for cls in type(value).__mro__ if not _foreign(cls)}
    methods: dict[str, list[FunctionType]] = {}
    for cls in classes:
        for name, member in vars(cls).items():
            methods.setdefault(name, []).extend(_plain(member))
    return methods


def _functions_of(value: Any, names: Iterable[str]) -> list[FunctionType]:
    """What a global name stands for: a function; of a class or a file the functions of these names."""
    if isinstance(value, (ModuleType, type)) and not _foreign(value):
        return [function for name in names for function in _plain(getattr(value, name, None))]
    return [function for function in _plain(value) if not _foreign(function)]


def _plain(member: Any) -> Iterator[FunctionType]:
    if isinstance(member, partial):
        member = member.func
    for found in (getattr(member, "__func__", member), getattr(member, "fget", None)):
        wrapped = getattr(found, "__wrapped__", None)
        for function in (found, wrapped):
            if isinstance(function, FunctionType):
                yield function


def _foreign(value: Any) -> bool:
    home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None) or ""
    return home.split(".")[0] in FOREIGN or home.startswith(FOREIGN)
