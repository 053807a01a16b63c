"""Intervals for a proportion whose part and whole are both noisy, by inverting a test of each pair of true counts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from discreet.errors import mistake
from discreet.maths.inference.intervals import SLACK, checked_level, exact_interval
from discreet.maths.noise.law import Pmf
from discreet.maths.noise.publishing import PublishedLaw

MOST_PAIRS = 20_000  # of true counts that are tested
REMOTE = 1e-6  # true counts are left out that publish something as remote as this
STEPS = 4000  # of proportions, where the law of the noise is the same for all counts


@dataclass(frozen=True)
class Proportion:
    """The interval of a / n: ``is_exact`` where the law of the noise was enumerated, else by the normal law."""

    published: float | None  # x / y; None where y is 0 or less
    estimate: float
    low: float
    high: float
    is_exact: bool


def infer_proportion(
    part_noise: PublishedLaw, whole_noise: PublishedLaw, part: int, whole: int, level: float
) -> Proportion:
    """All p = a / n, 0 <= a <= n, n >= 1, that the published x and y do not contradict (Fieller 1954, for noise).

    With T = X - p Y, whose mean is 0 where a = p n and the noise has mean 0, a pair (a, n) is contradicted where
    Pr(T >= x - p y) or Pr(T <= x - p y) is at most (1 - level) / 2 under it. So whatever a and n are, their ratio is
    inside with at least this probability. The noise of part and whole is independent.
    """
    checked_level(level)
    above, below = (exact_interval(*one, 1 - REMOTE) for one in ((part_noise, part), (whole_noise, whole)))
    if below.high < 1 or above.low > below.high:
        value = f"{part} of {whole}"
        raise mistake("", "proportion", value, "the part cannot be inside such a whole; check both counts")
    a, n = np.arange(above.low, above.high + 1), np.arange(max(1, below.low), below.high + 1)
    estimate = _most_likely(part_noise, part, whole_noise, whole)
    tail, changes = (1 - level) / 2, (part_noise.change, whole_noise.change)
    exact = True
    if len(a) * len(n) <= MOST_PAIRS:
        found = _by_pairs((part_noise, whole_noise), part, whole, a, n, tail)
    elif _is_regular(part_noise, int(a[0])) and _is_regular(whole_noise, int(n[0])):
        found = _by_steps(*changes, part, whole, tail)
    else:
        found, exact = _normal(*changes, part, whole, tail), False
    low, high = found or (estimate, estimate)
    published = part / whole if whole > 0 else None
    return Proportion(published, min(max(estimate, low), high), low, high, exact)


def _most_likely(part_noise: PublishedLaw, part: int, whole_noise: PublishedLaw, whole: int) -> float:
    """The ratio of the most likely counts: the means of those that are equally likely, at most 1."""
    a, n = (_peak(*one) for one in ((part_noise, part), (whole_noise, whole)))
    return min(1.0, a / max(n, 1.0))


def _peak(noise: PublishedLaw, published: int) -> float:
    column = noise.column(published)
    best = np.flatnonzero(column.p >= column.p.max() * (1 - SLACK))
    return float(column.first + best.mean())


def _by_pairs(
    laws: tuple[PublishedLaw, PublishedLaw],
    part: int,
    whole: int,
    a: NDArray[np.int64],
    n: NDArray[np.int64],
    tail: float,
) -> tuple[float, float] | None:
    """The smallest and the largest ratio of a pair that is not contradicted."""
    parts = [laws[0].row(int(one)) for one in a]
    low, high = math.inf, -math.inf
    for size in n.tolist():
        of_whole = laws[1].row(size)
        for one, of_part in zip(a.tolist(), parts, strict=True):
            if one > size:
                break
            p = one / size
            if low <= p <= high:
                continue
            if _accepted(of_part, of_whole, part, whole, p, tail):
                low, high = min(low, p), max(high, p)
    return None if low > high else (low, high)


def _accepted(of_part: Pmf, of_whole: Pmf, part: int, whole: int, p: float, tail: float) -> bool:
    """Whether neither tail of T = X - p Y at x - p y is too small."""
    limits = part + p * (of_whole.values - whole)  # X is at least, or at most, these
    at_least = of_part.p[::-1].cumsum()[::-1]
    at_most = of_part.p.cumsum()
    first = np.ceil(limits - SLACK).astype(np.int64) - of_part.first
    last = np.floor(limits + SLACK).astype(np.int64) - of_part.first
    size = len(of_part.p)
    upper = np.where(first >= size, 0.0, at_least[np.clip(first, 0, size - 1)])
    lower = np.where(last < 0, 0.0, at_most[np.clip(last, 0, size - 1)])
    return bool(of_whole.p @ upper > tail + SLACK and of_whole.p @ lower > tail + SLACK)


def _is_regular(noise: PublishedLaw, count: int) -> bool:
    """Whether noise of one law is published unchanged for this true count and all larger ones."""
    rule = noise.publishing
    return rule.rounding == 1 and noise.alike(count) == noise.alike(count + 1)


def _by_steps(of_part: Pmf, of_whole: Pmf, part: int, whole: int, tail: float) -> tuple[float, float] | None:
    """The same where the law does not depend on the counts: T at steps of p, and one step more at either end."""
    kept = [
        step for step in range(STEPS + 1) if _accepted(of_part, of_whole, part, whole, step / STEPS, tail)
    ]
    return (max(0, kept[0] - 1) / STEPS, min(STEPS, kept[-1] + 1) / STEPS) if kept else None


def _normal(of_part: Pmf, of_whole: Pmf, part: int, whole: int, tail: float) -> tuple[float, float] | None:
    """Fieller's interval: (x - p y)^2 <= z^2 (s_x^2 + p^2 s_y^2)."""
    x, y = part - of_part.mean, whole - of_whole.mean
    z = float(-ndtri(tail))
    p = np.arange(STEPS + 1) / STEPS
    kept = np.flatnonzero((x - p * y) ** 2 <= z * z * (of_part.variance + p**2 * of_whole.variance))
    if not len(kept):
        return None
    return max(0, int(kept[0]) - 1) / STEPS, min(STEPS, int(kept[-1]) + 1) / STEPS
