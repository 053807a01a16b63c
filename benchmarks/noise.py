"""Exact noise: samples per CPU second against OpenDP's vector mechanisms, and what is visible of 1e9 empty cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import opendp.prelude as dp

from benchmarks.census import SECRET
from benchmarks.costs import Cost, Stopwatch, measured
from benchmarks.lines import Line, Section, Target
from discreet.maths.noise.additive import AdditiveLaw, discrete_gaussian_of_sigma, discrete_laplace
from discreet.maths.noise.draws import BitSource, draw_into, visible_cells
from discreet.maths.noise.thresholds import threshold_table

PERSONS = 100_000_000  # samples
SAMPLE = 1000  # OpenDP draws one of so many, and its time is multiplied
TIMES_OPENDP = 500
CELLS = 10**9
AT_ONCE = 10_000_000
LAWS = (("laplace", 1.0), ("laplace", 100.0), ("gaussian", 1.0), ("gaussian", 100.0))


def sections(data: Path, persons: int, repeats: int) -> list[Section]:
    return [_samples(persons, repeats), _empty_cells()]


def _samples(n: int, repeats: int) -> Section:
    lines: list[Line] = []
    for kind, scale in LAWS:
        work = f"{n:,} of the discrete {kind.capitalize()} law, scale {scale:g}"
        ours = measured("noise", "ours", repeats, kind=kind, scale=scale, n=n)
        sample = measured("noise", "opendp", repeats, kind=kind, scale=scale, n=n // SAMPLE)
        theirs = Cost(sample.cpu * SAMPLE, sample.wall * SAMPLE, sample.peak)
        lines += [
            Line(work, "Discreet", ours, targets=(Target("CPU s for 1e8", ours.cpu / n * 1e8, 1),)),
            _against(work, ours, theirs),
        ]
    notes = (
        f"OpenDP drew one value in {SAMPLE}; its times are multiplied by {SAMPLE}.",
        f"Discreet filled an array of {AT_ONCE:,} again and again; making the table of thresholds is not counted.",
    )
    return Section("Exact noise", tuple(lines), notes)


def _against(work: str, ours: Cost, theirs: Cost) -> Line:
    ratio = ours.cpu / theirs.cpu
    return Line(
        work, "OpenDP: vector mechanism", theirs, ratio, (Target("ratio", ratio, 1 / TIMES_OPENDP, 5),)
    )


def _empty_cells() -> Section:
    lines = []
    for epsilon, threshold in ((5.0, None), (1.0, 15)):
        cost = measured("noise", "sparse", epsilon=epsilon, threshold=threshold)
        shown = "every change" if threshold is None else f"values of at least {threshold}"
        work = f"{CELLS:,} empty cells, epsilon {epsilon:g}, {shown}: {cost.facts['visible']:,} visible"
        targets = (Target("wall s", cost.wall, 60), Target("peak GB", cost.peak, 4))
        lines.append(Line(work, "Discreet", cost, targets=targets))
    return Section(
        "Noise on empty cells", tuple(lines), ("The table of the law and of the gaps are counted.",)
    )


def _law(kind: str, scale: float) -> AdditiveLaw:
    return discrete_laplace(1 / scale) if kind == "laplace" else discrete_gaussian_of_sigma(scale)


def ours(watch: Stopwatch, kind: str, scale: float, n: int) -> None:
    table, bits = threshold_table(_law(kind, scale)), BitSource(SECRET)
    out = np.zeros(min(n, AT_ONCE), dtype=np.int32)
    draw_into(out, table, bits)  # loads the compiled kernels
    with watch.running():
        for start in range(0, n, AT_ONCE):
            draw_into(out[: n - start], table, bits)


def opendp(watch: Stopwatch, kind: str, scale: float, n: int) -> None:
    dp.enable_features("contrib")
    domain: Any = dp.vector_domain(dp.atom_domain(T="i64"))
    if kind == "laplace":
        mechanism = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)
    else:
        mechanism = dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale=scale)
    zeros = [0] * n
    mechanism(zeros[:1000])
    with watch.running():
        mechanism(zeros)


def sparse(watch: Stopwatch, epsilon: float, threshold: int | None) -> dict[str, Any]:
    bits = BitSource(SECRET)
    visible_cells(1000, threshold_table(discrete_laplace(1)), None, bits)  # loads the compiled kernels
    with watch.running():
        positions, _ = visible_cells(CELLS, threshold_table(discrete_laplace(epsilon)), threshold, bits)
    return {"visible": len(positions)}
