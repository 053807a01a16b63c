"""Averaging noise away (Bach 2020, section 3.3 and annex B.3): how likely the mean of representations is the truth.

It owns the closed forms; how many representations there are is redundancy's to count.

The mean of t representations that add up k noisy cells of variance V has the variance V k / t^2. Rounded, it is the
true count where its noise is below 1/2 in magnitude.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import erfinv

from discreet.maths.pmf import Pmf

HALF = 0.5
LONGEST_SUM = 2**22  # values of a sum of noises that are worked out exactly


def success(variance: float, ratio: float) -> float:
    """Pr[abs(mean noise) < 1/2] = erf(1/2 / sqrt(2 V k/t^2)), the summed noise taken as normal."""
    return math.erf(HALF / math.sqrt(2 * variance * ratio))


def chebyshev(variance: float, ratio: float, within: float = HALF) -> float:
    """The least Pr[abs(mean noise) < xi] >= 1 - V k/t^2 / xi^2 of any noise (eq. 12)."""
    return max(0.0, 1 - variance * ratio / within**2)


def contour(confidence: float) -> float:
    """V k / t^2 at which averaging succeeds so often: 1 / (8 erfinv(alpha)^2), 0.2528 at 68 %."""
    return float(1 / (8 * erfinv(confidence) ** 2))


def chebyshev_contour(confidence: float, within: float = HALF) -> float:
    """V k / t^2 at which Chebyshev's bound is so high: (1 - alpha) xi^2."""
    return (1 - confidence) * within**2


def least_variance(ratio: float, confidence: float) -> float:
    """The variance of a cell's noise that keeps averaging below this success."""
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
