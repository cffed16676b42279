"""What prints but `print(x)`: its other names, `log = print`, and what libraries have for it, `click.echo(x)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ..facts.arguments import argument
from ..facts.script import Facts

SHOWN = ("sys.stdout", "sys.stderr")
LEVELS = "trace debug info success warning error critical exception log".split()
# statements that print
PRINTS = {
    *(f"pprint.{n}" for n in ("pprint", "pp")),
    *(f"{n}.write" for n in ("sys.stdout", "tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.std.tqdm")),
    *(f"{library}.{n}" for library in ("click", "typer") for n in ("echo", "secho")),
    *(f"rich.{n}" for n in ("print", "print_json")),
    "termcolor.cprint",
    *(f"loguru.logger.{n}" for n in LEVELS),
}
# methods by which the objects of libraries print
BY_METHODS = {"tqdm": ("write",), "rich": ("print", "print_json", "log", "rule")}


def printers(facts: Facts) -> Iterator[ast.Name]:
    """Where Python's own `print` is read and not called there."""
    if "print" not in facts.text.text:
        return
    for name in facts.walk(ast.Name):
        if name.id != "print" or not isinstance(name.ctx, ast.Load):
            continue
        up = facts.scopes.parents.get(name)
        called = isinstance(up, ast.Call) and (up.func is name or not shows(up))
        if called or isinstance(up, (ast.Attribute, ast.Compare)) or facts.in_formatted_string(name):
            continue
        if _is_builtin(facts, name):
            yield name


def shows(call: ast.Call) -> bool:
    """Whether what is printed is for the terminal: no `file=` of the script's own."""
    where = next((k.value for k in call.keywords if k.arg == "file"), None)
    return where is None or ast.unparse(where) in SHOWN


def _is_builtin(facts: Facts, name: ast.Name) -> bool:
    """No other is bound by that name, but for what the module makes of it: `print = partial(print, flush=True)`."""
    home = facts.scopes.scope_of(name).lookup("print")
    if home is None:
        return True
    stores = [facts.scopes.parents.get(s) for s in home.stores.get("print", ())]
    within = facts.scopes.statement_of(name)
    return home is facts.scopes.module and stores == [within] and isinstance(within, ast.Assign)


def prints_by_object(facts: Facts, call: ast.Call) -> bool:
    """`bar.write(text)` of `bar = tqdm(loader)`, whether the bar is shown or not; `console.print(text)` of rich's."""
    f = call.func
    if not isinstance(f, ast.Attribute) or not any(
        f.attr in BY_METHODS[n] and n in facts.text.text for n in BY_METHODS
    ):
        return False
    made = _made(facts, f.value)
    libraries = {(facts.names.resolve(m.func) or "").partition(".")[0] for m in made or ()}
    return bool(made) and all(f.attr in BY_METHODS.get(n, ()) for n in libraries)


def _made(facts: Facts, e: ast.expr, deep: int = 0) -> list[ast.Call] | None:
    """The calls that make an object, through names, attributes and parameters; None where not all show."""
    if isinstance(e, ast.Call):
        return [e]
    values: Sequence[ast.expr | None] | None = None
    if isinstance(e, ast.Name):
        home = facts.scopes.scope_of(e).lookup(e.id)
        if home is not None and e.id in home.params and isinstance(home.node, ast.FunctionDef):
            values = _given(facts, home.node, e.id)
        elif home is not None:
            values = facts.devices.assigned(e.id, home)
    elif isinstance(e, ast.Attribute) and ast.unparse(e.value) == "self":
        stores = [facts.scopes.parents.get(a) for a in facts.stores_of(e.attr)]
        values = [s.value if isinstance(s, ast.Assign) else None for s in stores]
    if not values or deep > 3:
        return None
    found = [_made(facts, v, deep + 1) if v is not None else None for v in values]
    return None if None in found else [call for calls in found for call in calls or ()]


def _given(facts: Facts, f: ast.FunctionDef, name: str) -> list[ast.expr | None]:
    """What the calls of a function, or of a class for its constructor, give a parameter."""
    holder = facts.classes.holder(f)
    if holder is not None and f.name == "__init__":
        calls = [c for c in facts.walk(ast.Call) if isinstance(c.func, ast.Name) and c.func.id == holder.name]
    else:
        calls = facts.loops.calls_of(f)
    return [argument(c, f, name, bound=holder is not None) for c in calls]
