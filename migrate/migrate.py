"""One file from text to text: facts, plan, edits."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass, field, replace

from .codemods.base import Change, NotFound, apply
from .codemods.every import outermost, plan_all, seen
from .codemods.keep_loop import KeepLoop
from .codemods.mend_async import mend
from .codemods.old_idioms import DataZero
from .codemods.once import NAMES, Once, names_read, renames
from .codemods.plain_branches import PlainBranches
from .codemods.precision_of_loops import PrecisionOfLoops
from .codemods.split_steps import SplitSteps
from .codemods.synced_norms import told as told_norms
from .collection import uncollected
from .elsewhere import Elsewhere
from .facts.choice import accelerator
from .facts.distribution import Distribution, mentions_processes
from .facts.nodes import walk
from .facts.refusals import carrier, refusal
from .facts.script import Facts
from .facts.synced_norms import asked
from .left_over import left_over
from .lift.imports import add_imports, as_import, import_edit, imported_as
from .lift.lightning import lost, to_lightning
from .lift.recipe import CannotLift
from .line_map import line_map
from .report import Edit, Note
from .unread_devices import still_read, without_unread_devices
from .unread_imports import without_unread_imports
from .unread_parameters import without_unread_parameters

MODULE_NAMES = ("Module", "Trainer")
# what is known of a script from elsewhere, and stays known of its text after edits
CARRIED = (
    "by_hand",
    "wrapped",
    "checkpoint",
    "elsewhere",
    "samplers_gone",
    "guarded_elsewhere",
    "given_wrapped",
    "read_elsewhere",
    "defined_elsewhere",
    "ours",
    "sync_batchnorm",
)


@dataclass
class Options:
    """What the user asked for: which codes to apply, and whether a loop may be lifted."""

    plan: str = "auto"
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    checkpoint: tuple[str, ...] = ()  # attributes of modules whose activations are computed again in backward
    framework: str = "ptmigrate"  # or lightning: which package a lifted result imports
    in_place: bool = False  # the files themselves change: others beside them may import from them
    of_lifted: bool = False  # the file is one that a lifted script imports: its output is rank 0's too

    def wants(self, code: str) -> bool:
        return (not self.select or any(code.startswith(s) for s in self.select)) and not any(
            code.startswith(i) for i in self.ignore
        )


@dataclass
class Result:
    """The new text of a file; `text` is the old one when nothing had to change."""

    text: str
    plan: str
    edits: list[Edit] = field(default_factory=list)
    attention: list[Note] = field(default_factory=list)
    reason: str = ""  # why there is nothing to do
    framework: str = "ptmigrate"  # what the result runs on


def migrate_text(
    text: str,
    options: Options | None = None,
    is_script: bool = True,
    kept: bool = False,
    elsewhere: Elsewhere | None = None,
) -> Result:
    """Migrate one file. `is_script` is False for modules that a script imports: their loops are not lifted.

    `kept`: a loop that stands in another file of the project is kept, and trains what this file makes and places.

    Raises SyntaxError when the text does not parse.
    """
    options = options or Options()
    if "torch" not in text:
        return Result(text, "none")
    with uncollected():
        return _migrated(text, options, is_script, kept, elsewhere)


def _migrated(text: str, options: Options, is_script: bool, kept: bool, elsewhere: Elsewhere | None) -> Result:
    mended, first = mend(text)
    facts = Facts(mended)
    if options.wants(DataZero.code) and "data" in mended and (scalars := list(DataZero().plan(facts))):
        mended = apply(facts, scalars)  # first: what others do with `.item()` they do with these
        facts, first = Facts(mended), [*first, *(c.edit for c in scalars)]
    facts.checkpoint, facts.ours = frozenset(options.checkpoint), options.framework == "ptmigrate"
    if elsewhere is not None:
        _know(facts, elsewhere)
    if already_migrated(facts):
        return Result(text, "none")
    _know_norms(facts)
    left = _left_alone(facts, text, is_script)
    if left is not None:
        return left if left.plan != "refused" else _with_left_over(left, facts, options)
    if options.framework == "lightning":
        options = replace(options, ignore=(*options.ignore, SplitSteps.code))  # Lightning has no *_step_end
    try:
        original = facts
        facts, branches, notes = _plain(original, options)
        stuck = _talks_otherwise(facts, original) if is_script and facts.by_hand else None
        if stuck is not None:
            return _with_left_over(Result(text, "refused", [], [stuck]), original, options)
        result = _planned(facts, options, is_script, kept)
        if branches:
            back = line_map(facts.text.text, mended)
            result.edits[:] = [*branches, *(replace(e, line=back(e.line)) for e in result.edits)]
            result.attention[:] = [*notes, *(replace(n, line=back(n.line)) for n in result.attention)]
        result.edits[:0] = first
        if options.framework == "lightning":
            result.attention += lost(facts, result.plan)
        result.attention += told_norms(original, result.text, result.plan)
        after = original if result.text == mended else Facts(result.text)
        if result.plan in ("module", "manual") and options.wants("PTM102"):
            after, parameters = without_unread_parameters(original, after) if original.by_hand else (after, [])
            after, removed = without_unread_devices(original, after)
            removed = [*parameters, *removed]
            result.text, result.edits = after.text.text, result.edits + removed
            result.attention[:] = still_read(result.attention, after, removed)
        if options.wants("PTM690"):
            result.text, removed = without_unread_imports(original, after, not is_script or original.is_library)
            result.edits += removed
            after = Facts(result.text) if removed else after
        line = (lambda n: n) if result.text == text else line_map(result.text, text)
        result.attention += left_over(after, result.attention, line, options.wants)
        return result
    except NotFound as missing:
        notes = [Note(e.line, e.column, e.code, f"the file is left as it is: {e.message}") for e in missing.edits]
        return _with_left_over(Result(text, "refused", [], notes), Facts(text), options)


def what_is_there(text: str, options: Options) -> list[Note]:
    """What is told of a file that stays as it is; nothing where it does not parse."""
    try:
        return left_over(Facts(mend(text)[0]), [], lambda n: n, options.wants)
    except SyntaxError:
        return []


def _with_left_over(result: Result, facts: Facts, options: Options) -> Result:
    """A refused file with all that is in it told."""
    result.attention += left_over(facts, result.attention, lambda n: n, options.wants)
    return result


def _left_alone(facts: Facts, text: str, is_script: bool) -> Result | None:
    """A script that nothing here can carry, or that another library carries already."""
    why = refusal(facts) if is_script else None
    if why is not None:
        line, column, _, _ = facts.text.key(why.node)
        return Result(text, "refused", [], [Note(line, column + 1, "PTM704", f"refused: {why.reason}")])
    library = carrier(facts)
    if library is not None:
        return Result(text, "none", reason=f"{library} carries its loop already")
    return None


def _know(facts: Facts, elsewhere: Elsewhere) -> None:
    """What other files of the project say of processes."""
    facts.by_hand, facts.elsewhere, facts.samplers_gone = elsewhere.by_hand, elsewhere.values, elsewhere.samplers
    facts.guarded_elsewhere, facts.given_wrapped = elsewhere.guarded, elsewhere.given_wrapped
    facts.read_elsewhere, facts.defined_elsewhere = elsewhere.reads, elsewhere.defines


def _know_norms(facts: Facts) -> None:
    """When batch norm is to be synchronised, and which options the Trainer will read for it."""
    facts.sync_batchnorm = asked(facts)
    if facts.sync_batchnorm is not None:
        condition = ast.parse(facts.sync_batchnorm, mode="eval")
        facts.read_elsewhere |= {n.attr for n in walk(condition) if isinstance(n, ast.Attribute)}


def _plain(facts: Facts, options: Options) -> tuple[Facts, list[Edit], list[Note]]:
    """The script with the branches of one process alone, where it starts and connects its processes by hand."""
    if not (options.wants(PlainBranches.code) and (facts.by_hand or mentions_processes(facts.text.text))):
        return facts, [], []
    found = Distribution(facts)
    facts.by_hand, facts.wrapped = found.by_hand, frozenset(found.wrapped_names)
    branches = PlainBranches()
    changes = outermost(facts, list(branches.plan(facts))) if facts.by_hand else []
    if not changes:
        return facts, [], []
    plain = Facts(apply(facts, changes))
    for name in CARRIED:
        setattr(plain, name, getattr(facts, name))
    return plain, [c.edit for c in changes if c.told], list(branches.notes(facts))


def _talks_otherwise(facts: Facts, original: Facts) -> Note | None:
    """Where processes talk in a way that one process alone has no form of: half of such a script is no program."""
    call = next(Distribution(facts).blocking(), None)
    if call is None:
        return None
    line, column, _, _ = facts.text.key(call)
    line = line if facts is original else line_map(facts.text.text, original.text.text)(line)
    says = f"refused: `{facts.short(call)}`: processes talk there in a way that one process has no form of; write it"
    return Note(line, column + 1, "PTM704", f"{says} for one device")


def _planned(facts: Facts, options: Options, is_script: bool, kept: bool) -> Result:
    trains = _trains(facts) and not facts.classes.run_by_trainer  # there the Trainer has the loop
    if trains and is_script and options.plan != "loop" and options.wants("PTM700"):
        try:
            return _with_precision(facts, options) or _lifted(facts, options)
        except CannotLift as why:
            return _kept(facts, options, [] if why.node is None else [_decided(why)])
        except (SyntaxError, LookupError, TypeError, ValueError, AssertionError, AttributeError) as fault:
            says = f"the loop is kept: lifting it failed ({type(fault).__name__}: {fault})"
            return _kept(facts, options, [Note(1, 1, "PTM701", says)])
    if trains:
        return _kept(facts, options, [])
    if kept and not facts.classes.run_by_trainer:
        result = _kept(facts, options, [])
        result.plan = "loop" if is_script else "definitions" if result.edits or _defines(facts) else "none"
        return result
    changes = _device_changes(facts, options)
    if options.of_lifted and options.wants(Once.code):
        changes = outermost(facts, [*changes, *Once(waits=False).plan(facts)])
    plan = "definitions" if changes or _defines(facts) else "none"
    text = _with_names(apply(facts, changes), facts.text.text)
    return Result(text, plan, [c.edit for c in changes if c.told], seen(facts, changes, options.wants))


def _with_precision(facts: Facts, options: Options) -> Result | None:
    """The lift with autocast and scaler as the Trainer's precision; None where the script has to keep them."""
    if not options.wants(PrecisionOfLoops.code) or "autocast" not in facts.text.text:
        return None
    codemod = PrecisionOfLoops()
    mixed = codemod.changes(facts)
    if mixed is None:
        return None
    changes = outermost(facts, mixed[0])
    full = Facts(apply(facts, changes))
    for name in CARRIED:
        setattr(full, name, getattr(facts, name))
    full.precision = mixed[1]
    try:
        result = _lifted(full, options)
    except (CannotLift, SyntaxError, LookupError, TypeError, ValueError, AssertionError, AttributeError):
        return None
    if result.plan != "module" and not (result.plan == "manual" and codemod.by_hand):
        return None
    line = line_map(full.text.text, facts.text.text)
    result.edits[:] = [*(c.edit for c in changes), *(replace(e, line=line(e.line)) for e in result.edits)]
    result.attention[:] = [replace(n, line=line(n.line)) for n in result.attention]
    return result


def _with_names(text: str, before: str) -> str:
    """The text with what it reads of the runtime imported."""
    names = names_read(Facts(text)) if text != before and any(n in text for n in NAMES) else []
    return add_imports(text, "ptmigrate.runtime", names) if names else text


def _trains(facts: Facts) -> bool:
    return any(
        isinstance(c.func, ast.Attribute) and c.func.attr == "backward" and not _in_autograd_function(facts, c)
        for c in facts.walk(ast.Call)
    )


def _in_autograd_function(facts: Facts, node: ast.AST) -> bool:
    return any(
        isinstance(up, ast.ClassDef) and any(facts.names.resolve(b) == "torch.autograd.Function" for b in up.bases)
        for up in facts.scopes.ancestors(node)
    )


def _device_changes(facts: Facts, options: Options) -> list[Change]:
    return plan_all(facts, options.wants)


def _lifted(facts: Facts, options: Options) -> Result:
    from .lift.lift import lift
    from .lift.own_device import CODE as PLACED
    from .lift.own_device import settled
    from .lift.shape.shape import shaped

    facts.lifting = True
    changes = _device_changes(facts, options)
    facts.lifting = False
    plain = shaped(Facts(apply(facts, changes)))
    plain.precision, plain.sync_batchnorm, plain.ours = facts.precision, facts.sync_batchnorm, facts.ours
    line = line_map(plain.text.text, facts.text.text)
    try:
        text, plan, more, attention = lift(plain, accelerator(facts), options.wants(PLACED))
    except CannotLift as why:
        if why.node is not None:
            why.line = line(getattr(why.node, "lineno", 1))
        raise
    left = seen(facts, changes, options.wants)
    left, more = settled(left, [replace(e, line=line(e.line)) for e in more], text)
    edits = [c.edit for c in changes if c.told] + more
    attention = [replace(n, line=line(n.line)) for n in attention]
    attention += [n for n in left if n.code != "PTM301"]  # the lift logs those
    names = [as_import(n, imported_as(plain, n)) for n in MODULE_NAMES]
    text, finishing, told = _finished(Facts(text), names, facts, options)
    compiles(text)
    return Result(text, plan, edits + finishing, attention + told, framework=options.framework)


def _finished(lifted: Facts, names: list[str], original: Facts, options: Options) -> tuple[str, list[Edit], list[Note]]:
    """A lifted text with its imports, what rank 0 alone does, and loops that stay on the device; edits told of it."""
    from .lift.placing import NAME as ON_DEVICE
    from .lift.placing import place_batches
    from .lift.shape.edits import Edits

    on_lightning = options.framework == "lightning"
    once = list(Once(not on_lightning).plan(lifted)) if options.wants(Once.code) else []
    line = line_map(lifted.text.text, original.text.text)
    races = [replace(n, line=line(n.line)) for n in Once().notes(lifted)] if options.wants(Once.code) else []
    told = [replace(c.edit, line=line(c.edit.line)) for c in once]
    renamed = renames(lifted, once)
    if renamed is None:
        lifted, renamed = Facts(apply(lifted, once)), []
        line = line_map(lifted.text.text, original.text.text)
    edits = Edits(lifted, renamed)
    read = names_read(lifted)
    names = [*names, *(n for n in NAMES if n in read or any(n in e[2] for e in renamed))]
    if on_lightning:
        text, notes = _on_lightning(edits.done(), names, original)
        return text, told, [*notes, *races]
    placed = place_batches(lifted, edits)
    names = [*names, ON_DEVICE] if placed else names
    edits.replace(*import_edit(lifted.tree, lifted.text, "ptmigrate.runtime", names))
    return edits.done(), [replace(e, line=line(e.line)) for e in placed] + told, races


def _on_lightning(text: str, names: list[str], original: Facts) -> tuple[str, list[Note]]:
    try:
        new, notes = to_lightning(text, names)
    except CannotLift as why:
        why.line = line_map(text, original.text.text)(why.line)
        raise
    line = line_map(new, original.text.text)
    return new, [replace(n, line=line(n.line)) for n in notes]


def _kept(facts: Facts, options: Options, attention: list[Note]) -> Result:
    """The loop as it is written, on Runtime: each process computes every batch whole."""
    name = "runtime"
    while any(name in s.stores or name in s.params for s in facts.scopes.by_node.values()):
        name = f"pt_{name}"
    facts.handle = name
    keep = list(KeepLoop(name).plan(facts))
    once = list(Once().plan(facts)) if options.wants(Once.code) else []
    changes = outermost(facts, [*plan_all(facts, options.wants, kept=True), *keep, *once])
    attention = [*attention, *seen(facts, changes, options.wants)]
    text = apply(facts, changes)
    kept = Facts(text)
    names = names_read(kept)
    if keep or names:
        after = f"{name} = Runtime.shared()"
        at, _, new = import_edit(kept.tree, kept.text, "ptmigrate.runtime", ["Runtime", *names], after)
        text = text[:at] + new + text[at:]
    first = next((c.edit for c in keep), None) if _trains(facts) else None
    if first is not None:
        says = "every process computes every batch whole: a kept loop's data is not divided over processes"
        attention = [*attention, Note(first.line, first.column, "PTM703", says)]
    return Result(text, "loop", [c.edit for c in changes if c.told], attention)


def compiles(text: str) -> None:
    """SyntaxError where a text parses and yet is no program: a `continue` outside a loop, a `return` in a class."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the original's own, such as invalid escapes
        compile(text, "<result>", "exec", dont_inherit=True)


def _decided(why: CannotLift) -> Note:
    """The line of the original that kept the loop from being lifted."""
    return Note(why.line, getattr(why.node, "col_offset", 0) + 1, "PTM701", f"the loop is kept: {why.reason}")


def already_migrated(facts: Facts) -> bool:
    return any(isinstance(s, ast.ImportFrom) and s.module == "ptmigrate.runtime" for s in facts.walk(ast.ImportFrom))


def _defines(facts: Facts) -> bool:
    """Whether the file defines modules or data sets."""
    for c in facts.walk(ast.ClassDef):
        for base in c.bases:
            full = facts.names.resolve(base) or ""
            if full.startswith("torch."):
                return True
    return False
