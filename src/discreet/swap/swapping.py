"""Targeted record swapping: computes the moves of households from a programme and a secret."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import ceil, floor

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from discreet.errors import mistake
from discreet.io.progress import Progress, Quiet
from discreet.maths.cells.keys import hash_key
from discreet.maths.swap import Candidates, Outcome, Paired, Terms, pair
from discreet.programme.programme import Programme
from discreet.programme.swap import Donors, SwapRule
from discreet.swap.households import Gathered, gather, place_values
from discreet.swap.result import HOUSEHOLD, Moves, SwapHouseholds, SwapResult
from discreet.swap.tables import HOUSEHOLDS, PERSONS, SwapTables, open_tables, some_hashes


def moves_of(tables: SwapTables, gathered: Gathered, partner: NDArray[np.int64], secret: bytes) -> Moves:
    """The donor's value of every exchanged column, for each household that moved."""
    moved = np.flatnonzero(partner >= 0)
    ids = gathered.households.ids[moved]
    donors = partner[moved]
    regions, place = gathered.regions, gathered.place[donors]
    values = {
        column: place_values(regions.names[level]).take(pa.array(regions.above[level][place]))
        for level, column in enumerate(regions.columns)
    }
    at = np.searchsorted(ids, gathered.households.ids[donors])
    for unit, columns in _holders(tables).items():
        of_moved = _values(tables, unit, columns, ids, secret)
        values |= {column: of_moved[column].take(pa.array(at)) for column in columns}
    return Moves(ids, values)


def _holders(tables: SwapTables) -> dict[str, list[str]]:
    holders: dict[str, list[str]] = {}
    for column in tables.rule.carry:
        holders.setdefault(tables.holder(column, "swap.carry", HOUSEHOLDS, PERSONS), []).append(column)
    return holders


def _values(
    tables: SwapTables, unit: str, columns: Sequence[str], ids: NDArray[np.uint64], secret: bytes
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
        value = f"members of a household differ in {column!r}, which is swapped with its place"
        raise mistake(
            table, "swap.carry", value, "give all its members the same value, or remove it from carry"
        )
    return values.take(pa.array(row)) if len(values) else pc.cast(pa.nulls(number), values.type)


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
