"""Writing the tables of a population with the places of swapped households exchanged; it decides no swap.

Rows, their order, the columns and their types stay as they are; only the columns that the moves hold change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from discreet.engine.records import Records
from discreet.engine.sources import open_source
from discreet.errors import Mistakes, mistake
from discreet.population.encode import BadColumn
from discreet.schema.programme import Programme
from discreet.swap.links import STAYS, Link, unit_link
from discreet.swap.result import Moves
from discreet.swap.whole_folder import WholeFolder

Step = Callable[[int], None]


def write_microdata(
    programme: Programme, moves: Moves, secret: bytes, folder: WholeFolder, step: Step
) -> dict[str, int]:
    """Write one Parquet file for each unit's table; return the number of records whose place changed."""
    rule = programme.population
    if rule is None:
        raise ValueError("a programme without a population has no microdata")
    tables = {name: open_source(unit.source, f"population.{name}") for name, unit in rule.units.items()}
    links = {name: unit_link(name, tables, rule, moves, secret) for name in tables}
    return {
        name: _write_table(records, links[name], moves, folder, f"{name}.parquet", step)
        for name, records in tables.items()
    }


def _write_table(
    records: Records, link: Link | None, moves: Moves, folder: WholeFolder, file: str, step: Step
) -> int:
    schema = records.schema
    given = {
        name: _as_type(moves.values[name], schema.field(name), records)
        for name in schema.names
        if name in moves.values
    }
    moved = 0
    with folder.file(file) as target, pq.ParquetWriter(target, schema, compression="zstd") as writer:
        for batch in _batches(records):
            if link is not None:
                places = _moves_of(link, batch, records)
                moved += int((places != STAYS).sum())
                batch = _moved(batch, places, given, records)
            writer.write_batch(batch)
            step(batch.num_rows)
    return moved


def _batches(records: Records) -> Iterable[pa.RecordBatch]:
    """The whole records; files of one source may order and type their columns differently."""
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
    try:
        return values.cast(field.type)
    except pa.ArrowException:
        raise _cannot_hold(field.name, records) from None


def _cannot_hold(column: str, records: Records) -> Mistakes:
    remedy = "give it the same type in all tables; a dictionary needs room for all places"
    return mistake(records.name, f"column {column}", "its type cannot hold the exchanged values", remedy)
