from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import Mistakes, UncoveredCount
from discreet.maths.cells import lookup
from discreet.maths.cells.lookup import (
    KEYS,
    UNCOVERED,
    Lookup,
    Order,
    apportion,
    build,
    change,
    change_of,
    keyed_permutation,
    law_of,
    lookup_of_matrix,
    lookup_of_rows,
    matrix_of,
)
from discreet.maths.noise.ptable import PTable, ptable_of_rows
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from tests.cases import few

KEY = bytes(range(32))
TABLE = solve(PTableParameters(D=5, V=3, js=2))


def total(lookup: Lookup, row: int) -> int:
    return sum(lookup.lengths(row).values())


@settings(max_examples=25, deadline=None)
@given(
    D=st.integers(1, 8),
    V=st.floats(0.2, 5),
    modulus=st.sampled_from([256, 4096, 65536, KEYS]),
    key=st.binary(min_size=32, max_size=32),
)
def test_thresholds_sum_exactly_and_every_order_has_the_same_law(
    D: int, V: float, modulus: int, key: bytes
) -> None:
    table = solve(PTableParameters(D=D, V=V))
    plain = build(table, Order.PLAIN, modulus=modulus)
    others = [build(table, order, key, modulus) for order in (Order.SPLIT, Order.SHUFFLED)]
    for row in range(table.last_row + 1):
        assert total(plain, row) == modulus
        assert plain.upper[plain.offsets[row + 1] - 1] == modulus
        assert (np.diff(plain.upper[plain.offsets[row] : plain.offsets[row + 1]].astype(np.int64)) > 0).all()
        assert sum(v * n for v, n in plain.lengths(row).items()) == 0
        assert all(other.lengths(row) == plain.lengths(row) for other in others)


def test_lengths_are_the_probabilities_to_a_few_keys() -> None:
    lookup = build(TABLE, Order.PLAIN)
    for row in range(TABLE.last_row + 1):
        wanted = dict(zip(TABLE.changes(row).tolist(), TABLE.probabilities[row], strict=True))
        for v, keys in lookup.lengths(row).items():
            assert abs(keys - wanted[v] * KEYS) < 6


def test_plain_order_ascends_and_shuffled_does_not() -> None:
    plain, shuffled = build(TABLE, Order.PLAIN), build(TABLE, Order.SHUFFLED, KEY)
    last = slice(plain.offsets[-2], plain.offsets[-1])
    assert plain.change[last].tolist() == sorted(plain.change[last].tolist())
    assert shuffled.change[last].tolist() != sorted(shuffled.change[last].tolist())
    again = build(TABLE, Order.SHUFFLED, KEY)
    assert (again.upper == shuffled.upper).all()
    assert (again.change == shuffled.change).all()
    other = build(TABLE, Order.SHUFFLED, bytes(32))
    assert (other.change != shuffled.change).any()


def test_split_intervals_hold_at_most_a_fifth_of_the_keys() -> None:
    split = build(TABLE, Order.SPLIT, KEY)
    lower = np.concatenate([[0], split.upper[:-1]]).astype(np.int64)
    lower[split.offsets[:-1]] = 0
    assert (split.upper.astype(np.int64) - lower).max() <= KEYS // 5 + 1
    assert len(split.upper) > len(build(TABLE, Order.PLAIN).upper)


def test_the_shuffle_is_the_same_on_every_platform() -> None:
    """These values must never change: a release made before would not be reproducible."""
    assert keyed_permutation(10, KEY, 3) == [1, 2, 7, 6, 4, 5, 8, 0, 9, 3]
    assert sorted(keyed_permutation(50, KEY, 0)) == list(range(50))


def test_the_shuffle_is_uniform() -> None:
    orders = [tuple(keyed_permutation(3, KEY, row)) for row in range(6000)]
    counts = np.unique(np.array(orders), axis=0, return_counts=True)[1]
    assert len(counts) == 6
    assert ((counts - 1000) ** 2 / 1000).sum() < 25.7  # chi-square with 5 degrees, 1 in 10,000


@settings(max_examples=60, deadline=None)
@given(count=st.integers(0, 10**9), key=st.integers(0, KEYS - 1), order=st.sampled_from(list(Order)))
def test_lookup_is_the_first_interval_whose_bound_exceeds_the_key(count: int, key: int, order: Order) -> None:
    lookup = LOOKUPS[order]
    row = min(count, TABLE.last_row)
    upper = lookup.upper[lookup.offsets[row] : lookup.offsets[row + 1]]
    expected = lookup.change[lookup.offsets[row] + np.flatnonzero(upper > np.uint64(key))[0]]
    assert change(lookup, [count], [key])[0] == expected
    assert change_of(np.int64(count), np.uint32(key), *lookup.arrays) == expected


LOOKUPS = {order: build(TABLE, order, None if order is Order.PLAIN else KEY) for order in Order}


def test_drawn_changes_follow_the_table() -> None:
    rng = np.random.default_rng(5)
    keys = rng.integers(0, KEYS, 400_000, dtype=np.uint32)
    for count in (0, 1, 4, 50):
        row = TABLE.row_of(count)
        drawn = change(LOOKUPS[Order.SHUFFLED], np.full(len(keys), count), keys)
        share = {v: float((drawn == v).mean()) for v in set(drawn.tolist())}
        for v, p in zip(TABLE.changes(row).tolist(), TABLE.probabilities[row], strict=True):
            assert abs(share.get(v, 0.0) - p) < 5 * np.sqrt(p * (1 - p) / len(keys)) + 1e-9
        published = count + drawn
        assert ((published == 0) | (published > 2)).all()


def test_shapes_are_kept() -> None:
    assert change(LOOKUPS[Order.PLAIN], np.ones((2, 3)), np.zeros((2, 3))).shape == (2, 3)


def test_the_wrap_rule_of_ons() -> None:
    """Row n if n <= 750, else (n - 1) mod 250 + 501."""
    changes = np.zeros((751, 256), dtype=np.int64)
    changes[1:] = np.arange(1, 751)[:, None]  # a change that names its row
    lookup = lookup_of_matrix(changes, wrap_from=501, wrap_length=250)
    counts = np.array([1, 500, 501, 750, 751, 1000, 1001, 123_456_789])
    expected = [n if n <= 750 else (n - 1) % 250 + 501 for n in counts.tolist()]
    assert change(lookup, counts, np.zeros(len(counts))).tolist() == expected


def test_keys_are_reduced_by_the_modulus() -> None:
    changes = np.zeros((2, 256), dtype=np.int64)
    changes[1] = np.arange(256)
    lookup = lookup_of_matrix(changes, wrap_from=1, wrap_length=1)
    keys = np.array([0, 255, 256, 1000, KEYS - 1], dtype=np.uint32)
    assert change(lookup, np.ones(5), keys).tolist() == (keys % 256).tolist()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), min_size=64, max_size=64), min_size=1, max_size=4))
def test_a_matrix_survives_the_way_there_and_back(rows: list[list[int]]) -> None:
    changes = np.array(rows)
    lookup = lookup_of_matrix(changes, wrap_from=len(rows) - 1, wrap_length=1)
    assert (matrix_of(lookup) == changes).all()
    for row in range(len(rows)):
        drawn = change(lookup, np.full(64, row), np.arange(64))
        assert drawn.tolist() == rows[row]


def test_the_law_of_a_lookup_is_the_share_of_keys() -> None:
    small = build(TABLE, Order.SHUFFLED, KEY, modulus=4096)
    law = law_of(small, tolerance=1e-9, js=2)
    assert law.last_row == TABLE.last_row
    np.testing.assert_allclose(law.transition_matrix, TABLE.transition_matrix, atol=3 / 4096)


def test_trailing_rows_of_one_law_become_the_last_row() -> None:
    pieces = [(-1, 64), (0, 128), (1, 64)]
    lookup = lookup_of_rows([[(0, 256)], pieces, pieces, pieces[::-1]], 256, wrap_from=3, wrap_length=1)
    assert law_of(lookup, tolerance=1e-9).last_row == 1


@pytest.mark.parametrize("count", [-1, -(2**40)])
def test_a_negative_count_is_not_covered(count: int) -> None:
    with pytest.raises(UncoveredCount):
        change(LOOKUPS[Order.PLAIN], [count], [0])
    assert change_of(np.int64(count), np.uint32(0), *LOOKUPS[Order.PLAIN].arrays) == UNCOVERED


def test_inconsistent_rules_are_refused() -> None:
    rows = [[(0, 256)], [(0, 256)]]
    with pytest.raises(Mistakes, match="modulus"):
        lookup_of_rows([[(0, 1000)]], 1000, wrap_from=0, wrap_length=1)
    with pytest.raises(Mistakes, match="wrap rule"):
        lookup_of_rows(rows, 256, wrap_from=501, wrap_length=250)
    with pytest.raises(Mistakes, match="wrap rule"):
        lookup_of_rows(rows, 256, wrap_from=2, wrap_length=0)
    with pytest.raises(Mistakes, match=r"cover every key once; cover 0\.\.255"):
        lookup_of_rows([[(0, 255)]], 256, wrap_from=0, wrap_length=1)
    with pytest.raises(Mistakes, match="negative"):
        lookup_of_rows([[(0, 256)], [(-2, 128), (2, 128)]], 256, wrap_from=1, wrap_length=1)


def test_a_shuffle_needs_its_key_and_a_plain_order_none() -> None:
    for order, key in ((Order.SHUFFLED, None), (Order.SPLIT, b"short"), (Order.PLAIN, KEY)):
        with pytest.raises(Mistakes, match="shuffle key"):
            build(TABLE, order, key)


def test_rounding_error_of_a_file_does_not_bias_the_thresholds() -> None:
    p = [0.38893783, 0.38893782, 0.12209348, 0.05639414, 0.02604807, 0.01203143, 0.00555723]
    table: PTable = ptable_of_rows([([0], [1.0]), (list(range(7)), p)])
    lengths = build(table, Order.PLAIN).lengths(1)
    assert sum(v * n for v, n in lengths.items()) == 0
    assert all(abs(n / KEYS - p[v + 1]) < 1e-7 for v, n in lengths.items())


@given(st.lists(st.integers(1, 50), min_size=1, max_size=9), st.sampled_from([256, 4096]), st.integers(-3, 0))
def test_apportioning_sums_to_the_modulus(weights: list[int], modulus: int, lowest: int) -> None:
    p = [weight / sum(weights) for weight in weights]
    v = list(range(lowest, lowest + len(p)))
    keys = apportion(p, v, modulus)
    assert sum(keys) == modulus
    assert min(keys) >= 0


def test_apportioning_cannot_always_reach_a_mean_of_zero_and_then_comes_near() -> None:
    assert apportion([2 / 3, 1 / 3], [-1, 2], 256) == [171, 85]  # bias -1; the next choice has bias 2
    assert apportion([float(Fraction(1, 3))] * 3, [-1, 0, 1], 256) == [85, 86, 85]


def test_a_law_that_is_too_biased_keeps_its_mean() -> None:
    assert apportion([0.5, 0.5], [1, 2], 256) == [128, 128]
    assert apportion([0.25, 0.75], [-3, -1], 256) == [64, 192]
    assert apportion([0.125, 0.375], [-3, -1], 256) == [64, 192]  # shares need not add up to 1


@pytest.mark.parametrize("v", [[-2, -1, 1], [-1, 0, 2], [-2, -1, 0, 1], [-1, 0, 1, 2]])
def test_the_mean_is_centred_at_little_cost_to_the_law(v: list[int]) -> None:
    """Of all whole numbers of keys with a mean of zero none has half the sum of (n - wanted)^2 / wanted."""
    random, modulus = np.random.default_rng(2), 32
    every = np.stack(np.meshgrid(*[np.arange(modulus + 1)] * len(v), indexing="ij")).reshape(len(v), -1)
    every = every[:, (every.sum(axis=0) == modulus) & (np.array(v) @ every == 0)]
    for _ in range(30):
        weights = random.uniform(0.1, 1, len(v))
        first, second = (float(weights @ np.array(v) ** k) for k in (1, 2))
        p = weights * (second - first * np.array(v))
        p /= p.sum()  # of mean zero
        if p.min() <= 0:
            continue
        costs = (((every.T - modulus * p) ** 2) / (modulus * p)).sum(axis=1)
        here = np.equal(every.T, apportion(p.tolist(), v, modulus)).all(axis=1)
        assert costs[here] <= 2 * costs.min()


def test_an_interval_is_cut_into_the_fewest_parts() -> None:
    """52 keys are a fifth of 256, rounded up: 104 are two parts, and 76 are two."""
    table = ptable_of_rows([([0], [1.0]), ([0, 1, 2], [0.296875, 0.40625, 0.296875])])
    split = build(table, Order.SPLIT, KEY, modulus=256)
    first, end = split.offsets[1], split.offsets[2]
    lengths = np.diff(np.concatenate([[0], split.upper[first:end].astype(np.int64)]))
    parts = {change: sorted(lengths[split.change[first:end] == change].tolist()) for change in (-1, 0, 1)}
    assert parts == {-1: [38, 38], 0: [52, 52], 1: [38, 38]}


def test_rows_that_larger_counts_share_may_differ_in_their_keys_but_not_in_their_law() -> None:
    pieces, wider = [(-1, 64), (0, 128), (1, 64)], [(-1, 65), (0, 126), (1, 65)]
    shared = lookup_of_rows([[(0, 256)], wider, pieces, pieces[::-1]], 256, wrap_from=2, wrap_length=2)
    assert law_of(shared, tolerance=1e-9).last_row == 2
    apart = lookup_of_rows([[(0, 256)], pieces, pieces, wider], 256, wrap_from=2, wrap_length=2)
    with pytest.raises(Mistakes, match="row 3: another law than row 2"):
        law_of(apart, tolerance=1e-9)


@pytest.mark.parametrize("D", few([2, 5, 20], 0, 1))
def test_keys_are_centred_alike_with_and_without_the_kernel(D: int) -> None:
    chance = np.random.default_rng(D)
    v = np.arange(-D, D + 1)
    for _ in range(60 // D):  # the interpreter takes seconds for a wide law
        wanted = chance.random(len(v)) ** 4 * 1000
        wanted[chance.random(len(v)) < 0.2] = 0.0
        keys = np.rint(wanted).astype(np.int64)
        bias = int(keys @ v)
        by_kernel, by_python = keys.copy(), keys.copy()
        lookup._centre(by_kernel, wanted, v, bias)
        lookup._centre.interpreted(by_python, wanted, v, bias)
        assert by_kernel.tolist() == by_python.tolist()
