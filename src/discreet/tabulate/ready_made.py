"""Ready-made tables of counts, from offices that tabulate elsewhere: read, checked and rolled up.

They have cell keys where the noise is decided by them; noise with a guarantee needs none, and a column of them is not
read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.errors import Mistakes, Problem, mistake
from discreet.io.column_names import shown_names
from discreet.io.databases import open_source
from discreet.io.files import Records
from discreet.maths.cells.counting import counts_of, keys_of
from discreet.maths.cells.keys import improbably_small
from discreet.population import encode
from discreet.population.values import Coder, Wrong
from discreet.programme.codelist import Breakdown
from discreet.programme.cube import Cube
from discreet.programme.cubes import ReadyMade
from discreet.tabulate.counter import AxisRows, SparseGrid
from discreet.tabulate.tables import ConfidentialTable

_32 = np.uint64(32)
_LARGEST = 0xFFFFFFFF  # possible count
_NO_ROWS: dict[str, int] = {}


def ready_made_table(cube: Cube, ready: ReadyMade) -> ConfidentialTable:
    """Read a cube's finest cells and roll them up; totals in the file must agree with the sums."""
    key = f"cubes.{cube.id}.counts"
    records = open_source(ready.source, key)
    missing = list(_missing(cube, ready, records, key))
    if missing:
        raise Mistakes(missing)
    position, sums = _cells(cube, ready, records, key)
    finest = _is_finest(cube, position)
    _require_sound(sums[finest], ready, records.name, key)
    grid = SparseGrid(cube, AxisRows(cube, _NO_ROWS, _NO_ROWS))
    grid.add_cells(position[finest].astype(np.uint64), sums[finest])
    positions, cells = grid.rolled_up()
    _require_agreement(cube, (positions, cells), (position[~finest], sums[~finest]), ready, records.name)
    return ConfidentialTable(cube, cells, positions)


def _missing(cube: Cube, ready: ReadyMade, records: Records, key: str) -> Iterator[Problem]:
    """The columns that the file lacks, each with what it is for and where another name is given."""
    names = records.schema.names
    columns = {_column(axis, ready, names) for axis in cube.axes} | {ready.count}
    if columns | ({ready.key} if ready.keyed else set()) <= set(names):
        return
    shown = shown_names(records, key)
    has = f"the file has {', '.join(shown)}"
    if ready.count not in names:
        remedy = f'{has}; name the column of the counts with counts.count = ".."'
        yield Problem(records.name, key, f"unknown column {ready.count!r}", remedy)
    if ready.keyed and ready.key not in names:
        remedy = (
            f'{has}; name the column of the cell keys with counts.key = "..", or use noise with a guarantee'
        )
        yield Problem(records.name, key, f"unknown column {ready.key!r}", remedy)
    for axis in cube.axes:
        if _column(axis, ready, names) not in names:
            near = get_close_matches(axis.variable, shown, 1, cutoff=0.5)
            meant = f"did you mean {near[0]!r}? " if near else ""
            remedy = (
                f"{meant}columns are named as the variables, or by variables.{axis.variable}.column; {has}"
            )
            yield Problem(records.name, key, f"unknown column {axis.variable!r}", remedy)


def _column(axis: Breakdown, ready: ReadyMade, names: Sequence[str]) -> str:
    """The column of an axis: named as its variable, or as the variable's declared column."""
    return axis.variable if axis.variable in names else ready.columns.get(axis.variable, axis.variable)


def _cells(
    cube: Cube, ready: ReadyMade, records: Records, key: str
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    problems: dict[str, Problem] = {}
    positions, sums = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.uint64)]
    wanted = [ready.count, ready.key] if ready.keyed else [ready.count]
    columns = [_column(axis, ready, records.schema.names) for axis in cube.axes]
    for batch in records.batches(wanted, columns):
        position = np.zeros(batch.num_rows, dtype=np.int64)
        for axis, column, stride in zip(cube.axes, columns, cube.strides, strict=True):
            nodes = _nodes(batch.column(column), axis, records.name, key, problems)
            position += nodes * stride
        positions.append(position)
        sums.append(_sums(batch, ready, records.name, key, problems))
    if problems:
        raise Mistakes(problems.values())
    position = np.concatenate(positions)
    if len(np.unique(position)) != len(position):
        raise mistake(records.name, key, "duplicate cells", "give each cell one line")
    if not len(position):
        raise mistake(records.name, key, "no cells", "give a table with cells")
    return position, np.concatenate(sums)


def _nodes(
    column: pa.Array, axis: Breakdown, name: str, key: str, problems: dict[str, Problem]
) -> NDArray[np.int64]:
    try:
        found = Coder(axis.position).encode(column)
    except encode.BadColumn as bad:
        problems.setdefault(axis.variable, Problem(name, f"{key}: {axis.variable}", bad.value, bad.remedy))
        return np.zeros(len(column), dtype=np.int64)
    for why, values in found.wrong.items():
        shown = ", ".join(repr(code) for code in sorted(values)[:5])
        value = f"{len(values)} codes that are not in {axis.full_name}: {shown}"
        if why is Wrong.MISSING:
            value = f"some lines have no value of {axis.full_name}"
        problems.setdefault(
            f"{axis.variable} {why.name}",
            Problem(name, f"{key}: {axis.variable}", value, "correct the codes"),
        )
    return found.codes.astype(np.int64)


def _sums(
    batch: pa.RecordBatch, ready: ReadyMade, name: str, key: str, problems: dict[str, Problem]
) -> NDArray[np.uint64]:
    sums = np.zeros(batch.num_rows, dtype=np.uint64)
    columns = ((ready.count, 1 << 32, np.uint64(0)), (ready.key, ready.modulus, _32))
    for column, limit, shift in columns if ready.keyed else columns[:1]:
        try:
            numbers = encode.given_keys(batch.column(column)).astype(np.uint64)
        except encode.BadColumn:
            numbers = np.full(batch.num_rows, 1 << 62, dtype=np.uint64)
        if (numbers >= limit).any():
            value = f"values of {column!r} that are not whole numbers from 0 to {limit - 1}"
            remedy = (
                "correct the file" if column == ready.count else "correct the file or declare its modulus"
            )
            problems.setdefault(column, Problem(name, key, value, remedy))
            continue
        sums += numbers << shift
    return sums


def _is_finest(cube: Cube, position: NDArray[np.int64]) -> NDArray[np.bool_]:
    finest = np.ones(len(position), dtype=bool)
    for k, axis in enumerate(cube.axes):
        finest &= axis.finest[cube.nodes(position, k)]
    return finest


def _require_sound(sums: NDArray[np.uint64], ready: ReadyMade, name: str, key: str) -> None:
    """Refuse counts whose sum would overflow into the keys, and keys that cannot be sums of record keys."""
    counts, keys = counts_of(sums), keys_of(sums)
    if int(counts.sum()) > _LARGEST:
        raise mistake(name, key, f"counts that add up to more than {_LARGEST}", "split the table")
    if not ready.keyed:
        return
    if keys[counts == 0].any():
        raise mistake(
            name, key, "empty cells with a key", "the key of an empty cell is 0; see how keys are summed"
        )
    if improbably_small(int(keys.max(initial=0)), int(np.count_nonzero(counts)), ready.modulus):
        value = f"cell keys too small for the modulus {ready.modulus}"
        raise mistake(name, key, value, "declare the modulus that the keys were summed with")


def _require_agreement(
    cube: Cube,
    cells: tuple[NDArray[np.int64], NDArray[np.uint64]],
    given: tuple[NDArray[np.int64], NDArray[np.uint64]],
    ready: ReadyMade,
    name: str,
) -> None:
    """Refuse a file whose own totals differ, in count or key, from the sums of its finest cells."""
    position, sums = given
    mine = _at(*cells, position)
    # the keys of the sums are unreduced, those of the file reduced; a wrong modulus is reported elsewhere
    comparable = ready.keyed and 2**32 % ready.modulus == 0
    differs = (keys_of(mine).astype(np.uint64) % np.uint64(ready.modulus) != keys_of(sums)) & comparable
    wrong = np.flatnonzero(differs | (counts_of(mine) != counts_of(sums)))
    if len(wrong):
        cell = position[wrong[:1]]
        codes = ", ".join(axis.codes[int(cube.nodes(cell, k)[0])] for k, axis in enumerate(cube.axes))
        value = f"the total at {codes} is not the sum of its finest cells"
        raise mistake(name, f"cubes.{cube.id}.counts", value, "give all finest cells, or omit the totals")


def _at(
    positions: NDArray[np.int64], cells: NDArray[np.uint64], wanted: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """The accumulators at some positions; zero where there is no cell."""
    if not len(positions):
        return np.zeros(len(wanted), dtype=np.uint64)
    where = np.minimum(np.searchsorted(positions, wanted), len(positions) - 1)
    return np.where(positions[where] == wanted, cells[where], np.uint64(0))
