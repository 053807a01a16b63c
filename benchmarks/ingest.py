"""Reading, encoding and ordering Parquet against DuckDB's load; the whole path by stages; writing against COPY."""

from __future__ import annotations

import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from benchmarks.census import SECRET, census, chosen, loaded, noise, programme, shuffled
from benchmarks.costs import Cost, Stopwatch, measured
from benchmarks.lines import Line, Section, Target, against
from discreet.formats.columns import batches
from discreet.formats.dataset import Dataset, dataset_of
from discreet.formats.parquet import write_parquet
from discreet.formats.publication import Publication
from discreet.pipeline.protect import protect
from discreet.population.reading import Needs, UnitReader, needs_of
from discreet.programme.programme import Disclosure, Programme
from discreet.tabulate.counter import CubeCounter

PERSONS = 10_000_000
THREADS = os.cpu_count() or 1


def sections(data: Path, persons: int, repeats: int) -> list[Section]:
    ordered, mixed = str(census(data, persons)), str(shuffled(data, persons))
    return [
        _reading(ordered, mixed, persons, repeats),
        whole_path(ordered, persons, ()),
        _writing(ordered, persons, repeats),
    ]


def _reading(ordered: str, mixed: str, persons: int, repeats: int) -> Section:
    lines: list[Line] = []
    for folder, how in ((ordered, "ordered by place"), (mixed, "in random order")):
        work = f"{persons:,} persons, {how}"
        ours = measured("ingest", "discreet_read", repeats, folder=folder)
        theirs = measured("ingest", "duckdb_read", repeats, folder=folder)
        judged = measured("ingest", "discreet_judged", repeats, folder=folder)
        lines += [
            Line(work, "Discreet: read, encode, key, order", ours),
            against(work, "DuckDB: CREATE TABLE AS SELECT", ours, theirs, 1.5),
            Line(work, "Discreet: streamed, with a look for duplicate ids", judged),
        ]
    return Section(
        "Ingest: Parquet to memory, all columns that the person programme needs",
        tuple(lines),
        ("Discreet hashes the ids to record keys on the way; DuckDB keeps them as they are.",),
    )


def _needs(declared: Programme) -> Needs:
    assert declared.population is not None
    return needs_of(declared, declared.population.units["persons"], chosen(declared, "all"))


def discreet_read(watch: Stopwatch, folder: str) -> dict[str, Any]:
    needs = _needs(programme(folder))
    next(UnitReader(needs, SECRET, THREADS).blocks())  # loads the compiled kernels
    with watch.running():
        blocks = list(UnitReader(needs, SECRET, THREADS).blocks())
    return {"records": sum(len(block) for block in blocks)}


def discreet_judged(watch: Stopwatch, folder: str) -> dict[str, Any]:
    needs = _needs(programme(folder))
    next(UnitReader(needs, SECRET, THREADS).blocks())
    with watch.running():
        reader = UnitReader(needs, SECRET, THREADS)
        records = sum(len(block) for block in reader.blocks())
        problems = reader.found().problems(reader.needs, "")
    return {"records": records, "problems": len(problems)}


def duckdb_read(watch: Stopwatch, folder: str) -> dict[str, Any]:
    needs = _needs(programme(folder))
    columns = ", ".join(f'"{name}"' for name in (*needs.plain_columns(), *needs.coded_columns()))
    source = str(Path(folder) / "persons.parquet").replace("'", "''")
    with duckdb.connect(config={"threads": THREADS}) as connection, watch.running():
        connection.execute(f"CREATE TABLE persons AS SELECT {columns} FROM read_parquet('{source}')")
    return {}


class Stages:
    """Notes what each stage of a run costs."""

    def __init__(self) -> None:
        self._begun = ("identifying the inputs", time.process_time(), time.perf_counter())
        self.costs: list[tuple[str, float, float]] = []

    def stage(self, name: str, total: int | None = None) -> None:
        """Close the stage before and begin another."""
        before, cpu, wall = self._begun
        self._begun = (name, time.process_time(), time.perf_counter())
        self.costs.append((before, self._begun[1] - cpu, self._begun[2] - wall))

    def step(self, done: int = 1) -> None:
        """Steps cost what their stage costs."""


def whole_path(folder: str, persons: int, limits: tuple[tuple[str, float], ...]) -> Section:
    """The lines of ``discreet protect``: the whole and each stage."""
    whole = measured("ingest", "whole", folder=folder)
    work = f"{persons:,} persons, {whole.facts['cubes']} cubes of four units"
    targets = tuple(Target(name, whole.peak, limit) for name, limit in limits)
    stages = [
        Line(work, f"... {name}", Cost(cpu, wall, whole.peak)) for name, cpu, wall in whole.facts["stages"]
    ]
    return Section(
        f"The whole path: discreet protect, {persons:,} persons",
        (Line(work, "Discreet: Parquet in, protected Parquet out", whole, targets=targets), *stages),
        (
            (
                f"{whole.facts['cells']:,} cells were published. The peak is that of the whole process on every line; "
                "counting includes reading, encoding and ordering; writing includes margins and noise."
            ),
        ),
    )


def whole(watch: Stopwatch, folder: str) -> dict[str, Any]:
    stages = Stages()
    with tempfile.TemporaryDirectory() as place, watch.running():
        done = protect(
            programme(folder),
            SECRET,
            Path(place) / "release",
            Path(place) / "private.json",
            clock=lambda: datetime.now(UTC),
            threads=THREADS,
            progress=stages,
        )
        stages.stage("done")
    return {"cubes": done.cubes, "cells": done.cells, "stages": stages.costs}


def _writing(folder: str, persons: int, repeats: int) -> Section:
    work = f"30 cubes of {persons:,} persons"
    ours = measured("ingest", "discreet_write", repeats, folder=folder)
    theirs = measured("ingest", "duckdb_write", repeats, folder=folder)
    return Section(
        "Writing: protected cells in memory to Parquet, codes and labels",
        (
            Line(work, "Discreet: one Parquet file for each cube", ours),
            against(work, "DuckDB: COPY of the same columns, zstd", ours, theirs),
        ),
        (
            (
                f"{ours.facts['cells']:,} cells: Discreet wrote {ours.facts['bytes'] / 1e6:.1f} MB, "
                f"DuckDB {theirs.facts['bytes'] / 1e6:.1f} MB. DuckDB's tables hold text columns, as read from Arrow."
            ),
        ),
    )


def _protected(folder: str) -> list[Dataset]:
    declared = programme(folder)
    cubes = chosen(declared, "thirty")
    mechanism = noise()
    with ThreadPoolExecutor(THREADS) as pool:
        counter = CubeCounter(cubes, pool)
        for block in loaded(declared, cubes, THREADS):
            counter.add(block)
        made = [mechanism.perturb(counter.table(k)) for k in range(len(cubes))]
    publication = Publication("b", "B", "1.0", mechanism.noise().public(Disclosure.NONE))
    return [dataset_of(table, publication) for table in made]


def discreet_write(watch: Stopwatch, folder: str) -> dict[str, Any]:
    tables = _protected(folder)
    with tempfile.TemporaryDirectory() as place:
        with watch.running():
            for at, table in enumerate(tables):
                write_parquet(table, Path(place) / f"{at}.parquet")
        return {"cells": sum(len(table.values) for table in tables), "bytes": _bytes(place)}


def duckdb_write(watch: Stopwatch, folder: str) -> dict[str, Any]:
    tables = _protected(folder)
    with duckdb.connect(config={"threads": THREADS}) as connection, tempfile.TemporaryDirectory() as place:
        for at, table in enumerate(tables):
            connection.register("cells", pa.Table.from_batches(batches(table)))
            connection.execute(f"CREATE TABLE t{at} AS SELECT * FROM cells")
            connection.unregister("cells")
        with watch.running():
            for at in range(len(tables)):
                connection.execute(
                    f"COPY t{at} TO '{place}/{at}.parquet' (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1)"
                )
        return {"cells": sum(len(table.values) for table in tables), "bytes": _bytes(place)}


def _bytes(place: str) -> int:
    return sum(path.stat().st_size for path in Path(place).iterdir())
