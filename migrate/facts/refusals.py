"""Scripts that are distributed in a way of their own, which nothing here can carry, and what carries others already."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .arguments import argument_at
from .loops import OPTIMIZER_NAME
from .nodes import walk
from .started import functions_from, makes_process, names_read, started

if TYPE_CHECKING:
    from .script import Facts

# calls by the start of their full name, and why a script that makes them stays as it is
WAYS_OF_THEIR_OWN = {
    "torch.distributed.rpc.": "its processes call one another's functions (torch.distributed.rpc), each with a part of "
    "its own to play: there is no plain script of one process that it could become",
    "torch.distributed.fsdp.": "it shards its model by hand (FSDP): the wrapping says where each parameter lives; "
    'write it for one device, and Trainer(strategy="fsdp") shards it',
    "torch.distributed._composable.fsdp.": "it shards its model by hand (FSDP): write it for one device, and "
    'Trainer(strategy="fsdp") shards it',
    "torch.distributed.pipelining.": "it cuts its model into stages by hand (torch.distributed.pipelining)",
    "torch.distributed.pipeline.": "it cuts its model into stages by hand (torch.distributed.pipeline)",
    "torch.distributed.tensor.": "it places parts of its tensors on a mesh of devices by hand (DTensor)",
    "torch.distributed.device_mesh.": "it lays its devices out as a mesh by hand",
    "deepspeed.initialize": "DeepSpeed's engine has its model and its steps; write the loop for one device, and "
    'Trainer(strategy="deepspeed") trains it',
    "torch_xla.distributed.": "torch_xla starts and feeds its processes",
    "ray.train.": "Ray starts and feeds its processes",
}  # fmt: skip
ALWAYS = ("torch.distributed.rpc.",)  # even where the call stands under a condition: ranks differ in what they play
CARRIERS = {
    "accelerate.Accelerator": "Accelerate",
    "lightning.Fabric": "Lightning Fabric",
    "lightning.fabric.Fabric": "Lightning Fabric",
    "lightning_fabric.Fabric": "Lightning Fabric",
    "ignite.engine.Engine": "Ignite",
    "ignite.engine.create_supervised_trainer": "Ignite",
    "composer.Trainer": "Composer",
}
# what a file that is given one calls it: `accelerator.backward(loss)`
ENGINES = {"accelerator": "Accelerate", "fabric": "Lightning Fabric", "booster": "ColossalAI", "engine": "an engine",
           "model_engine": "DeepSpeed"}  # fmt: skip


@dataclass(frozen=True)
class Refusal:
    node: ast.AST
    reason: str


def refusal(facts: Facts) -> Refusal | None:
    """Why a script is left as it is; None when it is not."""
    told = any(full.startswith(tuple(WAYS_OF_THEIR_OWN)) for full in facts.called)
    for call in facts.walk(ast.Call) if told else ():
        full = facts.names.resolve(call.func) or ""
        for start, why in WAYS_OF_THEIR_OWN.items():
            if full.startswith(start) and (start in ALWAYS or not is_optional(facts, call)):
                return Refusal(call, why)
    return _own_processes(facts)


def carrier(facts: Facts) -> str | None:
    """The library that already carries the script's loop to any device, if there is one."""
    for call in facts.walk(ast.Call):
        full = facts.names.resolve(call.func) or ""
        if full in CARRIERS or (call.args and _engine(call.func)):
            return CARRIERS.get(full) or _engine(call.func)
    return None


def _engine(func: ast.expr) -> str | None:
    """Whose `backward` it is, given a loss."""
    owner = func.value if isinstance(func, ast.Attribute) and func.attr == "backward" else None
    name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
    return ENGINES.get(name.lstrip("_").lower())


def takes_gradients(call: ast.Call) -> bool:
    """`optimizer.backward(loss)`: an optimizer for half precision that takes the gradients itself."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == "backward" else None
    name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
    return bool(call.args) and bool(OPTIMIZER_NAME.search(name))


def is_optional(facts: Facts, call: ast.Call) -> bool:
    """Whether the call stands under a condition: one of several ways that the script knows."""
    return any(isinstance(up, (ast.If, ast.IfExp)) and not _is_main(up) for up in facts.scopes.ancestors(call))


def _is_main(branch: ast.If | ast.IfExp) -> bool:
    return any(n.id == "__name__" for n in walk(branch.test, ast.Name))


def _own_processes(facts: Facts) -> Refusal | None:
    """`Process(target=train)`, where train() trains: Hogwild, or groups made by hand."""
    shared = any(isinstance(c.func, ast.Attribute) and c.func.attr == "share_memory" for c in facts.walk(ast.Call))
    written_out = () if shared else [s.call for s in started(facts)]
    for call in facts.walk(ast.Call):
        if call in written_out or not makes_process(facts, call):
            continue
        target = argument_at(call, "target", 1)
        given = argument_at(call, "args", 3)
        trains = any(_trains(facts, name) for part in (target, given) if part is not None for name in names_read(part))
        if shared and (trains or isinstance(target, (ast.Name, ast.Attribute))):
            return Refusal(
                call,
                "several processes train one model in shared memory without waiting for one another (Hogwild): no "
                "order of steps is the same run; write the loop for one device",
            )
        if trains:
            return Refusal(call, "it starts the processes that train by hand; write the loop for one device")
    return None


def _trains(facts: Facts, name: str) -> bool:
    """Whether a function of this file, or one that it names, calls backward()."""
    found = (n for f in functions_from(facts, name, names_read) for n in walk(f))
    return any(isinstance(n, ast.Attribute) and n.attr == "backward" for n in found)
