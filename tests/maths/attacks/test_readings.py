from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.maths.attacks.reconstruction import Reading, both, by_law, lines, within
from discreet.maths.noise.additive import discrete_laplace
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.maths.noise.publishing import Negatives, PublishedLaw, Publishing

P_TABLE = PTableLaw(solve(PTableParameters(5, 2.0, 2)))


@pytest.mark.parametrize("value", [0, 3, 4, 9, 40])
def test_a_p_table_leaves_exactly_the_counts_that_it_can_turn_into_the_value(value: int) -> None:
    reading = by_law(value, PublishedLaw(P_TABLE, keeps_zeros=True), 0.0)
    likelihood = {i: p for i in range(value + 20) if (p := P_TABLE.row(i).at(value)) > 0}
    assert reading.counts.tolist() == sorted(likelihood)
    best = max(likelihood.values())
    for count, p in likelihood.items():
        assert reading.costs[count - reading.first] == pytest.approx(math.log(best / p))


def test_a_value_that_no_count_can_show_leaves_none() -> None:
    assert by_law(1, PublishedLaw(P_TABLE, keeps_zeros=True), 0.0).counts.tolist() == []


def test_unbounded_noise_leaves_the_counts_between_its_quantiles() -> None:
    law, tail = discrete_laplace("0.5"), 1e-3
    reading = by_law(100, PublishedLaw(law, keeps_zeros=False), tail)
    beyond = next(d for d in range(100) if law.pmf.tail(d) <= tail / 2)
    assert (reading.first, reading.last) == (101 - beyond, 99 + beyond)


def test_zero_after_negatives_are_cut_can_be_any_small_count() -> None:
    law = discrete_laplace("1")

    cut = Publishing(Negatives.ZERO)
    open_zero = by_law(0, PublishedLaw(law, cut), 1e-2)
    kept_zero = by_law(0, PublishedLaw(law, cut, keeps_zeros=True), 1e-2)
    assert open_zero.counts[0] == 0
    assert open_zero.costs[1] == pytest.approx(math.log(law.pmf.cdf(0) / law.pmf.cdf(-1)))
    assert kept_zero.costs[1] == pytest.approx(-math.log(law.pmf.cdf(-1)))
    assert by_law(2, PublishedLaw(law, keeps_zeros=True), 1e-2).first == 1


def test_a_bound_alone_leaves_all_counts_within_it() -> None:
    assert within((4, 4), 2, 0).counts.tolist() == [2, 3, 4, 5, 6]
    assert within((1, 1), 2, 1).counts.tolist() == [1, 2, 3]
    assert within((8, 12), 1, 0).costs.tolist() == [1, 0, 0, 0, 0, 0, 1]  # rounded to tens
    assert within((4, 4), 2, 0, variance=2.0).costs.tolist() == [1, 0.25, 0, 0.25, 1]
    assert within((4, 4), 2, 0, variance=0.5).costs.tolist() == [4, 1, 0, 1, 4]
    assert within((-3, -3), 2, 0).counts.tolist() == []


def test_two_values_leave_what_both_leave() -> None:
    assert both(within((4, 4), 2, 0), within((7, 7), 2, 0)).counts.tolist() == [5, 6]
    assert both(within((4, 4), 2, 0), within((9, 9), 2, 0)).counts.tolist() == []
    each = both(within((4, 4), 3, 0, variance=0.5), within((7, 7), 3, 0, variance=0.5))
    assert (each.first, each.costs.tolist()) == (
        4,
        [4, 0, 0, 4],
    )  # 0 + 9, 1 + 4, 4 + 1, 9 + 0, less the least


@given(st.lists(st.one_of(st.floats(0, 20), st.just(math.inf)), min_size=1, max_size=30), st.integers(0, 50))
def test_lines_lie_below_the_costs_and_meet_the_cheapest_count(costs: list[float], first: int) -> None:
    reading = Reading(first, np.array(costs))
    if len(reading.counts) < 2:
        assert lines(reading, 100) == []
        return
    drawn = [max(slope * (count - x) + y for slope, x, y in lines(reading, 100)) for count in reading.counts]
    listed = reading.costs[reading.counts - first]
    assert (np.array(drawn) <= listed + 1e-6).all()
    assert min(drawn) == pytest.approx(listed.min(), abs=1e-6)


def test_a_convex_cost_is_its_own_hull_and_few_lines_keep_its_minimum() -> None:
    reading = within((50, 50), 40, 0, variance=3.0)
    every, few = lines(reading, 1000), lines(reading, 8)
    at = {count: max(slope * (count - x) + y for slope, x, y in every) for count in reading.counts.tolist()}
    np.testing.assert_allclose(list(at.values()), reading.costs, atol=1e-6)
    assert lines(reading, len(every)) == every
    assert len(few) <= 8
    assert max(slope * (50 - x) + y for slope, x, y in few) == pytest.approx(0, abs=1e-9)
