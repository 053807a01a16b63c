import numpy as np
import pytest

from discreet.errors import Mistakes
from discreet.maths.noise.ptable import PTable, ptable_of_rows

STAY = ([0], [1.0])
FAIR = ([0, 1, 2], [0.25, 0.5, 0.25])


def test_moments_and_matrix_of_a_small_table() -> None:
    table = ptable_of_rows([STAY, FAIR])
    assert table.last_row == 1
    assert table.row_of(1_000_000) == 1
    assert table.mean(1) == 0.0
    assert table.variance(1) == 0.5
    assert table.stay(1) == 0.5
    assert table.reach == 1
    assert table.smallest_positive == 1
    assert table.entropy(1) == pytest.approx(1.5 * np.log(2))
    assert table.transition_matrix.tolist() == [[1.0, 0.0, 0.0], [0.25, 0.5, 0.25]]


def test_targets_may_come_in_any_order() -> None:
    table = ptable_of_rows([STAY, ([2, 0, 1], [0.25, 0.25, 0.5])])
    assert table.targets[1].tolist() == [0, 1, 2]
    assert table.stay(1) == 0.5


def test_monotony_looks_only_up_to_no_change() -> None:
    table = ptable_of_rows([STAY, ([0, 1, 2], [0.3, 0.4, 0.3]), ([0, 1, 2, 3, 4], [0.2, 0.1, 0.4, 0.1, 0.2])])
    assert table.is_monotone(1)
    assert not table.is_monotone(2)


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (([0, 1], [0.5, 0.6]), "sum to 1.1"),
        (([0, 1, 2], [0.2, 0.5, 0.3]), "mean change is 0.1"),
        (([0, 1, 2], [-0.1, 1.2, -0.1]), "outside 0..1"),
        (([-1, 1, 3], [0.25, 0.5, 0.25]), "target -1"),
        (([0, 0, 2], [0.25, 0.25, 0.5]), "repeat"),
        (([0, 1, 2], [0.5, np.nan, 0.5]), "outside 0..1"),
        (([], []), "0 targets"),
    ],
)
def test_an_inconsistent_row_is_refused(row: tuple[list[int], list[float]], text: str) -> None:
    with pytest.raises(Mistakes, match=text):
        ptable_of_rows([STAY, row])


def test_zero_must_stay_zero() -> None:
    with pytest.raises(Mistakes, match="zero can become positive"):
        ptable_of_rows([([0, 1], [1 - 5e-7, 5e-7]), FAIR])


def test_declared_bounds_are_checked() -> None:
    targets = (np.array([0]), np.array([0, 1, 2]))
    probabilities = (np.array([1.0]), np.array([0.25, 0.5, 0.25]))
    with pytest.raises(Mistakes, match="above js = 1"):
        PTable(targets, probabilities, js=1)
    with pytest.raises(Mistakes, match="within D = 0"):
        PTable(targets, probabilities, D=0)
    with pytest.raises(Mistakes, match=r"above V = 0\.4"):
        PTable(targets, probabilities, V=(0.4,))


def test_every_problem_is_told_at_once() -> None:
    with pytest.raises(Mistakes) as caught:
        ptable_of_rows([STAY, ([0, 1], [0.5, 0.6]), ([1, 2], [0.5, 0.5])])
    assert [problem.key for problem in caught.value.problems] == ["row 1", "row 2"]


def test_arrays_cannot_be_changed_afterwards() -> None:
    table = ptable_of_rows([STAY, FAIR])
    with pytest.raises(ValueError, match="read-only"):
        table.probabilities[1][0] = 0.0


def test_a_table_that_uses_its_bounds_to_the_full_or_less_is_accepted() -> None:
    targets = (np.array([0]), np.array([0, 2]))
    probabilities = (np.array([1.0]), np.array([0.5, 0.5]))
    for D in (1, 2):
        table = PTable(targets, probabilities, D=D, V=(1.0,), js=1)
        assert table.smallest_positive == 2
    with pytest.raises(Mistakes, match="target 2"):
        PTable(targets, probabilities, js=2)
    with pytest.raises(Mistakes, match="a change of 1"):
        PTable(targets, probabilities, D=0)


def test_the_tolerance_itself_is_tolerated() -> None:
    quarter = ptable_of_rows(
        [STAY, ([1], [0.75]), ([0, 1, 2, 3, 4], [0.25, 0, 0.5, 0, 0.25])], tolerance=0.25
    )
    assert quarter.stay(1) == 0.75
    assert quarter.is_monotone(2)
    with pytest.raises(Mistakes, match="sum to 2"):
        ptable_of_rows([STAY, ([0, 1, 2], [0.5, 1.0, 0.5])])


def test_an_even_row_is_monotone_and_targets_without_a_chance_have_no_entropy() -> None:
    table = ptable_of_rows([STAY, ([0, 1, 2, 3], [0.25, 0.5, 0.25, 0]), ([0, 1, 2, 3, 4], [0.2] * 5)])
    assert table.is_monotone(2)
    assert table.entropy(1) == pytest.approx(1.5 * np.log(2))
    assert table.entropy(2) == pytest.approx(np.log(5))


def test_rows_that_do_not_ascend_are_refused() -> None:
    with pytest.raises(Mistakes, match="do not ascend"):
        PTable((np.array([0]), np.array([2, 1, 0])), (np.array([1.0]), np.array([0.25, 0.5, 0.25])))
