import csv
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from discreet.errors import InfeasiblePTable, Mistakes
from discreet.maths.noise import ptable_solver
from discreet.maths.noise.interior_point import NegativeEntropy, minimise
from discreet.maths.noise.ptable import PTable
from discreet.maths.noise.ptable_solver import (
    PTableParameters,
    Row,
    Variance,
    constraints,
    missed,
    solve,
)
from tests.cases import few

DATA = Path(__file__).parent / "data"
REFERENCES = {
    "r_D5_V2_js0": PTableParameters(D=5, V=2),
    "r_D5_V3_js2": PTableParameters(D=5, V=3, js=2),
    "r_D5_V2_js0_optim4": PTableParameters(D=5, V=2, variance=Variance.EQUAL),
    "r_D4_V1_js0_pstay50": PTableParameters(D=4, V=1, pstay=0.5),
    "r_D2_V1p05_js1_ptex": PTableParameters(D=2, V=1.05, js=1, monotony=(True, True, False, True)),
}


@pytest.fixture(autouse=True)
def nothing_remembered() -> None:
    """Every test solves its tables itself."""
    ptable_solver._solved.cache_clear()


def reference(name: str) -> np.ndarray:
    lines = (DATA / f"{name}.csv").read_text().splitlines()
    rows = [(int(r["i"]), int(r["j"]), float(r["p"])) for r in csv.DictReader(lines[1:])]
    matrix = np.zeros((max(i for i, _, _ in rows) + 1, max(j for _, j, _ in rows) + 1))
    for i, j, p in rows:
        matrix[i, j] = p
    return matrix


@pytest.mark.parametrize("name", REFERENCES)
def test_agrees_with_r_ptable(name: str) -> None:
    ours = solve(REFERENCES[name]).transition_matrix
    theirs = reference(name)
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)


@pytest.mark.parametrize("D", [15, 20, 25])
def test_succeeds_where_r_fails(D: int) -> None:
    table = solve(PTableParameters(D=D, V=2))
    assert_holds(table, PTableParameters(D=D, V=2))
    # the last row is symmetric with p proportional to exp(-lambda v^2) where the floor does not bind
    p = table.probabilities[D][table.changes(D) >= 0]
    free = p > 1e-7
    slopes = np.diff(np.log(p[free])) / (2 * np.arange(free.sum() - 1) + 1)
    np.testing.assert_allclose(slopes, slopes[0], rtol=1e-3)


@settings(max_examples=40, deadline=None)
@given(
    js=st.integers(0, 4),
    more=st.integers(1, 6),
    slack=st.floats(1.001, 4.0),
    variance=st.sampled_from([Variance.AT_MOST, Variance.EQUAL_WHERE_FEASIBLE]),
    monotony=st.booleans(),
)
def test_every_feasible_table_meets_its_constraints(
    js: int, more: int, slack: float, variance: Variance, monotony: bool
) -> None:
    V = slack * max([i * (js + 1 - i) for i in range(1, js + 1)], default=0.3)
    wanted = PTableParameters(D=js + more, V=V, js=js, variance=variance, monotony=monotony)
    assert_holds(solve(wanted), wanted)


def assert_holds(table: PTable, wanted: PTableParameters) -> None:
    assert table.targets[0].tolist() == [0]
    assert table.last_row == wanted.last_row
    for i in range(1, table.last_row + 1):
        row = wanted.row(i)
        j, p = table.targets[i], table.probabilities[i]
        assert ((j == 0) | (j > wanted.js)).all()
        assert np.abs(j - i).max() <= wanted.D
        assert abs(p.sum() - 1) < 1e-12
        assert abs(table.mean(i)) < 1e-9
        assert table.variance(i) <= row.V + 1e-8
        # at the very edge of what is feasible the floor is lowered, and the table's notes report it
        waived = any(note.startswith(f"row {i}:") and "floor" in note for note in table.notes)
        assert waived or (p >= wanted.p_min - 1e-12).all()
        assert not row.monotone or table.is_monotone(i)


@settings(max_examples=15, deadline=None)
@given(D=st.integers(1, 6), V=st.floats(0.3, 6), i=st.integers(1, 6), seed=st.integers(0, 2**32 - 1))
def test_no_other_law_has_more_entropy(D: int, V: float, i: int, seed: int) -> None:
    wanted = PTableParameters(D=D, V=V)
    row = wanted.row(min(i, D))
    best = solve(wanted)
    # another feasible law: the optimum of a random linear cost, mixed with ours
    cost = np.random.default_rng(seed).normal(size=len(row.v))
    other = linprog(cost, **linear_constraints(row)).x
    mixed = 0.9 * best.probabilities[row.i] + 0.1 * np.maximum(other, 1e-12)
    assert -(mixed @ np.log(mixed)) <= best.entropy(row.i) + 1e-9


def linear_constraints(row: Row, with_variance: bool = True) -> dict[str, object]:
    number = int((row.v < 0).sum()) if 0 in row.v else 0
    rises = np.eye(number, len(row.v)) - np.eye(number, len(row.v), k=1)
    limits = np.vstack([row.v**2, rises]) if with_variance else rises
    most = np.array([row.V, *np.zeros(number)]) if with_variance else np.zeros(number)
    return {
        "A_eq": np.vstack([np.ones(len(row.v)), row.v]),
        "b_eq": np.array([1.0, 0.0]),
        "A_ub": limits if len(most) else None,
        "b_ub": most if len(most) else None,
        "bounds": [(low, 1.0) for low in row.lower],
    }


@pytest.mark.parametrize("js", few([0, 1, 2, 3, 5], 0, 2, 3))
@pytest.mark.parametrize("more", few([0, 1, 3], 0, 1))
def test_the_least_variance_is_the_closed_form(js: int, more: int) -> None:
    """V >= max i (js + 1 - i) and D >= js are what a table needs, with monotony; the oracle is a linear programme."""
    closed = max([i * (js + 1 - i) for i in range(1, js + 1)], default=0)
    wanted = PTableParameters(D=max(1, js + more), V=max(closed, 0.1), js=js, p_min=1e-8)
    least = []
    for i in range(1, wanted.last_row + 1):
        row = wanted.row(i)
        bare = linear_constraints(row, with_variance=False) | {"bounds": (0.0, 1.0)}
        least.append(linprog(row.v.astype(float) ** 2, **bare).fun)
    assert max(least) == pytest.approx(closed, abs=1e-9)
    if closed:
        solve(wanted)
        with pytest.raises(InfeasiblePTable, match=f"nearest feasible V is {closed}$"):
            solve(PTableParameters(D=wanted.D, V=closed - 0.01, js=js))


def test_the_named_nearest_variance_is_feasible() -> None:
    with pytest.raises(InfeasiblePTable, match=r"row 1; the nearest feasible V is 1\.2,"):
        solve(PTableParameters(D=2, V=2, variance=Variance.EQUAL))
    table = solve(PTableParameters(D=2, V=1.2, variance=Variance.EQUAL))
    assert table.variance(1) == pytest.approx(1.2, abs=1e-6)


def test_only_the_rows_at_fault_are_named() -> None:
    wanted = (3.0, 1.5, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0)
    with pytest.raises(InfeasiblePTable, match=r"V is too small in row 2; the nearest feasible V is 2$"):
        solve(PTableParameters(D=5, V=wanted, js=2))


def test_too_small_a_reach_is_refused() -> None:
    with pytest.raises(InfeasiblePTable, match="nearest feasible D is 3"):
        solve(PTableParameters(D=2, V=10, js=3))
    with pytest.raises(Mistakes, match="js: 9223372036854775808; give at most 100"):  # no D reaches it
        PTableParameters(D=2, V=10, js=2**63)


def test_a_count_that_can_only_stay_is_noted() -> None:
    table = solve(PTableParameters(D=1, V=1, js=1))
    assert table.stay(2) == 1.0
    assert any("row 2: the count is never changed" in note for note in table.notes)


def test_equal_variance_where_feasible_says_where_not() -> None:
    table = solve(PTableParameters(D=2, V=2, variance=Variance.EQUAL_WHERE_FEASIBLE))
    assert table.variance(2) == pytest.approx(2.0)
    assert table.variance(1) < 1.2
    assert table.notes == ("row 1: no law has the variance 2; it is 0.9319",)


def test_the_floor_gives_way_where_only_it_forbids_a_table() -> None:
    table = solve(PTableParameters(D=7, V=1.00001, js=1, p_min=1e-6))
    assert table.variance(1) <= 1.00001 + 1e-9
    assert table.notes == ("row 1: the floor p_min had to be lowered to 1e-08",)


def test_pstay_is_lowered_in_steps_and_never_silently() -> None:
    table = solve(PTableParameters(D=5, V=0.5, pstay=0.9))
    assert table.stay(1) == pytest.approx(0.75, abs=1e-9)
    assert table.stay(3) == pytest.approx(0.9, abs=1e-9)
    assert table.variance(1) == pytest.approx(0.5, abs=1e-9)
    assert table.notes[0].startswith("row 1: pstay lowered from 0.9 to 0.75")


def test_pstay_can_be_kept() -> None:
    table = solve(PTableParameters(D=5, V=2, pstay=0.5, keep_pstay=True))
    assert table.stay(1) == pytest.approx(0.5, abs=1e-9)
    assert table.notes == ()


def test_settings_per_row() -> None:
    table = solve(PTableParameters(D=3, V=(0.5, 1.0, 2.0), pstay=(None, 0.6, None)))
    assert [round(table.variance(i), 6) for i in (1, 2, 3)] == [0.5, 1.0, 2.0]
    assert table.stay(2) == pytest.approx(0.6, abs=1e-9)


@pytest.mark.parametrize(
    ("wrong", "key"),
    [
        ({"D": 0, "V": 1}, "D"),
        ({"D": 3, "V": 0}, "V"),
        ({"D": 3, "V": float("nan")}, "V"),
        ({"D": 3, "V": (1.0, 2.0)}, "V"),
        ({"D": 3, "V": 1, "js": -1}, "js"),
        ({"D": 3, "V": 1, "pstay": 1.0}, "pstay"),
        ({"D": 3, "V": 1, "p_min": 0.0}, "p_min"),
        ({"D": 3, "V": 1, "monotony": (True,)}, "monotony"),
    ],
)
def test_wrong_parameters_are_refused_by_name(wrong: dict[str, object], key: str) -> None:
    with pytest.raises(Mistakes) as caught:
        PTableParameters(**wrong)  # type: ignore[arg-type]
    assert [problem.key for problem in caught.value.problems] == [key]


def test_a_missed_constraint_is_named() -> None:
    row = PTableParameters(D=2, V=1, js=0).row(2)
    fair = np.array([0.1, 0.2, 0.4, 0.2, 0.1])
    assert missed(row, fair) == ("variance",)
    assert missed(row, fair[::-1] * 1.1) == ("sum", "variance")
    assert "monotony" in missed(row, np.array([0.0, 0.3, 0.1, 0.6, 0.0]))
    assert "p_min" in missed(row, np.array([0.0, 0.5, 0.0, 0.5, 0.0]) - 1e-6)


@pytest.mark.parametrize("D", [5, 20])
def test_a_row_takes_few_steps(D: int) -> None:
    """What they cost is for benchmarks/ptable.py to measure."""
    wanted = PTableParameters(D=D, V=2)
    found = minimise(NegativeEntropy(), constraints([wanted.row(i) for i in range(1, wanted.last_row + 1)]))
    assert found.converged.all()
    assert found.steps.max() < 40


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ({"D": 0}, {"D": 1}),
        ({"js": -1}, {"js": 0}),
        ({"p_min": -1e-8}, {"p_min": 0.01}),
        ({"p_min": 0.011}, {"p_min": 1e-8}),
        ({"V": 0.0}, {"V": 0.5}),
        ({"V": -1.0}, {"V": 0.5}),
        ({"V": float("inf")}, {"V": 0.5}),
        ({"pstay": -0.1}, {"pstay": 0.0}),
        ({"pstay": 1.0}, {"pstay": 0.6}),
    ],
)
def test_parameters_are_refused_beyond_their_limits_only(
    wrong: dict[str, float], right: dict[str, float]
) -> None:
    usual = {"D": 3, "V": 0.5}
    ((name, _),) = wrong.items()
    with pytest.raises(Mistakes) as told:
        solve(PTableParameters(**(usual | wrong)))  # type: ignore[arg-type]
    assert name in [problem.key for problem in told.value.problems]
    with suppress(InfeasiblePTable):  # a law may be missing; the parameter itself is allowed
        solve(PTableParameters(**(usual | right)))  # type: ignore[arg-type]


def test_many_changes_have_the_same_law_whether_monotony_is_left_out_at_first_or_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parameters = PTableParameters(30, 6.0)
    quickly = solve(parameters)
    monkeypatch.setattr(ptable_solver, "FEW_CHANGES", 30)
    slowly = solve(parameters)
    for count in (1, 2, 3, 5, 8, 13, 21, 30):
        assert quickly.probabilities[count] == pytest.approx(slowly.probabilities[count], abs=1e-7)


@pytest.mark.parametrize("D", [101, 400, 10**6, 2**63])
def test_more_changes_than_can_be_solved_in_seconds_are_refused(D: int) -> None:
    with pytest.raises(Mistakes, match="give at most 100, or a p-table file"):
        PTableParameters(D, 10.0)


def test_each_row_of_a_large_table_takes_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """With steps that take a time linear in D, what a table costs is its rows times D."""
    taken: list[int] = []
    monotone: list[int] = []  # the constraints of monotony, which few rows need: with them a step is D^3

    def counted(*given: Any) -> Any:
        found = minimise(*given)
        taken.extend(found.steps)
        monotone.append(given[1].rises.shape[1])
        return found

    monkeypatch.setattr(ptable_solver, "minimise", counted)
    solve(PTableParameters(D=60, V=4))
    assert len(taken) < 70
    assert max(taken) < 40
    assert max(monotone) < 10


def test_a_table_is_solved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = solve(PTableParameters(D=4, V=1.5))
    monkeypatch.delattr(ptable_solver, "minimise")
    assert solve(PTableParameters(D=4, V=1.5)) is first
    assert not any(array.flags.writeable for array in (*first.targets, *first.probabilities))
