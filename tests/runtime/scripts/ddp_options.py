"""What DDPStrategy takes: each case's weights, or the error."""

import json

import torch
from cells import Cells, Net
from ptmigrate.runtime import DDPStrategy, Trainer


class Unused(Net):
    """A layer that no step uses."""

    def __init__(self):
        super().__init__()
        self.extra = torch.nn.Linear(2, 2)


class Sometimes(Net):
    """A layer that is used from the second batch on no more."""

    def __init__(self):
        super().__init__()
        self.extra = torch.nn.Linear(3, 3, bias=False)
        torch.nn.init.eye_(self.extra.weight)

    def training_step(self, batch, batch_idx):
        loss = self.loss(batch)
        return loss + 0 * self.extra.weight.sum() if self.global_step == 0 else loss


class ByRank(Net):
    """A layer that only the last rank uses, and not for every batch; it is frozen before the last epoch."""

    def __init__(self):
        super().__init__()
        self.extra = torch.nn.Linear(6, 3)

    def uses(self, batch_idx):
        return batch_idx % 2 == 0 and self.global_rank == self.trainer.world_size - 1

    def training_step(self, batch, batch_idx):
        loss = self.loss(batch)
        return loss + self.extra(batch[0]).square().mean() if self.uses(batch_idx) else loss

    def on_train_epoch_start(self):
        self.extra.requires_grad_(self.current_epoch < 2)


class Half(ByRank):
    """One that all ranks use for every other batch; weight decay would change what has a gradient of zero."""

    def uses(self, batch_idx):
        return batch_idx % 2 == 0

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=0.01, weight_decay=0.3)


SEARCHES = {"find_unused_parameters": True}
CASES = {
    "static": (Net, {"static_graph": True}),
    "small_buckets": (Net, {"bucket_cap_mb": 0.0001, "gradient_as_bucket_view": True}),
    "all_used": (Net, {"find_unused_parameters": False}),
    "unused_found": (Unused, {}),
    "unused_static": (Unused, {"static_graph": True}),
    "allreduce": (Net, {"ddp_comm_hook": "allreduce"}),
    "fp16": (Net, {"ddp_comm_hook": "fp16_compress_hook"}),
    "post_localSGD": (
        Net,
        {"ddp_comm_hook": "post_localSGD", "ddp_comm_options": {"start_localSGD_iter": 2}, "model_averaging_period": 4},
    ),
}


def attempt(module, trainer_options=None, **options):
    try:
        answer = Cells(DDPStrategy(**options), **(trainer_options or {})).trained(module)
    except RuntimeError as error:
        return {"error": str(error)}
    sums = [sum(map(sum, answer["weights"]))] * 2
    torch.distributed.all_gather_object(sums, sums[0])
    return {**answer, "ranks": sums}


answers = {name: attempt(kind(), **options) for name, (kind, options) in CASES.items()}
for kind in (ByRank, Half):
    for every in (1, 3):
        long = {"max_epochs": 3, "accumulate_grad_batches": every}
        answers[f"{kind.__name__}_{every}"] = attempt(kind(), long)
        answers[f"{kind.__name__}_{every}_searched"] = attempt(kind(), long, **SEARCHES)
answers["unused_named"] = attempt(Unused(), find_unused_parameters=False)
answers["later_named"] = attempt(Sometimes(), find_unused_parameters=False)
if Trainer().is_global_zero:
    print(json.dumps(answers))
