"""Training and evaluation mode: whose the switches are in the result, the Trainer's or the script's own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from ..facts.arguments import given_to
from ..facts.loops import OPTIMIZER_NAME
from ..facts.nodes import walk
from ..facts.scopes import Scope
from ..facts.script import Facts
from ..facts.spelled import spelled
from .chunks import Chunk, given_arguments
from .nodes import is_call_of, is_mode_call, local_function
from .recipe import CannotLift, DataPass, Recipe

MODES = ("train", "eval")
LEFT_ON = "the script leaves the model in evaluation mode after the first evaluation; so does the result"
LIBRARIES = ("torch", "torchvision", "torchinfo", "torchsummary", "wandb", "copy")  # leave a model's mode as it is
# layers that do in training what they do not in evaluation, by their names
WITH_MODES = re.compile(
    r"BatchNorm|InstanceNorm|[Dd]rop_?(out|path|Path|block|Block)|resnet|training$|^(torchvision\.models|timm|transformers)\b"
)
NO_NETWORKS = ("torch.optim.", "torch.utils.data.", "torchvision.datasets.")
SAME_IN_BOTH = ("parameters", "named_parameters", "state_dict", "load_state_dict", "to", "cpu", "float", "zero_grad")


def mode_hooks(facts: Facts, recipe: Recipe, chunks: list[Chunk]) -> tuple[dict[str, list[str]], str | None]:
    """The hooks that turn the Trainer's switches off, where the script's modes differ from its; and what is told."""
    e, t = recipe.evaluate, recipe.train
    if e is None:
        return {}, None
    dropped = {s for c in chunks for s in drops_mode(facts, recipe, c)}
    evals = [s for c in chunks if c.passing is e for s in c.statements if mode_call(facts, s, "eval")]
    trains = [s for c in chunks for s in c.statements if mode_call(facts, s, "train")]
    trains += [s for c in chunks if c.passing is t or c.passing is None for s in c.statements if s in dropped]
    says = LEFT_ON if evals and not trains else None
    if dropped.issuperset(evals) and evals:
        return ({"on_validation_model_train": ["pass"]} if says else {}), says
    if not any(facts.calls_of(mode) for mode in MODES):
        return {"on_validation_model_eval": ["pass  # the script evaluates in the mode that it trains in"]}, None
    own = ["pass  # the script sets its models' modes itself"]
    return {"on_validation_model_eval": own, "on_validation_model_train": ["pass"]}, says


def own_modes(facts: Facts, recipe: Recipe, chunks: list[Chunk], networks: Iterable[str]) -> bool:
    """Whether the script's switches are not those of a Trainer, which puts all that the Module has in one mode and
    back: a network of an evaluation that stays in training mode, or does not come back from evaluation.

    `networks`: those of the Module, as the trunk calls them.
    """
    if recipe.evaluate is None:
        return False
    evals = _switched(facts, recipe.evaluate, [c for c in chunks if c.passing is recipe.evaluate], "eval")
    trains = {name for c in chunks for name in _switched(facts, c.passing, [c], "train")}
    return bool(evals) and ((bool(trains) and not evals <= trains) or not evals.issuperset(networks))


def _switched(facts: Facts, passing: DataPass | None, chunks: list[Chunk], mode: str) -> set[str]:
    """The trunk's names of what the chunks of a pass put in a mode."""
    found = {name for c in chunks for s in c.statements if (name := mode_call(facts, s, mode))}
    given = given_arguments(passing.function, passing.call) if passing and passing.function and passing.call else {}
    values = (given.get(name) for name in found)
    return {v.id if isinstance(v, ast.Name) else name for name, v in zip(found, values, strict=True)}


def has_modes(facts: Facts, made: ast.Call) -> bool:
    """Whether a network may do in training what it does not in evaluation, for all that its class shows."""
    full = facts.names.resolve(made.func) or ast.unparse(made.func)
    if full.endswith(("Loss", "Criterion")):
        return False
    if full.startswith("torch.nn."):
        return bool(WITH_MODES.search(ast.unparse(made))) or "dropout" in {k.arg for k in made.keywords}
    here = any(c.name == full for c in facts.walk(ast.ClassDef))
    return not here or any(map(WITH_MODES.search, words(facts)))


def words(facts: Facts) -> list[str]:
    """The names and attributes of a file, those of its imports and arguments too."""
    imports = [f"{s.module}.{a.name}" for s in facts.walk(ast.ImportFrom) for a in s.names]
    imports += [a.name for s in facts.walk(ast.Import) for a in s.names]
    found = [n.id for n in facts.walk(ast.Name)] + [*facts.attributes]
    found += [k.arg or "" for call in facts.walk(ast.Call) for k in call.keywords]
    return found + imports


def evaluates_training(facts: Facts, recipe: Recipe) -> CannotLift | None:
    """Why every process needs all batches of an evaluation: nothing before its end turns training mode off, and a batch
    may then draw random numbers and change running statistics.
    """
    e = recipe.evaluate
    if e is None:
        return None
    after = {n for s in after_the_loop(facts, recipe) for n in walk(s)}
    for call in facts.walk(ast.Call):
        if _changes_mode(call) and call not in after:
            return None
    files = [facts, *(there for o in facts.others if (there := o.facts()) is not None)]
    if not any(WITH_MODES.search(word) for there in files for word in words(there)):
        return None
    return CannotLift(e.loop, "the script evaluates in training mode, where a batch may change what the model holds")


def drops_mode(facts: Facts, recipe: Recipe, chunk: Chunk) -> list[ast.stmt]:
    """`model.train()` and `model.eval()` statements that the Trainer makes around its validation.

    They stay where nothing validates, and where the script may change modes elsewhere too: before the loop, in another
    function than the one that made the model, in an evaluation that stays, in another file that gets the model. And
    where the model works on after the loop, in the mode that the loop left it in; and where the switches are not
    those of a Trainer.
    """
    e = recipe.evaluate
    found = {s: name for s in chunk.statements for mode in MODES if (name := mode_call(facts, s, mode))}
    if not found or e is None or recipe.own_modes:
        return []
    models = {*found.values(), *_given_to(chunk, set(found.values()))}
    around = {recipe.epoch_loop, *((e.function,) if e.function is not None else ())}
    lifted = {s.value for s in e.before if isinstance(s, ast.Expr) and any(mode_call(facts, s, mode) for mode in MODES)}
    trunk = facts.scopes.scope_of(recipe.epoch_loop)
    homes = [facts.scopes.module, *([trunk] if all(name in trunk.stores for name in found.values()) else [])]
    uses = facts.devices.uses_of_function(e.function) if e.function is not None else ()
    if any(_runs_before(facts, recipe, use) for use in uses):
        return []  # it leaves the model in its mode, above the loop
    for call in facts.walk(ast.Call):
        if call in lifted or not (_changes_mode(call) or _hands_away(facts, call, models)):
            continue
        after = call.lineno > (recipe.epoch_loop.end_lineno or 0) and facts.scopes.scope_of(call) in homes
        if not after or any(up in around for up in facts.scopes.ancestors(call)):
            return []
    names = {*models, *(own for model in models for own in _own_names(facts, trunk, model))}
    return [] if any(_works_on(facts, recipe, name) for name in names) else list(found)


def _runs_before(facts: Facts, recipe: Recipe, use: ast.AST) -> bool:
    """Whether a use of the evaluation's function is none of the epochs, nor below them, nor one that ends the run."""
    ups = list(facts.scopes.ancestors(use))
    if recipe.epoch_loop in ups or getattr(use, "lineno", 0) > (recipe.epoch_loop.end_lineno or 0):
        return False
    inside: ast.AST = use
    for up in ups:
        if isinstance(up, ast.If):
            block = up.body if inside in up.body else up.orelse
            if up in facts.scopes.ancestors(recipe.epoch_loop) or _ends(facts, block):
                return False
        inside = up
    return True


def _ends(facts: Facts, block: list[ast.stmt]) -> bool:
    """`if args.evaluate: test(); return`"""
    return bool(block) and (isinstance(block[-1], ast.Return) or facts.worlds.reached.refuses(block))


def mode_call(facts: Facts, s: ast.stmt, mode: str) -> str | None:
    """The name of a network for `model.train()`: a data set and an optimizer may have such methods of their own."""
    name = is_mode_call(s, mode)
    if name is None or OPTIMIZER_NAME.search(name):
        return None
    scope = facts.scopes.scope_of(s).lookup(name)
    values = (facts.devices.assigned(name, scope) or []) if scope is not None else []
    if scope is not None and name in scope.params:
        values = [*values, *(facts.devices.given(scope, name) or [])]
    for made in values:
        held = facts.scopes.scope_of(made).lookup(made.id) if isinstance(made, ast.Name) else None
        more = facts.devices.assigned(made.id, held) if isinstance(made, ast.Name) and held is not None else None
        if any(_is_no_network(facts, v) for v in (made, *(more or ()))):
            return None
    return name


def _is_no_network(facts: Facts, made: ast.expr) -> bool:
    """`Data(args)`, of a plain class of this file or one of torch's data sets and optimizers."""
    if not isinstance(made, ast.Call):
        return False
    full = facts.names.resolve(made.func)
    if full is not None:
        return full.startswith(NO_NETWORKS)
    own = [c for c in facts.walk(ast.ClassDef) if c.name == getattr(made.func, "id", "")]
    if len(own) != 1 or own[0] in facts.classes.modules:
        return False
    bases = [facts.names.resolve(b) or "" for b in own[0].bases]
    return all(b.startswith(NO_NETWORKS) for b in bases)


def _own_names(facts: Facts, trunk: Scope, name: str) -> list[str]:
    """What an object calls the model that a name of the trunk is: `model = self.model`."""
    return [ast.unparse(v) for v in facts.devices.assigned(name, trunk) or () if isinstance(v, ast.Attribute)]


def _given_to(chunk: Chunk, parameters: set[str]) -> set[str]:
    """What the call of the pass gives these parameters: the names of the models where the loop stands."""
    p = chunk.passing
    if p is None or p.function is None or p.call is None:
        return set()
    given = given_arguments(p.function, p.call)
    return {v.id for name, v in given.items() if name in parameters and isinstance(v, ast.Name)}


def _works_on(facts: Facts, recipe: Recipe, model: str) -> bool:
    """Whether a model is called after the loop before the script sets its mode."""
    for s in after_the_loop(facts, recipe):
        if _sets(s, model):
            return False
        for n in walk(s, ast.Call):
            if _may_call(facts, n, model):
                return True
    return False


def after_the_loop(facts: Facts, recipe: Recipe) -> Iterator[ast.stmt]:
    """The statements that run after the loop, in its function."""
    at: ast.AST = recipe.epoch_loop
    while not isinstance(at, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)):
        up = facts.scopes.parents[at]
        for field in ("body", "orelse", "finalbody"):
            block = getattr(up, field, None)
            if isinstance(block, list) and at in block:
                yield from block[block.index(at) + 1 :]
        at = up


def _may_call(facts: Facts, call: ast.Call, model: str) -> bool:
    """`model(x)`, `model.generate(x)`, `predict(model, x)`; not by a function here that sets the mode itself."""
    f = call.func
    if _is(f, model):
        return True
    if isinstance(f, ast.Attribute) and _is(f.value, model):
        return f.attr not in SAME_IN_BOTH
    given = given_to(call)
    local = local_function(facts, f) if isinstance(f, ast.Name) else None
    if local is not None and any(is_call_of(n, m) for s in local.body for n in walk(s, ast.Call) for m in MODES):
        return False
    reads = local is not None and model in facts.scopes.by_node[local].loads
    full = facts.names.resolve(f) or ""
    return (any(_is(a, model) for a in given) and full.split(".")[0] not in LIBRARIES) or reads


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and spelled(node) == name


def _sets(s: ast.stmt, model: str) -> bool:
    """`model.eval()`, `model.train(False)`, or another model of the name."""
    if isinstance(s, ast.Assign):
        return any(_is(t, model) for t in s.targets)
    f = s.value.func if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) else None
    return isinstance(f, ast.Attribute) and f.attr in MODES and _is(f.value, model)


def _changes_mode(call: ast.Call) -> bool:
    """`x.eval()`, `x.train(False)`, `x.train(mode=...)`."""
    f = call.func
    if not isinstance(f, ast.Attribute) or f.attr not in MODES:
        return False
    given = bool(call.args or call.keywords)
    return given is (f.attr == "train")


def _hands_away(facts: Facts, call: ast.Call, models: set[str]) -> bool:
    """Whether a function of another file gets one of the models: what it does with its mode does not show here."""
    full = facts.names.resolve(call.func)
    if full is None or full.split(".")[0] in LIBRARIES:
        return False
    given = (*call.args, *(k.value for k in call.keywords))
    return any(isinstance(a, ast.Name) and a.id in models for a in given)
