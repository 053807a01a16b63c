"""Targeted record swapping: computes the moves of households from a programme and a secret."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import ceil, floor
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from discreet.errors import mistake
from discreet.io.progress import Progress, Quiet
from discreet.maths.cells.keys import hash_key
from discreet.maths.swap import Places
from discreet.maths.swap_pairing import Candidates, Outcome, Paired, Terms, pair
from discreet.population.encode import is_text
from discreet.programme.programme import Programme
from discreet.programme.swap import Donors, SwapRule
from discreet.swap.households import Gathered, gather, place_values
from discreet.swap.result import HOUSEHOLD, Moves, SwapHouseholds, SwapResult
from discreet.swap.tables import HOUSEHOLDS, PERSONS, SwapTables, open_tables, some_hashes


def moves_of(
    tables: SwapTables, gathered: Gathered, partner: NDArray[np.integer[Any]], secret: bytes
) -> Moves:
    """The donor's value of every exchanged column, for each household that moved."""
    moved = np.flatnonzero(partner >= 0)
    ids = gathered.households.ids[moved]
    donors = partner[moved]
    regions, place = gathered.regions, gathered.place[donors]
    values = {
        column: pa.DictionaryArray.from_arrays(
            regions.above[level][place], place_values(regions.names[level])
        )
        for level, column in enumerate(regions.columns)
    }
    number = gathered.number
    has_moved = np.zeros(len(number), dtype=bool)
    has_moved[number[moved]] = True
    for unit, columns in _holders(tables).items():
        values |= _values(tables, unit, columns, gathered.places, has_moved, number[donors], secret)
    return Moves(ids, values)


def _holders(tables: SwapTables) -> dict[str, list[str]]:
    holders: dict[str, list[str]] = {}
    for column in tables.rule.carry:
        holders.setdefault(tables.holder(column, "swap.carry", HOUSEHOLDS, PERSONS), []).append(column)
    return holders


def _values(
    tables: SwapTables,
    unit: str,
    columns: Sequence[str],
    among: Places,
    has_moved: NDArray[np.bool_],
    asked: NDArray[np.int32],
    secret: bytes,
) -> dict[str, pa.Array]:
    """The own values of some households that moved; all households are given by their numbers."""
    records, household = tables.opened[unit], tables.household_id
    owners: list[NDArray[np.int32]] = [np.empty(0, dtype=np.int32)]
    parts: list[pa.RecordBatch] = []
    for batch in records.batches([household, *columns], []):
        hashes, known = some_hashes(batch.column(household), secret, HOUSEHOLD, household, records.name)
        found = among.numbers(hashes)
        rows = np.flatnonzero(known & (found >= 0) & has_moved[found])
        leads = np.ones(len(rows), dtype=bool)  # the first of adjacent members
        leads[1:] = found[rows[1:]] != found[rows[:-1]]
        values = batch.select(columns)
        if not leads.all():
            for column in columns:
                codes = _codes(values.column(column))[rows]
                _require_agreement(codes, np.flatnonzero(leads)[np.cumsum(leads) - 1], column, records.name)
            rows = rows[leads]
        owners.append(found[rows])
        parts.append(values.take(pa.array(rows)))
    table = pa.Table.from_batches(parts).unify_dictionaries()
    owner = np.concatenate(owners)
    row = np.zeros(len(has_moved), dtype=np.int32)
    row[owner] = np.arange(len(owner), dtype=np.int32)
    return {
        column: _one_each(table[column], row[owner], row[asked], column, records.name) for column in columns
    }


def _codes(values: pa.Array) -> NDArray[np.int64]:
    """Equal numbers for equal values, missing ones included."""
    if pa.types.is_dictionary(values.type) and not values.null_count:
        codes: NDArray[np.int64] = _codes(values.dictionary)  # entries may repeat
        return codes[values.indices.to_numpy(zero_copy_only=False)]  # type: ignore[no-any-return]
    plain = values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
    encoded = plain.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _one_each(
    column: pa.ChunkedArray, same: NDArray[np.int32], rows: NDArray[np.int32], name: str, table: str
) -> pa.Array:
    """The values of some rows; all rows must have the value of the same household's row."""
    values = column.combine_chunks()
    if not len(values):
        kind = values.type
        return pc.cast(pa.nulls(len(rows)), kind.value_type if pa.types.is_dictionary(kind) else kind)
    if (same != np.arange(len(same))).any():
        _require_agreement(_codes(values), same, name, table)
    found = values.take(pa.array(rows))
    is_plain = not pa.types.is_dictionary(found.type)
    return found if is_plain or is_text(found.type.value_type) else found.dictionary_decode()


def _require_agreement(codes: NDArray[np.int64], same: NDArray[Any], column: str, table: str) -> None:
    """Refuse records with another value than those of the same household."""
    if (codes[same] != codes).any():
        value = f"members of a household differ in {column!r}, which is swapped with its place"
        raise mistake(
            table, "swap.carry", value, "give all its members the same value, or remove it from carry"
        )


_ALL = Fraction(1)


def swap(
    programme: Programme, secret: bytes, threads: int = 1, progress: Progress | None = None
) -> SwapResult:
    """Exchange the places of households at risk, and of further households up to the rate."""
    progress = progress or Quiet()
    tables = open_tables(programme)
    gathered = gather(tables, secret, threads, progress)
    progress.stage("pairing households")
    paired = pair_households(gathered.households, tables.rule, secret)
    progress.stage("recording the moves")
    moves = moves_of(tables, gathered, paired.partner, secret)
    return SwapResult(
        gathered.households,
        paired.partner,
        paired.level,
        paired.profile,
        paired.inside,
        paired.outcome,
        tuple(_conflicts(paired, gathered.households, tables.rule)),
        moves,
    )


def pair_households(households: SwapHouseholds, rule: SwapRule, secret: bytes) -> Paired:
    """Find the partner of each household."""
    candidates = Candidates(
        households.ids,
        households.area,
        households.risk,
        households.at_risk_level,
        households.excluded > 0,
        households.profiles,
    )
    return pair(candidates, _terms(households, rule, secret))


def _terms(households: SwapHouseholds, rule: SwapRule, secret: bytes) -> Terms:
    number = len(households)
    return Terms(
        hash_key(secret, "swap/draw"),
        ceil(rule.rate * number),
        floor((_ALL if rule.cap is None else rule.cap) * number),
        rule.donors is Donors.RISK,
        rule.inside_parent,
        np.array([floor(rule.level_quotas.get(level, _ALL) * number) for level in rule.levels]),
        tuple(
            (level, _region_quota(households, level, rule.region_quotas[name]))
            for level, name in enumerate(rule.levels)
            if name in rule.region_quotas
        ),
    )


def _region_quota(households: SwapHouseholds, level: int, share: Fraction) -> NDArray[np.int64]:
    """The largest number of households that may be exchanged, by region."""
    sizes = np.bincount(households.area[level], minlength=len(households.regions[level]))
    return sizes * share.numerator // share.denominator


def _conflicts(paired: Paired, households: SwapHouseholds, rule: SwapRule) -> Iterator[str]:
    """The conflicts between rate, cap and quotas; shares as declared, no counts."""
    if (paired.outcome == Outcome.CAP).any():
        yield f"the cap of {float(rule.cap or 1):g} leaves some households at risk unswapped"
    if (paired.outcome == Outcome.QUOTA).any():
        yield "a quota leaves some households at risk unswapped"
    if paired.swapped < ceil(rule.rate * len(households)):
        hindrance = {Outcome.CAP: "the cap", Outcome.QUOTA: "a quota"}
        why = hindrance.get(paired.short or Outcome.NO_DONOR, "a lack of similar households")
        yield f"the rate of {float(rule.rate):g} is not reached because of {why}"
