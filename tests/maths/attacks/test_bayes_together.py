import itertools
import math

import numpy as np
import pytest

from discreet.errors import Mistakes
from discreet.maths.attacks.bayes import MOST_ATOMS, Adversary, Odds, Together
from discreet.maths.noise.additive import discrete_gaussian, discrete_laplace, truncated_laplace
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.ptable_solver import PTableParameters, solve

TABLE = PTableLaw(solve(PTableParameters(3, 1.0)))


def test_one_observation_is_one_adversary() -> None:
    alone = Adversary(discrete_gaussian("0.3"), 2, 0.2)
    one = Together((alone,), 0.2)
    assert one.posterior([4]) == pytest.approx(alone.posterior(4))
    assert one.mean_posterior == pytest.approx(alone.mean_posterior)
    assert one.correct == pytest.approx(alone.correct)
    assert one.mistaken == pytest.approx(alone.mistaken)
    assert one.exceeds(0.3) == pytest.approx(alone.exceeds(0.3))
    assert one.exceeds_falsely(0.3) == pytest.approx(alone.exceeds_falsely(0.3))


@pytest.mark.parametrize("gate", [0.3, 0.5, 0.9])
def test_two_observations_by_enumeration(gate: float) -> None:
    first, second = Adversary(TABLE, 1), Adversary(truncated_laplace(1, 4), 3)
    both = Together((first, second), 0.25)
    above = false = mean = 0.0
    for i, j in itertools.product(range(8), range(-2, 10)):
        here = first.with_target.at(i) * second.with_target.at(j)
        away = first.without.at(i) * second.without.at(j)
        if here + away > 0:
            posterior = 0.25 * here / (0.25 * here + 0.75 * away)
            mean += here * posterior
            above += here * (posterior > gate)
            false += away * (posterior > gate)
    assert both.mean_posterior == pytest.approx(mean)
    assert both.exceeds(gate) == pytest.approx(above)
    assert both.exceeds_falsely(gate) == pytest.approx(false)


def test_releases_add_up_as_one_of_the_summed_rho() -> None:
    """Two Gaussian counts of the same cell are worth one of twice the rho, up to the lattice."""
    part = Adversary(discrete_gaussian("0.05"))
    many = Together((part,) * 8, 0.5)
    assert many.mean_posterior == pytest.approx(Adversary(discrete_gaussian("0.4")).mean_posterior, abs=1e-3)
    assert many.risk > Together((part,), 0.5).risk
    assert many.correct > 0.6
    assert Together((Adversary(discrete_laplace(1)),) * 3, 0.5).posterior([1, 1, 5]) == pytest.approx(
        1 / (1 + math.exp(-3))
    )


def test_proofs_and_contradictions() -> None:
    both = Together((Adversary(TABLE, 0), Adversary(TABLE, 2)), 0.1)
    assert both.posterior([2, 2]) == 1
    with pytest.raises(Mistakes, match="another that it is not"):
        Together((Adversary(TABLE, 0), Adversary(truncated_laplace(1, 2), 5)), 0.1).posterior([2, 3])
    with pytest.raises(Mistakes, match="one count for each"):
        both.posterior([1])


def test_too_many_observations_are_refused() -> None:
    wide = Adversary(PTableLaw(solve(PTableParameters(20, 60.0))), 30)
    skewed = tuple(Adversary(PTableLaw(solve(PTableParameters(15, 20.0 + k))), 3 + k) for k in range(8))
    with pytest.raises(Mistakes, match="fewer levels"):
        Together((wide, *skewed), 0.5).correct  # noqa: B018


def test_the_pairs_of_log_odds_are_limited_and_not_their_sum() -> None:
    side = 2**10
    one = Odds(np.arange(side, dtype=float), np.full(side, 1 / side))
    assert side**2 == MOST_ATOMS
    assert one.plus(one).p.sum() == pytest.approx(1)
    more = Odds(np.arange(side + 1, dtype=float), np.full(side + 1, 1 / (side + 1)))
    with pytest.raises(Mistakes, match="1025 x 1024 likely log odds"):
        more.plus(one)
