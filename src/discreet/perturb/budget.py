"""How much noise each cross-tabulation gets, and the guarantee of the whole programme; nothing is drawn here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import ceil

from discreet.errors import mistake
from discreet.maths.noise.additive import AdditiveLaw, LawKind
from discreet.maths.noise.certificates import utility_delta
from discreet.maths.noise.exponential import UtilityLaw
from discreet.maths.noise.hellinger import HellingerLaw
from discreet.maths.noise.named import budgeted_law
from discreet.maths.noise.thresholds import (
    NEGLIGIBLE,
    RowLaw,
    ThresholdTable,
    delta_between,
    row_table,
    zero_table,
)
from discreet.maths.privacy.accounting import EpsilonDelta, exp_above
from discreet.maths.privacy.composition import Composition, composed_delta
from discreet.maths.privacy.loss_distribution import FEW_POINTS, POINTS
from discreet.maths.privacy.sensitivity import Reach
from discreet.perturb.reach import reach
from discreet.programme.cube import Cube, Signature
from discreet.programme.noise import BudgetRule, PrivateNoise
from discreet.programme.split import allotted

UNITS_OF_WEIGHT = 10  # sums of weights are published in tenths, and so is their noise
FIRST_ROWS = 4  # neighbouring counts differ most where they are smallest
FACTOR_STEPS = 64  # of the factor by which composition enlarges the parameters of all cross-tabulations
DRAWING_SHARE = Fraction(
    1, 1024
)  # of a declared delta, left for the distance between what is drawn and its law


def shares(rule: BudgetRule, cubes: Sequence[Cube]) -> dict[Signature, Fraction]:
    """The part of the budget that each measured cross-tabulation of a programme may use; all together it is spent."""
    return allotted(rule, cubes)


def law_of(rule: PrivateNoise, parameter: Fraction) -> AdditiveLaw | RowLaw:
    """The law of one cell's noise; its parameter is the epsilon (or rho) that a change of one costs."""
    return budgeted_law(rule.kind, parameter, rule.bound, rule.utility)


@dataclass(frozen=True, eq=False)
class NoisePlan:
    """The noise parameter of every cross-tabulation and the integer tables that draw it."""

    rule: PrivateNoise
    parameters: Mapping[Signature, Fraction]
    tables: Mapping[Fraction, ThresholdTable]  # of zero counts where the law depends on the count
    distances: Mapping[Signature, Fraction] = field(default_factory=dict)  # total variation that drawing adds

    def table(self, signature: Signature) -> ThresholdTable:
        """The table that draws the noise of a cross-tabulation."""
        return self.tables[self.parameters[signature]]

    def delta(self, points: int = POINTS) -> Fraction:
        """The certified delta of the whole programme at its nominal epsilon, rounded up.

        The deltas of tables are those of the integers that are drawn; where empty cells are drawn by gaps, a distance d
        to the tables' law adds (1 + e^epsilon) d with the epsilon of that cross-tabulation. ``points``: of the grid of
        privacy-loss distributions; fewer give a higher delta, sooner.
        """
        if self.rule.is_gaussian:
            return self.rule.delta
        if self.rule.composition is not Composition.BASIC:
            return self._composed(points)
        certified: dict[tuple[Fraction, Reach], Fraction] = {}
        total = Fraction(0)
        for signature, parameter in self.parameters.items():
            touched = touched_by(signature, self.rule)
            if (parameter, touched) not in certified:
                certified[parameter, touched] = self.certified(parameter, touched)
            total += certified[parameter, touched]
            if distance := self.distances.get(signature):
                total += (1 + exp_above(parameter * touched.l1)) * distance
        return total

    def _composed(self, points: int) -> Fraction:
        """The delta at the nominal epsilon by advanced composition or by privacy-loss distributions.

        All parameters are fixed before anything is drawn, so that no filter is needed. A distance d of what is drawn
        adds (1 + e^epsilon) d.
        """
        epsilon, composition = self.rule.budget.spent, self.rule.composition
        parts: dict[tuple[Fraction, Reach], list[EpsilonDelta]] = {}
        every: list[EpsilonDelta] = []
        for signature, parameter in self.parameters.items():
            touched = touched_by(signature, self.rule)
            if (parameter, touched) not in parts:
                parts[parameter, touched] = self._parts(parameter, touched)
            every += parts[parameter, touched]
        drawn = (1 + exp_above(epsilon)) * self.distance() if self.distances else Fraction(0)
        return composed_delta(every, composition, epsilon, points) + drawn

    def _parts(self, parameter: Fraction, touched: Reach) -> list[EpsilonDelta]:
        """What one record costs in a cross-tabulation: each change of one by itself, unless changes can pile up."""
        whole = self.certified(parameter, touched) if self.tables else NEGLIGIBLE
        if touched.largest > 1:
            return [EpsilonDelta(parameter * touched.l1, whole)]
        return [EpsilonDelta(parameter, whole / touched.l1)] * touched.l1

    def distance(self) -> Fraction:
        """The total-variation distance between all that is drawn and the laws as they are written, at most."""
        return sum(self.distances.values(), Fraction(0))

    def certified(self, parameter: Fraction, touched: Reach) -> Fraction:
        """The delta of one cross-tabulation at its share of epsilon, however the change is divided over its cells.

        A cell whose count changes by k has a delta d(k) at k times the parameter, and these add up: at most the sum of
        all changes times the largest d(k)/k.
        """
        law = law_of(self.rule, parameter)
        if not isinstance(law, AdditiveLaw) or law.kind is LawKind.EXPONENTIAL:
            one = self._of_one(law)
            return (
                one * touched.l1
                if touched.largest == 1
                else EpsilonDelta(parameter, one).grouped(touched.l1).delta
            )
        return touched.l1 * self.tables[parameter].delta_per_change(parameter, touched.largest)

    def _of_one(self, law: AdditiveLaw | RowLaw) -> Fraction:
        """The delta of a change of one under a law of any shape; larger changes are then steps of one."""
        if isinstance(law, UtilityLaw):
            return utility_delta(law)
        if isinstance(law, HellingerLaw):
            return _hellinger_delta(law)
        return zero_table(law).certified_delta(law.parameter or 0)


@lru_cache(maxsize=64)
def _hellinger_delta(law: HellingerLaw) -> Fraction:
    """The largest delta of two neighbouring rows; a release states it in several places, and it takes seconds."""
    rows = [row_table(law, count) for count in range(FIRST_ROWS)]
    return max(delta_between(p, q, law.parameter) for p, q in pairwise(rows))


def plan(rule: PrivateNoise, cubes: Sequence[Cube]) -> NoisePlan:
    """Divide the budget over the cross-tabulations and make the tables."""
    return _plan_of(rule, noise_parameters(rule, cubes))


def _plan_of(rule: PrivateNoise, parameters: Mapping[Signature, Fraction]) -> NoisePlan:
    tables = {parameter: zero_table(law_of(rule, parameter)) for parameter in set(parameters.values())}
    return NoisePlan(rule, parameters, tables)


def noise_parameters(rule: PrivateNoise, cubes: Sequence[Cube]) -> dict[Signature, Fraction]:
    """The noise parameter of each cross-tabulation: its share of the budget, divided by what one record reaches.

    Where losses are not composed by adding them up, all parameters are enlarged by one factor.
    """
    parameters = {}
    for signature, share in shares(rule.budget, cubes).items():
        touched = touched_by(signature, rule)
        parameters[signature] = share / (touched.l2_squared if rule.is_gaussian else touched.l1)
    return parameters if rule.composition is Composition.BASIC else _enlarged(rule, parameters)


def _tried(rule: PrivateNoise, parameters: Mapping[Signature, Fraction]) -> NoisePlan:
    """A plan to search with; the wide tables of geometric noise, of which delta hardly depends, are left out of it."""
    return NoisePlan(rule, parameters, {}) if rule.kind is LawKind.GEOMETRIC else _plan_of(rule, parameters)


def _enlarged(rule: PrivateNoise, parameters: Mapping[Signature, Fraction]) -> dict[Signature, Fraction]:
    """Multiply all parameters by the largest factor found whose composition is certified to be within the budget.

    The factor is a multiple of 1/FACTOR_STEPS; a part of delta is left for what drawing adds. It is found by halving
    with few points, and then with all of them, near by.
    """
    allowed = rule.delta * (1 - DRAWING_SHARE)

    def times(factor: int) -> dict[Signature, Fraction]:
        return {one: parameter * Fraction(factor, FACTOR_STEPS) for one, parameter in parameters.items()}

    def is_within(factor: int, points: int = POINTS) -> bool:
        return _tried(rule, times(factor)).delta(points) <= allowed

    # k releases of epsilon each are never epsilon
    least, most = FACTOR_STEPS, FACTOR_STEPS * (len(parameters) + 1)
    near = _largest(lambda factor: is_within(factor, FEW_POINTS), least, most)
    step = 1
    if near > least and not is_within(near):
        while near - step > least and not is_within(near - step):
            step *= 2
        return times(_largest(is_within, max(near - step, least), near))
    while near + step < most and is_within(near + step):
        near, step = near + step, 2 * step
    return times(_largest(is_within, near, min(near + step, most)))


def _largest(passes: Callable[[int], bool], low: int, high: int) -> int:
    """The largest number from ``low``, which passes, to below ``high``, which does not, found by halving."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if passes(middle) else (low, middle)
    return low


def touched_by(signature: Signature, rule: PrivateNoise) -> Reach:
    """How far neighbours differ in a cross-tabulation of counts, or of sums of weights in units of a weight.

    A record of weight w <= w_max changes a sum by at most W = ceil(w_max / unit) units: absolute differences grow by
    the factor W, squared ones by W^2.
    """
    counted = reach(signature, rule)
    if not signature.weight:
        return counted
    if rule.largest_weight is None:
        remedy = "state noise.largest_weight: a sum of unbounded weights has no bounded sensitivity"
        raise mistake("", f"weights {signature.weight}", "without a largest weight", remedy)
    units = ceil(rule.largest_weight * UNITS_OF_WEIGHT)
    return Reach(counted.l1 * units, counted.l2_squared * units**2, counted.largest * units)
