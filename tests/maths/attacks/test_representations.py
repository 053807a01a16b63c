import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.maths.attacks.averaging import Method, Running, success, successes
from discreet.maths.attacks.redundancy import exposure
from discreet.maths.attacks.representations import (
    BLOCK,
    Axes,
    Cells,
    Measured,
    Runs,
    Used,
    add_cells,
    add_shared,
    drop_repeats,
    find_targets,
    mark_divided,
    repeated_groups,
    take_groups,
)
from discreet.maths.attacks.same_records import find_rows, join_only_children, root


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
    table, marks = np.zeros((3, 4), dtype=np.uint64), np.array([5, 5, 9], dtype=np.uint64)
    first, again = np.ones(3), np.ones(3)
    drop_repeats(table, marks, first)
    assert first.tolist() == [1, 1, 1]  # the same mark of another target is something else
    drop_repeats(table, np.array([5, 6, 9], dtype=np.uint64), again)
    assert again.tolist() == [0, 1, 0]
    third = np.ones(3)
    drop_repeats(table, np.array([6, 6, 5], dtype=np.uint64), third)
    assert third.tolist() == [1, 0, 1]


def test_only_an_only_child_with_the_same_value_is_its_parent() -> None:
    """Cells 0..2 above; below them 3 (of 0, same value), 4 and 5 (of 1), 6 (of 2, another value)."""
    parents = np.arange(7, dtype=np.int32)
    below, values = np.array([0, 1, 1, 2]), np.array([4, 9, 8])
    join_only_children(parents, 3, below, np.array([4, 9, 1, 7]), values, 0)
    assert [int(root(parents, cell)) for cell in range(7)] == [0, 1, 2, 0, 4, 5, 6]


def test_success_is_the_closed_form() -> None:
    assert successes(np.array([2.0 * 0.1]))[0] == pytest.approx(success(2.0, 0.1))
    assert successes(np.zeros(1))[0] == 1.0


def axes_of(
    columns: list[list[int]], sizes: list[int], places: list[list[int]], divided: list[list[bool]]
) -> Axes:
    """Axes with the same cut in every refinement."""
    one = np.zeros((len(columns), 1), dtype=np.int64)
    places_at = np.cumsum([0, *map(len, places)], dtype=np.int64)[:-1]
    divided_at = np.cumsum([0, *map(len, divided)], dtype=np.int64)[:-1]
    return Axes(
        np.arange(len(columns)),
        np.array(columns, dtype=np.int64).reshape(len(columns), -1),
        one + places_at,
        one + divided_at,
        np.array(sizes, dtype=np.int64),
        np.array([int(np.prod(sizes[k + 1 :])) for k in range(len(sizes))], dtype=np.int64),
        np.array([place for table in places for place in table], dtype=np.int32),
        np.array([one for table in divided for one in table], dtype=bool),
    )


def measured_room(size: int) -> Measured:
    s, n, k = np.zeros((3, size), np.int64)
    q, shared, weighted, weights = np.zeros((4, size))
    return Measured(
        s, n, k, q, np.zeros(size, np.uint64), shared, weighted, weights, np.zeros(size, dtype=bool)
    )


def test_the_covariances_make_the_sums_those_of_their_groups() -> None:
    """Var(sum w x) = V sum over groups of (sum w)^2: what q leaves out is added, and forgotten groups start anew.

    Three targets along one axis, in two representations of eight and six cells; the last target is dropped (q = 0),
    and the fourth code is outside.
    """
    rng, V = np.random.default_rng(3), 1.5
    codes = np.concatenate([rng.permutation([0, 0, 0, 1, 1, 1, 2, 3]), rng.permutation([0, 0, 1, 1, 2, 3])])
    groups = (rng.integers(0, 3, 14) + 3 * codes).astype(np.int32)  # a group lies in one target
    axes = axes_of([[0], [0]], [3], [[0, 1, 2, -1]], [[True] * 3])
    ends, at = np.array([0, 8, 14]), np.arange(3)
    runs = Runs(
        np.arange(14, dtype=np.int32),
        ends,
        at,
        codes.astype(np.uint16),
        ends,
        np.zeros(2, int),
        np.full((1, 1), V),
    )
    counts = np.full(14, 7)
    cells = Cells(counts, counts, np.arange(14).astype(np.uint64), groups)
    used = Used(np.zeros((12, 2)), np.zeros(12, np.int32))
    for _ in range(2):
        total, summed, expected = np.zeros(3), np.zeros(3), np.zeros((3, 12))
        weighted_by, begun = np.zeros((3, 12)), 0
        targets = np.zeros(8, np.int32)
        for r, (first, last) in enumerate(((0, 8), (8, 14))):
            here, many = codes[first:last], np.array([(codes[first:last] == a).sum() for a in (0, 1, 2)])
            measured = measured_room(3)
            find_targets(runs, axes, r, targets)
            assert targets[: last - first].tolist() == np.where(here < 3, here, -1).tolist()
            add_cells(cells, runs, r, targets, True, measured)
            assert measured.k.tolist() == many.tolist()
            assert measured.s.tolist() == measured.n.tolist() == (7 * many).tolist()
            assert measured.q == pytest.approx(V * many)
            marks = [np.arange(first, last)[here == a].sum() for a in (0, 1, 2)]
            assert measured.marks.tolist() == marks
            measured.q[2] = 0
            begun = add_shared(cells, runs, r, targets, measured, used, begun)
            total += measured.q + measured.shared
            summed += measured.weights + measured.weighted
            for c in range(first, last):
                if codes[c] < 2:
                    expected[codes[c], groups[c]] += 1
                    weighted_by[codes[c], groups[c]] += 1 / measured.q[codes[c]]
        assert sorted(used.order[:begun].tolist()) == np.flatnonzero(expected.any(axis=0)).tolist()
        assert total == pytest.approx(V * (expected**2).sum(axis=1))
        assert total[2] == summed[2] == 0
        assert summed == pytest.approx(V * (weighted_by**2).sum(axis=1))
        number, few, few_counts = np.zeros(3, np.int64), np.zeros((3, 1)), np.zeros((3, 1), np.int64)
        take_groups(cells, runs, axes, targets, used.times, number, few, few_counts)
        assert number.tolist() == [np.count_nonzero(row) for row in expected]
    assert not used.times.any()


@pytest.mark.parametrize("kind", [np.uint16, np.int32])
def test_the_target_of_a_cell_is_that_of_its_codes_along_the_axes_of_the_target(kind: type) -> None:
    """More cells than a block; of three axes the target has the last and the first, in this order."""
    rng, size = np.random.default_rng(4), 2 * BLOCK + 77
    codes = rng.integers(0, 6, (3, size))
    places = [[0, 0, 1, -1, 2, 2], [1, 0, -1, 3, 2, 0]]
    axes = axes_of([[2, 0]], [3, 4], places, [[True] * 3, [True] * 4])
    ends, once = np.array([0, size]), np.arange(2)
    runs = Runs(
        np.arange(size, dtype=np.int32), ends, once, codes.ravel().astype(kind), np.array([0, 3 * size]),
        np.zeros(1, int), np.ones((1, 1)),
    )  # fmt: skip
    targets = np.full(size, 99, dtype=np.int32)
    find_targets(runs, axes, 0, targets)
    for i in range(size):
        place, other = places[0][codes[2, i]], places[1][codes[0, i]]
        assert targets[i] == (-1 if place < 0 or other < 0 else 4 * place + other)


def test_a_target_is_divided_where_all_its_codes_are() -> None:
    masks = [[True, False, True], [True], [False, True, True, False]]
    axes = axes_of([[0, 1, 2]], [3, 1, 4], [[0], [0], [0]], masks)
    valid = np.zeros(12, dtype=bool)
    mark_divided(axes, 0, valid)
    assert valid.tolist() == [a and b and c for a in masks[0] for b in masks[1] for c in masks[2]]
    total = np.zeros(1, dtype=bool)
    mark_divided(axes_of([[]], [], [], []), 0, total)
    assert total.tolist() == [True]


def test_groups_that_are_listed_once_have_no_number() -> None:
    """Cells 0 and 3 are one group, 2 is listed twice, 1 and 4 once, 5 never."""
    groups, listed = (
        np.array([0, 1, 2, 0, 4, 5], dtype=np.int32),
        np.array([0, 1, 2, 2, 3, 4], dtype=np.int32),
    )
    assert repeated_groups(groups, listed).tolist() == [0, -1, 1, 0, -1, -1]
    assert repeated_groups(groups[:0], listed[:0]).tolist() == []


@given(st.data())
def test_rows_are_found_whatever_their_order(data: st.DataObject) -> None:
    """Against a dictionary: rows of two columns in other ones of one or two, in order or not."""
    sizes, rows = np.array([5, 4]), st.tuples(st.integers(0, 4), st.integers(0, 3))
    here = data.draw(st.lists(rows, max_size=30))
    there = data.draw(st.lists(rows, max_size=20, unique=True))
    if data.draw(st.booleans()):
        there.sort()
    whole = np.array(there, dtype=np.int32).reshape(-1, 2)
    wanted = np.array(here, dtype=np.int32).reshape(-1, 2)
    columns, swapped = np.array([0, 1]), np.array([1, 0])
    place = {row: at for at, row in enumerate(there)}
    found = find_rows(wanted, np.ascontiguousarray(whole[:, ::-1]), columns, swapped, sizes)
    assert found.tolist() == [place.get(row, -1) for row in here]
    totals = {row[0]: at for at, row in enumerate(there) if row[1] == 0}
    margin = np.array([[code] for code in totals], dtype=np.int32).reshape(-1, 1)
    above = find_rows(wanted, margin, columns, np.array([0, -1]), sizes)
    assert above.tolist() == [list(totals).index(a) if b == 0 and a in totals else -1 for a, b in here]
