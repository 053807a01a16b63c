"""The strongest linear adversary against the release of the whole EU programme, and its fit against SciPy's LSMR."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array, diags_array, vstack
from scipy.sparse.linalg import lsmr

from benchmarks.census import SECRET, census, programme
from benchmarks.costs import Cost, Stopwatch, measured
from benchmarks.lines import Line, Section, Target
from discreet.audit.case import open_case
from discreet.audit.evidence import Published, published
from discreet.audit.least_squares import LeastSquaresFindings, least_squares, system
from discreet.maths.attacks.least_squares import Sums, solve
from discreet.pipeline.protect import protect
from discreet.release.reader import open_release

PERSONS = 1_000_000
MINUTES = 15.0
GIGABYTES = 4.0
LSMR_STEPS = 200


def sections(data: Path, persons: int, repeats: int) -> list[Section]:
    del repeats
    folder = census(data, persons)
    release = data / f"eu-{persons}"
    if not release.exists():
        measured("least_squares", "make", folder=str(folder), release=str(release))
    lines = [
        _attacked("outsider", measured("least_squares", "attack", release=str(release))),
        _attacked(
            "best informed", measured("least_squares", "audit", folder=str(folder), release=str(release))
        ),
    ]
    ours = measured("least_squares", "fit", release=str(release))
    theirs = measured("least_squares", "scipy_fit", release=str(release))
    lines += [_line(ours, "Discreet", ours.cpu / theirs.cpu), _line(theirs, "SciPy, LSMR", None)]
    notes = (
        f"The release is the whole EU programme, {persons:,} persons, with the cell key method, V = 2 and D = 5.",
        "An attack: fit, fit within bounds, predictions by 8 noises and 2 releases, variances of exposed counts.",
        "One fit: the largest population as an outsider sees it, without bounds.",
        "Squares: the sum that is minimised; less is better.",
    )
    return [Section("Least squares over a release", tuple(lines), notes)]


def _attacked(who: str, cost: Cost) -> Line:
    facts = cost.facts
    work = (
        f"attack, {who}: {facts['cells']:,} cells, {facts['groups']:,} unknowns, {facts['equations']:,} sums"
    )
    targets = (Target("CPU minutes", cost.cpu / 60, MINUTES, 1), Target("GB", cost.peak, GIGABYTES, 2))
    return Line(work, "Discreet", cost, targets=targets)


def _line(cost: Cost, who: str, ratio: float | None) -> Line:
    facts = cost.facts
    size = f"{facts['unknowns']:,} unknowns, {facts['equations']:,} sums"
    work = f"one linear fit of {size}: squares {facts['squares']:.7g}, after {facts['steps']} steps"
    return Line(work, who, cost, ratio)


def make(watch: Stopwatch, folder: str, release: str) -> None:
    out = Path(release)
    with watch.running():
        protect(programme(folder), SECRET, out, out.with_suffix(".json"), clock=lambda: datetime.now(UTC))


def attack(watch: Stopwatch, release: str) -> dict[str, int]:
    seen = published(open_release(Path(release)))
    with watch.running():
        found = least_squares(seen).findings()
    return _sizes(found)


def audit(watch: Stopwatch, folder: str, release: str) -> dict[str, int]:
    case = open_case(programme(folder), SECRET, open_release(Path(release)))
    with watch.running():
        found = least_squares(case.published, truth=case.truth).findings()
    return _sizes(found)


def _sizes(found: LeastSquaresFindings) -> dict[str, int]:
    return {"cells": found.targets, "groups": found.groups, "equations": found.equations}


def fit(watch: Stopwatch, release: str) -> dict[str, float]:
    equations, variances, values = _largest(published(open_release(Path(release))))
    with watch.running():
        solution = solve(equations, variances, equations.gaps(values))
        found = values - solution.change
    return _facts(equations, variances, values, found, solution.steps)


def scipy_fit(watch: Stopwatch, release: str) -> dict[str, float]:
    """The same as min over l of |V^1/2 B' l - V^-1/2 y|, with scaled columns, the doubt as further rows."""
    equations, variances, values = _largest(published(open_release(Path(release))))
    rows = np.arange(len(equations))
    shape = (len(equations), equations.cells)
    below = csr_array((np.ones(len(equations.parts)), equations.parts, equations.starts), shape=shape)
    above = csr_array((np.ones(len(rows)), (rows, equations.totals)), shape=shape)
    sums = above - below
    deviations = np.sqrt(variances.astype(np.float64))
    with watch.running():
        scale = 1 / np.sqrt((sums.multiply(sums)) @ deviations**2 + equations.doubt)
        matrix = vstack([diags_array(deviations) @ sums.T, diags_array(np.sqrt(equations.doubt))])
        matrix = (matrix @ diags_array(scale)).tocsr()
        hidden = equations.hidden / np.sqrt(equations.doubt)
        wanted = np.concatenate([values[:, 0] / deviations, -hidden])
        found = lsmr(matrix, wanted, atol=1e-9, btol=1e-9, conlim=0, maxiter=LSMR_STEPS)
        estimates = values[:, 0] - deviations**2 * (sums.T @ (found[0] * scale))
    return _facts(equations, variances, values, estimates[:, None], found[2])


def _largest(seen: Published) -> tuple[Sums, np.ndarray, np.ndarray]:
    universe = max(seen.universes, key=lambda one: len(one.tables))
    attacked = system(universe, seen.noise)
    return attacked.equations, attacked.variances, attacked.values[:, None].astype(np.float64)


def _facts(
    equations: Sums, variances: np.ndarray, values: np.ndarray, found: np.ndarray, steps: int
) -> dict[str, float]:
    gaps = equations.gaps(found)[:, 0]
    squares = ((found - values)[:, 0] ** 2 / variances).sum() + (gaps**2 / equations.doubt).sum()
    return {
        "unknowns": equations.cells,
        "equations": len(equations),
        "squares": float(squares),
        "steps": int(steps),
    }
