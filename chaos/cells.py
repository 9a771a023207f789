"""The matrix: every fault on every store and in every mode in which it exists."""

import fnmatch
from dataclasses import dataclass

from chaos.faults import FAULTS


@dataclass(frozen=True)
class Cell:
    """One fault, on one store, in one mode."""

    fault: type
    store: str
    mode: str

    def __str__(self):
        return f"{self.fault.name}/{self.store}/{self.mode}"


def all_cells():
    return [Cell(fault, store, mode) for fault in FAULTS for store in fault.stores for mode in fault.modes]


def matching(patterns):
    """The cells that match any of the patterns, in the order of the matrix."""
    return [cell for cell in all_cells() if any(fnmatch.fnmatchcase(str(cell), pattern) for pattern in patterns)]
