"""Strategies: the published fractions, exactly, and errors that name levels and queries."""

import hashlib
import json
from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import Mistakes
from discreet.maths.noise.additive import LawKind
from discreet.maths.privacy.accounting import Neighbours
from discreet.maths.tree.marginals import size_of
from discreet.programme.strategy import (
    LAWS,
    PL94,
    Axis,
    Grouping,
    Histogram,
    LevelShare,
    Strategy,
    StructuralZero,
    pl94_2020,
    pl94_persons,
    strategy_of,
)

SMALL = Histogram((Axis("sex", 2), Axis("age", 3)))
HALF = Fraction(1, 2)
DETAILED = {"detailed": Fraction(1)}


def test_the_published_fractions_are_exact() -> None:
    persons = pl94_2020("persons-us")
    assert persons.budget == Fraction(293764, 114921)
    assert [one.share for one in persons.levels] == [
        Fraction(n, 4099) for n in (104, 1440, 447, 687, 1256, 165)
    ]
    block = dict(persons.levels[-1].queries)
    assert block["detailed"] == Fraction(3945, 4097)
    assert block["total"] == Fraction(5, 4097)
    assert "total" not in dict(persons.levels[0].queries)
    assert dict(persons.levels[3].queries)["hispanic*cenrace"] == Fraction(1933, 4102)
    sizes = {
        query: size_of(persons.histogram.basis, persons.histogram.marginal(query))
        for query in persons.queries
    }
    assert sizes == {
        "total": 1,
        "cenrace": 63,
        "hispanic": 2,
        "votingage": 2,
        "hhinstlevels": 3,
        "hhgq": 8,
        "hispanic*cenrace": 126,
        "votingage*cenrace": 126,
        "votingage*hispanic": 4,
        "votingage*hispanic*cenrace": 252,
        "detailed": 2016 - 126,
    }


@pytest.mark.parametrize(
    ("level", "query", "variance"),
    [
        ("US", "detailed", 19.661),
        ("State", "total", 1.209),
        ("County", "total", 4.702),
        ("Tract", "hispanic*cenrace", 4.953),
        ("Block_Group", "detailed", 4.063),
        ("Block", "detailed", 10.093),
        ("Block", "total", 7963.257),
    ],
)
def test_the_published_noise_scales_follow(level: str, query: str, variance: float) -> None:
    """With persons replaced, s^2 = 1 / (rho level share query share), as published to three decimals."""
    persons = pl94_2020("persons-us")
    asked = next(one for one in persons.levels if one.level == level)
    law = persons.law(persons.budget * asked.share * dict(asked.queries)[query])
    assert law.rho_parameter is not None
    assert float(1 / (2 * law.rho_parameter)) == pytest.approx(variance, abs=6e-4)


def _canonical(name: str) -> str:
    """All fractions of a strategy, as text."""
    found = pl94_2020(name)
    rows = [
        (one.level, str(one.share), [(query, str(part)) for query, part in one.queries])
        for one in found.levels
    ]
    return json.dumps([str(found.budget), rows])


DIGESTS = {
    "persons-us": "4d7c04f096a44153",
    "persons-pr": "9f518aa2400679a3",
    "units-us": "70b600495765cff9",
    "units-pr": "5d6603c2cc45a6c0",
}


@pytest.mark.parametrize("name", PL94)
def test_every_published_strategy_is_valid_and_as_it_was_compared_with_the_published_file(name: str) -> None:
    """The fractions of all levels and queries were compared one by one with those of the Census Bureau."""
    assert sum(one.share for one in pl94_2020(name).levels) == 1
    assert hashlib.sha256(_canonical(name).encode()).hexdigest()[:16] == DIGESTS[name]


def test_levels_that_are_left_out_give_their_shares_to_the_next() -> None:
    part = pl94_2020("persons-us", ("County", "Block"))
    assert [one.share for one in part.levels] == [
        Fraction(104 + 1440 + 447, 4099),
        Fraction(687 + 1256 + 165, 4099),
    ]
    with pytest.raises(Mistakes, match="choose from US, State"):
        pl94_2020("persons-us", ("US", "Parish"))
    with pytest.raises(Mistakes, match="choose from persons-us, persons-pr"):
        pl94_2020("persons")


def test_a_neighbour_changes_a_query_by_its_sensitivity() -> None:
    """Brute force: replace, add or remove one person in every way and measure the change of every query."""
    histogram = Histogram(
        (Axis("a", 3), Axis("b", 2)),
        (Grouping("g", "a", (0, 1, 1)),),
        (StructuralZero((("a", (1,)), ("b", (0,)))),),
    )
    cells = histogram.basis.cells
    for query in ("total", "a", "g", "g*b", "b", "detailed"):
        rows = histogram.marginal(query)
        onto = np.zeros((size_of(histogram.basis, rows), cells))
        for cell in range(cells):
            a, r = divmod(cell, histogram.basis.width)
            onto[
                rows.rows[a] * int(histogram.basis.widths[rows.kept]) + histogram.basis.places[rows.kept][r],
                cell,
            ] = 1
        one = np.eye(cells)
        added = [onto @ one[i] for i in range(cells)]
        replaced = [onto @ (one[i] - one[j]) for i in range(cells) for j in range(cells)]
        for changes, neighbours in ((added, Neighbours.ADD_REMOVE), (replaced, Neighbours.SUBSTITUTE)):
            asked = strategy_of(
                histogram, Fraction(1), {"x": Fraction(1)}, {"x": DETAILED}, neighbours=neighbours
            )
            assert max((change**2).sum() for change in changes) <= asked.squared_sensitivity
            assert max(np.abs(change).sum() for change in changes) <= asked.sensitivity


@pytest.mark.parametrize("noise", LAWS)
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_the_part_of_a_law_is_what_it_was_made_of(noise: LawKind, neighbours: Neighbours) -> None:
    asked = strategy_of(SMALL, Fraction(3), {"x": Fraction(1)}, {"x": DETAILED}, noise, neighbours)
    part = Fraction(7, 30)
    assert asked.part(asked.law(part)) == part
    doubled = 2 if neighbours is Neighbours.SUBSTITUTE else 1
    law = asked.law(part)
    assert (law.rho_parameter or law.epsilon_parameter) == part / doubled


NOTHING = StructuralZero((("a", (0, 1)),))
BOTH = {"top": HALF, "low": HALF}
SEX = {"sex": HALF}
MARGINS = {"sex": HALF, "age": HALF}
JOB = {"job": Fraction(1)}
TOP = {"top": Fraction(1), "low": Fraction(0)}
NEGATIVE = {"top": Fraction(3, 2), "low": -HALF}


@pytest.mark.parametrize(
    ("levels", "queries", "message"),
    [
        ({"top": HALF, "low": HALF / 2}, {"top": DETAILED, "low": DETAILED}, "shares of top, low sum to 3/4"),
        (BOTH, {"top": SEX, "low": DETAILED}, "level top: the shares of sex sum to 1/2"),
        (BOTH, {"low": DETAILED}, "level top: the shares of no query sum to 0"),
        (BOTH, {"top": DETAILED, "low": MARGINS}, r"level low: its queries \(sex, age\) do not determine"),
        (TOP, {"top": DETAILED}, r"level low: its queries \(nothing\) do not determine"),
        (BOTH, {"top": JOB, "low": DETAILED}, "level top: query job: no variable or grouping 'job'"),
        (NEGATIVE, {"top": DETAILED, "low": DETAILED}, "level low: a share is not positive"),
    ],
)
def test_wrong_strategies_name_levels_and_queries(
    levels: dict[str, Fraction], queries: dict[str, dict[str, Fraction]], message: str
) -> None:
    with pytest.raises(Mistakes, match=message):
        strategy_of(SMALL, Fraction(1), levels, queries)


def test_a_budget_of_zero_and_repeated_names_are_refused() -> None:
    with pytest.raises(Mistakes, match=r"strategy.budget: 0; give a number above zero"):
        strategy_of(SMALL, Fraction(0), {"x": Fraction(1)}, {"x": DETAILED})
    twice = LevelShare("x", HALF, (("detailed", HALF), ("detailed", HALF)))
    with pytest.raises(Mistakes, match=r"level x: is declared twice(.|\n)*query detailed is declared twice"):
        Strategy(SMALL, Fraction(1), (twice, twice))


@pytest.mark.parametrize(
    ("histogram", "message"),
    [
        (lambda: Histogram((Axis("a", 2), Axis("a", 3))), "histogram.a: is declared twice"),
        (lambda: Histogram((Axis("a", 1),)), "histogram.a: 1 categories"),
        (lambda: Histogram((Axis("a", 2),), (Grouping("g", "b", (0, 0)),)), "no variable 'b'; choose from a"),
        (lambda: Histogram((Axis("a", 2),), (Grouping("g", "a", (0, 2)),)), "give each of the 2 categories of a"),
        (lambda: Histogram((Axis("a", 2),), (), (StructuralZero((("a", (5,)),)),)), r"structural zero 1: a \[5\]"),
        (lambda: Histogram((Axis("a", 2000), Axis("b", 2000))), "use at most 1000000 cells"),
        (lambda: Histogram((Axis("a", 2),), (), (NOTHING,)).basis, "every cell is a structural"),
        (lambda: Histogram((Axis("a", 500),), (Grouping("g", "a", (0,) * 500),)).basis, "use at most 400 cells"),
    ],
)  # fmt: skip
def test_wrong_histograms_are_refused(histogram: object, message: str) -> None:
    with pytest.raises(Mistakes, match=message):
        histogram()  # type: ignore[operator]


def test_minors_in_nursing_facilities_are_the_structural_zero() -> None:
    possible = pl94_persons().possible.reshape(8, 2, 2, 63)
    assert not possible[3, 0].any()
    assert possible.sum() == 2016 - 126
