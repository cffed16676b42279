"""What an engine needs and what it refuses, said before anything starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import ConfigurationError
from ..installed import installed

if TYPE_CHECKING:
    from ..module import Module
    from ..trainer import Trainer

# What a run may ask of an engine; a strategy's `refuses` has some of these with the reason.
FEATURES = {
    "fit": "fit",
    "validate": "validate",
    "test": "test",
    "predict": "predict",
    "resume": "resuming from a checkpoint",
    "clip": "gradient clipping",
    "clip_value": "gradient clipping by value",
    "accumulate": "accumulating gradients",
    "bf16": "precision bf16",
    "16": "precision 16",
    "64": "precision 64",
    "manual": "manual optimization",
    "optimizers": "several optimizers",
    "closure": "an optimizer that needs a closure",
    "shapes": "an optimizer that looks at whole parameters",
    "overlap": "a parameter in two optimizers",
    "sparse": "sparse gradients",
    "global_batch": "--global-batch",
    "kept": "a loop that is kept (Runtime)",
    "cpu": "CPU processes",
    "nodes": "several nodes",
}

# Optimizers, torch's and others', that do not treat the numbers of a parameter one by one.
OF_SHAPES = {"Adafactor", "Muon", "LAMB", "Lamb", "LARS", "Lars", "Shampoo", "SOAP", "NovoGrad"}


class Package(NamedTuple):
    """A package that an engine needs: the name it is imported by, and how to install it."""

    module: str
    install: str


def require(name: str, packages: Iterable[Package]) -> None:
    """Raise ConfigurationError for the first package that is not installed, with what to do."""
    for package in packages:
        if not installed(package.module):
            raise ConfigurationError(
                f"strategy {name!r} needs {package.module}, which is not installed; {package.install}"
            )


def refuse(name: str, refuses: Mapping[str, str], features: Mapping[str, bool]) -> None:
    """Raise ConfigurationError for the first feature that is asked for and refused."""
    for feature, reason in refuses.items():
        if features.get(feature):
            raise ConfigurationError(f"strategy {name!r} cannot do {FEATURES[feature]}: {reason}")


def features_of(trainer: Trainer, module: Module, stage: str, resumes: bool) -> dict[str, bool]:
    """What this run asks for, as far as it is known before it starts."""
    runtime: Any = trainer.runtime
    features = {
        stage: True,
        "resume": resumes and stage == "fit",
        "global_batch": runtime.global_batch,
        "cpu": runtime.on_cpu,
        "nodes": runtime.settings.nodes > 1,
        **{kind: runtime.precision.name.split("-")[0] == kind for kind in ("16", "bf16", "64")},
    }
    if stage == "fit":
        features |= {
            "clip": bool(trainer.gradient_clip_val),
            "clip_value": bool(trainer.gradient_clip_val) and trainer.gradient_clip_algorithm == "value",
            "accumulate": any(batches > 1 for batches in trainer.accumulation_table.values()),
            "manual": not module.automatic_optimization,
            "sparse": any(getattr(p, "sparse", False) for p in module.modules() if isinstance(p, embeddings())),
        }
    return features


def embeddings() -> tuple[type, ...]:
    """The layers that can be asked for sparse gradients."""
    from torch.nn import Embedding, EmbeddingBag

    return Embedding, EmbeddingBag


def features_of_optimizers(optimizers: list[Any], closure: bool) -> dict[str, bool]:
    """What these ask for, known when configure_optimizers has made them; `closure`: one of them needs it."""
    parameters = [{id(p) for group in optimizer.param_groups for p in group["params"]} for optimizer in optimizers]
    return {
        "optimizers": len(optimizers) > 1,
        "closure": closure,
        "overlap": sum(map(len, parameters)) > len(set().union(*parameters)),
        "shapes": any(cls.__name__ in OF_SHAPES for optimizer in optimizers for cls in type(optimizer).__mro__),
    }
