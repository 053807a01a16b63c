"""Zeros of functions: what SciPy finds, step by step."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from discreet.maths.roots import zero_between

COEFFICIENTS = st.lists(st.floats(-10, 10), min_size=1, max_size=5)


def polynomial(coefficients: list[float]) -> Callable[[float], float]:
    def value(x: float) -> float:
        found = 0.0
        for coefficient in coefficients:
            found = found * x + coefficient
        return found

    return value


@given(COEFFICIENTS, st.floats(-5, 5), st.floats(-5, 5))
def test_a_zero_is_that_of_scipy(coefficients: list[float], low: float, high: float) -> None:
    function = polynomial(coefficients)
    if function(low) * function(high) < 0:
        found = zero_between(function, low, high, 1e-12)
        assert found == pytest.approx(optimize.brentq(function, low, high, xtol=1e-12), abs=1e-11)


def test_the_steps_are_those_of_scipy() -> None:
    """The same points are tried in the same order."""
    tried: list[float] = []

    def function(x: float) -> float:
        tried.append(x)
        return math.tanh(x) - 0.3 * x**3 + 0.1

    optimize.brentq(function, 0.5, 9.0, xtol=1e-12)
    wanted, tried[:] = list(tried), []
    zero_between(function, 0.5, 9.0, 1e-12)
    assert len(wanted) > 8
    assert tried == pytest.approx(wanted, rel=1e-12)


def test_an_end_may_be_the_zero() -> None:
    assert zero_between(lambda x: x, 0.0, 1.0, 1e-12) == 0.0
    assert zero_between(lambda x: x - 1, 0.0, 1.0, 1e-12) == 1.0


def test_equal_signs_are_an_error() -> None:
    with pytest.raises(ValueError, match="same sign"):
        zero_between(lambda x: x * x + 1, -1.0, 1.0, 1e-12)
