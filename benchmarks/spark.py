"""Spark on this machine: the whole of ``protect`` on Spark, on the embedded engine, and Spark's own group-by.

CPU time is that of the whole tree of processes: the driver's Python, Java, and the Python workers. The figures are also
written to ``results/spark.json``, from which ``benchmarks.sizing`` derives the table of docs/how-to/move-to-spark.md.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.census import SECRET, census, crossed, programme
from benchmarks.costs import GB, Cost, Stopwatch, measured, peak_of_this_process
from benchmarks.lines import Line, Section, Target, against
from discreet.engine import spark as spark_engine
from discreet.engine.session import open_session
from discreet.engine.spark import SparkEngine
from discreet.io.files import file_parts
from discreet.pipeline.protect import protect
from discreet.population.reading import UnitReader, needs_of
from discreet.programme.engine import EngineRule
from discreet.programme.engine_kind import EngineKind
from discreet.programme.programme import Programme
from discreet.programme.sources import FileSource

PERSONS = 10_000_000
LARGER = 5  # the second census has so many times the persons
PARTITIONS = (8, 64, 512)
ROWS = 40_000  # in a row group that a task can read by itself
FIGURES = Path(__file__).parent / "results" / "spark.json"
_CORES = "local[2]"


def sections(data: Path, persons: int, repeats: int) -> Iterator[Section]:
    first = _compared(str(census(data, persons)), persons)
    _write_figures(first)
    yield first.section()
    yield _partitions(data, persons)
    second = _compared(str(census(data, LARGER * persons)), LARGER * persons)
    _write_figures(second)
    yield second.section()


class Figures:
    """What was measured on one census."""

    def __init__(self, persons: int, embedded: Cost, spark: Cost, grouped: Cost) -> None:
        self.persons, self.embedded, self.spark, self.grouped = persons, embedded, spark, grouped

    def section(self) -> Section:
        facts = self.spark.facts
        work = f"{self.persons:,} persons, {facts['cubes']} cubes of four units"
        ratio = self.spark.cpu / self.embedded.cpu
        lines = [
            Line(work, "Discreet, embedded", self.embedded),
            Line(
                work,
                f"Discreet on Spark, {_CORES}",
                self.spark,
                targets=(Target("CPU / embedded", ratio, 4),),
            ),
        ]
        lines.append(against(work, "Spark: groupBy of the finest cells only", self.spark, self.grouped, 0.6))
        notes = (
            f"{facts['cells']:,} cells were published; both releases have the same bytes: {facts['digest']}.",
            (
                f"Java took {facts['java_cpu']:.0f} of Spark's CPU s, and opening the session {facts['start']:.0f}. "
                f"The peak on Spark's line is the driver's Python. Java, which is driver and executor here: "
                f"{facts['java']:.2f} GB; the largest Python worker: {facts['worker']:.2f} GB."
            ),
        )
        return Section(f"Spark: discreet protect, {self.persons:,} persons", tuple(lines), notes)

    def json(self) -> dict[str, Any]:
        facts = self.spark.facts
        return {
            "persons": self.persons,
            "records": facts["records"],
            "cells": facts["cells"],
            "cubes": facts["cubes"],
            "embedded_cpu": self.embedded.cpu,
            "spark_cpu": self.spark.cpu,
            "spark_start_cpu": facts["start"],
            "counting_cpu": facts["counting"],
            "driver_gb": self.spark.peak,
            "java_gb": facts["java"],
            "worker_gb": facts["worker"],
            "grouped_cpu": self.grouped.cpu,
        }


def _compared(folder: str, persons: int) -> Figures:
    embedded, spark = (
        measured("spark", "embedded", folder=folder),
        measured("spark", "on_spark", folder=folder),
    )
    assert embedded.facts["digest"] == spark.facts["digest"], "the engines differ"
    levels = str(Path(folder) / "levels")
    measured("spark", "write_levels", folder=folder, levels=levels)
    return Figures(persons, embedded, spark, measured("spark", "grouped", folder=folder, levels=levels))


def _partitions(data: Path, persons: int) -> Section:
    folder = data / f"census-{persons}-small-groups"
    if not folder.exists():
        measured("spark", "write_small_groups", source=str(census(data, persons)), folder=str(folder))
    costs = [measured("spark", "on_spark", folder=str(folder), tasks=number) for number in (0, *PARTITIONS)]
    work = f"{persons:,} persons in row groups of {ROWS:,} records"
    lines = [Line(work, f"{cost.facts['tasks']} parts of the records", cost) for cost in costs]
    return Section(
        "Spark: cost by the number of parts",
        tuple(lines),
        ("A part is a task that reads records. The first line is what the engine chooses by itself.",),
    )


def write_small_groups(watch: Stopwatch, source: str, folder: str) -> None:
    """The same census in Parquet files of many small row groups, which tasks can divide."""
    out = Path(folder)
    out.mkdir(parents=True)
    for entry in Path(source).iterdir():
        if entry.suffix != ".parquet":
            (out / entry.name).symlink_to(entry.resolve())
            continue
        with pq.ParquetFile(entry) as file, pq.ParquetWriter(out / entry.name, file.schema_arrow) as writer:
            for batch in file.iter_batches(ROWS):
                writer.write_batch(batch, ROWS)


def _write_figures(found: Figures) -> None:
    """Add the figures of one size to those of the others, or replace them."""
    others = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else []
    by_size = {one["persons"]: one for one in (*others, found.json())}
    FIGURES.write_text(
        json.dumps([by_size[size] for size in sorted(by_size)], indent=1) + "\n", encoding="utf-8"
    )


def _digest(release: Path) -> str:
    """The digest of inputs, parameters and files, as the manifest of a release has it."""
    manifest = json.loads((release / "manifest.json").read_text(encoding="utf-8"))
    files = sorted((one["path"], one["sha256"]) for cube in manifest["cubes"] for one in cube["files"])
    return hashlib.sha256(json.dumps(files).encode()).hexdigest()[:16]


def embedded(watch: Stopwatch, folder: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as place:
        with watch.running():
            _protect(folder, Path(place), None)
        return {"digest": _digest(Path(place) / "release")}


def on_spark(watch: Stopwatch, folder: str, tasks: int = 0) -> dict[str, Any]:
    declared = programme(folder)
    number = _divide(declared, tasks)
    with tempfile.TemporaryDirectory() as place:
        before, wall = _tree_cpu(), time.perf_counter()
        with open_session(_rule(place)) as session:
            started, counting = _tree_cpu() - before, _Counting()
            done = _protect(folder, Path(place), SparkEngine(session), counting)
            watch.cpu, watch.wall = _tree_cpu() - before, time.perf_counter() - wall
            java, workers = _peaks()
            java_cpu = _java_cpu()
        digest = _digest(Path(place) / "release")
        private = json.loads((Path(place) / "private.json").read_text(encoding="utf-8"))
    records = sum(private["rows"].values()) if isinstance(private.get("rows"), dict) else 0
    return {
        "digest": digest,
        "cubes": done.cubes,
        "cells": done.cells,
        "records": records,
        "tasks": number,
        "start": started,
        "counting": counting.cpu,
        "java": java,
        "java_cpu": java_cpu,
        "worker": workers,
        "peak": peak_of_this_process(),
    }


class _Counting:
    """Adds up the CPU time of the stages that read records."""

    def __init__(self) -> None:
        self.cpu = self._since = 0.0
        self._counts = False

    def stage(self, name: str, total: int | None = None) -> None:
        now = _tree_cpu()
        if self._counts:
            self.cpu += now - self._since
        self._counts, self._since = name.startswith("counting"), now

    def step(self, amount: int = 1) -> None:
        pass


def _protect(folder: str, place: Path, engine: SparkEngine | None, progress: Any = None) -> Any:
    return protect(
        programme(folder),
        SECRET,
        place / "release",
        place / "private.json",
        clock=lambda: datetime.now(UTC),
        threads=os.cpu_count() or 1,
        progress=progress,
        engine=engine,
    )


def _rule(place: str, **more: str) -> EngineRule:
    settings = {
        "spark.master": _CORES,
        "spark.driver.memory": "2g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": place,
        **more,
    }
    return EngineRule(EngineKind.SPARK, settings, 600)


def _divide(declared: Programme, tasks: int) -> int:
    """Let the records be read by so many tasks, 0 leaves it to the engine; returns how many there are."""
    assert declared.population is not None
    sources = [unit.source for unit in declared.population.units.values()]
    parts = [list(file_parts(source, "")) for source in sources if isinstance(source, FileSource)]
    total = sum(part.size for one in parts for part in one)
    if tasks:
        spark_engine.TASK_BYTES = max(1, total // tasks)
    most = min(spark_engine.TASK_BYTES, -(-total // (2 * 2)))
    return sum(len(spark_engine.divided(one, most)) for one in parts)


def _tree() -> list[psutil.Process]:
    this = psutil.Process()
    return [this, *this.children(recursive=True)]


def _tree_cpu() -> float:
    """The CPU time of this process, of those below it, and of those that they have awaited."""
    total = 0.0
    for one in _tree():
        try:
            times = one.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def _java_cpu() -> float:
    """The CPU time of Java, without its Python workers."""
    times = [one.cpu_times() for one in _tree()[1:] if "java" in one.name()]
    return float(sum(one.user + one.system for one in times))


def _peaks() -> tuple[float, float]:
    """The most memory that Java and that the largest Python worker had, in GB."""
    java, worker = 0.0, 0.0
    for one in _tree()[1:]:
        peak = _peak_of(one.pid)
        if "java" in one.name():
            java = max(java, peak)
        else:
            worker = max(worker, peak)
    return java, worker


def _peak_of(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0
    line = next((line for line in lines if line.startswith("VmHWM")), "VmHWM: 0")
    return int(line.split()[1]) * 1024 / GB


def write_levels(watch: Stopwatch, folder: str, levels: str) -> None:
    """Write one file for each unit with a column of small integers for each breakdown, for Spark's own counting."""
    declared = programme(folder)
    assert declared.population is not None
    Path(levels).mkdir(exist_ok=True)
    for name, unit in declared.population.units.items():
        cubes = [cube for cube in declared.cubes if cube.unit == name]
        axes = {axis.full_name: axis for cube in cubes for axis in crossed(cube)}
        writer = None
        for block in UnitReader(needs_of(declared, unit, cubes), SECRET, 2).blocks():
            columns = {
                full.replace(".", "_"): axis.node_of_leaf[block.codes[axis.variable]]
                for full, axis in axes.items()
            }
            batch = pa.table({full: pa.array(codes, pa.int32()) for full, codes in columns.items()})
            writer = writer or pq.ParquetWriter(
                Path(levels) / f"{name}.parquet", batch.schema, compression="zstd"
            )
            writer.write_table(batch)
        if writer is not None:
            writer.close()


def grouped(watch: Stopwatch, folder: str, levels: str) -> dict[str, Any]:
    """Spark's own counting: the finest cells of every cube, without margins, keys and noise; nothing is written.

    Java is that of Spark's own settings here: it optimises what it runs, and Spark counts in Java.
    """
    declared = programme(folder)
    with tempfile.TemporaryDirectory() as place:
        before, wall = _tree_cpu(), time.perf_counter()
        own = {"spark.driver.extraJavaOptions": "-XX:+UseG1GC", "spark.driver.memory": "4g"}
        with open_session(_rule(place, **own)) as session:
            for name, cubes in _by_unit(declared):
                frame = session.read.parquet(str(Path(levels) / f"{name}.parquet")).persist()
                for cube in cubes:
                    names = [axis.full_name.replace(".", "_") for axis in crossed(cube)]
                    frame.groupBy(*names).count().write.format("noop").mode("overwrite").save()
                frame.unpersist()
            watch.cpu, watch.wall = _tree_cpu() - before, time.perf_counter() - wall
    return {"peak": peak_of_this_process()}


def _by_unit(declared: Programme) -> Iterator[tuple[str, list[Any]]]:
    assert declared.population is not None
    for name in declared.population.units:
        yield name, [cube for cube in declared.cubes if cube.unit == name and crossed(cube)]
