"""The private log of a swap: one line for each household that was swapped or should have been.

It owns what the log says; it is as confidential as the microdata and never goes into a release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from discreet.engine.records import Records
from discreet.engine.sources import open_source
from discreet.population.encode import hashed_ids
from discreet.schema.programme import Programme
from discreet.swap.naming import EXCLUDED, WHY, profile_names
from discreet.swap.result import HOUSEHOLD, SwapResult, Why
from discreet.swap.whole_folder import WholeFolder

LOG = "log.parquet"

Rows = NDArray[np.int64]


def write_log(programme: Programme, result: SwapResult, secret: bytes, folder: WholeFolder) -> int:
    """Write the log into a private folder; return the number of its lines."""
    table = log_table(programme, result, secret)
    with folder.file(LOG) as file:
        pq.write_table(table, file, compression="zstd")
    return int(table.num_rows)


def log_table(programme: Programme, result: SwapResult, secret: bytes) -> pa.Table:
    """Who was exchanged with whom, at which level, by which profile, why, and from where to where."""
    rule, population = programme.swap, programme.population
    if rule is None or population is None:
        raise ValueError("a programme without [swap] and a population has no swaps to log")
    households = result.households
    rows = np.flatnonzero((result.partner >= 0) | (result.why != Why.NOT_SWAPPED))
    tables = [open_source(unit.source, f"population.{name}") for name, unit in population.units.items()]
    ids = _true_ids(tables, population.ids["households"], households.ids[rows], secret)
    partner = result.partner[rows]
    area, regions = households.area[-1], households.regions[-1]
    return pa.table(
        {
            "household": ids,
            "partner": ids.take(_places(rows, partner)),
            "level": _named(result.level[rows], households.levels),
            "at_risk_at": _named(households.at_risk_level[rows], households.levels),
            "profile": _named(result.profile[rows], profile_names(rule)),
            "why": _worded(result.why[rows], WHY),
            "excluded": _worded(households.excluded[rows], EXCLUDED),
            "inside_parent": pa.array(result.inside[rows], mask=partner < 0),
            "from": _named(area[rows], regions),
            "to": _named(np.where(partner >= 0, area[partner], -1), regions),
        }
    )


def _places(rows: Rows, partner: Rows) -> pa.Array:
    """Where the partners stand among the rows, which hold every swapped household; null for none."""
    return pa.array(np.searchsorted(rows, np.maximum(partner, 0)), mask=partner < 0)


def _named(codes: NDArray[np.integer], names: Sequence[str]) -> pa.Array:
    indices = pa.array(codes.astype(np.int32), mask=codes < 0)
    return pa.DictionaryArray.from_arrays(indices, pa.array(list(names), pa.string())).cast(pa.string())


def _worded(codes: NDArray[np.uint8], words: Mapping[int, str]) -> pa.Array:
    texts = [words[code] or None for code in sorted(words)]
    return pa.array(texts, pa.string()).take(pa.array(codes))


def _true_ids(tables: Sequence[Records], column: str, wanted: NDArray[np.uint64], secret: bytes) -> pa.Array:
    """The ids whose hashes are wanted (ascending), as they stand in the tables."""
    found = np.zeros(len(wanted), dtype=bool)
    places: list[Rows] = [np.empty(0, dtype=np.int64)]
    ids: list[pa.Array] = []
    for records in (table for table in tables if column in table.schema.names):
        for batch in records.batches([column], []):
            if found.all():
                break
            held = batch.column(0).drop_null()
            place, first = _first_seen(wanted, hashed_ids(held, secret, HOUSEHOLD), found)
            found[place] = True
            places.append(place)
            ids.append(held.take(pa.array(first)))
    order = np.argsort(np.concatenate(places))
    return _joined(ids).take(pa.array(order))


def _first_seen(
    wanted: NDArray[np.uint64], hashes: NDArray[np.uint64], found: NDArray[np.bool_]
) -> tuple[Rows, Rows]:
    """The wanted hashes that stand here for the first time, and where."""
    if not len(wanted):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    near = np.minimum(np.searchsorted(wanted, hashes), len(wanted) - 1)
    hits = np.flatnonzero((wanted[near] == hashes) & ~found[near])
    place, first = np.unique(near[hits], return_index=True)
    return place, hits[first]


def _joined(parts: Sequence[pa.Array]) -> pa.Array:
    """One column of ids; tables that type them differently are joined as text."""
    plain = [part.dictionary_decode() if pa.types.is_dictionary(part.type) else part for part in parts]
    if len({part.type for part in plain}) > 1:
        plain = [pc.cast(part, pa.string()) for part in plain]
    return pa.concat_arrays(plain) if plain else pa.array([], pa.string())
