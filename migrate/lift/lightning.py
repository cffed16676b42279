"""`--framework lightning`: a lifted module and its Trainer, importing from the lightning package.

What Lightning's Trainer does that the script did not (a sanity check, logs, checkpoints, a progress bar) is turned off
by name, and what its modules lack is written into the class, so that one process trains to the same losses.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from ..facts.nodes import walk
from ..facts.script import Facts
from ..facts.text import Text
from ..report import Note
from .imports import add_imports
from .recipe import CannotLift

CODE = "PTM705"
QUIET = (
    "devices=1",
    "num_sanity_val_steps=0",
    "logger=False",
    "enable_checkpointing=False",
    "enable_progress_bar=False",
    "enable_model_summary=False",
)
# attributes of a class that ptmigrate's runtime reads and Lightning does not, and what is lost with each
UNREAD = {
    "loss_reduction": "the loss is a sum over the batch: on several processes Lightning averages the gradients of such "
    "sums, which trains with 1/N of them",
    "divide_batches": "the step needs whole batches: on several processes Lightning gives each a batch of its own, and "
    "the step sees no more than that",
    "divide_validation": "the evaluation needs all batches: on several processes Lightning gives each some of them",
}
# ends the epoch with the batch that is under way, as Trainer.stop_epoch() does
STOP_EPOCH = "self.trainer.fit_loop.epoch_loop.batch_progress.is_last_batch = True"
INDENT = "    "  # of the helpers
SUM = '''
    def {name}(self, value):
        """The sum over {of}; numbers stay numbers."""
        if self.trainer.world_size == 1:
            return value
        total = self.all_gather(value).sum(0)
        return total if hasattr(value, "shape") else type(value)(total)
'''
HELPERS = {
    "share": '''
    @property
    def share(self):
        """The part of a step's samples that this process has: Lightning gives all equally many."""
        return 1 / self.trainer.world_size
''',
    "all_reduce": SUM.format(name="all_reduce", of="processes"),
    "batch_sum": SUM.format(name="batch_sum", of="processes of what each has of its part of the last batch"),
    "batch_mean": '''
    def batch_mean(self, value):
        """The mean over processes of what each has of its part of the last batch; numbers stay numbers."""
        if self.trainer.world_size == 1:
            return value
        mean = self.all_gather(value).double().mean(0)
        return mean.to(value.dtype) if hasattr(value, "shape") else float(mean)
''',
}

TOGETHER = ("all_reduce", "batch_mean", "batch_sum")  # read where the fit is over, too

GONE = "Lightning 2 no longer has it"
LOST_HOOKS = {
    "training_step_end": f"{GONE}: a step sees its own process's part of the batch only",
    "validation_step_end": f"{GONE}: a step sees its own process's part of the batch only",
    "test_step_end": f"{GONE}: a step sees its own process's part of the batch only",
    "training_epoch_end": f"{GONE}: keep the outputs in an attribute, read it in on_train_epoch_end",
    "validation_epoch_end": f"{GONE}: keep the outputs in an attribute, read it in on_validation_epoch_end",
    "test_epoch_end": f"{GONE}: keep the outputs in an attribute, read it in on_test_epoch_end",
}
LOST_ARGUMENTS = {
    "gpus": "devices=N, accelerator='gpu'",
    "tpu_cores": "devices=N, accelerator='tpu'",
    "num_processes": "devices=N",
    "auto_select_gpus": "devices='auto'",
    "replace_sampler_ddp": "use_distributed_sampler",
    "amp_backend": "precision and plugins",
    "amp_level": "precision and plugins",
    "resume_from_checkpoint": "trainer.fit(ckpt_path=...)",
    "checkpoint_callback": "enable_checkpointing",
    "progress_bar_refresh_rate": "a TQDMProgressBar among the callbacks",
    "weights_summary": "enable_model_summary",
    "stochastic_weight_avg": "a StochasticWeightAveraging among the callbacks",
    "auto_lr_find": "lightning.pytorch.tuner.Tuner",
    "auto_scale_batch_size": "lightning.pytorch.tuner.Tuner",
}
LOST_STRATEGIES = frozenset(
    "dp ddp2 horovod bagua ddp_sharded ddp_sharded_spawn rpc_sequential fairscale collaborative".split()
)


def lost(facts: Facts, plan: str) -> list[Note]:
    """What a script asks of Lightning that today's does not have; a kept loop among it."""
    notes = []

    def say(node: ast.AST, message: str) -> None:
        line, column, _, _ = facts.text.key(node)
        notes.append(Note(line, column + 1, CODE, message))

    for c in facts.classes.run_by_trainer:
        for name, f in facts.classes.methods(c).items():
            if name in LOST_HOOKS:
                say(f, f"{name}(): {LOST_HOOKS[name]}")
    for call in facts.walk(ast.Call):
        full = facts.names.resolve(call.func) or ""
        if full.rsplit(".", 1)[-1] == "Trainer" and full.startswith(("lightning", "pytorch_lightning", "ptmigrate")):
            _lost_arguments(facts, call, say)
    if plan == "loop" and facts.tree.body:
        loop = "a kept loop is carried by ptmigrate's Runtime, which it imports: Lightning's Trainer cannot run it"
        say(facts.tree.body[0], loop)
    return notes


def _lost_arguments(facts: Facts, call: ast.Call, say: Callable[[ast.AST, str], None]) -> None:
    for k in call.keywords:
        if k.arg in LOST_ARGUMENTS:
            say(k.value, f"Trainer({k.arg}=...): {GONE}; there it is {LOST_ARGUMENTS[k.arg]}")
        elif k.arg in ("strategy", "accelerator", "plugins") and _lost_strategy(k.value):
            say(k.value, f"{k.arg}={ast.unparse(k.value)}: {GONE}")


def _lost_strategy(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value in LOST_STRATEGIES


def to_lightning(text: str, names: list[str]) -> tuple[str, list[Note]]:
    """A lifted text on Lightning, and what Lightning does not do; lines are the result's, in notes, and the lifted
    text's, in CannotLift.

    `names`: what it reads of ptmigrate.runtime, `Trainer as RuntimeTrainer` where the script has a Trainer of its own.
    """
    called = {n.split(" as ")[0]: n.split(" as ")[-1] for n in names}
    module, trainer = called.get("Module", "Module"), called.get("Trainer", "Trainer")
    facts = Facts(text)
    tree, at = facts.tree, facts.text
    edits: list[tuple[int, int, str]] = []
    notes: list[Note] = []
    for c in walk(tree):
        if isinstance(c, ast.ClassDef) and any(_is(b, module) for b in c.bases):
            edits += _class_edits(c, module, facts, notes)
        elif isinstance(c, ast.Call) and isinstance(c.func, ast.Attribute) and c.func.attr == "fit":
            _check_loaders(c)
        elif isinstance(c, ast.Call) and _is(c.func, trainer) and _starts(c):
            _, stop = at.span(c)
            edits.append((stop - 1, stop - 1, f", {', '.join(QUIET)}"))
    for a, b, new in sorted(edits, reverse=True):
        text = text[:a] + new + text[b:]
    text = _imports(text, tree, names, at.newline)
    imported = "Trainer" if trainer == "Trainer" else f"Trainer as {trainer}"
    return add_imports(text, "lightning", ["LightningModule", imported]), notes


def _check_loaders(fit: ast.Call) -> None:
    for e in fit.args[1:]:
        if isinstance(e, (ast.List, ast.Tuple, ast.Dict, ast.ListComp)):
            raise CannotLift(e, "Lightning takes a list for several loaders, not for the batches of one")


def _class_edits(c: ast.ClassDef, module: str, facts: Facts, notes: list[Note]) -> list[tuple[int, int, str]]:
    at = facts.text
    base = next(b for b in c.bases if _is(b, module))
    edits = [(*at.span(base), "LightningModule")]
    unread = [s for s in c.body if isinstance(s, ast.Assign) and ast.unparse(s.targets[0]) in UNREAD]
    for s in unread:
        first = s.lineno - (s is unread[0])  # with the blank line above
        edits.append((*at.line_span(first, s.end_lineno or s.lineno), ""))
        notes.append(Note(_worked(c, ast.unparse(s.targets[0])), 1, CODE, UNREAD[ast.unparse(s.targets[0])]))
    edits += _stops(c, at)
    read = {n.attr for n in walk(c, ast.Attribute) if _is(n.value, "self")}
    read |= {n.attr for n in facts.walk(ast.Attribute) if isinstance(n.value, ast.Name) and n.attr in TOGETHER}
    own = "".join(HELPERS[name] for name in HELPERS if name in read)
    if own:
        _, stop = at.line_span(c.end_lineno or c.lineno, c.end_lineno or c.lineno)
        edits.append((stop, stop, own.replace(INDENT, facts.indentation).replace("\n", at.newline)))
    return edits


def _worked(c: ast.ClassDef, setting: str) -> int:
    """The line of the step that a setting is about at which the script calls something."""
    name = "validation_step" if setting == "divide_validation" else "training_step"
    steps = (f for f in c.body if isinstance(f, ast.FunctionDef) and f.name == name)
    return next((s.lineno for f in steps for s in f.body if walk(s, ast.Call)), c.lineno)


def _stops(c: ast.ClassDef, at: Text) -> list[tuple[int, int, str]]:
    """CannotLift where validation follows an epoch that is left in the middle: Lightning leaves it out then; and where
    an epoch is skipped.
    """
    skipped = [n for n in walk(c, ast.Call) if ast.unparse(n.func) == "self.trainer.skip_epoch"]
    if skipped:
        raise CannotLift(skipped[0], "Lightning skips no epoch")
    found = [n for n in walk(c, ast.Call) if ast.unparse(n.func) == "self.trainer.stop_epoch"]
    if found and any(isinstance(s, ast.FunctionDef) and s.name == "validation_step" for s in c.body):
        raise CannotLift(found[0], "Lightning does not validate after an epoch that is left in the middle")
    return [(*at.span(n), STOP_EPOCH) for n in found]


def _imports(text: str, tree: ast.Module, names: list[str], newline: str) -> str:
    """What only rank 0 does, by Lightning's own decorator."""
    makers = {"rank_zero_print": "print", "rank_zero_save": f"{_name_of_torch(tree)}.save"}
    own = {n.split()[0]: n.split()[-1] for n in names}
    after = [f"{own[n]} = rank_zero_only({makers[n]})" for n in own if n in makers]
    if "is_global_zero" in own:
        after.append(
            f"{newline}{newline}def {own['is_global_zero']}():{newline}    return rank_zero_only.rank == 0{newline}"
        )
    if not after:
        return text
    utilities, names = "lightning.pytorch.utilities", ["rank_zero_only"]
    if "rank_zero_save" in " ".join(after) and _name_of_torch(tree) == "torch.serialization":
        after.insert(0, "import torch.serialization" + newline)
    return add_imports(text, utilities, names, newline.join(after))


def _name_of_torch(tree: ast.Module) -> str:
    """What the file calls torch: `t` after `import torch as t`."""
    for s in tree.body:
        if isinstance(s, ast.Import):
            for a in s.names:
                if a.name == "torch":
                    return a.asname or "torch"
    return "torch.serialization"  # imported for this alone


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _starts(call: ast.Call) -> bool:
    return any(k.arg in ("max_epochs", "max_steps") for k in call.keywords)
