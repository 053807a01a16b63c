"""Intervals for true counts, differences, totals and ratios of noisy counts, from the noise only or with a prior."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Protocol

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri

from discreet.errors import mistake
from discreet.maths.inference.corrected import corrected_sum
from discreet.maths.noise.law import Floats, Pmf
from discreet.maths.noise.publishing import PublishedLaw

SLACK = 1e-12  # a level that is met except for rounding counts as met


class Prior(Protocol):
    """A law of the true count before anything is published."""

    def weights(self, counts: Floats) -> Floats:
        """The probability of each true count, up to a factor."""
        ...

    @property
    def name(self) -> str:
        """A description of the prior."""
        ...


@dataclass(frozen=True)
class Flat:
    """Every count, 0 included, is equally probable, to ``largest`` where one is given."""

    largest: int | None = None

    def __post_init__(self) -> None:
        if self.largest is not None and self.largest < 0:
            raise mistake("", "prior", f"largest count {self.largest}", "give 0 or more")

    def weights(self, counts: Floats) -> Floats:
        """1 within the limits."""
        return np.where(counts <= (math.inf if self.largest is None else self.largest), 1.0, 0.0)

    @property
    def name(self) -> str:
        """A description of the prior."""
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
        """A description of the prior."""
        extra = f", and an extra share of {self.empty:.3g} empty cells" if self.empty else ""
        return f"geometric with mean {self.mean:.4g}{extra}"


@dataclass(frozen=True)
class Interval:
    """From low to high, both included; ``level`` is its probability or guaranteed coverage."""

    low: int
    high: int
    level: float


@dataclass(frozen=True, eq=False)
class CellInference:
    """Inference on the true count from a published one."""

    published: int
    most_likely: tuple[int, int]  # first and last true count of the largest likelihood
    exact: Interval
    posterior: Pmf
    credible: Interval


def infer_cell(noise: PublishedLaw, published: int, level: float, prior: Prior) -> CellInference:
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


def posterior_of(noise: PublishedLaw, published: int, prior: Prior) -> Pmf:
    """P(a | x) proportional to P(x | a) prior(a)."""
    column = noise.column(published)
    p = column.p * prior.weights(np.arange(column.first, column.last + 1, dtype=np.float64))
    if not p.sum() > 0:
        remedy = "take a prior that allows a count near it"
        raise mistake("", "prior", f"{prior.name} rules out the published count {published}", remedy)
    possible = np.flatnonzero(p > 0)
    positive = p[possible[0] : possible[-1] + 1]
    return Pmf(column.first + int(possible[0]), positive / math.fsum(positive))


def credible(posterior: Pmf, level: float) -> Interval:
    """The shortest run of counts with at least this probability; of equally short ones the most probable."""
    sums = np.concatenate([[0.0], np.cumsum(posterior.p)])
    ends = np.searchsorted(sums, sums[:-1] + level - SLACK, side="left")
    starts = np.flatnonzero(ends < len(sums))
    if not len(starts):
        return Interval(posterior.first, posterior.last, 1.0)
    lengths, mass = ends[starts] - starts, sums[ends[starts]] - sums[starts]
    at = int(np.lexsort((-mass, lengths))[0])
    low = posterior.first + int(starts[at])
    return Interval(low, low + int(lengths[at]) - 1, float(mass[at]))


def exact_interval(noise: PublishedLaw, published: int, level: float) -> Interval:
    """All true counts a with Pr(at least x | a) and Pr(at most x | a) both above (1 - level) / 2, and those between.

    Whatever the true count is, it is inside with at least this probability (Clopper & Pearson 1934, for noise).
    """
    tail, column = (1 - level) / 2, noise.column(published)
    above, below = noise.tails(column, published)
    inside = np.flatnonzero((above > tail + SLACK) & (below > tail + SLACK))
    if not len(inside):  # every true count is improbable: take the most likely ones
        inside = np.flatnonzero(column.p >= column.p.max() * (1 - SLACK))
    return Interval(column.first + int(inside[0]), column.first + int(inside[-1]), level)


def checked_level(level: float) -> None:
    """Refuse a level that is not a probability."""
    if not 0.01 <= level <= 0.999999:
        raise mistake("", "level", f"{level:g}", "give a number between 0 and 1, as 0.95")


EXACT_VALUES = 1 << 22  # a law on more values than this is replaced by the normal law
EXACT_PAIRS = 1 << 24
DIRECT = 1 << 16  # products of lengths above this are convolved by Fourier transform
FORGOTTEN = 1e-15  # mass that is cut from each end of a sum of posteriors


class SumMethod(StrEnum):
    """What the interval of a sum rests on; none needs a prior."""

    EXACT = "exact"  # the law of the noise, enumerated
    NORMAL = "normal"  # the normal law of the summed noise, which has too many values
    CORRECTED = "corrected"  # counts corrected for post-processing, the normal law, a bound on the bias


@dataclass(frozen=True)
class SumPosterior:
    """The posterior of a sum given a prior of each cell."""

    mean: float
    credible: Interval
    is_exact: bool  # False: by the normal law


@dataclass(frozen=True)
class SumInference:
    """Inference on sum w_i a_i: an interval from the noise only, and the posterior where a prior is given."""

    published: int  # sum w_i x_i
    estimate: float
    interval: Interval
    method: SumMethod
    posterior: SumPosterior | None


@dataclass(frozen=True)
class RatioInference:
    """Inference on a / b: quantiles of the posterior."""

    published: float | None  # x / y; None where y is 0 or less
    median: float
    low: float
    high: float
    level: float
    is_exact: bool


def infer_sum(
    noise: PublishedLaw,
    counts: Sequence[int],
    weights: Sequence[int],
    level: float,
    prior: Prior | None = None,
    total: int | None = None,
) -> SumInference:
    """Infer sum w_i a_i from cells with independent noise; ``total`` is the same sum, published with its own noise.

    A group that is counted in several of the cells has the same noise there: give it once, with the sum of its weights.
    """
    checked_level(level)
    if not counts or len(counts) != len(weights) or not any(weights):
        raise mistake(
            "", "cells", f"{len(counts)} counts, {len(weights)} weights", "give a weight for each count"
        )
    pairs = [(x, w) for x, w in zip(counts, weights, strict=True) if w]
    published = sum(x * w for x, w in pairs)
    posterior = None if prior is None else _posterior(noise, pairs, level, prior, total)
    possible = _possible(noise, pairs, total)
    if total is None and noise.is_additive:
        found, method = _noise_only(noise, published, [w for _, w in pairs], level)
        estimate = published - sum(w for _, w in pairs) * noise.change.mean
    elif total is None and len(pairs) == 1 and pairs[0][1] == 1:
        found, method = exact_interval(noise, pairs[0][0], level), SumMethod.EXACT
        estimate = (found.low + found.high) / 2
    else:
        limits = corrected_sum(noise, [x for x, _ in pairs], [w for _, w in pairs], level, total)
        found = Interval(math.ceil(limits.low - 0.5), math.floor(limits.high + 0.5), level)
        estimate, method = limits.estimate, SumMethod.CORRECTED
    return SumInference(published, _within(estimate, possible), _cut(found, possible), method, posterior)


def _possible(noise: PublishedLaw, pairs: Sequence[tuple[int, int]], total: int | None) -> tuple[int, int]:
    """The smallest and the largest sum that can lead to these counts; refused where the total contradicts them."""
    ends = [sorted(w * end for end in _ends(noise, x)) for x, w in pairs]
    low, high = sum(end[0] for end in ends), sum(end[1] for end in ends)
    if total is None:
        return low, high
    first, last = _ends(noise, total)
    if first > high or last < low:
        raise _contradicted(total)
    return max(low, first), min(high, last)


@lru_cache(maxsize=4096)
def _ends(noise: PublishedLaw, published: int) -> tuple[int, int]:
    """The smallest and the largest true count that can lead to a published one."""
    column = noise.column(published)
    return column.first, column.last


def _contradicted(total: int) -> Exception:
    return mistake(
        "", "total", str(total), "it cannot be the sum of these cells under this noise; check both"
    )


def _within(estimate: float, possible: tuple[int, int]) -> float:
    return min(max(estimate, float(possible[0])), float(possible[1]))


def _cut(found: Interval, possible: tuple[int, int]) -> Interval:
    """Only sums that are possible; where none of the interval is, the nearest one."""
    low, high = (min(max(end, possible[0]), possible[1]) for end in (found.low, found.high))
    return Interval(low, high, found.level)


def _posterior(
    noise: PublishedLaw, pairs: Sequence[tuple[int, int]], level: float, prior: Prior, total: int | None
) -> SumPosterior:
    """The posteriors of the cells, convolved."""
    each = {x: posterior_of(noise, x, prior) for x in dict(pairs)}
    laws = [each[x] for x, _ in pairs]
    if sum(abs(w) * len(law.p) for law, (_, w) in zip(laws, pairs, strict=True)) > EXACT_VALUES:
        mean = math.fsum(w * law.mean for law, (_, w) in zip(laws, pairs, strict=True))
        variance = math.fsum(w * w * law.variance for law, (_, w) in zip(laws, pairs, strict=True))
        return _normal_posterior(noise, mean, variance, level, total)
    law = sum_law([scaled(law, w) for law, (_, w) in zip(laws, pairs, strict=True)])
    law = law if total is None else _with_total(law, noise, total)
    return SumPosterior(law.mean, credible(law, level), is_exact=True)


def _noise_only(
    noise: PublishedLaw, published: int, weights: Sequence[int], level: float
) -> tuple[Interval, SumMethod]:
    """published minus the quantiles of the summed noise: valid for every true sum, no prior needed."""
    change = noise.change
    if sum(abs(w) for w in weights) * len(change.p) > EXACT_VALUES:
        half = float(ndtri((1 + level) / 2)) * math.sqrt(sum(w * w for w in weights) * change.variance)
        centre = published - sum(weights) * change.mean
        return Interval(math.floor(centre - half), math.ceil(centre + half), level), SumMethod.NORMAL
    law, tail = sum_law([scaled(change, w) for w in weights]), (1 - level) / 2
    low = law.first + int(np.searchsorted(np.cumsum(law.p), tail + SLACK, side="right"))
    high = law.last - int(np.searchsorted(np.cumsum(law.p[::-1]), tail + SLACK, side="right"))
    return Interval(published - high, published - low, level), SumMethod.EXACT


def _normal_posterior(
    noise: PublishedLaw, mean: float, variance: float, level: float, total: int | None
) -> SumPosterior:
    """The normal law in place of a posterior on too many values; a published total has the noise of large counts."""
    if total is not None:
        other, spread = total - noise.change.mean, noise.change.variance
        mean = (mean * spread + other * variance) / (spread + variance)
        variance = variance * spread / (spread + variance)
    half = float(ndtri((1 + level) / 2)) * math.sqrt(variance)
    return SumPosterior(
        mean, Interval(math.floor(mean - half), math.ceil(mean + half), level), is_exact=False
    )


def _with_total(law: Pmf, noise: PublishedLaw, total: int) -> Pmf:
    """Multiply by the likelihood of the total."""
    column = noise.column(total)
    low, high = max(law.first, column.first), min(law.last, column.last)
    if low > high:
        p = np.zeros(0)
    else:
        p = (
            law.p[low - law.first : high + 1 - law.first]
            * column.p[low - column.first : high + 1 - column.first]
        )
    if not p.sum() > 0:
        raise _contradicted(total)
    return Pmf(low, p / math.fsum(p))


def scaled(law: Pmf, weight: int) -> Pmf:
    """The law of a whole multiple."""
    p = np.zeros((len(law.p) - 1) * abs(weight) + 1)
    p[:: abs(weight)] = law.p if weight > 0 else law.p[::-1]
    return Pmf(min(weight * law.first, weight * law.last), p)


def sum_law(laws: Sequence[Pmf]) -> Pmf:
    """The law of a sum of independent values, two by two so that lengths stay even; negligible ends are cut."""
    queue = list(laws)
    while len(queue) > 1:
        paired = [_added(queue[at], queue[at + 1]) for at in range(0, len(queue) - 1, 2)]
        queue = paired + queue[len(paired) * 2 :]
    return queue[0]


def _added(left: Pmf, right: Pmf) -> Pmf:
    if len(left.p) * len(right.p) <= DIRECT:
        p: Floats = np.convolve(left.p, right.p)
    else:
        whole = len(left.p) + len(right.p) - 1
        size = next_fast_len(whole, real=True)
        p = np.maximum(irfft(rfft(left.p, size) * rfft(right.p, size), size)[:whole], 0.0)
    p = p / math.fsum(p)
    sums = np.cumsum(p)
    low = int(np.searchsorted(sums, FORGOTTEN, side="right"))
    high = len(p) - int(np.searchsorted(np.cumsum(p[::-1]), FORGOTTEN, side="right"))
    return Pmf(left.first + right.first + low, p[low:high].copy())


def infer_ratio(noise: PublishedLaw, count: int, base: int, level: float, prior: Prior) -> RatioInference:
    """Infer a / b of two cells with independent noise; where b may be 0 the ratio may be infinite."""
    checked_level(level)
    above, below = posterior_of(noise, count, prior), posterior_of(noise, base, prior)
    published = count / base if base > 0 else None
    tail = (1 - level) / 2
    if len(above.p) * len(below.p) > EXACT_PAIRS:
        return _normal_ratio(above, below, published, level)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = above.values[:, None] / below.values[None, :].astype(np.float64)
    ratios = np.where(
        np.isnan(ratios), np.inf, ratios
    ).ravel()  # 0 / 0 is uninformative, so it counts as the worst
    order = np.argsort(ratios, kind="stable")
    sums = np.cumsum(np.outer(above.p, below.p).ravel()[order])
    shares = [
        ratios[order[min(len(sums) - 1, int(np.searchsorted(sums, q - SLACK)))]]
        for q in (tail, 0.5, 1 - tail)
    ]
    low, median, high = (float(share) for share in shares)
    return RatioInference(published, median, low, high, level, is_exact=True)


def _normal_ratio(above: Pmf, below: Pmf, published: float | None, level: float) -> RatioInference:
    """log(a / b) is about normal where both counts are far from 0; else no limit is given."""
    if above.first <= 0 or below.first <= 0:
        return RatioInference(
            published, above.mean / max(below.mean, 1e-300), 0.0, math.inf, level, is_exact=False
        )
    spread = math.sqrt(above.variance / above.mean**2 + below.variance / below.mean**2)
    half, centre = float(ndtri((1 + level) / 2)) * spread, above.mean / below.mean
    return RatioInference(
        published, centre, centre * math.exp(-half), centre * math.exp(half), level, is_exact=False
    )
