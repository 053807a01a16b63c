"""Amounts as people read them: exact decimals, or rounded toward privacy and marked so."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.maths.privacy.accounting import EpsilonDelta, PureEpsilon, Rho
from discreet.maths.privacy.amounts import amounts, decimal_text, exact_text, readable, without_rounding


@pytest.mark.parametrize(
    ("amount", "up", "down"),
    [
        (Fraction(3), "3", "3"),
        (Fraction(0), "0", "0"),
        (Fraction(100), "100", "100"),
        (Fraction(5, 2), "2.5", "2.5"),
        (Fraction(1, 10**6), "1e-6", "1e-6"),
        (Fraction(15, 10**31), "1.5e-30", "1.5e-30"),
        (Fraction(1, 3), "0.333334 (rounded up)", "0.333333 (rounded down)"),
        (Fraction(2, 3 * 10**9), "6.66667e-10 (rounded up)", "6.66666e-10 (rounded down)"),
        (Fraction(10**9, 3), "333334000 (rounded up)", "333333000 (rounded down)"),
    ],
)
def test_decimals(amount: Fraction, up: str, down: str) -> None:
    assert decimal_text(amount) == up
    assert decimal_text(amount, down=True) == down


@given(st.fractions(min_value=0, max_value=1000))
def test_no_decimal_understates_and_exact_ones_are_exact(amount: Fraction) -> None:
    up, down = decimal_text(amount), decimal_text(amount, down=True)
    assert Fraction(down.partition(" ")[0]) <= amount <= Fraction(up.partition(" ")[0])
    assert (" " in up) == (Fraction(up.partition(" ")[0]) != amount)
    assert Fraction(exact_text(amount)) == amount


def test_losses() -> None:
    both = EpsilonDelta(Fraction(2), Fraction(1, 10**6))
    assert readable(both) == "epsilon 2 and delta 1e-6"
    assert readable(Rho(Fraction(1, 2))) == "rho 0.5"
    drawn = EpsilonDelta(Fraction(2), Fraction(1, 10**30))
    assert readable(drawn) == "epsilon 2 and by rounding in the sampler delta 1e-30"
    assert without_rounding(drawn) == PureEpsilon(Fraction(2))
    assert without_rounding(both) == both
    assert amounts(EpsilonDelta(Fraction(1, 3), Fraction(0))) == {"epsilon": "1/3", "delta": "0"}
