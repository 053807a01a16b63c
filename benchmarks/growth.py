"""How costs grow: with records, with tables and with cells; the exponent of each step from one size to the next."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.census import SECRET, census, cube_of, first, loaded, noise, programme
from benchmarks.costs import Cost, Stopwatch, measured
from benchmarks.counting import counted
from benchmarks.lines import Line, Section, Target
from discreet.pipeline.protect import protect

PERSONS = 100_000_000  # the largest census
SIZES = (1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000)
TABLES = (15, 30, 60, 119)
TABLES_PERSONS = 3_000_000
AXES = (
    "SEX",
    "GEO.H",
    "AGE.H",
    "EDU",
    "CAS.H",
    "POB.M",
    "HST.L",
)  # crossed one after another: to a thousand million cells
MOST = 1.05  # exponent
THREADS = os.cpu_count() or 1


def sections(data: Path, persons: int, repeats: int) -> list[Section]:
    del repeats
    sizes = [size for size in SIZES if size <= persons] or [persons]
    return [
        _records(data, sizes),
        _tables(data, min(TABLES_PERSONS, persons)),
        _cells(data, min(TABLES_PERSONS, persons)),
    ]


def exponent(before: tuple[float, float], after: tuple[float, float]) -> float:
    """With what power of a size the cost has grown from one (size, cost) to the next."""
    return math.log(after[1] / before[1]) / math.log(after[0] / before[0])


def _records(data: Path, sizes: Sequence[int]) -> Section:
    costs = []
    for size in sizes:
        folder = census(data, size)
        costs.append(measured("growth", "released", folder=str(folder), tables=max(TABLES)))
        if size > 10_000_000:
            shutil.rmtree(folder)  # gigabytes
    lines = _grown(
        [(float(size), f"{size:,} persons, {max(TABLES)} tables") for size in sizes], costs, "Discreet"
    )
    return Section(
        "Growth with records",
        tuple(lines),
        (
            "Memory: "
            + "; ".join(
                f"{size:,} persons {one.peak:.2f} GB" for size, one in zip(sizes, costs, strict=True)
            ),
            "Published cells: " + "; ".join(f"{one.facts['cells']:,}" for one in costs),
        ),
    )


def _tables(data: Path, persons: int) -> Section:
    folder = str(census(data, persons))
    costs = [measured("growth", "released", folder=folder, tables=number) for number in TABLES]
    sizes = [(float(number), f"{number} tables, {persons:,} persons") for number in TABLES]
    return Section("Growth with tables", tuple(_grown(sizes, costs, "Discreet")))


def _cells(data: Path, persons: int) -> Section:
    folder = str(census(data, persons))
    costs = [measured("growth", "crossing", folder=folder, axes=number) for number in range(2, len(AXES) + 1)]
    sizes = [(float(one.facts["cells"]), f"{one.facts['cells']:,} possible cells") for one in costs]
    notes = (
        f"{persons:,} persons; axes {', '.join(AXES)}, the first two, three and so on.",
        "Published cells: " + "; ".join(f"{one.facts['published']:,}" for one in costs),
    )
    return Section(
        "Growth with cells", tuple(_grown(sizes, costs, "Discreet: keys, all margins, noise")), notes
    )


def _grown(sizes: Sequence[tuple[float, str]], costs: Sequence[Cost], who: str) -> list[Line]:
    """Each cost, and from the second on the exponent of the step to it."""
    lines = [Line(sizes[0][1], who, costs[0])]
    for at in range(1, len(sizes)):
        grown = exponent((sizes[at - 1][0], costs[at - 1].cpu), (sizes[at][0], costs[at].cpu))
        lines.append(Line(sizes[at][1], who, costs[at], targets=(Target("exponent", grown, MOST),)))
    return lines


def released(watch: Stopwatch, folder: str, tables: int) -> dict[str, Any]:
    """``protect`` of the first tables of a census."""
    declared = programme(folder)
    step = len(declared.cubes) / tables  # spread over all units and kinds
    declared = replace(declared, cubes=tuple(declared.cubes[int(k * step)] for k in range(tables)))
    with tempfile.TemporaryDirectory() as place:
        with watch.running():
            done = protect(
                declared,
                SECRET,
                Path(place) / "release",
                Path(place) / "private.json",
                clock=lambda: datetime.now(UTC),
                threads=THREADS,
            )
        return {"cubes": done.cubes, "cells": done.cells}


def crossing(watch: Stopwatch, folder: str, axes: int) -> dict[str, Any]:
    """One table of the first axes."""
    declared = programme(folder)
    cube = cube_of(declared, AXES[:axes])
    blocks, mechanism = loaded(declared, [cube], THREADS), noise()
    counted([cube], [first(blocks[0], 1000)], mechanism)
    with watch.running():
        published = counted([cube], blocks, mechanism)
    return {"cells": cube.size, "published": published}
