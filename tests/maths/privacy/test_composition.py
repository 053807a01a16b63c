"""Four ways of composing: known figures, their order, brute force, and what a way cannot state."""

from fractions import Fraction

import pytest

from discreet.errors import Mistakes
from discreet.maths.privacy.accounting import (
    EpsilonDelta,
    Neighbours,
    PureEpsilon,
    Rho,
    delta_of_rho,
    delta_of_rho_as_published,
    epsilon_of_rho,
    epsilon_of_rho_as_published,
    largest_rho,
)
from discreet.maths.privacy.composition import Composable, Way, composed_deltas, composed_epsilons
from discreet.maths.privacy.loss_distribution import GaussianNoise, LaplaceNoise
from tests.cases import few

ADD, SUBSTITUTE = Neighbours.ADD_REMOVE, Neighbours.SUBSTITUTE
MILLIONTH = Fraction(1, 10**6)
TENTH = Fraction(1, 10)


def epsilons(
    releases: list[Composable], delta: Fraction, neighbours: Neighbours = ADD
) -> dict[Way, float | None]:
    return {one.way: one.value for one in composed_epsilons(releases, neighbours, delta)}


def deltas(releases: list[Composable], epsilon: Fraction) -> dict[Way, float | None]:
    return {one.way: one.value for one in composed_deltas(releases, ADD, epsilon)}


def test_the_figures_of_the_page_on_accounting() -> None:
    laplace = epsilons([LaplaceNoise(TENTH)] * 103, MILLIONTH)
    assert list(laplace.values()) == pytest.approx([10.3, 5.849, 5.310, 4.863], abs=6e-4)
    gaussian = epsilons([GaussianNoise(Fraction(256, 10300))] * 103, Fraction(1, 10**10))
    assert gaussian[Way.ZCDP] == pytest.approx(17.158, abs=6e-4)
    assert gaussian[Way.LOSS_DISTRIBUTION] == pytest.approx(16.479, abs=6e-4)
    assert gaussian[Way.BASIC] == gaussian[Way.ZCDP]  # the rhos are converted once, together
    assert gaussian[Way.ADVANCED] is None


def test_under_substitution_noise_is_charged_twice() -> None:
    once, twice = (
        epsilons([LaplaceNoise(TENTH)] * n, MILLIONTH, one) for n, one in ((20, ADD), (10, SUBSTITUTE))
    )
    assert twice[Way.BASIC] == once[Way.BASIC] == 2.0
    stated = epsilons([PureEpsilon(TENTH)] * 10, MILLIONTH, SUBSTITUTE)
    assert stated[Way.BASIC] == 1.0  # a stated loss is of the whole release already


@pytest.mark.parametrize("releases", few([
    [PureEpsilon(TENTH)] * 40,
    [LaplaceNoise(TENTH)] * 40 + [GaussianNoise(Fraction(1, 50))] * 3,
    [EpsilonDelta(TENTH, Fraction(1, 10**9))] * 30,
    [PureEpsilon(TENTH)] * 30 + [Rho(Fraction(1, 20))],
], 0, 3))  # fmt: skip
def test_delta_at_the_epsilon_of_a_delta_is_that_delta(releases: list[Composable]) -> None:
    found = epsilons(releases, MILLIONTH)
    assert found[Way.BASIC] is not None
    for way, epsilon in found.items():
        if epsilon is None:
            continue
        back = deltas(releases, Fraction(epsilon))[way]
        assert back is not None
        assert back <= float(MILLIONTH) * (1 + 1e-3)
        if way in (Way.ZCDP, Way.LOSS_DISTRIBUTION):
            assert back == pytest.approx(float(MILLIONTH), rel=0.01)


def test_a_way_that_cannot_state_a_release_says_why() -> None:
    reasons = {one.way: one.reason for one in composed_epsilons([Rho(TENTH)], ADD, MILLIONTH)}
    assert "without its noise has no loss distribution" in reasons[Way.LOSS_DISTRIBUTION]
    assert "no loss has an epsilon" in reasons[Way.ADVANCED]
    leaky: list[Composable] = [EpsilonDelta(TENTH, Fraction(1, 10**5))]
    assert all(one.value is None for one in composed_epsilons(leaky, ADD, MILLIONTH))
    assert {one.way: one.value for one in composed_deltas(leaky, ADD, TENTH)}[Way.BASIC] == 1e-5
    assert deltas([PureEpsilon(TENTH)] * 2, TENTH)[Way.BASIC] is None
    for delta in (Fraction(0), Fraction(1)):
        with pytest.raises(Mistakes, match="above 0 and below 1"):
            composed_epsilons([Rho(TENTH)], ADD, delta)
    with pytest.raises(Mistakes, match="at least one"):
        composed_epsilons([], ADD, MILLIONTH)


def test_conversions_are_each_other_s_inverse_and_round_toward_privacy() -> None:
    rho, delta = Fraction("2.56"), Fraction(1, 10**10)
    for forward, back in (
        (epsilon_of_rho_as_published, delta_of_rho_as_published),
        (epsilon_of_rho, delta_of_rho),
    ):
        epsilon = Fraction(forward(rho, delta))
        assert back(rho, epsilon) == pytest.approx(1e-10, rel=1e-6)
        found = largest_rho(epsilon, delta, 8, forward)
        assert found <= rho
        assert float(found) == pytest.approx(2.56, rel=1e-6)
        assert forward(found, delta) <= epsilon
    assert delta_of_rho_as_published(rho, Fraction(2)) == 1
    assert delta_of_rho_as_published(Fraction(0), Fraction(2)) == 0
