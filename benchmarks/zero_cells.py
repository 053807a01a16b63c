"""Noise with a guarantee on a table of a thousand million possible cells, of which ten million are occupied."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.census import SECRET
from benchmarks.costs import Stopwatch, measured
from benchmarks.lines import Line, Section, Target
from discreet.maths.noise.additive import LawKind
from discreet.maths.noise.publishing import Negatives, Publishing
from discreet.perturb.budget import plan
from discreet.perturb.private import PrivateMechanism
from discreet.programme.attributes import Attribute, Attributes, Holder
from discreet.programme.codelist import Code, breakdown, codelist
from discreet.programme.cube import Cube, signatures
from discreet.programme.noise import BudgetRule, PrivateNoise
from discreet.programme.statistic import Statistics
from discreet.tabulate.counter import AxisRows, SparseGrid
from discreet.tabulate.tables import ConfidentialTable

PERSONS = 10_000_000
CODES = {"A": 1000, "B": 100, "C": 100, "D": 100}
CASES = ((5, 0), (1, 15))  # epsilon of each cross-tabulation, published threshold
SECONDS, GIGABYTES = 60, 4


def sections(data: Path, persons: int, repeats: int) -> list[Section]:
    lines = []
    for epsilon, threshold in CASES:
        cost = measured("zero_cells", "perturbed", records=persons, epsilon=epsilon, threshold=threshold)
        work = f"{persons:,} records, {cost.facts['cells']:,} possible cells, epsilon {epsilon}, threshold {threshold}"
        targets = (Target("wall s", cost.wall, SECONDS), Target("peak GB", cost.peak, GIGABYTES))
        lines.append(
            Line(work, "Discreet: counting, all margins, noise in every cell", cost, targets=targets)
        )
    notes = (
        "Epsilon is that of each of the 16 cross-tabulations. Every empty cell is perturbed; none is stored.",
    )
    return [Section("Noise in a thousand million cells", tuple(lines), notes)]


def perturbed(watch: Stopwatch, records: int, epsilon: int, threshold: int) -> dict[str, Any]:
    trees = {
        name: codelist(name, [Code(str(c), "", "") for c in range(size)]) for name, size in CODES.items()
    }
    cube = Cube(
        "zero", "persons", tuple(breakdown(name, name, tree, tree.leaves) for name, tree in trees.items())
    )
    rng = np.random.default_rng(6)
    position = np.zeros(records, dtype=np.uint64)
    for stride, nodes in zip(cube.strides, cube.shape, strict=True):
        position += rng.integers(1, nodes, records, dtype=np.uint64) * np.uint64(stride)
    added = (rng.integers(0, 2**32, records, dtype=np.uint64) << np.uint64(32)) | np.uint64(1)
    budget = BudgetRule(Fraction(epsilon * len(signatures([cube]))))
    published = Publishing(Negatives.ZERO, threshold=threshold)
    own = Attributes(dict.fromkeys(trees, Attribute(Holder.PERSON)))
    rule = PrivateNoise(LawKind.GEOMETRIC, budget, published=published, attributes=own)
    with watch.running():
        grid = SparseGrid(cube, AxisRows(cube, {}, {}))
        grid.add_cells(position, added)
        positions, cells = grid.rolled_up()
        del grid
        mechanism = PrivateMechanism(plan(rule, [cube]), trees, (), 10**8, SECRET, Statistics(trees))
        found = mechanism.perturb(ConfidentialTable(cube, cells, positions))
    return {"cells": cube.size, "published": len(found)}
