"""How a lifted module takes its batches and its loss, where it is not the usual way; and what is told of it."""

from __future__ import annotations

import ast

from ..facts.loops import last_part
from ..facts.nodes import walk
from ..facts.script import Facts
from ..report import Note
from .collected import Collected
from .draws import draws_in_evaluation
from .lasting import Lasting
from .loaders import is_loader
from .printed import shows_its_part
from .recipe import CannotLift, Recipe
from .same_numbers import running_names

CODE = "PTM703"
WITH_NORMS = ("BatchNorm", "torchvision.models", "import models", "timm", "torch.hub")


def settings_of(
    facts: Facts,
    recipe: Recipe,
    collected: Collected,
    lasting: Lasting,
    parts: list[ast.Call],
    sums: tuple[str, ...],
    reduction: str,
) -> tuple[list[str], list[Note]]:
    """The class's settings, as lines, and the notes that say why. `sums`: attributes that add up what samples
    have; `parts`: calls of the step that show what a process has of its batch.
    """
    lines: list[str] = []
    told: list[tuple[CannotLift, str]] = []
    if recipe.whole is not None:
        lines.append("divide_batches = False")
        told.append((recipe.whole, "every process computes every training batch whole"))
    else:
        if sums and facts.ours:
            quoted = "".join(f'"{name}", ' for name in sums).strip()
            lines.append(f"sample_sums = ({quoted if len(sums) == 1 else quoted.rstrip(',')})")
        if reduction == "sum":
            lines.append('loss_reduction = "sum"')
        if recipe.decided_late:
            lines.append('divide_batches = "loaders"')
        elif facts.ours and running_names(facts, recipe.train):
            lines.append('divide_batches = "processes"')  # dp would run the step, and count the batch, once a device
        told += _of_shares(facts, recipe, collected)
        for call in parts:
            where = CannotLift(call, "on several processes that is its share of the batch")
            told.append((where, f"`{facts.short(call)}` shows what the process sees"))
        for name, at in [*lasting.parts.items(), *collected.left.items()]:
            where = CannotLift(at, "on several processes it is read after the batches as the process has it")
            told.append((where, f"`{name}` holds the process's part of the last batch"))
        if recipe.whole_evaluation is not None:
            lines.append("divide_validation = False")
            told.append((recipe.whole_evaluation, "every process evaluates every batch"))
        elif facts.ours and recipe.evaluate is not None and draws_in_evaluation(facts, recipe.evaluate) is not None:
            lines.append("validation_draws = True")
        for call in shows_its_part(facts, recipe):
            where = CannotLift(call, "on several processes those are its own batches of the evaluation")
            told.append((where, f"`{facts.short(call)}` shows what the process sees"))
    kept = recipe.unlifted or _in_one_expression(facts, recipe)
    if kept is not None and not _of_rank_zero(facts, kept):
        told.append((kept, "the evaluation stays as it is written, and every process runs all of it"))
    return lines, [_note(facts, recipe, why, says) for why, says in told]


def _of_rank_zero(facts: Facts, kept: CannotLift) -> bool:
    """Whether it stands below `if is_global_zero():`, so that rank 0 alone comes there, which is told already."""
    around = facts.scopes.ancestors(kept.node) if kept.node is not None else ()
    tests = (c for up in around if isinstance(up, ast.If) for c in walk(up.test, ast.Call))
    return any(last_part(c.func) == "is_global_zero" for c in tests)


def _in_one_expression(facts: Facts, recipe: Recipe) -> CannotLift | None:
    """`torch.cat([model(x) for x, _ in loader])` in an epoch."""
    for part in walk(recipe.epoch_loop, ast.comprehension):
        if is_loader(facts, part.iter):
            return CannotLift(part.iter, f"`{facts.short(part.iter)}` is gone through in an expression")
    return None


def _of_shares(facts: Facts, recipe: Recipe, collected: Collected) -> list[tuple[CannotLift, str]]:
    """What is to be known where ranks hold shares of the batches."""
    told = []
    if recipe.decided_late:
        where = CannotLift(recipe.train.loop, f"`{facts.short(recipe.train.loader)}` comes from elsewhere")
        told.append((where, "only if it is a DataLoader are its batches divided over processes"))
    for name, call in collected.shown.items():
        where = CannotLift(call, "on several processes that is its share of each batch")
        told.append((where, f"`{name}` holds what the process sees"))
    for added, kind in recipe.taken_for.items():
        where = CannotLift(added, "that is not shown")
        says = f"`{facts.short(added)}` is brought together as a {kind} over the samples of the batch"
        told.append((where, says))
    norm = _batch_norm(facts) if facts.sync_batchnorm != "True" else None
    if norm is not None:
        where = CannotLift(norm, "on several processes without --global-batch that is not one process's")
        told.append((where, "batch norm measures a share"))
    if recipe.signed is not None and (norm is not None or _may_have_norms(facts)):
        where = CannotLift(recipe.signed, "have a batch size that the processes divide, and drop_last")
        says = "under batch norm, its sign is one process's where the processes' shares are of one size"
        told.append((where, f"`{facts.short(recipe.signed)}`: {says}"))
    return told


def _may_have_norms(facts: Facts) -> bool:
    """Whether networks that are made in another file, or that a library has, may have batch norm."""
    if _has_networks(facts):
        return False
    texts = [facts.text.text, *(o.text for o in facts.others)]
    return not facts.others or any(word in text for text in texts for word in WITH_NORMS)


def _has_networks(facts: Facts) -> bool:
    """Whether the script's networks are made in this file."""
    made = [b for c in facts.walk(ast.ClassDef) for b in c.bases] + [call.func for call in facts.walk(ast.Call)]
    names = [n.removeprefix("torch.nn.") for m in made if (n := facts.names.resolve(m) or "").startswith("torch.nn.")]
    return any("." not in n and not n.endswith("Loss") for n in names)


def _batch_norm(facts: Facts) -> ast.AST | None:
    """The first place in this file where a module with batch norm is made."""
    for call in facts.walk(ast.Call):
        full = facts.names.resolve(call.func) or ""
        if "BatchNorm" in full and full.startswith("torch.nn."):
            return call
    return None


def _note(facts: Facts, recipe: Recipe, why: CannotLift, says: str) -> Note:
    line, column, _, _ = facts.text.key(why.node or recipe.epoch_loop)
    return Note(line, column + 1, CODE, f"{says}: {why.reason}")
