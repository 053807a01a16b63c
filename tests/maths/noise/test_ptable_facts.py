from hypothesis import given
from hypothesis import strategies as st

from discreet.maths.noise.ptable import Demands, row_facts, unmet


def test_facts_of_a_row() -> None:
    facts = row_facts(3, {-3: 0.1, 0: 0.5, 1: 0.3, 2: 0.1, 5: 0.0})
    assert abs(facts.mean - 0.2) < 1e-12
    assert abs(facts.variance - 1.6) < 1e-12
    assert (facts.stay, facts.least, facts.most, facts.smallest_positive) == (0.5, -3, 2, 3)
    assert facts.monotone


def test_a_fall_below_no_change_is_not_monotone() -> None:
    assert not row_facts(2, {-2: 0.2, -1: 0.1, 0: 0.7}).monotone
    assert row_facts(1, {-1: 0.5, 1: 0.5}).monotone  # without a v = 0 there is nothing to fall towards


def test_every_unmet_demand_is_named() -> None:
    rows = [row_facts(1, {-1: 0.6, 0: 0.2, 3: 0.3})]
    problems = [str(problem) for problem in unmet(rows, Demands(D=2, V=1.0, js=1, monotone=True))]
    expected = [
        "mean change is 0.3",
        "sum to 1.1",
        "variance is 3.3",
        "a change of 3",
        "1 can be published",
        "p falls",
    ]
    assert len(problems) == len(expected)
    assert all(text in line for text, line in zip(expected, problems, strict=True))


def test_biased_rows_are_named_in_one_line() -> None:
    rows = [row_facts(count, {-1: 0.2, 0: 0.5, 1: 0.3 + (count == 2) / 100}) for count in range(1, 6)]
    (problem,) = [one for one in unmet(rows, Demands()) if "mean" in str(one)]
    assert str(problem).startswith("count 1: the mean change is 0.1, and not 0 in 4 other rows (up to 0.11)")


@given(st.floats(0.01, 0.3))
def test_a_symmetric_row_meets_any_bound_that_holds(p: float) -> None:
    rows = [row_facts(1, {-1: p, 0: 1 - 2 * p, 1: p})]
    assert list(unmet(rows, Demands(D=1, V=2 * p, js=0))) == []
