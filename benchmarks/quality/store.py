"""Results on disk: every finished cell at once, and the best objective ever seen of an instance."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

OK, INFEASIBLE, TIMEOUT, ERROR, CRASH = "ok", "infeasible", "timeout", "error", "crash"


@dataclass(frozen=True)
class Cell:
    """One method on one instance; the objective is that of least squares on the support."""

    instance: str
    family: str
    group: str
    method: str
    status: str
    objective: float | None = None
    nnz: int | None = None
    seconds: float | None = None
    cpu: float | None = None
    repeats: int | None = None
    run: str = ""
    note: str = ""

    @property
    def is_ok(self) -> bool:
        """Whether there is an objective to compare."""
        return self.status == OK


COLUMNS = tuple(field.name for field in fields(Cell))
_NUMBERS: dict[str, Callable] = {
    "objective": float,
    "nnz": int,
    "seconds": float,
    "cpu": float,
    "repeats": int,
}


def _read_cell(row: dict[str, str]) -> Cell:
    values = {name: row[name] for name in COLUMNS}
    numbers = {name: kind(row[name]) if row[name] else None for name, kind in _NUMBERS.items()}
    return Cell(**{**values, **numbers})


class Results:
    """The CSV of all cells, keyed by instance and method."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.cells: dict[tuple[str, str], Cell] = {}
        if file.exists():
            with file.open(newline="") as stream:
                complete = (row for row in csv.DictReader(stream) if None not in row.values())
                self.cells = {(c.instance, c.method): c for c in map(_read_cell, complete)}

    def __contains__(self, key: tuple[str, str]) -> bool:
        return key in self.cells

    def append(self, cell: Cell) -> None:
        """Keep a cell and write it at once."""
        is_new = not self.file.exists()
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a", newline="") as stream:
            writer = csv.DictWriter(stream, COLUMNS)
            if is_new:
                writer.writeheader()
            writer.writerow(asdict(cell))
            stream.flush()
            os.fsync(stream.fileno())
        self.cells[cell.instance, cell.method] = cell

    def forget(self, keys: Iterable[tuple[str, str]]) -> int:
        """Drop these cells, in memory and on disk; returns how many there were."""
        dropped = [key for key in keys if self.cells.pop(key, None) is not None]
        if dropped:
            unfinished = self.file.with_suffix(".part")
            with unfinished.open("w", newline="") as stream:
                writer = csv.DictWriter(stream, COLUMNS)
                writer.writeheader()
                writer.writerows(asdict(cell) for cell in self.cells.values())
            unfinished.replace(self.file)
        return len(dropped)


class BestKnown:
    """The best objective ever seen of every instance, with its support and who found it."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.records: dict[str, dict] = json.loads(file.read_text()) if file.exists() else {}

    def objective(self, instance: str) -> float:
        """The best objective, infinity if none is known."""
        return self.records.get(instance, {}).get("objective", float("inf"))

    def had_long_run(self, instance: str, label: str) -> bool:
        """Whether that long run was made already."""
        return label in self.records.get(instance, {}).get("long", [])

    def offer(
        self, instance: str, objective: float, support: list[int], method: str, long: bool = False
    ) -> None:
        """Keep the point if it is better; remember that a long run was made."""
        record = self.records.setdefault(instance, {"long": []})
        better = objective < self.objective(instance)
        if better:
            record.update(objective=objective, method=method, support=support)
        if long and method not in record["long"]:
            record["long"].append(method)
        if better or long:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            unfinished = self.file.with_suffix(".part")
            unfinished.write_text(json.dumps(self.records, indent=0))
            unfinished.replace(self.file)
