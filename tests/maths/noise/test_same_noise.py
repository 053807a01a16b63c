import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.maths.noise.additive import Law, discrete_gaussian, discrete_laplace, uniform
from discreet.maths.noise.certificates import agreement, fixed_zeros_delta, same_participants_delta
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.ptable_solver import PTableParameters, solve

LAW = PTableLaw(solve(PTableParameters(5, 2.0)))


def test_uniform_noise_agrees_where_the_shifted_supports_do() -> None:
    assert agreement(uniform(5), 3) == pytest.approx(10 / 11**2)
    assert same_participants_delta(uniform(5), 3) == pytest.approx(1 - 10 / 11**2)


@pytest.mark.parametrize("law", [discrete_gaussian("0.1"), discrete_laplace("0.5"), LAW])
def test_bob_is_found_out_at_the_predicted_rate(law: Law) -> None:
    """Two cells of 20 persons; Bob joins one of them: their published counts differ only by chance of the noise."""
    dice, n = np.random.default_rng(7), 200_000
    drawn = [dice.choice(law.row(i).values, size=n, p=law.row(i).p / law.row(i).p.sum()) for i in (20, 21)]
    share = float((drawn[0] != drawn[1]).mean())
    predicted = same_participants_delta(law, 20)
    assert share == pytest.approx(predicted, abs=5 * (predicted * (1 - predicted) / n) ** 0.5)
    values = np.arange(-40, 80)
    shifted = sum(law.row(20).at(int(v)) * law.row(21).at(int(v)) for v in values)
    assert predicted == pytest.approx(1 - shifted)


@given(st.floats(0, 20))
def test_no_epsilon_undercuts_fixed_zeros(epsilon: float) -> None:
    least = 1 - LAW.row(1).at(0)
    assert fixed_zeros_delta(LAW) == least
    assert LAW.delta(epsilon) >= least * (1 - 1e-12)


def test_laws_that_perturb_zeros_have_no_such_limit() -> None:
    assert fixed_zeros_delta(discrete_laplace("1")) == 0
    assert discrete_laplace("1").delta(1.0) == pytest.approx(0, abs=1e-15)
    assert same_participants_delta(discrete_laplace("1"), 5) > 0.5
