"""Proportions with a noisy whole: guaranteed coverage by enumeration, edges, and wide noise."""

import numpy as np
import pytest

from discreet.errors import Mistakes
from discreet.maths.inference.intervals import exact_interval
from discreet.maths.inference.proportion import infer_proportion
from discreet.maths.noise.additive import discrete_laplace, truncated_laplace
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.maths.noise.publishing import NO_NOISE, Negatives, PublishedLaw, Publishing
from tests.cases import few

LAWS = {
    "Laplace": PublishedLaw(truncated_laplace(1, 3)),
    "negatives zero": PublishedLaw(truncated_laplace(1, 3), Publishing(Negatives.ZERO)),
    "threshold": PublishedLaw(truncated_laplace(1, 3), Publishing(Negatives.ZERO, threshold=2)),
    "rounding": PublishedLaw(truncated_laplace(1, 3), Publishing(rounding=3)),
    "cell key": PublishedLaw(PTableLaw(solve(PTableParameters(3, 1.0, 0)))),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("part", "whole"), few([(0, 6), (1, 1), (3, 8), (8, 8), (5, 30)], 0, 1, 2))
def test_the_true_proportion_is_inside_with_its_level_whatever_the_counts(
    law: str, part: int, whole: int
) -> None:
    """Enumerated over everything that can be published, not simulated."""
    noise, covered = LAWS[law], 0.0
    of_part, of_whole = noise.row(part), noise.row(whole)
    for x, p_x in zip(of_part.values.tolist(), of_part.p, strict=True):
        for y, p_y in zip(of_whole.values.tolist(), of_whole.p, strict=True):
            if not p_x * p_y:
                continue
            try:
                found = infer_proportion(noise, noise, x, y, 0.9)
            except Mistakes:
                continue
            covered += p_x * p_y * (found.low - 1e-9 <= part / whole <= found.high + 1e-9)
    assert covered >= 0.9 - 2e-6


def test_without_noise_it_is_the_proportion() -> None:
    found = infer_proportion(NO_NOISE, NO_NOISE, 3, 12, 0.95)
    assert (found.low, found.estimate, found.high, found.is_exact) == (0.25, 0.25, 0.25, True)


def test_a_whole_without_noise_has_the_interval_of_the_part() -> None:
    noise = PublishedLaw(truncated_laplace("0.5", 7))
    found = infer_proportion(noise, NO_NOISE, 30, 120, 0.95)
    both = infer_proportion(noise, noise, 30, 120, 0.95)
    alone = exact_interval(noise, 30, 0.95)
    assert (found.low, found.high) == (alone.low / 120, alone.high / 120)
    assert found.high - found.low <= both.high - both.low


def test_more_level_is_a_wider_interval_and_shares_stay_between_0_and_1() -> None:
    noise = LAWS["cell key"]
    widths = []
    for level in (0.5, 0.8, 0.95, 0.99):
        found = infer_proportion(noise, noise, 19, 20, level)
        assert 0 <= found.low <= found.estimate <= found.high <= 1
        widths.append(found.high - found.low)
    assert widths == sorted(widths)
    assert infer_proportion(noise, noise, 21, 20, 0.95).high == 1


def test_wide_noise_is_tested_in_steps_and_agrees_with_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = PublishedLaw(discrete_laplace("0.5"))
    pairs = infer_proportion(noise, noise, 300, 1000, 0.95)
    monkeypatch.setattr("discreet.maths.inference.proportion.MOST_PAIRS", 10)
    steps = infer_proportion(noise, noise, 300, 1000, 0.95)
    assert steps.is_exact
    assert np.allclose([steps.low, steps.high], [pairs.low, pairs.high], atol=1 / 1000)
    hidden = PublishedLaw(discrete_laplace("0.5"), Publishing(Negatives.ZERO))
    normal = infer_proportion(hidden, hidden, 5, 1000, 0.95)
    assert not normal.is_exact
    assert 0 <= normal.low <= 0.005 <= normal.high <= 0.02


@pytest.mark.parametrize(("part", "whole"), [(40, 20), (0, -3)])
def test_a_part_that_does_not_fit_is_refused(part: int, whole: int) -> None:
    noise = LAWS["Laplace"]
    with pytest.raises(Mistakes, match="the part cannot be inside such a whole"):
        infer_proportion(noise, noise, part, whole, 0.95)
