"""Tests of independence: Rinott et al.'s Table 3, agreement with the standard tests without noise, and hard tables."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2_contingency

from discreet.errors import Mistakes
from discreet.maths.inference import independence
from discreet.maths.inference.independence import independence_tests
from discreet.maths.noise.additive import discrete_laplace, truncated_laplace
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.maths.noise.publishing import NO_NOISE, Negatives, PublishedLaw, Publishing
from tests.cases import few

TABLES = 1000
TABLE_3 = {  # epsilon, m: size in %, mean statistic and its standard error of the LR test; size of the naive test
    (0.1, 10): (3.0, 78.6, 0.388, 86.7),
    (0.1, 7): (4.0, 80.1, 0.400, 53.3),
    (0.5, 10): (6.9, 82.5, 0.419, 25.4),
    (0.5, 7): (5.3, 82.0, 0.391, 18.7),
}


def independent_tables(
    seed: int, eta: float = 4.0, size: int = 10, tables: int = TABLES
) -> NDArray[np.int64]:
    rng = np.random.default_rng(seed)
    rows, columns = rng.uniform(-0.5, 0.5, (tables, size, 1)), rng.uniform(-0.5, 0.5, (tables, 1, size))
    return rng.poisson(np.exp(eta + rows + columns))


def published(true: NDArray[np.int64], noise: PublishedLaw, seed: int) -> NDArray[np.int64]:
    change = noise.change
    drawn = np.random.default_rng(seed).choice(change.values, size=true.shape, p=change.p)
    return noise.publishing.publish(true + drawn)


@pytest.mark.parametrize(("epsilon", "m"), few(TABLE_3, 0))
def test_table_3_of_rinott_et_al_comes_out_for_independent_attributes(epsilon: float, m: int) -> None:
    size, mean, error, naive = TABLE_3[epsilon, m]
    noise = PublishedLaw(truncated_laplace(epsilon, m))
    found = independence_tests(published(independent_tables(11), noise, 12), noise)
    assert found.settled.all()
    statistic = found.likelihood_ratio.statistic
    own = statistic.std() / np.sqrt(TABLES)
    assert abs(statistic.mean() - mean) < 3.5 * np.hypot(own, error)
    share = (found.likelihood_ratio.p_value <= 0.05).mean() * 100
    assert abs(share - size) < 3.5 * np.sqrt(2 * size * (100 - size) / TABLES)
    wrong = (found.naive_likelihood_ratio.p_value <= 0.05).mean() * 100
    assert abs(wrong - naive) < 8  # theirs is somewhat lower at epsilon 0.1, more than chance allows
    assert 3 <= (found.chi_square.p_value <= 0.05).mean() * 100 <= 7.5


def test_dependence_is_found_and_more_noise_hides_more_of_it() -> None:
    rng = np.random.default_rng(5)
    shape = (300, 10, 10)
    true = rng.poisson(np.exp(4 + 0.3 * rng.uniform(-0.5, 0.5, shape)))
    power = []
    for epsilon in (0.1, 0.5):
        noise = PublishedLaw(truncated_laplace(epsilon, 10))
        found = independence_tests(published(true, noise, 6), noise)
        power.append((found.likelihood_ratio.p_value <= 0.05).mean())
    bare = (independence_tests(true, NO_NOISE).likelihood_ratio.p_value <= 0.05).mean()
    assert 0.1 < power[0] < power[1] < bare


def test_without_noise_the_tests_are_the_standard_ones() -> None:
    table = np.random.default_rng(2).poisson(9, (4, 5))
    found = independence_tests(table[None], NO_NOISE)
    for test, kind in ((found.likelihood_ratio, "log-likelihood"), (found.chi_square, "pearson")):
        known = chi2_contingency(table, correction=False, lambda_=kind)
        assert test.statistic[0] == pytest.approx(known.statistic, rel=1e-6)
        assert test.p_value[0] == pytest.approx(known.pvalue, rel=1e-5)
        assert test.df == known.dof
    assert found.naive_likelihood_ratio.statistic[0] == pytest.approx(
        found.likelihood_ratio.statistic[0], rel=1e-9
    )


@pytest.mark.parametrize(
    "noise",
    [
        PublishedLaw(truncated_laplace(0.5, 7), Publishing(Negatives.ZERO)),
        PublishedLaw(PTableLaw(solve(PTableParameters(5, 2.0, 0)))),
    ],
)
def test_sizes_hold_for_small_counts_with_post_processing_in_the_likelihood(noise: PublishedLaw) -> None:
    rng = np.random.default_rng(8)
    true = independent_tables(7, eta=1.8, size=5, tables=600)
    if len(noise.changes) == 1:
        x = published(true, noise, 9)
    else:
        x = np.array([rng.choice(noise.row(a).values, p=noise.row(a).p) for a in true.ravel().tolist()])
    found = independence_tests(x.reshape(true.shape), noise)
    assert (found.likelihood_ratio.p_value <= 0.05).mean() < 0.09
    forgotten = independence_tests(x.reshape(true.shape), NO_NOISE)
    assert (forgotten.likelihood_ratio.p_value <= 0.05).mean() > (
        found.likelihood_ratio.p_value <= 0.05
    ).mean() + 0.05


def test_empty_rows_and_wide_noise_end() -> None:
    noise = PublishedLaw(discrete_laplace("0.2"), Publishing(Negatives.ZERO))
    table = np.array([[[0, 0, 0], [0, 3, 1], [12, 0, 7]], [[0, 0, 0]] * 3])
    found = independence_tests(table, noise)
    assert found.settled.all()
    assert np.isfinite(found.likelihood_ratio.statistic).all()
    assert (found.likelihood_ratio.statistic >= 0).all()
    assert np.isfinite(found.chi_square.statistic).all()


def test_a_table_of_one_row_is_refused() -> None:
    with pytest.raises(Mistakes, match="1 x 3; give at least two rows"):
        independence_tests(np.ones((1, 1, 3), dtype=np.int64), NO_NOISE)


def test_a_known_total_is_the_sum_of_all_products() -> None:
    """Row and column effects of any size are moved together until the expected counts sum to the total."""
    effects = np.random.default_rng(4).normal(2.0, 0.5, (6, 3 + 4))
    moved = independence._with_total(effects, np.ones((3, 4), dtype=np.bool_), 1234)
    products = np.exp(moved[:, :3, None] + moved[:, None, 3:])
    assert products.sum(axis=(1, 2)) == pytest.approx(np.full(6, 1234.0))
