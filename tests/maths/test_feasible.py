"""The feasible region: the paper's numbers, what follows from what, and regions that are empty."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.maths.attacks.averaging import (
    contour,
    geometric_epsilon,
    laplace_epsilon,
    least_variance,
    success,
)
from discreet.maths.attacks.bounds import epsilon_of_bound, maximum_entropy, reveals, tuples_needed
from discreet.maths.feasible import (
    GAUSSIAN,
    GEOMETRIC,
    Constraint,
    LineFacts,
    OneParameter,
    ProgrammeExposure,
    RiskLimits,
    beyond,
    gaussian_variance,
    line,
    one_stays,
    plane,
    reveal,
    revealed_by,
    three_tuples,
)
from discreet.maths.noise.additive import AdditiveLaw, discrete_gaussian, discrete_laplace
from discreet.maths.noise.ptable_solver import PTableParameters, solve

MALTA, GERMANY = {(2, 2): 710_000}, {(2, 2): 28_000_000}  # the paper's tuples of two parts
VARIANCES = np.arange(1, 81) / 10
CHANGES = np.arange(1, 16, dtype=np.int64)


def test_the_contour_of_figure_2() -> None:
    assert contour(0.68) == pytest.approx(0.2528, abs=5e-5)
    assert least_variance(0.0867, 0.68) == pytest.approx(2.92, abs=0.005)
    assert laplace_epsilon(least_variance(0.0118, 0.68)) == pytest.approx(0.306, abs=5e-4)


def test_the_region_of_figure_6() -> None:
    """At k/t^2 = 0.0867 the paper finds V of about 3 and D of about 5 to 10."""
    found = plane(VARIANCES, CHANGES, ProgrammeExposure(0.0867, MALTA), RiskLimits())
    assert found.smallest == (3.0, 6)
    inside = found.feasible[:, np.isclose(found.V, 3.0)][:, 0]
    assert found.D[inside].tolist() == [6, 7, 8, 9, 10]
    without = found.without(Constraint.AVERAGING)
    assert without is not None
    assert without[0] < 3


def test_the_boxes_of_figure_1() -> None:
    """Five is enough at V = 2 for Malta's tuples, not for Germany's."""
    V, D = np.array([2.0]), np.array([5, 6], dtype=np.int64)
    malta, germany = (
        plane(V, D, ProgrammeExposure(1.0, tuples), RiskLimits()) for tuples in (MALTA, GERMANY)
    )
    assert malta.holds[Constraint.BOUND][:, 0].tolist() == [True, True]
    assert germany.holds[Constraint.BOUND][:, 0].tolist() == [False, True]
    assert germany.needed[0, 0] == 7_488_040
    assert reveals(maximum_entropy(2.0, 5), 5) == pytest.approx(1.52e-7, rel=5e-3)
    assert germany.revealed[0, 0] == pytest.approx(1 - math.exp(-28e6 * 1.5217e-7), abs=1e-3)


def test_beyond_the_uniform_law_no_variance_is_left() -> None:
    found = plane(
        np.array([2.0, 4.0]), np.array([2], dtype=np.int64), ProgrammeExposure(1.0, MALTA), RiskLimits()
    )
    assert found.variance[0].tolist() == pytest.approx([2.0, 2.0])
    assert found.success[0, 0] == pytest.approx(found.success[0, 1])
    assert found.holds[Constraint.PTABLE][0].tolist() == [True, False]


@pytest.mark.parametrize(
    ("js", "V", "D", "exists"), [(2, 2.0, 3, True), (2, 1.9, 3, False), (4, 6.0, 3, False)]
)
def test_never_published_counts_need_variance(js: int, V: float, D: int, exists: bool) -> None:
    found = plane(np.array([V]), np.array([D], dtype=np.int64), ProgrammeExposure(1.0, {}), RiskLimits(), js)
    assert found.holds[Constraint.PTABLE][0, 0] == exists


def test_an_empty_region_says_what_stands_in_the_way() -> None:
    """k/t^2 so small that V = 25 is needed, which no small count survives."""
    found = plane(np.arange(1, 101) / 2.5, CHANGES, ProgrammeExposure(0.01, MALTA), RiskLimits())
    assert found.smallest is None
    assert not (found.holds[Constraint.AVERAGING] & found.holds[Constraint.DISTORTION]).any()
    assert found.without(Constraint.AVERAGING) is not None
    assert found.without(Constraint.BOUND) is None


@settings(max_examples=25, deadline=None)
@given(st.floats(0.05, 1.0), st.integers(1, 10**7), st.integers(2, 5))
def test_more_noise_helps_against_attacks_and_harms_counts(ratio: float, tuples: int, parts: int) -> None:
    V, D = np.array([0.5, 1.0, 2.0, 3.0, 4.0]), np.array([4, 6, 8], dtype=np.int64)
    found = plane(V, D, ProgrammeExposure(ratio, {(parts, parts): tuples}), RiskLimits())
    assert (np.diff(found.success, axis=1) <= 1e-12).all()
    assert (np.diff(found.distorted, axis=1) >= -1e-12).all()
    assert (np.diff(found.revealed, axis=1) >= -1e-12).all()  # a wider law reaches its bound more often
    assert (np.diff(found.revealed, axis=0) <= 1e-12).all()


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 6), st.integers(1, 10**6), st.integers(1, 10**6))
def test_more_tuples_never_reveal_less(bound: int, some: int, more: int) -> None:
    law = maximum_entropy(bound / 2, bound)
    few, many = reveal(law, {(2, 2): some}), reveal(law, {(2, 2): some + more})
    assert few.probability <= many.probability + 1e-15
    assert few.probability <= reveal(law, {(2, 2): some, (3, 3): more}).probability + 1e-15


def test_tuples_of_one_occupied_part_show_nothing() -> None:
    law = maximum_entropy(3.0, 3)
    assert reveal(law, {(2, 1): 10**9}).probability == 0
    assert three_tuples({(2, 2): 3, (2, 1): 4, (3, 3): 5}) == 7


def test_ones_stay_as_the_solved_table_says() -> None:
    for V in (0.3, 0.7, 2.0):
        table = solve(PTableParameters(5, V))
        assert one_stays(V) == pytest.approx(table.probabilities[1][table.targets[1] == 1].sum(), abs=0.02)
    assert one_stays(2.0, js=1) == 0


def test_a_share_is_that_of_changes_beyond_the_limit() -> None:
    assert RiskLimits().change == 4
    assert beyond(maximum_entropy(100.0, 5), 4) == pytest.approx(2 / 11)


@pytest.mark.parametrize(("law", "made"), [(GEOMETRIC, discrete_laplace), (GAUSSIAN, discrete_gaussian)])
@pytest.mark.parametrize("parameter", ["0.05", "0.5", "2"])
def test_closed_forms_are_those_of_the_laws(
    law: OneParameter, made: Callable[[str], AdditiveLaw], parameter: str
) -> None:
    exact = made(parameter).pmf
    assert law.variance(float(parameter)) == pytest.approx(exact.variance, rel=1e-6)
    for change in (0, 3, 20):
        assert law.exceeds(float(parameter), change) == pytest.approx(
            beyond(exact, change), rel=1e-6, abs=1e-15
        )


def test_a_change_far_beyond_the_spread_is_never_impossible() -> None:
    """Twenty standard deviations: the sum goes on to the change, however small what is left."""
    whole = sum(math.exp(-0.5 * v * v) for v in range(-40, 41))
    assert GAUSSIAN.exceeds(0.5, 20) == pytest.approx(2 * math.exp(-0.5 * 21**2) / whole, rel=1e-6)


def test_limits_lie_where_the_law_meets_them() -> None:
    for law in (GEOMETRIC, GAUSSIAN):
        assert law.variance(law.at_least_variance(3.0)) == pytest.approx(3.0, rel=1e-6)
        assert law.exceeds(law.at_most_beyond(4, 0.05), 4) == pytest.approx(0.05, rel=1e-6)
    assert GEOMETRIC.at_least_variance(3.0) == pytest.approx(geometric_epsilon(3.0))
    assert gaussian_variance(1e-4) == pytest.approx(5000)


@pytest.mark.parametrize(("areas", "printed"), [(110_000, 0.637), (37_000, 0.583), (68, 0.268)])
def test_the_line_of_figure_5(areas: int, printed: float) -> None:
    """The discrete law needs a little less than the continuous one of the paper."""
    assert epsilon_of_bound(20, areas, 0.68) == pytest.approx(printed, abs=5e-4)
    found = line(GEOMETRIC, LineFacts(0.1, areas), RiskLimits())
    least = {one.constraint: one.value for one in found.limits}[Constraint.AREAS]
    assert printed * 0.95 < least < printed


def test_the_line_is_closed_where_utility_asks_for_more_than_risk_allows() -> None:
    """As in the paper: without the same noise, k/t^2 = 0.0118 leaves nothing for France."""
    shut = line(GEOMETRIC, LineFacts(0.0118, 37_000), RiskLimits())
    assert not shut.is_feasible
    assert shut.most is not None
    assert shut.most.constraint is Constraint.AVERAGING
    assert shut.most.value == pytest.approx(0.306, abs=0.002)
    assert line(GEOMETRIC, LineFacts(0.5, 68), RiskLimits()).is_feasible


def test_reconstruction_binds_only_where_enough_is_published() -> None:
    few, many = (LineFacts(1.0, records=10**6, cells=cells) for cells in (10**6, 10**9))
    assert Constraint.RECONSTRUCTION not in {
        one.constraint for one in line(GEOMETRIC, few, RiskLimits()).limits
    }
    found = line(GEOMETRIC, many, RiskLimits(averaging=0.99))
    values = {one.constraint: one.value for one in found.limits}
    assert values[Constraint.RECONSTRUCTION] == pytest.approx(0.0237, abs=5e-5)
    assert not found.is_feasible


def test_a_budget_is_divided_and_uneven_shares_narrow_the_line() -> None:
    plain = line(GEOMETRIC, LineFacts(0.5, price=100, budget=10), RiskLimits())
    assert {one.constraint: one.value for one in plain.limits}[Constraint.BUDGET] == pytest.approx(0.1)
    even, uneven = (line(GEOMETRIC, LineFacts(0.5, spread=spread), RiskLimits()) for spread in (1.0, 3.0))
    assert even.most is not None
    assert uneven.most is not None
    assert uneven.most.value == pytest.approx(even.most.value / 3)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(0.05, 30.0), min_size=1, max_size=3),
    st.integers(1, 12),
    st.dictionaries(
        st.tuples(st.integers(1, 90), st.integers(0, 90)).map(lambda pair: (pair[0], min(pair))),
        st.integers(1, 10**7),
        max_size=5,
    ),
)
def test_what_tuples_reveal_of_all_laws_at_once_is_what_they_reveal_of_each(
    variances: list[float], bound: int, tuples: dict[tuple[int, int], int]
) -> None:
    laws = [maximum_entropy(variance, bound) for variance in variances]
    wanted = [reveal(law, tuples).probability for law in laws]
    found = revealed_by(np.stack([law.p for law in laws]), tuples.items())
    assert found == pytest.approx(wanted, rel=1e-9, abs=1e-300)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(0.05, 30.0), min_size=1, max_size=4, unique=True).map(sorted),
    st.integers(1, 12),
    st.floats(0.01, 1.0),
    st.integers(0, 12),
)
def test_a_plane_judges_each_point_by_its_law(
    variances: list[float], bound: int, ratio: float, change: int
) -> None:
    limits = RiskLimits(size=10 * change + 1, relative=0.1)
    exposed = ProgrammeExposure(ratio, {(2, 2): 1000, (5, 3): 10})
    found = plane(np.array(variances), np.array([bound], dtype=np.int64), exposed, limits)
    for column, variance in enumerate(variances):
        law = maximum_entropy(variance, bound)
        assert found.variance[0, column] == pytest.approx(law.variance, rel=1e-12)
        assert found.success[0, column] == pytest.approx(success(law.variance, ratio), rel=1e-12)
        assert found.revealed[0, column] == pytest.approx(reveal(law, exposed.tuples).probability, rel=1e-9)
        assert found.distorted[0, column] == pytest.approx(beyond(law, limits.change), rel=1e-12)
        shown = reveals(law, bound)
        assert found.needed[0, column] == pytest.approx(
            tuples_needed(shown, limits.revealed), rel=1e-9, abs=1
        )
