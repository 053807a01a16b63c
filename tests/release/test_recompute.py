"""The auditor's own code: what neighbours change, each delta and the sums, against the code that draws."""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest

from discreet.maths.noise.additive import discrete_laplace, truncated_laplace
from discreet.maths.noise.hellinger import hellinger
from discreet.maths.noise.thresholds import ThresholdTable, delta_between, threshold_table
from discreet.maths.noise.thresholds import row_table as drawn_row
from discreet.maths.privacy.accounting import EpsilonDelta, Neighbours
from discreet.maths.privacy.sensitivity import Change
from discreet.release import recompute
from discreet.release.recompute import Table, problems
from tests.cases import few

LITTLE = Fraction(1, 2**150)  # more than both codes round by, less than any of the 2^128 words


def entry(
    changed: Change, neighbours: Neighbours, parameter: Fraction, *, squares: bool, units: int = 1
) -> dict[str, Any]:
    """A cross-tabulation as a certificate states it."""
    reached = changed.reach(neighbours)
    l1, l2_squared = reached.l1 * units, reached.l2_squared * units**2
    return {
        "statistic": "persons",
        "came": changed.came,
        "moved": changed.moved,
        "crossed": changed.crossed,
        "units": units,
        "l1": l1,
        "l2_squared": l2_squared,
        "largest": reached.largest * units,
        "parameter": str(parameter),
        "share": str(parameter * (l2_squared if squares else l1)),
        "distance": "0",
        "delta": "0",
    }


def document(noise: str, neighbours: Neighbours, *every: dict[str, Any], **total: object) -> dict[str, Any]:
    measure = "rho" if noise == recompute.GAUSSIAN else "epsilon"
    return {
        "kind": "discreet certificate",
        "format_version": 1,
        "noise": noise,
        "bound": None,
        "neighbours": neighbours.value,
        "tables": [],
        "statistics": list(every),
        "total": {
            measure: str(sum(Fraction(one["share"]) for one in every)),
            "delta": "0",
            "distance": "0",
            **total,
        },
    }


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("units", [1, 3])
def test_two_codes_agree_on_what_neighbours_change(neighbours: Neighbours, units: int) -> None:
    for changed in (Change(c, m, e) for c in range(3) for m in range(4) for e in range(4) if c + m + e):
        one = entry(changed, neighbours, Fraction(1, 7), squares=True, units=units)
        assert not list(problems(document("discrete-gaussian", neighbours, one))), changed
        for key in ("l1", "l2_squared", "largest"):
            (problem,) = problems(document("discrete-gaussian", neighbours, {**one, key: one[key] - 1}))
            assert "neighbours differ by" in problem


def with_table(made: dict[str, Any], parameter: Fraction, *rows: ThresholdTable) -> dict[str, Any]:
    listed = [
        {"first": row.first, "last": row.last, "sha256": Table(row.first, row.numbers).digest()}
        for row in rows
    ]
    return {**made, "tables": [{"parameter": str(parameter), "rows": listed}]}


def check_delta(
    noise: str, one: dict[str, Any], delta: Fraction, bound: int | None, *rows: ThresholdTable
) -> None:
    """A certificate may state this delta, and no smaller one."""
    for stated, expected in ((delta, 0), (delta - LITTLE, 1)):
        made = document(noise, Neighbours.ADD_REMOVE, {**one, "delta": str(stated)}, delta=str(delta))
        made["bound"] = bound
        found = list(problems(with_table(made, Fraction(one["parameter"]), *rows)))
        assert len(found) == expected, found
        assert all("its delta is more than it states" in problem for problem in found)


@pytest.mark.parametrize("changed", [Change(came=1), Change(came=1, moved=1), Change(came=2, crossed=2)])
def test_the_delta_of_bounded_noise_is_the_worst_per_unit_of_change(changed: Change) -> None:
    parameter, bound = Fraction(1, 3), 12
    drawn = threshold_table(truncated_laplace(parameter, bound))
    one = entry(changed, Neighbours.ADD_REMOVE, parameter, squares=False)
    worst = max(drawn.certified_delta(k * parameter, k) / k for k in range(1, one["largest"] + 1))
    check_delta("laplace", one, one["l1"] * worst, bound, drawn)


@pytest.mark.parametrize("changed", few([Change(came=1), Change(came=1, crossed=2)], 1))
def test_the_delta_of_hellinger_noise_grows_with_the_group(changed: Change) -> None:
    parameter = Fraction(12)
    rows = [drawn_row(hellinger(12), count) for count in range(4)]
    one = entry(changed, Neighbours.ADD_REMOVE, parameter, squares=False)
    single = max(delta_between(p, q, parameter) for p, q in pairwise(rows))
    check_delta("hellinger", one, EpsilonDelta(parameter, single).grouped(one["l1"]).delta, None, *rows)


def test_a_distance_costs_one_and_the_ratio_times_itself() -> None:
    """(1 + e^epsilon) d for a cross-tabulation that is drawn at a distance d to its law."""
    parameter, distance = Fraction(3), Fraction(1, 10**9)
    drawn = threshold_table(discrete_laplace(parameter))
    one = entry(Change(came=1), Neighbours.ADD_REMOVE, parameter, squares=False)
    one |= {"delta": str(drawn.certified_delta(parameter)), "distance": str(distance)}
    with localcontext(prec=60):
        costs = Fraction(one["delta"]) + (1 + Fraction(Decimal(3).exp())) * distance
    for stated, expected in ((costs * (1 + LITTLE), 0), (costs * (1 - LITTLE), 1)):
        made = document("geometric", Neighbours.ADD_REMOVE, one, delta=str(stated))
        assert len(list(problems(with_table(made, parameter, drawn)))) == expected


@pytest.mark.parametrize("whole", [0, 1, 5, 2**127])
def test_a_threshold_that_cannot_be_told_from_a_whole_number_is_refused(whole: int) -> None:
    """Decimals of another length might round it to the other side."""
    off = Decimal(10) ** -45
    with localcontext(prec=recompute.DIGITS):
        assert recompute._floor((whole + Decimal("0.5")) / recompute.UNIT) == whole
        with pytest.raises(ArithmeticError):
            recompute._floor((whole + 1 - off) / recompute.UNIT)
        with pytest.raises(ArithmeticError):
            recompute._floor((whole + 1 + off) / recompute.UNIT)


@pytest.mark.parametrize(
    "changes",
    [
        {"bound": 1e308},
        {"bound": 10**9},
        {"tables": [{"parameter": "1/1000000000", "rows": [{"first": -9, "last": 9, "sha256": ""}]}]},
        {"tables": [{"parameter": "1", "rows": [{"first": -(10**12), "last": 10**12, "sha256": ""}]}]},
        {
            "noise": "hellinger",
            "tables": [{"parameter": "1", "rows": [{"first": 0, "last": 10**12, "sha256": ""}]}],
        },
        {
            "noise": "hellinger",
            "tables": [{"parameter": "1/100000", "rows": [{"first": 0, "last": 1, "sha256": ""}]}],
        },
        {
            "noise": "geometric",
            "tables": [{"parameter": "-1/80", "rows": [{"first": -9, "last": 9, "sha256": ""}]}],
        },
        {
            "noise": "hellinger",
            "tables": [{"parameter": "-1", "rows": [{"first": 0, "last": 1, "sha256": ""}]}],
        },
    ],
    ids=str,
)
def test_numbers_that_no_release_has_end_at_once(changes: dict[str, Any]) -> None:
    one = entry(Change(came=1), Neighbours.ADD_REMOVE, Fraction(1), squares=False)
    made = with_table(document("laplace", Neighbours.ADD_REMOVE, one), Fraction(1))
    made["tables"] = [{"parameter": "1", "rows": [{"first": -9, "last": 9, "sha256": ""}]}]
    (problem,) = problems({**made, **changes})
    assert "numbers that no release has" in problem


@pytest.mark.parametrize("noise", ["laplace", "hellinger"])
def test_changes_that_no_record_makes_end_at_once(noise: str) -> None:
    one = entry(Change(came=10**12, moved=1), Neighbours.ADD_REMOVE, Fraction(20), squares=False)
    made = document(noise, Neighbours.ADD_REMOVE, one, delta="1")
    made["bound"] = 9
    rows = [{"first": -9 if noise == "laplace" else 0, "last": 9, "sha256": ""}] * 2
    found = list(problems({**made, "tables": [{"parameter": "20", "rows": rows}]}))
    assert "numbers that no release has" in found[-1]
