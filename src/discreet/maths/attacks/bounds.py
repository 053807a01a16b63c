"""Bounded noise: finding its bound, and what a known bound discloses (Bach 2020, section 3)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from discreet.errors import mistake
from discreet.maths.noise.law import Floats, Pmf

SEXES = 2
LARGEST_BOUND = 1000
LEAST_VARIANCE, LARGEST_VARIANCE = 1e-9, 1e12


def maximum_entropy(variance: float, bound: int) -> Pmf:
    """p(v) proportional to exp(-lambda v^2), abs(v) <= E, with this variance; uniform for V >= E(E+1)/3."""
    if not 1 <= bound <= LARGEST_BOUND:
        raise mistake("", "D", str(bound), f"give a bound of 1 to {LARGEST_BOUND}")
    if not LEAST_VARIANCE <= variance < math.inf:
        raise mistake("", "V", f"{variance:g}", f"give a variance above 0, at least {LEAST_VARIANCE:g}")
    return Pmf(-bound, maximum_entropy_laws((variance,), bound)[0])


@lru_cache(maxsize=256)  # several planes of one advice have the same grid
def maximum_entropy_laws(variances: tuple[float, ...], bound: int) -> Floats:
    """[law, E + v] The laws of maximum entropy of several variances at once."""
    wanted, squares = np.array(variances), squared_values(bound)
    low, high = np.zeros(len(wanted)), 1 + 1 / wanted
    flat = wanted >= bound * (bound + 1) / 3  # the uniform law has no larger variance
    middle = np.where(flat, low, (low + high) / 2)
    while ((low < middle) & (middle < high)).any():  # to the last bit; the variance falls with the curvature
        wide = (_weighted(middle, squares) * squares).sum(axis=1) > wanted
        low, high = np.where(wide, middle, low), np.where(wide, high, middle)
        middle = np.where(flat, low, (low + high) / 2)
    found = _weighted(low, squares)
    found.setflags(write=False)
    return found


def _weighted(curvatures: Floats, squares: Floats) -> Floats:
    weights = np.exp(-curvatures[:, None] * squares)
    found: Floats = weights / weights.sum(axis=1, keepdims=True)
    return found


def squared_values(bound: int) -> Floats:
    """v^2 of all values from -E to E."""
    return np.arange(-bound, bound + 1, dtype=np.float64) ** 2


def gap_law(noise: Pmf, categories: int = SEXES) -> Pmf:
    """The law of F + M - T, the gap of a published tuple of n categories and their total."""
    gap = noise.p[::-1]
    for _ in range(categories):
        gap = np.convolve(gap, noise.p)
    return Pmf(categories * noise.first - noise.last, gap)


def reveals(noise: Pmf, bound: int, categories: int = SEXES) -> float:
    """p1 = Pr[abs(F + M - T) > 3 (E - 1)]: a tuple shows E as ceil(abs(gap) / 3); n + 1 for 3 in general.

    The text of the paper leaves out the absolute value; its example of uniform noise, 20 / (2E+1)^3, has it.
    """
    gap, least = gap_law(noise, categories), (categories + 1) * (bound - 1) + 1
    if least <= 0:
        return 1.0
    return gap.cdf(-least) + gap.tail(least)


def tuples_needed(p1: float, confidence: float) -> float:
    """m = ceil(log(1 - alpha) / log(1 - p1)) tuples reveal E with this confidence (eq. 11); inf where none can."""
    if p1 >= 1:
        return 1
    needed = math.log1p(-confidence) / math.log1p(-p1) if p1 > 0 else math.inf
    return math.ceil(needed) if math.isfinite(needed) else math.inf


def revealed(p1: float, tuples: int) -> float:
    """1 - (1 - p1)^m: the probability that m tuples reveal E."""
    return -math.expm1(tuples * math.log1p(-p1)) if p1 < 1 else 1.0


def pinned(noise: Pmf, categories: int = SEXES) -> float:
    """The probability that large counts are disclosed by a known E: every part has -E and the total +E, or reversed."""
    low, high = float(noise.p[0]), float(noise.p[-1])
    return low**categories * high + high**categories * low


@dataclass(frozen=True)
class Pinning:
    """The probability that published F, M and T disclose small true counts F and M once the p-table is known."""

    first: int
    second: int
    probability: float


def pinned_small(row: Callable[[int], Pmf], reach: int, largest: int) -> list[Pinning]:
    """Pinning of all pairs of positive counts up to ``largest``, by the rows of a p-table with changes up to ``reach``.

    A published triple discloses when exactly one pair of true counts can have led to it. Counts that cannot fall below
    zero and zeros that stay zero give more such patterns than only +-E: where F is empty the same persons are in M and
    T, which then have the same noise, so that M and T which differ prove that F is positive.
    """
    rows = [row(count) for count in range(2 * (largest + 2 * reach) + 1)]
    p = np.zeros(
        (len(rows), max(one.last for one in rows) + 1)
    )  # (true count, published count) -> probability
    for count, one in enumerate(rows):
        p[count, one.first : one.last + 1] = one.p
    positive = (p > 0).astype(np.int64)
    positive[0] = 0
    disclosing = cache(partial(_disclosing, positive))  # many pairs can be published as the same j and k
    pairs = combinations_with_replacement(range(1, largest + 1), 2)
    return [Pinning(first, second, _pinned_pair(p, first, second, disclosing)) for first, second in pairs]


def _pinned_pair(
    p: Floats, first: int, second: int, disclosing: Callable[[int, int], NDArray[np.int64]]
) -> float:
    total, published, sums = 0.0, np.flatnonzero(p[second]).tolist(), p[first + second]
    for j in np.flatnonzero(p[first]).tolist():
        for k in published:
            if (single := disclosing(j, k)).size:
                total += p[first, j] * p[second, k] * float(sums[single].sum())
    return total


def _disclosing(positive: NDArray[np.int64], j: int, k: int) -> NDArray[np.int64]:
    """The totals that disclose which counts were published as j and k."""
    return np.flatnonzero(_origins(positive, j, k) == 1)


def _origins(positive: NDArray[np.int64], j: int, k: int) -> NDArray[np.int64]:
    """How many pairs of true counts can be published as j, k and each total, by which positive counts can be."""
    sums = np.convolve(positive[:, j], positive[:, k])[: len(positive)]
    found: NDArray[np.int64] = sums @ positive
    if j == 0:  # an empty first part: the total has the second's noise
        found[k] += positive[:, k].sum()
    if k == 0:
        found[j] += positive[:, j].sum()
    if j == k == 0:
        found[0] += 1
    return found


def exceeds_laplace(epsilon: float, bound: float) -> float:
    """Pr[abs(x) > E] = exp(-epsilon E) of continuous Laplace noise (eq. 15, printed with a wrong sign)."""
    return math.exp(-epsilon * bound)


def exceeds_geometric(epsilon: float, bound: int) -> float:
    """Pr[abs(v) > E] = 2 e^(-epsilon (E+1)) / (1 + e^-epsilon) of two-sided geometric noise."""
    return 2 * math.exp(-epsilon * (bound + 1)) / (1 + math.exp(-epsilon))


def epsilon_of_bound(bound: float, counts: float, confidence: float) -> float:
    """The epsilon above which Laplace noise on t counts stays within E: log(t / (1 - alpha)) / E (eq. 16)."""
    return math.log(counts / (1 - confidence)) / bound


def epsilon_of_reconstruction(records: float, confidence: float) -> float:
    """The epsilon of each of n log^2 n counts above which n records can be reconstructed (eq. 8), natural logs.

    The formula needs two records at least; fewer are taken as two.
    """
    records = max(records, 2.0)
    return math.log(records * math.log(records) ** 2 / (1 - confidence)) / math.sqrt(records)
