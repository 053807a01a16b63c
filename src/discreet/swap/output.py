"""The files of a swap: swapped microdata, the private log and the public summary."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from discreet.errors import Mistakes, mistake
from discreet.io.atomic_folder import AtomicFolder
from discreet.io.databases import open_source
from discreet.io.files import Records
from discreet.maths.swap import Places
from discreet.population.encode import BadColumn, hashed_ids
from discreet.programme.programme import Programme
from discreet.programme.release import Disclosure
from discreet.programme.swap import SwapRule
from discreet.swap.households import place_values
from discreet.swap.relocate import STAYS, Link, unit_link
from discreet.swap.result import EXCLUDED, HOUSEHOLD, WHY, Moves, SwapResult, Why, profile_names

Step = Callable[[int], None]


def write_microdata(
    programme: Programme, moves: Moves, secret: bytes, folder: AtomicFolder, step: Step
) -> dict[str, int]:
    """Write one Parquet file for each unit's table; return the number of records whose place changed."""
    moved = {}
    for name, (records, link) in _linked(programme, moves, secret).items():
        moved[name] = 0
        with (
            folder.file(f"{name}.parquet") as target,
            pq.ParquetWriter(target, records.schema, compression="zstd") as writer,
        ):
            for batch, number in _swapped(records, link, moves):
                writer.write_batch(batch)
                moved[name] += number
                step(batch.num_rows)
    return moved


def swapped_tables(programme: Programme, moves: Moves, secret: bytes) -> dict[str, pa.Table]:
    """The table of each unit with the exchanged places, in memory; as confidential as the records."""
    return {
        name: pa.Table.from_batches([batch for batch, _ in _swapped(records, link, moves)], records.schema)
        for name, (records, link) in _linked(programme, moves, secret).items()
    }


def _linked(programme: Programme, moves: Moves, secret: bytes) -> dict[str, tuple[Records, Link | None]]:
    """Each unit's table, and how its records are found among the moves."""
    rule = programme.population
    if rule is None:
        raise ValueError("a programme without a population has no microdata")
    tables = {name: open_source(unit.source, f"population.{name}") for name, unit in rule.units.items()}
    return {name: (tables[name], unit_link(name, tables, rule, moves, secret)) for name in tables}


def _swapped(records: Records, link: Link | None, moves: Moves) -> Iterator[tuple[pa.RecordBatch, int]]:
    """The records with the exchanged places, and the number of records of each batch whose place changed."""
    schema = records.schema
    given = {
        name: _as_type(moves.values[name], schema.field(name), records)
        for name in schema.names
        if name in moves.values
    }
    for batch in _batches(records):
        if link is None:
            yield batch, 0
        else:
            places = _moves_of(link, batch, records)
            yield _moved(batch, places, given, records), int((places != STAYS).sum())


def _batches(records: Records) -> Iterable[pa.RecordBatch]:
    """The records with all columns; files of one source may order and type their columns differently."""
    names = records.schema.names
    for batch in records.batches(names, []):
        try:
            yield batch.select(names).cast(records.schema)
        except pa.ArrowException:
            remedy = "give files whose columns have the same types"
            raise mistake(records.name, "swap", "columns of different types in the files", remedy) from None


def _moves_of(link: Link, batch: pa.RecordBatch, records: Records) -> NDArray[np.int64]:
    try:
        return link.moves_of(batch)
    except BadColumn as bad:
        raise mistake(records.name, f"column {link.column}", bad.value, bad.remedy) from None


def _moved(
    batch: pa.RecordBatch, places: NDArray[np.int64], given: Mapping[str, pa.Array], records: Records
) -> pa.RecordBatch:
    moving = np.flatnonzero(places != STAYS)
    if not len(moving):
        return batch
    take = np.arange(batch.num_rows)
    take[moving] = batch.num_rows + np.arange(len(moving))
    for name, values in given.items():
        column, donors = batch.column(name), values.take(pa.array(places[moving]))
        try:
            new = pa.concat_arrays([column, donors]).take(pa.array(take))
        except pa.ArrowException:
            raise _cannot_hold(name, records) from None
        batch = batch.set_column(batch.schema.get_field_index(name), batch.schema.field(name), new)
    return batch


def _as_type(values: pa.Array, field: pa.Field, records: Records) -> pa.Array:
    plain = values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
    try:
        return plain.cast(field.type)
    except pa.ArrowException:
        raise _cannot_hold(field.name, records) from None


def _cannot_hold(column: str, records: Records) -> Mistakes:
    remedy = "give it the same type in all tables; a dictionary type must have room for all places"
    return mistake(records.name, f"column {column}", "its type cannot represent the exchanged values", remedy)


LOG = "log.parquet"

Rows = NDArray[np.integer[Any]]


def write_log(programme: Programme, result: SwapResult, secret: bytes, folder: AtomicFolder) -> int:
    """Write the log into a private folder; return the number of its lines."""
    table = log_table(programme, result, secret)
    with folder.file(LOG) as file:
        pq.write_table(table, file, compression="zstd")
    return int(table.num_rows)


def log_table(programme: Programme, result: SwapResult, secret: bytes) -> pa.Table:
    """The log of swaps: partners, level, profile, reason, and old and new places."""
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
            "why": _names_of(result.why[rows], WHY),
            "excluded": _names_of(households.excluded[rows], EXCLUDED),
            "inside_parent": pa.array(result.inside[rows], mask=partner < 0),
            "from": _placed(area[rows], regions),
            "to": _placed(np.where(partner >= 0, area[partner], -1), regions),
        }
    )


def _places(rows: Rows, partner: Rows) -> pa.Array:
    """The index of each partner among the rows, which contain every swapped household; null for none."""
    return pa.array(np.searchsorted(rows, np.maximum(partner, 0)), mask=partner < 0)


def _named(codes: NDArray[np.integer], names: Sequence[str]) -> pa.Array:
    indices = pa.array(codes.astype(np.int32), mask=codes < 0)
    return pa.DictionaryArray.from_arrays(indices, pa.array(list(names), pa.string())).cast(pa.string())


def _placed(codes: NDArray[np.integer], regions: Sequence[str]) -> pa.Array:
    places = pa.array(np.where(codes < 0, 0, codes), mask=codes < 0)
    return place_values(regions).take(places)


def _names_of(codes: NDArray[np.uint8], names: Mapping[int, str]) -> pa.Array:
    texts = [names[code] or None for code in sorted(names)]
    return pa.array(texts, pa.string()).take(pa.array(codes))


def _true_ids(tables: Sequence[Records], column: str, wanted: NDArray[np.uint64], secret: bytes) -> pa.Array:
    """The ids of the given hashes (ascending), as written in the tables."""
    found, among = np.zeros(len(wanted), dtype=bool), Places(wanted)
    places: list[Rows] = [np.empty(0, dtype=np.int64)]
    ids: list[pa.Array] = []
    for records in (table for table in tables if column in table.schema.names):
        for batch in records.batches([column], []):
            if found.all():
                break
            present = batch.column(0).drop_null()
            place, first = _first_seen(among, hashed_ids(present, secret, HOUSEHOLD), found)
            found[place] = True
            places.append(place)
            ids.append(present.take(pa.array(first)))
    order = np.argsort(np.concatenate(places))
    return _joined(ids).take(pa.array(order))


def _first_seen(wanted: Places, hashes: NDArray[np.uint64], found: NDArray[np.bool_]) -> tuple[Rows, Rows]:
    """The given hashes that occur here for the first time, and their positions."""
    near = wanted.numbers(hashes)
    hits = np.flatnonzero(near >= 0)
    hits = hits[~found[near[hits]]]
    place, first = np.unique(near[hits], return_index=True)
    return place, hits[first]


def _joined(parts: Sequence[pa.Array]) -> pa.Array:
    """One column of ids; tables that type them differently are joined as text."""
    plain = [part.dictionary_decode() if pa.types.is_dictionary(part.type) else part for part in parts]
    if len({part.type for part in plain}) > 1:
        plain = [pc.cast(part, pa.string()) for part in plain]
    return pa.concat_arrays(plain) if plain else pa.array([], pa.string())


SUMMARY = "swap-summary"
_STEP_HOUSEHOLDS = 10  # fewest households in one step of a rounded share

METHOD, UNIT = "targeted record swapping", "households as wholes"


@dataclass(frozen=True)
class PublicSummary:
    """What the public may know of a swap; the shares and the rule are None where they are not disclosed."""

    exchanged: tuple[str, ...]  # columns
    share: str | None = None  # of households, rounded
    share_at: Mapping[str, str] = field(default_factory=dict)  # level -> share of households exchanged there
    rule: SwapRule | None = None


def write_summary(summary: PublicSummary, folder: AtomicFolder) -> None:
    """Write the public summary as JSON and Markdown into a folder."""
    with folder.file(f"{SUMMARY}.json") as file:
        file.write((json.dumps(_document(summary), indent=1, ensure_ascii=False) + "\n").encode())
    with folder.file(f"{SUMMARY}.md") as file:
        file.write(markdown(summary).encode())


def public_summary(
    result: SwapResult, rule: SwapRule, geography: tuple[str, ...], disclose: Disclosure
) -> PublicSummary:
    """The public summary: the method; with ``variance`` also rounded shares; with ``law`` also the rule."""
    exchanged = (*geography, *rule.carry)
    if disclose is Disclosure.NONE:
        return PublicSummary(exchanged)
    households = len(result.households)
    moved = result.partner >= 0
    share_at = {
        level: rounded_share(int(np.sum(moved & (result.level == number))), households)
        for number, level in enumerate(result.households.levels)
    }
    return PublicSummary(
        exchanged,
        rounded_share(result.swapped, households),
        share_at,
        None if disclose is Disclosure.VARIANCE else rule,
    )


def _document(summary: PublicSummary) -> dict[str, Any]:
    """The content of summary.json."""
    found: dict[str, Any] = {"method": METHOD, "unit": UNIT, "exchanged": list(summary.exchanged)}
    if summary.share is not None:
        found["share_of_households_swapped"] = summary.share
        found["share_of_households_swapped_at"] = dict(summary.share_at)
    return found if summary.rule is None else {**found, "rule": _rule(summary.rule)}


def rounded_share(part: int, whole: int) -> str:
    """A share in percent, rounded to steps of at least one percent and ten households; zero and few look the same."""
    step = max(1, ceil(100 * _STEP_HOUSEHOLDS / whole)) if whole else 100
    steps = round(100 * part / whole / step) if whole else 0
    return f"about {min(100, steps * step)}%" if steps else f"under {step}%"


def _rule(rule: SwapRule) -> dict[str, Any]:
    return {
        "at_risk_below": rule.k,
        "risk_variables": [axis.full_name for axis in rule.risk],
        "similar_in": list(profile_names(rule)),
        "rate": float(rule.rate),
        "cap": None if rule.cap is None else float(rule.cap),
        "donors": rule.donors.value,
        "donors_inside_parent_first": rule.inside_parent,
    }


def markdown(summary: PublicSummary) -> str:
    """The public summary as Markdown."""
    return "\n".join(_lines(summary)) + "\n"


def _lines(summary: PublicSummary) -> Iterator[str]:
    yield "# Record swapping"
    yield ""
    yield (
        "Before counting, some households were exchanged with similar households of other regions, all members"
        " together. A person who is unique in a region may therefore not live there. Only the place was exchanged:"
        f" {', '.join(summary.exchanged)}."
    )
    if summary.share is not None:
        yield ""
        yield f"Households exchanged: {summary.share}."
        yield ""
        yield "| exchanged between regions of | share of all households |"
        yield "|---|---|"
        for level, share in summary.share_at.items():
            yield f"| {level} | {share} |"
    if summary.rule is not None:
        yield ""
        for key, value in _rule(summary.rule).items():
            yield f"- {key.replace('_', ' ')}: {_formatted(value)}"


def _formatted(value: object) -> str:
    if isinstance(value, list):
        return "; ".join(value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)
