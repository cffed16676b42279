"""A page a rule, made from its class: what `--explain` prints, and what stands in docs/rules/.

`python -m ptmigrate.lint_rules.pages docs/rules` writes the pages; with `--check` it only says which are out of date.
"""

from __future__ import annotations

import os
import sys

from .registry import all_rules
from .rule import Rule, examples

THEMES = {
    "1": "Device",
    "2": "Pickling",
    "3": "Waiting for the device",
    "4": "Distribution",
    "5": "Data and speed",
    "6": "Old idioms",
}
FIXES = {
    "safe": "`ptlint --fix` settles it{}; the fix is safe.",
    "unsafe": "`ptlint --unsafe-fixes` settles it{}; the result may behave differently.",
}


def explain(rule: Rule) -> str:
    """The page of a rule."""
    parts = [f"# {rule.name} ({rule.code})", summary(rule), "## Why", rule.why, "## Example"]
    parts += [_code(text) for text in examples(rule.BAD)]
    parts += ["## Use instead", *(_code(text) for text in examples(rule.GOOD)), "## Fix"]
    by = f" where the codemod `{rule.settled_by}` can" if rule.settled_by else " where the code is simple enough"
    fix = FIXES[rule.fix].format(by) if rule.fix else "By hand."
    parts.append(fix + f" Where the code is meant as it is: `# noqa: {rule.code} - reason`.")
    if rule.lesser:
        parts.append(f"This is a lesser finding: it is shown only with `--select {rule.code}`.")
    if rule.see:
        parts += ["## See also", f"<{rule.see}>"]
    return "\n\n".join(parts) + "\n"


def index() -> str:
    """The page that lists all rules."""
    lines = [
        "# Rules",
        "",
        "Made from the rules themselves; `ptlint --explain CODE` shows the same page in a terminal.",
    ]
    for digit, theme in THEMES.items():
        lines += ["", f"## PTM{digit}xx {theme}", "", "| code | name | what | fix |", "|---|---|---|---|"]
        for rule in all_rules():
            if rule.code[3] == digit:
                name = f"{rule.name} (lesser)" if rule.lesser else rule.name
                lines.append(f"| [{rule.code}]({rule.code}.md) | {name} | {summary(rule)} | {rule.fix or ''} |")
    lines += ["", "PTM001 (unused-noqa) reports a suppression of one of these codes where nothing is found.", ""]
    return "\n".join(lines)


def pages() -> dict[str, str]:
    """File names and their texts."""
    return {"README.md": index(), **{f"{rule.code}.md": explain(rule) for rule in all_rules()}}


def outdated(folder: str) -> list[str]:
    """The names of pages that are missing, old, or of no rule."""
    wanted = pages()
    there = {name for name in os.listdir(folder) if name.endswith(".md")} if os.path.isdir(folder) else set()
    wrong = there ^ set(wanted)
    for name in there & set(wanted):
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            if f.read() != wanted[name]:
                wrong.add(name)
    return sorted(wrong)


def write(folder: str) -> None:
    os.makedirs(folder, exist_ok=True)
    for name in outdated(folder):
        path = os.path.join(folder, name)
        text = pages().get(name)
        if text is None:
            os.remove(path)
            continue
        with open(path, "w", encoding="utf-8", newline="\n") as f:
            f.write(text)


def summary(rule: Rule) -> str:
    """The first line of the rule's file, which says what it finds."""
    doc = sys.modules[type(rule).__module__].__doc__ or ""
    return doc.partition("\n")[0].removeprefix(f"{rule.code}: ").strip()


def _code(text: str) -> str:
    return f"```python\n{text}```"


def main() -> None:
    checking, folders = "--check" in sys.argv, [a for a in sys.argv[1:] if a != "--check"]
    folder = folders[0] if folders else os.path.join("docs", "rules")
    if not checking:
        write(folder)
        return
    wrong = outdated(folder)
    if wrong:
        sys.exit(f"out of date in {folder}: {', '.join(wrong)}; run python -m ptmigrate.lint_rules.pages {folder}")


if __name__ == "__main__":
    main()
