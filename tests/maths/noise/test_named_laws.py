from typing import Any

import pytest

from discreet.errors import InfeasiblePTable, Mistakes
from discreet.maths.noise.additive import (
    LawKind,
    SquareSensitivity,
    discrete_gaussian,
    discrete_gaussian_of_sigma,
    discrete_laplace,
    truncated_laplace,
    truncated_normal,
    uniform,
)
from discreet.maths.noise.hellinger import PTableLaw, hellinger
from discreet.maths.noise.named import NEEDED, NoiseParameters, named_law

PAPER = SquareSensitivity.PAPER


@pytest.mark.parametrize(
    ("wanted", "law"),
    [
        (NoiseParameters(LawKind.LAPLACE, epsilon="1.5", bound=7), truncated_laplace(1.5, 7)),
        (NoiseParameters(LawKind.NORMAL, epsilon=0.5, bound=10), truncated_normal(0.5, 10)),
        (
            NoiseParameters(LawKind.NORMAL, epsilon=0.5, bound=10, sensitivity=PAPER),
            truncated_normal(0.5, 10, PAPER),
        ),
        (NoiseParameters(LawKind.GEOMETRIC, epsilon=1), discrete_laplace(1)),
        (NoiseParameters(LawKind.DISCRETE_GAUSSIAN, rho="1/3"), discrete_gaussian("1/3")),
        (NoiseParameters(LawKind.DISCRETE_GAUSSIAN, sigma=3), discrete_gaussian_of_sigma(3)),
        (NoiseParameters(LawKind.HELLINGER, epsilon=2), hellinger(2)),
        (NoiseParameters(LawKind.UNIFORM, bound=5), uniform(5)),
    ],
)
def test_each_kind_is_its_law(wanted: NoiseParameters, law: object) -> None:
    assert named_law(wanted) == law


def test_the_cell_key_law_is_a_p_table() -> None:
    law = named_law(NoiseParameters(LawKind.CELL_KEY, D=5, V=2.0))
    assert isinstance(law, PTableLaw)
    assert law.ptable.D == 5
    with pytest.raises(InfeasiblePTable):
        named_law(NoiseParameters(LawKind.CELL_KEY, D=2, V=0.1, js=2))


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (LawKind.GEOMETRIC, {"epsilon": 0}, "epsilon: 0; give a number above zero"),
        (LawKind.GEOMETRIC, {"epsilon": "-1/2"}, "above zero"),
        (LawKind.GEOMETRIC, {"epsilon": "many"}, "give a number from"),
        (LawKind.GEOMETRIC, {}, "epsilon: missing"),
        (LawKind.GEOMETRIC, {"epsilon": 1, "bound": 3}, "take laplace"),
        (LawKind.LAPLACE, {"epsilon": 1}, "take geometric"),
        (LawKind.LAPLACE, {"epsilon": 1, "bound": 0}, "at least 1"),
        (LawKind.DISCRETE_GAUSSIAN, {"epsilon": 1}, "no pure epsilon"),
        (LawKind.DISCRETE_GAUSSIAN, {}, "give one of them"),
        (LawKind.DISCRETE_GAUSSIAN, {"rho": 1, "sigma": 1}, "both; give one"),
        (LawKind.DISCRETE_GAUSSIAN, {"rho": 0}, "rho: 0"),
        (LawKind.HELLINGER, {"epsilon": 1, "rho": 1}, "leave it out: hellinger noise has epsilon"),
        (LawKind.UNIFORM, {"bound": 2, "epsilon": 1}, "uniform noise has bound"),
        (LawKind.CELL_KEY, {"D": 5}, "V: missing"),
        (
            LawKind.EXPONENTIAL,
            {"epsilon": 1},
            "utility: missing for exponential noise; give the file of utilities",
        ),
    ],
)
def test_wrong_parameters_are_refused(kind: LawKind, given: dict[str, Any], message: str) -> None:
    with pytest.raises(Mistakes, match=message):
        named_law(NoiseParameters(kind, **given))


def test_every_mistake_is_reported_at_once() -> None:
    with pytest.raises(Mistakes) as caught:
        named_law(NoiseParameters(LawKind.LAPLACE, rho=1, D=4))
    assert [problem.key for problem in caught.value.problems] == ["epsilon", "bound", "rho", "D"]


def test_every_named_kind_states_what_it_needs() -> None:
    assert set(NEEDED) == set(LawKind)


@pytest.mark.parametrize(
    "zero",
    [
        NoiseParameters(LawKind.LAPLACE, epsilon=0, bound=3),
        NoiseParameters(LawKind.LAPLACE, epsilon=1, bound=0),
        NoiseParameters(LawKind.NORMAL, epsilon=1, bound=0),
        NoiseParameters(LawKind.GEOMETRIC, epsilon=0),
        NoiseParameters(LawKind.UNIFORM, bound=0),
        NoiseParameters(LawKind.HELLINGER, epsilon=0),
        NoiseParameters(LawKind.DISCRETE_GAUSSIAN, rho=0),
        NoiseParameters(LawKind.DISCRETE_GAUSSIAN, sigma=0),
        NoiseParameters(LawKind.CELL_KEY, D=0, V=1.0),
        NoiseParameters(LawKind.CELL_KEY, D=3, V=0.0),
    ],
    ids=lambda zero: " ".join([zero.kind.value, *zero.given()]),
)
def test_a_parameter_of_zero_is_refused_and_not_taken_for_one_that_is_missing(zero: NoiseParameters) -> None:
    with pytest.raises(Mistakes) as told:
        named_law(zero)
    assert ": 0" in str(told.value)
