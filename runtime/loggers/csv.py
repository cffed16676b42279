"""Values as a table: metrics.csv, one line a step that logged something."""

from __future__ import annotations

import csv
import io
import os
from typing import Any

from ..checkpoint.write import write_atomically
from .base import Logger


class CSVLogger(Logger):
    """Lines are added as they come; a column that is new makes the file be written again, whole or not at all."""

    NAME = "metrics.csv"
    saves_itself = True

    def __init__(
        self,
        save_dir: Any,
        name: str | None = "lightning_logs",
        version: int | str | None = None,
        prefix: str = "",
        flush_logs_every_n_steps: int = 100,
    ):
        super().__init__(save_dir, name, version)
        self.prefix, self.flush_every = prefix, flush_logs_every_n_steps
        self.rows: list[dict[str, Any]] = []
        self.columns: list[str] = []
        self.written = 0

    @property
    def path(self) -> str:
        return os.path.join(self.log_dir, self.NAME)

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        row = {(f"{self.prefix}-{k}" if self.prefix else k): v for k, v in metrics.items()}
        self.rows.append({**row, "step": len(self.rows) if step is None else step})
        if len(self.rows) - self.written >= self.flush_every:
            self.save()

    def log_hyperparams(self, params: Any, *args: Any) -> None:
        self.write_hyperparams(params)

    def save(self) -> None:
        """Bring the file up to date; the folder is there in any case."""
        os.makedirs(self.log_dir, exist_ok=True)
        if self.written == len(self.rows):
            return
        found = {name: None for row in self.rows[self.written :] for name in row}
        new = [name for name in found if name not in self.columns]
        if new or not self.written:
            self.columns = sorted([*self.columns, *new])
            table = self._as_csv(self.rows, header=True)
            write_atomically(self.path, lambda file: file.write(table.encode()))
        else:
            with open(self.path, "a", newline="") as file:
                file.write(self._as_csv(self.rows[self.written :], header=False))
        self.written = len(self.rows)

    def _as_csv(self, rows: list[dict[str, Any]], header: bool) -> str:
        text = io.StringIO(newline="")
        table = csv.DictWriter(text, self.columns)
        if header:
            table.writeheader()
        table.writerows(rows)
        return text.getvalue()

    def finalize(self, status: str) -> None:
        self.save()
