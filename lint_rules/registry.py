"""All rules, and choosing among them by code, prefix or name."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import import_module

from .rule import Rule

# The folder is the first digit of a code; each names its modules, one a rule, in its own `__init__.py`.
FOLDERS = ("device", "pickling", "sync", "distributed", "data", "idioms")


@cache
def all_rules() -> tuple[Rule, ...]:
    """One instance of each rule, by code."""
    found: list[Rule] = []
    for folder in FOLDERS:
        for name in import_module(f".{folder}", __package__).RULES:
            module = import_module(f".{folder}.{name}", __package__)
            found += [
                value()
                for value in vars(module).values()
                if isinstance(value, type)
                and issubclass(value, Rule)
                and value.__module__ == module.__name__
                and "code" in vars(value)
            ]
    return tuple(sorted(found, key=lambda rule: rule.code))


class UnknownRule(ValueError):
    """A code, prefix or name that no rule has."""


def matches(rule: Rule, wanted: str) -> bool:
    return wanted == "ALL" or wanted == rule.name or (wanted.startswith("PTM") and rule.code.startswith(wanted))


def check_known(wanted: Iterable[str]) -> None:
    """Raises UnknownRule with the nearest name for what no rule answers to."""
    for name in wanted:
        if name != "PTM001" and not any(matches(rule, name) for rule in all_rules()):
            import difflib

            known = [r.code for r in all_rules()] + [r.name for r in all_rules()]
            near = difflib.get_close_matches(name, known, 1, 0.5)
            raise UnknownRule(f"no rule {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))


def choose(select: Iterable[str] = (), ignore: Iterable[str] = ()) -> list[Rule]:
    """The rules of `select` (all but the lesser ones where it is empty) without those of `ignore`.

    A longer prefix wins over a shorter one, so that `select PTM301, ignore PTM3` leaves PTM301.
    """
    select, ignore = list(select), list(ignore)
    check_known([*select, *ignore])
    chosen = []
    for rule in all_rules():
        wanted = max((_weight(rule, s) for s in select), default=0 if rule.lesser else 1)
        if rule.lesser and wanted < 5 and "ALL" not in select:
            wanted = 0  # PTM3 does not bring the lesser rules, PTM302 and ALL do
        if wanted and wanted > max((_weight(rule, i) for i in ignore), default=0):
            chosen.append(rule)
    return chosen


def _weight(rule: Rule, wanted: str) -> int:
    if not matches(rule, wanted):
        return 0
    return 1 if wanted == "ALL" else len(rule.code) if wanted == rule.name else len(wanted)
