"""Whether a step is given a part of a batch: by dp and ddp2, where a script's own Trainer asks for them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .arguments import entry
from .nodes import walk
from .options import Option, options
from .other_files import found_there

if TYPE_CHECKING:
    from .script import Facts

PARTS = ("dp", "ddp2")
PARTING = ("DataParallelStrategy", "DataParallelPlugin", "DDP2Strategy", "DDP2Plugin")
NAMED = ("strategy", "accelerator", "distributed_backend")
KEYWORDS = (*NAMED, "plugins")
NOT_A_MODE = ("gpu", "cpu", "tpu", "mps", "cuda", "auto", "hpu", "ipu")
SAID = re.compile(r"\b(dp|ddp2)\b")
DEEP = 5  # bases of bases


def asked_mode(facts: Facts) -> str | None:
    """The strategy that a Trainer of the file is given by name."""
    for call in _trainers(facts):
        for k in call.keywords:
            given = k.value.value if isinstance(k.value, ast.Constant) else None
            if k.arg in NAMED and isinstance(given, str) and given not in NOT_A_MODE:
                return given
    return None


def gives_parts(facts: Facts, c: ast.ClassDef) -> bool | None:
    """Whether the steps of a class that a Trainer runs may be given parts of a batch; None where that does not show.

    On ptmigrate's runtime every module may be run by `ptrun --strategy dp`. Lightning's modules are run by the
    script's Trainer: since Lightning 2 that has neither dp nor a method that would see the parts together.
    """
    if of_runtime(facts, c):
        return asked_mode(facts) in (None, *PARTS)
    there = (o.facts() for o in facts.others if "Trainer" in o.text)
    files = [facts, *(f for f in there if f is not None)]
    asked = [_asks(f, call) for f in files for call in _trainers(f)]
    if True in asked:
        return True
    return None if None in asked or not asked else False


def of_runtime(facts: Facts, c: ast.ClassDef, depth: int = 0) -> bool:
    """Whether a class derives from ptmigrate's Module, through bases of this file or of others, too."""
    for base in c.bases if depth < DEEP else ():
        if (facts.names.resolve(base) or "").startswith("ptmigrate."):
            return True
        own = [d for d in facts.walk(ast.ClassDef) if isinstance(base, ast.Name) and d.name == base.id and d is not c]
        if own and of_runtime(facts, own[0], depth + 1):
            return True
        there = found_there(facts, base) if not own else None
        if there is not None and isinstance(there[2], ast.ClassDef) and of_runtime(there[1], there[2], depth + 1):
            return True
    return False


def _trainers(facts: Facts) -> Iterator[ast.Call]:
    """`Trainer(...)` and `Trainer.from_argparse_args(...)`, of whatever package."""
    for call in facts.walk(ast.Call):
        f = call.func
        if isinstance(f, ast.Attribute) and f.attr == "from_argparse_args":
            f = f.value
        if (f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "")) == "Trainer":
            yield call


def _asks(facts: Facts, call: ast.Call) -> bool | None:
    """Whether a Trainer is asked for dp or ddp2; None where its arguments do not show it."""
    spread = any(k.arg is None for k in call.keywords) or ast.unparse(call.func).endswith(".from_argparse_args")
    said = [_names_parts(facts, v) for v in _given_as(facts, call)]
    if True in said:
        return True
    return None if None in said or (spread and not said) else False


def _given_as(facts: Facts, call: ast.Call) -> Iterator[ast.expr]:
    """What a Trainer is given as its strategy, by keyword or in a dictionary that is written down: `**options`."""
    for k in call.keywords:
        if k.arg in KEYWORDS:
            yield k.value
        if k.arg is not None:
            continue
        home = facts.scopes.scope_of(k.value).lookup(k.value.id) if isinstance(k.value, ast.Name) else None
        written = facts.devices.assigned(k.value.id, home) if home is not None else [k.value]  # type: ignore[attr-defined]
        for w in written or ():
            yield from (v for name in KEYWORDS if (v := entry(w, name)) is not None)


def _names_parts(facts: Facts, value: ast.expr) -> bool | None:
    """Whether a value is, or may be, one that stands for dp or ddp2; None where it does not show."""
    parts = [n for n in walk(value) if isinstance(n, (ast.Constant, ast.Name, ast.Attribute))]
    if any(isinstance(n, ast.Constant) and n.value in PARTS for n in parts):
        return True
    if any((n.attr if isinstance(n, ast.Attribute) else getattr(n, "id", "")) in PARTING for n in parts):
        return True
    if isinstance(value, (ast.Constant, ast.Call, ast.List, ast.Tuple)):
        return False
    if isinstance(value, ast.IfExp):
        branches = [_names_parts(facts, value.body), _names_parts(facts, value.orelse)]
        return None if None in branches else False
    if isinstance(value, ast.Attribute):
        found = [_option_names_parts(o) for o in options(facts) if o.name == value.attr]
        return found[0] if found else None
    if not isinstance(value, ast.Name):
        return None
    home = facts.scopes.scope_of(value).lookup(value.id)
    given = facts.devices.assigned(value.id, home) if home is not None else None
    plain = [v.value for v in given or () if isinstance(v, ast.Constant)]
    if any(v in PARTS for v in plain):
        return True
    return False if given and len(plain) == len(given) else None


def _option_names_parts(option: Option) -> bool | None:
    """By its default; None for one that may be given dp, by what is said of it."""
    if option.default in PARTS:
        return True
    said = [n.value for n in walk(option.call) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return None if any(SAID.search(text) for text in said) else False
