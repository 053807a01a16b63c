"""Six-way tables: one of a million records and eight million cells, and one of a thousand million possible cells."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from benchmarks.census import (
    SECRET,
    census,
    crossed,
    cube_of,
    enum_table,
    first,
    level_columns,
    loaded,
    noise,
    programme,
)
from benchmarks.costs import Stopwatch, measured
from benchmarks.counting import counted
from benchmarks.lines import Line, Section, Target, against
from benchmarks.ons import axis
from discreet.maths.cells.keys import hash_integers, record_keys
from discreet.population.encode import EncodedRecords
from discreet.programme.cube import Cube
from discreet.tabulate.counter import CubeCounter

PERSONS = 10_000_000
RECORDS = 1_000_000
SIZES = (17, 15, 14, 14, 13, 12)  # nodes along each axis, the total among them: 7.8 million cells
LARGE = ("GEO.H", "SEX", "AGE.H", "CAS.H", "EDU", "POB.M")
THREADS = os.cpu_count() or 1


def sections(data: Path, persons: int, repeats: int) -> list[Section]:
    return [_small(repeats), _large(str(census(data, persons)), persons, repeats)]


def _small(repeats: int) -> Section:
    ours = measured("sixway", "discreet_small", repeats)
    work = f"six-way, {RECORDS:,} records, {ours.facts['cells']:,} cells with margins"
    line = Line(work, "Discreet: keys, all margins, noise", ours, targets=(Target("CPU s", ours.cpu, 5),))
    notes = (
        f"{ours.facts['published']:,} cells were published.",
        "R's cellKey took 290 CPU s and 8.6 GB for such a table in an earlier measurement; R is no part of this run.",
    )
    return Section("A six-way table with all margins", (line,), notes)


def _large(folder: str, persons: int, repeats: int) -> Section:
    ours = measured("sixway", "discreet_large", folder=folder)
    counts = measured("sixway", "discreet_large_counts", repeats, folder=folder)
    finest = measured("sixway", "duckdb_large", repeats, folder=folder)
    work = f"six-way, {persons:,} persons, {ours.facts['cells']:,} possible cells"
    return Section(
        "A six-way table too large to be stored whole",
        (
            Line(work, "Discreet: keys, all margins and sub-totals, noise", ours),
            Line(work, "Discreet: keys, finest cells", counts),
            against(work, "DuckDB: finest cells only", counts, finest),
        ),
        (
            (
                f"The axes are {', '.join(LARGE)}; {ours.facts['published']:,} cells were published, "
                f"{finest.facts['rows']:,} are finest ones."
            ),
        ),
    )


def discreet_small(watch: Stopwatch) -> dict[str, Any]:
    cube = Cube("six", "persons", tuple(axis(f"V{k}", size - 1) for k, size in enumerate(SIZES)))
    rng = np.random.default_rng(4)
    codes = {axis.variable: rng.integers(0, len(axis) - 1, RECORDS).astype(np.uint8) for axis in cube.axes}
    ids = np.arange(RECORDS, dtype=np.int64)
    records = EncodedRecords(codes, record_keys(hash_integers(SECRET, "keys", ids)), {}, {})
    mechanism = noise()
    counted([cube], [first(records, 1000)], mechanism)  # loads the compiled kernels
    with watch.running():
        keys = record_keys(hash_integers(SECRET, "keys", ids))
        published = counted([cube], [EncodedRecords(codes, keys, {}, {})], mechanism)
    return {"cells": cube.size, "published": published}


def discreet_large(watch: Stopwatch, folder: str) -> dict[str, Any]:
    declared = programme(folder)
    cube = cube_of(declared, LARGE)
    blocks = loaded(declared, [cube], THREADS)
    mechanism = noise()
    counted([cube], [first(blocks[0], 1000)], mechanism)
    with watch.running():
        published = counted([cube], blocks, mechanism)
    return {"cells": cube.size, "published": published}


def discreet_large_counts(watch: Stopwatch, folder: str) -> dict[str, Any]:
    declared = programme(folder)
    cube = cube_of(declared, LARGE)
    blocks = loaded(declared, [cube], THREADS)
    with ThreadPoolExecutor(THREADS) as pool:
        CubeCounter([cube], pool).add(first(blocks[0], 1000))
        with watch.running():
            counter = CubeCounter([cube], pool)
            for block in blocks:
                counter.add(block)
    return {"cells": cube.size}


def duckdb_large(watch: Stopwatch, folder: str) -> dict[str, Any]:
    declared = programme(folder)
    cube = cube_of(declared, LARGE)
    names = ", ".join(level_columns(axis)[-1].name for axis in crossed(cube))
    with duckdb.connect(config={"threads": THREADS}) as connection:
        enum_table(connection, declared, [cube], THREADS)
        query = f"SELECT count(*) AS n FROM persons GROUP BY {names}"
        with watch.running():
            found = connection.execute(f"SELECT count(*), max(n) FROM ({query})").fetchone()
    return {"rows": found[0] if found else 0}
