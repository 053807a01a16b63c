"""Two p-tables under one secret: joint laws by enumeration, and estimates of a law that nothing is known of."""

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet.maths.attacks.ptable_change import (
    Intervals,
    NoiseAndDifference,
    chance_alone,
    chance_together,
    estimated_joint,
    known_joint,
    same_key,
    unrelated_keys,
    widest_noise,
)
from discreet.maths.cells.lookup import KEYS, Lookup, Order, build, change
from discreet.maths.cells.permutation import no_permutation
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.perturb.cell_key import CellKeyMechanism

TUPLES = 60_000
SPAN = 15


def lookup(D: int, V: float, order: Order = Order.PLAIN) -> Lookup:
    return build(solve(PTableParameters(D, V)), order, None if order is Order.PLAIN else bytes([3]) * 32)


def row(found: Lookup) -> Intervals:
    return CellKeyMechanism(found, no_permutation(found.modulus)).large


def test_one_key_in_two_small_tables_by_enumeration() -> None:
    first, second = [(-1, 3), (0, 4), (1, 1)], [(-2, 1), (0, 1), (2, 2)]
    expected: dict[tuple[int, int], float] = {}
    one = [change for change, length in first for _ in range(length)]
    two = [change for change, length in second for _ in range(2 * length)]
    for place in zip(one, two, strict=True):
        expected[place] = expected.get(place, 0.0) + 1 / 8
    assert same_key(first, second) == pytest.approx(expected)
    free = unrelated_keys(first, second)
    assert free[0, 2] == pytest.approx(4 / 8 * 2 / 4)
    assert sum(free.values()) == pytest.approx(1)
    assert chance_alone(first) == 0.5
    # d = -1: (-1, -2); 1: (-1, 0) or (1, 2); 0: (0, 0); 2: (0, 2)
    assert chance_together(expected) == pytest.approx((2 + 1 + 1 + 3) / 8)


def test_the_same_table_twice_reveals_nothing() -> None:
    one = row(lookup(5, 2.0))
    assert chance_together(same_key(one, one)) == pytest.approx(chance_alone(one))
    assert chance_together(unrelated_keys(one, one)) > chance_alone(one) + 0.09


@pytest.mark.parametrize(
    ("second", "together", "unrelated"),
    [((6, 2.0), 0.282, 0.375), ((4, 2.0), 0.283, 0.375), ((5, 2.1), 0.287, 0.373), ((5, 3.0), 0.333, 0.352),
     ((5, 1.0), 0.446, 0.463), ((10, 5.0), 0.444, 0.324)],
)  # fmt: skip
def test_the_chances_are_those_of_the_decision(
    second: tuple[int, float], together: float, unrelated: float
) -> None:
    rows = row(lookup(5, 2.0)), row(lookup(*second))
    assert chance_together(same_key(*rows)) == pytest.approx(together, abs=6e-4)
    assert chance_together(unrelated_keys(*rows)) == pytest.approx(unrelated, abs=6e-4)


def tuples(
    first: Lookup, second: Lookup, adds_up: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Noises of the first release, differences, and the lines that an outsider sees: (3, tuple), .., lines."""
    generator = np.random.default_rng(2)
    keys = generator.integers(0, KEYS, (3, TUPLES), dtype=np.uint32)
    if adds_up:
        keys[2] = keys[0] + keys[1]
    counts = np.full(TUPLES, 1000)
    noises = np.array([change(first, counts, key) for key in keys])
    apart = np.array([change(second, counts, key) for key in keys]) - noises
    lines = np.column_stack([np.sort(apart[:2], axis=0).T, apart[2], noises[0] + noises[1] - noises[2]])
    kinds, many = np.unique(lines, axis=0, return_counts=True)
    return noises, apart, np.column_stack([kinds, many]).astype(np.int64)


def realised(joint: NoiseAndDifference, noises: NDArray[np.int64], apart: NDArray[np.int64]) -> float:
    return float((joint.guesses[apart + joint.span] == noises).mean())


@pytest.mark.parametrize(
    ("second", "order", "adds_up"),
    [
        ((6, 2.0), Order.SHUFFLED, True),
        ((5, 1.0), Order.SHUFFLED, True),
        ((5, 1.0), Order.PLAIN, True),
        ((5, 1.0), Order.PLAIN, False),
        ((6, 2.0), Order.PLAIN, False),
    ],
)
def test_an_outsider_who_knows_nothing_guesses_as_well_as_one_who_knows_both_tables(
    second: tuple[int, float], order: Order, adds_up: bool
) -> None:
    first, other = lookup(5, 2.0, order), lookup(*second, order)
    noises, apart, seen = tuples(first, other, adds_up)
    best = known_joint(same_key(row(first), row(other)), SPAN)
    assert realised(best, noises, apart) == pytest.approx(best.together, abs=0.01)
    differences = np.bincount((apart + SPAN).ravel(), minlength=2 * SPAN + 1)
    found = estimated_joint(seen, differences, widest_noise(seen))
    assert realised(found, noises, apart) == pytest.approx(best.together, abs=0.02)
    assert found.together == pytest.approx(best.together, abs=0.04)
    assert found.alone == pytest.approx(best.alone, abs=0.04)


def test_shuffled_intervals_were_broken_and_plain_order_with_one_permutation_is_not() -> None:
    shuffled = [lookup(5, 2.0, Order.SHUFFLED), lookup(6, 2.0, Order.SHUFFLED)]
    assert chance_together(same_key(*map(row, shuffled))) > 0.7
    assert chance_together(same_key(row(lookup(5, 2.0)), row(lookup(6, 2.0)))) < 0.29
