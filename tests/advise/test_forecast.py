"""A forecast is what the mechanisms then do: their mean errors, their laws, their budgets; without the data."""

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.advise.forecast import (
    DELTA,
    SIZES,
    Candidate,
    Unavailable,
    bound_for,
    candidates_for,
    declared,
    forecast,
    private_law,
    programme_delta,
    read_epsilons,
    rho_for,
    sum_of,
    wide_deviation,
)
from discreet.errors import Mistakes
from discreet.maths.noise.additive import LawKind
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.maths.noise.publishing import Negatives, Publishing
from discreet.maths.privacy.accounting import Neighbours, epsilon_of_rho
from discreet.page.charts import spread
from discreet.perturb.budget import law_of, plan
from discreet.perturb.choose import mechanism
from discreet.perturb.reach import reach
from discreet.programme.cube import crosstabs
from discreet.programme.noise import BudgetRule, PrivateNoise, Protects
from discreet.programme.programme import Programme, load_declaration
from discreet.tabulate.tables import ConfidentialTable
from tests.attributes import own
from tests.cases import few

EACH = 1500  # cells of each size in the trial
SECRET = bytes(range(32))
LINE = """
[population]
persons = "absent.parquet"
person_id = "pid"

[variables.X]
codelist = "x.csv"
of = "person"

[[cubes]]
id = "line"
axes = ["X"]

[noise]
"""
CROSS = """
[population]
persons = "absent.parquet"
households = "absent too.parquet"
person_id = "pid"
household_id = "hid"

[variables.A]
codelist = "a.csv"
of = "person"
breakdowns = { L = 1, H = 2 }

[variables.B]
codelist = "b.csv"
of = "person"

[[cubes]]
id = "both"
axes = ["A.H", "B"]

[[cubes]]
id = "coarse"
axes = ["A.L"]

[[cubes]]
id = "homes"
unit = "households"
axes = ["B"]

[noise]
"""
GEOMETRIC = 'kind = "geometric"\nepsilon = 2\n'


def line(folder: Path, noise: str) -> Programme:
    """One axis with enough codes for a trial."""
    rows = "".join(f"x{number},,\n" for number in range(EACH * len(SIZES)))
    (folder / "x.csv").write_text("code,parent,label\n" + rows)
    (folder / "line.toml").write_text(LINE + noise)
    return load_declaration(folder / "line.toml")


def cross(folder: Path, noise: str) -> Programme:
    (folder / "a.csv").write_text("code,parent,label\nN,,\nN1,N,\nN2,N,\nS,,\nS1,S,\n")
    (folder / "b.csv").write_text("code,parent,label\n1,,\n2,,\n")
    (folder / "cross.toml").write_text(CROSS + noise)
    return load_declaration(folder / "cross.toml")


def published(programme: Programme) -> NDArray[np.int64]:
    """What the real mechanism makes of EACH cells of every size: (size, cell) -> published count."""
    cube = programme.cubes[0]
    nodes = np.flatnonzero(cube.axes[0].depths == 1).astype(np.int64)
    counts = np.repeat(np.array(SIZES, dtype=np.uint64), EACH)
    keys = np.random.default_rng(5).integers(0, 2**32, len(counts), dtype=np.uint64)
    table = ConfidentialTable(cube, (keys << np.uint64(32)) | counts, nodes)
    made = mechanism(programme, SECRET, SECRET).perturb(table)
    values = np.zeros(cube.size, dtype=np.int64)
    values[made.cells] = made.values
    return values[nodes].reshape(len(SIZES), EACH)


UTILITY = "count,published,utility\n" + "".join(
    f"{a},{b},{-round(100 * abs(math.sqrt(a) - math.sqrt(b))) / 100}\n" for a in range(6) for b in range(25)
)
NOISES = {
    "geometric": GEOMETRIC,
    "negatives kept": 'kind = "geometric"\nepsilon = 1\nnegatives = "keep"\n',
    "laplace": 'kind = "laplace"\nepsilon = 1\nbound = 4\ndelta = 0.2\n',
    "normal rounded": 'kind = "normal"\nepsilon = 2\nbound = 12\ndelta = 0.01\nrounding = 5\n',
    "gaussian cut": 'kind = "discrete-gaussian"\nrho = 0.02\ndelta = 1e-9\nthreshold = 12\nrounding = 3\n',
    "hellinger": 'kind = "hellinger"\nepsilon = 40\n',
    "exponential": 'kind = "exponential"\nepsilon = 6\ndelta = 0.2\nutility = "utility.csv"\n',
    "by participants": 'kind = "geometric"\nepsilon = 1\ndraw = "participants"\nkeep_zeros = "all"\nclaim = "none"\n',
    "cell key": 'kind = "cell-key"\nV = 3\nD = 6\njs = 2\n',
}


@pytest.mark.parametrize("noise", few(NOISES.values(), 0, 1, 2, 5), ids=NOISES)
def test_the_forecast_is_what_the_mechanism_does(tmp_path: Path, noise: str) -> None:
    (tmp_path / "utility.csv").write_text(UTILITY)
    programme = line(tmp_path, noise)
    found = forecast(programme, [declared(programme)]).candidates[0]
    law = next(margin.law for margin in found.margins if margin.axes == 1)
    trial, total = published(programme), 0.0
    for error, values in zip(law.errors, trial, strict=True):
        wrong = np.abs(values - error.count)
        spread_of_mean = math.sqrt(max(error.rmse**2 - error.l1**2, 0.0) / EACH)
        assert wrong.mean() == pytest.approx(error.l1, abs=4.5 * spread_of_mean + 1e-9), error.count
        told = {"unchanged": (values == error.count).mean()}
        told |= (
            {"false_zero": (values == 0).mean()} if error.count else {"false_positive": (values > 0).mean()}
        )
        for name, share in told.items():
            p = getattr(error, name)
            assert share == pytest.approx(p, abs=4.5 * math.sqrt(p * (1 - p) / EACH) + 2 / EACH), (
                name,
                error.count,
            )
        assert error.relative == (error.l1 / error.count if error.count else None)
        total += float(wrong.mean())
    # a law a tenth off would be seen
    assert total == pytest.approx(sum(error.l1 for error in law.errors), rel=0.04)


def test_rows_of_the_cell_key_method_are_the_moments_of_its_p_table(tmp_path: Path) -> None:
    programme = line(tmp_path, 'kind = "cell-key"\nV = 2\nD = 5\n')
    ptable = solve(PTableParameters(D=5, V=2.0))
    law = forecast(programme, [declared(programme)]).candidates[0].laws[0]
    for error in law.errors:
        row = ptable.row_of(error.count)
        changes, p = ptable.changes(row), ptable.probabilities[row]
        assert error.l1 == pytest.approx(float(np.abs(changes) @ p), abs=1e-7)
        assert error.rmse == pytest.approx(math.sqrt(ptable.variance(row)), abs=1e-7)
        assert error.unchanged == pytest.approx(ptable.stay(row), abs=1e-7)
    assert law.deviation == pytest.approx(math.sqrt(2.0), abs=1e-7)
    assert law.errors[0].false_positive == 0.0


SPLITS = {
    "even": "",
    "by axes": 'split = { by_axes = { "0" = "1/2", "1" = "1/4", "2" = "1/4" } }\n',
    "by table": 'split = { by_table = { both = "1/2", coarse = "1/3", homes = "1/6" } }\n',
}


@pytest.mark.parametrize("split", SPLITS.values(), ids=SPLITS)
@pytest.mark.parametrize("kind", [GEOMETRIC, 'kind = "discrete-gaussian"\nrho = 1\ndelta = 1e-9\n'])
def test_every_margin_has_the_noise_that_the_plan_gives_it(tmp_path: Path, split: str, kind: str) -> None:
    programme = cross(tmp_path, kind + split)
    assert isinstance(programme.noise, PrivateNoise)
    planned = plan(programme.noise, programme.cubes).parameters
    codelists = {name: variable.codelist for name, variable in programme.variables.items()}
    want: dict[tuple[str, int, Fraction], tuple[int, int]] = {}
    for cube in programme.cubes:
        for part in crosstabs(cube, codelists):
            key = (cube.id, len(part.signature.levels), planned[part.signature])
            number, cells = want.get(key, (0, 0))
            want[key] = (number + 1, cells + part.size)
    found = forecast(programme, [declared(programme)])
    margins = found.candidates[0].margins
    assert {(m.cube, m.axes, m.law.parameter): (m.crosstabs, m.cells) for m in margins} == want
    assert found.crosstabs == len(planned)
    assert {m.cube for m in found.only({"homes"}).candidates[0].margins} == {"homes"}
    assert len(found.candidates[0].laws) == len({m.law.parameter for m in margins})


def test_noise_too_wide_to_draw_is_told_by_its_deviation(tmp_path: Path) -> None:
    for kind, budget in (("geometric", "epsilon"), ("discrete-gaussian", "rho"), ("hellinger", "epsilon")):
        programme = line(tmp_path, f'kind = "{kind}"\n{budget} = 1e-13\ndelta = 1e-9\n')
        law = forecast(programme, [declared(programme)]).candidates[0].laws[0]
        assert law.too_much
        assert law.error(1) is None
        with pytest.raises(Mistakes):
            mechanism(programme, SECRET, SECRET)
        assert law.deviation == wide_deviation(LawKind(kind), Fraction("5e-14"))


def test_deviations_by_formula_continue_those_of_the_laws() -> None:
    for kind, parameter, rel in (
        (LawKind.GEOMETRIC, Fraction(1, 5000), 1e-9),
        (LawKind.DISCRETE_GAUSSIAN, Fraction(1, 10**6), 1e-9),
        (LawKind.HELLINGER, Fraction(1, 2), 0.02),
    ):
        law = private_law(PrivateNoise(kind, BudgetRule(Fraction(1))), parameter)
        empty = law.error(0)
        assert empty is not None
        deviation = empty.rmse if kind is LawKind.HELLINGER else law.deviation
        assert deviation == pytest.approx(wide_deviation(kind, parameter), rel=rel)


@pytest.mark.parametrize("kind", [LawKind.LAPLACE, LawKind.NORMAL])
@pytest.mark.parametrize(
    ("neighbours", "members"), [(Neighbours.ADD_REMOVE, None), (Neighbours.SUBSTITUTE, 3)]
)
def test_a_proposed_bound_is_the_smallest_that_is_certified(
    tmp_path: Path, kind: LawKind, neighbours: Neighbours, members: int | None
) -> None:
    programme = cross(tmp_path, GEOMETRIC)
    rule = PrivateNoise(
        kind, BudgetRule(Fraction(20)), delta=DELTA, neighbours=neighbours, attributes=own("A", "B")
    )
    if members:
        rule = replace(rule, protects=Protects.HOUSEHOLD, largest_household=members)
    uses = Counter(
        (reach(signature, rule), parameter)
        for signature, parameter in plan(replace(rule, bound=1), programme.cubes).parameters.items()
    )
    bound = bound_for(rule, uses, DELTA)
    assert bound is not None
    certified = plan(replace(rule, bound=bound), programme.cubes).delta()
    assert certified <= DELTA < plan(replace(rule, bound=bound - 1), programme.cubes).delta()
    assert programme_delta(replace(rule, bound=bound), uses) == pytest.approx(float(certified), rel=1e-9)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(20), Fraction(500)])
def test_a_proposed_rho_buys_no_more_than_its_epsilon(epsilon: Fraction) -> None:
    rho = rho_for(epsilon, DELTA)
    assert epsilon_of_rho(rho, DELTA) <= epsilon < epsilon_of_rho(rho * Fraction(1002, 1000), DELTA)


def test_candidates_are_the_declared_one_and_what_each_budget_buys(tmp_path: Path) -> None:
    noise = 'kind = "geometric"\nepsilon = 3\nthreshold = 4\nneighbours = "substitute"\n'
    made = candidates_for(cross(tmp_path, noise), [Fraction(1, 1000), Fraction(5)])
    names = [candidate.name for candidate in made]
    assert names[:2] == ["declared: geometric, epsilon 3", "cell-key, V 2, D 5"]
    assert len(names) == len(set(names)) == 14
    bought = [one.noise for one in made[2:] if isinstance(one.noise, PrivateNoise)]
    assert all(rule.published.threshold == 4 and rule.neighbours is Neighbours.SUBSTITUTE for rule in bought)
    assert [one.name for one in made if isinstance(one.noise, Unavailable)] == [
        "laplace, epsilon 0.001",
        "normal, epsilon 0.001",
    ]
    usual = candidates_for(cross(tmp_path, 'kind = "cell-key"\nV = 2\nD = 5\n'), [Fraction(5)])
    assert [one.name for one in usual][:2] == ["declared: cell-key", "geometric, epsilon 5"]


def test_a_bound_that_costs_more_than_declared_is_told(tmp_path: Path) -> None:
    short = 'kind = "laplace"\nepsilon = 5\nbound = 3\ndelta = 1e-9\n'
    assert "protect refuses it" in declared(cross(tmp_path, short)).notes[0]
    with pytest.raises(Mistakes, match="truncation at 3"):
        mechanism(cross(tmp_path, short), SECRET, SECRET)
    assert declared(cross(tmp_path, short.replace("bound = 3", "bound = 99"))).notes == ()


def test_noise_that_is_not_available_has_no_margins(tmp_path: Path) -> None:
    made = forecast(cross(tmp_path, GEOMETRIC), [Candidate("none", Unavailable("because"))])
    assert not made.candidates[0].margins
    assert not made.candidates[0].laws


@pytest.mark.parametrize("text", ["", "0", "-1", "1,a", "inf", "1/0", "501"])
def test_wrong_budgets_are_refused(text: str) -> None:
    with pytest.raises(Mistakes, match="--epsilon"):
        read_epsilons(text)
    assert read_epsilons("5, 1/2,5") == (Fraction(1, 2), Fraction(5))


@given(st.lists(st.floats(0, 400), max_size=20))
def test_labels_are_kept_apart_and_in_order(places: list[float]) -> None:
    moved = spread(sorted(places), 15)
    assert all(right - left >= 15 - 1e-9 for left, right in pairwise(moved))
    assert sum(moved) == pytest.approx(sum(places), abs=1e-6)


def test_a_sum_of_noises_has_the_convolution_of_their_laws() -> None:
    law = private_law(noise_of("1/2"), Fraction(1, 2))
    one = replace(noise_of("1/2"), bound=6, kind=LawKind.LAPLACE)
    change = law_of(one, Fraction(1, 2)).row(0)
    convolved = change.p
    for added in (2, 3, 4, 5):
        convolved = np.convolve(convolved, change.p)
        found = sum_of(change, added)
        assert found.variance == pytest.approx(added * change.variance, rel=1e-9)
        assert [found.at(v) for v in range(-6 * added, 6 * added + 1)] == pytest.approx(
            convolved.tolist(), abs=1e-12
        )
    many = private_law(noise_of("1/2"), Fraction(1, 2), 2500)
    assert many.deviation == pytest.approx(50 * law.deviation, rel=1e-6)
    assert many.errors[-1].rmse == pytest.approx(many.deviation, rel=1e-6)


def noise_of(epsilon: str) -> PrivateNoise:
    return PrivateNoise(
        LawKind.GEOMETRIC, BudgetRule(Fraction(epsilon)), published=Publishing(Negatives.KEEP)
    )


def test_margins_that_are_not_measured_are_left_out_or_forecast_as_sums(tmp_path: Path) -> None:
    """a.csv has two groups of three; b.csv two codes: 12 finest cells at most are added up."""
    (tmp_path / "a.csv").write_text(
        "code,parent,label\n1,,\n2,,\n" + "".join(f"{g}{c},{g},\n" for g in "12" for c in "abc")
    )
    (tmp_path / "b.csv").write_text("code,parent,label\nx,,\ny,,\n")
    head = CROSS.partition("[[cubes]]")[0].replace('households = "absent too.parquet"\n', "")
    text = (
        head.replace('household_id = "hid"\n', "") + '[[cubes]]\nid = "both"\naxes = ["A.H", "B"]\n[noise]\n'
    )
    for split, axes in (('margins = "none"', {2}), ('margins = "none", sums = true', {0, 1, 2})):
        noise = f'kind = "geometric"\nepsilon = 1\nnegatives = "keep"\nsplit = {{ {split} }}\n'
        (tmp_path / "p.toml").write_text(text + noise)
        programme = load_declaration(tmp_path / "p.toml")
        found = forecast(programme, [declared(programme)]).candidates[0].margins
        assert {margin.axes for margin in found} == axes
        one = wide_deviation(LawKind.GEOMETRIC, Fraction(1))
        (finest,) = [m.law.deviation for m in found if m.cells == 12]
        assert finest == pytest.approx(one)
        for total in (margin for margin in found if margin.axes == 0):
            assert total.law.deviation == pytest.approx(math.sqrt(12) * one)
