"""All facts of one file, each worked out when it is first asked for."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from .alone import Alone, askers_of
from .annotated import as_assignments
from .asked_by_callers import is_asked_for_cpu
from .classes import Classes
from .devices import Devices
from .formatted import Formatted
from .loops import Loops
from .mixing import Mixing
from .names import Names
from .nodes import Nodes, walk, with_annotated
from .other_files import found_there
from .placed import Placed
from .scopes import Scopes
from .source import parsed_before
from .stars import imported_there
from .tensors import Tensors
from .text import Text
from .trees import tree_near
from .worlds import Worlds

if TYPE_CHECKING:
    from ..report import Note
    from .other_files import OtherFile

N = TypeVar("N", bound=ast.AST)
T = TypeVar("T")
P = ParamSpec("P")


# what is known of a script from elsewhere, and stays known of its text after edits
CARRIED = (
    "by_hand",
    "wrapped",
    "checkpoint",
    "device_given",
    "elsewhere",
    "samplers_gone",
    "samplers_kept",
    "guarded_elsewhere",
    "called_elsewhere",
    "awaited_elsewhere",
    "together_elsewhere",
    "apart_elsewhere",
    "askers_elsewhere",
    "given_wrapped",
    "imported",
    "read_elsewhere",
    "defined_elsewhere",
    "handed_elsewhere",
    "taken",
    "beside",
    "cuda_asked",
    "ours",
    "waiting",
    "movers_elsewhere",
    "copies_elsewhere",
    "given_made_elsewhere",
    "others",
    "untrained",
    "states_read",
    "sync_batchnorm",
)


_of_a_file: list[list[Facts]] = []  # those made since a file was begun, for each that is worked on
_by_text: list[dict[str, Facts]] = []  # likewise those that `facts_of` gave


@contextmanager
def of_one_file() -> Iterator[None]:
    """What is learnt of a file's texts goes at the end of it: in cycles it would wait for the collector."""
    _of_a_file.append([])
    _by_text.append({})
    try:
        yield
    finally:
        _by_text.pop()
        for facts in _of_a_file.pop():
            facts.forget()


def facts_of(text: str) -> Facts:
    """The facts of a text that nothing is told of; the same ones again while one file is worked on."""
    known = _by_text[-1] if _by_text else {}
    if text not in known:
        known[text] = Facts(text)
    return known[text]


class Taken(Protocol):
    """What other files take from one: whether they take a name, and the texts of those that may."""

    @property
    def texts(self) -> Iterable[str]: ...
    def __call__(self, name: str) -> bool: ...


class Facts:
    """The facts of one file, from `ast` alone."""

    def __init__(self, text: str, tree: ast.Module | None = None) -> None:
        self.text = Text(text)
        self.notes: list[Note] = []  # what was seen while planning, and wants a person
        self.handle: str | None = None  # what a kept loop calls its Runtime
        self.checkpoint: frozenset[str] = frozenset()  # attributes whose activations are to be computed again
        self.sync_batchnorm: str | None = (
            None  # the source of a Trainer's sync_batchnorm=, which the script had by hand
        )
        self.moved_networks: frozenset[str] = frozenset()  # names of networks that the script, as it was, moved
        self.without_devices = False  # whether the script, as it was, says nothing of devices
        self.ours = True  # whether the result may import ptmigrate.runtime
        self.cuda_asked = False  # whether a `.cuda()` that is left comes to ask whether there is CUDA
        self.device_given: str | None = None  # the source of the device that the function which makes the Trainer has
        self.precision: str | None = None  # the source of a Trainer's precision=, which the script had by hand
        self.new_names: set[str] = set()  # of functions that the edits add
        self.waiting: set[str] = set()  # codes of what moves a function in which something else changes first
        self.by_hand = False  # whether processes are started and connected by hand, here or elsewhere in the project
        self.wrapped: frozenset[str] = frozenset()  # names of models that were wrapped, here or elsewhere
        self.given_wrapped: frozenset[tuple[str, int]] = frozenset()  # arguments of other files that are wrapped models
        self.untrained = False  # whether it is one of several files, whose scripts train nothing
        self.states_read = False  # whether a file that comes to this one reads states of modules
        self.imported = False  # whether another file of the project imports it
        self.read_elsewhere: frozenset[str] = frozenset()  # options that other files read
        self.defined_elsewhere: frozenset[str] = frozenset()  # functions of those files
        self.handed_elsewhere: frozenset[str] = frozenset()  # functions that those give a launcher's names
        self.taken: Taken | None = None  # whether others take a name from it, where that is known
        self.beside: Taken | None = None  # likewise of files beside it that are not migrated with it
        self.samplers_gone = False  # whether another file's DistributedSampler goes
        self.samplers_kept = False  # and whether one stays
        self.elsewhere: dict[str, dict[Any, object]] = {}  # what other files' options and functions are in each world
        self.guarded_elsewhere: frozenset[str] = frozenset()  # functions that other files call on rank 0 alone
        self.called_elsewhere: frozenset[str] = frozenset()  # and those that they call on every rank
        self.awaited_elsewhere: frozenset[str] = frozenset()  # of these the ones that are called where ranks may wait
        self.together_elsewhere: frozenset[str] = frozenset()  # those that all ranks call, "" for the file itself
        self.apart_elsewhere: frozenset[str] = frozenset()  # those that hooks call where not all may come
        self.askers_elsewhere: frozenset[str] = frozenset()  # other files' questions for the one process, by any name
        # functions of this file, and places of arguments, that others give what nothing but the script places
        self.given_made_elsewhere: frozenset[tuple[str, int]] = frozenset()
        self.others: tuple[OtherFile, ...] = ()  # the other files of its project
        self.copies_elsewhere: dict[
            str, list[str]
        ] = {}  # classes of other files that keep copies of networks, and where
        self.movers_elsewhere: dict[
            str, str
        ] = {}  # other files' functions that only move, as lambdas that say where to
        self.buffers: set[tuple[ast.ClassDef, str]] = set()  # attributes of modules that the plan makes buffers
        self.buffered: set[ast.AST] = set()  # the nodes of what those are given
        self.unwrapped: dict[ast.AST, ast.expr] = {}  # wrappers and `.module`s that the plan takes off, and the model
        self.answers: dict[object, Any] = {}  # see `once_a_file`
        self.helpers: dict[ast.AST, bool] = {}  # whether functions are called from steps, as far as that was asked
        self.lifting = False  # whether the loop is to become a Module, whose steps log instead of adding up
        texts = _of_a_file[-1] if _of_a_file else []
        if tree is None:
            near = tree_near(self.text, texts[-1].text, texts[-1].tree) if texts else None
            tree = near or parsed_before(text) or as_assignments(ast.parse(text))
        self.tree: ast.Module = tree
        texts.append(self)

    def forget(self) -> None:
        """Nothing is known any more, and nothing kept; see `of_one_file`."""
        if "scopes" in vars(self):
            for scope in self.scopes.by_node.values():
                scope.forget()
        for part in ("devices", "worlds"):
            if part in vars(self):
                vars(vars(self)[part]).clear()
        vars(self).clear()

    def after(self, text: str) -> Facts:
        """The facts of the file's text after edits; what other files say of it stays known."""
        facts = Facts(text)
        for name in CARRIED:
            setattr(facts, name, getattr(self, name))
        return facts

    @cached_property
    def names(self) -> Names:
        nodes = Nodes(self.tree, self.scopes.parents, self._by_type)
        return Names(self.tree, nodes, partial(imported_there, self.others) if self.others else None)

    @cached_property
    def scopes(self) -> Scopes:
        return Scopes(self.tree)

    @cached_property
    def devices(self) -> Devices:
        return Devices(self.tree, self.names, self.scopes, partial(found_there, self), partial(is_asked_for_cpu, self))

    @cached_property
    def classes(self) -> Classes:
        return Classes(self)

    @cached_property
    def loops(self) -> Loops:
        from .of_inputs import is_of_inputs

        return Loops(self.tree, self.names, of_inputs=partial(is_of_inputs, self))

    @cached_property
    def placed(self) -> Placed:
        return Placed(self)

    @cached_property
    def tensors(self) -> Tensors:
        return Tensors(self)

    @cached_property
    def worlds(self) -> Worlds:
        return Worlds(self)

    @cached_property
    def alone(self) -> Alone:
        return Alone(self)

    @cached_property
    def askers(self) -> frozenset[str]:
        """Functions and properties that ask for the one process, here or in other files."""
        return askers_of(self) | self.askers_elsewhere

    @cached_property
    def mixing(self) -> Mixing:
        return Mixing(self)

    @cached_property
    def following(self) -> Mixing:
        """The same, of the networks that it calls, too."""
        return Mixing(self, networks=True)

    @cached_property
    def _by_type(self) -> dict[type, list[ast.AST]]:
        by_type: defaultdict[type, list[ast.AST]] = defaultdict(list)
        for node in self.scopes.parents:
            by_type[node.__class__].append(node)
        with_annotated(by_type)
        return by_type

    def walk(self, kind: type[N]) -> list[N]:
        """All nodes of one type."""
        return self._by_type.get(kind, [])  # type: ignore[return-value]

    @cached_property
    def attributes(self) -> dict[str, list[ast.Attribute]]:
        """All attributes by their name, read or set; no name that the file has not."""
        found: dict[str, list[ast.Attribute]] = {}
        for a in self.walk(ast.Attribute):
            found.setdefault(a.attr, []).append(a)
        return found

    @cached_property
    def called(self) -> dict[str, list[ast.Call]]:
        """The calls of what imports give, by its full name."""
        found: dict[str, list[ast.Call]] = {}
        for call in self.walk(ast.Call):
            if (full := self.names.resolve(call.func)) is not None:
                found.setdefault(full, []).append(call)
        return found

    def stores_of(self, name: str) -> list[ast.Attribute]:
        """Where attributes of that name are given values."""
        return [a for a in self.attributes.get(name, ()) if isinstance(a.ctx, ast.Store)]

    def calls_of(self, method: str) -> list[ast.Call]:
        """The calls `x.method(...)`."""
        parents = self.scopes.parents
        named = self.attributes.get(method, ())
        return [c for a in named if isinstance(c := parents[a], ast.Call) and c.func is a]

    def short(self, node: ast.AST, width: int = 60) -> str:
        """The node's source on one line, cut to a readable width."""
        line = " ".join(self.text.get(node).split())
        return line if len(line) <= width else line[: width - 3] + "..."

    @cached_property
    def indentation(self) -> str:
        """One step of the file's own indentation, which new blocks get too."""
        for node in self.tree.body:
            inner = getattr(node, "body", None)
            margin = self.text.margin(inner[0]) if inner else ""
            if margin and not margin.strip():
                return margin
        return "    "

    @cached_property
    def named_by_text(self) -> int:
        """The last line at which globals are read or set by their names in a text: `exec(...)`, `globals()[key]`; or 0.

        Until then a global may have any value, and one that no code reads may be read.
        """
        calls = (c for c in self.walk(ast.Call) if isinstance(c.func, ast.Name) and not c.keywords)
        return max((c.lineno for c in calls if c.func.id in ("exec", "globals")), default=0)  # type: ignore[attr-defined]

    def is_taken_beside(self, name: str) -> bool:
        """Whether a file that lies beside this one, and stays as it is, takes a name of it."""
        return self.beside is not None and self.beside(name)

    @cached_property
    def is_library(self) -> bool:
        """Other files may read any of its names: one does, or only definitions and assignments stand at the top."""
        return self.imported or self.only_defines

    @cached_property
    def only_defines(self) -> bool:
        """Whether nothing but definitions and assignments stands at the top."""
        for s in self.tree.body:
            if isinstance(s, (ast.For, ast.While, ast.With, ast.AsyncFor)):
                return False
            if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call):
                return False
            if isinstance(s, ast.If) and any(n.id == "__name__" for n in walk(s.test, ast.Name)):
                return False
            if self._moves_or_trains(s) or (isinstance(s, ast.If) and any(map(self._moves_or_trains, _in_branches(s)))):
                return False
        return True

    def _moves_or_trains(self, s: ast.stmt) -> bool:
        """`model = Net().to(device)`: a script's own line, not a constant for others."""
        return isinstance(s, ast.Assign) and any(self.devices.moved(n) is not None for n in walk(s.value, ast.Call))

    def in_formatted_string(self, node: ast.AST) -> bool:
        return self._formatted.holds(node)

    def is_fixed(self, node: ast.AST) -> bool:
        """Whether a node stands in an f-string and is to stay as it is."""
        return self._formatted.is_fixed(node)

    @cached_property
    def _formatted(self) -> Formatted:
        return Formatted(self)


def _in_branches(s: ast.If) -> Iterator[ast.stmt]:
    for inner in (*s.body, *s.orelse):
        yield inner
        if isinstance(inner, ast.If):
            yield from _in_branches(inner)


UNASKED: Any = object()


def once_a_file(question: Callable[Concatenate[Facts, P], T]) -> Callable[Concatenate[Facts, P], T]:
    """Keeps the answers to a question of a file's facts and its nodes: neither text nor tree changes."""

    @wraps(question)
    def asked(facts: Facts, *of: P.args, **named: P.kwargs) -> T:
        key = (question, of)
        answer: T = facts.answers.get(key, UNASKED)
        if answer is UNASKED:
            answer = facts.answers[key] = question(facts, *of, **named)
        return answer

    return asked
