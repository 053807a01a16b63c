"""Examines the columns of a table for ``discreet init``: distinct values, missing values and which places nest."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from discreet.io.databases import open_source
from discreet.programme.draft import MOST_PLACES, ColumnFacts, Kind, TableFacts, is_id, is_place
from discreet.programme.sources import FileSource

Positions = NDArray[np.int64]  # record -> index of its value among the distinct ones, -1 for none

_PLAIN_WHOLE = re.compile(r"0|-?[1-9]\d{0,17}")
_FIRST = 20_000  # records that rule most pairs out


class _Column:
    """The distinct values of one column so far, until there are too many to be codes."""

    def __init__(self, name: str, kind: pa.DataType) -> None:
        self.name, self.type = name, kind
        self.values: dict[str, int] = {}
        self.open = _has_codes(kind)
        self.missing = False
        self.chunks: list[pa.Array] | None = []  # stored while all values may be distinct

    def see(self, column: pa.Array) -> Positions | None:
        """Add a batch; return the indices of its values, or None if there are too many distinct ones."""
        self.missing = self.missing or column.null_count > 0
        if not self.open and self.chunks is None:
            return None
        coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        self._keep(column, len(coded.dictionary))
        if not self.open or len(coded.dictionary) > MOST_PLACES:
            self.open = False
            return None
        return self._positions(coded)

    def _keep(self, column: pa.Array, distinct: int) -> None:
        if self.chunks is not None:
            plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
            self.chunks.append(plain)
            if distinct < len(column) or not self._may_identify(plain.type):
                self.chunks = None

    @staticmethod
    def _may_identify(kind: pa.DataType) -> bool:
        return bool(pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind))

    def _positions(self, coded: pa.DictionaryArray) -> Positions:
        used = pc.unique(coded.indices.drop_null()).to_numpy(zero_copy_only=False)
        texts = pc.cast(coded.dictionary, pa.string()).to_pylist()
        table = np.full(len(texts) + 1, -1, dtype=np.int64)  # the last entry is for records without a value
        for place in used:
            table[place] = self.values.setdefault(texts[place], len(self.values))
        self.open = len(self.values) <= MOST_PLACES
        places: NDArray[np.intp] = coded.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)
        return table[places]

    def facts(self) -> ColumnFacts:
        """The facts found about the column."""
        kind = _kind(self.type, self.values if self.open else None)
        values = tuple(self.values) if self.open else None
        return ColumnFacts(self.name, kind, values, self.missing, self._unique())

    def _unique(self) -> bool:
        if not self.chunks or self.missing:
            return False
        whole = pa.chunked_array(self.chunks)
        return bool(pc.count_distinct(whole).as_py() == len(whole))


class _Pair:
    """Checks whether each value of a fine column always occurs with the same value of a coarse column."""

    def __init__(self, coarse: _Column, fine: _Column) -> None:
        self.coarse, self.fine = coarse, fine
        self.table = np.empty(0, dtype=np.int64)  # fine -> coarse, -1 unseen

    def holds(self, coarse: Positions, fine: Positions) -> bool:
        """Add a batch; false as soon as a fine value occurs with two coarse ones."""
        grown = np.full(len(self.fine.values), -1, dtype=np.int64)
        grown[: len(self.table)] = self.table
        self.table = grown
        unseen = self.table[fine] < 0
        self.table[fine[unseen]] = coarse[unseen]
        return bool((self.table[fine] == coarse).all())

    def values(self) -> dict[str, str]:
        """The coarse value of each fine one."""
        names = list(self.coarse.values)
        return {value: names[self.table[place]] for value, place in self.fine.values.items()}


def look(source: FileSource, unit: str, named: str) -> TableFacts:
    """Read a table once and return the facts about its columns; ``named`` is its name in the programme."""
    records = open_source(source, unit)
    columns = [_Column(field.name, field.type) for field in records.schema]
    pairs: list[_Pair] | None = None
    readable = [column.name for column in columns if _has_codes(column.type)]
    others = [column.name for column in columns if not _has_codes(column.type)]
    for batch in records.batches(others, readable):
        seen = {column.name: column.see(batch.column(column.name)) for column in columns}
        if pairs is None:
            pairs = [pair for pair in _places(columns) if _first_holds(pair, seen)]
        pairs = [pair for pair in pairs if _still_holds(pair, seen)]
    within = {
        (pair.coarse.name, pair.fine.name): pair.values()
        for pair in pairs or []
        if len(pair.coarse.values) < len(pair.fine.values)
    }
    return TableFacts(unit, named, tuple(column.facts() for column in columns), within)


def _places(columns: list[_Column]) -> Iterator[_Pair]:
    """The pairs of columns that may nest; ids nest in everything and are left out."""
    coarse = [column for column in columns if column.open and is_place(column.name)]
    fine = [column for column in columns if column.open and (is_place(column.name) or not is_id(column.name))]
    return (_Pair(one, other) for one in coarse for other in fine if one is not other)


def _first_holds(pair: _Pair, seen: dict[str, Positions | None]) -> bool:
    coarse, fine = seen[pair.coarse.name], seen[pair.fine.name]
    if coarse is None or fine is None:
        return False
    return _Pair(pair.coarse, pair.fine).holds(coarse[:_FIRST], fine[:_FIRST])


def _still_holds(pair: _Pair, seen: dict[str, Positions | None]) -> bool:
    coarse, fine = seen[pair.coarse.name], seen[pair.fine.name]
    if coarse is None or fine is None or pair.coarse.missing or pair.fine.missing:
        return False
    return pair.holds(coarse, fine)


def _has_codes(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind))


def _kind(kind: pa.DataType, values: dict[str, int] | None) -> Kind:
    if pa.types.is_integer(kind):
        return Kind.WHOLE
    if not _has_codes(kind):
        return Kind.OTHER
    whole = values is not None and all(_PLAIN_WHOLE.fullmatch(value) for value in values)
    return Kind.WHOLE if whole else Kind.TEXT
