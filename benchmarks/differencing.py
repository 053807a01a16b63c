"""``discreet risk differencing`` on maps of 100,000 areas: reading, searching, and what noise leaves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.costs import Stopwatch, measured, peak_of_commands
from benchmarks.lines import Line, Section, Target

PERSONS = 100_000  # areas of both geographies together
SECONDS = 60
MAIN = "from discreet.cli.app import main; main()"
MAPS = {
    "grid cells x districts, 0.3 records per cell": ("districts", 0.3),
    "grid cells x districts, 1.6 records per cell": ("districts", 1.6),
    "grid cells x districts, 16 records per cell": ("districts", 16.0),
    "two grids shifted by half a cell, 2.8 records per cell": ("shifted", 2.8),
}


def sections(data: Path, persons: int, repeats: int) -> list[Section]:
    lines = []
    for name, (shape, density) in MAPS.items():
        file = data / f"areas-{shape}-{density:g}-{persons}.parquet"
        if not file.exists():
            _write(file, shape, density, persons)
        for noise, words in (("exact", []), ("after cell key noise", ["--V", "2", "--D", "5"])):
            cost = measured("differencing", "found", file=str(file), words=words)
            work = f"{persons:,} areas, {name}, {noise}"
            target = Target("wall s", cost.wall, SECONDS, 1)
            lines.append(Line(work, f"Discreet ({cost.facts['found']:,} found)", cost, targets=(target,)))
    notes = (
        "The whole command, from a Parquet file of records, start of Python included; the second of two runs.",
    )
    return [Section("Differencing", tuple(lines), notes)]


def found(watch: Stopwatch, file: str, words: list[str]) -> dict[str, float]:
    command = [sys.executable, "-c", MAIN, "risk", "differencing", "--a", "a", "--b", "b", file, "--json"]
    subprocess.run([*command, *words], check=True, stdout=subprocess.DEVNULL)
    with watch.commands():
        done = subprocess.run([*command, *words], check=True, stdout=subprocess.PIPE)
    report = json.loads(done.stdout)
    if not report["complete"]:
        raise RuntimeError("the search was cut short, so its time means nothing")
    return {"found": report["found"], "peak": peak_of_commands()}


def _write(file: Path, shape: str, density: float, areas: int) -> None:
    """Records at random points: cells of three points by three, districts of twenty, or a second grid."""
    generator = np.random.default_rng(7)
    side = int(np.sqrt(areas if shape == "districts" else areas / 2))
    many = generator.poisson(density * side * side)
    x, y = (generator.integers(0, 6 * side, many) for _ in range(2))
    a = (x // 6) * side + y // 6
    b = (
        ((x + 2) // 40) * side + (y + 2) // 40
        if shape == "districts"
        else ((x + 3) // 6) * (side + 1) + (y + 3) // 6
    )
    pq.write_table(pa.table({"a": a, "b": b}), file)
