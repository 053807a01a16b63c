"""How large a cluster a country needs: ``python -m benchmarks.sizing`` prints it for docs/how-to/move-to-spark.md.

The costs are those that ``benchmarks.spark`` has measured; the arithmetic is that of ``costs`` and ``size``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.lines import table

FIGURES = Path(__file__).parent / "results" / "spark.json"
COUNTRIES = {10_000_000: "10M", 83_000_000: "83M", 330_000_000: "330M", 1_400_000_000: "1.4bn"}
CORES = 4  # of an executor
BUSY = 0.7  # of the time of cores; the rest is waiting for the last tasks
HOURS = 1.0  # that a run may take
LEAST_GB = 0.5  # of a Python worker: its libraries
JAVA_GB = 2.0  # of an executor


@dataclass(frozen=True)
class OneTask:
    """What one task does for the whole country: measured in ``results``, and taken to grow in proportion."""

    work: str
    number: float  # of persons or blocks
    cpu: float
    gb: float
    base_gb: float  # of the libraries

    def at(self, number: float) -> tuple[float, float]:
        """CPU seconds and GB."""
        times = number / self.number
        return self.cpu * times, self.base_gb + (self.gb - self.base_gb) * times


SWAPS = (  # results/2026-11-15.md, Record swapping
    OneTask("k = 3, 2% of the households swapped", 1e7, 13.2, 1.64, 0.4),
    OneTask("k = 6, 70% of the households swapped", 1e7, 36.9, 1.78, 0.4),
)
FIT = OneTask("2,016 cells in each block", 7e5, 178, 1.97, 0.4)  # results/2026-11-17.md, Hierarchical release
BLOCKS = {"0.7M": 7e5, "2M": 2e6, "8M": 8e6}


@dataclass(frozen=True)
class Costs:
    """What one run costs: to begin, for each record and for each published cell, in CPU seconds; and memory."""

    start: float
    record: float
    cell: float
    records_of_person: float
    persons: int
    cells: int
    growth: float  # cells grow with persons to this power
    worker_gb: float  # beyond the libraries


def costs(figures: Sequence[dict[str, Any]]) -> Costs:
    """The costs by the largest run; the growth of cells by the smallest and the largest."""
    small, large = figures[0], figures[-1]
    writing = large["spark_cpu"] - large["spark_start_cpu"] - large["counting_cpu"]
    growth = math.log(large["cells"] / small["cells"]) / math.log(large["persons"] / small["persons"])
    return Costs(
        start=large["spark_start_cpu"],
        record=large["counting_cpu"] / large["records"],
        cell=writing / large["cells"],
        records_of_person=large["records"] / large["persons"],
        persons=large["persons"],
        cells=large["cells"],
        growth=growth,
        worker_gb=max(0.0, large["worker_gb"] - LEAST_GB),
    )


@dataclass(frozen=True)
class Size:
    """A cluster for a census."""

    persons: int
    cells: float
    cpu: float
    executors: int
    memory: float  # GB of one executor
    hours: float


def size(persons: int, by: Costs) -> Size:
    """As many executors as end within the time, and memory for the largest cube in each core."""
    cells = by.cells * (persons / by.persons) ** by.growth
    cpu = by.start + by.record * by.records_of_person * persons + by.cell * cells
    executors = max(1, math.ceil(cpu / (HOURS * 3600 * BUSY * CORES)))
    memory = JAVA_GB + CORES * (LEAST_GB + by.worker_gb * max(1.0, cells / by.cells))
    return Size(persons, cells, cpu, executors, memory, cpu / (executors * CORES * BUSY * 3600))


def page(figures: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The section of the page: the table, and the arithmetic."""
    by = costs(figures)
    rows = [("persons", "cells", "CPU hours", f"executors of {CORES} cores", "memory of each", "hours")]
    for persons, name in COUNTRIES.items():
        one = size(persons, by)
        rows.append(
            (
                name,
                f"{one.cells / 1e6:.0f}M",
                f"{one.cpu / 3600:.2g}",
                str(one.executors),
                f"{one.memory:.0f} GB",
                f"{one.hours:.1g}",
            )
        )
    yield from table(rows)
    yield ""
    measured = ", ".join(f"{one['persons'] / 1e6:.0f}M" for one in figures)
    yield f"Measured with {measured} persons on two cores of one machine (`benchmarks/results/spark.json`):"
    yield ""
    yield f"- to begin: {by.start:.0f} CPU s"
    yield (
        f"- for each record, read, judged, counted in all tables and merged: {by.record * 1e6:.3g} microseconds; "
        f"{by.records_of_person:.2f} records for each person (persons, households, families, dwellings)"
    )
    yield (
        f"- for each published cell, rolled up, perturbed and written: {by.cell * 1e6:.3g} microseconds; "
        f"cells grow with persons to the power {by.growth:.2f}"
    )
    yield (
        f"- a Python worker: {LEAST_GB:g} GB of libraries and {by.worker_gb:.2f} GB for the largest cube, "
        "which grows with the cells"
    )
    yield ""
    last = size(1_400_000_000, by)
    yield (
        f"For 1.4bn persons: {by.start:.0f} + {by.record * 1e6:.3g}e-6 x {by.records_of_person:.2f} x 1.4e9 + "
        f"{by.cell * 1e6:.3g}e-6 x {last.cells:.3g} = {last.cpu:.0f} CPU s. Cores are taken to be busy "
        f"{BUSY:.0%} of the time, and a run may take {HOURS:g} hour."
    )


def one_task() -> Iterator[str]:
    """The section of the page about what one task does."""
    rows = [("persons", *(f"swap, {one.work}" for one in SWAPS))]
    for persons, name in COUNTRIES.items():
        rows.append((name, *("{:.0f} minutes, {:.0f} GB".format(*_minutes(one, persons)) for one in SWAPS)))
    yield from table(rows)
    yield ""
    rows = [("blocks", f"fit of a hierarchical release, {FIT.work}")]
    rows += [(name, "{:.0f} minutes, {:.0f} GB".format(*_minutes(FIT, n))) for name, n in BLOCKS.items()]
    yield from table(rows)
    yield ""
    yield (
        f"Measured: {SWAPS[0].cpu:g} and {SWAPS[1].cpu:g} CPU s, {SWAPS[0].gb:g} and {SWAPS[1].gb:g} GB for "
        f"10M persons; {FIT.cpu:g} CPU s and {FIT.gb:g} GB for 700,000 blocks. Taken to grow in proportion, but for "
        f"{FIT.base_gb:g} GB of libraries: for 1.4bn persons 13.2 x 140 = 1,848 CPU s and 0.4 + 1.24 x 140 = 174 GB."
    )


def _minutes(one: OneTask, number: float) -> tuple[float, float]:
    cpu, gb = one.at(number)
    return cpu / 60, gb


def main() -> None:
    print("\n".join(page(json.loads(FIGURES.read_text(encoding="utf-8")))))
    print("\n".join(["", "## one task", "", *one_task()]))


if __name__ == "__main__":
    main()
