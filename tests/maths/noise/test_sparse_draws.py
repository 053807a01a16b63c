from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from discreet.errors import Mistakes
from discreet.maths.noise.additive import discrete_gaussian_of_sigma, discrete_laplace, truncated_laplace
from discreet.maths.noise.draws import (
    BASE,
    BitSource,
    SparseLaw,
    digits_for,
    draw,
    draw_gaps,
    gap_tables,
    place_among_empty,
    sparse_law,
    visibility,
    visible_cells,
)
from discreet.maths.noise.thresholds import UNIT, table_of_shares, threshold_table

KEY = bytes(range(32))


@pytest.mark.parametrize(("epsilon", "least"), [(5, None), (1, None), (0.1, None), (1, 3), (0.5, 12)])
def test_the_sparse_law_is_the_dense_one(epsilon: float, least: int | None) -> None:
    """Many small tables: how many cells are visible, where they lie and what they show, against dense draws."""
    table, bits, tables, n = threshold_table(discrete_laplace(epsilon)), BitSource(KEY), 1500, 60
    dense = draw(table, tables * n, bits).reshape(tables, n)
    shown = dense != 0 if least is None else dense >= least
    law = sparse_law(table, least, n)
    sparse = [law.draw(n, bits) for _ in range(tables)]
    numbers = [np.bincount(shown.sum(axis=1), minlength=n + 1)]
    numbers.append(np.bincount([len(positions) for positions, _ in sparse], minlength=n + 1))
    places = [shown.sum(axis=0), np.bincount(np.concatenate([p for p, _ in sparse]), minlength=n)]
    width = int(np.abs(dense).max()) + 40
    values = [
        np.bincount(v + width, minlength=2 * width)
        for v in (dense[shown], np.concatenate([v for _, v in sparse]))
    ]
    for pair in (numbers, places, values):
        assert same_law(*pair) > 1e-4


def same_law(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Chi-square of two histograms; cells with few cases are pooled."""
    rare = first + second < 10
    table = np.array([[*h[~rare], h[rare].sum()] for h in (first, second)])
    table = table[:, table.sum(axis=0) > 0]
    return float(stats.chi2_contingency(table).pvalue) if table.shape[1] > 1 else 1.0


def law_of_share(share: Fraction, largest: int) -> SparseLaw:
    """A law that shows the value 1 with a given probability and is silent otherwise."""
    return sparse_law(table_of_shares(0, [1 - share, share]), None, largest)


@pytest.mark.parametrize("share", [Fraction(1, 7), Fraction(99, 100), Fraction(1, 3000)])
def test_each_cell_is_visible_with_the_share_and_independently(share: Fraction) -> None:
    n = 5_000_000
    positions, values = law_of_share(share, n).draw(n, BitSource(KEY))
    assert (values == 1).all()
    assert 0 <= positions[0] <= positions[-1] < n
    gaps = np.diff(positions) - 1
    assert (gaps >= 0).all()
    assert abs(len(positions) - n * float(share)) < 5 * (n * float(share * (1 - share))) ** 0.5
    law = stats.geom(float(share), loc=-1)
    edges = np.unique(law.ppf(np.linspace(0.05, 0.95, 19)).astype(np.int64))
    observed = np.bincount(np.searchsorted(edges, gaps, side="left"), minlength=len(edges) + 1)
    expected = np.diff([0, *law.cdf(edges), 1]) * len(gaps)
    assert stats.chisquare(observed, expected).pvalue > 1e-4


@pytest.mark.parametrize(
    "share", [Fraction(1, 10**12), Fraction(1, 3), Fraction(1, 2**60), 1 - Fraction(1, 10**6)]
)
def test_digit_tables_are_the_proven_floors(share: Fraction) -> None:
    tables = gap_tables(10**12, share)
    assert len(tables) == 5
    with localcontext(prec=150):
        log_r = (1 - Decimal(share.numerator) / share.denominator).ln()
        for place, table in enumerate(tables[:-1]):
            whole = 1 - (log_r * BASE ** (place + 1)).exp()
            for d in {0, len(table.hi) // 2, len(table.hi) - 1} if len(table.hi) else ():
                wanted = (1 - (log_r * (d + 1) * BASE**place).exp()) / whole
                assert (int(table.hi[d]) << 64) | int(table.lo[d]) == int(wanted * UNIT)


def test_digits_compose_to_a_geometric_gap() -> None:
    share = Fraction(1, 20_000)
    gaps = draw_gaps(gap_tables(10**9, share), 200_000, BitSource(KEY))
    assert stats.kstest(gaps / 20_000, "expon").pvalue > 1e-4
    assert np.mean(gaps) == pytest.approx(19_999, rel=0.02)


def test_a_billion_cells_with_a_threshold() -> None:
    table = threshold_table(discrete_laplace(1))
    positions, values = visible_cells(10**9, table, 15, BitSource(KEY))
    expected = float(visibility(table, 15).share * 10**9)
    assert expected == pytest.approx(223.6, abs=0.1)
    assert abs(len(positions) - expected) < 5 * expected**0.5
    assert values.min() >= 15
    assert sparse_law(table, 15, 10**9).distance(10**9) < Fraction(1, 2**100)


def test_a_trillion_cells_and_a_tiny_share() -> None:
    bits = BitSource(KEY)
    law = law_of_share(Fraction(1, 10**12), 10**12)
    found = [len(law.draw(10**12, bits)[0]) for _ in range(60)]
    assert 30 < sum(found) < 100
    table = threshold_table(discrete_laplace(1))
    assert len(visible_cells(10**12, table, 60, bits)[0]) == 0


def test_what_is_never_or_always_visible() -> None:
    bits, bounded = BitSource(KEY), threshold_table(truncated_laplace(1, 7))
    positions, values = visible_cells(10**12, bounded, 8, bits)
    assert len(positions) == len(values) == 0
    assert len(visible_cells(0, bounded, None, bits)[0]) == 0
    assert law_of_share(Fraction(1), 5).draw(5, bits)[0].tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(Mistakes, match="at least 1"):
        visible_cells(10, bounded, 0, bits)
    with pytest.raises(Mistakes, match="possible cells"):
        visible_cells(10**16, bounded, 1, bits)
    with pytest.raises(Mistakes, match="possible cells"):
        sparse_law(bounded, 1, 10).draw(11, bits)


def test_the_key_alone_determines_what_is_visible() -> None:
    table = threshold_table(discrete_gaussian_of_sigma("0.4"))
    first, second = (visible_cells(10**6, table, None, BitSource(KEY)) for _ in range(2))
    assert np.array_equal(first[0], second[0])
    assert np.array_equal(first[1], second[1])
    assert (first[1] != 0).all()


def test_the_conditional_law_keeps_every_proportion() -> None:
    table = threshold_table(discrete_laplace(2))
    seen = visibility(table, 3)
    assert seen.values is not None
    total = sum(table.number(value) for value in range(3, table.last + 1))
    assert seen.share == Fraction(total, UNIT)
    for value in range(3, 20):
        exact = Fraction(table.number(value), total)
        assert abs(Fraction(seen.values.number(value), UNIT) - exact) <= Fraction(1, UNIT)
    assert all(seen.values.number(value) == 0 for value in range(table.first, 3))


@given(st.sets(st.integers(0, 80)), st.data())
@settings(max_examples=60)
def test_ranks_are_placed_among_the_empty_cells(occupied: set[int], data: st.DataObject) -> None:
    empty = [cell for cell in range(120) if cell not in occupied]
    ranks = sorted(data.draw(st.sets(st.integers(0, len(empty) - 1))))
    found = place_among_empty(np.array(ranks, dtype=np.int64), np.array(sorted(occupied), dtype=np.int64))
    assert found.tolist() == [empty[rank] for rank in ranks]


def test_digits_for() -> None:
    assert [digits_for(n) for n in (1, BASE, BASE + 1, 10**9, 10**12)] == [1, 1, 2, 3, 4]
