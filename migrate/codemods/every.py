"""All codemods that do not need a lifted loop, planned together for one pass."""

from __future__ import annotations

import ast
from collections.abc import Callable

from ..facts.script import Facts
from ..report import Note
from .amp_in_modules import AmpInModules
from .ask_for_cuda import AskForCuda
from .back_on_cpu import BackOnCpu
from .base import Change, Codemod
from .checkpoint_activations import CheckpointActivations
from .counted_peers import CountedPeers
from .cuda_demands import CudaDemands
from .detach_totals import CopiedToRead, DetachTotals
from .keep_loop import KeepLoop
from .load_on_cpu import LoadOnCpu
from .name_lambdas import NameLambdas
from .name_local_functions import NameLocalFunctions
from .next_of_iterators import NextOfIterators
from .old_idioms import DataZero, OldIdioms, RemoveVariables
from .once import Once
from .place_like_inputs import PlaceLikeInputs
from .plain_horovod import PlainHorovod
from .plain_optimizers import PlainOptimizers
from .plain_parallel import PlainParallel
from .plain_process import PlainProcess
from .register_buffers import RegisterBuffers
from .remove_device_calls import RemoveDeviceCalls
from .remove_samplers import RemoveSamplers
from .remove_unused_devices import RemoveUnusedDevices
from .split_steps import SplitSteps
from .steps import EmptyCache, ShardedNeedsZeros, ZeroedByTrainer
from .sync_logging import SyncLogging
from .synced_norms import SyncedNorms
from .tensor_types import TensorTypes
from .types_of_batches import TypesOfBatches

# in a loop that is kept the script places things itself
FIRST_LIFTED: tuple[type[Codemod], ...] = (RegisterBuffers,)  # a step that gives a buffer values of its batch is cut
ONLY_LIFTED: tuple[type[Codemod], ...] = (
    PlaceLikeInputs,
    ZeroedByTrainer,
    RemoveDeviceCalls,
    BackOnCpu,
    TypesOfBatches,
)
ALWAYS: tuple[type[Codemod], ...] = (
    AmpInModules,
    NameLambdas,
    NameLocalFunctions,
    PlainHorovod,
    PlainProcess,
    CountedPeers,
    PlainParallel,
    PlainOptimizers,
    RemoveSamplers,
    RemoveVariables,
    OldIdioms,
    TensorTypes,
    LoadOnCpu,
    CheckpointActivations,
    SyncLogging,
    SyncedNorms,
    EmptyCache,
    AskForCuda,
    CudaDemands,
    CopiedToRead,
    DetachTotals,
    ShardedNeedsZeros,
    SplitSteps,  # last: it moves what the others have rewritten
)

# what takes a place away, or gives it to the module: nothing is left to tell of it
PLACES = {RemoveDeviceCalls.code, RegisterBuffers.code}
NAMED: tuple[type[Codemod], ...] = (
    DataZero,
    NextOfIterators,
    *FIRST_LIFTED,
    *ALWAYS,
    *ONLY_LIFTED,
    RemoveUnusedDevices,
    KeepLoop,
    Once,
)
BY_CODE = {kind.code: kind for kind in NAMED}


def plan_all(facts: Facts, wants: Callable[[str], bool], kept: bool = False) -> list[Change]:
    """What would change; `kept` when the training loop stays as it is written."""
    changes: list[Change] = []
    facts.notes.clear()
    facts.new_names.clear()
    for kind in ALWAYS if kept else (*FIRST_LIFTED, *ALWAYS, *ONLY_LIFTED):
        if wants(kind.code):
            codemod = kind()
            changes += codemod.plan(facts)
            facts.notes += codemod.notes(facts)
    changes = outermost(facts, changes)
    handled = {(key[0], key[1] + 1) for c in changes if c.edit.code in PLACES for key in [facts.text.key(c.node)]}
    facts.notes[:] = [n for n in facts.notes if n.code != PlaceLikeInputs.code or (n.line, n.column) not in handled]
    if wants(RemoveUnusedDevices.code):
        unused = RemoveUnusedDevices()
        changes = outermost(facts, [*changes, *unused.plan(facts, changes)])
        facts.notes += unused.notes(facts)
    return changes


def seen(facts: Facts, changes: list[Change], wants: Callable[[str], bool]) -> list[Note]:
    """What wants a person: seen, and not handled by the changes."""
    return facts.notes


def outermost(facts: Facts, changes: list[Change]) -> list[Change]:
    """Without the changes inside of what is removed, and without a second removal of the same.

    What moves a function as it is written waits while something in it changes: see `Facts.waiting`.
    """
    if not changes:
        return changes
    changes = _chosen_once(_waited(facts, changes))
    removed = {c.node for c in changes if c.rewrite is None and not isinstance(c.node, ast.If)}
    dropped = {part for c in changes if c.rewrite is not None for part in c.gone if part is not c.node}
    kept, seen = [], set()
    for c in changes:
        if c.node in seen or any(up in removed or up in dropped for up in facts.scopes.ancestors(c.node)):
            continue
        if c.node in dropped or (c.node in removed and c.rewrite is not None):
            continue
        if c.rewrite is None:
            seen.add(c.node)
        kept.append(c)
    return kept


def _chosen_once(changes: list[Change]) -> list[Change]:
    """Of a choice one branch is left: the first codemod that takes one has it."""
    first: dict[ast.AST, Change] = {}
    return [c for c in changes if not isinstance(c.node, ast.IfExp) or first.setdefault(c.node, c) is c]


def _waited(facts: Facts, changes: list[Change]) -> list[Change]:
    """The changes without those that move a text which others change."""
    moves = {c.node: c for c in changes if c.insertion is not None}
    if not moves:
        return changes
    others = [c.node for c in changes if moves.get(c.node) is not c]
    wait = {n for node in others for n in (node, *facts.scopes.ancestors(node)) if n in moves}
    facts.waiting.update(moves[node].edit.code for node in wait)
    return [c for c in changes if not (c.insertion is not None and c.node in wait)]
