import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import Mistakes
from discreet.maths.attacks.bounds import (
    LARGEST_BOUND,
    epsilon_of_bound,
    epsilon_of_reconstruction,
    exceeds_geometric,
    exceeds_laplace,
    maximum_entropy,
    pinned,
    pinned_small,
    revealed,
    reveals,
    tuples_needed,
)
from discreet.maths.noise.additive import discrete_laplace, uniform
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.ptable_solver import PTableParameters, solve


@pytest.mark.parametrize("bound", [1, 2, 5, 10])
def test_uniform_noise_shows_its_bound(bound: int) -> None:
    """Footnote 14: p1 = 20 / (2E+1)^3."""
    assert reveals(uniform(bound).pmf, bound) == pytest.approx(20 / (2 * bound + 1) ** 3, rel=1e-12)


def test_maximum_entropy_hides_it() -> None:
    p1 = reveals(maximum_entropy(2, 5), 5)
    assert p1 == pytest.approx(1.52e-7, rel=2e-3)
    assert tuples_needed(p1, 0.68) == 7488040
    assert revealed(p1, 7488040) == pytest.approx(0.68, abs=1e-6)


def test_tails_far_below_the_digits_of_one_are_exact() -> None:
    noise = maximum_entropy(2, 10)
    exact = [Fraction(float(p)) for p in noise.p]
    triples = itertools.product(range(21), repeat=3)
    wanted = sum(exact[f] * exact[m] * exact[t] for f, m, t in triples if abs(f + m - t - 10) > 27)
    assert wanted < 1e-29
    assert reveals(noise, 10) == pytest.approx(float(wanted), rel=1e-12)
    assert tuples_needed(reveals(noise, 10), 0.68) > 1e29


@given(st.floats(0.05, 200), st.integers(1, 12))
def test_the_law_has_the_variance_asked_for_or_is_uniform(variance: float, bound: int) -> None:
    noise, most = maximum_entropy(variance, bound), bound * (bound + 1) / 3
    assert noise.variance == pytest.approx(min(variance, most), rel=1e-9)
    if variance >= most:
        assert np.allclose(noise.p, 1 / (2 * bound + 1))


def test_it_is_the_last_row_of_the_solved_table() -> None:
    row = PTableLaw(solve(PTableParameters(5, 2.0))).row(100).shifted(-100)
    assert np.allclose(row.p, maximum_entropy(2, 5).p, atol=1e-8)


@pytest.mark.parametrize(
    ("variance", "bound"), [(0, 5), (-1, 5), (math.inf, 5), (math.nan, 5), (2, 0), (2, 10**6)]
)
def test_impossible_noise_is_refused(variance: float, bound: int) -> None:
    with pytest.raises(Mistakes):
        maximum_entropy(variance, bound)


def test_large_counts_are_pinned_by_the_extreme_noise_alone() -> None:
    """F = 3, M = 2, T = 11 with E = 2 can only be 5, 4 and 9: all parts -E, the total +E."""
    assert pinned(uniform(2).pmf) == pytest.approx(2 / 5**3)
    noise = maximum_entropy(2, 5)
    assert pinned(noise) == pytest.approx(2 * float(noise.p[0]) ** 3)
    assert pinned(noise, categories=3) == pytest.approx(2 * float(noise.p[0]) ** 4)


def test_small_counts_are_pinned_by_more_patterns() -> None:
    """All published triples by brute force, with M and T alike beside an empty F."""
    law, reach = PTableLaw(solve(PTableParameters(2, 1.0))), 2
    p = {
        count: dict(zip(law.row(count).values.tolist(), law.row(count).p.tolist(), strict=True))
        for count in range(40)
    }

    def chance(f: int, m: int, published: tuple[int, int, int]) -> float:
        j, k, total = published
        parts = float(p[f].get(j, 0.0) * p[m].get(k, 0.0))
        if f == 0 or m == 0:
            return parts * (total == (k if f == 0 else j))
        return parts * float(p[f + m].get(total, 0.0))

    for one in pinned_small(law.row, reach, 3):
        found = 0.0
        for published in itertools.product(p[one.first], p[one.second], p[one.first + one.second]):
            pairs = itertools.product(range(12), repeat=2)
            if sum(chance(f, m, published) > 0 for f, m in pairs) == 1:
                found += chance(one.first, one.second, published)
        assert one.probability == pytest.approx(found, rel=1e-9, abs=1e-15)


def test_counts_beyond_the_bound_are_pinned_as_large_ones_are() -> None:
    law = PTableLaw(solve(PTableParameters(3, 2.0)))
    last = pinned_small(law.row, 3, 7)[-1]
    assert (last.first, last.second) == (7, 7)
    assert last.probability == pytest.approx(pinned(law.row(50)), rel=1e-6)


def test_probable_bounds_of_unbounded_noise() -> None:
    found = [epsilon_of_bound(20, counts, 0.68) for counts in (1.1e5, 3.7e4, 68)]
    assert found == pytest.approx([0.637, 0.583, 0.268], abs=5e-4)
    assert exceeds_laplace(0.1, 40) == pytest.approx(0.0183, abs=5e-5)
    law = discrete_laplace(0.3).pmf
    assert exceeds_geometric(0.3, 7) == pytest.approx(2 * law.tail(8), rel=1e-9)


def test_the_threshold_of_reconstruction() -> None:
    assert epsilon_of_reconstruction(1e6, 0.99) == pytest.approx(0.0237, abs=5e-5)


def test_one_tuple_is_needed_where_every_tuple_reveals() -> None:
    assert tuples_needed(1.0, 0.95) == 1


def test_the_largest_bound_is_allowed_and_no_larger_one() -> None:
    assert maximum_entropy(2.0, LARGEST_BOUND).last == LARGEST_BOUND == 1000
    with pytest.raises(Mistakes, match="1 to 1000"):
        maximum_entropy(2.0, 1001)
