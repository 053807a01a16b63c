"""Own-level fits in TopDown's order: totals are settled first, sum to their parents and are held."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from discreet.audit.fits import fit_errors
from discreet.hierarchy.integers import Fit, Tables, integers, limits_of
from discreet.hierarchy.measure import measure, node_counts
from discreet.hierarchy.spine import spine_of
from discreet.hierarchy.topdown import shared_out, totals_first
from discreet.programme.strategy import strategy_of
from tests.hierarchy.forests import HISTOGRAM, LEVELS, counts, strategy


@given(
    st.lists(st.tuples(st.floats(-30, 60), st.floats(0.5, 20), st.integers(0, 5)), min_size=1, max_size=8),
    st.floats(0, 200),
)
def test_shared_totals_are_the_nearest_ones_with_the_sum(
    rows: list[tuple[float, float, int]], more: float
) -> None:
    values, variances, least = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    total = float(least.sum()) + more
    found = shared_out(values, variances, least, total)
    assert found.sum() == pytest.approx(total, abs=1e-6)
    assert (found >= least - 1e-6).all()
    pull = (values - found) / variances  # equal where free, not above it where a bound binds
    free = found > least + 1e-5
    if free.any():
        assert np.ptp(pull[free]) < 1e-5
        assert (pull[~free] <= pull[free].max() + 1e-4).all()


def test_shared_totals_equal_a_solver() -> None:
    values, variances = np.array([-3.0, 10.0, 4.0, 0.5]), np.array([1.0, 4.0, 2.0, 9.0])
    least, total = np.array([0.0, 2.0, 0.0, 1.0]), 9.0
    best = minimize(
        lambda t: ((t - values) ** 2 / variances).sum(),
        np.full(4, total / 4),
        bounds=[(low, None) for low in least],
        constraints={"type": "eq", "fun": lambda t: t.sum() - total},
        options={"ftol": 1e-12},
    )
    assert shared_out(values, variances, least, total) == pytest.approx(best.x, abs=1e-4)


def test_totals_of_inner_levels_are_those_of_the_first_pass() -> None:
    rng = np.random.default_rng(4)
    parents = [np.repeat(np.arange(size), 3) for size in (1, 3, 9)]
    spine = spine_of(LEVELS, parents)
    other = strategy(spine)
    queries = {one.level: dict(one.queries) for one in other.levels}
    queries[LEVELS[0]] = queries[LEVELS[1]]
    shares = {one.level: one.share for one in other.levels}
    asked = strategy_of(HISTOGRAM, other.budget, shares, queries)
    true = counts(rng, spine, HISTOGRAM, 6.0)
    limits = limits_of(spine, asked, true, (LEVELS[0],))
    drawn = measure(spine, true, asked, bytes(32))
    settled = totals_first(drawn, limits)
    for parent in spine.inner.tolist():
        below = spine.children(parent)
        assert settled.totals[below].sum() == pytest.approx(settled.totals[parent])
        for one in settled.noisy(parent):
            kind = settled.plan.kinds[one.kind]
            if "total" in kind.queries and spine.levels[kind.bottom] != LEVELS[-1]:
                here = one.values[kind.queries.index("total")][:, 0]
                assert (here == np.rint(settled.totals[one.nodes])).all()
    found = integers(settled, limits, Fit.OWN_LEVEL)
    for level in LEVELS[:-1]:
        whole = found.query(level, "total")[:, 0]
        nodes = spine.node_of[LEVELS.index(level)]
        assert np.abs(whole - settled.totals[nodes]).max() < 1.5
    compared = {(one.level, one.query): one.own_level for one in fit_errors(drawn, limits, true).queries}
    exact = Tables(spine, asked.histogram, node_counts(spine, true, asked), 0)
    for level in LEVELS:
        here = np.abs(found.query(level, "detailed") - exact.query(level, "detailed")).mean()
        assert compared[level, "detailed"] == here
    one_pass = integers(drawn, limits, Fit.OWN_LEVEL).query(LEVELS[1], "total")[:, 0]
    first = settled.totals[spine.node_of[1]]
    assert np.abs(found.query(LEVELS[1], "total")[:, 0] - first).sum() <= np.abs(one_pass - first).sum()
