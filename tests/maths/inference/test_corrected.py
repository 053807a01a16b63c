"""Corrected counts: bias and variance within their limits for every true count, and the coverage of totals."""

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.maths.inference.corrected import corrected, corrected_sum
from discreet.maths.inference.intervals import Interval, SumMethod, infer_sum
from discreet.maths.inference.simulated import drawn_published
from discreet.maths.noise.additive import discrete_laplace, truncated_laplace
from discreet.maths.noise.publishing import Negatives, PublishedLaw, Publishing
from tests.cases import few

SCRIPT: dict[str, Any] = runpy.run_path(str(Path(__file__).parents[3] / "docs" / "inference_coverage.py"))
LAWS: dict[str, PublishedLaw] = SCRIPT["LAWS"]
coverage: Callable[..., tuple[float, float]] = SCRIPT["coverage"]
CLIPPED, CELL_KEY = LAWS["Laplace, negatives zero"], LAWS["cell key"]
SPARSE = np.where(
    np.random.default_rng(5).random(60) < 0.6, 0, np.random.default_rng(6).geometric(0.2, 60) - 1
)


def least(draws: int, level: float = 0.95) -> float:
    """One point below the level, and three standard errors."""
    return level - 0.01 - 3 * float(np.sqrt(level * (1 - level) / draws))


@pytest.mark.parametrize("noise", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("cells", [5, 250])
def test_bias_and_variance_are_within_their_limits_for_every_true_count(
    noise: PublishedLaw, cells: int
) -> None:
    found = corrected(noise, cells, 0.95)
    for a in range(120):
        row = noise.row(a)
        g, h = found.at(row.values)
        mean = float(row.p @ g)
        assert found.least_bias - 1e-6 <= mean - a <= found.most_bias + 1e-6
        variance = float(row.p @ g**2) - mean**2
        assert variance <= float(row.p @ h) + 1e-5
        assert variance <= found.largest_variance + 1e-5


def test_counts_of_p_tables_and_added_noise_are_unbiased_as_they_are() -> None:
    for noise in (CELL_KEY, LAWS["cell key, js 2"], LAWS["Laplace, negatives kept"]):
        found = corrected(noise, 60, 0.95)
        assert max(abs(found.least_bias), found.most_bias) < 1e-3
        assert found.at(np.array([3, 12, 90]))[0] == pytest.approx([3, 12, 90], abs=0.01)


def test_negatives_as_zero_are_corrected_without_bias_and_a_threshold_is_not() -> None:
    assert corrected(CLIPPED, 60, 0.95).most_bias < 1e-3
    assert corrected(CLIPPED, 60, 0.95).at(np.array([0]))[0][0] < -1
    assert corrected(LAWS["Laplace, threshold 10"], 60, 0.95).most_bias > 1


def test_noise_too_wide_to_correct_has_its_bias_in_the_interval() -> None:
    noise = PublishedLaw(discrete_laplace("0.005"), Publishing(Negatives.ZERO))
    found = corrected(noise, 10, 0.95)
    assert found.most_bias == pytest.approx(noise.row(0).mean, rel=1e-6)
    limits = corrected_sum(noise, [0] * 10, [1] * 10, 0.95)
    assert limits.estimate - limits.low > 10 * found.most_bias


def test_limits_are_mirrored_by_the_weights_and_a_total_has_the_same_limits_of_bias() -> None:
    """Of w and -w one interval is the other's mirror image; the asymmetry of an interval is that of its bias."""
    noise = PublishedLaw(truncated_laplace("0.5", 7), Publishing(Negatives.ZERO, threshold=4))
    counts, weights = [0, 5, 9, 0, 14], [1, -2, 3, 1, -1]
    found = corrected_sum(noise, counts, weights, 0.95)
    other = corrected_sum(noise, counts, [-w for w in weights], 0.95)
    assert (other.estimate, other.low, other.high) == pytest.approx(
        (-found.estimate, -found.high, -found.low)
    )
    assert found.high - found.estimate != pytest.approx(found.estimate - found.low)
    alone, both = (corrected_sum(noise, [9], [1], 0.95, total) for total in (None, 9))
    asymmetry = [2 * one.estimate - one.low - one.high for one in (alone, both)]
    assert asymmetry[0] != pytest.approx(0)
    assert asymmetry[1] == pytest.approx(asymmetry[0])


def test_sixty_sparse_cells_with_negatives_as_zero_are_covered_with_their_level() -> None:
    hits, width = coverage(CLIPPED, SPARSE, 1000, 1)
    assert least(1000) <= hits <= 0.99
    assert width < 1.3 * 2 * 1.96 * np.sqrt(60 * CLIPPED.change.variance)


def test_a_wrong_scale_of_the_noise_is_not_covered() -> None:
    wrong = PublishedLaw(truncated_laplace("1", 7), Publishing(Negatives.ZERO))
    published = drawn_published(CLIPPED, np.tile(SPARSE, (300, 1)), np.random.default_rng(2))
    found = [infer_sum(wrong, x, [1] * 60, 0.95).interval for x in published.tolist()]
    assert np.mean([one.low <= SPARSE.sum() <= one.high for one in found]) < 0.6


@pytest.mark.parametrize("occupied", [0, 1, 3])
@pytest.mark.parametrize("value", few([1, 2], 0))
def test_a_few_occupied_cells_among_empty_ones_are_covered(occupied: int, value: int) -> None:
    true = np.zeros(60, dtype=np.int64)
    true[:occupied] = value
    for noise in (CELL_KEY, LAWS["Laplace, negatives zero, zeros kept"]):
        assert coverage(noise, true, 400, 3)[0] >= least(400)


def test_levels_weights_and_a_published_total_are_covered() -> None:
    true, weights = np.array([0, 3, 1, 0, 12, 7, 0, 2, 25, 1]), [1, 1, -1, 2, 1, -1, 1, 1, 1, 3]
    published = drawn_published(CLIPPED, np.tile(true, (400, 1)), np.random.default_rng(4))
    wanted = int(true @ weights)
    for level in (0.8, 0.99):
        found = [infer_sum(CLIPPED, x, weights, level).interval for x in published.tolist()]
        assert np.mean([one.low <= wanted <= one.high for one in found]) >= least(400, level)
    totals = drawn_published(CLIPPED, np.full(400, true.sum()), np.random.default_rng(5)).tolist()
    helped = [
        infer_sum(CLIPPED, x, [1] * 10, 0.95, total=own).interval
        for x, own in zip(published.tolist(), totals, strict=True)
        if own > 20
    ]
    assert np.mean([one.low <= true.sum() <= one.high for one in helped]) >= least(400)
    assert np.mean([one.high - one.low for one in helped]) < 2 * 1.96 * np.sqrt(CLIPPED.change.variance) + 2


def test_an_interval_contains_only_possible_sums() -> None:
    found = infer_sum(CELL_KEY, [0] * 30, [1] * 30, 0.95)
    assert found.method is SumMethod.CORRECTED
    assert found.interval.low == 0
    assert infer_sum(CELL_KEY, [1, 1], [1, 1], 0.95).interval.low == 2
    assert infer_sum(CLIPPED, [4], [1], 0.95).interval == Interval(0, 9, 0.95)


@pytest.mark.long
@pytest.mark.parametrize("noise", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("cells", [2, 5, 20, 60, 250])
def test_totals_are_covered_from_empty_to_full(noise: PublishedLaw, cells: int) -> None:
    for occupied in sorted({0, 1, 2, cells // 4, cells}):
        for value in (1, 2, 3, 5, 8, 15, 100):
            true = np.zeros(cells, dtype=np.int64)
            true[: min(occupied, cells)] = value
            assert coverage(noise, true, 1000, value)[0] >= least(1000)
