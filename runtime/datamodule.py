"""`DataModule`: loaders in a class of their own, under Lightning's names."""

from __future__ import annotations

from functools import partial
from typing import Any

from torch.utils.data import DataLoader, IterableDataset

from .checkpoint.read import read
from .data.hooks import DataHooks
from .hooks import takes
from .hparams import HasHyperparameters, made_again


class DataModule(DataHooks, HasHyperparameters):
    """Override the loaders you need; `prepare_data` runs once a node, `setup` on every rank.

    A Module has the same methods, so that one that brings its own data needs no DataModule.
    """

    name: str | None = None

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.trainer: Any = None

    def setup(self, stage: str) -> None: ...
    def teardown(self, stage: str) -> None: ...
    def on_exception(self, exception: BaseException) -> None: ...
    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None: ...

    @classmethod
    def from_datasets(
        cls,
        train_dataset: Any = None,
        val_dataset: Any = None,
        test_dataset: Any = None,
        predict_dataset: Any = None,
        batch_size: int = 1,
        num_workers: int = 0,
        **more: Any,
    ) -> Any:
        """One of data sets: one, a list or a dict of them for each stage. Training shuffles those that have indices.
        `more`: arguments of the class, which gets batch_size and num_workers where it takes them.
        """

        def loaders(given: Any, shuffle: bool = False) -> Any:
            if isinstance(given, dict):
                return {name: loaders(each, shuffle) for name, each in given.items()}
            if isinstance(given, (list, tuple)):
                return [loaders(each, shuffle) for each in given]
            mixed = shuffle and not isinstance(given, IterableDataset)
            return DataLoader(given, batch_size, shuffle=mixed, num_workers=num_workers)

        sizes = {"batch_size": batch_size, "num_workers": num_workers}
        made = cls(**{name: value for name, value in sizes.items() if takes(cls, name)}, **more)
        stages = {"train": train_dataset, "val": val_dataset, "test": test_dataset, "predict": predict_dataset}
        for stage, given in stages.items():
            if given is not None:
                setattr(made, f"{stage}_dataloader", partial(loaders, given, stage == "train"))
        return made

    @classmethod
    def load_from_checkpoint(
        cls,
        checkpoint_path: Any,
        map_location: Any = None,
        hparams_file: Any = None,
        weights_only: bool = True,
        **kwargs: Any,
    ) -> Any:
        """A new one with the hyper-parameters (or those of `hparams_file`; `kwargs` win) and the state that the
        checkpoint holds, its tensors on the CPU whatever `map_location` says.
        """
        checkpoint = read(checkpoint_path, weights_only)
        made = made_again(cls, checkpoint, "datamodule_", kwargs, hparams_file)
        made.load_state_dict(checkpoint.get(type(made).__qualname__, {}))
        return made


LightningDataModule = DataModule  # as scripts for Lightning say
