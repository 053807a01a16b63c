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
from discreet.errors import DiscreetError, mistake
from discreet.io.files import FilePart, Records, open_parts
from discreet.io.progress import Quiet
from discreet.population.reading import Findings, Needs, Relocation, UnitReader, has_duplicates
from discreet.programme.cube import Cube
from discreet.run.run import Finish, Places, Run
from discreet.run.tabulating import checked_ready_made
from discreet.tabulate.counter import CubeCounter, CubeParts

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
    parts: Sequence[Sequence[FilePart]]  # the files of each task
    targets: int  # tasks that add up what others have counted
    finishing: Sequence[int]  # cube -> the task that finishes it


def unread(plain: Sequence[str], coded: Sequence[str]) -> Batches:
    """The content of a table that is not read here."""
    raise TypeError("records are read by tasks")


def counts(shared: Shared) -> Callable[[Batches], Batches]:
    """The task that counts a part of the records."""

    def task(batches: Batches) -> Batches:
        job: Counting = shared.value
        numbers = (int(k) for batch in batches for k in batch.column(0).to_pylist())
        return packed(row for number in numbers for row in _counted(job, number))

    return task


def _counted(job: Counting, number: int) -> Iterator[Row]:
    """The cells, ids and findings of some records; an error that is raised on purpose is a row, too."""
    unit = job.needs.unit
    records = open_parts(job.records, job.parts[number], f"population.{unit.name}")
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
        yield from rows_of_whole(number, found.finest(), job.finishing[number])


def finishes(shared: Shared) -> Callable[[Batches], Batches]:
    """The task that makes the table of each of its cubes, with all margins, and finishes it."""

    def task(batches: Batches) -> Batches:
        cubes, numbers, finish = shared.value
        return answered(_finished(cubes, numbers, finish, unpacked(batches)))

    return task


def _finished(
    cubes: Sequence[Cube], numbers: Sequence[int], finish: Finish[Any], rows: Iterable[Row]
) -> Iterator[Answer]:
    """What is made of each cube, with its number among all cubes of the run."""
    found: dict[int, CubeParts] = {}
    for row in rows:
        if row.number not in found:
            found[row.number] = CubeParts.whole(cubes[row.number])
        found[row.number].add(row.cells)
    while found:
        number, parts = found.popitem()
        yield replace(_called(_made, finish, parts), number=numbers[number])


def _made(finish: Finish[Any], parts: CubeParts) -> Any:
    return finish(parts.table())


def makes_ready(shared: Shared) -> Callable[[Batches], Batches]:
    """The same for a cube whose counts were given."""

    def task(batches: Batches) -> Batches:
        for _ in batches:
            pass
        run, cube, each, number = shared.value
        return answered([replace(_called(_made_ready, run, cube, each), number=number)])

    return task


def _made_ready(run: Run, cube: Cube, each: Finish[Any]) -> Any:
    return each(checked_ready_made(run, cube))


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
    except FileNotFoundError as error:
        remedy = "choose folders that all machines of the cluster share"
        value = "an executor does not see a folder of the run"
        return Answer(0, error=mistake(error.filename or "", "engine", value, remedy))
