"""The averaging attack (Bach 2020, section 3.3 and annex B.3): probability of success by formula, and its kernels.

``recovery`` is the risk of averaging wherever one is judged: by the adviser, the gates, the audit and the server's
history guard. The functions with k/t^2 are the paper's, which averages with equal weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import lazily, njit
from discreet.maths.noise.law import Pmf

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazily("scipy.special")


Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

HALF = 0.5
LONGEST_SUM = 2**22  # values of a sum of noises that are computed exactly


def success(variance: float, ratio: float) -> float:
    """Pr[abs(mean noise) < 1/2] = erf(1/2 / sqrt(2 V k/t^2)), the summed noise taken as normal."""
    return math.erf(HALF / math.sqrt(2 * variance * ratio))


@dataclass(frozen=True)
class Recovery:
    """The best linear unbiased combination of t sums that represent one count."""

    t: int
    variance: float

    @property
    def probability(self) -> float:
        """How likely its rounded value is the true count, its error taken as normal."""
        return float(successes(np.array([self.variance]))[0])


def recovery(variances: Floats) -> Recovery:
    """Combine independent sums with these variances: weights 1/q, variance 1 / sum(1/q) (Aitken 1935).

    A sum of m cells whose noise is independent with variance V has the variance m V.
    """
    return Recovery(len(variances), float(1 / (1 / np.asarray(variances, dtype=np.float64)).sum()))


def chebyshev(variance: float, ratio: float, within: float = HALF) -> float:
    """The least Pr[abs(mean noise) < xi] >= 1 - V k/t^2 / xi^2 of any noise (eq. 12)."""
    return max(0.0, 1 - variance * ratio / within**2)


def contour(confidence: float) -> float:
    """V k / t^2 at which averaging succeeds with this probability: 1 / (8 erfinv(alpha)^2), 0.2528 at 68 %."""
    return float(1 / (8 * special.erfinv(confidence) ** 2))


def chebyshev_contour(confidence: float, within: float = HALF) -> float:
    """V k / t^2 at which Chebyshev's bound has this value: (1 - alpha) xi^2."""
    return (1 - confidence) * within**2


def least_variance(ratio: float, confidence: float) -> float:
    """The least variance of a cell's noise at which averaging succeeds with at most this probability."""
    return contour(confidence) / ratio


def laplace_epsilon(variance: float) -> float:
    """The epsilon of continuous Laplace noise, V = 2 / epsilon^2."""
    return math.sqrt(2 / variance)


def geometric_epsilon(variance: float) -> float:
    """The epsilon of two-sided geometric noise, V = 2a / (1-a)^2 = 1 / (2 sinh^2(epsilon/2))."""
    return 2 * math.asinh(math.sqrt(1 / (2 * variance)))


def exact_success(noise: Pmf, k: int, t: int) -> float | None:
    """Pr[abs(sum of k noises) < t/2] from the law itself, to some 1e-12; None where the sum has too many values."""
    width = k * (len(noise.p) - 1) + 1
    if width > LONGEST_SUM:
        return None
    size = 1 << width.bit_length()
    summed = np.fft.irfft(np.fft.rfft(noise.p, size) ** k, size)[:width]
    values = np.arange(width, dtype=np.int64) + k * noise.first
    return min(1.0, float(summed[2 * np.abs(values) < t].sum()))


class Method(IntEnum):
    """How representations are averaged."""

    MEAN = 0  # equal weights (Bach 2020, eq. 19 and 20)
    RISKIEST = 1  # equal weights, as many of those with the fewest cells as minimise k/t^2 (annex B.3)
    WEIGHTED = 2  # by the inverse of the variance


# columns of the running sums
_T, _S, _Q, _K, _W, _SW, _C, _BEST, _BT, _BS, _BK = range(11)


@dataclass(frozen=True, eq=False)
class Averages:
    """The three estimates of each target, with their variances and the numbers of representations and cells."""

    estimates: Floats  # (method, target)
    variances: Floats  # (method, target)
    t: Integers  # (method, target): representations in use
    k: Integers  # (method, target): cells in use
    weights: Floats  # (target): the sum of the weights of WEIGHTED; zero where another method is better


class Running:
    """The sums behind the averages of each target; the riskiest prefix is stored when it is found."""

    def __init__(self, targets: int) -> None:
        self.sums = np.zeros((targets, 11))
        self.sums[:, _BEST] = np.inf

    def add(self, s: Integers, k: Integers, q: Floats, shared: Floats, weighted: Floats) -> None:
        """One more representation of the targets where q > 0; those of the fewest cells first.

        ``shared`` and ``weighted`` are what it adds to C and C' with the representations before it.
        """
        add_to_averages(self.sums, s, k, q, shared, weighted)

    def averages(self, targets: Integers) -> Averages:
        """The averages of some targets."""
        sums = self.sums[targets].T
        t, best, weight = sums[_T], sums[_BT], sums[_W]
        estimates = np.stack([sums[_S] / t, sums[_BS] / best, sums[_SW] / weight])
        variances = np.stack([sums[_Q] / t**2, sums[_BEST], (weight + sums[_C]) / weight**2])
        used, cells = np.stack([t, best, t]), np.stack([sums[_K], sums[_BK], sums[_K]])
        weights = _take_the_best(estimates, variances, used, cells, weight.copy())
        return Averages(estimates, variances, used.astype(np.int64), cells.astype(np.int64), weights)


def _take_the_best(estimates: Floats, variances: Floats, t: Floats, k: Floats, weights: Floats) -> Floats:
    """Weights are best for independent noise; where shared noise makes an equal-weight mean better, it is used.

    Returns the weights, zero where another method is used.
    """
    for method in (Method.MEAN, Method.RISKIEST):
        better = variances[method] < variances[Method.WEIGHTED] * (1 - 1e-12)
        for array in (estimates, variances, t, k):
            array[Method.WEIGHTED, better] = array[method, better]
        weights[better] = 0.0
    return weights


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def add_to_averages(sums: Any, s: Any, k: Any, q: Any, shared: Any, weighted: Any) -> None:
    """Add a representation to the running sums of the targets where q > 0."""
    for a in range(s.size):
        if q[a] <= 0:
            continue
        row = sums[a]
        row[_T] += 1
        row[_S] += s[a]
        row[_Q] += q[a] + shared[a]
        row[_K] += k[a]
        row[_W] += 1 / q[a]
        row[_SW] += s[a] / q[a]
        row[_C] += weighted[a]
        ratio = row[_Q] / row[_T] ** 2
        if ratio <= row[_BEST]:
            row[_BEST] = ratio
            row[_BT] = row[_T]
            row[_BS] = row[_S]
            row[_BK] = row[_K]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def few_recovered(number: Any, few: Any, few_counts: Any, laws: Any, most: Any, chance: Any) -> None:
    """Pr[abs(sum of c_j e_j) < 1/2] by enumeration, for targets of few groups; a tie counts half.

    ``few`` has the coefficients c_j of each target's groups; ``laws[n]`` has the probabilities of the changes -R .. R
    of a count n, the last row for all larger counts. Targets of more than ``most`` combinations are left as they are.
    """
    last, values = laws.shape[0] - 1, laws.shape[1]
    reach = values // 2
    sums, chances = np.empty((2, most)), np.empty((2, most))
    for a in range(number.size):
        if number[a] == 0 or number[a] > few.shape[1]:
            continue
        combinations = 1
        for j in range(number[a]):
            combinations *= int(np.count_nonzero(laws[min(few_counts[a, j], last)]))
        if combinations > most:
            continue
        size, side = 1, 0
        sums[0, 0], chances[0, 0] = 0.0, 1.0
        for j in range(number[a]):
            row = min(few_counts[a, j], last)
            filled = 0
            for v in range(values):
                if laws[row, v] > 0:
                    for i in range(size):
                        sums[1 - side, filled] = sums[side, i] + few[a, j] * (v - reach)
                        chances[1 - side, filled] = chances[side, i] * laws[row, v]
                        filled += 1
            size, side = filled, 1 - side
        found = 0.0
        for i in range(size):
            away = abs(sums[side, i]) - 0.5
            found += chances[side, i] * (1.0 if away < -1e-9 else 0.5 if away < 1e-9 else 0.0)
        chance[a] = found


def successes(variances: Floats) -> Floats:
    """Pr[abs(noise) < 1/2] = erf(1/2 / sqrt(2 Var)), the noise of an average taken as normal."""
    found: Floats = special.erf(0.5 / np.sqrt(2 * np.maximum(variances, 1e-300)))
    return found
