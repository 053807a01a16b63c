"""Redundant representations of statistics in a fixed set of tables (Bach 2020, annex B), and how risky they are.

A statistic T_A is a cross-tabulation of the levels A. Every published cross-tabulation S that refines A represents
T_A again, each cell of T_A as a sum of k = |S| / |A| cells of S, |.| being the number of cells. With the same
noise for the same participants a cross-tabulation counts once (eq. 22), without it once for each table that contains it
(eq. 21). The mean of t representations that add up k cells in all has the variance V k / t^2; the best weights do
better (``averaging.recovery``).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, product
from math import prod

import numpy as np

from discreet.maths.attacks.averaging import Recovery, recovery


@dataclass(frozen=True, order=True)
class CategoryLevel:
    """A division of one variable into ``size`` categories, the total left out."""

    variable: str
    name: str
    size: int


Statistic = frozenset[CategoryLevel]
Axis = tuple[CategoryLevel | None, ...]  # the levels of an axis below the total; None: one equal to the total
Coarser = Mapping[CategoryLevel, Sequence[CategoryLevel]]  # level -> the other levels that are sums of it


@dataclass(frozen=True)
class PublishedAxes:
    """The published tables, each with its axes, and which levels add up to which."""

    axes: tuple[tuple[Axis, ...], ...]
    coarser: Coarser
    trivial_once: bool = False  # the statistic itself counts once, however many tables contain it

    @property
    def published(self) -> Counter[Statistic]:
        """Each cross-tabulation that is published, and how often."""
        return Counter(
            frozenset(level for level in chosen if level is not None)
            for axes in self.axes
            for chosen in product(*((None, *axis) for axis in axes))
        )


@dataclass(frozen=True)
class Average:
    """The mean of t representations, which together add up k cells for each cell of the statistic."""

    t: int
    k: Fraction

    @property
    def ratio(self) -> float:
        """k / t^2: the variance of the mean in units of a single cell's."""
        return float(self.k / self.t**2)


@dataclass(frozen=True)
class Exposure:
    """All representations of a statistic: the paper's equal weights, and the best weights."""

    all: Average
    riskiest: Average  # the global minimum of k / t^2 over the representations sorted by k
    first_minimum: Average  # the paper's rule: stop at the first increase
    best: Recovery  # all of them, each with its best weight; its variance is in units of a single cell's


@dataclass(frozen=True)
class Redundancy:
    """How often a statistic is published, with the same noise for the same participants and without."""

    statistic: Statistic
    same_noise: Exposure
    fresh_noise: Exposure


def cells(statistic: Iterable[CategoryLevel]) -> int:
    """The number of cells of a cross-tabulation."""
    return prod(level.size for level in statistic)


def redundancies(tables: PublishedAxes) -> list[Redundancy]:
    """The redundancy of every published cross-tabulation, from the largest t down."""
    published = tables.published
    found: defaultdict[Statistic, list[tuple[int, int]]] = defaultdict(list)
    for finer, times in published.items():
        size = cells(finer)
        for statistic in _sums(finer, tables.coarser):
            once = tables.trivial_once and statistic == finer
            found[statistic].append((size, 1 if once else times))
    made = [_redundancy(statistic, found[statistic]) for statistic in published]
    return sorted(made, key=lambda one: (-one.same_noise.all.t, sorted(one.statistic)))


def _sums(finer: Statistic, coarser: Coarser) -> Iterable[Statistic]:
    """Every cross-tabulation whose cells are sums of cells of this one, itself included."""
    for chosen in product(*((None, level, *coarser.get(level, ())) for level in finer)):
        yield frozenset(level for level in chosen if level is not None)


def _redundancy(statistic: Statistic, found: Sequence[tuple[int, int]]) -> Redundancy:
    own = cells(statistic)
    return Redundancy(
        statistic,
        exposure([size for size, _ in found], own),
        exposure([size for size, times in found for _ in range(times)], own),
    )


def exposure(sizes: Sequence[int], own: int = 1) -> Exposure:
    """Average representations with these numbers of cells, of a statistic with ``own`` cells.

    The paper stops at the first representation that makes k / t^2 larger. A run of equal representations that
    follows can make it fall again, below where it stopped, so the minimum over all prefixes is the real risk.
    """
    totals = list(accumulate(sorted(sizes)))
    ratios = np.array(totals, dtype=np.float64) / np.arange(1, len(totals) + 1) ** 2.0
    rises = np.flatnonzero(np.diff(ratios) > 0)
    stops = (len(totals), int(ratios.argmin()) + 1, int(rises[0]) + 1 if len(rises) else len(totals))
    whole, lowest, first = (Average(t, Fraction(totals[t - 1], own)) for t in stops)
    return Exposure(whole, lowest, first, recovery(np.array(sizes, dtype=np.float64) / own))
