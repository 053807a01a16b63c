"""The exact delta and epsilon between laws, compared with sums over all values."""

import math
from functools import partial
from operator import le

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.maths.noise.law import Pmf
from discreet.maths.privacy.divergence import (
    bisect_down,
    both_ways,
    largest_delta,
    loss_between,
    smallest_epsilon,
)

EPSILONS = (0.0, 0.3, 1.0, 2.5)


@st.composite
def laws(draw: st.DrawFn) -> Pmf:
    weights = np.array(draw(st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any)), dtype=float)
    return Pmf(draw(st.integers(-6, 6)), weights / weights.sum())


def delta(p: Pmf, q: Pmf, epsilon: float) -> float:
    """Sum (P - e^epsilon Q)_+ over every value of P."""
    other = dict(zip(range(q.first, q.last + 1), q.p.tolist(), strict=True))
    values = zip(range(p.first, p.last + 1), p.p.tolist(), strict=True)
    return math.fsum(max(chance - math.exp(epsilon) * other.get(value, 0.0), 0.0) for value, chance in values)


@given(laws(), laws())
def test_delta_is_the_sum_over_all_values(p: Pmf, q: Pmf) -> None:
    losses = both_ways([(p, q)])
    for epsilon in EPSILONS:
        assert loss_between(p, q).delta(epsilon) == pytest.approx(delta(p, q, epsilon), abs=1e-12)
        worst = max(delta(p, q, epsilon), delta(q, p, epsilon))
        assert largest_delta(losses, epsilon) == pytest.approx(worst, abs=1e-12)
        found = smallest_epsilon(losses, worst + 1e-9)
        assert found <= epsilon
        assert largest_delta(losses, found) <= worst + 1e-9
    some = {
        value: chance
        for value, chance in zip(range(q.first, q.last + 1), q.p.tolist(), strict=True)
        if chance
    }
    both = [
        math.log(chance / some[value])
        for value, chance in zip(range(p.first, p.last + 1), p.p.tolist(), strict=True)
        if chance and value in some
    ]
    assert loss_between(p, q).largest == pytest.approx(max([0.0, *both]))


def test_no_epsilon_is_enough_where_one_law_has_values_that_the_other_never_takes() -> None:
    p, q = Pmf(0, np.array([0.5, 0.5])), Pmf(5, np.array([1.0]))
    assert smallest_epsilon(both_ways([(p, q)]), 0.5) == math.inf
    assert smallest_epsilon(both_ways([(p, p)]), 0.0) == 0.0
    assert smallest_epsilon(both_ways([(p, p)]), 1.0) == 0.0


def test_bisection_ends_at_the_next_number_above() -> None:
    for limit in (1e-300, 0.1, 1 / 3, 2.0, 4.9):
        found = bisect_down(partial(le, limit), 5.0)
        assert limit <= found <= max(limit * (1 + 1e-15), 1e-59)
