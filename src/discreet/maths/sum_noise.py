"""How far a total of noisy cells is expected to be off: E|X1 + .. + Xm| for two-sided geometric noise.

It owns the formula and its numerics; it neither draws noise nor knows what the cells are.

With a = exp(-epsilon / sensitivity), P(X = x) is proportional to a^|x| and the characteristic function of X is
phi(t) = (1 - a)^2 / (1 - 2a cos t + a^2). For every whole-numbered S with E|S| < infinity,
|s| = (1/pi) int_0^pi (1 - cos st) / (1 - cos t) dt, hence

    E|X1 + .. + Xm| = (1/pi) int_0^pi (1 - phi(t)^m) / (1 - cos t) dt

(the expected absolute error of Soria-Comas and Drechsler, Differential privacy for census data, for a region of m
partition sets; the relative error divides it by the number of records, which is k for a cluster).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit

LEAST_RATIO = 1e-100  # of epsilon to the sensitivity
MOST_CELLS = 10**12
_STEP = 0.1
_TAIL = 42.0  # exp(-42) is below the last digit of a double


def expected_absolute_sum(cells: int, epsilon: float, sensitivity: float = 1.0) -> float:
    """E|X1 + .. + Xm| of m = ``cells`` independent noises, to about 14 digits.

    With t = 2 arctan(e^s) the integral becomes (1/pi) int (1 - phi^m) e^-s ds over the whole line, and
    1/phi = 1 + 4a / (1 - a)^2 / (1 + e^-2s). The integrand is analytic and bounded for |Im s| < pi/4, so that the
    trapezoidal rule with step h errs by about exp(-pi^2 / (2h)), whatever m and epsilon.
    """
    ratio = _ratio(cells, epsilon, sensitivity)
    spread = 4.0 * math.exp(-ratio) / math.expm1(-ratio) ** 2
    rise = -0.5 * math.log(max(1.0, cells * spread))  # where phi^m falls from 1
    s = np.arange(rise - _TAIL, _TAIL, _STEP)
    risen = -np.expm1(-cells * np.log1p(spread * expit(2.0 * s)))
    return float(_STEP * np.sum(risen * np.exp(-s)) / math.pi)


def expected_relative_error(cells: int, epsilon: float, sensitivity: float, records: int) -> float:
    """E|X1 + .. + Xm| / n: the expected error of the total of m noisy cells that hold n records together."""
    if records < 1:
        raise ValueError(f"at least 1 record, not {records}")
    return expected_absolute_sum(cells, epsilon, sensitivity) / records


def _ratio(cells: int, epsilon: float, sensitivity: float) -> float:
    if not 0 <= cells <= MOST_CELLS:
        raise ValueError(f"a number of cells from 0 to {MOST_CELLS}, not {cells}")
    if not (0 < epsilon < math.inf and 0 < sensitivity < math.inf):
        raise ValueError(f"epsilon and sensitivity are positive numbers, not {epsilon} and {sensitivity}")
    if epsilon / sensitivity < LEAST_RATIO:
        raise ValueError(f"epsilon / sensitivity is at least {LEAST_RATIO}, not {epsilon / sensitivity}")
    return epsilon / sensitivity
