"""Log-linear models of noisy contingency tables: estimates, standard errors and deviance that allow for the noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import chdtrc, ndtr

from discreet.errors import mistake
from discreet.maths.inference.likelihood import filled, peaks, tilted_sums
from discreet.maths.noise.law import Floats
from discreet.maths.noise.publishing import PublishedLaw, packed

LARGEST_PARAMETERS = 1000
LARGEST_CELLS = 10**6
LARGEST_DESIGN = 5 * 10**7
ROUNDS = 500
CAREFUL = 15  # first steps of EM, which do not leap to a lower peak
HALVINGS = 30
LOWEST, HIGHEST = -30.0, 25.0  # of log mu
DEPENDENT = 1e-9  # the share of a column that others do not determine, below which they do
FLAT = 1e-4  # a parameter with less information than this diverges


@dataclass(frozen=True, eq=False)
class Design:
    """(cell, parameter) -> 0 or 1; cells in row-major order, the first category of each axis is the reference."""

    matrix: Floats
    names: tuple[str, ...]
    margins: tuple[NDArray[np.int64], ...] = ()  # of each term: the cell of its margin that a cell is in


@dataclass(frozen=True, eq=False)
class LogLinearFit:
    """log mu = design x estimate; ``variances`` are inf where the data do not determine a parameter.

    Parameters that only cells left out would determine have no estimate (nan).
    """

    names: tuple[str, ...]
    estimates: Floats
    variances: Floats
    fitted: Floats  # (cell) -> mu
    deviance: float  # 2 (saturated - fitted log-likelihood)
    df: int
    settled: bool
    used: NDArray[np.bool_]  # (cell): not structural, and in no empty margin of a term

    @property
    def p_value(self) -> float:
        """Pr[chi-square at least the deviance]; 1 for the saturated model."""
        return float(chdtrc(self.df, self.deviance)) if self.df else 1.0

    @property
    def standard_errors(self) -> Floats:
        """By the observed information."""
        return np.sqrt(self.variances)

    @property
    def wald(self) -> Floats:
        """Two-sided p-values of each parameter being 0."""
        found: Floats = 2 * ndtr(-np.abs(self.estimates) / np.maximum(self.standard_errors, 1e-300))
        return found


def design(
    shape: Sequence[int], labels: Sequence[Sequence[str]], axes: Sequence[str], terms: Sequence[str]
) -> Design:
    """The design of a hierarchical model: a term such as ``A*B`` also includes its lower-order terms A and B."""
    wanted = _hierarchy(axes, terms)
    width = 1 + sum(math.prod(shape[axis] - 1 for axis in term) for term in wanted)
    cells = math.prod(shape)
    if cells > LARGEST_CELLS or width > LARGEST_PARAMETERS or cells * width > LARGEST_DESIGN:
        raise mistake("", "model", f"{width} parameters for {cells} cells", "take fewer categories or terms")
    codes = np.indices(shape).reshape(len(shape), -1)  # (axis, cell)
    columns, names = [np.ones(cells)], ["intercept"]
    for term in wanted:
        for chosen in product(*(range(1, shape[axis]) for axis in term)):
            here = np.all([codes[axis] == code for axis, code in zip(term, chosen, strict=True)], axis=0)
            columns.append(here.astype(np.float64))
            pairs = zip(term, chosen, strict=True)
            names.append("*".join(f"{axes[axis]}={labels[axis][code]}" for axis, code in pairs))
    margins = tuple(
        np.ravel_multi_index(tuple(codes[list(term)]), [shape[axis] for axis in term]) for term in wanted
    )
    return Design(np.stack(columns, axis=1), tuple(names), margins)


def _hierarchy(axes: Sequence[str], terms: Sequence[str]) -> list[tuple[int, ...]]:
    """All subsets of the terms, by size and position."""
    found: set[tuple[int, ...]] = set()
    for term in terms:
        parts = [part.strip() for part in term.split("*")]
        unknown = [part for part in parts if part not in axes]
        if unknown or len(set(parts)) != len(parts):
            value = f"term {term!r}"
            raise mistake("", "model", value, f"join different axes by *, from {', '.join(axes)}")
        places = sorted(axes.index(part) for part in parts)
        found.update(subset for size in range(1, len(places) + 1) for subset in combinations(places, size))
    return sorted(found, key=lambda term: (len(term), term))


def fit(
    counts: NDArray[np.int64],
    model: Design,
    noise: PublishedLaw,
    structural: NDArray[np.bool_] | None = None,
) -> LogLinearFit:
    """Maximise sum log sum_a P(x | a) Poisson(a; mu), log mu = X theta.

    Score X'(e - mu) and observed information X' diag(mu - v) X, with e and v the mean and variance of the true count
    given x. Newton steps where the information is positive definite, steps of EM (information X' diag(mu) X)
    elsewhere, each halved until the likelihood grows.

    Structural zeros are left out, and so are the cells of an empty margin of a term, whose fitted counts are 0. df is
    the number of cells left minus that of the parameters that they determine (incomplete tables: Bishop, Fienberg &
    Holland 1975, 3.8 and 5.2). Later parameters that earlier ones determine are left out (aliased).
    """
    used = _used(counts, model, noise, np.zeros(len(counts), np.bool_) if structural is None else structural)
    if not used.any():
        raise mistake("", "table", "every cell is empty", "give a table with counts")
    counts, kept = counts[used], _independent(model.matrix[used])
    matrix = model.matrix[used][:, kept]
    packs = packed(noise, counts)
    which = packs.indices(counts)

    def sums(theta: Floats) -> tuple[float, Floats, Floats, Floats]:
        eta = np.clip(matrix @ theta, LOWEST, HIGHEST)
        logs, means, variances = tilted_sums(eta, which, packs)
        return float((logs - np.exp(eta)).sum()), means, variances, np.exp(eta)

    climbs = [_climb(sums, matrix, start) for start in _starts(counts, matrix)]
    theta, settled = max(climbs, key=lambda climb: sums(climb[0])[0])
    most, _, spread, mu = sums(theta)
    saturated = float(peaks(packs)[1][which].sum())
    estimates, variances = np.full(len(model.names), np.nan), np.full(len(model.names), np.inf)
    estimates[kept], variances[kept] = theta, _variances(matrix, mu - spread)
    fitted = np.zeros(len(used))
    fitted[used] = mu
    deviance = max(0.0, 2 * (saturated - most))
    return LogLinearFit(
        model.names, estimates, variances, fitted, deviance, len(counts) - len(kept), settled, used
    )


def _used(
    counts: NDArray[np.int64], model: Design, noise: PublishedLaw, structural: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """The cells that are possible and in no margin of a term whose cells are all most likely empty."""
    occupied, used = ~structural & filled(np.where(structural, 0, counts), noise), ~structural
    for margin in model.margins:
        used &= np.bincount(margin, weights=occupied)[margin] > 0
    return used


def _independent(matrix: Floats) -> NDArray[np.int64]:
    """The columns that no earlier ones determine."""
    found: list[int] = []
    basis = np.zeros((matrix.shape[0], 0))
    for place, column in enumerate(matrix.T):
        rest = column - basis @ (basis.T @ column)
        rest = rest - basis @ (basis.T @ rest)
        size = float(np.linalg.norm(rest))
        if size > DEPENDENT * max(1.0, float(np.linalg.norm(column))):
            found.append(place)
            basis = np.column_stack([basis, rest / size])
    return np.array(found, dtype=np.int64)


def _starts(counts: NDArray[np.int64], matrix: Floats) -> list[Floats]:
    """Least squares on the logarithms of the published counts, and a Poisson fit of the counts plus one half.

    Where the noise exceeds the counts the likelihood can have several peaks; the highest one found is returned.
    """
    x = np.maximum(counts, 0) + 0.5
    logs = np.linalg.lstsq(matrix, np.log(x), rcond=None)[0]
    theta = np.linalg.lstsq(matrix, np.full(len(x), math.log(float(x.mean()))), rcond=None)[0]
    for _ in range(CAREFUL):
        mu = np.exp(np.clip(matrix @ theta, LOWEST, HIGHEST))
        theta = theta + _step(matrix, mu, mu, matrix.T @ (x - mu))
    return [logs, theta]


Sums = Callable[[Floats], tuple[float, Floats, Floats, Floats]]


def _climb(sums: Sums, matrix: Floats, theta: Floats) -> tuple[Floats, bool]:
    """Step until nothing is gained; also returns whether it converged."""
    here, means, spread, mu = sums(theta)
    for round_ in range(ROUNDS):
        score = matrix.T @ (means - mu)
        step = _step(matrix, mu if round_ < CAREFUL else mu - spread, mu, score)
        for _ in range(HALVINGS):
            there = sums(theta + step)
            if there[0] >= here:
                break
            step = step / 2
        else:
            return theta, True  # no direction gains any more
        gained = there[0] - here
        theta = theta + step
        here, means, spread, mu = there
        if gained < 1e-10 * (1 + abs(here)) and (np.abs(step).max() < 1e-6 or gained == 0):
            return theta, True
        if gained < 1e-9 and np.abs(theta).max() > -LOWEST / 2:  # a parameter diverges
            return theta, True
    return theta, False


def _step(matrix: Floats, information: Floats, complete: Floats, score: Floats) -> Floats:
    """A Newton step, or one of EM where that does not ascend; at most 2 in any parameter."""
    for weights in (information, np.maximum(complete, 1e-10)):
        try:
            factor = cho_factor(matrix.T @ (weights[:, None] * matrix))
            step = cho_solve(factor, score)
        except LinAlgError:
            continue
        if np.isfinite(step).all():
            return np.asarray(step * min(1.0, 2 / max(np.abs(step).max(), 1e-300)), dtype=np.float64)
    return np.clip(score / (matrix.T @ np.maximum(complete, 1e-10)), -1.0, 1.0)


def _variances(matrix: Floats, information: Floats) -> Floats:
    """The diagonal of the inverse observed information; inf for a direction without any."""
    values, vectors = np.linalg.eigh(matrix.T @ (information[:, None] * matrix))
    known = values > FLAT
    found: Floats = (vectors[:, known] ** 2 / values[known]).sum(axis=1)
    lost = (vectors[:, ~known] ** 2).sum(axis=1) > 1e-6
    return np.where(lost, np.inf, found)
