import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import Mistakes
from discreet.maths.attacks.bayes import Adversary, probabilities
from discreet.maths.attacks.bayes_hierarchy import Chain, Hierarchy, summed
from discreet.maths.noise.additive import discrete_gaussian, discrete_laplace, uniform

BLOCK = discrete_gaussian(Fraction("2.56") * Fraction(165, 4099) * Fraction(3945, 4097))
BLOCK_GROUP = discrete_gaussian(Fraction("2.56") * Fraction(1256, 4099) * Fraction(1288, 4099))
CENSUS = Hierarchy(BLOCK, BLOCK_GROUP, 27)


def test_the_posterior_of_table_7_by_the_exact_sum() -> None:
    """Printed 57.0 %, from 10^4 draws of a chain that does not keep X1 <= X2."""
    assert CENSUS.posterior(2, 1, -1) == pytest.approx(0.503, abs=5e-4)
    assert CENSUS.posterior(2, 1, -1, Chain.PAPER) == pytest.approx(0.570, abs=0.015)
    assert Adversary(BLOCK).posterior(2) == pytest.approx(0.574, abs=5e-4)


def test_the_sum_is_that_of_the_formula() -> None:
    rho1, rho2, d = float(BLOCK.rho or 0), float(BLOCK_GROUP.rho or 0), 27
    for x1, x2, y1 in ((2, 1, -1), (0, 3, 12), (-4, 0, -30)):

        def term_sum(k: int, x2: int = x2, y1: int = y1) -> float:
            return math.fsum(
                math.exp(-rho2 * (x2 - k2) ** 2 - rho1 / d * (y1 - k2 + k) ** 2) for k2 in range(k, 60)
            )

        odds = rho1 * (2 * x1 - 1) + math.log(term_sum(1)) - math.log(term_sum(0))
        assert CENSUS.log_odds(x1, x2, y1) == pytest.approx(odds, rel=1e-9)


def test_decisions_depend_on_the_larger_count() -> None:
    found = [CENSUS.correct(x2) for x2 in (1, 2, 3, 4, 5)]
    assert found == pytest.approx([0.318, 0.435, 0.517, 0.562, 0.581], abs=5e-4)
    assert CENSUS.correct(20) == pytest.approx(0.5897, abs=5e-5)
    assert CENSUS.correct(8) == pytest.approx(CENSUS.correct(100), abs=1e-4)


def test_decisions_by_brute_force() -> None:
    small = Hierarchy(discrete_gaussian("0.8"), discrete_laplace("1.5"), 2, known=1, prior=0.4)
    others, x2 = small.others, 3
    total = 0.0
    for a, b, c in itertools.product(range(-6, 7), range(-9, 10), range(-8, 9)):
        chance = small.lower.pmf.at(a) * small.upper.pmf.at(b) * others.at(c)
        if chance > 1e-15 and small.posterior(2 + a, x2 + b, 1 + c) > 0.5:
            total += chance
    assert small.correct(x2) == pytest.approx(total, abs=1e-4)


def test_decisions_about_a_target_who_is_not_there_by_brute_force() -> None:
    small = Hierarchy(discrete_gaussian("0.8"), discrete_laplace("1.5"), 2, known=1, prior=0.4)
    noise = np.array(list(itertools.product(range(-6, 7), range(-9, 10), range(-8, 9)))).T
    laws = (small.lower.pmf, small.upper.pmf, small.others)
    chance = np.prod([probabilities(law, one) for law, one in zip(laws, noise, strict=True)], axis=0)
    odds = small.log_odds_of(*(noise + np.array([[1], [3], [2]])))
    total = chance[odds > 0].sum()
    assert small.decided(np.array([3]), 1)[0] == pytest.approx(total, abs=1e-4)
    # who is found less often is cleared more often: in all, the hierarchy helps
    present, absent = CENSUS.decided(np.array([1]), 1)[0], 1 - CENSUS.decided(np.array([0]), 0)[0]
    assert (present, absent) == pytest.approx((0.318, 0.889), abs=5e-4)
    assert (present + absent) / 2 > Adversary(BLOCK).correct


def test_many_odds_are_those_of_one_after_the_other() -> None:
    known = Hierarchy(BLOCK, BLOCK_GROUP, 27, known=4)
    x1, x2, y1 = (np.array(column) for column in ((2, 7, 4, 5), (9, 30, 4, 3), (-1, 20, 0, -12)))
    found = known.log_odds_of(x1, x2, y1)
    rows = zip(x1.tolist(), x2.tolist(), y1.tolist(), strict=True)
    assert found == pytest.approx([known.log_odds(*row) for row in rows])
    # only differences from the known records matter
    assert CENSUS.log_odds_of(x1 - 4, x2 - 4, y1) == pytest.approx(found)
    assert np.isnan(CENSUS.log_odds_of(np.array([1]), np.array([1]), np.array([-(10**5)]))).all()


def test_summed_noise_is_exact_where_the_normal_one_is_not() -> None:
    sharp = Hierarchy(discrete_gaussian(4), BLOCK_GROUP, 3)
    assert sharp.others.at(0) == pytest.approx(summed(discrete_gaussian(4).pmf, 3).at(0))
    assert sharp.others.variance == pytest.approx(3 * discrete_gaussian(4).pmf.variance)
    assert abs(discrete_gaussian(Fraction(4, 3)).pmf.at(0) / sharp.others.at(0) - 1) > 0.05
    assert CENSUS.others.at(5) == pytest.approx(summed(BLOCK.pmf, 27).at(5), rel=1e-9)


@pytest.mark.parametrize("times", [1, 2, 5, 8])
def test_sums_have_the_moments_of_sums(times: int) -> None:
    law = summed(uniform(3).pmf, times)
    assert float(law.p.sum()) == pytest.approx(1)
    assert (law.first, law.last) == (-3 * times, 3 * times)
    assert law.variance == pytest.approx(times * uniform(3).pmf.variance)


def test_a_large_upper_group_tells_nothing() -> None:
    assert CENSUS.posterior(2, 500, 499) == pytest.approx(0.574, abs=5e-3)


def test_what_cannot_be_worked_out_is_refused() -> None:
    with pytest.raises(Mistakes, match="fewer groups"):
        summed(discrete_laplace("0.001").pmf, 10**6)
    with pytest.raises(Mistakes, match="noise can lead to"):
        Hierarchy(uniform(2), uniform(2), 2).posterior(1, -50, 3)


@pytest.mark.parametrize("chain", list(Chain))
def test_far_counts_have_posteriors_or_are_refused(chain: Chain) -> None:
    assert CENSUS.posterior(4000, 1, 0, chain) == pytest.approx(1)
    assert CENSUS.posterior(-4000, 1, 0, chain) == pytest.approx(0)
    with pytest.raises(Mistakes, match="noise can lead to"):
        CENSUS.posterior(1, 1, -(10**5), chain)
