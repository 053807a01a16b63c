"""Where statistics of simulated releases must be, by their sampling distributions; one test errs with probability 1e-9.

Every check of a test takes an equal part of that probability (Bonferroni), half of it at either end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, chi2, norm

Numbers = NDArray[Any] | float | int

ERRING = 1e-9  # how often a test of correct code may fail


def normal_reach(checks: int) -> float:
    """How far from 0 the largest of so many standard normal values may be."""
    return float(norm.isf(ERRING / checks / 2))


def is_chi_squared(values: Numbers, degrees: int, checks: int) -> bool:
    """Whether each of the values can be a chi-squared one."""
    tail = ERRING / checks / 2
    low, high = chi2.ppf(tail, degrees), chi2.isf(tail, degrees)
    return bool(((np.asarray(values) >= low) & (np.asarray(values) <= high)).all())


def is_binomial(counts: Numbers, trials: int, probability: Numbers, checks: int) -> bool:
    """Whether each of the counts can be that of so many trials; its tails are exact sums."""
    tail = ERRING / checks / 2
    below, above = (
        binom.cdf(counts, trials, probability),
        binom.sf(np.asarray(counts) - 1, trials, probability),
    )
    return bool(((below >= tail) & (above >= tail)).all())
