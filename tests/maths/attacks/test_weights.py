"""Which counts a weighted sum leaves possible: against every vector of whole weights."""

from itertools import combinations_with_replacement

import numpy as np
import pytest

from discreet.maths.attacks.weights import leaves_possible, possible_counts
from tests.cases import few

ROUNDING = 0.05


def by_force(n: int, count: int, total: float, reach: float, heaviest: int) -> bool:
    """Whether some weights of n records could have been published as this count and sum."""
    for weights in combinations_with_replacement(range(1, heaviest + 1), n):
        core = count * sum(weights) / n
        if abs(core - total) <= min(reach * weights[-1], core) + ROUNDING:
            return True
    return False


@pytest.mark.parametrize("reach", few([0.0, 0.4, 2.45], 1, 2))
def test_a_count_is_possible_where_some_weights_are(reach: float) -> None:
    draw = np.random.default_rng(1)
    totals = np.round(draw.uniform(0.1, 24, 40), 1)
    outcomes = set()
    for n in (1, 2, 3):
        for count in (1, 2, 3, 5, 8):
            counts = np.full(len(totals), count)
            found = leaves_possible(n, counts, totals, reach=reach, rounding=ROUNDING)
            heaviest = 90 if n < 3 else 40
            wanted = [by_force(n, count, total, reach, heaviest) for total in totals.tolist()]
            assert found.tolist() == wanted, (n, count)
            outcomes |= set(wanted)
    assert outcomes == {True, False}


def test_a_mean_of_thirds_shows_a_multiple_of_three_where_it_is_exact() -> None:
    counts, sums = np.array([4]), np.array([round(4 * 7 / 3, 1)])
    every = np.ones((1, 11), dtype=bool)  # changes of -5 to 5
    exact = possible_counts(counts, sums, every, 5, reach=0.0, rounding=ROUNDING)
    left = sorted(4 + 5 - int(k) for k in np.flatnonzero(exact[0]))
    assert left == [3, 6, 9]
    noisy = possible_counts(counts, sums, every, 5, reach=2.45, rounding=ROUNDING)
    assert sorted(4 + 5 - int(k) for k in np.flatnonzero(noisy[0])) == list(range(1, 10))


def test_no_published_pair_leaves_one_count_only() -> None:
    """Whatever sum is published beside a count, at least two true counts stay possible."""
    sums = np.round(np.concatenate([np.arange(0.1, 60, 0.1), np.geomspace(60, 20_000, 500)]), 1)
    for count in range(1, 31):
        counts = np.full(len(sums), count)
        changes = np.ones((len(sums), 11), dtype=bool)
        left = possible_counts(counts, sums, changes, 5, reach=2.45, rounding=ROUNDING)
        published = sums <= 1000 * count  # a sum that some weights can have
        assert (left[published].sum(axis=1) >= 2).all()
