"""The bound of what answers tell never exceeds what least squares finds, for any tables, filters and groups."""

from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import product

import numpy as np
import pytest

from discreet.maths.attacks.information import (
    FEWEST,
    Floats,
    Integers,
    Ladder,
    Side,
    at_least,
    exact,
    information,
    least_variances,
    rarely_exact,
    seen,
    seen_groups,
    seen_of_parts,
    side,
    with_sets,
)
from tests.cases import few

MANY = 1e15  # records: no count is small
TREES = (
    (np.zeros(2, dtype=np.int64), np.arange(2)),
    (np.zeros(3, dtype=np.int64), np.arange(3)),
    (np.zeros(5, dtype=np.int64), np.array([0, 0, 1, 1, 1]), np.arange(5)),
    (
        np.zeros(6, dtype=np.int64),
        np.array([0, 0, 1, 1, 1, 2]),
        np.arange(6),
    ),  # a leaf that ends above the others
)


def ladder(tree: int, rng: np.random.Generator) -> Ladder:
    return Ladder(TREES[tree], rng.random(len(TREES[tree][0])) + 0.1)


def indicators(rows: Integers) -> Floats:
    return np.array([rows == row for row in np.unique(rows[rows >= 0])], dtype=np.float64)


def one_side(name: str, of: Ladder, rng: np.random.Generator, kind: int) -> tuple[Side, int, Floats]:
    """A variable of a random cross-tabulation: its side, its depth, and its rows of A."""
    leaves = len(of.sizes)
    inside = rng.random(leaves) < 0.5 if kind >= 1 and rng.random() < 0.4 else np.ones(leaves, dtype=bool)
    inside[0] |= not inside.any()
    if kind == 2 and rng.random() < 0.4:
        groups = np.where(inside, rng.integers(0, 3, leaves), -1)
        groups = np.where(inside, np.unique(groups[inside], return_inverse=True)[1].max() + 1 - groups, -1)
        groups[inside] = np.unique(groups[inside], return_inverse=True)[1]
        rows: tuple[Integers, ...] = (np.where(inside, 0, -1), groups)
        made = side(name, of, [seen(of, 0, inside), seen_groups(of, groups)])
    else:
        rows = tuple(np.where(inside, level, -1) for level in of.levels)
        made = side(name, of, [seen(of, depth, inside) for depth in range(len(of.levels))])
    depth = int(rng.integers(len(rows)))
    return made, depth, indicators(rows[depth])


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """The best linear estimates from the rows of A."""

    A: Floats

    @cached_property
    def inverse(self) -> Floats:
        return np.asarray(np.linalg.pinv(self.A.T @ self.A, rcond=1e-10), dtype=np.float64)

    def variances(self, targets: Floats) -> Floats:
        """Of the estimate of each target; infinite where it cannot be estimated."""
        weights = targets @ self.inverse
        found = (weights * targets).sum(axis=1)
        is_known = np.abs(weights @ (self.A.T @ self.A) - targets).max(axis=1) < 1e-6
        return np.where(is_known, found, np.inf)


def kron(parts: list[Floats]) -> Floats:
    return reduce(lambda one, other: np.asarray(np.kron(one, other), dtype=np.float64), parts)


@pytest.mark.parametrize("kind", few([0, 1, 2], 2), ids=["tables", "filters", "groups"])
def test_least_squares_never_beats_the_bound(kind: int) -> None:
    rng = np.random.default_rng(20 + kind)
    ratios: list[float] = []
    for _ in range(20):
        ladders = [ladder(int(tree), rng) for tree in (0, 2 + rng.integers(2), rng.integers(4))]
        plain, bounded = np.zeros(()), np.zeros(())
        rows: list[Floats] = []
        for _ in range(rng.integers(1, 25)):
            made = [one_side(str(k), one, rng, kind) for k, one in enumerate(ladders)]
            new = np.zeros([len(one.inside) for one, _, _ in made])
            new[tuple(depth for _, depth, _ in made)] = 1
            more = information([one for one, _, _ in made], new, MANY)
            plain, bounded = plain + more[0], bounded + more[1]
            rows.append(kron([part for _, _, part in made]))
        exactly = LeastSquares(np.vstack(rows))
        sides = [side("", one) for one in ladders]
        bound = least_variances(plain, bounded, sides)
        assert (at_least(bounded, sides) <= bound).all()
        for depths in product(*(range(len(one.levels)) for one in ladders)):
            nodes = [
                indicators(one.levels[d])[np.unique(one.levels[d][(one.rests[d] > 0) | (d == 0)])]
                for one, d in zip(ladders, depths, strict=True)
            ]
            best = float(exactly.variances(kron(nodes)).min())
            assert bound[depths] <= best * (1 + 1e-9) or bound[depths] == np.inf == best
            ratios += [bound[depths] / best] if np.isfinite(best) else []
    assert len(ratios) > 60
    assert np.median(ratios) > (0.85, 0.45, 0.45)[kind], "not far below it either"


def test_a_full_table_of_even_codes_has_exactly_this_variance() -> None:
    ladders = [Ladder((np.zeros(k, dtype=np.int64), np.arange(k)), np.ones(k)) for k in (2, 3, 4)]
    sides = [
        side("", one, [seen(one, depth, np.ones(len(one.sizes), dtype=bool)) for depth in (0, 1)])
        for one in ladders
    ]
    bound = least_variances(*information(sides, np.ones((2, 2, 2)), MANY), sides)
    rows = [
        kron([indicators(one.levels[depth]) for one, depth in zip(ladders, depths, strict=True)])
        for depths in product((0, 1), repeat=3)
    ]
    exactly = LeastSquares(np.vstack(rows))
    for depths, targets in zip(product((0, 1), repeat=3), rows, strict=True):
        assert bound[depths] == pytest.approx(float(exactly.variances(targets).min()))


def test_pairs_of_opposite_filters_count_as_half_a_count_each() -> None:
    """The attack: sums over S and over the others, S random; n pairs have n/2 of the information of one count."""
    rng = np.random.default_rng(4)
    ages = Ladder((np.zeros(100, dtype=np.int64), np.arange(100)), np.ones(100))
    for pairs in (1, 10, 100):
        total = 0.0
        for _ in range(pairs):
            some = rng.permutation(100) < 50
            for inside in (some, ~some):
                total += seen(ages, 0, inside).plain[0]
        assert total == pytest.approx(pairs / 2)


def test_a_filter_says_nothing_of_contrasts_inside_what_it_takes_whole() -> None:
    tree = Ladder(TREES[2], np.ones(5))
    found = seen(tree, 0, np.array([True, True, False, False, False]))
    assert found.plain[0] == pytest.approx(1 / 4)
    assert found.plain[1] == pytest.approx(1.0)
    assert found.plain[2] == 0.0


def test_a_small_count_is_in_few_cells() -> None:
    """A count of n people that 1,000 codes divide is in at most n cells, whose sum tells 1/n at least."""
    one = Ladder((np.zeros(1000, dtype=np.int64), np.arange(1000)), np.ones(1000))
    axis = side("", one, [seen(one, depth, np.ones(1000, dtype=bool)) for depth in (0, 1)])
    new = np.array([0.0, 1.0])
    for records in (1, 10, 100, 10**9):
        plain, _ = information([axis], new, records)
        assert plain[0] == pytest.approx(1 / 1000 + (1 - 1 / 1000) / max(records, FEWEST))


def test_sets_of_a_user_are_counts_of_their_own() -> None:
    one = Ladder((np.zeros(10, dtype=np.int64), np.arange(10)), np.ones(10))
    inside = np.arange(10) < 4
    parts = inside.astype(np.int64)
    rows = np.where(inside, 0, -1)
    assert seen_of_parts(one.weights, parts, rows) == pytest.approx(1.0)
    assert seen_of_parts(one.weights, parts, np.zeros(10, dtype=np.int64)) == pytest.approx(0.0)
    assert seen_of_parts(one.weights, parts, np.full(10, -1)) == 0.0
    made = with_sets(side("", one, [seen(one, 0, inside)]), [1.0], 0.4)
    plain, bounded = information([made], np.ones(1), MANY)
    assert least_variances(5 * plain, 5 * bounded, [made])[-1] == pytest.approx(1 / 5)


def test_the_probability_is_that_of_the_gates() -> None:
    assert exact(np.array([np.inf, 0.5496 / 2]), 2.0) == pytest.approx([0.0, 0.5], abs=1e-4)


def test_what_users_who_pool_have_together() -> None:
    """The sums of users add up: as much of each is k times as much, and 0.5 becomes 0.66, 0.82 and 0.97."""
    one = Ladder((np.zeros(4, dtype=np.int64), np.arange(4)), np.ones(4))
    axis = side("", one, [seen(one, depth, np.ones(4, dtype=bool)) for depth in (0, 1)])
    plain, bounded = information([axis], np.ones(2), MANY)
    alone = least_variances(plain, bounded, [axis])
    for users, success in ((2, 0.66), (4, 0.82), (10, 0.97)):
        together = least_variances(users * plain, users * bounded, [axis])
        assert together == pytest.approx(alone / users)
        assert exact(np.array([0.5496 / users]), 1.0) == pytest.approx([success], abs=0.005)


@pytest.mark.parametrize("variance", [0.3, 2.0, 50.0])
@pytest.mark.parametrize("chance", [1e-6, 0.01, 0.34, 0.5, 0.75, 0.999999])
def test_from_a_least_variance_on_counts_are_rarely_exact(chance: float, variance: float) -> None:
    """Never more often than declared, and there is no smaller one but for rounding."""
    least = rarely_exact(chance, variance)
    assert exact(np.array(least), variance) <= chance
    assert exact(np.array(least * (1 - 1e-6)), variance) > chance


def test_without_noise_or_limit_every_count_may_be_exact() -> None:
    assert rarely_exact(0.5, 0.0) == np.inf
    assert rarely_exact(0.0, 2.0) == np.inf
    assert rarely_exact(1.0, 2.0) == 0
