"""T11: `async=True` was an argument until `async` became a keyword; a file with it is mended before it is parsed."""

from __future__ import annotations

import io
import re
import tokenize

from ..facts.source import parses
from ..report import Edit

CODE = "PTM603"
# what the argument is called today, by the function that takes it
TODAY = dict.fromkeys(("cuda", "to", "copy_", "type", "cpu"), "non_blocking")
TODAY |= dict.fromkeys(("all_reduce", "broadcast", "reduce", "all_gather", "gather", "scatter", "barrier"), "async_op")


def mend(text: str) -> tuple[str, list[Edit]]:
    """The text with `async=` renamed, when it does not parse without that and does with it; else the text as it is."""
    if not re.search(r"\basync\s*=", text) or parses(text):
        return text, []
    mended, edits = renamed(text)
    return (mended, edits) if edits and parses(mended) else (text, [])


def renamed(text: str) -> tuple[str, list[Edit]]:
    """The text with `async=` renamed, whether or not it parses then."""
    places = list(_places(text))
    starts = [0]
    for line in io.StringIO(text, newline="").readlines():
        starts.append(starts[-1] + len(line))
    mended, edits = text, []
    for row, column, new in sorted(places, reverse=True):
        at = starts[row - 1] + column
        mended = mended[:at] + new + mended[at + len("async") :]
        edits.append(Edit(row, column + 1, CODE, f"`async=` became `{new}=`: async is a word of the language"))
    return mended, sorted(edits)


def _places(text: str) -> list[tuple[int, int, str]]:
    """Row, column and new name of each `async=` among the arguments of a call that is known to take it."""
    found: list[tuple[int, int, str]] = []
    callees: list[str] = []
    before: list[tokenize.TokenInfo] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
            if token.string == "=" and before and before[-1].string == "async" and callees and callees[-1] in TODAY:
                found.append((*before[-1].start, TODAY[callees[-1]]))
            if token.string in ("(", "[", "{") and token.type == tokenize.OP:
                callees.append(before[-1].string if token.string == "(" and before else "")
            elif token.string in (")", "]", "}") and token.type == tokenize.OP and callees:
                callees.pop()
            before = [token]
    except (tokenize.TokenError, SyntaxError):
        pass  # what stands before a fault is told of, too
    return found
