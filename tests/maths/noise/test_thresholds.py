import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import Mistakes
from discreet.maths.noise.additive import (
    AdditiveLaw,
    discrete_gaussian,
    discrete_gaussian_of_sigma,
    discrete_laplace,
    exact,
    exponential_mechanism,
    truncated_laplace,
    truncated_normal,
    uniform,
)
from discreet.maths.noise.hellinger import hellinger
from discreet.maths.noise.law import LARGEST_SUPPORT, Symmetric
from discreet.maths.noise.thresholds import (
    UNIT,
    delta_between,
    epsilon_between,
    row_table,
    table_of_shares,
    table_of_thresholds,
    threshold_table,
)

LAWS = [
    discrete_laplace(1.5),
    truncated_laplace(1.5, 7),
    truncated_normal(0.5, 10),
    discrete_gaussian_of_sigma(3),
    uniform(5),
    exponential_mechanism(1, [-5, -1, 0, -2], -2),
]


def by_decimals(law: AdditiveLaw, first: int, last: int) -> list[int]:
    """floor(F(v) 2^128) by another arithmetic, with 90 digits and sums that run far beyond the table."""
    shape, reach = law.exponents, law.bound or 360
    assert isinstance(shape, Symmetric)
    with localcontext(prec=90):
        exponents = {v: shape.linear * abs(v) + shape.quadratic * v * v for v in range(-reach, reach + 1)}
        weights = {v: (-Decimal(h.numerator) / h.denominator).exp() for v, h in exponents.items()}
        total, running = sum(weights.values()), Decimal(0)
        found = []
        for v in range(-reach, last):
            running += weights[v]
            if v >= first:
                found.append(int(running / total * UNIT))
        return found


@pytest.mark.parametrize(
    "law",
    [
        discrete_laplace(1.5),
        truncated_laplace(0.3, 9),
        truncated_normal(0.5, 10),
        discrete_gaussian_of_sigma(3),
    ],
)
def test_thresholds_are_the_proven_floors(law: AdditiveLaw) -> None:
    table = threshold_table(law)
    found = [(int(h) << 64) | int(low) for h, low in zip(table.hi, table.lo, strict=True)]
    assert found == by_decimals(law, table.first, table.last)


@pytest.mark.parametrize("law", LAWS)
def test_the_integers_are_the_law_within_the_stated_distance(law: AdditiveLaw) -> None:
    table = threshold_table(law)
    assert sum(table.numbers) == UNIT
    assert table.total_variation() < Fraction(1, 2**119)
    for v in range(table.first, table.last + 1):
        assert table.pmf().at(v) == pytest.approx(law.pmf.at(v), rel=1e-12, abs=1e-35)
    if law.bound is None and law.epsilon_parameter != 1:
        assert law.pmf.tail(table.last + 1) < 2.0**-128
        assert law.pmf.tail(table.last - 2) > 2.0**-133


@given(st.floats(0.05, 5.0))
@settings(max_examples=30)
def test_certified_epsilon_of_the_geometric_law_is_the_nominal_one(epsilon: float) -> None:
    table = threshold_table(discrete_laplace(epsilon))
    assert table.certified_epsilon() == epsilon
    assert table.certified_delta(epsilon) < Fraction(1, 2**110)
    assert table.certified_epsilon(0) == math.inf
    # at half the epsilon it is what the law has
    assert float(table.certified_delta(epsilon / 2)) == pytest.approx(
        discrete_laplace(epsilon).delta(epsilon / 2)
    )


@given(st.floats(0.05, 5.0), st.integers(1, 30))
@settings(max_examples=30)
def test_certified_delta_of_a_truncated_law_is_p_m(epsilon: float, m: int) -> None:
    law = truncated_laplace(epsilon, m)
    table = threshold_table(law)
    certified = table.certified_delta(law.epsilon_parameter or 0)
    assert float(certified) == pytest.approx(law.pmf.at(m), rel=1e-9)
    assert certified >= Fraction(max(table.numbers[0], table.numbers[-1]), UNIT)
    assert table.certified_epsilon(certified) <= math.nextafter(epsilon, math.inf)


@given(st.floats(0.01, 2.0), st.floats(1e-15, 0.01))
@settings(max_examples=30)
def test_certificates_of_the_gaussian_bound_each_other(rho: float, delta: float) -> None:
    table = threshold_table(discrete_gaussian(rho))
    epsilon = table.certified_epsilon(delta)
    assert table.certified_delta(epsilon) <= exact("delta", delta)
    assert epsilon == pytest.approx(discrete_gaussian(rho).epsilon(delta), rel=1e-7, abs=1e-12)
    if epsilon > 0:
        assert table.certified_delta(epsilon * (1 - 1e-9)) > exact("delta", delta)


def test_a_certificate_is_never_below_the_truth() -> None:
    """The exact delta by Fractions, with e^epsilon known exactly at epsilon = 0, and from above elsewhere."""
    table = threshold_table(truncated_laplace(1, 3))
    shifted = zip((*table.numbers, 0), (0, *table.numbers), strict=True)
    exact = Fraction(sum(max(n - m, 0) for n, m in shifted), UNIT)
    assert table.certified_delta(0) == exact
    from_above = Fraction(2718281828459045235360287471352662498, 10**36)
    shifted = zip((*table.numbers, 0), (0, *table.numbers), strict=True)
    low = sum((max(n - from_above * m, Fraction(0)) for n, m in shifted), Fraction(0)) / UNIT
    assert low <= table.certified_delta(1) <= low + Fraction(1, 2**100)


def test_a_larger_shift_costs_more() -> None:
    table = threshold_table(discrete_laplace(1))
    assert table.certified_epsilon(shift=2) == 2
    assert table.certified_delta(1, shift=2) > table.certified_delta(1)


def test_neighbouring_rows_of_hellinger_noise_certify_each_other() -> None:
    law = hellinger(4)
    zero, one = row_table(law, 0), row_table(law, 1)
    assert zero.pmf().at(3) == pytest.approx(law.row(0).at(3), rel=1e-12)
    assert epsilon_between(zero, one, 2.0**-100) == pytest.approx(law.epsilon(0), rel=1e-9)
    assert delta_between(zero, one, 4.0) < Fraction(1, 2**100)


def test_shares_and_equal_utilities_are_cut_exactly() -> None:
    table = table_of_shares(-1, [Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)])
    assert table.numbers == (UNIT // 4, UNIT // 2, UNIT // 4)
    assert not (table.guide & 1).any()
    flat = threshold_table(exponential_mechanism(1, [3, 3, 3, 3], 0))
    assert flat.numbers == (UNIT // 4,) * 4
    # half of the mass lies left of the middle exactly, which no ball can tell from next below
    even = threshold_table(exponential_mechanism(1, [0, -1, -1, 0], 0))
    assert sum(even.numbers[:2]) == UNIT // 2


def test_a_table_of_too_many_thresholds_is_refused() -> None:
    with pytest.raises(Mistakes, match=f"{LARGEST_SUPPORT + 1} possible values"):
        table_of_thresholds(0, range(LARGEST_SUPPORT), cut_tails=0)
