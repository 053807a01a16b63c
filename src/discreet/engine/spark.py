"""The Spark engine: the same kernels in tasks on partitions, sums merged by Spark, each cube finished by one task.

The driver plans, judges what tasks have found, and writes what belongs to no cube. No record and no whole cube reaches
it. Two shuffles: the cells of each part of a cube's positions meet in one task that adds them up, and the parts of each
cube in one task that rolls up its margins and finishes it. What is added up is cached on disk between both, so that all
records are judged before noise is drawn.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from discreet.engine import tasks
from discreet.engine.failures import failures, finally_calling
from discreet.engine.hadoop import copied_release, is_address, published_at
from discreet.engine.places import StoredPlaces, store_places
from discreet.engine.rows import ANSWER, SCHEMA, Answer, Kind, Row, read_answer, unpacked
from discreet.engine.session import checked_session, open_session, require_classic, required_settings
from discreet.engine.sources import readable
from discreet.errors import DiscreetError, Mistakes, Problem
from discreet.io.csv_parts import can_be_divided
from discreet.io.databases import open_source
from discreet.io.files import FilePart, divided_csv, file_parts
from discreet.io.progress import Progress
from discreet.perturb.mechanism import Mechanism
from discreet.population.reading import Findings, Needs, missing_columns, needs_of, with_order
from discreet.programme.cube import Cube
from discreet.programme.engine import EngineRule
from discreet.programme.engine_kind import EngineKind
from discreet.programme.programme import Programme, Unit
from discreet.programme.sources import FileSource, local_place
from discreet.release.verify import Verification, verify
from discreet.run.run import (
    Each,
    Finish,
    Given,
    Made,
    Places,
    Run,
    Swapped,
    Tabulated,
    record_problems,
    require_none,
)
from discreet.run.tabulating import checked_ready_made
from discreet.tabulate.counter import DENSE_CELLS, groups
from discreet.tabulate.tables import ConfidentialTable

if TYPE_CHECKING:
    from pyspark import StorageLevel
    from pyspark.sql import DataFrame, SparkSession

CELLS_AT_ONCE = 100_000_000  # accumulators of a task at once: 800 MB, of which only those in use take memory
TOGETHER = 1 << 24  # cells of cubes that one task finishes: 128 MB
TASK_BYTES = 128 << 20  # of records that a task reads, at most
CSV_BYTES = 32 << 20  # of a CSV file that is divided: its records must be found first


@dataclass(frozen=True, eq=False)
class SparkEngine:
    """Runs on a Spark session, which stays open.

    ``folder``: one that the driver and all executors see, where records must be copied or a release is not written on
    a path of theirs; not needed where Spark runs on this machine only.
    """

    spark: SparkSession
    folder: Path | None = None
    checked: bool = False  # whether the executors have been asked what they have installed

    def __post_init__(self) -> None:
        require_classic(self.spark)

    @contextmanager
    def readable(self, programme: Programme) -> Iterator[Programme]:
        """The programme with sources that every task can read, as long as the block lasts."""
        if not self.checked:
            checked_session(self.spark)
        rule = EngineRule(
            EngineKind.SPARK, {"spark.master": str(self.spark.sparkContext.master)}, folder=self.folder
        )
        with (
            failures("Spark", "engine"),
            required_settings(self.spark),
            readable(programme, self.spark, rule) as found,
        ):
            yield found

    @contextmanager
    def release_folder(self, out: str) -> Iterator[Path]:
        """Where a release is made that is then at ``out``: a path of this machine, or of a file system of Hadoop."""
        if not is_address(out):
            yield local_place(out)
            return
        with published_at(self.spark, out, self.folder) as folder:
            yield folder

    @contextmanager
    def published_release(self, release: str) -> Iterator[Path]:
        """A release to read: one at an address of Hadoop is copied to this machine as long as the block lasts."""
        if not is_address(release):
            yield Path(release)
            return
        with copied_release(self.spark, release, self.folder) as folder:
            yield folder

    def verified(self, release: str, key: Ed25519PublicKey | None = None) -> Verification:
        """Verify a release in one task; one at an address of Hadoop is copied to this machine and verified here."""
        if is_address(release):
            with self.published_release(release) as folder:
                return verify(folder, key)
        raw = None if key is None else key.public_bytes_raw()
        return self.call(_verified, Path(release).resolve(), raw)

    def call(self, function: Callable[Given, Made], *given: Given.args, **named: Given.kwargs) -> Made:
        """Call a function in one task."""
        result: Made = self._call_each(partial(function, **named), [given])[0]
        return result

    def _call_each(self, function: Callable[..., Made], given: Sequence[tuple[Any, ...]]) -> list[Made]:
        """Call a function with each of the arguments, in a task each."""
        with self._sharing((function, given)) as shared:
            answers = list(self._answers(_mapped(self._numbers(len(given)), tasks.calls(shared), ANSWER)))
        return [_result(answer) for answer in sorted(answers, key=lambda one: one.number)]

    def require(self, programme: Programme) -> None:
        """Refuse records that executors cannot read."""
        units = programme.population.units if programme.population else {}
        require_none(problem for unit in units.values() for problem in _unreadable(unit))

    def swap(self, run: Run, private: Path) -> Swapped:
        """Pair households in one task, which leaves the exchanged places in a private folder for all tasks."""
        conflicts = self.call(store_places, run.sent(), private)
        return Swapped(StoredPlaces(private, run.secret), conflicts)

    def judge(
        self, needs: Needs, secret: bytes, mechanism: Mechanism | None, progress: Progress
    ) -> tuple[Problem, ...]:
        """The problems of the records of a unit."""
        with ExitStack() as stack:
            (one,) = self._divided([_opened(needs, ())])
            counted = self._counted(stack, [one], secret, None)
            return tuple(record_problems(counted.found(0), one.needs, one.records.name, mechanism))

    def tabulate(
        self,
        run: Run,
        cubes: Sequence[Cube],
        finish: Finish[Made],
        places: Places | None,
        pay: Callable[[], None] | None,
    ) -> Tabulated[Made]:
        """Count cubes in tasks, judge what they have found, and let a task finish each cube."""
        with ExitStack() as stack:
            counted = self._all_counted(stack, run, cubes, places)
            if pay is not None:
                pay()
            made: dict[str, Made] = {}
            for cube in counted.ready:
                made[cube.id] = self.call(_finished_ready_made, run.sent(), cube, finish)
            if counted.cells is not None:
                run.progress.stage("perturbing and writing tables", len(counted.cells.cubes))
                for answer in self._made(counted.cells, finish):
                    made[counted.cells.cubes[answer.number].id] = _result(answer)
                    run.progress.step()
        return Tabulated(made, counted.rows)

    def tabulate_together(
        self,
        run: Run,
        cubes: Sequence[Cube],
        each: Finish[Each],
        together: Callable[[list[Each], Progress], Made],
        places: Places | None,
        pay: Callable[[], None] | None,
        judge: Callable[[ConfidentialTable], None] | None = None,
    ) -> tuple[Made, Mapping[str, int]]:
        """Count cubes in tasks, make something of each in a task, and finish all in one task."""
        number = {cube.id: k for k, cube in enumerate(cubes)}
        with ExitStack() as stack:
            counted = self._all_counted(stack, run, cubes, places)
            if judge is not None and counted.cells is not None:
                for answer in self._made(counted.cells, judge):
                    _result(answer)
            if pay is not None:
                pay()
            run.progress.stage("perturbing and fitting all tables")
            parts = [self._each(stack, counted.cells, each, number)] if counted.cells is not None else []
            for cube in counted.ready:
                shared = stack.enter_context(self._sharing((run.sent(), cube, each, number[cube.id])))
                parts.append(_mapped(self._numbers(1), tasks.makes_ready(shared), ANSWER))
            shared = stack.enter_context(self._sharing(together))
            gathered = reduce(lambda one, other: one.union(other), parts).repartition(1)
            (answer,) = self._answers(_mapped(gathered, tasks.finishes_all(shared), ANSWER))
            return _result(answer), counted.rows

    def _all_counted(
        self, stack: ExitStack, run: Run, cubes: Sequence[Cube], places: Places | None
    ) -> _AllCounted:
        """Count all records at once, and judge them unit by unit, as the embedded engine does."""
        programme = run.programme
        ready = [cube for cube in cubes if cube.id in programme.ready_made]
        for cube in ready:
            self.call(_sound_ready_made, run.sent(), cube)
        units = programme.population.units if programme.population else {}
        wanted = [
            (unit, group)
            for name, unit in units.items()
            for group in groups([c for c in cubes if c.unit == name and c not in ready], CELLS_AT_ONCE)
        ]
        opened, wrong = _opened_in_order(programme, wanted)
        rows: dict[str, int] = {}
        counted = None
        if opened:
            names = dict.fromkeys(one.needs.unit.name for one in opened)
            run.progress.stage(f"counting {', '.join(names)}")
            opened = self._divided(opened)
            counted = self._counted(stack, opened, run.secret, places)
        for k, one in enumerate(opened):
            found = counted.found(k) if counted else Findings()
            require_none(record_problems(found, one.needs, one.records.name, run.mechanism))
            rows[one.needs.unit.name] = found.records
        if wrong is not None:
            raise wrong
        return _AllCounted(tuple(ready), counted, rows)

    def _counted(
        self, stack: ExitStack, wanted: Sequence[tasks.Counting], secret: bytes, places: Places | None
    ) -> _Counted:
        """Count records; the sums wait on the disks of executors until the stack is closed."""
        cubes = [cube for one in wanted for cube in one.cubes]
        number = sum(len(one.parts) for one in wanted)
        declared = int(self.spark.conf.get("spark.sql.shuffle.partitions") or 1)
        targets = max(1, min(declared, max(4 * self._parallel, number // 2)))
        finishing = finishing_tasks(cubes, 4 * self._parallel)
        job = tasks.Job(wanted, secret, places, targets, finishing)
        shared = stack.enter_context(self._sharing(job))
        counted = _mapped(self._numbers(number), tasks.counts(shared), SCHEMA)
        merged = _mapped(counted.repartitionById(targets, "target"), tasks.adds_up(shared), SCHEMA)
        merged = merged.persist(_on_disk())
        stack.enter_context(finally_calling(merged.unpersist))
        with failures(", ".join(dict.fromkeys(one.records.name for one in wanted)), "population"):
            told = merged.where(merged.kind != int(Kind.CELLS)).toArrow()
        return _Counted(tuple(cubes), merged, tuple(unpacked(told.to_batches())), finishing)

    def _divided(self, wanted: Sequence[tasks.Counting]) -> list[tasks.Counting]:
        """Divide the tables so that all together have a few tasks for each core, and each reads not too much."""
        total = sum(part.size for one in wanted for part in one.parts[0])
        most = min(TASK_BYTES, -(-total // (2 * self._parallel)))
        huge = [
            (part, one.records.form_of(part.path), most)
            for one in wanted
            for part in one.parts[0]
            if part.is_whole and part.size > max(most, CSV_BYTES)
        ]
        huge = [one for one in huge if can_be_divided(one[0].path, one[1])]
        found = dict(
            zip(
                (part for part, _, _ in huge), self._call_each(divided_csv, huge) if huge else (), strict=True
            )
        )
        return [
            replace(one, parts=divided([p for part in one.parts[0] for p in found.get(part, [part])], most))
            for one in wanted
        ]

    def _made(self, group: _Counted, finish: Finish[Any] | None) -> Iterator[Answer]:
        """Let a task finish each cube of a group."""
        with self._sharing((group.cubes, range(len(group.cubes)), finish)) as shared:
            yield from self._answers(_mapped(self._by_cube(group), tasks.finishes(shared), ANSWER))

    def _each(
        self, stack: ExitStack, group: _Counted, each: Finish[Any], number: Mapping[str, int]
    ) -> DataFrame:
        """What a task makes of each cube, for the task that finishes all."""
        numbers = [number[cube.id] for cube in group.cubes]
        shared = stack.enter_context(self._sharing((group.cubes, numbers, each)))
        return _mapped(self._by_cube(group), tasks.finishes(shared), ANSWER)

    def _by_cube(self, group: _Counted) -> DataFrame:
        cells = group.merged.where(group.merged.kind == int(Kind.CELLS))
        return cells.repartitionById(1 + max(group.finishing), "target")

    def _answers(self, answers: DataFrame) -> Iterator[Answer]:
        with failures("Spark", "engine"):
            for row in answers.collect():
                yield read_answer(row.number, row.answer)

    def _numbers(self, tasks_: int) -> DataFrame:
        """A row for each task, with its number."""
        return self.spark.range(0, tasks_, 1, tasks_)

    @property
    def _parallel(self) -> int:
        return int(self.spark.sparkContext.defaultParallelism)

    @contextmanager
    def _sharing(self, value: object) -> Iterator[tasks.Shared]:
        """Share something with tasks as a broadcast, which is removed from all machines at the end."""
        shared = self.spark.sparkContext.broadcast(tasks.Packed(value))
        with finally_calling(shared.destroy):
            yield shared


@contextmanager
def opened_engine(rule: EngineRule) -> Iterator[SparkEngine]:
    """The Spark engine that a programme or a command declares, as long as the block lasts."""
    with open_session(rule) as spark, failures("Spark", "engine"):
        yield SparkEngine(spark, rule.folder, checked=True)


@dataclass(frozen=True, eq=False)
class _Counted:
    """What tasks have counted, and what they have found."""

    cubes: tuple[Cube, ...]
    merged: DataFrame
    told: tuple[Row, ...]
    finishing: Sequence[int]  # cube -> the task that finishes it

    def found(self, which: int) -> Findings:
        """The findings of all parts of a unit's records; what the first part raised that has raised is raised."""
        whole = Findings()
        raised: dict[int, DiscreetError] = {}
        for row in self.told:
            if row.number != which:
                continue
            if row.kind is Kind.RAISED:
                part, error = row.object
                raised[part] = error
            else:
                whole.join(row.object)
        if raised:
            raise raised[min(raised)]
        return whole


@dataclass(frozen=True, eq=False)
class _AllCounted:
    ready: tuple[Cube, ...]  # whose counts were given
    cells: _Counted | None  # None where no records were counted
    rows: dict[str, int]


def _mapped(frame: DataFrame, task: Callable[[tasks.Batches], tasks.Batches], schema: str) -> DataFrame:
    """Run a task on each partition."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of pyspark about pandas, which is not used here
        return frame.mapInArrow(tasks.without_text(task), schema)


def _result(answer: Answer) -> Any:
    if answer.error is not None:
        raise answer.error
    return answer.result


def _verified(folder: Path, key: bytes | None) -> Verification:
    return verify(folder, None if key is None else Ed25519PublicKey.from_public_bytes(key))


def _sound_ready_made(run: Run, cube: Cube) -> None:
    checked_ready_made(run, cube)


def _finished_ready_made(run: Run, cube: Cube, finish: Finish[Made]) -> Made:
    return finish(checked_ready_made(run, cube))


def _unreadable(unit: Unit) -> Iterator[Problem]:
    if not isinstance(unit.source, FileSource):
        value = "records in memory, or of a database that only one machine reads"
        yield Problem(
            "", f"population.{unit.name}", value, "write them to Parquet files, or run without Spark"
        )


def _opened(needs: Needs, cubes: Sequence[Cube]) -> tasks.Counting:
    """A unit's table without its content, read by one task."""
    source, key = needs.unit.source, f"population.{needs.unit.name}"
    if not isinstance(source, FileSource):
        raise Mistakes(_unreadable(needs.unit))
    records = open_source(source, key)
    require_none(missing_columns(needs, records))
    records = replace(records, read=tasks.unread)
    return tasks.Counting(with_order(needs, records), cubes, records, [list(file_parts(source, key))])


def _opened_in_order(
    programme: Programme, wanted: Sequence[tuple[Unit, Sequence[Cube]]]
) -> tuple[list[tasks.Counting], DiscreetError | None]:
    """The tables until one cannot be opened, and why: records before it are judged first."""
    found: list[tasks.Counting] = []
    for unit, cubes in wanted:
        try:
            found.append(_opened(needs_of(programme, unit, cubes), cubes))
        except DiscreetError as error:
            return found, error
    return found, None


def finishing_tasks(cubes: Sequence[Cube], fewest: int) -> list[int]:
    """The task that finishes each cube: small ones share a task, which has all its cubes in memory at once."""
    found: list[int] = []
    task, cells, number = 0, 0, 0
    most = -(-len(cubes) // fewest)
    for cube in cubes:
        size = min(cube.size, DENSE_CELLS) * (3 if cube.weight else 1)
        if number and (number == most or cells + size > TOGETHER):
            task, cells, number = task + 1, 0, 0
        found.append(task)
        cells, number = cells + size, number + 1
    return found


def divided(parts: Sequence[FilePart], most: int) -> list[list[FilePart]]:
    """Divide the parts of files among tasks that read about this many bytes, in their order; at least one task."""
    total = sum(part.size for part in parts)
    number = max(1, min(len(parts), -(-total // max(1, most))))
    found: list[list[FilePart]] = [[] for _ in range(number)]
    before = 0
    for part in parts:
        middle = before + part.size / 2
        own = found[min(int(middle * number / total), number - 1) if total else 0]
        if own and own[-1].path == part.path and own[-1].last == part.first:
            own[-1] = replace(own[-1], last=part.last, size=own[-1].size + part.size)
        else:
            own.append(part)
        before += part.size
    return found


def _on_disk() -> StorageLevel:
    from pyspark import StorageLevel  # noqa: PLC0415, an optional engine

    return StorageLevel.DISK_ONLY
