"""The crossing of two geographies, read from records or from a table of pieces: who lives in which area of both.

It owns the reading; what can be found out by subtracting areas is differencing_areas'.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from discreet.engine.progress import Progress, Quiet
from discreet.engine.records import Records
from discreet.errors import mistake
from discreet.schema.codelist import Codelist
from discreet.schema.expression import alternatives

Integers = NDArray[np.int64]
Codes = NDArray[np.unsignedinteger[Any]]

_FIT = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_integer,
    pa.types.is_null,
)
_WIDE = 1 << 31  # more areas than anybody has
_LARGEST = 10**12  # records of a piece


@dataclass(frozen=True, eq=False, repr=False)
class Crossing:
    """The pieces in which areas of two geographies overlap, each once, with their records; confidential."""

    names: tuple[str, str]
    codes: tuple[tuple[str, ...], tuple[str, ...]]
    a: Integers  # piece -> place of its area among the codes of the first geography
    b: Integers
    counts: Integers

    def __repr__(self) -> str:
        return f"Crossing({' x '.join(self.names)}, {len(self.a)} pieces)"


def read_crossing(
    records: Records, a: str, b: str, count: str | None = None, progress: Progress | None = None
) -> Crossing:
    """Read two columns of areas, one row for each record, or for each piece with its number of records."""
    wanted = [name for name in (a, b, count) if name is not None]
    _check(records, wanted)
    told = progress or Quiet()
    told.stage("reading areas")
    reading = _Reading(records.name, a, b, count)
    for batch in records.batches([] if count is None else [count], [a, b]):
        reading.add(batch)
        told.step(len(batch))
    return reading.crossing()


def crossing_of_codes(a: Codelist, b: Codelist, blocks: Iterable[tuple[Codes, Codes]]) -> Crossing:
    """The crossing of two encoded variables: the leaf of each record in their codelists, block by block."""
    width = len(b.leaves)
    pieces, counts = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    for first, second in blocks:
        here, many = np.unique(first.astype(np.int64) * width + second, return_counts=True)
        pieces, at = np.unique(np.concatenate((pieces, here)), return_inverse=True)
        counts = np.bincount(at, weights=np.concatenate((counts, many))).astype(np.int64)
    return Crossing((a.name, b.name), (a.leaf_codes, b.leaf_codes), pieces // width, pieces % width, counts)


def _check(records: Records, wanted: list[str]) -> None:
    for name in wanted:
        if name not in records.schema.names:
            raise mistake(records.name, name, "no such column", alternatives(name, records.schema.names))
    if len(set(wanted)) < len(wanted):
        twice = next(name for name in wanted if wanted.count(name) > 1)
        raise mistake(records.name, twice, "the same column twice", "name different columns")


class _Areas:
    """The areas of one column so far."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}

    def see(self, column: pa.Array, file: str, name: str) -> Integers:
        """The place of each row's area."""
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if not any(fits(kind) for fits in _FIT):
            raise mistake(file, name, f"values of type {kind}", "give areas as text or whole numbers")
        coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        texts = pc.cast(coded.dictionary, pa.string()).to_pylist()
        if coded.null_count or None in texts or "" in texts:
            raise mistake(file, name, "rows without an area", "give each an area, or leave these rows out")
        used = pc.unique(coded.indices).to_pylist()
        table = np.zeros(len(texts), dtype=np.int64)
        for place in used:
            table[place] = self.places.setdefault(texts[place], len(self.places))
        if len(self.places) >= _WIDE:
            raise mistake(file, name, "too many different values", "name a column of areas")
        indices: NDArray[Any] = coded.indices.to_numpy(zero_copy_only=False)
        places: Integers = table[indices]
        return places


class _Reading:
    """Adds up the records of each piece, batch by batch."""

    def __init__(self, file: str, a: str, b: str, count: str | None) -> None:
        self._file, self._names, self._count = file, (a, b), count
        self._areas = (_Areas(), _Areas())
        self._pieces, self._sums = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)

    def add(self, batch: pa.RecordBatch) -> None:
        """Take a batch in."""
        a, b = (
            areas.see(batch.column(name), self._file, name)
            for areas, name in zip(self._areas, self._names, strict=True)
        )
        counts = np.ones(len(batch), dtype=np.int64) if self._count is None else self._counts(batch)
        pieces = np.concatenate((self._pieces, a * _WIDE + b))
        self._pieces, at = np.unique(pieces, return_inverse=True)
        sums = np.zeros(len(self._pieces), dtype=np.int64)
        np.add.at(sums, at, np.concatenate((self._sums, counts)))
        self._sums = sums

    def _counts(self, batch: pa.RecordBatch) -> Integers:
        remedy = f"give whole numbers from 0 to {_LARGEST}"
        try:
            column = pc.cast(batch.column(self._count), pa.int64())
            low, high = (end.as_py() for end in pc.min_max(column).values())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise mistake(self._file, str(self._count), "not a whole number", remedy) from None
        if column.null_count:
            raise mistake(self._file, str(self._count), "rows without a number", remedy)
        if len(column) and not 0 <= low <= high <= _LARGEST:
            raise mistake(self._file, str(self._count), "a number out of range", remedy)
        counts: Integers = column.to_numpy(zero_copy_only=False)
        return counts

    def crossing(self) -> Crossing:
        """All pieces with records."""
        kept = self._sums > 0
        if not kept.any():
            raise mistake(self._file, " x ".join(self._names), "no records", "give a file that has some")
        pieces = self._pieces[kept]
        codes = (tuple(self._areas[0].places), tuple(self._areas[1].places))
        return Crossing(self._names, codes, pieces // _WIDE, pieces % _WIDE, self._sums[kept])
