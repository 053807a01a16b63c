"""Simulated p-values: their size where the chi-square law is wrong, and known margins and totals."""

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2_contingency

from discreet.errors import Mistakes
from discreet.maths.inference.independence import fitted_products
from discreet.maths.inference.simulated import (
    KnownMargins,
    default_tables,
    drawn_published,
    score_statistics,
    simulated_tests,
    smoothed,
)
from discreet.maths.noise.additive import truncated_laplace
from discreet.maths.noise.publishing import NO_NOISE, PublishedLaw
from tests.cases import few

SCRIPT: dict[str, Any] = runpy.run_path(str(Path(__file__).parents[3] / "docs" / "inference_coverage.py"))
LAWS: dict[str, PublishedLaw] = SCRIPT["LAWS"]
CELL_KEY, LAPLACE = LAWS["cell key"], LAWS["Laplace, negatives kept"]
pooled: Callable[..., tuple[float, float]] = SCRIPT["_pooled"]
known_p_values: Callable[..., Any] = SCRIPT["known_p_values"]


def independent(tables: int, mean: float, size: int, seed: int) -> NDArray[np.int64]:
    effects = np.exp(np.linspace(-0.5, 0.5, size))
    mu = np.multiply.outer(effects, effects)
    return np.random.default_rng(seed).poisson(mu * mean / mu.mean(), (tables, size, size))


def test_small_counts_under_cell_key_noise_keep_their_size_where_the_chi_square_law_does_not() -> None:
    by_law, simulated = pooled(CELL_KEY, independent(2000, 3, 5, 1), None, np.random.default_rng(2))
    assert by_law > 0.085  # reported as 0.103
    assert abs(simulated - 0.05) < 3 * np.sqrt(2 * 0.05 * 0.95 / 2000)  # the limit is simulated, too


def test_a_public_total_keeps_the_size() -> None:
    true = independent(1500, 3, 4, 3)
    shares = true.mean(axis=0) / true.mean(axis=0).sum()
    true = np.random.default_rng(4).multinomial(48, shares.ravel(), 1500).reshape(-1, 4, 4)
    simulated = pooled(CELL_KEY, true, 48, np.random.default_rng(5))[1]
    assert abs(simulated - 0.05) < 0.01 + 3 * np.sqrt(2 * 0.05 * 0.95 / 1500)


@pytest.mark.parametrize("mean", few([1, 3], 0))
@pytest.mark.parametrize(
    "noise", few([CELL_KEY, LAWS["Laplace, negatives zero"]], 0), ids=["cell key", "Laplace"]
)
def test_known_margins_give_exact_p_values(noise: PublishedLaw, mean: int) -> None:
    p = np.array(list(known_p_values(noise, independent(500, mean, 4, 6), np.random.default_rng(7))))
    for level in (0.05, 0.2, 0.5):
        assert (p <= level + 1e-9).mean() <= level + 3 * np.sqrt(level * (1 - level) / len(p))
    assert (p <= 0.2).mean() > 0.1


def test_a_wrong_scale_of_the_noise_is_rejected_too_often() -> None:
    wide, narrow = PublishedLaw(truncated_laplace("0.2", 15)), PublishedLaw(truncated_laplace("1", 15))
    rng, shares = np.random.default_rng(9), []
    for assumed in (wide, narrow):
        rejected = 0
        for table in independent(60, 20, 4, 8):
            known = KnownMargins(tuple(table.sum(axis=1).tolist()), tuple(table.sum(axis=0).tolist()))
            x = drawn_published(wide, table[None], rng)
            null = drawn_published(assumed, known.tables(99, rng), rng)
            statistics = score_statistics(np.concatenate([x, null]), assumed, known)
            rejected += (statistics[1:] >= statistics[0]).sum() < 5
        shares.append(rejected / 60)
    assert shares[0] < 0.14
    assert shares[1] > 0.5


@pytest.mark.long
def test_known_margins_find_the_more_dependence_the_more_there_is() -> None:
    rng, power = np.random.default_rng(10), []
    for strength in (0.0, 0.7, 1.4):
        true = rng.poisson(6 * np.exp(strength * rng.uniform(-1.0, 1.0, (150, 4, 4))))
        power.append(np.mean([p <= 0.05 for p in known_p_values(LAPLACE, true, rng)]))
    assert power[0] < 0.11
    assert power[0] + 0.1 < power[1] < power[2]
    assert power[2] > 0.6


def test_without_noise_the_score_of_known_margins_is_the_chi_square_statistic() -> None:
    table = independent(1, 9, 4, 12)[0]
    known = KnownMargins(tuple(table.sum(axis=1).tolist()), tuple(table.sum(axis=0).tolist()))
    plain = chi2_contingency(table, correction=False).statistic
    assert score_statistics(table[None], NO_NOISE, known)[0] == pytest.approx(plain, rel=1e-5)


def test_drawn_tables_have_the_known_margins_and_empty_ones_are_left_out() -> None:
    known = KnownMargins((5, 0, 7), (4, 8, 0))
    drawn = known.tables(50, np.random.default_rng(1))
    assert (drawn.sum(axis=2) == [5, 0, 7]).all()
    assert (drawn.sum(axis=1) == [4, 8, 0]).all()
    x = drawn_published(LAPLACE, drawn, np.random.default_rng(2))
    smaller = KnownMargins((5, 7), (4, 8))
    np.testing.assert_allclose(
        score_statistics(x, LAPLACE, known), score_statistics(x[:, [0, 2]][:, :, :2], LAPLACE, smaller)
    )


def test_a_public_total_is_that_of_the_fitted_means() -> None:
    x = drawn_published(CELL_KEY, independent(20, 3, 4, 13), np.random.default_rng(14))
    assert fitted_products(x, CELL_KEY, 48).sum(axis=(1, 2)) == pytest.approx(48)
    free = fitted_products(x, CELL_KEY, None)
    assert smoothed(free).sum(axis=(1, 2)) == pytest.approx(free.sum(axis=(1, 2)))


def test_sparse_tables_take_the_larger_p_value_and_large_ones_fewer_simulations() -> None:
    x = drawn_published(CELL_KEY, independent(1, 0.5, 4, 15), np.random.default_rng(16))[0]
    found = simulated_tests(x, CELL_KEY, None, 19, np.random.default_rng(1))
    for one in (found.likelihood_ratio, found.chi_square):
        assert one.p_value >= one.asymptotic_p_value
    assert (default_tables(100), default_tables(10_000), default_tables(10**6)) == (999, 100, 99)


@pytest.mark.long
@pytest.mark.parametrize("known", [False, True], ids=["nothing", "total"])
@pytest.mark.parametrize("noise", ["cell key", "cell key, js 2", "Laplace, negatives zero"])
def test_the_size_of_the_reported_p_value(noise: str, known: bool) -> None:
    law, rng, p = LAWS[noise], np.random.default_rng(17), []
    for table in independent(400, 3, 4, 18):
        x = drawn_published(law, table, rng)
        total = int(table.sum()) if known else None
        p.append(simulated_tests(x, law, total, 99, rng).likelihood_ratio.p_value)
    assert (np.array(p) <= 0.05).mean() <= 0.06 + 3 * np.sqrt(0.05 * 0.95 / 400)


@pytest.mark.parametrize("known", ["nothing", "total", "margins"])
def test_a_dependent_table_has_the_smallest_p_value_and_an_exact_product_the_largest(known: str) -> None:
    for table, extreme in (
        (np.array([[60, 5, 5], [5, 60, 5], [5, 5, 60]]), 1 / 100),
        (np.full((3, 3), 20), 1.0),
    ):
        given: Any = {
            "nothing": None,
            "total": int(table.sum()),
            "margins": KnownMargins(tuple(table.sum(axis=1).tolist()), tuple(table.sum(axis=0).tolist())),
        }[known]
        found = simulated_tests(table, NO_NOISE, given, 99, np.random.default_rng(3))
        for one in (found.likelihood_ratio, found.chi_square, *((found.score,) if found.score else ())):
            assert one.p_value == pytest.approx(extreme)


def test_margins_of_another_shape_are_refused() -> None:
    table = np.full((3, 3), 20)
    for rows, columns in (
        ((60, 60), (60, 60, 60)),
        ((60, 60, 60, 0), (60, 60, 60)),
        ((90, 90), (60, 60, 60)),
    ):
        with pytest.raises(Mistakes, match="known margins"):
            simulated_tests(table, NO_NOISE, KnownMargins(rows, columns), 9, np.random.default_rng(1))


def test_the_p_value_is_the_rank_among_the_simulated_tables() -> None:
    table = independent(1, 9, 4, 12)[0]
    known = KnownMargins(tuple(table.sum(axis=1).tolist()), tuple(table.sum(axis=0).tolist()))
    rng = np.random.default_rng(5)
    null = score_statistics(drawn_published(NO_NOISE, known.tables(199, rng), rng), NO_NOISE, known)
    own = score_statistics(table[None], NO_NOISE, known)[0]
    found = simulated_tests(table, NO_NOISE, known, 199, np.random.default_rng(5)).score
    assert found is not None
    assert found.p_value == pytest.approx((1 + (null >= own - 1e-6).sum()) / 200)
    assert 0.02 < found.p_value < 0.98
