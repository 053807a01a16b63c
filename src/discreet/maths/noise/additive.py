"""The additive noise laws, integers v added to every count, and their exact delta(epsilon).

Laws that depend on the count are in ``hellinger``, the tables that draw all of them in ``thresholds``. Neighbours are
counts i and i + 1 (one record added or removed, disjoint cells).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from itertools import count as count_up
from itertools import pairwise
from typing import Protocol

import numpy as np

from discreet.errors import mistake
from discreet.maths.exact_numbers import fraction, is_amount
from discreet.maths.noise.law import Exponents, Floats, Listed, Pmf, Symmetric, checked_support
from discreet.maths.privacy.divergence import PrivacyLoss, largest_delta, smallest_epsilon

Number = int | float | Fraction | str


class Law(Protocol):
    """A law of the published count for each true count."""

    def row(self, count: int) -> Pmf:
        """The law of the published count j for a true count i."""
        ...

    @property
    def settled(self) -> int:
        """The smallest count such that all larger ones have the same noise; UNSETTLED where none exists."""
        ...

    @property
    def parameter(self) -> Fraction | None:
        """The epsilon or rho that the law was made of; None where it has none."""
        ...

    def delta(self, epsilon: float) -> float:
        """The smallest delta at this epsilon: max over neighbours i, i + 1 and both directions."""
        ...

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon at this delta, rounded up; inf where none exists."""
        ...

    @property
    def rho(self) -> float | None:
        """The zCDP parameter, where there is one."""
        ...


class LawKind(StrEnum):
    """The named laws, spelled as in programme files and commands."""

    LAPLACE = "laplace"
    NORMAL = "normal"
    GEOMETRIC = "geometric"
    DISCRETE_GAUSSIAN = "discrete-gaussian"
    HELLINGER = "hellinger"
    UNIFORM = "uniform"
    CELL_KEY = "cell-key"
    EXPONENTIAL = "exponential"


class SquareSensitivity(StrEnum):
    """By how much v^2 changes between neighbours: 2m - 1 on the common support, or 2m + 1 as Rinott et al. print."""

    EXACT = "exact"
    PAPER = "paper"


@dataclass(frozen=True)
class AdditiveLaw:
    """Noise v that is added to a count: p(v) = exp(-h(v)) / sum exp(-h).

    ``epsilon_parameter`` and ``rho_parameter`` are the requested parameters; ``bound`` is the truncation.
    """

    kind: LawKind
    exponents: Exponents
    epsilon_parameter: Fraction | None = None
    rho_parameter: Fraction | None = None
    bound: int | None = None

    @cached_property
    def pmf(self) -> Pmf:
        """The law of the change v."""
        return self.exponents.pmf()

    def row(self, count: int) -> Pmf:
        """The law of the published count, negative ones included."""
        return self.pmf.shifted(count)

    @property
    def settled(self) -> int:
        """All counts have the same noise."""
        return 0

    @property
    def parameter(self) -> Fraction | None:
        """Its epsilon, or its rho."""
        return self.epsilon_parameter if self.rho_parameter is None else self.rho_parameter

    def delta(self, epsilon: float) -> float:
        """max over both directions of sum (p(v) - e^epsilon p(v -+ 1))_+; a truncated law has p(m) at its epsilon."""
        return largest_delta(self._losses, epsilon)

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon at this delta; inf below the reported tail of Gaussian noise, whose ratios grow."""
        if self.rho_parameter is not None and delta <= self.pmf.omitted:
            return math.inf
        return smallest_epsilon(self._losses, delta)

    @property
    def rho(self) -> float | None:
        """zCDP: rho of the discrete Gaussian (Canonne, Kamath & Steinke 2020), epsilon^2/2 of the geometric law."""
        if self.rho_parameter is not None:
            return float(self.rho_parameter)
        if self.kind is LawKind.GEOMETRIC and self.epsilon_parameter is not None:
            return float(self.epsilon_parameter**2 / 2)
        return None

    @cached_property
    def _losses(self) -> tuple[PrivacyLoss, ...]:
        first, p = self.pmf.first, self.pmf.p
        return tuple(PrivacyLoss(p, self.exponents.log_ratio(first, len(p), shift)) for shift in (1, -1))


def discrete_laplace(epsilon: Number) -> AdditiveLaw:
    """Two-sided geometric law: p(v) = (1-a)/(1+a) a^abs(v), a = e^-epsilon; pure epsilon-DP at sensitivity 1."""
    eps = positive("epsilon", epsilon)
    return AdditiveLaw(LawKind.GEOMETRIC, Symmetric(eps, Fraction(0), None), epsilon_parameter=eps)


def truncated_laplace(epsilon: Number, m: int) -> AdditiveLaw:
    """Rinott et al. 2018, (5.2): p(v) = a^abs(v) / C_m for abs(v) <= m; (epsilon, p(m))-DP."""
    eps, m = positive("epsilon", epsilon), _bound(m)
    return AdditiveLaw(LawKind.LAPLACE, Symmetric(eps, Fraction(0), m), epsilon_parameter=eps, bound=m)


def truncated_normal(
    epsilon: Number, m: int, sensitivity: SquareSensitivity = SquareSensitivity.EXACT
) -> AdditiveLaw:
    """Rinott et al. 2018, (5.3): p(v) = exp(-epsilon v^2 / Delta) / D_m for abs(v) <= m; (epsilon, p(m))-DP."""
    eps, m = positive("epsilon", epsilon), _bound(m)
    scale = 2 * m - 1 if sensitivity is SquareSensitivity.EXACT else 2 * m + 1
    return AdditiveLaw(LawKind.NORMAL, Symmetric(Fraction(0), eps / scale, m), epsilon_parameter=eps, bound=m)


def discrete_gaussian(rho: Number) -> AdditiveLaw:
    """Canonne, Kamath & Steinke 2020: p(v) proportional to exp(-rho v^2); rho-zCDP at sensitivity 1."""
    value = positive("rho", rho)
    return AdditiveLaw(LawKind.DISCRETE_GAUSSIAN, Symmetric(Fraction(0), value, None), rho_parameter=value)


def discrete_gaussian_of_sigma(sigma: Number) -> AdditiveLaw:
    """The discrete Gaussian by its scale: rho = 1 / (2 sigma^2)."""
    return discrete_gaussian(1 / (2 * positive("sigma", sigma) ** 2))


def uniform(E: int) -> AdditiveLaw:
    """p(v) = 1/(2E+1) for abs(v) <= E: the worst case in attacks, no protection to rely on."""
    return AdditiveLaw(LawKind.UNIFORM, Symmetric(Fraction(0), Fraction(0), _bound(E)), bound=E)


def exponential_mechanism(epsilon: Number, utilities: Sequence[Number], first: int) -> AdditiveLaw:
    """Rinott et al. 2018, theorem 4.2: p(v) proportional to exp(epsilon g(v) / Delta), g listed from v = first on.

    Delta = max abs(g(v) - g(v + 1)) on the common support; delta is the larger of the two ends' probabilities.
    """
    eps, g = positive("epsilon", epsilon), [exact("utility", value) for value in utilities]
    if len(g) < 2:
        raise mistake("", "utilities", f"{len(g)} values", "list the utility of at least two changes")
    scale = max(abs(right - left) for left, right in pairwise(g))
    best = max(g)
    exponents = tuple(eps * (best - value) / scale if scale else Fraction(0) for value in g)
    return AdditiveLaw(LawKind.EXPONENTIAL, Listed(first, exponents), epsilon_parameter=eps)


def matched_truncation(
    epsilon: Number, delta: float, sensitivity: SquareSensitivity = SquareSensitivity.EXACT
) -> int:
    """The smallest bound m with which the truncated normal law has at most this delta at its epsilon."""
    if not 0 < delta < 1:
        raise mistake("", "delta", str(delta), "give a number between 0 and 1")
    return next(m for m in count_up(1) if truncated_normal(epsilon, m, sensitivity).pmf.at(m) <= delta)


@dataclass(frozen=True, eq=False)
class TransitionMatrix:
    """p[r, k] is the probability that counts[r] is published as first + k."""

    counts: tuple[int, ...]
    first: int
    p: Floats


def transition_matrix(law: Law, counts: Sequence[int]) -> TransitionMatrix:
    """The rows of several counts side by side."""
    rows = [law.row(count) for count in counts]
    first, last = min(row.first for row in rows), max(row.last for row in rows)
    p = np.zeros((len(rows), last - first + 1))
    for at, row in enumerate(rows):
        p[at, row.first - first : row.last + 1 - first] = row.p
    return TransitionMatrix(tuple(counts), first, p)


def exact(name: str, value: Number) -> Fraction:
    """Read a parameter exactly; a float means the decimal number that it is written as, so 0.1 is one tenth."""
    try:
        return Fraction(value) if isinstance(value, Fraction) else fraction(str(value))
    except ValueError:
        raise mistake("", name, str(value)[:60], "give a number from 1e-100 to 1e15") from None


def positive(name: str, value: Number) -> Fraction:
    """Read a parameter that must be above zero."""
    number = exact(name, value)
    if number <= 0:
        raise mistake("", name, str(value), "give a number above zero")
    if not is_amount(number):
        raise mistake("", name, str(value)[:60], "give a number from 1e-15 to 1e6")
    return number


def _bound(m: int) -> int:
    if m < 1:
        raise mistake("", "bound", str(m), "give a whole number of at least 1")
    checked_support(2 * m + 1)
    return m
