"""What one published count says of the true one: maximum likelihood, an exact interval, and a posterior under a prior.

It owns single cells and their priors; sums, differences and ratios of cells are noisy_sums'.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from discreet.errors import mistake
from discreet.maths.noisy_counts import CountNoise
from discreet.maths.pmf import Floats, Pmf

SLACK = 1e-12  # a level that is met but for the last digits is met


class Prior(Protocol):
    """What is believed of a true count before anything is published."""

    def weights(self, counts: Floats) -> Floats:
        """The probability of each true count, up to a factor."""
        ...

    @property
    def name(self) -> str:
        """The prior in words."""
        ...


@dataclass(frozen=True)
class Flat:
    """Every count from 0 on is equally probable, to ``largest`` where one is given."""

    largest: int | None = None

    def __post_init__(self) -> None:
        if self.largest is not None and self.largest < 0:
            raise mistake("", "prior", f"largest count {self.largest}", "give 0 or more")

    def weights(self, counts: Floats) -> Floats:
        """1 within the limits."""
        return np.where(counts <= (math.inf if self.largest is None else self.largest), 1.0, 0.0)

    @property
    def name(self) -> str:
        """The prior in words."""
        upper = "" if self.largest is None else f" to {self.largest}"
        return f"every count from 0{upper or ' on'} equally probable"


@dataclass(frozen=True)
class Geometric:
    """P(a) = (1 - q) q^a with this mean q / (1 - q), and an extra share of empty cells."""

    mean: float
    empty: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.mean < 1e12:
            raise mistake("", "prior", f"mean {self.mean:g}", "give a mean above 0")
        if not 0 <= self.empty < 1:
            raise mistake(
                "", "prior", f"share of empty cells {self.empty:g}", "give a share from 0 to below 1"
            )

    def weights(self, counts: Floats) -> Floats:
        """The probability of each count."""
        found: Floats = (1 - self.empty) * np.exp(-counts * math.log1p(1 / self.mean)) / (1 + self.mean)
        return found + np.where(counts == 0, self.empty, 0.0)

    @property
    def name(self) -> str:
        """The prior in words."""
        extra = f", and {self.empty:.3g} of the cells empty besides" if self.empty else ""
        return f"geometric with mean {self.mean:.4g}{extra}"


@dataclass(frozen=True)
class Interval:
    """From low to high, both included; ``level`` is what it holds or guarantees."""

    low: int
    high: int
    level: float


@dataclass(frozen=True, eq=False)
class CellInference:
    """What a published count says of the true one."""

    published: int
    most_likely: tuple[int, int]  # first and last true count of the largest likelihood
    exact: Interval
    posterior: Pmf
    credible: Interval


def infer_cell(noise: CountNoise, published: int, level: float, prior: Prior) -> CellInference:
    """Infer the true count of one cell."""
    checked_level(level)
    column = noise.column(published)
    best = column.first + np.flatnonzero(column.p >= column.p.max() * (1 - SLACK))
    posterior = posterior_of(noise, published, prior)
    return CellInference(
        published,
        (int(best[0]), int(best[-1])),
        exact_interval(noise, published, level),
        posterior,
        credible(posterior, level),
    )


def posterior_of(noise: CountNoise, published: int, prior: Prior) -> Pmf:
    """P(a | x) proportional to P(x | a) prior(a)."""
    column = noise.column(published)
    p = column.p * prior.weights(np.arange(column.first, column.last + 1, dtype=np.float64))
    if not p.sum() > 0:
        remedy = "take a prior that allows a count near it"
        raise mistake("", "prior", f"{prior.name} rules out the published count {published}", remedy)
    possible = np.flatnonzero(p > 0)
    kept = p[possible[0] : possible[-1] + 1]
    return Pmf(column.first + int(possible[0]), kept / math.fsum(kept))


def credible(posterior: Pmf, level: float) -> Interval:
    """The shortest run of counts that holds at least the level; of equal ones the most probable."""
    sums = np.concatenate([[0.0], np.cumsum(posterior.p)])
    ends = np.searchsorted(sums, sums[:-1] + level - SLACK, side="left")
    starts = np.flatnonzero(ends < len(sums))
    if not len(starts):
        return Interval(posterior.first, posterior.last, 1.0)
    lengths, held = ends[starts] - starts, sums[ends[starts]] - sums[starts]
    at = int(np.lexsort((-held, lengths))[0])
    low = posterior.first + int(starts[at])
    return Interval(low, low + int(lengths[at]) - 1, float(held[at]))


def exact_interval(noise: CountNoise, published: int, level: float) -> Interval:
    """All true counts a with Pr(at least x | a) and Pr(at most x | a) both above (1 - level) / 2, and those between.

    Whatever the truth is, it is inside with at least this probability (Clopper & Pearson 1934, for noise).
    """
    tail, column = (1 - level) / 2, noise.column(published)
    above, below = noise.tails(column, published)
    inside = np.flatnonzero((above > tail + SLACK) & (below > tail + SLACK))
    if not len(inside):  # every true count would be a surprise: the most likely ones are all that is left
        inside = np.flatnonzero(column.p >= column.p.max() * (1 - SLACK))
    return Interval(column.first + int(inside[0]), column.first + int(inside[-1]), level)


def checked_level(level: float) -> None:
    """Refuse a level that is no probability."""
    if not 0.01 <= level <= 0.999999:
        raise mistake("", "level", f"{level:g}", "give a number between 0 and 1, as 0.95")
