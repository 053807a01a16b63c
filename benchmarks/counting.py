"""Counting, margins, keys and noise of EU tables against DuckDB's bare counts of the same tables."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from benchmarks.census import (
    census,
    chosen,
    crossed,
    enum_table,
    first,
    level_columns,
    loaded,
    noise,
    programme,
)
from benchmarks.costs import Cost, Stopwatch, measured
from benchmarks.lines import Line, Section, Target, against
from discreet.perturb.cell_key import CellKeyMechanism
from discreet.population.encode import EncodedRecords
from discreet.programme.cube import Cube
from discreet.tabulate.counter import CubeCounter

PERSONS = 10_000_000
THREADS = os.cpu_count() or 1
OURS = "Discreet: keys, margins, sub-totals, noise"
FINEST = "DuckDB: finest cells only"
CUBE = "DuckDB: with margins, no sub-totals (CUBE)"
ROLLUP = "DuckDB: with margins and sub-totals (ROLLUPs)"
CHOICE = {
    "thirty": "The cubes are the first table of each of the groups 3 to 32 of the EU programme.",
    "all": "The cubes are the whole person programme. DuckDB ran once, Discreet as often as --repeat states.",
}
NOTES = (
    (
        "Data are in memory on both sides: encoded blocks here, ENUM columns of every level in DuckDB, which gives "
        "back only the number of cells. CPU time is that of all threads."
    ),
    (
        "A sub-total is a code above the finest level (an age group, a NUTS 2 region); Discreet's cubes have them all. "
        "CUBE leaves them out; ROLLUPs have them, and repeat a code that is at several levels. The same work lies "
        "between the two; the target is compared with CUBE."
    ),
)


def sections(data: Path, persons: int, repeats: int) -> list[Section]:
    folder = str(census(data, persons))
    thirty = _section(folder, persons, "thirty", repeats, 3)
    return [thirty, _section(folder, persons, "all", repeats, 6)]


def _section(folder: str, persons: int, which: str, repeats: int, memory: float) -> Section:
    ours = measured("counting", "discreet", repeats, folder=folder, which=which)
    theirs = measured(
        "counting", "duckdb_counts", folder=folder, which=which, runs=2 if which == "thirty" else 1
    )
    finest, margins, subtotals = (Cost(cpu, wall, theirs.peak) for cpu, wall, _ in theirs.facts["costs"])
    rows = [f"{rows:,}" for _, _, rows in theirs.facts["costs"]]
    work = f"{persons:,} persons, {ours.facts['cubes']} cubes"
    memory_speed = measured("counting", "reading", 2).facts["speed"]
    once = persons * ours.facts["bytes"] / memory_speed
    limit = (
        f"A record has {ours.facts['bytes']} bytes of codes and key; reading them all once takes {once:.2g} CPU s here "
        f"({memory_speed / 1e9:.1f} GB/s, one thread): Discreet takes {ours.cpu / once:.0f} times as long."
    )
    found = (
        f"Discreet published {ours.facts['published']:,} cells; DuckDB found {rows[0]} finest cells, "
        f"{rows[1]} with margins, {rows[2]} with sub-totals."
    )
    return Section(
        f"Counting: {work}",
        (
            Line(work, OURS, ours, targets=(Target("peak GB", ours.peak, memory),)),
            against(work, FINEST, ours, finest, 0.1),
            against(work, CUBE, ours, margins, 0.09),
            against(work, ROLLUP, ours, subtotals),
        ),
        (CHOICE[which], found, limit, *NOTES),
    )


def discreet(watch: Stopwatch, folder: str, which: str) -> dict[str, Any]:
    declared = programme(folder)
    cubes = chosen(declared, which)
    blocks = loaded(declared, cubes, THREADS)
    mechanism = noise()
    counted(cubes, [first(blocks[0], 1000)], mechanism)  # loads the compiled kernels
    with watch.running():
        published = counted(cubes, blocks, mechanism)
    columns = (blocks[0].keys, *blocks[0].codes.values())
    return {
        "published": published,
        "cubes": len(cubes),
        "bytes": sum(column.itemsize for column in columns),
    }


def reading(watch: Stopwatch) -> dict[str, float]:
    """How many bytes a second one thread reads from memory, by a sum over more of it than any cache holds."""
    numbers = np.ones(1 << 26, dtype=np.uint64)
    best = float("inf")
    for _ in range(5):
        before = watch.cpu
        with watch.running():
            int(numbers.sum())
        best = min(best, watch.cpu - before)
    return {"speed": numbers.nbytes / best}


def counted(cubes: list[Cube], blocks: list[EncodedRecords], mechanism: CellKeyMechanism) -> int:
    """Count, roll up and perturb; return the number of published cells."""
    with ThreadPoolExecutor(THREADS) as pool:
        counter = CubeCounter(cubes, pool)
        for block in blocks:
            counter.add(block)
        return sum(pool.map(lambda k: len(mechanism.perturb(counter.table(k))), range(len(cubes))))


def _finest(cube: Cube) -> str:
    return ", ".join(level_columns(axis)[-1].name for axis in crossed(cube))


def _cube(cube: Cube) -> str:
    return f"CUBE ({_finest(cube)})"


def _rollups(cube: Cube) -> str:
    levels = ([column.name for column in level_columns(axis)] for axis in crossed(cube))
    return ", ".join(f"ROLLUP ({', '.join(names)})" for names in levels)


def duckdb_counts(watch: Stopwatch, folder: str, which: str, runs: int) -> dict[str, Any]:
    """Count the cubes in three ways, one after the other on one loaded table; the cheapest run of each counts."""
    declared = programme(folder)
    cubes = chosen(declared, which)
    costs = []
    with duckdb.connect(config={"threads": THREADS}) as connection:
        enum_table(connection, declared, cubes, THREADS)
        for grouping in (_finest, _cube, _rollups):
            groupings = [grouping(cube) for cube in cubes]
            costs.append(min(_grouped(connection, groupings) for _ in range(runs)))
    return {"costs": costs}


def _grouped(connection: duckdb.DuckDBPyConnection, groupings: list[str]) -> tuple[float, float, int]:
    """CPU time, wall time and cells; only the number of cells leaves DuckDB, so that only counting costs."""
    watch, rows = Stopwatch(), 0
    for grouping in groupings:
        query = f"SELECT count(*) AS n FROM persons GROUP BY {grouping}"
        with watch.running():
            found = connection.execute(f"SELECT count(*), max(n) FROM ({query})").fetchone()
        rows += found[0] if found else 0
    return watch.cpu, watch.wall, rows
