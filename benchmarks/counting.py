"""Counting, margins, keys and noise of EU tables against DuckDB's bare counts of the same tables."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb

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
from benchmarks.costs import Stopwatch, measured
from benchmarks.lines import Line, Section, Target, against
from discreet.perturb.cell_key import CellKeyMechanism
from discreet.population.block import Block
from discreet.schema.cube import Cube
from discreet.tabulate.counter import CubeCounter

PERSONS = 10_000_000
THREADS = os.cpu_count() or 1
OURS = "Discreet: keys, margins, sub-totals, noise"
FINEST = "DuckDB: finest cells alone"
CUBE = "DuckDB: with margins, no sub-totals (CUBE)"
ROLLUP = "DuckDB: with margins and sub-totals (ROLLUPs)"
NOTES = (
    (
        "Data are in memory on both sides: encoded blocks here, ENUM columns of every level in DuckDB, which gives "
        "back the number of cells alone. CPU time is that of all threads."
    ),
    (
        "A sub-total is a code above the finest level (an age group, a NUTS 2 region). Discreet's cubes hold them "
        "all, so the line with ROLLUPs is the same work; CUBE is less."
    ),
)


def sections(data: Path, persons: int, repeats: int) -> list[Section]:
    folder = str(census(data, persons))
    return [_thirty(folder, persons, repeats), _whole(folder, persons, repeats)]


def _thirty(folder: str, persons: int, repeats: int) -> Section:
    work = f"{persons:,} persons, 30 cubes"
    ours = measured("counting", "discreet", repeats, folder=folder, which="thirty")
    finest = measured("counting", "duckdb_finest", repeats, folder=folder, which="thirty")
    margins = measured("counting", "duckdb_cube", repeats, folder=folder, which="thirty")
    subtotals = measured("counting", "duckdb_rollup", folder=folder, which="thirty")
    return Section(
        f"Counting: {work}",
        (
            Line(work, OURS, ours, targets=(Target("peak GB", ours.peak, 3),)),
            against(work, FINEST, ours, finest, 0.2),
            against(work, CUBE, ours, margins, 0.06),
            against(work, ROLLUP, ours, subtotals, 0.06),
        ),
        (
            "The cubes are the first table of each of the groups 3 to 32 of the EU programme.",
            (
                f"Discreet published {ours.facts['published']:,} cells; DuckDB found {finest.facts['rows']:,} "
                f"finest cells, {margins.facts['rows']:,} with margins, {subtotals.facts['rows']:,} with sub-totals."
            ),
            *NOTES,
        ),
    )


def _whole(folder: str, persons: int, repeats: int) -> Section:
    ours = measured("counting", "discreet", repeats, folder=folder, which="all")
    finest = measured("counting", "duckdb_finest", folder=folder, which="all")
    margins = measured("counting", "duckdb_cube", folder=folder, which="all")
    subtotals = measured("counting", "duckdb_rollup", folder=folder, which="all")
    work = f"{persons:,} persons, {ours.facts['cubes']} cubes"
    return Section(
        f"Counting: {work}, the whole person programme",
        (
            Line(work, OURS, ours, targets=(Target("peak GB", ours.peak, 6),)),
            against(work, FINEST, ours, finest, 0.2),
            against(work, CUBE, ours, margins, 0.06),
            against(work, ROLLUP, ours, subtotals, 0.06),
        ),
    )


def discreet(watch: Stopwatch, folder: str, which: str) -> dict[str, Any]:
    declared = programme(folder)
    cubes = chosen(declared, which)
    blocks = loaded(declared, cubes, THREADS)
    mechanism = noise()
    counted(cubes, [first(blocks[0], 1000)], mechanism)  # loads the compiled kernels
    with watch.running():
        published = counted(cubes, blocks, mechanism)
    return {"published": published, "cubes": len(cubes)}


def counted(cubes: list[Cube], blocks: list[Block], mechanism: CellKeyMechanism) -> int:
    """Count, roll up and perturb; return the number of published cells."""
    with ThreadPoolExecutor(THREADS) as pool:
        counter = CubeCounter(cubes, pool)
        for block in blocks:
            counter.add(block)
        return sum(pool.map(lambda k: len(mechanism.perturb(counter.table(k))), range(len(cubes))))


def duckdb_finest(watch: Stopwatch, folder: str, which: str) -> dict[str, int]:
    return _duckdb(watch, folder, which, lambda cube: ", ".join(_finest(cube)))


def duckdb_cube(watch: Stopwatch, folder: str, which: str) -> dict[str, int]:
    return _duckdb(watch, folder, which, lambda cube: f"CUBE ({', '.join(_finest(cube))})")


def duckdb_rollup(watch: Stopwatch, folder: str, which: str) -> dict[str, int]:
    return _duckdb(watch, folder, which, lambda cube: ", ".join(_rollups(cube)))


def _finest(cube: Cube) -> list[str]:
    return [level_columns(axis)[-1].name for axis in crossed(cube)]


def _rollups(cube: Cube) -> list[str]:
    levels = ([column.name for column in level_columns(axis)] for axis in crossed(cube))
    return [f"ROLLUP ({', '.join(names)})" for names in levels]


def _duckdb(watch: Stopwatch, folder: str, which: str, grouping: Callable[[Cube], str]) -> dict[str, int]:
    """Count each cube; only the number of its cells leaves DuckDB, so that nothing but counting is paid for."""
    declared = programme(folder)
    cubes = chosen(declared, which)
    rows = 0
    with duckdb.connect(config={"threads": THREADS}) as connection:
        enum_table(connection, declared, cubes, THREADS)
        for cube in cubes:
            query = f"SELECT count(*) AS n FROM persons GROUP BY {grouping(cube)}"
            with watch.running():
                found = connection.execute(f"SELECT count(*), max(n) FROM ({query})").fetchone()
            rows += found[0] if found else 0
    return {"rows": rows}
