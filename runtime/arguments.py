"""Every argument that Lightning's Trainer has had from 1.2 to 2.6: it works here, or it is refused with what to
use instead.
"""

from __future__ import annotations

import warnings
from typing import Any

from .errors import ConfigurationError, unknown_name

# Taken by name, and without effect here because of how this runtime works; the reason is told once when it is used.
NO_EFFECT = {
    "auto_lr_find": None,
    "auto_scale_batch_size": None,
    "barebones": None,
    "benchmark": None,
    "enable_model_summary": None,
    "flush_logs_every_n_steps": None,
    "inference_mode": None,
    "model_registry": None,
    "move_metrics_to_cpu": None,
    "multiple_trainloader_mode": None,
    "prepare_data_per_node": None,
    "process_position": None,
    "progress_bar_refresh_rate": None,
    "reload_dataloaders_every_epoch": None,
    "terminate_on_nan": None,
    "truncated_bptt_steps": None,
    "weights_summary": None,
    "enable_autolog_hparams": None,
}
INSTEAD = {
    "ipus": "IPUs are not supported; use accelerator='gpu' or 'cpu'",
    "num_processes": "use devices= with accelerator='cpu'",
    "distributed_backend": "use strategy=",
    "tpu_cores": "use accelerator='tpu', devices=",
    "checkpoint_callback": "use enable_checkpointing= or callbacks=[ModelCheckpoint(...)]",
    "resume_from_checkpoint": "use trainer.fit(..., ckpt_path=...)",
    "early_stop_callback": "use callbacks=[EarlyStopping(...)]",
    "track_grad_norm": "log the norm in on_before_optimizer_step",
    "amp_level": "use precision='16-mixed'",
    "weights_save_path": "use default_root_dir=",
    "stochastic_weight_avg": "use torch.optim.swa_utils in a callback",
    "overfit_batches": "use limit_train_batches= and limit_val_batches=",
    "auto_select_gpus": "name the devices: devices=[...]",
}


def check(extra: dict[str, Any], known: list[str]) -> None:
    """`extra`: arguments that the Trainer's signature does not have. Raises ConfigurationError for those it cannot
    honour.
    """
    for name, value in extra.items():
        if name in INSTEAD:
            if value not in (None, False, 0, 0.0):
                raise ConfigurationError(f"Trainer argument {name!r}: {INSTEAD[name]}")
        elif name in NO_EFFECT:
            if value not in (None, False):
                warnings.warn(f"Trainer argument {name}={value!r} has no effect here", stacklevel=4)
        else:
            raise unknown_name("Trainer argument", name, [*known, *NO_EFFECT, *INSTEAD])
