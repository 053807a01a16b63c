"""How many cells a record touches, and budgets that are split without a remainder."""

from collections import Counter
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import BudgetExceeded, Mistakes
from discreet.maths.privacy.accounting import Neighbours
from discreet.maths.privacy.sensitivity import (
    Change,
    Reach,
    distinct,
    refuse_overspending,
    split_by_margin,
    split_by_table,
    split_evenly,
    with_margins,
)

ADD, SUBSTITUTE = Neighbours.ADD_REMOVE, Neighbours.SUBSTITUTE
totals = st.fractions(min_value=Fraction(1, 1000), max_value=100)


@pytest.mark.parametrize("t", [1, 2, 3, 4])
def test_a_table_with_all_margins_but_the_total_touches_a_record_often(t: int) -> None:
    signatures = with_margins([[f"axis {k}"] for k in range(t)], "all")
    assert signatures[-1] == (frozenset(), "all")
    assert len(distinct(signatures[:-1])) == 2**t - 1


def test_cross_tabulations_that_cubes_share_count_once() -> None:
    geography = ["LAU", "NUTS3"]
    first = with_margins([geography, ["SEX"]], "all")
    second = with_margins([["SEX"], geography, ["AGE.M"]], "all")
    employed = with_margins([["SEX"]], "employed")
    assert len(first) == 3 * 2
    assert set(first) < set(second)
    assert len(distinct([*first, *second, *employed])) == 3 * 2 * 2 + 2
    assert distinct("abca") == ("a", "b", "c")


@given(st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=1, max_size=12), st.data())
def test_no_neighbour_changes_more_cells_than_counted(
    records: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    axes = [["x", "x coarse"], ["y"], ["z"]]
    signatures = with_margins(axes, "all")

    def cells(people: list[tuple[int, int, int]]) -> Counter[tuple[frozenset[str], tuple[int, ...]]]:
        counts: Counter[tuple[frozenset[str], tuple[int, ...]]] = Counter()
        for (levels, _), (x, y, z) in product(signatures, people):
            codes = {"x": x, "x coarse": x // 2, "y": y, "z": z}
            counts[levels, tuple(codes[level] for level in sorted(levels))] += 1
        return counts

    position = data.draw(st.integers(0, len(records) - 1))
    other = data.draw(st.tuples(*[st.integers(0, 2)] * 3))
    rest = records[:position] + records[position + 1 :]
    for neighbour, kind in ((rest, ADD), ([*rest, other], SUBSTITUTE)):
        before, after = cells(records), cells(neighbour)
        differences = [before[cell] - after[cell] for cell in before | after]
        each = Change(came=1).reach(kind)
        assert sum(map(abs, differences)) <= each.l1 * len(signatures)
        assert sum(d * d for d in differences) <= each.l2_squared * len(signatures)


def changes(one: Change, sign: int) -> list[tuple[int, ...]]:
    """Every way in which the records of a change alter the counts of three cells; the sign is that of what comes."""
    cells = 3
    steps: list[list[tuple[int, ...]]] = []
    unit = [tuple(int(cell == here) for cell in range(cells)) for here in range(cells)]
    none = tuple([0] * cells)
    steps += [[none, *(tuple(sign * x for x in at) for at in unit)]] * one.came
    moves = [tuple(b - a for a, b in zip(here, there, strict=True)) for here, there in product(unit, unit)]
    steps += [[none, *moves]] * one.moved
    steps += [[none, *unit, *(tuple(-x for x in at) for at in unit)]] * one.crossed
    found = {none}
    for step in steps:
        found = {tuple(map(sum, zip(so_far, more, strict=True))) for so_far, more in product(found, step)}
    return sorted(found)


@pytest.mark.parametrize(
    "one", [Change(c, m, e) for c, m, e in product(range(3), repeat=3) if 1 <= c + m + e <= 3]
)
@pytest.mark.parametrize("kind", Neighbours)
def test_the_reach_of_a_change_is_the_largest_of_all_its_ways(one: Change, kind: Neighbours) -> None:
    gone, come = changes(one, -1), changes(one, 1)
    every = set(gone)
    if kind is SUBSTITUTE:
        every = {
            tuple(a + b for a, b in zip(first, second, strict=True)) for first, second in product(gone, come)
        }
    found = Reach(
        max(sum(map(abs, way)) for way in every),
        max(sum(x * x for x in way) for way in every),
        max(max(map(abs, way)) for way in every),
    )
    assert found == one.reach(kind)


@given(totals, st.lists(st.integers(), min_size=1))
def test_an_even_split_gives_back_the_total(total: Fraction, signatures: list[int]) -> None:
    split = split_evenly(total, signatures)
    assert sum(split.values()) == total


def test_rinotts_example_of_unequal_margins() -> None:
    signatures = with_margins([["INC"], ["EDU"], ["ETH"]], "all")[:-1]
    important = {
        frozenset(["INC", "EDU", "ETH"]): "interior",
        frozenset(["INC", "EDU"]): "income by education",
    }
    margins = {s: important.get(s[0], "others") for s in signatures}
    third = Fraction(1, 3)
    split = split_by_margin(
        Fraction(1), margins, {"interior": third, "income by education": third, "others": third}
    )
    assert sorted(split.values()) == [Fraction(1, 15)] * 5 + [third] * 2
    by_axes = split_by_margin(
        Fraction(3, 2),
        {s: len(s[0]) for s in signatures},
        {3: Fraction(1, 2), 2: Fraction(1, 4), 1: Fraction(1, 4)},
    )
    assert sum(by_axes.values()) == Fraction(3, 2)
    assert by_axes[signatures[0]] == Fraction(3, 4)


def test_a_cross_tabulation_of_two_tables_gets_both_parts() -> None:
    tables = {"1": ["a", "b"], "2": ["b", "c", "c"]}
    split = split_by_table(Fraction(2), tables, {"1": Fraction(1, 4), "2": Fraction(3, 4)})
    assert split == {"a": Fraction(1, 4), "b": Fraction(1), "c": Fraction(3, 4)}


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ({1: Fraction(1, 2), 2: Fraction(1, 3)}, r"sum to 5/6; make them sum to 1"),
        (
            {1: Fraction(1, 2), 2: Fraction(1, 4), 3: Fraction(1, 4)},
            r"margin 3: no such margin; choose from 1, 2",
        ),
        ({1: Fraction(1)}, "margin 2: has no share"),
        ({1: Fraction(3, 2), 2: Fraction(-1, 2)}, "negative"),
        ({1: 0.5, 2: 0.5}, "not exact"),
    ],
)
def test_shares_that_do_not_fit_are_refused(shares: dict[int, Fraction], message: str) -> None:
    with pytest.raises(Mistakes, match=message):
        split_by_margin(Fraction(1), {"a": 1, "b": 2}, shares)


def test_a_share_of_zero_is_possible_and_said_of_what_is_there() -> None:
    assert split_by_margin(Fraction(1), {"a": 1, "b": 2}, {1: Fraction(1), 2: Fraction(0)}) == {
        "a": 1,
        "b": 0,
    }
    assert split_by_margin(Fraction(1), {"a": 1}, {1: Fraction(1), 2: Fraction(0)}) == {"a": 1}
    tables = {"1": ["a", "b"], "2": ["b", "c"]}
    split = split_by_table(Fraction(2), tables, {"1": Fraction(1), "2": Fraction(0)})
    assert split == {"a": 1, "b": 1, "c": 0}


def test_unknown_tables_and_empty_budgets_are_refused() -> None:
    with pytest.raises(Mistakes, match="table 9"):
        split_by_table(Fraction(1), {"1": ["a"]}, {"9": Fraction(1)})
    with pytest.raises(Mistakes, match="above 0"):
        split_evenly(Fraction(0), ["a"])
    with pytest.raises(Mistakes, match="nothing to split"):
        split_evenly(Fraction(1), [])


def test_overspending_raises() -> None:
    refuse_overspending(Fraction(1), {"a": Fraction(1, 2), "b": Fraction(1, 2)})
    with pytest.raises(BudgetExceeded, match="sum to 7/6, the budget is 1"):
        refuse_overspending(Fraction(1), {"a": Fraction(1, 2), "b": Fraction(2, 3)})
