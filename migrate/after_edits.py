"""What is left to do when the edits are made: what nothing reads any more goes, what stays finds its card, and what is
seen of the result is told.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from . import averaged_sums, seeds_by_rank
from .codemods.base import apply
from .codemods.every import BY_CODE, outermost
from .codemods.left_cuda import TOLD, LeftCuda
from .codemods.synced_norms import told as told_norms
from .facts.script import Facts, facts_of
from .left_over import left_over
from .lift.lightning import lost
from .line_map import line_map
from .report import Note, at_line
from .result import Options, Result
from .sources import unfollowed
from .stays_on_cpu import without_cards
from .unread_devices import still_read, without_unread_devices
from .unread_imports import without_unread_imports
from .unread_parameters import without_unread_parameters
from .unread_starts import without_unread_starts

OWN_MOVER = re.compile(r"def (to|cuda)\(")  # of a class of the script
DRAWN = "PTM414"  # a split that each process draws


def completed(result: Result, original: Facts, text: str, mended: str, options: Options, is_script: bool) -> Result:
    """The result with what is told of it as a whole, and without what nothing in it reads any more.

    `text`: the file as it was; `mended`: in today's form, of which `original` tells.
    """
    if result.plan == "none" and result.edits:
        result.plan = "definitions"
    result.attention[:] = _still_unplaced(result)
    if options.framework == "lightning":
        result.attention += lost(original, result.plan)
    result.attention += seeds_by_rank.told(original, result.attention)
    result.attention += averaged_sums.told(original, result.text)
    result.attention += told_norms(original, result.text, result.plan)
    if is_script and result.edits:
        result.attention += _unfollowed(original)
    after = original if result.text == mended else facts_of(result.text)
    after = _without_unread(result, original, after, options)
    after = _where_cuda_is(result, original, after, text, options, is_script)
    _without_imports(result, original, after, options, is_script)
    line = (lambda n: n) if after.text.text == text else line_map(after.text.text, text)
    result.attention += left_over(after, result.attention, line, _still_wanted(options))
    if result.plan in ("module", "manual") and '"cpu"' in after.text.text:
        result.attention[:] = without_cards(after, result.attention)
    if result.plan in ("module", "manual") and OWN_MOVER.search(text):
        from .lift.own_movers import without_moved

        result.attention[:] = without_moved(original, result.attention, result.text)
    return result


def _still_unplaced(result: Result) -> list[Note]:
    """What is told of, without what another edit placed after all: `Variable(x).cuda()`, once it is `x.cuda()`."""
    placed = {(e.line, e.column) for e in result.edits if e.code == "PTM104"}
    return [n for n in result.attention if (n.line, n.column) not in placed or not n.message.endswith(TOLD)]


def _without_unread(result: Result, original: Facts, after: Facts, options: Options) -> Facts:
    """Takes from the result what nothing reads any more, but for imports; the facts of it."""
    if result.plan in ("module", "manual") and options.wants("PTM102"):
        after, parameters = without_unread_parameters(original, after) if original.by_hand else (after, [])
        after, starts, told = without_unread_starts(original, after) if original.by_hand else (after, [], [])
        after, removed = without_unread_devices(original, after)
        removed, result.attention[:] = [*parameters, *starts, *removed], [*result.attention, *told]
        result.text, result.edits = after.text.text, result.edits + removed
        result.attention[:] = still_read(result.attention, after, removed)
    return after


def _without_imports(result: Result, original: Facts, after: Facts, options: Options, is_script: bool) -> None:
    """Takes from the result, last, the imports that nothing reads any more."""
    library = not is_script or original.is_library
    if options.wants("PTM690") and (original.taken is not None or not library):
        result.text, removed = without_unread_imports(original, after, original.taken if library else None)
        result.edits += removed


def _where_cuda_is(
    result: Result, original: Facts, after: Facts, text: str, options: Options, is_script: bool
) -> Facts:
    """What the result still moves goes where there is a card; the facts of it."""
    after.others = original.others
    unplaced = is_script and result.plan == "definitions" and _stay_unplaced(result, original)
    changes = outermost(after, list(LeftCuda(unplaced).plan(after))) if options.wants(LeftCuda.code) else []
    if not changes:
        return after
    line = (lambda n: n) if after.text.text == text else line_map(after.text.text, text)
    edits = [at_line(c.edit, line) for c in changes]
    lines = {e.line for e in edits}
    result.edits += edits
    result.attention[:] = [n for n in result.attention if n.line not in lines or not n.message.endswith(TOLD)]
    result.text = apply(after, changes)
    result.plan = "definitions" if result.plan == "none" else result.plan
    return facts_of(result.text)


def _stay_unplaced(result: Result, original: Facts) -> bool:
    """Whether the moves of networks went from a script that trains nothing, and that no other file imports."""
    others = original.is_library or original.imported or original.classes.run_by_trainer
    return not others and any(e.code == "PTM101" for e in result.edits)


def move_functions(result: Result, original: Facts) -> None:
    """What pickling meets goes to the module now, as what else changed in it has left it."""
    after = facts_of(result.text)
    kinds = [BY_CODE[code]() for code in sorted(original.waiting)]
    changes = outermost(after, [c for kind in kinds for c in kind.plan(after)])
    result.text = apply(after, changes)
    line = line_map(after.text.text, original.text.text)
    result.edits += [at_line(c.edit, line) for c in changes]
    told = {(n.line, n.code) for n in result.attention}
    left = [at_line(n, line) for kind in kinds for n in kind.notes(after)]
    result.attention += [n for n in left if (n.line, n.code) not in told]


def _still_wanted(options: Options) -> Callable[[str], bool]:
    """What is still asked of a file: on the runtime one draw before the processes meet is every process's."""
    on_runtime = options.of_lifted and options.framework == "ptmigrate"
    return lambda code: options.wants(code) and not (on_runtime and code == DRAWN)


def _unfollowed(facts: Facts) -> Iterator[Note]:
    """Modules that the script imports by a name that does not show: they keep their device calls, where it has none."""
    for call in facts.walk(ast.Call):
        if unfollowed(call, facts.tree):
            line, column, _, _ = facts.text.key(call)
            says = f"`{facts.short(call)}`: which file that is does not show: migrate it too, its device calls stay"
            yield Note(line, column + 1, "PTM101", says)
