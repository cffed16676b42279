"""What a script does by hand to run in several processes: groups, ranks, wrappers, reductions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property
from itertools import takewhile

from . import horovod_names
from .arguments import argument, argument_at
from .environment import ASKING, LAUNCHED_WITH, NAMES, demands, is_environment, meeting_points
from .gathered import ALONE, ALONE_VALUES, TO_ONE
from .handles import statements_of
from .nodes import walk
from .process_names import CARDS, LAUNCHED, RANKS, WORLDS, D
from .runtime_names import runtime_name
from .script import Facts, once_a_file
from .started import Started, started
from .world import PEERS, PLAIN
from .wrapped import CONVERTERS, WRAPPERS, WrappedModels, last_name

CHOOSE_CARD = {"torch.cuda.set_device", "torch.xpu.set_device", "torch.accelerator.set_device_index",
               "torch.accelerator.set_device_idx"}  # fmt: skip
# statements without which a plain script does the same
STATEMENTS = {
    D + n
    for n in (
        "init_process_group", "destroy_process_group", "barrier", "all_reduce", "reduce", "broadcast",
        "monitored_barrier", "broadcast_object_list",
    )
} | {"torch.multiprocessing.set_start_method", *CHOOSE_CARD, *horovod_names.STATEMENTS}  # fmt: skip
GATHERS = {
    D + n
    for n in (
        "all_gather", "gather", "scatter", "all_gather_object", "all_to_all", "send",
        "recv", "isend", "irecv", "new_group", "reduce_scatter", "all_gather_into_tensor", "gather_object",
        "scatter_object_list", "all_to_all_single", "reduce_scatter_tensor", "batch_isend_irecv", "P2POp",
        "send_object_list", "recv_object_list", "all_gather_coalesced", "all_reduce_coalesced", "_all_gather_base",
        "_reduce_scatter_base", "new_subgroups", "new_subgroups_by_enumeration", "split_group",
    )
}  # fmt: skip
# these divide optimizers and gradients over a process group of the script's own
SHARDED = ("fairscale.optim.", "fairscale.nn.data_parallel.")
SPAWN = {"torch.multiprocessing.spawn"}
SAMPLER = "torch.utils.data.DistributedSampler"
PROCESSES = re.compile(r"distributed|DistributedSampler|DataParallel|\.spawn\b|apex|horovod")
RANK_NAME = re.compile(r"(local_|global_|proc_|process_)?rank$|^gpu$|^local_?rank$", re.IGNORECASE)
WORLD_NAME = re.compile(
    r"^(world_?size|nprocs?|n_?gpus?(_per_node)?|ngpus|num_gpus|n_procs|num_procs|gpus_per_node|WORLD_SIZE)$"
)


def mentions_processes(text: str) -> bool:
    return PROCESSES.search(text) is not None


WITH_OTHERS = (*(f"{D}{n}." for n in ("rpc", "fsdp", "pipelining", "tensor")), "deepspeed.")
ALONE_TOO = ("deepspeed.profiling.", "deepspeed.ops.", "deepspeed.accelerator.")  # these need no other process
CHECKPOINTS = "deepspeed.checkpointing."  # what they compute again is each process's own


@once_a_file
def distribution_of(facts: Facts) -> Distribution:
    """What a file says of processes, worked out once."""
    return Distribution(facts)


class Distribution(WrappedModels):
    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        calls = facts.walk(ast.Call)
        full = {c: facts.names.resolve(c.func) for c in calls}
        self.full = full
        self.wrapped = [
            c for c in calls if full[c] in WRAPPERS | CONVERTERS and argument_at(c, "module", 0) is not None
        ]
        self.spawns = [c for c in calls if full[c] in SPAWN and argument_at(c, "fn", 0) is not None]
        self.started = list(started(facts))
        inits = [c for c in calls if full[c] == D + "init_process_group"]
        ddp = [c for c in self.wrapped if full[c] not in CONVERTERS | {"torch.nn.DataParallel"}]
        # whose module talks itself is run by a Trainer that starts its processes: a wrapper beside it is not the start
        talks = bool(facts.classes.run_by_trainer) and any(f is not None and f.startswith(D) for f in full.values())
        self.horovod = horovod_names.Horovod(facts, full)
        # a sampler asks the group of processes for its share, which a launcher's variables alone say is there
        shared = SAMPLER in facts.called and NAMES.search(facts.text.text) and not facts.classes.run_by_trainer
        started_here = inits or self.spawns or (ddp and not talks) or self.horovod.by_hand or shared
        self.by_hand = facts.by_hand or bool(started_here)

    def blocking(self) -> Iterator[ast.expr]:
        """Calls that have no plain form, unless they only run when there are several processes."""
        for c, full in self.full.items():
            if full is not None and full.startswith("horovod."):
                continue
            if full in ALONE and isinstance(self.facts.scopes.parents.get(c), ast.Expr) and self.alone(c) is not None:
                continue
            if self.only_sends(c):
                continue
            exotic = (
                full is not None
                and not full.startswith(CHECKPOINTS)
                and not full.startswith(ALONE_TOO)
                and (full in GATHERS or full.startswith(WITH_OTHERS))
            )
            exotic = exotic or (self.by_hand and full is not None and full.startswith(SHARDED))
            used_value = full in STATEMENTS and statements_of(self.facts, c) is None
            if exotic or used_value:
                yield c
        yield from self.horovod.blocking()

    def alone(self, call: ast.Call) -> str | None:
        """The source of what a gathering call does among one process."""
        given = self.gathered(call)
        if given is not None:
            return ALONE[self.full[call] or ""][4].format(*map(self.facts.text.get, given))
        if self.full[call] in ALONE:
            return None
        new = ALONE_VALUES.get(self.full[call] or "")
        return new.format(self.facts.text.get(call.args[0])) if new is not None and call.args else None

    def gathered(self, call: ast.Call) -> tuple[ast.expr, ast.expr] | None:
        """The place of a gathering call's result, and what goes there."""
        place = ALONE.get(self.full[call] or "")
        if place is None:
            return None
        result, value = argument_at(call, place[0], place[1]), argument_at(call, place[2], place[3])
        if isinstance(result, ast.IfExp) and self._is_rank_zero(result.test):
            result = result.body
        alone = isinstance(result, (ast.Name, ast.Attribute))
        return (result, value) if alone and result is not None and value is not None else None

    def only_sends(self, call: ast.Call) -> bool:
        """`dist.gather(x)`, by which all but rank 0 send what that one gathers."""
        place = ALONE[self.full[call] or ""] if self.full[call] in TO_ONE else None
        given = argument_at(call, place[0], place[1]) if place is not None else None
        unread = isinstance(self.facts.scopes.parents.get(call), ast.Expr)
        return place is not None and unread and (given is None or is_none(given))

    def is_for_one(self, call: ast.Call) -> bool:
        """Whether only rank 0 has a list for what is gathered: `parts = [...] if rank == 0 else None`."""
        given = self.gathered(call) if self.full[call] in TO_ONE else None
        if given is None:
            return False
        if isinstance(self.facts.scopes.parents.get(given[0]), ast.IfExp):
            return True
        scope = self.facts.scopes.scope_of(given[0])
        made = self.facts.devices.assigned(given[0].id, scope) if isinstance(given[0], ast.Name) else None
        return any(is_none(n) for v in made or () for n in (v, getattr(v, "body", v), getattr(v, "orelse", v)))

    def _is_rank_zero(self, test: ast.expr) -> bool:
        asks = isinstance(test, ast.Call) and runtime_name(self.facts, test.func) == "is_global_zero"
        return asks or self.facts.worlds.by_rank(test) is True

    # -- statements ------------------------------------------------------------------------------------------

    def divides_batch(self, s: ast.Assign) -> bool:
        """`args.batch_size = int(args.batch_size / ngpus_per_node)`, workers likewise."""
        if len(s.targets) != 1:
            return False
        value = s.value
        if (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Name)
            and value.func.id == "int"
            and len(value.args) == 1
        ):
            value = value.args[0]
        if not (isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Div, ast.FloorDiv))):
            return False
        target = ast.unparse(s.targets[0])
        left = value.left
        if isinstance(left, ast.BinOp) and "workers" in target:  # (workers + ngpus - 1) / ngpus
            left = next(
                (n for n in walk(left) if isinstance(n, (ast.Name, ast.Attribute)) and ast.unparse(n) == target),
                left,
            )
        return ast.unparse(left) == target and self.is_world(value.right)

    def averages(self, a: ast.AugAssign) -> bool:
        """`t /= world_size` in a function that sums over the processes by hand."""
        by = a.value
        known = self.is_world(by) or self.is_given_as_world(by) or self._counts_processes(by)
        return isinstance(a.op, ast.Div) and known and self._is_summed(a.target)

    def averages_in_place(self, call: ast.Call) -> bool:
        """`t.div_(world_size)`, likewise."""
        f = call.func
        if not (isinstance(f, ast.Attribute) and f.attr == "div_" and len(call.args) == 1 and not call.keywords):
            return False
        known = self.is_world(call.args[0]) or self.is_given_as_world(call.args[0])
        return known and self._is_summed(f.value)

    def divides_a_sum(self, q: ast.BinOp) -> bool:
        """`t / args.n`, where t was summed over as many processes."""
        known = isinstance(q.op, ast.Div) and (self.is_given_as_world(q.right) or self._counts_processes(q.right))
        return known and self._is_summed(q.left)

    def _counts_processes(self, node: ast.expr) -> bool:
        """The number of processes by any name: `n` of `rank, n = setup()`."""
        values = [self.facts.worlds.value(node, w) for w in (PLAIN, *PEERS)]
        found = [v.value for v in values if v is not None and v.asked]
        return found == [1, *(w.size for w in PEERS)]

    def is_given_as_world(self, node: ast.expr, depth: int = 0) -> bool:
        """Whether processes are started or connected with `nprocs=node`; or a parameter that every call gives that."""
        scopes, name = self.facts.scopes, node.id if isinstance(node, ast.Name) else ""
        home = scopes.scope_of(node).lookup(name)
        alike = (w for w in self._worlds if ast.unparse(w) == ast.unparse(node))
        if any(not name or scopes.scope_of(w).lookup(name) is home for w in alike):
            return True
        if home is None or name not in home.params or name in home.stores or depth > 2:
            return False
        given = self.facts.devices.given(home, name) or ()
        return bool(given) and all(self.is_given_as_world(v, depth + 1) for v in given)

    @cached_property
    def _worlds(self) -> list[ast.expr]:
        """What is given as the number of processes, where they are started and connected."""
        started = [*(argument_at(c, "nprocs", 2) for c in self.spawns), *(s.n for s in self.started)]
        connected = [argument_at(c, "world_size", 3) for c, f in self.full.items() if f == D + "init_process_group"]
        return [g for g in (*started, *connected) if isinstance(g, (ast.Name, ast.Attribute))]

    def _is_summed(self, t: ast.expr) -> bool:
        name = ast.unparse(t).split(".")[0]
        summed = (c for c, full in self.full.items() if full in (D + "all_reduce", D + "reduce"))
        tensors = (argument_at(c, "tensor", 0) for c in summed)
        return any(t is not None and ast.unparse(t).split(".")[0] == name for t in tensors)

    # -- ranks and worlds ------------------------------------------------------------------------------------

    def is_world(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in ("float", "int") and len(node.args) == 1:
                return self.is_world(node.args[0])
            return self.facts.names.resolve(node.func) in WORLDS | {"torch.cuda.device_count"}
        return bool(WORLD_NAME.match(last_name(node)))

    def constants(self) -> Iterator[tuple[ast.expr, str]]:
        """Expressions that ask for a rank or a world, and what they are in a plain script."""
        taken: set[ast.AST] = set()
        for c, full in self.full.items():
            value = "0" if full in RANKS else "1" if full in WORLDS else self._backend_shown(c)
            if value is None and isinstance(c.func, ast.Name) and c.func.id == "int" and len(c.args) == 1:
                value = _as_int(self._environment(c.args[0]))
            if value is None and full in CARDS and self._gives_world(c):
                value = f"min(1, {self.facts.text.get(c)})" if self._counts_cards(c) else "1"
            if value is None and self.facts.worlds.counts_started(c):
                value = "1"
            if value is None and full in LAUNCHED:
                value = "False"
            if value is not None:
                whole, value = self._converted(c, value)
                taken.update(walk(whole))
                yield whole, value
        for card in self.facts.walk(ast.BinOp):
            if self._is_card_of_rank(card):
                yield card, "0"
        for test in self.facts.walk(ast.Compare):
            if self._asks_for_launcher(test):
                yield test, str(isinstance(test.ops[0], ast.NotIn))
        for node in [*self.facts.walk(ast.Subscript), *self.facts.walk(ast.Call)]:
            value = self._environment(node)
            if (
                node not in taken
                and value is not None
                and not (isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load))
            ):
                yield node, value if _default(node) is not None else f'"{value}"'
        for demand in demands(self.facts):
            yield demand, f"{self.facts.text.get(demand.value)}.get({self.facts.text.get(demand.slice)})"
        yield from meeting_points(self.facts)

    def _converted(self, call: ast.Call, value: str) -> tuple[ast.Call, str]:
        """`float(dist.get_world_size())`, which is 1.0."""
        up = self.facts.scopes.parents.get(call)
        if not (
            isinstance(up, ast.Call) and ast.unparse(up) in (f"{n}({ast.unparse(call)})" for n in ("float", "int"))
        ):
            return call, value
        return (up, value if ast.unparse(up.func) == "int" else f"{value}.0") if value.isdigit() else (call, value)

    def _is_card_of_rank(self, node: ast.BinOp) -> bool:
        """`rank % torch.cuda.device_count()`, which where there are no cards is an error."""
        if not (isinstance(node.op, ast.Mod) and isinstance(node.right, ast.Call)):
            return False
        full = self.facts.names.resolve(node.right.func)
        rank = self.facts.worlds.value(node.left, PLAIN) if full in CARDS and self.by_hand else None
        return rank is not None and rank.asked and rank.value == 0

    def _backend_shown(self, call: ast.Call) -> str | None:
        """`log(dist.get_backend())`: what the script's one group is made with; not where something is chosen by it."""
        if self.full.get(call) != D + "get_backend" or call.args or call.keywords:
            return None
        made = [argument_at(c, "backend", 0) for c, full in self.full.items() if full == D + "init_process_group"]
        ups = list(takewhile(lambda up: not isinstance(up, ast.stmt), self.facts.scopes.ancestors(call)))
        told = isinstance(self.facts.scopes.parents.get(ups[-1] if ups else call), ast.Expr)
        if not told or any(isinstance(up, (ast.Compare, ast.IfExp)) for up in ups):
            return None
        if len(made) != 1 or not isinstance(made[0], ast.Constant):
            return None
        return self.facts.text.get(made[0])

    def _environment(self, node: ast.expr) -> str | None:
        """`os.environ["RANK"]`, `os.environ.get("RANK", 0)`, `os.getenv("RANK")`."""
        key: ast.expr | None = None
        if isinstance(node, ast.Subscript) and is_environment(self.facts, node.value):
            key = node.slice
        elif isinstance(node, ast.Call) and node.args and self._asks_environment(node.func):
            key = node.args[0]
        name = key.value if isinstance(key, ast.Constant) else None
        if name not in LAUNCHED_WITH:
            return None
        default = _default(node)  # what the script takes where no launcher has set it: -1, to tell
        return ast.unparse(default) if default is not None else LAUNCHED_WITH[str(name)]

    def _asks_environment(self, func: ast.expr) -> bool:
        own = isinstance(func, ast.Attribute) and func.attr == "get" and is_environment(self.facts, func.value)
        return own or self.facts.names.resolve(func) in ASKING

    def _asks_for_launcher(self, test: ast.Compare) -> bool:
        """`"RANK" in os.environ`: in a plain script nobody has set it."""
        key, where = test.left, test.comparators[0]
        if isinstance(where, ast.Call) and isinstance(where.func, ast.Attribute) and where.func.attr == "keys":
            where = where.func.value
        return (
            len(test.ops) == 1
            and isinstance(test.ops[0], (ast.In, ast.NotIn))
            and isinstance(key, ast.Constant)
            and key.value in LAUNCHED_WITH
            and is_environment(self.facts, where)
        )

    def started_with(self, by: ast.Call | Started) -> list[str]:
        """What the one process is started with: its rank, and a world of 1 where it is given how many there are."""
        if isinstance(by, Started):
            fn, given, n = by.fn, by.given, by.n
        else:
            fn, whole, n = (argument_at(by, name, i) for i, name in enumerate(("fn", "args", "nprocs")))  # type: ignore[assignment]
            if whole is not None and not isinstance(whole, (ast.Tuple, ast.List)):
                return ["0", f"*{self.facts.text.get(whole)}"]
            given = whole.elts if whole is not None else []
        return ["0", *("1" if self._is_world_at(fn, i, e, n) else self.facts.text.get(e) for i, e in enumerate(given))]

    def _is_world_at(self, fn: ast.expr, place: int, given: ast.expr, n: ast.expr | None) -> bool:
        """Whether an argument that started functions get is how many there are: it is given as that number, too."""
        scope = self.facts.scopes.scope_of(fn).lookup(fn.id) if isinstance(fn, ast.Name) else None
        made = scope.stores.get(fn.id, []) if scope is not None and isinstance(fn, ast.Name) else []
        if n is None or len(made) != 1 or not isinstance(made[0], ast.FunctionDef):
            return False
        names = [a.arg for a in (*made[0].args.posonlyargs, *made[0].args.args)][1:]
        if place >= len(names) or ast.unparse(given) != ast.unparse(n):
            return False
        named = WORLD_NAME.match(names[place]) is not None or self._connects(made[0], names[place])
        return named or not isinstance(n, ast.Constant)

    def _connects(self, f: ast.FunctionDef, name: str, depth: int = 0) -> bool:
        """Whether a parameter is how many processes are connected, here or in a function that gets it."""
        for read in self.facts.scopes.reads(name, self.facts.scopes.by_node[f]):
            up = self.facts.scopes.parents[read]
            call = self.facts.scopes.parents[up] if isinstance(up, ast.keyword) else up
            if any(read is w for w in self._worlds):
                return True
            inner = self.facts.devices.function_of(call) if isinstance(call, ast.Call) and depth < 3 else None
            if not isinstance(call, ast.Call) or inner is None:
                continue
            given = next((p for p in self.facts.scopes.by_node[inner].params if argument(call, inner, p) is read), None)
            if given is not None and self._connects(inner, given, depth + 1):
                return True
        return False

    def _gives_world(self, c: ast.Call) -> bool:
        """`ngpus_per_node = torch.cuda.device_count()`"""
        up = self.facts.scopes.parents.get(c)
        if isinstance(up, ast.keyword):
            return up.arg == "nprocs"
        started = {ast.unparse(n) for s in self.spawns if (n := argument_at(s, "nprocs", 2)) is not None}
        if isinstance(up, (ast.Tuple, ast.List)):  # mp.spawn(run, args=(torch.cuda.device_count(),), nprocs=...)
            return any(argument_at(s, "args", 1) is up for s in self.spawns) and ast.unparse(c) in started
        targets = up.targets if isinstance(up, ast.Assign) else []
        return any(WORLD_NAME.match(last_name(t)) or ast.unparse(t) in started for t in targets)

    def _counts_cards(self, c: ast.Call) -> bool:
        """`args.n_gpu = torch.cuda.device_count()`, 0 on the CPU: not how many processes a machine has."""
        up = self.facts.scopes.parents.get(c)
        targets = up.targets if isinstance(up, ast.Assign) else []
        names = [last_name(t).lower() for t in targets]
        return not self.spawns and any("gpu" in name and "per" not in name for name in names)


def is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _as_int(source: str | None) -> str | None:
    """What `int()` gives of the source of a text or a number."""
    if source is None or re.fullmatch(r"-?\d+", source):
        return source
    text = source.strip("\"'")
    return text if re.fullmatch(r"-?\d+", text) else f"int({source})"


def _default(node: ast.expr) -> ast.expr | None:
    return node.args[1] if isinstance(node, ast.Call) and len(node.args) == 2 else None
