from fractions import Fraction

import pytest

from discreet.maths.noise.additive import (
    SquareSensitivity,
    discrete_gaussian,
    discrete_laplace,
    truncated_laplace,
    truncated_normal,
    uniform,
)
from discreet.maths.noise.certificates import certificate
from discreet.maths.noise.hellinger import PTableLaw, hellinger
from discreet.maths.noise.ptable_solver import PTableParameters, solve


def test_a_truncated_law_has_its_epsilon_and_p_m() -> None:
    found = certificate(truncated_laplace(1.5, 7))
    assert found.epsilon == 1.5
    assert float(found.delta) == pytest.approx(1.749e-5, rel=1e-3)
    assert found.certified


def test_the_printed_normal_law_is_better_than_printed() -> None:
    assert certificate(truncated_normal(0.5, 10)).epsilon == pytest.approx(0.5)
    assert certificate(truncated_normal(0.5, 10, SquareSensitivity.PAPER)).epsilon == pytest.approx(
        0.5 * 19 / 21
    )


def test_a_pure_law_has_a_delta_of_some_units() -> None:
    found = certificate(discrete_laplace("0.1"))
    assert found.epsilon == 0.1
    assert 0 < found.delta < Fraction(1, 2**110)
    assert found.distance < Fraction(1, 2**110)


def test_gaussian_noise_is_certified_at_the_delta_that_is_asked_for() -> None:
    law = discrete_gaussian("0.1")
    at, elsewhere = certificate(law), certificate(law, Fraction(1, 10**5))
    assert at.delta == Fraction(1, 10**10)
    assert at.rho == Fraction(1, 10)
    assert at.epsilon is not None
    assert elsewhere.epsilon is not None
    assert at.epsilon > elsewhere.epsilon
    assert at.epsilon == pytest.approx(law.epsilon(1e-10), rel=1e-6)


def test_laws_that_no_epsilon_describes() -> None:
    flat = certificate(uniform(5))
    assert flat.epsilon is None
    assert float(flat.delta) == pytest.approx(1 / 11)
    cell_key = certificate(PTableLaw(solve(PTableParameters(5, 2.0, 0))))
    assert cell_key.epsilon is None
    assert not cell_key.certified
    assert cell_key.delta > Fraction(1, 2)


def test_hellinger_noise_is_certified_where_its_rows_can_be_written_out() -> None:
    found = certificate(hellinger(6))
    assert found.certified
    assert found.epsilon is not None
    assert 3 < found.epsilon < 6
    assert found.delta < Fraction(1, 2**110)
    wide = certificate(hellinger("0.2"))
    assert not wide.certified
    assert wide.epsilon == 0.2
