import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.maths.attacks.averaging import (
    Method,
    Running,
    add_cells,
    add_shared,
    drop_repeats,
    join_only_children,
    root,
    success,
    successes,
    take_groups,
)
from discreet.maths.attacks.redundancy import exposure


def running(sizes: list[int], values: list[int], V: float) -> Running:
    """One target with representations of so many cells each."""
    sums, none = Running(1), np.zeros(1)
    for size, value in sorted(zip(sizes, values, strict=True)):
        sums.add(np.array([value]), np.array([size]), np.array([size * V]), none, none)
    return sums


@given(st.lists(st.integers(1, 50), min_size=1, max_size=20), st.floats(0.1, 10))
def test_the_averages_are_those_of_the_closed_forms(sizes: list[int], V: float) -> None:
    values = [100 + 3 * k for k in range(len(sizes))]
    found = running(sizes, values, V).averages(np.array([0]))
    known = exposure(sizes)
    assert found.estimates[Method.MEAN, 0] == pytest.approx(np.mean(values))
    assert found.variances[Method.MEAN, 0] == pytest.approx(V * known.all.ratio)
    assert found.variances[Method.RISKIEST, 0] == pytest.approx(V * known.riskiest.ratio)
    assert found.variances[Method.WEIGHTED, 0] == pytest.approx(V / sum(1 / size for size in sizes))
    weights = np.array([1 / size for size in sizes])
    assert found.estimates[Method.WEIGHTED, 0] == pytest.approx(weights @ values / weights.sum())
    assert found.variances[Method.WEIGHTED, 0] <= found.variances[Method.RISKIEST, 0] * (1 + 1e-9)
    assert found.variances[Method.RISKIEST, 0] <= found.variances[Method.MEAN, 0] * (1 + 1e-9)


def test_common_noise_is_no_gain() -> None:
    """Two sums of one cell each with the same noise: the covariance is the variance, and the mean is no better."""
    sums, none, one = Running(1), np.zeros(1), np.ones(1)
    sums.add(np.array([7]), np.array([1]), one, none, none)
    sums.add(np.array([7]), np.array([1]), one, 2 * one, 2 * one)
    found = sums.averages(np.array([0]))
    assert found.variances[:, 0] == pytest.approx([1.0, 1.0, 1.0])
    assert (found.estimates == 7).all()


def test_the_same_groups_again_are_dropped_and_others_are_not() -> None:
    table, marks = np.zeros(64, dtype=np.uint64), np.array([5, 5, 9], dtype=np.uint64)
    first, again = np.ones(3), np.ones(3)
    drop_repeats(table, marks, first)
    assert first.tolist() == [1, 1, 1]  # the same mark of another target is something else
    drop_repeats(table, np.array([5, 6, 9], dtype=np.uint64), again)
    assert again.tolist() == [0, 1, 0]


def test_only_an_only_child_with_the_same_value_is_its_parent() -> None:
    """Cells 0..2 above; below them 3 (of 0, same value), 4 and 5 (of 1), 6 (of 2, another value)."""
    parents = np.arange(7, dtype=np.int32)
    below, values = np.array([0, 1, 1, 2]), np.array([4, 9, 8])
    join_only_children(parents, 3, below, np.array([4, 9, 1, 7]), values, 0)
    assert [int(root(parents, cell)) for cell in range(7)] == [0, 1, 2, 0, 4, 5, 6]


def test_success_is_the_closed_form() -> None:
    assert successes(np.array([2.0 * 0.1]))[0] == pytest.approx(success(2.0, 0.1))
    assert successes(np.zeros(1))[0] == 1.0


def test_the_covariances_make_the_sums_those_of_their_groups() -> None:
    """Var(sum w x) = V sum over groups of (sum w)^2: what q leaves out is added, and forgotten groups start anew.

    Three targets along one axis, in two representations of eight and six cells; the last target is dropped (q = 0),
    and the fourth code is outside.
    """
    rng, V = np.random.default_rng(3), 1.5
    mixed = np.zeros(14, np.uint64)
    places, starts, strides = (
        np.array([0, 1, 2, -1], dtype=np.int32),
        np.zeros(1, np.int64),
        np.ones(1, np.int64),
    )
    codes = np.concatenate([rng.permutation([0, 0, 0, 1, 1, 1, 2, 3]), rng.permutation([0, 0, 1, 1, 2, 3])])
    groups = rng.integers(0, 3, 14) + 3 * np.minimum(codes, 3)  # a group lies in one target
    used, counts = np.zeros((12, 2)), np.full(14, 7)
    first_used = np.zeros(12, np.int64)
    for _ in range(2):
        total, summed, expected = np.zeros(3), np.zeros(3), np.zeros((3, 12))
        weighted_by, begun = np.zeros((3, 12)), 0
        for first, last in ((0, 8), (8, 14)):
            q = np.array([V * (codes[first:last] == a).sum() for a in (0, 1, 2)])
            q[2] = 0
            shared, weighted = np.zeros(3), np.zeros(3)
            sums = [np.zeros(3, np.int64), np.zeros(3, np.int64), np.zeros(3, np.int64), np.zeros(3)]
            marks, targets = np.zeros(3, np.uint64), np.zeros(8, np.int32)
            runs = (np.array([first]), np.array([last]), np.array([first]), np.full((1, 1), V))
            laid = (*runs, places, starts, strides)
            add_cells(codes, counts, counts, mixed, *laid, targets, True, *sums, marks)
            assert targets[: last - first].tolist() == places[codes[first:last]].tolist()
            assert sums[2].tolist() == [(codes[first:last] == a).sum() for a in (0, 1, 2)]
            assert sums[0].tolist() == sums[1].tolist() == (7 * sums[2]).tolist()
            assert sums[3] == pytest.approx(V * sums[2])
            ends = (runs[0], runs[1], runs[3])
            shares = (targets, q, used, first_used, begun, shared, weighted)
            begun = add_shared(counts, groups, *ends, *shares)
            total += q + shared
            summed += np.where(q > 0, 1 / np.maximum(q, 1), 0) + weighted
            for c in range(first, last):
                if codes[c] < 2:
                    expected[codes[c], groups[c]] += 1
                    weighted_by[codes[c], groups[c]] += 1 / q[codes[c]]
        assert sorted(first_used[:begun].tolist()) == np.flatnonzero(expected.any(axis=0)).tolist()
        assert total == pytest.approx(V * (expected**2).sum(axis=1))
        assert total[2] == summed[2] == 0
        assert summed == pytest.approx(V * (weighted_by**2).sum(axis=1))
        number, few, few_counts = np.zeros(3, np.int64), np.zeros((3, 1)), np.zeros((3, 1), np.int64)
        runs = (np.array([0, 8]), np.array([8, 14]), np.array([0, 8]), np.full((2, 1), V))
        take_groups(codes, counts, groups, *runs, places, starts, strides, used, number, few, few_counts)
        assert number.tolist() == [np.count_nonzero(row) for row in expected]
    assert not used.any()
