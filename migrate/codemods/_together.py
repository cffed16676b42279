"""All regions of a file as one text for libcst: it reads, visits and writes once, however many they are.

Regions stand between marks, which tell them apart again. Those of one block follow each other, in one `if`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from ..facts.script import Facts
from ._form_feeds import FormFeeds
from ._insertions import with_added
from ._kept_lines import KeptLines
from ._pass import rewritten
from ._regions import Region
from ._removed import not_read
from .base import Change, Key


def rewritten_regions(
    facts: Facts, regions: Sequence[Region], wanted: Mapping[Key, list[Change]], added: Sequence[tuple[int, int, str]]
) -> list[str]:
    """What each region becomes, with the lines added in it; NotFound where a planned node is not there."""
    newline, mark = facts.text.newline, _mark(facts.text.text)
    feeds = FormFeeds(facts, mark.replace("between", "feed"))
    kept = KeptLines(facts, mark.replace("between", "kept"))
    keys = sorted(wanted, key=lambda key: key[1:3])
    starts = [key[1] for key in keys]
    sheet: list[str] = []
    line, marks, margin = 1, 0, None
    if next((region.margin for region in regions if region.margin), facts.indentation) != facts.indentation:
        sheet += [f"if 1:{newline}{facts.indentation}{mark}{newline}"]  # libcst is to see the file's own indentation
        line, marks = 3, 1
    own: dict[Key, list[Change]] = {}
    pieces: list[tuple[int, int]] = []  # the mark that a region follows, and how much before the next is not its own
    for region in regions:
        if region.margin != margin:
            margin = region.margin
            head = f"if 1:{newline}" if margin else ""
            sheet += [head, f"{margin}{mark}{newline}"]
            line, marks = line + 1 + bool(head), marks + 1
        start, stop = facts.text.line_span(region.first, region.last)
        edits = [*added, *feeds.edits(region.first, region.last)]
        more = [(facts.text.line_of(at), new.count(newline)) for at, _, new in edits if start <= at < stop]
        here = keys[bisect_left(starts, region.first) : bisect_left(starts, region.last + 1)]
        read = dict(zip(here, here, strict=True))
        for key, edit, instead, fewer in not_read(facts, region, here, wanted):
            edits.append(edit)
            more.append(fewer)
            read[key] = instead
        edits += kept.edits(here, wanted)
        body = with_added(facts.text.text, start, stop, edits)
        for key, (kind, first, column, last, end) in read.items():
            inside = last <= region.last  # or it ends with the block, for which the stub stands
            a, b = (
                n + line - region.first + sum(new for at, new in more if at <= n)
                for n in (first, min(last, region.last))
            )
            b, end = (b, kept.end(last, feeds.column(last, end))) if inside else (b + 1, len(region.stub))
            own[kind, a, feeds.column(first, column), b, end] = wanted[key]
        between = f"{region.stub}{newline}" if region.stub else "" if body.endswith(("\n", "\r")) else newline
        sheet += [body, f"{between}{margin}{mark}{newline}"]
        pieces.append((marks, len(between) + len(margin)))
        line += region.last - region.first + 2 + sum(new for _, new in more) + bool(region.stub)
        marks += 1
    written = kept.back(rewritten("".join(sheet), own)).split(mark)
    return [feeds.back(written[n][len(newline) : len(written[n]) - rest]) for n, rest in pieces]


def _mark(text: str) -> str:
    """A name that the text has not."""
    mark = "_between"
    while any(mark.replace("between", word) in text for word in ("between", "feed", "kept")):
        mark += "_"
    return mark
