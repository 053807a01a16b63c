"""Ready-made tables of counts with cell keys, from offices that tabulate elsewhere; it checks and rolls them up."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.engine.records import Records
from discreet.engine.sources import open_source
from discreet.errors import Mistakes, Problem
from discreet.population import encode
from discreet.schema.codelist import Breakdown
from discreet.schema.cube import Cube
from discreet.schema.rules import ReadyMade
from discreet.tabulate.grids import AxisRows, SparseGrid
from discreet.tabulate.table import ConfidentialTable

_32 = np.uint64(32)
_NO_ROWS: dict[str, int] = {}


def ready_made_table(cube: Cube, ready: ReadyMade) -> ConfidentialTable:
    """Read a cube's finest cells and roll them up; totals that stand in the file must agree with the sums."""
    key = f"cubes.{cube.id}.counts"
    records = open_source(ready.source, key)
    missing = [
        Problem(
            records.name, key, f"unknown column {name!r}", f"the file has {', '.join(records.schema.names)}"
        )
        for name in (ready.count, ready.key, *(axis.variable for axis in cube.axes))
        if name not in records.schema.names
    ]
    if missing:
        raise Mistakes(missing)
    position, sums = _cells(cube, ready, records, key)
    finest = _is_finest(cube, position)
    grid = SparseGrid(cube, AxisRows(cube, _NO_ROWS, _NO_ROWS))
    grid.add_cells(position[finest].astype(np.uint64), sums[finest])
    positions, cells = grid.rolled_up()
    table = ConfidentialTable(cube, cells, positions)
    _require_agreement(table, position[~finest], sums[~finest], records.name, key)
    return table


def _cells(
    cube: Cube, ready: ReadyMade, records: Records, key: str
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    problems: dict[str, Problem] = {}
    positions, sums = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.uint64)]
    for batch in records.batches([ready.count, ready.key], [axis.variable for axis in cube.axes]):
        position = np.zeros(batch.num_rows, dtype=np.int64)
        for axis, stride in zip(cube.axes, cube.strides, strict=True):
            nodes = _nodes(batch.column(axis.variable), axis, records.name, key, problems)
            position += nodes * stride
        positions.append(position)
        sums.append(_sums(batch, ready, records.name, key, problems))
    if problems:
        raise Mistakes(problems.values())
    position = np.concatenate(positions)
    if len(np.unique(position)) != len(position):
        raise Mistakes(
            [Problem(records.name, key, "a cell stands more than once", "give each cell one line")]
        )
    return position, np.concatenate(sums)


def _nodes(
    column: pa.Array, axis: Breakdown, name: str, key: str, problems: dict[str, Problem]
) -> NDArray[np.int64]:
    try:
        nodes, unknown = encode.encode(column, axis.position)
    except encode.BadColumn as bad:
        problems.setdefault(axis.variable, Problem(name, f"{key}: {axis.variable}", bad.value, bad.remedy))
        return np.zeros(len(column), dtype=np.int64)
    if unknown:
        shown = ", ".join(repr(code) for code in sorted(unknown)[:5])
        value = f"{len(unknown)} codes that {axis.full_name} lacks: {shown}"
        problems.setdefault(
            axis.variable, Problem(name, f"{key}: {axis.variable}", value, "correct the codes")
        )
    return nodes.astype(np.int64)


def _sums(
    batch: pa.RecordBatch, ready: ReadyMade, name: str, key: str, problems: dict[str, Problem]
) -> NDArray[np.uint64]:
    sums = np.zeros(batch.num_rows, dtype=np.uint64)
    for column, limit in ((ready.count, 1 << 32), (ready.key, ready.modulus)):
        try:
            numbers = encode.given_keys(batch.column(column)).astype(np.uint64)
        except encode.BadColumn:
            numbers = np.full(batch.num_rows, 1 << 33, dtype=np.uint64)
        if (numbers >= limit).any():
            value = f"values of {column!r} that are no whole numbers from 0 to {limit - 1}"
            problems.setdefault(column, Problem(name, key, value, "correct the file or declare its modulus"))
            continue
        sums += numbers << _32 if column == ready.key else numbers
    return sums


def _is_finest(cube: Cube, position: NDArray[np.int64]) -> NDArray[np.bool_]:
    finest = np.ones(len(position), dtype=bool)
    for k, axis in enumerate(cube.axes):
        finest &= axis.finest[cube.nodes(position, k)]
    return finest


def _require_agreement(
    table: ConfidentialTable, position: NDArray[np.int64], sums: NDArray[np.uint64], name: str, key: str
) -> None:
    """Refuse a file whose own totals differ, in count or key, from the sums of its finest cells."""
    for wrong in _disagreements(table, position, sums):
        cube = table.cube
        codes = ", ".join(f"{axis.codes[cube.nodes(wrong, k)[0]]}" for k, axis in enumerate(cube.axes))
        value = f"the total at {codes} is not the sum of its finest cells"
        raise Mistakes([Problem(name, key, value, "give all finest cells, or leave the totals out")])


def _disagreements(
    table: ConfidentialTable, position: NDArray[np.int64], sums: NDArray[np.uint64]
) -> Iterator[NDArray[np.int64]]:
    if table.positions is None:
        return
    where = np.searchsorted(table.positions, position)
    inside = np.minimum(where, max(0, len(table.positions) - 1))
    held = np.zeros(len(position), dtype=np.uint64)
    if len(table.positions):
        held = np.where(table.positions[inside] == position, table.cells[inside], np.uint64(0))
    wrong = np.flatnonzero(held != sums)
    if len(wrong):
        yield position[wrong[:1]]
