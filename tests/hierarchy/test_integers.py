"""Whole tables add up and keep their invariants, for random trees and data, always."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from discreet.advise.strategy import Wanted, optimise
from discreet.errors import Mistakes
from discreet.hierarchy.estimate import forecast
from discreet.hierarchy.integers import MOST_DENSE, Bounds, Fit, Tables, integers, limits_of
from discreet.hierarchy.measure import measure, node_counts
from discreet.hierarchy.spine import Spine, spine_of
from discreet.maths.tree.bounds import UNBOUNDED
from discreet.programme.strategy import Axis, Histogram, Strategy, strategy_of
from tests.hierarchy.forests import HISTOGRAM, LEVELS, PLAIN, counts, dense_system, grown, strategy


def true_tables(spine: Spine, asked: Strategy, leaf: csr_array) -> Tables:
    return Tables(spine, asked.histogram, node_counts(spine, leaf, asked), 0)


def random_bounds(rng: np.random.Generator, true: Tables, query: str) -> Bounds:
    """As facilities are: nothing where nothing is, otherwise bounds around the count, some of them tight or open."""
    here = true.query("block", query)
    lower = np.where(rng.random(here.shape) < 0.4, here, np.minimum(here, rng.integers(0, 4, here.shape)))
    upper = np.where(here > 0, here + rng.integers(0, 3, here.shape), 0)
    return Bounds(query, lower, np.where((rng.random(here.shape) < 0.2) & (here > 0), UNBOUNDED, upper))


@settings(max_examples=80, deadline=None)
@given(
    st.integers(0, 10**9),
    st.sets(st.sampled_from(LEVELS)),
    st.sampled_from([None, "total", "a", "c", "g*e"]),
    st.sampled_from([0.05, 0.6, 5.0]),
)
def test_sums_bounds_and_totals_always_hold(
    seed: int, levels: set[str], query: str | None, mean: float
) -> None:
    rng = np.random.default_rng(seed)
    spine = grown(rng)
    asked = strategy(spine)
    leaf = counts(rng, spine, HISTOGRAM, mean)
    true = true_tables(spine, asked, leaf)
    bounds = None if query is None else random_bounds(rng, true, query)
    exact = tuple(level for level in LEVELS if level in levels)
    limits = limits_of(spine, asked, leaf, exact, bounds)
    found = integers(measure(spine, leaf, asked, rng.bytes(32)), limits)
    check(found, true, spine, exact, bounds)


@pytest.mark.parametrize("exact", [(), LEVELS[1:2]])
def test_tight_bounds_on_the_totals_of_small_areas_hold(exact: tuple[str, ...]) -> None:
    """What areas with parts may be follows from the bounds of their parts: without that a half of these fail."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        spine = grown(rng)
        asked, leaf = strategy(spine), counts(rng, spine, HISTOGRAM, 0.05)
        true = true_tables(spine, asked, leaf)
        bounds = random_bounds(rng, true, "total")
        limits = limits_of(spine, asked, leaf, exact, bounds)
        check(integers(measure(spine, leaf, asked, rng.bytes(32)), limits), true, spine, exact, bounds)


def check(found: Tables, true: Tables, spine: Spine, exact: tuple[str, ...], bounds: Bounds | None) -> None:
    whole = found.counts.toarray()
    assert (whole >= 0).all()
    for node in spine.inner.tolist():
        assert (whole[spine.children(node)].sum(axis=0) == whole[node]).all()
    for level in exact:
        assert (found.query(level, "total") == true.query(level, "total")).all()
    if bounds is not None:
        here = found.query("block", bounds.query)
        assert (here >= bounds.lower).all()
        assert (here <= bounds.upper).all()
    cells = found.level("block").toarray()
    assert (cells[:, ~found.histogram.possible] == 0).all()
    for query in ("total", "c", "detailed"):
        for level in LEVELS:
            assert found.query(level, query).sum() == whole[0].sum()


@pytest.mark.parametrize("seed", range(4))
def test_own_level_fits_keep_the_same_promises(seed: int) -> None:
    rng = np.random.default_rng(seed)
    spine = grown(rng)
    shares = {level: Fraction(1, 4) for level in LEVELS}
    every = {"detailed": Fraction(1, 2), "total": Fraction(1, 2)}
    asked = strategy_of(HISTOGRAM, Fraction(2), shares, dict.fromkeys(LEVELS, every))
    leaf = counts(rng, spine, HISTOGRAM)
    true = true_tables(spine, asked, leaf)
    bounds = random_bounds(rng, true, "a")
    limits = limits_of(spine, asked, leaf, ("region",), bounds)
    found = integers(measure(spine, leaf, asked, rng.bytes(32)), limits, Fit.OWN_LEVEL)
    check(found, true, spine, ("region",), bounds)
    assert found.unfinished == 0


def test_threads_and_stored_measurements_change_nothing() -> None:
    rng = np.random.default_rng(12)
    spine = grown(rng, most=4)
    asked = strategy(spine)
    leaf = counts(rng, spine, HISTOGRAM)
    drawn = measure(spine, leaf, asked, rng.bytes(32))
    one = integers(drawn).counts.toarray()
    assert (integers(drawn, threads=2).counts.toarray() == one).all()
    assert (integers(drawn.stored()).counts.toarray() == one).all()


@pytest.mark.parametrize("histogram", [HISTOGRAM, PLAIN])
def test_with_little_noise_the_tables_are_the_true_ones(histogram: Histogram) -> None:
    rng = np.random.default_rng(2)
    spine = grown(rng)
    asked = strategy(spine, histogram, Fraction(4000))
    leaf = counts(rng, spine, histogram)
    found = integers(measure(spine, leaf, asked, rng.bytes(32)))
    assert (found.level("block") != leaf).nnz == 0
    assert (found.counts != node_counts(spine, leaf, asked)).nnz == 0


def test_the_whole_tree_estimates_totals_better_than_single_levels() -> None:
    """20 releases of 2 x 6 x 8 areas; the mean absolute error of the middle level's totals."""
    rng = np.random.default_rng(0)
    spine = spine_of(LEVELS, [np.zeros(2, dtype=np.int64), np.repeat([0, 1], 6), np.repeat(np.arange(12), 8)])
    every = {"detailed": Fraction(1, 2), "total": Fraction(1, 2)}
    asked = strategy_of(
        PLAIN, Fraction(1, 2), {level: Fraction(1, 4) for level in LEVELS}, dict.fromkeys(LEVELS, every)
    )
    leaf = counts(rng, spine, PLAIN, 8.0)
    true = true_tables(spine, asked, leaf).query("town", "total")
    errors = {Fit.TREE: 0.0, Fit.OWN_LEVEL: 0.0}
    for _ in range(20):
        drawn = measure(spine, leaf, asked, rng.bytes(32))
        for fit in errors:
            errors[fit] += float(np.abs(integers(drawn, fit=fit).query("town", "total") - true).mean())
    assert errors[Fit.TREE] < 0.97 * errors[Fit.OWN_LEVEL]


@pytest.mark.parametrize("exact", [(), LEVELS[:2]])
def test_one_matrix_of_weights_and_blocks_of_them_give_the_same_fit(
    monkeypatch: pytest.MonkeyPatch, exact: tuple[str, ...]
) -> None:
    """Six areas of a parent with more cells than one matrix is used for."""
    rng = np.random.default_rng(31)
    spine = spine_of(LEVELS[:2], [np.zeros(6, dtype=np.int64)])
    wide = Histogram((Axis("c", 26), Axis("e", 18)))
    some = {"detailed": Fraction(1, 2), "c": Fraction(1, 4), "e": Fraction(1, 4)}
    asked = strategy_of(
        wide, Fraction(2), dict.fromkeys(LEVELS[:2], Fraction(1, 2)), dict.fromkeys(LEVELS[:2], some)
    )
    leaf = counts(rng, spine, wide, 3.0)
    drawn = measure(spine, leaf, asked, rng.bytes(32))
    limits = limits_of(spine, asked, leaf, exact)
    assert integers(drawn, limits).level("country").nnz > MOST_DENSE, "blocks are what is used here"
    design, observed, variances = dense_system(drawn)
    losses = []
    for most in (0, 10_000):
        monkeypatch.setattr("discreet.hierarchy.integers.MOST_DENSE", most)
        found = integers(drawn, limits).level(LEVELS[1]).toarray().reshape(-1)
        losses.append(float((((observed - design @ found) ** 2) / variances).sum()))
    assert losses[0] == pytest.approx(losses[1], rel=0.005)


def test_empty_areas_stay_empty_where_totals_are_exact() -> None:
    rng = np.random.default_rng(8)
    spine = grown(rng)
    asked = strategy(spine)
    leaf = counts(rng, spine, HISTOGRAM) * 0
    limits = limits_of(spine, asked, leaf, ("country",))
    assert integers(measure(spine, leaf, asked, rng.bytes(32)), limits).counts.nnz == 0


def test_bounds_that_cannot_hold_are_refused_by_name_and_without_counts() -> None:
    spine = spine_of(LEVELS[:2], [np.zeros(3, dtype=np.int64)], [["x"], ["north", "south", "west"]])
    asked = strategy(spine, PLAIN)
    leaf = csr_array(np.full((3, 6), 41))
    good = np.full((3, 3), 82)
    for lower, upper, message in (
        (good + 1, good, "the lower bound exceeds the upper one in 3 areas: region north"),
        (good * 0, good - 1, r"the data are outside of the bounds in 3 areas: region north \(cell 0\)"),
        (good * 0 - 1, good, "a bound is negative in 3 areas"),
        (good[:2], good, "give 3 areas with 3 counts each"),
    ):
        with pytest.raises(Mistakes, match=message) as caught:
            limits_of(spine, asked, leaf, (), Bounds("c", lower, upper))
        assert "82" not in str(caught.value)
        assert "41" not in str(caught.value)
    with pytest.raises(Mistakes, match="no level 'county'; choose from country, region"):
        limits_of(spine, asked, leaf, ("county",))
    with pytest.raises(Mistakes, match=r"level country: its queries \(total\) do not determine every cell"):
        integers(measure(spine, leaf, asked, bytes(32)), fit=Fit.OWN_LEVEL)
    with pytest.raises(Mistakes, match="no level 'county'"):
        integers(measure(spine, leaf, asked, bytes(32))).query("county", "total")


def test_queries_that_ask_the_same_are_proposed_once() -> None:
    spine = grown(np.random.default_rng(3))
    best = optimise(spine, HISTOGRAM, [Wanted("block", "a*b*c*e"), Wanted("region", "c")], Fraction(1))
    assert "a*b*c*e" not in best.queries
    assert "detailed" in best.queries


def test_an_optimised_strategy_beats_equal_shares_for_what_is_wanted() -> None:
    rng = np.random.default_rng(3)
    spine = grown(rng, most=4)
    wanted = [Wanted("block", "total"), Wanted("region", "g*e", 2.0)]
    best = optimise(spine, HISTOGRAM, wanted, Fraction(2), ("c",))
    queries = {level: {name: Fraction(1, 3) for name in ("total", "g*e", "detailed")} for level in LEVELS}
    equal = strategy_of(HISTOGRAM, Fraction(2), {level: Fraction(1, 4) for level in LEVELS}, queries)
    values = []
    for asked in (best, equal):
        found = {(one.level, one.query): one.mean for one in forecast(spine, asked, ("total", "g*e"))}
        values.append(found["block", "total"] + 2 * found["region", "g*e"])
    assert values[0] < 0.6 * values[1]
    assert sum(one.share for one in best.levels) == 1
    with pytest.raises(Mistakes, match="no level 'street'"):
        optimise(spine, HISTOGRAM, [Wanted("street", "total")], Fraction(1))
    with pytest.raises(Mistakes, match="weight 0; give a weight above zero"):
        optimise(spine, HISTOGRAM, [Wanted("block", "total", 0.0)], Fraction(1))
    with pytest.raises(Mistakes, match="no query is named"):
        optimise(spine, HISTOGRAM, [], Fraction(1))
