"""The regions that the records of a population stand in, numbered so that those of one parent stand together.

It owns the check that the geography nests; it does not read tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from discreet.errors import mistake

_UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class Regions:
    """All regions, numbered at each level in the order of their names from the coarsest level down."""

    columns: tuple[str, ...]  # coarse to fine
    names: tuple[tuple[str, ...], ...]  # level -> number -> what stands in the column
    above: NDArray[np.int32]  # (level, finest region) -> region

    def __len__(self) -> int:
        return int(self.above.shape[1])


class RegionsSeen:
    """Numbers regions as they appear, until all are known."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = tuple(columns)
        self._known: list[dict[str, int]] = [{} for _ in columns]
        self._parents = [np.empty(0, dtype=np.int32) for _ in columns]  # level -> region -> the one above

    def add(self, batch: pa.RecordBatch, table: str) -> NDArray[np.int32]:
        """The finest region of each record, by its provisional number."""
        codes = [self._codes(level, batch, table) for level in range(len(self._columns))]
        for level in range(1, len(codes)):
            self._nest(level, codes[level], codes[level - 1], table)
        return codes[-1]

    def _codes(self, level: int, batch: pa.RecordBatch, table: str) -> NDArray[np.int32]:
        name, known = self._columns[level], self._known[level]
        column = batch.column(name)
        column = column.storage if isinstance(column, pa.ExtensionArray) else column
        column = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        values = pc.cast(column.dictionary, pa.string()).to_pylist()
        if column.null_count or None in values:
            remedy = "give every record its place, for instance a code for 'not known'"
            raise mistake(table, f"column {name}", "some records have no place", remedy)
        found = np.array([known.setdefault(value, len(known)) for value in values], dtype=np.int32)
        codes: NDArray[np.int32] = found[column.indices.to_numpy(zero_copy_only=False)]
        return codes

    def _nest(self, level: int, codes: NDArray[np.int32], above: NDArray[np.int32], table: str) -> None:
        parents = np.full(len(self._known[level]), _UNKNOWN, dtype=np.int32)
        parents[: len(self._parents[level])] = self._parents[level]
        new = parents[codes] == _UNKNOWN
        parents[codes[new]] = above[new]
        self._parents[level] = parents
        wrong = np.flatnonzero(parents[codes] != above)
        if len(wrong):
            raise self._not_nested(level, int(codes[wrong[0]]), int(above[wrong[0]]), table)

    def _not_nested(self, level: int, code: int, other: int, table: str) -> Exception:
        fine, coarse = list(self._known[level]), list(self._known[level - 1])
        first = coarse[self._parents[level][code]]
        value = (
            f"{self._columns[level]} {fine[code]!r} lies in {self._columns[level - 1]} "
            f"{first!r} and in {coarse[other]!r}"
        )
        return mistake(table, "population.geography", value, "make the geography nest")

    def all(self) -> tuple[Regions, NDArray[np.int32]]:
        """Every region seen, and the number of each provisional finest one."""
        levels = len(self._columns)
        held = [list(known) for known in self._known]
        paths = [self._path(code, held) for code in range(len(held[-1]))]
        order = sorted(range(len(paths)), key=lambda code: paths[code])
        above = np.empty((levels, len(order)), dtype=np.int32)
        names: list[tuple[str, ...]] = []
        for level in range(levels):
            heads = list(dict.fromkeys(paths[code][: level + 1] for code in order))
            number = {head: place for place, head in enumerate(heads)}
            above[level] = [number[paths[code][: level + 1]] for code in order]
            names.append(tuple(head[-1] for head in heads))
        final = np.empty(len(order), dtype=np.int32)
        final[order] = np.arange(len(order), dtype=np.int32)
        return Regions(self._columns, tuple(names), above), final

    def _path(self, code: int, names: Sequence[Sequence[str]]) -> tuple[str, ...]:
        path: list[str] = []
        for level in range(len(names) - 1, -1, -1):
            path.append(names[level][code])
            code = int(self._parents[level][code]) if level else code
        return tuple(reversed(path))
