import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.maths.attacks.bayes import Adversary, posterior_of
from discreet.maths.noise.additive import discrete_gaussian, discrete_laplace, truncated_laplace
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.ptable_solver import PTableParameters, solve

TOTAL = Fraction("2.56")
QUERIES = {  # Kazan & Reiter 2022, table 2: shares of the level and of its query, and the rounded rho
    "United States": (Fraction(104, 4099), Fraction(189, 241), 0.0509),
    "State": (Fraction(1440, 4099), Fraction(230, 4097), 0.0505),
    "County": (Fraction(447, 4099), Fraction(754, 4097), 0.0514),
    "Tract": (Fraction(687, 4099), Fraction(241, 2051), 0.0504),
    "Optimized Block Group": (Fraction(1256, 4099), Fraction(1288, 4099), 0.2465),
    "Block": (Fraction(165, 4099), Fraction(3945, 4097), 0.0992),
}
BLOCK = discrete_gaussian(TOTAL * QUERIES["Block"][0] * QUERIES["Block"][1])
TABLE = PTableLaw(solve(PTableParameters(5, 2.0)))


@pytest.mark.parametrize("level", QUERIES)
def test_the_budgets_of_table_2(level: str) -> None:
    share, query, printed = QUERIES[level]
    assert discrete_gaussian(TOTAL * share * query).rho == pytest.approx(printed, abs=6e-5)


@pytest.mark.parametrize(
    ("prior", "posteriors", "ratios"),
    [
        (1 / 2, (0.525, 0.574, 0.622, 0.667, 0.710), (1.05, 1.15, 1.24, 1.33, 1.42)),
        (1 / 5, (0.216, 0.252, 0.291, 0.334, 0.379), (1.08, 1.26, 1.46, 1.67, 1.90)),
        (1 / 10, (0.109, 0.130, 0.154, 0.182, 0.213), (1.09, 1.30, 1.54, 1.82, 2.13)),
        (1 / 50, (0.022, 0.027, 0.032, 0.039, 0.047), (1.10, 1.34, 1.62, 1.96, 2.37)),
        (1 / 864, None, (1.10, 1.35, 1.64, 2.00, 2.44)),
    ],
)
def test_table_4(prior: float, posteriors: tuple[float, ...] | None, ratios: tuple[float, ...]) -> None:
    one = Adversary(BLOCK, 0, prior)
    assert [one.ratio(j) for j in range(1, 6)] == pytest.approx(ratios, abs=5.1e-3)
    if posteriors is not None:
        assert [one.posterior(j) for j in range(1, 6)] == pytest.approx(posteriors, abs=5.1e-4)


def test_the_masses_of_table_4_are_those_without_the_target() -> None:
    printed = (0.161, 0.119, 0.073, 0.036, 0.015)
    one = Adversary(BLOCK)
    assert [one.without.at(j) for j in range(1, 6)] == pytest.approx(printed, abs=5.1e-4)
    assert one.with_target.at(1) == pytest.approx(0.1777, abs=5e-4)


@pytest.mark.parametrize(
    ("prior", "posterior", "risk"),
    [
        (1 / 2, 0.524, 1.05),
        (1 / 5, 0.225, 1.13),
        (1 / 10, 0.117, 1.17),
        (1 / 50, 0.024, 1.21),
        (1 / 864, 0.0014, 1.22),
    ],
)
def test_table_5(prior: float, posterior: float, risk: float) -> None:
    one = Adversary(BLOCK, 0, prior)
    assert one.mean_posterior == pytest.approx(posterior, abs=5.1e-4)
    assert one.risk == pytest.approx(risk, abs=5.1e-3)


def test_decisions() -> None:
    assert Adversary(BLOCK).correct == pytest.approx(0.5889, abs=5e-5)
    assert Adversary(discrete_gaussian("0.5"), 0, 0.2).correct == pytest.approx(0.30, abs=5e-3)
    assert Adversary(discrete_gaussian("0.6"), 0, 0.2).correct == pytest.approx(0.28, abs=5e-3)
    assert Adversary(BLOCK, 0, 0.1).correct < 1e-5


@given(st.floats(0.01, 3), st.floats(0.001, 0.99))
def test_the_risk_has_its_limits_and_its_other_form(rho: float, prior: float) -> None:
    one = Adversary(discrete_gaussian(rho), 2, prior)
    assert 1 - 1e-9 <= one.risk <= min(1 / prior, math.exp(2 * rho)) * (1 + 1e-9)
    mixed = [
        prior * p + (1 - prior) * one.without.at(int(j))
        for j, p in zip(one.with_target.values, one.with_target.p, strict=True)
    ]
    chi2 = float(np.sum((one.with_target.p - mixed) ** 2 / mixed))
    beyond = prior + (1 - prior) * one.without.at(one.without.first)  # values of P0 only
    assert one.risk == pytest.approx(1 + chi2, rel=1e-6, abs=beyond * 1e-6)


@given(st.floats(0.05, 3), st.floats(0.01, 0.99), st.integers(-10, 10))
def test_geometric_noise_moves_the_odds_by_epsilon(epsilon: float, prior: float, published: int) -> None:
    after = Adversary(discrete_laplace(epsilon), 0, prior).posterior(published)
    odds = math.log(prior / (1 - prior)) + (epsilon if published >= 1 else -epsilon)
    assert after == pytest.approx(1 / (1 + math.exp(-odds)))


def test_a_positive_count_of_a_table_is_proof() -> None:
    one = Adversary(TABLE, 0, 0.01)
    assert one.posterior(3) == 1
    assert one.posterior(0) < 0.01
    assert one.correct == pytest.approx(1 - TABLE.row(1).at(0))
    assert one.mistaken == 0
    assert Adversary(TABLE, 3, 0.5).risk < one.risk


@given(st.integers(0, 9), st.floats(0.01, 0.99))
def test_the_expected_posterior_is_the_prior(known: int, prior: float) -> None:
    """Averaged over both truths, beliefs do not move."""
    one = Adversary(TABLE, known, prior)
    without = sum(p * one.posterior(int(j)) for j, p in zip(one.without.values, one.without.p, strict=True))
    assert prior * one.mean_posterior + (1 - prior) * without == pytest.approx(prior)


def test_counts_that_cannot_be() -> None:
    assert Adversary(truncated_laplace(1, 3)).posterior(-3) == 0
    assert Adversary(truncated_laplace(1, 3)).posterior(4) == 1
    assert Adversary(BLOCK).posterior(10**4) == pytest.approx(1)
    assert Adversary(BLOCK).posterior(-(10**4)) == pytest.approx(0)


def test_several_levels_or_releases_add_their_odds() -> None:
    factors = [math.log(2), math.log(3), -math.log(4)]
    assert posterior_of(0.25, factors) == pytest.approx((0.25 * 1.5) / (0.25 * 1.5 + 0.75))
