"""What a law guarantees, certified by the integers that are drawn; it owns the choice of the pair (epsilon, delta).

Neighbours differ by one record, so one count by one; more cells, other neighbours and budgets are accounting's.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from discreet.maths.laws import AdditiveLaw, LawKind
from discreet.maths.row_laws import HELLINGER_BITS, HellingerLaw, PTableLaw
from discreet.maths.thresholds import (
    ThresholdTable,
    delta_between,
    epsilon_between,
    row_table,
    threshold_table,
)

GAUSSIAN_DELTA = Fraction(1, 10**10)
LARGEST_EPSILON = 500  # where a ratio beyond e^500 stands for none at all
LARGEST_CERTIFIED_ROW = 2**18


@dataclass(frozen=True)
class Certificate:
    """The law that is drawn is (epsilon, delta)-private at sensitivity 1; no epsilon where only delta protects.

    ``distance`` bounds the total variation between what is drawn and the law as it is written. ``certified`` is False
    where the numbers come from the law's formula because its table of integers would be too large to check.
    """

    epsilon: float | None
    delta: Fraction
    rho: Fraction | None = None
    distance: Fraction = Fraction(0)
    certified: bool = True


def certificate(law: AdditiveLaw | HellingerLaw | PTableLaw, delta: Fraction = GAUSSIAN_DELTA) -> Certificate:
    """Certify a law: at its own epsilon where it has one, at the given delta for Gaussian noise."""
    if isinstance(law, PTableLaw):
        return Certificate(None, Fraction(law.delta(LARGEST_EPSILON)), certified=False)
    if isinstance(law, HellingerLaw):
        return _of_rows(law)
    return certificate_of(threshold_table(law), law, delta)


def certificate_of(table: ThresholdTable, law: AdditiveLaw, delta: Fraction = GAUSSIAN_DELTA) -> Certificate:
    """Certify the table of an additive law.

    With an epsilon: the delta that it has there (p(m) where truncated, some units of 2^-128 where not), and the
    smallest epsilon that has this delta too; the paper's normal law has a smaller one than it was asked for.
    """
    distance = table.total_variation()
    if law.kind is LawKind.DISCRETE_GAUSSIAN:
        return Certificate(table.certified_epsilon(delta), delta, law.rho_parameter, distance)
    if law.epsilon_parameter is None:
        return Certificate(None, table.certified_delta(LARGEST_EPSILON), None, distance)
    at = table.certified_delta(law.epsilon_parameter)
    return Certificate(table.certified_epsilon(at), at, None, distance)


def _of_rows(law: HellingerLaw) -> Certificate:
    """Certify the neighbours that are the worst; those beyond have less, as the law itself shows."""
    pairs = len(law.neighbours)
    if law.last_target(pairs, HELLINGER_BITS) > LARGEST_CERTIFIED_ROW:
        return Certificate(float(law.epsilon_parameter), Fraction(0), certified=False)
    tables = [row_table(law, count) for count in range(pairs + 1)]
    neighbours = list(pairwise(tables))
    delta = max(delta_between(p, q, law.epsilon_parameter) for p, q in neighbours)
    epsilon = max(epsilon_between(p, q, max(delta, Fraction(1, 2**100))) for p, q in neighbours)
    return Certificate(epsilon, delta, None, max(table.total_variation() for table in tables))
