"""The estimates of a hierarchical release computed again from its published measurements; public files only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.hierarchy.cubes import area_estimates
from discreet.hierarchy.estimate import Totals, estimate, known_totals
from discreet.maths.tree.marginals import size_of
from discreet.programme.codelist import TOTAL
from discreet.programme.hierarchical import Output
from discreet.programme.release import ReleaseFormat
from discreet.release.hierarchy import (
    DIGITS,
    ERROR,
    ESTIMATE,
    PublishedHierarchy,
    estimates_place,
    published_hierarchy,
)
from discreet.release.hierarchy_cubes import PublishedCube
from discreet.release.manifest import CubeEntry
from discreet.release.reader import Release

MOST_MEASUREMENTS = 60_000_000  # noisy counts that are taken into memory together
TOLERANCE = 0.51 * 10.0**-DIGITS + 1e-6  # estimates are published with so many digits
NAMED = 5

Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.int64]


def why_not(found: PublishedHierarchy) -> str:
    """Why estimates cannot be computed again; empty where they can."""
    if Output.ESTIMATES not in found.rule.outputs:
        return "none are published"
    if Output.MEASUREMENTS not in found.rule.outputs:
        return "the measurements are not published"
    if (many := measurement_count(found)) > MOST_MEASUREMENTS:
        return f"{many:,} measurements are more than the {MOST_MEASUREMENTS:,} that are taken into memory"
    missing = [level for level in found.rule.totals if _showing(found, level) is None]
    return f"no cube shows the exact totals of {', '.join(missing)}" if missing else ""


def measurement_count(found: PublishedHierarchy) -> int:
    """How many noisy counts a release has."""
    plan = found.plan
    times = np.bincount(plan.kind_of, minlength=len(plan.kinds)).tolist()
    basis = plan.strategy.histogram.basis
    return sum(
        number * sum(size_of(basis, marginal) for marginal in kind.marginals)
        for number, kind in zip(times, plan.kinds, strict=True)
    )


def recomputed(release: Release) -> str:
    """What a verification of a hierarchical release computes again, as a sentence; empty for other releases."""
    found = published_hierarchy(release)
    if found is None:
        return ""
    parts = ["the sums of all levels and margins"]
    if Output.MEASUREMENTS in found.rule.outputs:
        parts.append("the laws and variances of all measurements")
    if Output.ESTIMATES in found.rule.outputs:
        parts.append("all standard errors and intervals")
    reason = why_not(found)
    if not reason:
        parts.append(f"all estimates, from {measurement_count(found):,} measurements")
    left = f" Estimates were not computed again: {reason}." if reason else ""
    return (
        f"Computed again: {', '.join(parts)}.{left} Whole counts are checked for sums, bounds and structural zeros, "
        "not fitted again."
    )


def estimate_problems(found: PublishedHierarchy, cubes: Sequence[CubeEntry]) -> Iterator[str]:
    """Published estimates that are not the least squares fit of the published measurements."""
    if why_not(found):
        return
    fitted = estimate(found.stored, _totals(found))
    for entry in cubes:
        cube = PublishedCube(found, entry)
        values = cube.sums.placed(area_estimates(cube.sums, fitted, cube.nodes))
        table = found.estimates(entry.id)
        published, errors = table[ESTIMATE].to_numpy(), table[ERROR].to_numpy()
        computed = np.where(errors == 0, np.rint(values), values)
        wrong = np.flatnonzero(np.abs(published - computed) > TOLERANCE + 1e-9 * np.abs(computed))
        for cell in wrong[:NAMED].tolist():
            yield (
                f"{estimates_place(entry.id, ReleaseFormat.PARQUET)}: {_named(cube, cell)}: the measurements give "
                f"{computed[cell]:.{DIGITS}f}, published is {published[cell]:g}"
            )


def _named(cube: PublishedCube, cell: int) -> str:
    along = np.unravel_index(cell, cube.shape)
    axes = zip(cube.entry.axes, cube.codes, along, strict=True)
    return ", ".join(f"{axis.variable}={codes[at]}" for axis, codes, at in axes)


def _showing(found: PublishedHierarchy, level: str) -> CubeEntry | None:
    """A cube that shows the totals of a level: any for the root, else one whose geography has the areas."""
    number = found.rule.levels.index(level)
    for entry in found.release.manifest.cubes:
        if not number:
            return entry
        for axis, codes in zip(entry.axes, PublishedCube(found, entry).codes, strict=True):
            if axis.variable == found.rule.geography and set(found.areas[1][number]) <= set(codes):
                return entry
    return None


def _totals(found: PublishedHierarchy) -> Totals:
    """The exact totals, as the estimates publish them."""
    spine, rule = found.plan.spine, found.rule
    values = np.zeros(len(spine), dtype=np.int64)
    for level in rule.totals:
        entry = _showing(found, level)
        if entry is None:
            raise ValueError("checked before")
        cube, number = PublishedCube(found, entry), rule.levels.index(level)
        estimates = found.estimates(entry.id)[ESTIMATE].to_numpy()
        for code, node in zip(found.areas[1][number], spine.node_of[number].tolist(), strict=True):
            chosen = {axis.variable: TOTAL for axis in entry.axes}
            if number:
                chosen[rule.geography] = code
            values[node] = round(float(estimates[cube.position(chosen)]))
    return Totals(tuple(rule.totals), known_totals(spine, rule.totals), values)
