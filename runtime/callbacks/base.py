"""What can be called back: every hook gets `(trainer, module)` first, then what the module's hook of that name gets."""

from __future__ import annotations

from typing import Any

from ..hooks import Hooks


class Callback(Hooks):
    """Override the hooks you need; `state_dict` and `load_state_dict` put your state into checkpoints."""

    @property
    def state_key(self) -> str:
        """The name of this callback's state in a checkpoint."""
        return type(self).__qualname__

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None: ...
