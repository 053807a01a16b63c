"""What leaves a task: rows of a few binary columns, so that Spark moves arrays and never single cells.

A row of cells has at most ``CELLS`` finest cells of one cube as little-endian arrays. A cube's positions are divided
into parts, and the cells of one part always have the same target: the task that adds them up.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.errors import DiscreetError
from discreet.programme.cube import Cube
from discreet.tabulate.counter import FinestCells, Sums

CELLS = 1 << 13  # in a row: at most 256 KiB, whatever the number of rows in a batch
SMALLEST_PART = 1 << 18  # positions; a smaller cube is added up by one task
_AT_ONCE = 64  # rows in a batch

SCHEMA = "target int, kind int, number int, positions binary, cells binary, weights binary, largest binary"
ANSWER = "number int, answer binary"
_FIELDS = (
    ("target", pa.int32()),
    ("kind", pa.int32()),
    ("number", pa.int32()),
    ("positions", pa.binary()),
    ("cells", pa.binary()),
    ("weights", pa.binary()),
    ("largest", pa.binary()),
)
_ANSWER = (("number", pa.int32()), ("answer", pa.binary()))


class Kind(IntEnum):
    """What a row has."""

    CELLS = 0  # finest cells of the cube of this number
    IDS = 1  # hashes of ids of the unit of this number, as ``cells``
    FOUND = 2  # findings of a part of its records, pickled as ``cells``
    RAISED = 3  # a part of its records and the error that it raised, pickled as ``cells``


@dataclass(frozen=True, eq=False, repr=False)
class Row:
    """One row; confidential."""

    target: int
    kind: Kind
    number: int
    content: FinestCells | NDArray[np.uint64] | bytes

    @property
    def cells(self) -> FinestCells:
        """The cells of a row of them."""
        if not isinstance(self.content, FinestCells):
            raise TypeError("a row without cells")
        return self.content

    @property
    def ids(self) -> NDArray[np.uint64]:
        """The hashes of a row of ids."""
        if not isinstance(self.content, np.ndarray):
            raise TypeError("a row without ids")
        return self.content

    @property
    def object(self) -> Any:
        """What was pickled: it was written by a task of this run."""
        if not isinstance(self.content, bytes):
            raise TypeError("a row without an object")
        return pickle.loads(self.content)  # noqa: S301


def rows_of_cells(number: int, cube: Cube, found: FinestCells, targets: int) -> Iterator[Row]:
    """The rows of a cube's finest cells: parts of its positions, each with one target; at least one row."""
    if not len(found.positions):
        yield Row(number % targets, Kind.CELLS, number, found)
    size = part_size(cube, targets)
    edges = np.arange(size, cube.size, size, dtype=np.uint64)
    cuts = [0, *np.searchsorted(found.positions, edges).tolist(), len(found.positions)]
    for part in range(len(cuts) - 1):
        for first in range(cuts[part], cuts[part + 1], CELLS):
            here = slice(first, min(first + CELLS, cuts[part + 1]))
            yield Row((number + part) % targets, Kind.CELLS, number, _some(found, here))


def part_size(cube: Cube, targets: int) -> int:
    """The number of positions of a part."""
    return max(SMALLEST_PART, -(-cube.size // targets))


def rows_of_whole(number: int, found: FinestCells, target: int) -> Iterator[Row]:
    """The rows of cells that are added up, at least one, for the task that finishes the cube."""
    for first in range(0, max(1, len(found.positions)), CELLS):
        yield Row(target, Kind.CELLS, number, _some(found, slice(first, first + CELLS)))


def rows_of_ids(number: int, ids: NDArray[np.uint64], targets: int) -> Iterator[Row]:
    """The rows of hashes of one unit's ids: equal ones have the same target."""
    ids = np.sort(ids)
    edges = [(target << 64) // targets for target in range(1, targets)]
    cuts = [0, *np.searchsorted(ids, np.array(edges, dtype=np.uint64)).tolist(), len(ids)]
    for target in range(targets):
        for first in range(cuts[target], cuts[target + 1], CELLS):
            yield Row(target, Kind.IDS, number, ids[first : min(first + CELLS, cuts[target + 1])])


def row_of(kind: Kind, number: int, content: object) -> Row:
    """A row of findings, or of an error."""
    return Row(0, kind, number, pickle.dumps(content))


def _some(found: FinestCells, here: slice) -> FinestCells:
    weights, largest = found.weights, found.largest
    return FinestCells(
        found.positions[here],
        found.cells[here],
        None if weights is None else weights[here],
        None if largest is None else largest[here],
    )


def packed(rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    """The rows as Arrow batches of bounded size."""
    waiting: list[Row] = []
    for row in rows:
        waiting.append(row)
        if len(waiting) == _AT_ONCE:
            yield _batch(waiting)
            waiting = []
    if waiting:
        yield _batch(waiting)


def _batch(rows: list[Row]) -> pa.RecordBatch:
    columns = zip(*map(_values, rows), strict=True)
    arrays = [pa.array(column, kind) for column, (_, kind) in zip(columns, _FIELDS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in _FIELDS])


def _values(row: Row) -> tuple[object, ...]:
    head = (row.target, int(row.kind), row.number)
    content = row.content
    if isinstance(content, bytes):
        return (*head, None, content, None, None)
    if isinstance(content, FinestCells):
        arrays = (content.positions, content.cells, content.weights, content.largest)
        return (*head, *(None if one is None else _bytes(one) for one in arrays))
    return (*head, None, _bytes(content), None, None)


def _bytes(numbers: Sums) -> bytes:
    return numbers.astype("<u8", copy=False).tobytes()


def unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
    """The rows of Arrow batches."""
    for batch in batches:
        for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield _row(*values)


def _row(
    target: int,
    kind: int,
    number: int,
    positions: bytes | None,
    cells: bytes,
    weights: bytes | None,
    largest: bytes | None,
) -> Row:
    match Kind(kind):
        case Kind.CELLS:
            found = FinestCells(
                _numbers(positions or b""),
                _numbers(cells),
                None if weights is None else _numbers(weights),
                None if largest is None else _numbers(largest),
            )
            return Row(target, Kind.CELLS, number, found)
        case Kind.IDS:
            return Row(target, Kind.IDS, number, _numbers(cells))
    return Row(target, Kind(kind), number, cells)


def _numbers(content: bytes) -> NDArray[np.uint64]:
    return np.frombuffer(content, dtype="<u8").astype(np.uint64, copy=False)


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """What a task returns to the driver: something small, or the error that it raised on purpose."""

    number: int
    result: Any = None
    error: DiscreetError | None = None


def answered(answers: Iterable[Answer]) -> Iterator[pa.RecordBatch]:
    """The answers of a task as Arrow batches."""
    for answer in answers:
        arrays = [
            pa.array([answer.number], pa.int32()),
            pa.array([pickle.dumps((answer.result, answer.error))], pa.binary()),
        ]
        yield pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in _ANSWER])


def read_answer(number: int, content: bytes) -> Answer:
    """The answer in a row that a task of this run has written."""
    return Answer(number, *pickle.loads(content))  # noqa: S301
