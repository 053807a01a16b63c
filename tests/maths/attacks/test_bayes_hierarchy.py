import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import Mistakes
from discreet.maths.attacks import bayes_hierarchy
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
        if chance > 1e-9 and small.posterior(2 + a, x2 + b, 1 + c) > 0.5:
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


@pytest.mark.parametrize("chain", Chain)
def test_the_law_of_the_larger_count(chain: Chain) -> None:
    """Exact: by brute force over X1 and X2. The paper's: by drawing its chain, X1 without regard to X1 <= X2."""
    found = CENSUS.larger(2, 1, -1, chain)
    assert found.p.sum() == pytest.approx(1, rel=1e-12)
    if chain is Chain.EXACT:
        joint = np.array(
            [
                [
                    BLOCK.pmf.at(2 - k1)
                    * BLOCK_GROUP.pmf.at(1 - k2)
                    * CENSUS.others.at(-1 - k2 + k1)
                    * (k1 <= k2)
                    for k2 in range(40)
                ]
                for k1 in (0, 1)
            ]
        )
        assert found.p[:30] == pytest.approx((joint.sum(axis=0) / joint.sum())[:30], rel=1e-9)
        return
    rng, k1, k2, seen = np.random.default_rng(4), 1, 1, np.zeros(40)
    chances = [
        np.array([BLOCK_GROUP.pmf.at(1 - k) * CENSUS.others.at(-1 - k + one) * (one <= k) for k in range(40)])
        for one in (0, 1)
    ]
    sums = [np.cumsum(one / one.sum()) for one in chances]
    own = [BLOCK.pmf.at(2), BLOCK.pmf.at(1)]
    for first, second in rng.random((40_000, 2)):
        to = [own[one] * CENSUS.others.at(-1 - k2 + one) for one in (0, 1)]
        k1 = int(first < to[1] / (to[0] + to[1]))
        k2 = int(np.searchsorted(sums[k1], second))
        seen[k2] += 1
    assert found.p[:6] == pytest.approx((seen / seen.sum())[:6], abs=0.015)


def test_decisions_of_the_printed_chain_by_brute_force() -> None:
    small = Hierarchy(discrete_gaussian(1), discrete_gaussian(Fraction(1, 2)), 2)
    own = Adversary(discrete_gaussian(1)).with_target
    for x2 in (1, 3):
        expected = sum(
            chance
            for a, b, c in itertools.product(range(-5, 8), range(-7, 8), range(-8, 9))
            if (chance := own.at(a) * small.upper.pmf.at(b) * small.others.at(c)) > 1e-9
            and small.posterior(a, b + x2, c + x2 - 1, Chain.PAPER) > 0.5
        )
        assert small.correct(x2, Chain.PAPER) == pytest.approx(expected, abs=1e-5)


@pytest.mark.long
def test_even_odds_are_decided_by_a_coin() -> None:
    """With rho2 = 100 the larger count is known and some triples say nothing; rounding must not decide them."""
    sharp = Hierarchy(BLOCK, discrete_gaussian(100), 27)
    assert abs(sharp.log_odds(1, 10, 23)) < 1e-12
    chance = sharp.others.at(14) * Adversary(BLOCK).with_target.at(1)
    strict = sum(
        Adversary(BLOCK).with_target.at(x1) * sharp.others.at(y1 - 9)
        for x1 in range(-30, 32)
        for y1 in range(-90, 110)
        if sharp.log_odds(x1, 10, y1) > 1e-9
    )
    assert chance == pytest.approx(0.00296, abs=1e-5)
    # the other even triple, x1 = 0, is as probable; those of other x1 hardly are
    assert sharp.correct(10) == pytest.approx(strict + chance, abs=3e-5)


def test_wide_noise_of_the_others_is_summed_at_some_of_its_points(monkeypatch: pytest.MonkeyPatch) -> None:
    attack = Hierarchy(discrete_gaussian("0.0005"), discrete_gaussian("0.004"), 12)
    larger = np.array([1, 3, 30])
    some = attack.decided(larger, 1)
    monkeypatch.setattr(bayes_hierarchy, "FINEST", 10**9)
    every = attack.decided(larger, 1)
    assert (some != every).all()
    assert np.allclose(some, every, rtol=0, atol=2e-5)


@pytest.mark.parametrize("known", [0, 3])
def test_sums_by_recursion_are_the_sums_of_their_terms(known: int) -> None:
    attack = Hierarchy(discrete_gaussian("0.05"), discrete_gaussian("0.2"), 7, known)
    x2, y1 = np.meshgrid(np.arange(-1, 9), np.arange(-9, 12, 4), indexing="ij")
    pairs = list(zip(x2.ravel().tolist(), y1.ravel().tolist(), strict=True))
    wanted = [attack.log_odds(known, x2, y1) - attack._own_odds(known) for x2, y1 in pairs]
    grid = attack._shifts((-1, 8), (-9, 11), 4)
    at = attack.log_odds_of(np.full(x2.size, known), x2.ravel(), y1.ravel()) - attack._own_odds(known)
    assert np.allclose(grid.ravel(), wanted, atol=1e-9)
    assert np.allclose(at, wanted, atol=1e-9)
