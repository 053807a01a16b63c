"""Totals, differences and ratios of noisy counts: exact laws by convolution; normal ones where those are too large.

It owns what several cells say together; single cells and priors are noisy_intervals'.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.signal import fftconvolve
from scipy.stats import norm

from discreet.errors import mistake
from discreet.maths.noisy_counts import CountNoise
from discreet.maths.noisy_intervals import (
    SLACK,
    Interval,
    Prior,
    checked_level,
    credible,
    posterior_of,
)
from discreet.maths.pmf import Floats, Pmf

EXACT_VALUES = 1 << 22  # a law on more values than this is replaced by the normal law
EXACT_PAIRS = 1 << 24
DIRECT = 1 << 16  # products of lengths above this are convolved by Fourier transform
FORGOTTEN = 1e-15  # mass that is cut from each end of a sum of posteriors


@dataclass(frozen=True)
class SumInference:
    """What is known of sum w_i a_i: an estimate and interval by the noise alone, and by the posterior."""

    published: int  # sum w_i x_i
    noise_only: Interval | None  # None where the noise depends on the count
    posterior_mean: float
    credible: Interval
    is_exact: bool  # False: by the normal law


@dataclass(frozen=True)
class RatioInference:
    """What is known of a / b: shares of the posterior."""

    published: float | None  # x / y; None where y is 0 or less
    median: float
    low: float
    high: float
    level: float
    is_exact: bool


def infer_sum(
    noise: CountNoise,
    counts: Sequence[int],
    weights: Sequence[int],
    level: float,
    prior: Prior,
    total: int | None = None,
    prior_variance: float = 0.0,
) -> SumInference:
    """Infer sum w_i a_i from cells with independent noise; ``total`` is the same sum, published with its own noise.

    ``prior_variance`` is what an estimated prior adds to the variance of the sum, as a normal law.
    A group that is counted in several of the cells has the same noise there: give it once, with the sum of its weights.
    """
    checked_level(level)
    if not counts or len(counts) != len(weights) or not any(weights):
        raise mistake(
            "", "cells", f"{len(counts)} counts, {len(weights)} weights", "give a weight for each count"
        )
    pairs = [(x, w) for x, w in zip(counts, weights, strict=True) if w]
    each = {x: posterior_of(noise, x, prior) for x in dict(pairs)}
    laws = [each[x] for x, _ in pairs]
    mean = math.fsum(w * law.mean for law, (_, w) in zip(laws, pairs, strict=True))
    variance = prior_variance + math.fsum(
        w * w * law.variance for law, (_, w) in zip(laws, pairs, strict=True)
    )
    published = sum(x * w for x, w in pairs)
    alone = _noise_only(noise, published, [w for _, w in pairs], level)
    if sum(abs(w) * len(law.p) for law, (_, w) in zip(laws, pairs, strict=True)) > EXACT_VALUES:
        return _normal_sum(noise, published, alone, mean, variance, level, total)
    law = sum_law([scaled(law, w) for law, (_, w) in zip(laws, pairs, strict=True)] + _spread(prior_variance))
    law = law if total is None else _with_total(law, noise, total)
    return SumInference(published, alone, law.mean, credible(law, level), is_exact=True)


def _noise_only(noise: CountNoise, published: int, weights: Sequence[int], level: float) -> Interval | None:
    """published minus the quantiles of the summed noise: right for every truth, no prior needed."""
    if not noise.is_additive:
        return None
    change = noise.change
    if sum(abs(w) for w in weights) * len(change.p) > EXACT_VALUES:
        half = float(norm.ppf((1 + level) / 2)) * math.sqrt(sum(w * w for w in weights) * change.variance)
        centre = published - sum(weights) * change.mean
        return Interval(math.floor(centre - half), math.ceil(centre + half), level)
    law, tail = sum_law([scaled(change, w) for w in weights]), (1 - level) / 2
    low = law.first + int(np.searchsorted(np.cumsum(law.p), tail + SLACK, side="right"))
    high = law.last - int(np.searchsorted(np.cumsum(law.p[::-1]), tail + SLACK, side="right"))
    return Interval(published - high, published - low, level)


def _normal_sum(
    noise: CountNoise,
    published: int,
    alone: Interval | None,
    mean: float,
    variance: float,
    level: float,
    total: int | None,
) -> SumInference:
    """The normal law in place of a posterior on too many values; a published total has the noise of large counts."""
    if total is not None:
        other, spread = total - noise.change.mean, noise.change.variance
        mean = (mean * spread + other * variance) / (spread + variance)
        variance = variance * spread / (spread + variance)
    half = float(norm.ppf((1 + level) / 2)) * math.sqrt(variance)
    found = Interval(math.floor(mean - half), math.ceil(mean + half), level)
    return SumInference(published, alone, mean, found, is_exact=False)


def _with_total(law: Pmf, noise: CountNoise, total: int) -> Pmf:
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
        raise mistake(
            "", "total", str(total), "it cannot be the sum of these cells under this noise; check both"
        )
    return Pmf(low, p / math.fsum(p))


def _spread(variance: float) -> list[Pmf]:
    """A normal law on the integers, where there is something to spread."""
    if variance < 0.01:
        return []
    reach = math.ceil(8 * math.sqrt(variance))
    p = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * variance))
    return [Pmf(-reach, p / math.fsum(p))]


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
        p = np.maximum(fftconvolve(left.p, right.p), 0.0)
    p = p / math.fsum(p)
    sums = np.cumsum(p)
    low = int(np.searchsorted(sums, FORGOTTEN, side="right"))
    high = len(p) - int(np.searchsorted(np.cumsum(p[::-1]), FORGOTTEN, side="right"))
    return Pmf(left.first + right.first + low, p[low:high].copy())


def infer_ratio(noise: CountNoise, count: int, base: int, level: float, prior: Prior) -> RatioInference:
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
    ).ravel()  # 0 / 0 tells nothing, so it counts as the worst
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
    half, centre = float(norm.ppf((1 + level) / 2)) * spread, above.mean / below.mean
    return RatioInference(
        published, centre, centre * math.exp(-half), centre * math.exp(half), level, is_exact=False
    )
