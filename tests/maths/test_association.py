import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, spearmanr
from scipy.stats.contingency import association

from discreet.maths.utility import NEITHER, independence, rank_correlation

tables = st.lists(st.lists(st.integers(1, 50), min_size=3, max_size=3), min_size=2, max_size=5)


@given(tables)
def test_it_is_the_textbook_test(rows: list[list[int]]) -> None:
    table = np.array(rows)
    down, across = np.indices(table.shape)
    found = independence(down.ravel(), across.ravel(), table.ravel())
    plain = chi2_contingency(table, correction=False)
    assert found.p_value == pytest.approx(plain.pvalue, rel=1e-6, abs=1e-12)
    assert found.cramers_v == pytest.approx(association(table, method="cramer"), abs=1e-6)


def test_empty_rows_and_negative_cells_do_not_count() -> None:
    down, across = np.array([0, 0, 1, 1, 2, 3]), np.array([0, 1, 0, 1, 0, 1])
    values = np.array([5, 7, 9, 2, 0, -3])
    assert independence(down, across, values) == independence(down[:4], across[:4], values[:4])
    assert independence(down[:2], across[:2], values[:2]) == NEITHER
    assert independence(down[:0], across[:0], values[:0]) == NEITHER


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=3, max_size=30))
def test_the_order_is_spearmans(pairs: list[tuple[int, int]]) -> None:
    true, published = np.array(pairs).T
    found = rank_correlation(true, published)
    if len(set(true.tolist())) > 1 and len(set(published.tolist())) > 1:
        assert found == pytest.approx(spearmanr(true, published).statistic)
    else:
        assert found is None


def test_one_cell_has_no_order() -> None:
    assert rank_correlation(np.array([1]), np.array([2])) is None
