"""Certified privacy guarantees of the integers drawn, and what fixed zeros and repeated noise disclose."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from discreet.maths.noise.additive import AdditiveLaw, Law, LawKind
from discreet.maths.noise.exponential import UtilityLaw
from discreet.maths.noise.hellinger import HELLINGER_BITS, HellingerLaw, PTableLaw
from discreet.maths.noise.law import Pmf
from discreet.maths.noise.thresholds import (
    RowLaw,
    ThresholdTable,
    delta_between,
    epsilon_between,
    row_table,
    threshold_table,
)

GAUSSIAN_DELTA = Fraction(1, 10**10)
LARGEST_EPSILON = 500  # a ratio beyond e^500 counts as unbounded
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


def certificate(law: AdditiveLaw | RowLaw | PTableLaw, delta: Fraction = GAUSSIAN_DELTA) -> Certificate:
    """Certify a law: at its own epsilon where it has one, at the given delta for Gaussian noise."""
    if isinstance(law, PTableLaw):
        return Certificate(None, Fraction(law.delta(LARGEST_EPSILON)), certified=False)
    if isinstance(law, RowLaw):
        return _of_rows(law)
    return certificate_of(threshold_table(law), law, delta)


def certificate_of(table: ThresholdTable, law: AdditiveLaw, delta: Fraction = GAUSSIAN_DELTA) -> Certificate:
    """Certify the table of an additive law.

    With an epsilon: the delta that it has there (p(m) where truncated, some units of 2^-128 where not), and the
    smallest epsilon that has this delta too; the paper's normal law has a smaller one than requested.
    """
    distance = table.total_variation()
    if law.kind is LawKind.DISCRETE_GAUSSIAN:
        return Certificate(table.certified_epsilon(delta), delta, law.rho_parameter, distance)
    if law.epsilon_parameter is None:
        return Certificate(None, table.certified_delta(LARGEST_EPSILON), None, distance)
    at = table.certified_delta(law.epsilon_parameter)
    return Certificate(table.certified_epsilon(at), at, None, distance)


def _of_rows(law: RowLaw) -> Certificate:
    """Certify all neighbours of a utility; of Hellinger-type noise those that are the worst, as the law shows."""
    pairs = law.table.last + 1 if isinstance(law, UtilityLaw) else len(law.neighbours)
    if isinstance(law, HellingerLaw) and law.last_target(pairs, HELLINGER_BITS) > LARGEST_CERTIFIED_ROW:
        return Certificate(float(law.epsilon_parameter), Fraction(0), certified=False)
    tables = [row_table(law, count) for count in range(pairs + 1)]
    neighbours = list(pairwise(tables))
    delta = max(delta_between(p, q, law.epsilon_parameter) for p, q in neighbours)
    epsilon = max(epsilon_between(p, q, max(delta, Fraction(1, 2**100))) for p, q in neighbours)
    return Certificate(epsilon, delta, None, max(table.total_variation() for table in tables))


def utility_delta(law: UtilityLaw) -> Fraction:
    """The certified delta at its epsilon over all neighbouring counts of a utility table, for a change of one."""
    tables = (row_table(law, count) for count in range(law.table.last + 2))
    return max(delta_between(p, q, law.epsilon_parameter) for p, q in pairwise(tables))


def fixed_zeros_delta(law: Law) -> float:
    """1 - p(1 -> 0): the least delta of every epsilon where zeros stay zero; 0 where they do not.

    A positive published count rules the empty cell out, and a single person is published so with this probability.
    """
    return 1 - law.row(1).at(0) if law.row(0).at(0) == 1 else 0.0


def agreement(law: Law, count: int) -> float:
    """Pr[cells with i and i + 1 persons, of independent noise, are published equal] = sum_j p_i(j) p_{i+1}(j).

    For additive noise this is sum_v p(v) p(v + 1).
    """
    return _inner(law.row(count), law.row(count + 1))


def same_participants_delta(law: Law, count: int) -> float:
    """1 - sum_j p_i(j) p_{i+1}(j): the least delta of every epsilon with the same noise for the same participants.

    Take two cells that contain the same i persons, and Bob, who would be in one of them. Without Bob the participants
    are the same, so that the published counts are always equal. With Bob they differ with this probability, and a
    difference proves that he is there.
    """
    return 1 - agreement(law, count)


def _inner(first: Pmf, second: Pmf) -> float:
    low, high = max(first.first, second.first), min(first.last, second.last)
    if low > high:
        return 0.0
    one = first.p[low - first.first : high + 1 - first.first]
    return float(one @ second.p[low - second.first : high + 1 - second.first])
