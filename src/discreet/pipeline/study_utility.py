"""How close protected zip codes come to the true ones: relative frequencies over all cross-tabulations.

It owns the measure; it neither makes records nor adds noise, and hands out differences, never counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

LEAST_COUNT = 50  # cells with fewer true observations are not compared
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)

Counts = NDArray[np.int64]  # (zip, cell)
Number = TypeVar("Number", np.int64, np.float64)


@dataclass(frozen=True)
class Differences:
    """Absolute differences of relative frequencies, in percentage points, over the compared cells."""

    compared: int
    mean: float
    quantiles: dict[float, float]
    largest: float


def differences(
    true: Counts,
    protected: Counts,
    records: NDArray[np.int64],
    possible: NDArray[np.int64],
    shape: tuple[int, ...],
) -> Differences:
    """Compare counts of the cells that can exist; protected ones are shares of ``records`` of each zip code."""
    exact = _shares(true, true.sum(axis=1), possible, shape)
    noisy = _shares(protected, records, possible, shape)
    points = np.concatenate(list(_each_table(_spread(true, possible, shape), noisy - exact)))
    if not points.size:
        return Differences(0, 0.0, dict.fromkeys(QUANTILES, 0.0), 0.0)
    quantiles = dict(zip(QUANTILES, np.quantile(points, QUANTILES).tolist(), strict=True))
    return Differences(points.size, float(points.mean()), quantiles, float(points.max()))


def _spread(values: NDArray[Number], possible: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[Number]:
    """The grid of all attributes, with zeros where nothing can be."""
    grid = np.zeros((len(values), prod(shape)), dtype=values.dtype)
    grid[:, possible] = values
    return grid.reshape(len(values), *shape)


def _shares(
    counts: Counts, records: NDArray[np.int64], possible: NDArray[np.int64], shape: tuple[int, ...]
) -> NDArray[np.float64]:
    """Relative frequencies within each zip code; where nobody is left all are zero."""
    return _spread(counts / np.maximum(records, 1)[:, None], possible, shape)


def _each_table(true: Counts, gaps: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
    """The differences in each cross-tabulation of one attribute, of two, and so on up to all."""
    axes = range(1, true.ndim)
    for crossed in range(1, true.ndim):
        for kept in combinations(axes, crossed):
            others = tuple(axis for axis in axes if axis not in kept)
            compared = true.sum(axis=others) >= LEAST_COUNT
            yield 100 * np.abs(gaps.sum(axis=others))[compared]
