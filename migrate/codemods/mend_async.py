"""T11: `async=True` was an argument until `async` became a keyword; a file with it is mended before it is parsed."""

from __future__ import annotations

import io
import re
import tokenize
from itertools import pairwise

from ..facts.source import parses
from ..report import Edit

CODE = "PTM603"
START = tokenize.TokenInfo(tokenize.NL, "", (1, 0), (1, 0), "")
NAMED = re.compile(r"\basync\s*[=,)]")  # an argument, a parameter
# what the argument is called today, by the function that takes it
TODAY = dict.fromkeys(("cuda", "to", "copy_", "type", "cpu"), "non_blocking")
TODAY |= dict.fromkeys(("all_reduce", "broadcast", "reduce", "all_gather", "gather", "scatter", "barrier"), "async_op")


def mend(text: str) -> tuple[str, list[Edit]]:
    """The text with `async=` renamed, when it does not parse without that and does with it; else the text as it is."""
    if "async" not in text or not NAMED.search(text) or parses(text):
        return text, []
    mended, edits = renamed(text)
    return (mended, edits) if edits and parses(mended) else (text, [])


def renamed(text: str) -> tuple[str, list[Edit]]:
    """The text with `async=` renamed, whether or not it parses then."""
    if "async" not in text:
        return text, []
    places = sorted({*_places(text), *_own_places(text)})
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


def _own_places(text: str) -> list[tuple[int, int, str]]:
    """Those of `def to_gpu(x, async=True):`, of what its body reads by that name, and of calls that give it."""
    if not NAMED.search(text) or re.search(r"\bnon_blocking\b", text):
        return []
    try:
        tokens = [START, *tokenize.generate_tokens(io.StringIO(text, newline="").readline)]
    except (tokenize.TokenError, SyntaxError):
        return []
    names = _takers(tokens)
    found: list[tuple[int, int, str]] = []
    bodies: list[int] = []  # how deep those of such functions stand
    callees, depth, head = [""], 0, False
    for last, token, following in zip(tokens, tokens[1:], tokens[2:], strict=False):
        depth += (token.type == tokenize.INDENT) - (token.type == tokenize.DEDENT)
        if token.type == tokenize.DEDENT and bodies and depth < bodies[-1]:
            bodies.pop()
        elif last.string == "def":
            head = token.string in names
        elif token.type == tokenize.NEWLINE and head:
            bodies += [depth + 1] if following.type == tokenize.INDENT else []
            head = False
        elif token.type == tokenize.OP and token.string in "([{":
            callees.append(last.string if token.string == "(" else "")
        elif token.type == tokenize.OP and token.string in ")]}" and len(callees) > 1:
            callees.pop()
        elif token.string == "async" and last.string != "." and following.string not in ("def", "for", "with"):
            given = following.string == "=" and callees[-1] and last.string in ("(", ",")
            if callees[-1] in names or ((bodies or head) and not given):
                found.append((*token.start, "non_blocking"))
    return found


def _takers(tokens: list[tokenize.TokenInfo]) -> set[str]:
    """The functions of a file that have a parameter of that name."""
    names, at, depth = set(), "", 0
    for last, token in pairwise(tokens):
        if last.string == "def":
            at, depth = token.string, 0
        elif at and token.type == tokenize.OP and token.string in "([{)]}":
            depth += 1 if token.string in "([{" else -1
            at = at if depth else ""
        elif at and depth == 1 and token.string == "async" and last.string in ("(", ",", "*"):
            names.add(at)
    return names
