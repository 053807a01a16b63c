"""Noise below any protection: the chance that a small published count is the true one."""

import numpy as np
import pytest

from discreet.maths.attacks.weak import MOST_TRUE, TrueCount, surest_small_count
from discreet.maths.noise.additive import discrete_laplace
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.maths.noise.publishing import UNCHANGED, Negatives, PublishedLaw, Publishing, written_law


def of(D: int, V: float, js: int = 0) -> TrueCount:
    return surest_small_count(PublishedLaw(PTableLaw(solve(PTableParameters(D, V, js))), UNCHANGED, True))


def test_the_chance_is_that_of_drawn_counts() -> None:
    table = solve(PTableParameters(3, 1.0))
    generator = np.random.default_rng(1)
    true = generator.integers(0, 50, 400_000)
    shown = np.zeros_like(true)
    for count in range(1, 50):
        here = np.flatnonzero(true == count)
        row = min(count, table.last_row)
        law = table.probabilities[row] / table.probabilities[row].sum()
        shown[here] = count + generator.choice(table.changes(row), len(here), p=law)
    found = of(3, 1.0)
    assert (true[shown == found.published] == found.published).mean() == pytest.approx(found.chance, abs=0.02)


@pytest.mark.parametrize(
    ("V", "is_weak"), [(0.0001, True), (0.1, True), (0.17, True), (0.2, False), (2.0, False)]
)
def test_a_variance_below_about_a_fifth_is_weak(V: float, is_weak: bool) -> None:
    assert (of(5, V).chance > MOST_TRUE) is is_weak


def test_geometric_noise_is_weak_where_nine_of_ten_counts_are_unchanged() -> None:
    for epsilon in (0.5, 2.0, 2.9, 3.0, 10.0, 50.0):
        found = surest_small_count(PublishedLaw(discrete_laplace(epsilon)))
        a = np.exp(-epsilon)
        # counts below zero do not exist, so that a published 3 has fewer origins than noise has values
        assert found.chance == pytest.approx((1 - a) / (1 + a), abs=0.5 * a)
        assert (found.chance > MOST_TRUE) is (epsilon > 2.95)


def test_rounding_without_noise_leaves_doubt_and_a_table_that_changes_nothing_leaves_none() -> None:
    nothing = written_law([{0: 1.0}])
    assert surest_small_count(PublishedLaw(nothing, UNCHANGED, True)).chance == pytest.approx(1)
    rounded = PublishedLaw(nothing, Publishing(Negatives.ZERO, rounding=5))
    found = surest_small_count(rounded)
    assert found.published in (5, 10, 15)
    assert found.chance == pytest.approx(0.2)


def test_counts_that_are_never_published_are_not_judged() -> None:
    assert of(5, 3.0, js=2).published >= 3
