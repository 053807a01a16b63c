"""Errors, expectations and quantiles against plain sums."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.maths.cells.alignment import Integers
from discreet.maths.noise.additive import Law, discrete_laplace, truncated_laplace
from discreet.maths.noise.hellinger import HellingerLaw, PTableLaw
from discreet.maths.noise.hellinger import hellinger as hellinger_law
from discreet.maths.noise.law import Loss, losses
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.maths.noise.publishing import Negatives, PublishedLaw, Publishing
from discreet.maths.utility import (
    ABSOLUTE_BINS,
    SMALL,
    STORED,
    DistinctCounts,
    ExpectedLosses,
    Measure,
    absolute_quantiles,
    class_names,
    errors,
    expected_error,
    expected_errors,
    hellinger,
    hellinger_of_counts,
    relative_quantiles,
)

EDGES = (1, 3, 10)
PTABLE = PTableLaw(solve(PTableParameters(5, 2.0, 0)))


def no_negatives(values: Integers) -> Integers:
    return np.maximum(values, np.int64(0))


listed = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 400), st.integers(-3, 400)), max_size=40)


@settings(deadline=None)
@given(listed)
def test_errors_are_plain_sums(cells: list[tuple[int, int, int]]) -> None:
    possible = np.array([50, 0, 60])  # the second cross-tabulation is not looked at
    crosstab, true, published = (np.array([cell[k] for cell in cells], dtype=np.int64) for k in range(3))
    found = errors(true, published, crosstab.astype(np.int32), possible, EDGES)
    for c in range(3):
        mine = [(a, b) for x, a, b in cells if x == c] if c != 1 else []
        empty = int(possible[c]) - sum(a != 0 or b != 0 for a, b in mine)
        mine = [(a, b) for a, b in mine if a or b] + [(0, 0)] * empty
        for k in range(4):
            some = [(a, b) for a, b in mine if sum(a >= edge for edge in EDGES) == k]
            sums = found.sums[c, k]
            assert found.cells[c, k] == len(some)
            for loss in Loss:
                expected = sum(float(losses(a, np.array([b]), loss)[0]) for a, b in some)
                assert sums[Measure[loss.name]] == pytest.approx(expected)
            assert sums[Measure.UNCHANGED] == sum(a == b for a, b in some)
            assert sums[Measure.ZERO] == sum(b == 0 for _, b in some)
            assert sums[Measure.POSITIVE] == sum(b > 0 for _, b in some)
            assert sums[Measure.BIAS] == sum(b - a for a, b in some)
            sizes = sorted(abs(a - b) for a, b in some)
            for share in (0.5, 0.9, 1.0):
                (reported,) = absolute_quantiles(found.absolute[c, k], [share])
                if not some:
                    assert reported is None
                    continue
                exact = sizes[math.ceil(share * len(sizes) - 1e-9) - 1]
                assert reported is not None
                if exact < 64:
                    assert reported == exact
                else:
                    assert exact - 1 <= reported <= exact * 1.05
                relatives = sorted(abs(a - b) / a for a, b in some if a)
                if relatives:
                    ratio = relatives[math.ceil(share * len(relatives) - 1e-9) - 1]
                    (shown,) = relative_quantiles(found.relative[c, k], [share])
                    assert shown is not None
                    assert ratio * (1 - 1e-9) <= shown <= ratio * 1.05


def test_only_own_cells_are_counted_and_sizes_of_errors_are_counted_by_group() -> None:
    true, published = np.array([3, 5, 9, 2]), np.array([4, 5, 7, 9])
    crosstab, own = np.array([0, 1, 2, 1], dtype=np.int32), np.array([True, True, True, False])
    possible, groups = np.array([2, 1, 1]), np.array([1, 0, 1])
    found = errors(true, published, crosstab, possible, (1,), own, groups)
    assert found.cells.tolist() == [[1, 1], [0, 1], [0, 1]]
    assert found.sums[:, 1, Measure.L1].tolist() == [1, 0, 2]
    assert found.absolute[:, 1, :3].tolist() == [[1, 0, 0], [0, 1, 1]]
    assert found.absolute[:, 0, 0].tolist() == [0, 1]  # an empty cell of the first cross-tabulation
    law = ExpectedLosses(PublishedLaw(PTABLE, keeps_zeros=True))
    counts = DistinctCounts.of(true)
    sums = expected_errors(counts, crosstab, possible, (1,), law.at(counts.counts), own)
    assert sums[1, 1] == pytest.approx(law.at(np.array([5]))[0])


def test_round_relative_errors_are_told_exactly() -> None:
    true, published = np.array([2, 4, 1]), np.array([1, 8, 3])
    found = errors(true, published, np.zeros(3, dtype=np.int32), np.array([3]), EDGES)
    together = found.relative[0].sum(axis=0)
    assert relative_quantiles(together, (0.3, 0.6, 1.0)) == [0.5, 1.0, 2.0]


@pytest.mark.parametrize(
    "law",
    [PTABLE, truncated_laplace(1, 6), discrete_laplace(1), hellinger_law(2)],
    ids=lambda law: type(law).__name__,
)
@pytest.mark.parametrize("keeps_zeros", [True, False])
@pytest.mark.parametrize("negatives", [Negatives.ZERO, Negatives.KEEP])
def test_expectations_are_those_of_the_rows(law: Law, keeps_zeros: bool, negatives: Negatives) -> None:
    large = 10**4 if isinstance(law, HellingerLaw) else 10**6  # its rows are as long as the count
    counts = np.array([0, 1, 2, 5, 9, 40, 41, large], dtype=np.int64)
    found = ExpectedLosses(PublishedLaw(law, Publishing(negatives), keeps_zeros)).at(counts)
    for count, values in zip(counts.tolist(), found, strict=True):
        row = law.row(count)
        shown, p = row.values if negatives is Negatives.KEEP else no_negatives(row.values), row.p
        if count == 0 and keeps_zeros:
            shown, p = np.zeros(1, dtype=np.int64), np.ones(1)
        plain = expected_error(count, shown, p)
        assert values[Measure.L1] == pytest.approx(plain.l1)
        assert math.sqrt(values[Measure.L2]) == pytest.approx(plain.rmse)
        assert values[Measure.L3] == pytest.approx(float(p @ losses(count, shown, Loss.L3)))
        assert values[Measure.UNCHANGED] == pytest.approx(plain.unchanged)
        assert values[Measure.ZERO] == pytest.approx(float(p[shown == 0].sum()))
        assert values[Measure.POSITIVE] == pytest.approx(float(p[shown > 0].sum()))
        assert values[Measure.BIAS] == pytest.approx(float(p @ (shown - count)), abs=1e-9)


def test_expected_sums_add_up_cells_and_leave_other_cross_tabulations_out() -> None:
    law = ExpectedLosses(PublishedLaw(PTABLE, keeps_zeros=True))
    true = np.array([1, 1, 7, 0, 12])
    crosstab = np.array([0, 0, 0, 0, 1], dtype=np.int32)
    counts = DistinctCounts.of(true)
    sums = expected_errors(counts, crosstab, np.array([10, 0]), EDGES, law.at(counts.counts))
    one, seven, none = law.at(np.array([1, 7, 0]))
    assert sums[0, 1] == pytest.approx(2 * one)
    assert sums[0, 2] == pytest.approx(seven)
    assert sums[0, 0] == pytest.approx(7 * none)
    assert not sums[1].any()


@pytest.mark.parametrize("noise", [PTABLE, hellinger_law(2)], ids=lambda law: type(law).__name__)
def test_the_tails_are_those_of_the_row(noise: Law) -> None:
    law = ExpectedLosses(PublishedLaw(noise, keeps_zeros=True))
    true, counted = np.array([10, 5, 10, 2, 10, 900]), np.array([12, 0, 12, 1, 9, 902])
    up, down = law.tails(true, counted, (0.2, 1.0))
    for k, (a, c) in enumerate(zip(true.tolist(), counted.tolist(), strict=True)):
        row = noise.row(c)
        shown = {int(x): float(p) for x, p in zip(row.values, row.p, strict=True)} if c else {0: 1.0}
        for limit, above, below in zip((0.2, 1.0), up[k], down[k], strict=True):
            larger = sum(p for x, p in shown.items() if x - a >= limit * a)
            smaller = sum(p for x, p in shown.items() if x - a <= -limit * a)
            assert (above, below) == pytest.approx((larger, smaller), rel=1e-12, abs=1e-15)
    assert [one.shape for one in law.tails(true[:0], counted[:0], (0.2, 1.0))] == [(0, 2), (0, 2)]


def test_hellinger_is_zero_for_shares_that_agree_and_one_for_disjoint_tables() -> None:
    a, b = np.array([1.0, 4.0]), np.array([2.0, 8.0])
    overlap = np.array([[np.sqrt(a * b).sum(), a.sum(), b.sum()], [0, 3, 4], [0, 0, 0], [0, 3, 0]])
    assert hellinger(overlap) == pytest.approx([0, 1, 0, 1], abs=1e-7)
    p, q = np.array([0.25, 0.75]), np.array([0.5, 0.5])
    plain = math.sqrt(0.5 * float(((np.sqrt(p) - np.sqrt(q)) ** 2).sum()))
    assert hellinger(np.array([[np.sqrt(p * q).sum(), 1.0, 1.0]])) == pytest.approx([plain])


def test_the_hellinger_distance_of_counts_is_that_of_rinott_et_al_by_hand() -> None:
    # section 4.2: (sum (sqrt a - sqrt b)^2)^(1/2); roots 0 3 4 1 against 2 3 6 0: 4 + 0 + 4 + 1, and 2^2 for 100 -> 144
    true, published = np.array([0, 9, 16, 1, 100]), np.array([4, 9, 36, -5, 144])
    crosstab = np.array([0, 0, 0, 0, 1])
    found = errors(true, published, crosstab, np.array([6, 1]), (1,))
    assert hellinger_of_counts(found.overlap) == pytest.approx([3.0, 2.0])
    doubled = errors(true[:4], 2 * true[:4], crosstab[:4], np.array([4, 0]), (1,))
    assert hellinger(doubled.overlap)[0] == pytest.approx(0, abs=1e-7)  # shares agree, counts do not
    assert hellinger_of_counts(doubled.overlap)[0] == pytest.approx(math.sqrt(26) * (math.sqrt(2) - 1))


def test_the_largest_errors_still_have_a_bin() -> None:
    true, published = np.array([1, 3 * 10**9]), np.array([3 * 10**9, 1])
    found = errors(true, published, np.zeros(2, dtype=np.int32), np.array([2]), EDGES)
    assert found.absolute.sum() == 2
    assert found.absolute.shape[-1] == ABSOLUTE_BINS


def test_classes_are_called_by_their_ends() -> None:
    assert class_names((1, 3, 10)) == ("0", "1-2", "3-9", "10+")
    assert class_names((1, 2)) == ("0", "1", "2+")


def test_the_expected_errors_of_a_cell_by_hand() -> None:
    shown, p = np.array([-1, 0, 2]), np.array([0.2, 0.5, 0.3])
    empty, two = expected_error(0, shown, p), expected_error(2, shown, p)
    assert (empty.false_positive, empty.false_zero, empty.relative) == (0.3, None, None)
    assert (two.false_positive, two.false_zero, two.unchanged) == (None, 0.5, 0.3)
    assert two.l1 == pytest.approx(0.2 * 3 + 0.5 * 2)
    assert two.relative == pytest.approx(0.8)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(-2, 5) | st.integers(0, 2**40) | st.integers(STORED - 1, STORED + 1), max_size=30)
)
def test_every_cell_finds_its_count_among_the_distinct_ones(counts: list[int]) -> None:
    found = DistinctCounts.of(np.array(counts, dtype=np.int64))
    assert (np.diff(found.counts) > 0).all()
    assert found.counts[found.zero] == 0
    assert found.counts[found.place].tolist() == counts
    assert set(found.counts[found.counts >= SMALL].tolist()) == {one for one in counts if one >= SMALL}


def test_stored_expectations_are_those_worked_out_anew() -> None:
    law = PublishedLaw(PTABLE, keeps_zeros=True)
    stored, counts = ExpectedLosses(law), np.array([3, 0, STORED + 5, 1, 3, STORED + 5, 40])
    for _ in range(2):
        each = [ExpectedLosses(law).at(counts[k : k + 1])[0] for k in range(len(counts))]
        assert stored.at(counts).tolist() == np.array(each).tolist()
