"""What runs on executors: the same reading, judging, counting and perturbing as on one machine, on parts of records.

Nothing here is confidential by itself: the secret, keys and records reach a task through a broadcast, its input and the
files that it reads, never through its code.
"""

from __future__ import annotations

import gc
import pickle
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

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
from discreet.io.id_hashes import IdHashes
from discreet.io.progress import Quiet
from discreet.population.reading import Findings, Needs, Relocation, UnitReader
from discreet.programme.cube import Cube
from discreet.run.run import Finish, Places, Run
from discreet.run.tabulating import checked_ready_made
from discreet.tabulate.counter import CubeCounter, CubeParts

Batches = Iterator[pa.RecordBatch]


class TaskFailed(Exception):
    """An error of a task that is not a user's mistake: its kind and its place."""


def without_text(task: Callable[[Batches], Batches]) -> Callable[[Batches], Batches]:
    """The same task, whose unexpected errors reach Spark's logs and pages without their texts, which may quote records.

    Texts about memory, files and missing packages are those that users need.
    """

    def quiet(batches: Batches) -> Batches:
        try:
            yield from task(batches)
        except (MemoryError, OSError, ImportError):
            raise
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(last.filename).name}:{last.lineno}"
            raise TaskFailed(f"{type(error).__name__} in {place}") from None

    return quiet


class Shared(Protocol):
    """A broadcast of pyspark: its value is read on executors."""

    @property
    def value(self) -> Any:
        """What the driver has shared."""


class Packed:
    """A value for a broadcast, pickled before: pyspark cannot encrypt arrays that are pickled beside it.

    A task reads the value itself.
    """

    def __init__(self, value: object) -> None:
        self._content = pickle.dumps(value)

    def __reduce__(self) -> tuple[Callable[[bytes], object], tuple[bytes]]:
        return pickle.loads, (self._content,)


@dataclass(frozen=True, eq=False)
class Counting:
    """How the records of one unit are counted in some cubes."""

    needs: Needs
    cubes: Sequence[Cube]  # none where records are only judged
    records: Records  # the whole table without its content
    parts: Sequence[Sequence[FilePart]]  # the files of each task


@dataclass(frozen=True, eq=False)
class Job:
    """All that is counted at once: tasks and cubes are numbered across units; confidential: only for a broadcast."""

    counted: Sequence[Counting]
    secret: bytes = field(repr=False)
    places: Places | None
    targets: int  # tasks that add up what others have counted
    finishing: Sequence[int]  # cube -> the task that finishes it

    @cached_property
    def tasks(self) -> list[tuple[int, int]]:
        """Task -> what it counts, and which of its parts."""
        return [(k, part) for k, one in enumerate(self.counted) for part in range(len(one.parts))]

    @cached_property
    def cubes(self) -> list[Cube]:
        """All cubes."""
        return [cube for one in self.counted for cube in one.cubes]

    def first_cube(self, counted: int) -> int:
        """The number of the first cube of what is counted."""
        return sum(len(one.cubes) for one in self.counted[:counted])


def unread(plain: Sequence[str], coded: Sequence[str]) -> Batches:
    """The content of a table that is not read here."""
    raise TypeError("records are read by tasks")


def counts(shared: Shared) -> Callable[[Batches], Batches]:
    """The task that counts a part of the records of a unit."""

    def task(batches: Batches) -> Batches:
        _settled()
        job: Job = shared.value
        numbers = (int(k) for batch in batches for k in batch.column(0).to_pylist())
        return packed(row for number in numbers for row in _counted(job, *job.tasks[number]))

    return task


@cache
def _settled() -> None:
    """Exempt what is loaded from the collection of garbage that Spark runs after each task: a tenth of a second."""
    gc.collect()
    gc.freeze()


def _counted(job: Job, which: int, part: int) -> Iterator[Row]:
    """The cells, ids and findings of some records; an error that is raised on purpose is a row, too."""
    one = job.counted[which]
    records = open_parts(one.records, one.parts[part], f"population.{one.needs.unit.name}")
    try:
        moved = job.places.of(one.needs.unit) if job.places else None
        yield from _read(job, which, records, moved)
    except DiscreetError as error:
        yield row_of(Kind.RAISED, which, (part, error))


def _read(job: Job, which: int, records: Records, moved: Relocation | None) -> Iterator[Row]:
    one = job.counted[which]
    reader = UnitReader(one.needs, job.secret, 1, moved, records)
    with ThreadPoolExecutor(1) as pool:
        counter = CubeCounter(one.cubes, pool)
        for block in reader.blocks():
            counter.add(block)
    yield row_of(Kind.FOUND, which, reader.found_here())
    yield from rows_of_ids(which, reader.ids(), job.targets)
    first = job.first_cube(which)
    for k, cube in enumerate(one.cubes):
        yield from rows_of_cells(first + k, cube, counter.finest(k), job.targets)


def adds_up(shared: Shared) -> Callable[[Batches], Batches]:
    """The task that adds up the cells of its parts, and looks for duplicate ids among its own."""

    def task(batches: Batches) -> Batches:
        _settled()
        job: Job = shared.value
        return packed(_added_up(job, unpacked(batches)))

    return task


def _added_up(job: Job, rows: Iterable[Row]) -> Iterator[Row]:
    sums: dict[int, CubeParts] = {}
    ids: dict[int, IdHashes] = {}
    for row in rows:
        match row.kind:
            case Kind.CELLS:
                cube = job.cubes[row.number]
                sums.setdefault(row.number, CubeParts.some(cube)).add(row.cells)
            case Kind.IDS:
                ids.setdefault(row.number, IdHashes()).add(row.ids)
            case _:
                yield row
    for which, found in ids.items():
        if found.occurs(2):
            yield row_of(Kind.FOUND, which, Findings(duplicates=True))
    while sums:
        number, parts = sums.popitem()
        yield from rows_of_whole(number, parts.finest(), job.finishing[number])


def finishes(shared: Shared) -> Callable[[Batches], Batches]:
    """The task that makes the table of each of its cubes, with all margins, and finishes it."""

    def task(batches: Batches) -> Batches:
        _settled()
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
    """The task that calls a function with the arguments of its number."""

    def task(batches: Batches) -> Batches:
        _settled()
        function, given = shared.value
        numbers = (int(k) for batch in batches for k in batch.column(0).to_pylist())
        return answered(replace(_called(function, *given[k]), number=k) for k in numbers)

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
