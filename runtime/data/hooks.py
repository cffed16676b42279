"""What a Module and a DataModule have in common: loaders, and a batch's way to the device."""

from __future__ import annotations

from typing import Any

import torch

from .move import move_to


class DataHooks:
    """Override what you need; the rest is empty. `prepare_data_per_node`: else on one process of all."""

    prepare_data_per_node = True
    allow_zero_length_dataloader_with_multiple_devices = True  # Lightning's name; here a loader may always be empty

    def prepare_data(self) -> None: ...
    def train_dataloader(self) -> Any: ...
    def val_dataloader(self) -> Any: ...
    def test_dataloader(self) -> Any: ...
    def predict_dataloader(self) -> Any: ...

    def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        return batch

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:
        return move_to(batch, device)

    def on_after_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        return batch
