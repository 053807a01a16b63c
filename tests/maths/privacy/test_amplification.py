"""Amplification by sampling against the exact laws of sampled mechanisms, enumerated."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import Mistakes
from discreet.maths.privacy.accounting import EpsilonDelta
from discreet.maths.privacy.amplification import amplified

RANGE = 60  # noise of a count, far beyond which nothing is left of the law


def noisy(count: int, epsilon: float) -> list[float]:
    """The law of a count with two-sided geometric noise."""
    a = math.exp(-epsilon)
    return [(1 - a) / (1 + a) * a ** abs(x - count) for x in range(-RANGE, RANGE + 1)]


def poisson(records: int, rate: float, epsilon: float) -> list[float]:
    """The law of the noisy number of sampled records."""
    found = [0.0] * (2 * RANGE + 1)
    for drawn in product((0, 1), repeat=records):
        chance = math.prod(rate if one else 1 - rate for one in drawn)
        found = [p + chance * q for p, q in zip(found, noisy(sum(drawn), epsilon), strict=True)]
    return found


def fixed(flags: tuple[int, ...], size: int, epsilon: float) -> list[float]:
    """The law of the noisy number of flagged records in a sample of fixed size."""
    samples = list(combinations(flags, size))
    found = [0.0] * (2 * RANGE + 1)
    for sample in samples:
        found = [p + q / len(samples) for p, q in zip(found, noisy(sum(sample), epsilon), strict=True)]
    return found


def loss(p: list[float], q: list[float]) -> float:
    inner = slice(RANGE - 30, RANGE + 31)  # where both are far above rounding
    return max(abs(math.log(a / b)) for a, b in zip(p[inner], q[inner], strict=True))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_no_neighbours_of_a_poisson_sample_differ_by_more_and_the_bound_is_reached(
    rate: float, epsilon: float
) -> None:
    bound = float(amplified(EpsilonDelta(Fraction(str(epsilon)), Fraction(0)), Fraction(str(rate))).epsilon)
    found = [loss(poisson(n, rate, epsilon), poisson(n + 1, rate, epsilon)) for n in range(4)]
    assert max(found) <= bound + 1e-9
    assert max(found) >= bound - 1e-9, "one record more than none: the bound of the theorem is tight"
    assert bound < epsilon


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
@pytest.mark.parametrize(("records", "size"), [(4, 1), (5, 2), (6, 3)])
def test_no_neighbours_of_a_sample_without_replacement_differ_by_more(
    records: int, size: int, epsilon: float
) -> None:
    """One count changes by one where a record is substituted: its noise is that of epsilon for substitution."""
    bound = float(
        amplified(EpsilonDelta(Fraction(str(epsilon)), Fraction(0)), Fraction(size, records)).epsilon
    )
    found = []
    for flags in product((0, 1), repeat=records):
        other = (1 - flags[0], *flags[1:])
        found.append(loss(fixed(flags, size, epsilon), fixed(other, size, epsilon)))
    assert max(found) <= bound + 1e-9
    assert max(found) > bound / 2


def test_a_sample_of_households_does_not_protect_persons_so() -> None:
    """A household of 6 or of 7 members, sampled as a whole: the loss of one member is far above the amplified one."""
    epsilon, rate = 1.0, 0.1

    def sampled(members: int) -> list[float]:
        pairs = zip(noisy(0, epsilon), noisy(members, epsilon), strict=True)
        return [(1 - rate) * without + rate * there for without, there in pairs]

    bound = float(amplified(EpsilonDelta(Fraction(1), Fraction(0)), Fraction(1, 10)).epsilon)
    assert loss(sampled(6), sampled(7)) > 3 * bound


amounts = st.fractions(Fraction(1, 1000), Fraction(20), max_denominator=1000)
rates = st.fractions(Fraction(1, 1000), Fraction(1), max_denominator=1000)


@given(amounts, amounts, rates)
def test_it_is_rounded_up_below_epsilon_and_amplifying_each_release_by_itself_would_claim_too_much(
    one: Fraction, two: Fraction, rate: Fraction
) -> None:
    def of(epsilon: Fraction) -> Fraction:
        return amplified(EpsilonDelta(epsilon, Fraction(1, 10**9)), rate).epsilon

    exact = math.log1p(float(rate) * math.expm1(float(one)))
    assert 0 < of(one) <= one
    assert float(of(one)) == pytest.approx(exact, rel=1e-9)
    assert of(one + two) + Fraction(1, 10**8) >= of(one) + of(two), (
        "why a ledger charges what is not amplified"
    )


def test_delta_is_multiplied_and_rates_beyond_one_are_refused() -> None:
    loss = EpsilonDelta(Fraction(1), Fraction(1, 10**6))
    assert amplified(loss, Fraction(1, 10)).delta == Fraction(1, 10**7)
    assert amplified(loss, Fraction(1)) == loss
    for rate in (Fraction(0), Fraction(3, 2)):
        with pytest.raises(Mistakes, match="above 0 and up to 1"):
            amplified(loss, rate)
