"""Budgets of a programme by advanced composition and by privacy-loss distributions: less noise, never too little."""

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from discreet.errors import Mistakes
from discreet.maths.noise.additive import LawKind
from discreet.maths.privacy.composition import Composition
from discreet.perturb.budget import NoisePlan, noise_parameters, plan, touched_by
from discreet.programme.cube import Cube
from discreet.programme.noise import BudgetRule, PrivateNoise, Protects, Split
from discreet.programme.programme import load_declaration
from tests.attributes import own
from tests.perturb.test_private import AXES, TREES, cube

DELTA = Fraction(1, 10**6)
CUBES = [cube("a", "A.L", "B.L"), Cube("h", "households", (AXES["A.L"], AXES["B.L"]))]


def rule(composition: Composition, **more: object) -> PrivateNoise:
    made = PrivateNoise(
        LawKind.GEOMETRIC,
        BudgetRule(Fraction(1, 4)),
        delta=DELTA,
        composition=composition,
        attributes=own(*TREES, *(f"V{k}" for k in range(6))),
    )
    return replace(made, **more)  # type: ignore[arg-type]


def losses_of(found: NoisePlan) -> list[float]:
    """The loss of every cell that one record changes by one; of all changes together where they may pile up."""
    losses: list[float] = []
    for one, parameter in found.parameters.items():
        touched = touched_by(one, found.rule)
        whole = [float(parameter * touched.l1)]
        losses += whole if touched.largest > 1 else [float(parameter)] * touched.l1
    return losses


def exact_delta(losses: list[float], epsilon: float) -> float:
    """The delta of randomised responses of these epsilons, on a fine grid, without rounding toward privacy."""
    grid, size = 1e-4, 2**17
    masses = np.zeros(size)
    masses[size // 2] = 1
    for loss in losses:
        step, p = round(loss / grid), 1 / (1 + math.exp(-loss))
        masses = p * np.roll(masses, step) + (1 - p) * np.roll(masses, -step)
    total = (np.arange(size) - size // 2) * grid
    over = total > epsilon
    return float(masses[over] @ -np.expm1(epsilon - total[over]))


@pytest.mark.parametrize("composition", [Composition.ADVANCED, Composition.PLD])
def test_the_whole_release_stays_within_its_epsilon_and_delta(composition: Composition) -> None:
    """Against an independent convolution; twice the factor that was found would exceed the declared delta."""
    large = Fraction(1, 50)
    kept = rule(composition, delta=large)
    plain, found = plan(rule(Composition.BASIC), CUBES), plan(kept, CUBES)
    factors = {found.parameters[one] / plain.parameters[one] for one in plain.parameters}
    assert len(factors) == 1
    assert len(losses_of(found)) > len(found.parameters)  # a person who is added moves a household, too
    assert found.delta() <= large
    assert exact_delta(losses_of(found), 0.25) <= float(large)
    if factors == {Fraction(1)}:
        assert composition is Composition.ADVANCED  # few releases: adding up is better
        return
    (factor,) = factors
    assert factor > 1
    more = {one: 2 * parameter for one, parameter in found.parameters.items()}
    assert NoisePlan(kept, more, {}).delta() > large
    if composition is Composition.PLD:  # which is not loose
        assert exact_delta([2 * loss for loss in losses_of(found)], 0.25) > float(large)


def test_many_cross_tabulations_gain_by_every_step(many: list[Cube]) -> None:
    parameters = []
    for composition in Composition:
        found = noise_parameters(rule(composition, budget=BudgetRule(Fraction(1))), many)
        parameters.append(min(found.values()))
        assert len(found) == 64
    assert parameters[0] < parameters[1] < parameters[2]
    assert parameters[0] == Fraction(1, 64)
    whole = plan(rule(Composition.PLD, budget=BudgetRule(Fraction(1))), many)
    assert exact_delta(losses_of(whole), 1.0) <= float(DELTA)
    assert exact_delta([1.05 * loss for loss in losses_of(whole)], 1.0) > float(DELTA)


@pytest.fixture
def many() -> list[Cube]:
    """64 cross-tabulations of persons, by as many names for an axis."""
    axes = [replace(AXES["A.L"], variable=f"V{k}") for k in range(6)]
    return [Cube("many", "persons", tuple(axes))]


def test_shares_keep_their_ratios_and_households_are_whole_losses() -> None:
    shares = {"0": Fraction(1, 10), "1": Fraction(4, 10), "2": Fraction(5, 10)}
    budget = BudgetRule(Fraction(1, 4), Split.BY_AXES, shares)
    kept = rule(Composition.PLD, budget=budget, protects=Protects.HOUSEHOLD, largest_household=3)
    plain = plan(replace(kept, composition=Composition.BASIC), CUBES[:1])
    found = plan(kept, CUBES[:1])
    assert len({found.parameters[one] / plain.parameters[one] for one in plain.parameters}) == 1
    assert found.delta() <= DELTA
    # all members may be in one cell: the losses of a cross-tabulation are three times its parameter
    assert exact_delta(losses_of(found), 0.25) <= float(DELTA)


def test_what_drawing_adds_is_added() -> None:
    found = plan(rule(Composition.PLD), CUBES)
    one = next(iter(found.parameters))
    drawn = replace(found, distances={one: Fraction(1, 10**9)})
    assert float(drawn.delta() - found.delta()) == pytest.approx((1 + math.exp(0.25)) * 1e-9, rel=1e-9)


PROGRAMME = """
[population.persons]
source = "persons.csv"
key = "ID"
[variables.SEX]
codelist = "sex.csv"
[[cubes]]
id = "a"
axes = ["SEX"]
[noise]
"""


@pytest.mark.parametrize(
    ("noise", "said"),
    [
        (
            'kind = "geometric"\nepsilon = 1\ncomposition = "pld"',
            "delta: is missing or 0; pld composition buys",
        ),
        ('kind = "geometric"\nepsilon = 1\ndelta = 0\ncomposition = "advanced"', "delta: is missing or 0"),
        ('kind = "discrete-gaussian"\nrho = 1\ndelta = 1e-9\ncomposition = "pld"', "rhos add up exactly"),
        ('kind = "hellinger"\nepsilon = 9\ndelta = 1e-9\ncomposition = "pld"', "there for comparison"),
        (
            'kind = "geometric"\nepsilon = 1\ndelta = 1e-9\nclaim = "none"\ncomposition = "pld"',
            "nothing is claimed",
        ),
        ('kind = "exponential"\nepsilon = 1\ndelta = 1e-9', "noise.utility: is missing"),
        ('kind = "geometric"\nepsilon = 1\nutility = "u.csv"', "geometric noise has none"),
        ('kind = "exponential"\nepsilon = 1\nutility = "u.csv"', "noise.delta: is missing"),
        ('kind = "exponential"\nepsilon = 1\ndelta = 0.1\nutility = "u.csv"', "cannot be read"),
    ],
)
def test_declarations_that_mean_nothing_are_refused(tmp_path: Path, noise: str, said: str) -> None:
    (tmp_path / "sex.csv").write_text("code,label\nM,male\nF,female\n")
    (tmp_path / "persons.csv").write_text("ID,SEX\n1,M\n")
    (tmp_path / "p.toml").write_text(PROGRAMME + noise)
    with pytest.raises(Mistakes) as caught:
        load_declaration(tmp_path / "p.toml")
    assert said in str(caught.value)
