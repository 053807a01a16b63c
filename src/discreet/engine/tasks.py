"""What runs on executors: the same reading, judging, counting and perturbing as on one machine, on parts of records.

Nothing here is confidential by itself: the secret, keys and records reach a task through a broadcast, its input and the
files that it reads, never through its code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.engine.rows import (
    Answer,
    Kind,
    Row,
    answered,
    packed,
    read_answer,
    row_of,
    rows_of_cells,
    rows_of_ids,
    rows_of_whole,
    unpacked,
)
from discreet.errors import DiscreetError
from discreet.io.files import FilePart, Records, open_parts
from discreet.io.progress import Quiet
from discreet.population.reading import Findings, Needs, Relocation, UnitReader, has_duplicates
from discreet.programme.cube import Cube
from discreet.run.run import Finish, Places
from discreet.run.tabulating import checked_ready_made
from discreet.tabulate.counter import CubeCounter, CubeParts
from discreet.tabulate.tables import ConfidentialTable

Batches = Iterator[pa.RecordBatch]


class Shared(Protocol):
    """A broadcast of pyspark: its value is read on executors."""

    @property
    def value(self) -> Any:
        """What the driver has shared."""


@dataclass(frozen=True, eq=False)
class Counting:
    """How the records of one unit are counted; confidential: shared only as a broadcast."""

    needs: Needs
    cubes: Sequence[Cube]  # none where records are only judged
    secret: bytes = field(repr=False)
    places: Places | None
    records: Records  # the whole table without its content
    parts: Sequence[Sequence[FilePart]] | None  # the files of each task; None where Spark reads the records
    targets: int  # tasks that add up what others have counted


def unread(plain: Sequence[str], coded: Sequence[str]) -> Batches:
    """The content of a table that is not read here."""
    raise TypeError("records are read by tasks")


def counts(shared: Shared) -> Callable[[Batches], Batches]:
    """The task that counts a part of the records."""

    def task(batches: Batches) -> Batches:
        job: Counting = shared.value
        if job.parts is None:
            return packed(_counted(job, _partition(), replace(job.records, read=lambda _, __: batches)))
        numbers = (int(k) for batch in batches for k in batch.column(0).to_pylist())
        return packed(row for number in numbers for row in _counted_files(job, number))

    return task


def _counted_files(job: Counting, number: int) -> Iterator[Row]:
    assert job.parts is not None
    key = f"population.{job.needs.unit.name}"
    yield from _counted(job, number, open_parts(job.records, job.parts[number], key))


def _counted(job: Counting, number: int, records: Records) -> Iterator[Row]:
    """The cells, ids and findings of some records; an error that is raised on purpose is a row, too."""
    unit = job.needs.unit
    try:
        moved = job.places.of(unit) if job.places else None
        yield from _read(job, number, records, moved)
    except DiscreetError as error:
        yield row_of(Kind.RAISED, number, error)


def _read(job: Counting, number: int, records: Records, moved: Relocation | None) -> Iterator[Row]:
    reader = UnitReader(job.needs, job.secret, 1, moved, records)
    with ThreadPoolExecutor(1) as pool:
        counter = CubeCounter(job.cubes, pool)
        for block in reader.blocks():
            counter.add(block)
    yield row_of(Kind.FOUND, number, reader.found_here())
    yield from rows_of_ids(reader.ids(), job.targets)
    for k, cube in enumerate(job.cubes):
        yield from rows_of_cells(k, cube, counter.finest(k), job.targets)


def adds_up(shared: Shared) -> Callable[[Batches], Batches]:
    """The task that adds up the cells of its parts, and looks for duplicate ids among its own."""

    def task(batches: Batches) -> Batches:
        job: Counting = shared.value
        return packed(_added_up(job, unpacked(batches)))

    return task


def _added_up(job: Counting, rows: Iterable[Row]) -> Iterator[Row]:
    sums: dict[int, CubeParts] = {}
    ids: list[NDArray[np.uint64]] = [np.empty(0, dtype=np.uint64)]
    for row in rows:
        match row.kind:
            case Kind.CELLS:
                cube = job.cubes[row.number]
                sums.setdefault(row.number, CubeParts.some(cube)).add(row.cells)
            case Kind.IDS:
                ids.append(row.ids)
            case _:
                yield row
    if has_duplicates(np.concatenate(ids)):
        yield row_of(Kind.FOUND, 0, Findings(duplicates=True))
    while sums:
        number, found = sums.popitem()
        yield from rows_of_whole(number, found.finest())


def finishes(shared: Shared) -> Callable[[Batches], Batches]:
    """The task that makes the table of one cube, with all margins, and finishes it."""

    def task(batches: Batches) -> Batches:
        cubes, finish = shared.value
        return answered([_finished(cubes, finish, _partition(), unpacked(batches))])

    return task


def _finished(cubes: Sequence[Cube], finish: Finish[Any], number: int, rows: Iterable[Row]) -> Answer:
    try:
        return Answer(number, finish(_table(cubes[number], rows)))
    except DiscreetError as error:
        return Answer(number, error=error)


def _table(cube: Cube, rows: Iterable[Row]) -> ConfidentialTable:
    whole = CubeParts.whole(cube)
    for row in rows:
        whole.add(row.cells)
    return whole.table()


def makes(shared: Shared) -> Callable[[Batches], Batches]:
    """The task that makes something of one cube for the task that finishes all of them together."""

    def task(batches: Batches) -> Batches:
        cubes, each, numbers = shared.value
        answer = _finished(cubes, each, _partition(), unpacked(batches))
        return answered([replace(answer, number=numbers[answer.number])])

    return task


def makes_ready(shared: Shared) -> Callable[[Batches], Batches]:
    """The same for a cube whose counts were given."""

    def task(batches: Batches) -> Batches:
        for _ in batches:
            pass
        run, cube, each, number = shared.value
        return answered([replace(_called(lambda: each(checked_ready_made(run, cube))), number=number)])

    return task


def finishes_all(shared: Shared) -> Callable[[Batches], Batches]:
    """The task that finishes all cubes together."""

    def task(batches: Batches) -> Batches:
        together = shared.value
        found = {answer.number: answer for answer in _answers(batches)}
        wrong = [answer.error for answer in found.values() if answer.error is not None]
        if wrong:
            return answered([Answer(0, error=wrong[0])])
        given = [found[number].result for number in sorted(found)]
        return answered([_called(together, given, Quiet())])

    return task


def _answers(batches: Batches) -> Iterator[Answer]:
    for batch in batches:
        for number, content in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield read_answer(number, content)


def calls(shared: Shared) -> Callable[[Batches], Batches]:
    """The task that calls one function."""

    def task(batches: Batches) -> Batches:
        for _ in batches:
            pass
        function, given, named = shared.value
        return answered([_called(function, *given, **named)])

    return task


def _called(function: Callable[..., Any], *given: Any, **named: Any) -> Answer:
    try:
        return Answer(0, function(*given, **named))
    except DiscreetError as error:
        return Answer(0, error=error)


def _partition() -> int:
    from pyspark import TaskContext  # noqa: PLC0415, only on executors

    context = TaskContext.get()
    assert context is not None
    return int(context.partitionId())
