"""Bytes that a rank keeps under each engine, counted at the step after which they stay the same, beside the theory.

    python benchmarks/engine_memory.py [--processes 1 2 4 8]

Counted are the tensors themselves, a rank's own parts: parameters, gradients (after backward, before the step),
optimizer state, DeepSpeed's float32 master copy, and what a pipeline's stage saves for backward. Nothing is timed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import torch
from ptmigrate.runtime import DeepSpeedStrategy, Module, PipelineStrategy, Trainer
from torch.utils.data import DataLoader, TensorDataset

WIDTH, LAYERS, BATCH = 256, 16, 64
ENGINES = {
    "ddp": "ddp",
    "ddp_sharded": "ddp_sharded",
    "fsdp": "fsdp",
    "deepspeed 1": DeepSpeedStrategy(stage=1),
    "deepspeed 2": DeepSpeedStrategy(stage=2),
    "deepspeed 3": DeepSpeedStrategy(stage=3),
}


class Net(Module):
    """Linear layers with Tanh between; Adam."""

    def __init__(self, engine):
        super().__init__()
        layers = [torch.nn.Linear(WIDTH, WIDTH) if i % 2 == 0 else torch.nn.Tanh() for i in range(2 * LAYERS)]
        self.sequential_module = torch.nn.Sequential(*layers)
        self.engine, self.found, self.saved = engine, {}, {}

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-3)

    def training_step(self, batch, batch_idx):
        return self.sequential_module(batch[0]).pow(2).mean()

    def on_train_batch_start(self, batch, batch_idx):
        self.saved.clear()  # the first step also learns the stages' shapes


def size(tensor):
    local = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return local.numel() * local.element_size()


def count_at_third_step(trainer, module):
    """Between backward and step, outside of hooks: those see gradients whole."""
    step = trainer.strategy.optimizer_step

    def counted(*args):
        if trainer.global_step == 2:
            module.found = count(module)
        return step(*args)

    trainer.strategy.optimizer_step = counted


def count(module):
    """Bytes on this rank, by kind."""
    strategy, optimizer = module.trainer.strategy, module.trainer.optimizers[0]
    parameters = list(module.parameters())
    engine = getattr(strategy, "engine", None)
    if engine is not None:
        return count_deepspeed(engine, parameters, optimizer.inner)
    state = getattr(optimizer, "optim", optimizer).state
    if strategy.name == "fsdp":
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
    return {
        "parameters": sum(map(size, parameters)),
        "gradients": sum(size(p.grad) for p in parameters if p.grad is not None),
        "state": sum(size(v) for s in state.values() for v in s.values() if v.numel() > 1),
    }


def count_deepspeed(engine, parameters, inner):
    zero = engine.optimizer
    if engine.zero_optimization_stage() == 3:
        held = [p.ds_tensor for p in parameters]
        masters = zero.fp32_partitioned_groups_flat
        gradients = [part for group in zero.averaged_gradients.values() for part in group]
    else:
        held, masters = parameters, zero.single_partition_of_fp32_groups
        gradients = [p.grad for p in parameters if p.grad is not None]
        gradients += [part for group in zero.averaged_gradients.values() if group for part in group]
    return {
        "parameters": sum(map(size, held)),
        "master": sum(map(size, masters)),
        "gradients": sum(map(size, gradients)),
        "state": sum(size(v) for s in inner.state.values() for v in s.values() if v.numel() > 1),
    }


def theory(engine, world):
    """Bytes of Adam in float32: P parameters make 4 P each of weights and gradients and 8 P of state."""
    whole = 4 * LAYERS * (WIDTH * WIDTH + WIDTH)
    part = whole / world
    divides = {"ddp": "", "ddp_sharded": "gs", "fsdp": "pgs"}.get(
        engine, {"1": "gs", "2": "gs", "3": "pgs"}.get(engine[-1], "")
    )
    expected = {
        "parameters": part if "p" in divides else whole,
        "gradients": part if "g" in divides else whole,
        "state": 2 * part if "s" in divides else 2 * whole,
    }
    return {**expected, "master": part} if engine.startswith("deepspeed") else expected


def loader():
    return DataLoader(TensorDataset(torch.zeros(BATCH * 4, WIDTH)), BATCH)


def measure(stages_only):
    found = {}
    for name, strategy in {}.items() if stages_only else ENGINES.items():
        module = Net(name)
        trainer = Trainer(max_epochs=1, strategy=strategy, global_batch=True)
        if trainer.world_size == 1 and not name.startswith("deepspeed"):
            name = "ddp"
        count_at_third_step(trainer, module)
        trainer.fit(module, loader())
        found[name] = trainer.runtime.all_reduce(module.found, "max")
    for recompute in (False, True):
        found[f"pipeline{', recomputing' if recompute else ''}"] = activations(recompute)
    Trainer().print(json.dumps(found))


def activations(recompute):
    """Bytes that each stage saves for backward in a GPipe step of four micro-batches, without its parameters."""
    module = Net("pipeline")
    trainer = Trainer(
        max_steps=2,
        strategy=PipelineStrategy(
            balance=[2 * LAYERS // Trainer().world_size] * Trainer().world_size, microbatches=4, checkpoint=recompute
        ),
    )
    saved = module.saved
    own = {p.untyped_storage().data_ptr() for p in module.parameters()}

    def pack(tensor):
        if tensor.untyped_storage().data_ptr() not in own:
            saved[tensor.untyped_storage().data_ptr(), tensor._version] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        trainer.fit(module, loader())
    total = sum(tensor.untyped_storage().nbytes() for tensor in saved.values())
    return [total] if trainer.world_size == 1 else trainer.runtime.all_gather(torch.tensor(total)).tolist()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--stages", action="store_true", help="only the stages of a pipeline")
    options = parser.parse_args()
    if options.measure:
        measure(options.stages)
        return
    print("| engine | processes | parameters | gradients | optimizer state | master copy | furthest from theory |")
    print("|---|---|---|---|---|---|---|")
    stages = {}
    for world in options.processes:
        command = ["-m", "ptmigrate.runtime.cli", "--accelerator", "cpu", "--devices", str(world)]
        only = ["--stages"] if options.stages else []
        done = subprocess.run(
            [sys.executable, *command, str(Path(__file__)), "--measure", *only],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            sys.exit(done.stderr)
        for engine, found in json.loads(done.stdout.splitlines()[-1]).items():
            if isinstance(found, list):
                stages[engine, world] = found
                continue
            expected = theory(engine, world)
            furthest = max(abs(found[kind] / expected[kind] - 1) for kind in expected)
            kinds = ("parameters", "gradients", "state", "master")
            row = [f"{found[kind] / 1e6:.2f}" if kind in found else "-" for kind in kinds]
            print(f"| {engine} | {world} | {' | '.join(row)} | {furthest:.1%} |", flush=True)
    print("\n| stages | processes | saved for backward on each, MB | sum |\n|---|---|---|---|")
    for (engine, world), found in stages.items():
        print(
            f"| {engine} | {world} | {', '.join(f'{bytes_ / 1e6:.3f}' for bytes_ in found)} | {sum(found) / 1e6:.3f} |"
        )


if __name__ == "__main__":
    main()
