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
                f"{one.cpu / 3600:.2f}",
                str(one.executors),
                f"{one.memory:.0f} GB",
                f"{one.hours:.2f}",
            )
        )
    yield from table(rows)
    yield ""
    measured = " and ".join(f"{one['persons'] / 1e6:.0f}M" for one in figures)
    yield f"Measured with {measured} persons on two cores of one machine (`benchmarks/results/spark.json`):"
    yield ""
    yield f"- to begin: {by.start:.0f} CPU s"
    yield (
        f"- for each record, read, judged and counted in all tables: {by.record * 1e6:.1f} microseconds; "
        f"{by.records_of_person:.2f} records for each person (persons, households, families, dwellings)"
    )
    yield (
        f"- for each published cell, merged, perturbed and written: {by.cell * 1e6:.1f} microseconds; "
        f"cells grow with persons to the power {by.growth:.2f}"
    )
    yield (
        f"- a Python worker: {LEAST_GB:g} GB of libraries and {by.worker_gb:.2f} GB for the largest cube, "
        "which grows with the cells"
    )
    yield ""
    last = size(1_400_000_000, by)
    yield (
        f"For 1.4bn persons: {by.start:.0f} + {by.record * 1e6:.1f}e-6 x {by.records_of_person:.2f} x 1.4e9 + "
        f"{by.cell * 1e6:.1f}e-6 x {last.cells:.3g} = {last.cpu:.0f} CPU s. Cores are taken to be busy "
        f"{BUSY:.0%} of the time, and a run may take {HOURS:g} hour."
    )


def main() -> None:
    print("\n".join(page(json.loads(FIGURES.read_text(encoding="utf-8")))))


if __name__ == "__main__":
    main()
