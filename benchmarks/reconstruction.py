"""Reconstruction of small areas with CP-SAT: exact counts, cell keys and geometric noise; cost against residents."""

from __future__ import annotations

from itertools import combinations, product
from pathlib import Path

import numpy as np

from benchmarks.costs import Cost, Stopwatch, measured
from benchmarks.lines import Line, Section, Target
from discreet.maths.attacks.histogram_search import likeliest
from discreet.maths.attacks.reconstruction import CellSums, Reading, by_law, within
from discreet.maths.noise.additive import Law, discrete_laplace
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.maths.noise.publishing import PublishedLaw

PERSONS = 1000  # of all areas together
SHAPE = (2, 18, 6)  # sex, age, a third variable
RESIDENTS = (25, 100)
SECONDS = 10.0  # of an area
LIMIT = 2.0  # CPU s of an area
TAIL = 1e-5
KINDS = ("exact", "cell key", "geometric")


def sections(data: Path, persons: int, repeats: int) -> list[Section]:
    del data, repeats  # made in memory, once: a search takes what it takes
    lines = [
        _line(kind, size, measured("reconstruction", "areas", kind=kind, size=size, areas=persons // size))
        for size in RESIDENTS
        for kind in KINDS
    ]
    notes = (
        f"Areas of a cross of {' x '.join(map(str, SHAPE))}, known by all tables of two variables and their margins.",
        "Cell key: V = 2, D = 5, the law known; geometric: epsilon 0.5 in each cell. Both searches, one core.",
        "An area may take 10 s; the share of proven optima shows how often that was enough.",
    )
    return [Section("Reconstruction", tuple(lines), notes)]


def _line(kind: str, size: int, cost: Cost) -> Line:
    facts = cost.facts
    work = (
        f"{facts['areas']} areas of {size} persons, {kind}: {facts['right']:.0%} of the records right, "
        f"{facts['certain']:.0%} certain, {facts['optimal']:.0%} of the areas proven"
    )
    each = cost.cpu / facts["areas"]
    return Line(work, "Discreet", cost, targets=(Target("CPU s an area", each, LIMIT),))


def areas(watch: Stopwatch, kind: str, size: int, areas: int) -> dict[str, float]:
    generator = np.random.default_rng(7)
    shares = generator.dirichlet(np.full(int(np.prod(SHAPE)), 0.5))
    sums, right, certain, optimal = _pairs(), 0, 0, 0
    for _ in range(areas):
        truth = generator.multinomial(size, shares)
        counts = [int(truth[sums.of(m)].sum()) for m in range(len(sums.starts) - 1)]
        with watch.running():
            readings = _readings(kind, counts, generator)
            found = likeliest(sums, readings, SECONDS, 1, 10**7)
        right += int(np.minimum(truth, found.counts).sum())
        certain += found.certain
        optimal += found.status == "optimal"
    records = size * areas
    return {
        "areas": areas,
        "right": right / records,
        "certain": certain / records,
        "optimal": optimal / areas,
    }


def _pairs() -> CellSums:
    """The total, all one-way and all two-way margins."""
    grid, members = np.arange(np.prod(SHAPE)).reshape(SHAPE), []
    for axes in (axes for ways in range(3) for axes in combinations(range(3), ways)):
        for chosen in product(*(range(SHAPE[axis]) for axis in axes)):
            at = dict(zip(axes, chosen, strict=True))
            members.append(grid[tuple(at.get(axis, slice(None)) for axis in range(3))].ravel())
    starts = np.cumsum([0, *(len(part) for part in members)])
    return CellSums(grid.size, starts, np.concatenate(members))


def _readings(kind: str, counts: list[int], generator: np.random.Generator) -> list[Reading]:
    if kind == "exact":
        return [within((count, count), 0, 0) for count in counts]
    is_kept = kind == "cell key"
    law: Law = PTableLaw(solve(PTableParameters(5, 2.0, 0))) if is_kept else discrete_laplace("0.5")
    published = PublishedLaw(law, keeps_zeros=is_kept)
    values = [_drawn(law, count, generator) for count in counts]
    known = {value: by_law(value, published, 0.0 if is_kept else TAIL) for value in set(values)}
    return [known[value] for value in values]


def _drawn(law: Law, count: int, generator: np.random.Generator) -> int:
    row = law.row(count)
    return int(generator.choice(row.values, p=row.p / row.p.sum()))
