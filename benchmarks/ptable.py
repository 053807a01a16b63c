"""Computing p-tables by maximum entropy."""

from __future__ import annotations

from pathlib import Path

from benchmarks.costs import Stopwatch, measured
from benchmarks.lines import Line, Section, Target
from discreet.maths.noise.ptable_solver import PTableParameters, solve

PERSONS = 0


def sections(data: Path, persons: int, repeats: int) -> list[Section]:
    lines = []
    for bound, variance, limit in ((5, 2.0, 0.05), (20, 10.0, 0.1), (100, 50.0, 1.0)):
        cost = measured("ptable", "solved", repeats, bound=bound, variance=variance)
        target = Target("wall s", cost.wall, limit, 3)
        lines.append(Line(f"p-table D={bound}, V={variance:g}, js=0", "Discreet", cost, targets=(target,)))
    return [Section("P-tables", tuple(lines))]


def solved(watch: Stopwatch, bound: int, variance: float) -> None:
    with watch.running():
        solve(PTableParameters(bound, variance, 0))
