"""Intervals for cells, sums and ratios: coverage by enumeration, posteriors by brute force, totals of many cells."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import Mistakes
from discreet.maths.inference.intervals import (
    Flat,
    Geometric,
    SumMethod,
    credible,
    exact_interval,
    infer_cell,
    infer_ratio,
    infer_sum,
    posterior_of,
    scaled,
    sum_law,
)
from discreet.maths.noise.additive import discrete_gaussian, discrete_laplace, truncated_laplace
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.law import Pmf
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.maths.noise.publishing import Negatives, PublishedLaw, Publishing

LAPLACE = PublishedLaw(truncated_laplace("0.5", 7))
CLIPPED = PublishedLaw(truncated_laplace("0.5", 7), Publishing(Negatives.ZERO))
CELL_KEY = PublishedLaw(PTableLaw(solve(PTableParameters(5, 2.0, 0))))
NOISES = [
    LAPLACE,
    CLIPPED,
    CELL_KEY,
    PublishedLaw(PTableLaw(solve(PTableParameters(5, 3.0, 2)))),
    PublishedLaw(
        truncated_laplace(1, 6), Publishing(Negatives.ZERO, rounding=3, threshold=6), keeps_zeros=True
    ),
]


def outcomes(noise: PublishedLaw, count: int) -> list[tuple[int, float]]:
    row = noise.row(count)
    return [(x, p) for x, p in zip(row.values.tolist(), row.p.tolist(), strict=True) if p > 0]


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_exact_interval_covers_every_truth_with_its_level(noise: PublishedLaw, level: float) -> None:
    found = {x: exact_interval(noise, x, level) for a in range(25) for x, _ in outcomes(noise, a)}
    for a in range(25):
        covered = sum(p for x, p in outcomes(noise, a) if found[x].low <= a <= found[x].high)
        assert covered >= level - 1e-9


@pytest.mark.parametrize("noise", NOISES)
def test_intervals_of_settled_counts_move_with_them(noise: PublishedLaw) -> None:
    settled, step = noise.settled_published, noise.publishing.rounding
    first = exact_interval(noise, settled, 0.95)
    assert settled - 20 <= first.low <= first.high
    for k in (1, 2, 17, 1000):
        moved = exact_interval(noise, settled + k * step, 0.95)
        assert (moved.low - first.low, moved.high - first.high) == (k * step, k * step)


@pytest.mark.parametrize("noise", NOISES)
def test_credible_intervals_cover_with_their_level_when_the_prior_is_true(noise: PublishedLaw) -> None:
    prior, level, covered = Geometric(6.0), 0.9, 0.0
    found: dict[int, tuple[int, int]] = {}
    for a in range(150):
        for x, p in outcomes(noise, a):
            if x not in found:
                run = credible(posterior_of(noise, x, prior), level)
                found[x] = run.low, run.high
            covered += p * float(prior.weights(np.array([float(a)]))[0]) * (found[x][0] <= a <= found[x][1])
    assert covered >= level - 1e-6


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=12), st.floats(0.05, 0.99))
def test_a_credible_run_is_the_shortest_that_holds_its_level(weights: list[float], level: float) -> None:
    p = np.array(weights) / sum(weights)
    found = credible(Pmf(3, p), level)
    runs = [(high - low + 1) for low in range(len(p)) for high in range(low, len(p))
            if p[low : high + 1].sum() >= level - 1e-12]  # fmt: skip
    assert found.high - found.low + 1 == min(runs)
    assert found.level == pytest.approx(p[found.low - 3 : found.high - 2].sum())


def test_posteriors_follow_bayes_and_their_prior() -> None:
    posterior = posterior_of(LAPLACE, 2, Flat())
    a = np.arange(10)
    by_hand = np.array([LAPLACE.change.at(2 - int(k)) for k in a])
    np.testing.assert_allclose(posterior.p, by_hand / by_hand.sum())
    assert posterior_of(LAPLACE, 2, Flat(3)).last == 3
    assert posterior_of(LAPLACE, 2, Geometric(0.5)).mean < posterior.mean
    with pytest.raises(Mistakes, match="rules out the published count 50"):
        posterior_of(LAPLACE, 50, Flat(10))


def test_a_count_in_the_middle_is_its_own_best_guess() -> None:
    found = infer_cell(LAPLACE, 40, 0.95, Flat())
    assert found.most_likely == (40, 40)
    assert (found.exact.low, found.exact.high) == (35, 45)
    assert found.posterior.mean == pytest.approx(40)
    assert infer_cell(CELL_KEY, 0, 0.95, Flat()).most_likely == (0, 0)
    assert infer_cell(CLIPPED, 0, 0.95, Flat()).exact.low == 0


@given(st.lists(st.integers(-3, 12), min_size=1, max_size=4), st.integers(-2, 3))
def test_sums_of_laws_are_those_of_all_pairs(firsts: list[int], weight: int) -> None:
    laws = [Pmf(first, np.array([0.5, 0.3, 0.2])) for first in firsts]
    found = sum_law([scaled(law, weight or 1) for law in laws])
    assert found.mean == pytest.approx((weight or 1) * sum(law.mean for law in laws), abs=1e-9)
    assert found.variance == pytest.approx((weight or 1) ** 2 * sum(law.variance for law in laws), abs=1e-9)
    assert found.first == sum(min((weight or 1) * law.first, (weight or 1) * law.last) for law in laws)


def test_the_difference_is_the_convolution_of_the_posteriors() -> None:
    found = infer_sum(CELL_KEY, [12, 7], [1, -1], 0.9, Flat()).posterior
    assert found is not None
    left, right = posterior_of(CELL_KEY, 12, Flat()), posterior_of(CELL_KEY, 7, Flat())
    inside = sum(
        p * q
        for a, p in zip(left.values.tolist(), left.p.tolist(), strict=True)
        for b, q in zip(right.values.tolist(), right.p.tolist(), strict=True)
        if found.credible.low <= a - b <= found.credible.high
    )
    assert found.credible.level == pytest.approx(inside)
    assert found.mean == pytest.approx(left.mean - right.mean)


def test_the_noise_alone_gives_a_total_its_level_whatever_the_truth() -> None:
    weights = [1, 1, -1]
    law = sum_law([scaled(LAPLACE.change, w) for w in weights])
    whole = infer_sum(LAPLACE, [3, 40, 9], weights, 0.9)
    found = whole.interval
    assert whole.method is SumMethod.EXACT
    assert whole.posterior is None
    covered = sum(law.at(s) for s in range(law.first, law.last + 1) if found.low <= 34 - s <= found.high)
    assert 0.9 <= covered < 0.95


def test_a_published_total_narrows_the_sum_of_its_cells() -> None:
    cells = [20, 31, 15, 44, 28, 19]
    alone = infer_sum(LAPLACE, cells, [1] * 6, 0.95, Flat())
    helped = infer_sum(LAPLACE, cells, [1] * 6, 0.95, Flat(), total=160)
    assert helped.interval.high - helped.interval.low < alone.interval.high - alone.interval.low
    assert alone.posterior is not None
    assert helped.posterior is not None
    one, other = alone.posterior.credible, helped.posterior.credible
    assert other.high - other.low < one.high - one.low
    with pytest.raises(Mistakes, match="cannot be the sum"):
        infer_sum(LAPLACE, cells, [1] * 6, 0.95, Flat(), total=400)


def test_ratios_are_shares_of_all_pairs() -> None:
    found = infer_ratio(CELL_KEY, 12, 24, 0.9, Flat())
    above, below = posterior_of(CELL_KEY, 12, Flat()), posterior_of(CELL_KEY, 24, Flat())
    p = np.outer(above.p, below.p)
    ratios = above.values[:, None] / below.values[None, :]
    assert p[(ratios >= found.low) & (ratios <= found.high)].sum() >= 0.9 - 1e-12
    assert found.published == 0.5
    assert infer_ratio(LAPLACE, 12, 1, 0.95, Flat()).high == math.inf
    assert infer_ratio(LAPLACE, 12, -1, 0.95, Flat()).published is None


def test_what_is_too_large_is_normal_and_says_so() -> None:
    wide = PublishedLaw(discrete_laplace("0.01"))
    many = [5000] * 300
    found = infer_sum(wide, many, [1] * 300, 0.95, Flat(10**6))
    assert found.method is SumMethod.NORMAL
    assert found.posterior is not None
    assert not found.posterior.is_exact
    assert found.posterior.credible.low < found.posterior.mean < found.posterior.credible.high
    thrice = infer_sum(wide, many, [3] * 300, 0.95, Flat(10**6)).posterior
    assert thrice is not None
    width, narrow = (one.credible.high - one.credible.low for one in (thrice, found.posterior))
    assert width == pytest.approx(3 * narrow, rel=1e-3), "three times the deviation, not its cube"
    gaussian = PublishedLaw(discrete_gaussian("0.00001"))
    ratio = infer_ratio(gaussian, 100_000, 200_000, 0.95, Flat())
    assert not ratio.is_exact
    assert ratio.low < 0.5 < ratio.high < 0.51


@pytest.mark.parametrize("prior", [lambda: Flat(-1), lambda: Geometric(0), lambda: Geometric(1, 1.0)])
def test_impossible_priors_are_refused(prior: object) -> None:
    with pytest.raises(Mistakes, match="prior"):
        prior()  # type: ignore[operator]


def test_impossible_levels_and_weights_are_refused() -> None:
    with pytest.raises(Mistakes, match=r"level: 1\.5"):
        infer_cell(LAPLACE, 3, 1.5, Flat())
    with pytest.raises(Mistakes, match="2 counts, 1 weights"):
        infer_sum(LAPLACE, [1, 2], [1], 0.9)
