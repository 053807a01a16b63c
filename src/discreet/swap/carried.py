"""What the records of moved households hold after the exchange; it owns no choice of who moves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from discreet.errors import mistake
from discreet.swap.households import Gathered
from discreet.swap.result import HOUSEHOLD, Moves
from discreet.swap.tables import HOUSEHOLDS, PERSONS, Tables, some_hashes


def moves_of(tables: Tables, gathered: Gathered, partner: NDArray[np.int64], secret: bytes) -> Moves:
    """The donor's value of every exchanged column, for each household that moved."""
    moved = np.flatnonzero(partner >= 0)
    ids = gathered.households.ids[moved]
    donors = partner[moved]
    regions, place = gathered.regions, gathered.place[donors]
    values = {
        column: pa.array(regions.names[level], pa.string()).take(pa.array(regions.above[level][place]))
        for level, column in enumerate(regions.columns)
    }
    at = np.searchsorted(ids, gathered.households.ids[donors])
    for unit, columns in _holders(tables).items():
        held = _values(tables, unit, columns, ids, secret)
        values |= {column: held[column].take(pa.array(at)) for column in columns}
    return Moves(ids, values)


def _holders(tables: Tables) -> dict[str, list[str]]:
    holders: dict[str, list[str]] = {}
    for column in tables.rule.carry:
        holders.setdefault(tables.holder(column, "swap.carry", HOUSEHOLDS, PERSONS), []).append(column)
    return holders


def _values(
    tables: Tables, unit: str, columns: Sequence[str], ids: NDArray[np.uint64], secret: bytes
) -> dict[str, pa.Array]:
    """The values of the moved households themselves, one for each of ``ids``."""
    records, household = tables.opened[unit], tables.household_id
    places: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
    parts: list[pa.RecordBatch] = []
    for batch in records.batches([household, *columns], []):
        hashes, known = some_hashes(batch.column(household), secret, HOUSEHOLD, household, records.name)
        at = np.minimum(np.searchsorted(ids, hashes), max(0, len(ids) - 1))
        rows = np.flatnonzero(known & (ids[at] == hashes)) if len(ids) else np.empty(0, dtype=np.int64)
        places.append(at[rows])
        parts.append(batch.select(columns).take(pa.array(rows)))
    table = pa.Table.from_batches(parts).unify_dictionaries()
    return {
        column: _one_each(_plain(table[column]), np.concatenate(places), len(ids), column, records.name)
        for column in columns
    }


def _plain(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return whole.dictionary_decode() if pa.types.is_dictionary(whole.type) else whole


def _one_each(values: pa.Array, places: NDArray[np.int64], number: int, column: str, table: str) -> pa.Array:
    """One value for each household; its members must agree."""
    row = np.zeros(number, dtype=np.int64)
    row[places] = np.arange(len(places))
    codes = values.dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False)
    if (codes[row[places]] != codes).any():
        value = f"members of a household differ in {column!r}, which is carried along with its place"
        raise mistake(table, "swap.carry", value, "give all its members the same, or do not carry it")
    return values.take(pa.array(row)) if len(values) else pc.cast(pa.nulls(number), values.type)
