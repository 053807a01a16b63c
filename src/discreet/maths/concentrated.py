"""What a loss of rho (zero-concentrated differential privacy) means as epsilon and delta; it composes nothing.

References: Bun & Steinke 2016 (BS), *Concentrated differential privacy*; Canonne, Kamath & Steinke 2020 (CKS), *The
discrete Gaussian for differential privacy*.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from discreet.errors import mistake
from discreet.maths.accounting import EpsilonDelta, Rho
from discreet.maths.bounds import exp_above, float_above, log_above, log_below, sqrt_above


def epsilon_of_rho_as_published(rho: Fraction, delta: Fraction) -> float:
    """epsilon = rho + 2 sqrt(rho log(1/delta)) (BS proposition 1.3), the form that offices have published."""
    _between(delta)
    return float_above(rho + 2 * sqrt_above(rho * log_above(1 / delta)))


def epsilon_of_rho(rho: Fraction, delta: Fraction) -> float:
    """The least epsilon over orders a > 1 for which rho-zCDP implies (epsilon, delta) (CKS corollary 13).

    epsilon(a) = a rho + (log(1/delta) + (a - 1) log(1 - 1/a) - log a)/(a - 1). It holds for every a, so that a is
    searched for in floats and the formula is then evaluated at that a with certainty.
    """
    _between(delta)
    if rho == 0:
        return 0.0
    r, need = float(rho), -_log(delta)
    a = _best_order(
        lambda x: (1 + x) * r + (need - math.log1p(x)) / x - math.log1p(1 / x), start=math.sqrt(need / r)
    )
    epsilon = a * rho + (log_above(1 / delta) - log_below(a)) / (a - 1) + log_above(1 - 1 / a)
    return float_above(max(epsilon, Fraction(0)))


def delta_of_rho(rho: Fraction, epsilon: Fraction) -> float:
    """The least delta over orders a > 1 for which rho-zCDP implies (epsilon, delta) (CKS corollary 13).

    delta(a) = exp((a - 1)(a rho - epsilon)) (1 - 1/a)^a / (a - 1).
    """
    if rho == 0:
        return 0.0
    r, e = float(rho), float(epsilon)
    a = _best_order(
        lambda x: x * ((1 + x) * r - e) - (1 + x) * math.log1p(1 / x) - math.log(x),
        start=max(e / (2 * r), 1.0),
    )
    exponent = (a - 1) * (a * rho - epsilon) + a * log_above(1 - 1 / a) - log_below(a - 1)
    return float_above(min(exp_above(exponent), Fraction(1)))


def epsilon_delta_of_rho(loss: Rho, delta: Fraction) -> EpsilonDelta:
    """State a zCDP loss as (epsilon, delta), for a statement or a budget of that kind."""
    return EpsilonDelta(Fraction(epsilon_of_rho(loss.rho, delta)), delta)


def _between(delta: Fraction) -> None:
    if not 0 < delta < 1:
        raise mistake("", "delta", str(delta), "zCDP implies an epsilon only for a delta above 0 and below 1")


def _log(x: Fraction) -> float:
    return float(log_below(x))


def _best_order(objective: Callable[[float], float], start: float) -> Fraction:
    """The order a = 1 + x whose objective, which falls and then rises, is least: thirds cut off on the log scale."""
    low, high = math.log(start) - 8.0, math.log(start) + 8.0
    for _ in range(80):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        if objective(math.exp(left)) <= objective(math.exp(right)):
            high = right
        else:
            low = left
    return 1 + Fraction(math.exp(low))
