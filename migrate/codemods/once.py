"""T9: what every process would do again is done by rank 0: `print`, `torch.save`, writers of logs and pictures.

All stay the same call on one process.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from ..facts.arguments import argument_at
from ..facts.in_course import function_around, in_course, of_samples
from ..facts.loaded_states import saves_state
from ..facts.nodes import is_main_guard, walk
from ..facts.own_files import clocks_in_loaded_paths, saves_its_own
from ..facts.runtime_names import as_import, imported_as, runtime_name, without_prefix
from ..facts.script import Facts, once_a_file
from ..report import Note
from ._asked_paths import REMOVES, Asking, asked_paths, removed_by
from ._files_written import FileWritten, file_written
from ._loaded_again import can_wait, loaded_again
from ._named_printers import PRINTS, printers, prints_by_object, shows
from ._opened_within import free_name, opened_for, place_of, to_path, within
from ._own_answers import ANSWER, asking_each, by_own_answer, reached_by_own_answer
from ._writers import WRITERS
from .base import Change, Codemod
from .checkpoint_activations import NAMES as OF_CHECKPOINTS

PRINT, SAVE, ONLY, ASKS = "rank_zero_print", "rank_zero_save", "on_rank_zero", "is_global_zero"
MOVED, FIRST, ON_NODE = "rank_zero_file", "rank_zero_first", "is_local_zero"
ENVIRON = "plain_environ"  # what a script asks for a launcher's variables under names of its own
NAMES = (PRINT, SAVE, ONLY, ASKS, ON_NODE, MOVED, ANSWER, FIRST, ENVIRON, *OF_CHECKPOINTS)
# statements that give a path another file, which every rank may read next
MOVES = {
    *(f"os.{n}" for n in "rename renames replace".split()),
    *(f"shutil.{n}" for n in "move copy copy2 copyfile copytree make_archive".split()),
}
# statements that write, or take files away: nothing reads what they give back
WRITES = {
    *MOVES,
    *(f"os.{n}" for n in "remove unlink rmdir removedirs".split()),
    "shutil.rmtree",
    *PRINTS,
    *(f"wandb.{n}" for n in "log watch finish save alert define_metric log_artifact".split()),
    *(f"mlflow.{n}" for n in "log_metric log_metrics log_param log_params log_artifact end_run set_experiment".split()),
    # each of which begins a run where there is none
    *(f"mlflow.{n}" for n in "log_artifacts log_figure log_dict log_text log_image log_table set_tag set_tags".split()),
    *(f"mlflow.{n}.log_model" for n in ("pytorch", "pyfunc", "sklearn")),
    *(f"tensorboard_logger.{n}" for n in ("configure", "log_value", "log_images")),
    # without a handler of the script's own a logger says its warnings and errors on every rank, and nothing else
    *(f"logging.{n}" for n in ("basicConfig", "config.dictConfig", "config.fileConfig")),
}
LOADS = {"torch.load", "numpy.load", "pickle.load", "json.load"}
HANDLES = "addHandler"  # of a logger, whatever it is called


class Once(Codemod):
    code = "PTM410"
    name = "rank-zero-output"

    def __init__(self, writers: bool = True, waits: bool = True, alike: bool = False) -> None:
        self.writers = writers  # whether the result may import what keeps the other ranks' writers silent
        self.waits = waits  # whether every rank comes to a save, and may wait there until the file is written
        self.alike = alike  # whether every rank computes the same, so that all move a file where one does

    def plan(self, facts: Facts) -> Iterator[Change]:
        files = set[ast.AST]()
        for holder, call in self._saved_to_open_files(facts).items():
            files.update((call, holder.items[0].context_expr))
            says = f"`{facts.short(holder)}` became `{SAVE}`: rank 0 alone writes the file, whole or not at all"
            yield Change(holder, self.edit(facts, holder, says), _saved(imported_as(facts, SAVE)))
        for branch in facts.walk(ast.If) if self.writers and self.waits else ():
            if loaded_again(facts, branch) and can_wait(facts, branch):
                says = f"`{facts.short(branch.body[0])}` became `{SAVE}`: no rank goes on before the file is there"
                save: Any = branch.body[0].value  # type: ignore[attr-defined]
                own = imported_as(facts, SAVE)
                called = _Renamed(own) if opened_for(facts, save) is None else to_path(own)
                yield Change(branch, self.edit(facts, branch, says), _unguarded(called))
        gone: set[ast.Call] = set()
        for s, asked in _asked(facts) if self.writers else ():
            if not (self.waits or _come_together(facts, s)):
                continue
            for call in asked:
                says = f"`{facts.short(call)}`: rank 0 answers for all, before any of them makes what is asked for"
                yield Change(call, self.edit(facts, call, says), _answered(imported_as(facts, ANSWER)))
            gone.update(removed_by(facts, s))
        for clock in clocks_in_loaded_paths(facts) if self.writers and self.waits else ():
            says = f"`{facts.short(clock)}`: rank 0's time for all, as it names a file that they load"
            yield Change(clock, self.edit(facts, clock, says), _answered(imported_as(facts, ANSWER)))
        files.update(opened for _, opened in _saved_open(facts))
        for call in facts.walk(ast.Call):
            new = self._replacement(facts, call) if call not in files else None
            if call in gone and new is not None:
                new = f"{imported_as(facts, MOVED)}({facts.text.get(call.func)})"
            if new is not None:
                yield self._renamed(facts, call, new)
        for name in printers(facts):
            new = imported_as(facts, PRINT)
            says = f"`{name.id}` became `{new}`: rank 0 alone does it, by whatever name it is called"
            yield Change(name, self.edit(facts, name, says), _Renamed(new))

    def _renamed(self, facts: Facts, call: ast.Call, new: str) -> Change:
        """The call by its new name; a file that is opened in it, and waited for, is opened in a `with`."""
        old = facts.text.get(call.func)
        edit = self.edit(facts, call, f"`{old}` became `{new}`: rank 0 alone does it")
        written = file_written(facts, call)
        if written is not None and written.alone is not None and new.startswith(f"{imported_as(facts, MOVED)}("):
            name = free_name(facts, written.alone) or ""
            place = place_of(written.alone, call)
            return Change(written.alone, edit, within(new, name, place, facts.indentation))
        return Change(call, edit, _Renamed(new) if opened_for(facts, call) is None else to_path(new))

    def notes(self, facts: Facts) -> Iterator[Note]:
        """Saves of rank 0 that the others load, where not every rank is shown to wait for the file; and questions."""
        for branch in facts.walk(ast.If):
            if loaded_again(facts, branch) and not can_wait(facts, branch):
                line, column, _, _ = facts.text.key(branch.body[0])
                says = "rank 0 alone writes it, and the file is loaded later on: another rank may come there first"
                yield Note(line, column + 1, self.code, f"`{facts.short(branch.body[0])}`: {says}")
        saved: set[ast.expr] = {opened for _, opened in _saved_open(facts)}
        saved.update(h.items[0].context_expr for h in self._saved_to_open_files(facts))
        for call in facts.walk(ast.Call):
            if call not in saved and self._each_writes(facts, call):
                says = "every process writes it, as it is read again, and where it is whole does not show: use `with`"
            elif _asks_the_user(facts, call) and self._saves_once(facts, call):
                says = "every process asks, and one of them alone has a terminal: the others end there"
            else:
                continue
            line, column, _, _ = facts.text.key(call)
            yield Note(line, column + 1, self.code, f"`{facts.short(call)}`: {says}")

    def may_write(self, facts: Facts) -> bool:
        """Whether it writes files, which all processes may come to together."""
        return any(file_written(facts, call) is not None for call in facts.walk(ast.Call))

    def each_writes(self, facts: Facts) -> Iterator[Note]:
        """What every process writes in a file that others import: where they read it again, or a step comes to it."""
        for call in facts.walk(ast.Call):
            written = file_written(facts, call)
            if written is None or not self._saves_once(facts, call) or self._written(facts, call, written) is not None:
                continue
            course = _course_of(facts, call)
            stepped = course in facts.apart_elsewhere
            if not written.read_again:
                told, why = (
                    stepped and written.is_given,
                    "where not each has files of its own, one may write over another's",
                )
            elif in_course(facts, call):
                told, why = stepped or not written.is_given, "and it is read again: one may find another's half"
            else:
                told, why = (
                    stepped or course in facts.together_elsewhere,
                    "and it may be read again: one may find another's half",
                )
            if told:
                line, column, _, _ = facts.text.key(call)
                says = f"`{facts.short(call)}`: every process that comes here writes it, {why}"
                yield Note(line, column + 1, self.code, says)

    def each_answers(self, facts: Facts) -> Iterator[Note]:
        """Questions for paths of a file that others import, where it does not show that every process asks them."""
        for s, asked in _asked(facts, anywhere=True):
            if not (in_course(facts, s) and _come_together(facts, s)):
                line, column, _, _ = facts.text.key(asked[0])
                says = "each process asks for itself, and one that comes late may find what another is making"
                yield Note(line, column + 1, self.code, f"`{facts.short(asked[0])}`: {says}")

    def _saved_to_open_files(self, facts: Facts) -> dict[ast.With, ast.Call]:
        """What opens a file for one save, which becomes rank 0's, and the save."""
        found = {h: self._saved_to_open_file(facts, h) for h in (facts.walk(ast.With) if self.waits else ())}
        return {holder: call for holder, call in found.items() if call is not None}

    def _saved_to_open_file(self, facts: Facts, holder: ast.With) -> ast.Call | None:
        """The save in `with open(path, "wb") as f: torch.save(x, f)`: every rank would cut the file short."""
        item, body = holder.items[0], holder.body[0]
        opened = item.context_expr
        if not (len(holder.items) == len(holder.body) == 1 and isinstance(item.optional_vars, ast.Name)):
            return None
        if not (
            isinstance(opened, ast.Call)
            and isinstance(opened.func, ast.Name)
            and opened.func.id == "open"
            and opened.args
        ):
            return None
        call = body.value if isinstance(body, ast.Expr) else None
        if not isinstance(call, ast.Call) or facts.names.resolve(call.func) != "torch.save":
            return None
        to = argument_at(call, "f", 1)
        if len(call.args) + len(call.keywords) != 2 or argument_at(call, "obj", 0) is None:
            return None
        is_file = isinstance(to, ast.Name) and to.id == item.optional_vars.id
        return call if is_file and self._saves_once(facts, call) else None

    def _replacement(self, facts: Facts, call: ast.Call) -> str | None:
        if isinstance(call.func, ast.Name) and call.func.id == "print":
            if facts.scopes.scope_of(call.func).lookup("print") is not None:
                return None
            return imported_as(facts, PRINT) if shows(call) else None
        written = file_written(facts, call) if self.writers else None
        if written is not None and self._comes_to_all(facts, call):
            return self._written(facts, call, written)
        if facts.names.resolve(call.func) == "torch.save" and isinstance(facts.scopes.parents.get(call), ast.Expr):
            reached = facts.alone.reached_by(call)
            if (
                saves_its_own(facts, call)
                or (of_samples(facts, call) and not saves_state(call))
                or (not self.waits and _into_open_file(facts, call))
            ):
                return None
            waits = self._waits_for(facts, call)
            if not waits and self.waits:
                return f"{imported_as(facts, ONLY)}({facts.text.get(call.func)})" if self.writers else None
            if self.writers and False in reached and (True in reached or not waits):
                return f"{imported_as(facts, ONLY)}({facts.text.get(call.func)})"
            return imported_as(facts, SAVE) if waits and reached == {False} else None
        full = facts.names.resolve(call.func)
        stands_alone = isinstance(facts.scopes.parents.get(call), ast.Expr)
        handles = full is None and isinstance(call.func, ast.Attribute) and call.func.attr == HANDLES
        writes = full in WRITERS or ((full in WRITES or handles or prints_by_object(facts, call)) and stands_alone)
        if self.writers and writes and self._comes_to_all(facts, call) and not facts.is_fixed(call):
            alike = full in MOVES and (self.alike or _is_awaited(facts, call))
            alike = alike or (full in REMOVES and self._may_be_read(facts, call))
            name = MOVED if alike and self._saves_once(facts, call) else ONLY
            return f"{imported_as(facts, name)}({facts.text.get(call.func)})"
        return None

    def _may_be_read(self, facts: Facts, call: ast.Call) -> bool:
        """Whether the others may still load what a call removes, and come to it in any case, so that it can wait."""
        if not self.waits or not in_course(facts, call) or self._by_own_answer(facts, call):
            return False
        calls = facts.walk(ast.Call)
        loads = any(facts.names.resolve(c.func) in LOADS for c in calls)
        loads = loads or any((w := file_written(facts, c)) is not None and w.read_again for c in calls)
        function = function_around(facts, call)
        for up in facts.scopes.ancestors(call) if loads else ():
            if up is function:
                return True
            if isinstance(up, (ast.If, ast.For, ast.While, ast.Try, ast.ExceptHandler)):
                return isinstance(up, ast.If) and is_main_guard(up.test)
        return loads

    def _written(self, facts: Facts, call: ast.Call, written: FileWritten) -> str | None:
        """What writes a file on rank 0 alone; the others wait for it where they may read it, and all come there."""
        if not self.waits and written.is_given and _course_of(facts, call) not in facts.together_elsewhere:
            return None  # by the name of a sample, say, of which every rank has others
        if not written.read_again:
            return f"{imported_as(facts, ONLY)}({facts.text.get(call.func)})"
        comes = self.waits or _course_of(facts, call) in facts.together_elsewhere
        if comes and self._saves_once(facts, call) and written.can_wait and not self._by_own_answer(facts, call):
            return f"{imported_as(facts, MOVED)}({facts.text.get(call.func)})"
        return f"{imported_as(facts, ONLY)}({facts.text.get(call.func)})" if written.in_any_case else None

    def _each_writes(self, facts: Facts, call: ast.Call) -> bool:
        """Whether every process writes a file, as nothing shows where the others would have to wait for it."""
        written = file_written(facts, call) if self.writers else None
        if written is None or written.is_given or not written.read_again or not self._saves_once(facts, call):
            return False
        return self._written(facts, call, written) is None

    def _waits_for(self, facts: Facts, call: ast.Call) -> bool:
        """Whether every rank comes to what a call writes, and may wait for it there."""
        return (self.waits or _is_awaited(facts, call)) and not self._by_own_answer(facts, call)

    def _by_own_answer(self, facts: Facts, call: ast.Call) -> bool:
        return reached_by_own_answer(facts, call, _asked_by_each(facts))

    def _saves_once(self, facts: Facts, call: ast.Call) -> bool:
        """Not where a rank guard of the script, or of the lift, stands around it already."""
        return facts.alone.reached_by(call) == {False}

    def _comes_to_all(self, facts: Facts, call: ast.Call) -> bool:
        """Some of it may come from below a rank guard, where it does no harm to ask once more."""
        return False in facts.alone.reached_by(call)


@once_a_file
def _saved_open(facts: Facts) -> list[tuple[ast.Call, ast.Call]]:
    """The statements `torch.save(x, open(path, "wb"))`, and what they open."""
    alone = [c for c in facts.called.get("torch.save", ()) if isinstance(facts.scopes.parents.get(c), ast.Expr)]
    return [(c, opened) for c in alone if (opened := opened_for(facts, c)) is not None]


def _asked(facts: Facts, anywhere: bool = False) -> Iterator[tuple[Asking, list[ast.Call]]]:
    """The statements that ask for paths for which rank 0 has to answer."""
    asking: list[Asking] = [*facts.walk(ast.If), *facts.walk(ast.Assert), *facts.walk(ast.While)]
    for s in asking:
        if asked := asked_paths(facts, s, anywhere):
            yield s, asked


def _come_together(facts: Facts, s: ast.stmt) -> bool:
    """In a file that others import: whether all ranks come to a statement, in one order."""
    if _course_of(facts, s) not in facts.together_elsewhere:
        return False
    return not by_own_answer(facts, s, _asked_by_each(facts))


def _course_of(facts: Facts, node: ast.AST) -> str:
    """The function that a node stands in, by the name by which it is called; "" for the file itself."""
    holder = function_around(facts, node)
    of_class = facts.classes.holder(holder) if holder is not None and holder.name == "__init__" else None
    return "" if holder is None else (of_class or holder).name


@once_a_file
def _asked_by_each(facts: Facts) -> set[ast.If | ast.While]:
    """The branches on paths that stay as they are."""
    return asking_each(facts) - {s for s, _ in _asked(facts)}


def _is_awaited(facts: Facts, call: ast.Call) -> bool:
    """In a function that other files alone call, where all ranks come and may wait."""
    function = next((up for up in facts.scopes.ancestors(call) if isinstance(up, ast.FunctionDef)), None)
    name = function.name if function is not None else ""
    return name in facts.awaited_elsewhere and not facts.alone.is_called(name)


def _asks_the_user(facts: Facts, call: ast.Call) -> bool:
    """The builtin `input()`, which reads what is typed."""
    f = call.func
    return isinstance(f, ast.Name) and f.id == "input" and facts.scopes.scope_of(f).lookup("input") is None


def _into_open_file(facts: Facts, call: ast.Call) -> bool:
    """Below `with open(path, "wb") as f:`, which every rank opens."""
    names = {n.id for a in call.args[1:] for n in walk(a, ast.Name)}
    held = (up for up in facts.scopes.ancestors(call) if isinstance(up, ast.With))
    opened = (i.optional_vars for up in held for i in up.items)
    return any(isinstance(v, ast.Name) and v.id in names for v in opened)


def renames(facts: Facts, changes: list[Change]) -> list[tuple[int, int, str]] | None:
    """The calls' new names as edits of the text; None where more than a name changes."""
    found = []
    for c in changes:
        if not (isinstance(c.node, (ast.Call, ast.Name)) and isinstance(c.rewrite, _Renamed)):
            return None
        named = c.node.func if isinstance(c.node, ast.Call) else c.node
        found.append((*facts.text.span(named), c.rewrite.new))
    return found


def names_read(facts: Facts) -> list[str]:
    """What a result with these changes in it reads of the runtime."""
    named = (n for n in facts.walk(ast.Name) if without_prefix(n.id) in NAMES)
    read = {n.id: base for n in named if (base := runtime_name(facts, n)) in NAMES}
    return [as_import(read[own], own) for own in sorted(read, key=lambda own: NAMES.index(read[own]))]


def imports_in(texts: Iterable[str]) -> list[str]:
    """What new names of calls read of the runtime: `on_rank_zero(open)`."""
    own = {text.partition("(")[0] for text in texts}
    return [as_import(without_prefix(n), n) for n in sorted(own)]


class _Renamed:
    """`print(x)` to `rank_zero_print(x)`, `print` to `rank_zero_print`."""

    def __init__(self, new: str) -> None:
        self.new = new

    def __call__(self, original: Any, updated: Any) -> Any:
        import libcst as cst

        if isinstance(updated, cst.Name):
            return updated.with_changes(value=self.new)
        if not self.new.isidentifier():
            return updated.with_changes(func=cst.parse_expression(self.new))
        return updated.with_changes(func=cst.Name(self.new, lpar=updated.func.lpar, rpar=updated.func.rpar))


def _answered(answer: str) -> Any:
    """`os.path.exists(path)` to `rank_zero_value(os.path.exists(path))`."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        own = updated.with_changes(lpar=[], rpar=[])
        return cst.Call(cst.Name(answer), [cst.Arg(own)], lpar=updated.lpar, rpar=updated.rpar)

    return rewrite


def _unguarded(called: Any) -> Any:
    """`if self.trainer.is_global_zero: torch.save(x, path)` to `rank_zero_save(x, path)`, by what changes the call."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        line: Any = updated.body.body[0]
        save: Any = line.body[0] if isinstance(line, cst.SimpleStatementLine) else line
        new = save.with_changes(value=called(save.value, save.value))
        return cst.SimpleStatementLine([new], leading_lines=updated.leading_lines)

    return rewrite


def _saved(saves: str) -> Any:
    """`with open(path, "wb") as f: torch.save(x, f)` to `rank_zero_save(x, path)`."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        save = updated.body.body[0].body[0]
        path = updated.items[0].item.args[0].value
        args = list(save.value.args)
        at = next((i for i, a in enumerate(args) if a.keyword is not None and a.keyword.value == "f"), 1)
        args[at] = args[at].with_changes(value=path)
        new = save.with_changes(value=save.value.with_changes(func=cst.Name(saves), args=args))
        return cst.SimpleStatementLine([new], leading_lines=updated.leading_lines)

    return rewrite
