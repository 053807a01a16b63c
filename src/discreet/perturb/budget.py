"""How much noise each cross-tabulation gets, and the guarantee of the whole programme; nothing is drawn here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from math import ceil

from discreet.errors import mistake
from discreet.maths.noise.additive import AdditiveLaw
from discreet.maths.noise.hellinger import HellingerLaw
from discreet.maths.noise.named import budgeted_law
from discreet.maths.noise.thresholds import ThresholdTable, delta_between, row_table, threshold_table
from discreet.maths.privacy.accounting import EpsilonDelta, exp_above
from discreet.maths.privacy.sensitivity import Reach
from discreet.perturb.reach import reach
from discreet.programme.cube import Cube, Signature
from discreet.programme.noise import BudgetRule, PrivateNoise
from discreet.programme.split import allotted

ARITHMETIC = Fraction(1, 10**18)  # a delta below this is rounding: stated, but it needs no declaration
UNITS_OF_WEIGHT = 10  # sums of weights are published in tenths, and so is their noise
FIRST_ROWS = 4  # neighbouring counts differ most where they are smallest


def shares(rule: BudgetRule, cubes: Sequence[Cube]) -> dict[Signature, Fraction]:
    """The part of the budget that each measured cross-tabulation of a programme may use; all together it is spent."""
    return allotted(rule, cubes)


def law_of(rule: PrivateNoise, parameter: Fraction) -> AdditiveLaw | HellingerLaw:
    """The law of one cell's noise; its parameter is the epsilon (or rho) that a change of one costs."""
    return budgeted_law(rule.kind, parameter, rule.bound)


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

    def delta(self) -> Fraction:
        """The certified delta of the whole programme at its nominal epsilon; basic composition, rounded up.

        The deltas of tables are those of the integers that are drawn; where empty cells are drawn by gaps, a distance d
        to the tables' law adds (1 + e^epsilon) d with the epsilon of that cross-tabulation.
        """
        if self.rule.is_gaussian:
            return self.rule.delta
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

    def distance(self) -> Fraction:
        """The total-variation distance between all that is drawn and the laws as they are written, at most."""
        return sum(self.distances.values(), Fraction(0))

    def certified(self, parameter: Fraction, touched: Reach) -> Fraction:
        """The delta of one cross-tabulation at its share of epsilon, however the change is divided over its cells.

        A cell whose count changes by k has a delta d(k) at k times the parameter, and these add up: at most the sum of
        all changes times the largest d(k)/k.
        """
        law = law_of(self.rule, parameter)
        if isinstance(law, HellingerLaw):
            rows = [row_table(law, count) for count in range(FIRST_ROWS)]
            one = max(delta_between(p, q, parameter) for p, q in pairwise(rows))
            return (
                one * touched.l1
                if touched.largest == 1
                else EpsilonDelta(parameter, one).grouped(touched.l1).delta
            )
        return touched.l1 * self.tables[parameter].delta_per_change(parameter, touched.largest)


def plan(rule: PrivateNoise, cubes: Sequence[Cube]) -> NoisePlan:
    """Divide the budget over the cross-tabulations and make the tables."""
    parameters = noise_parameters(rule, cubes)
    tables = {parameter: _zero_table(law_of(rule, parameter)) for parameter in set(parameters.values())}
    return NoisePlan(rule, parameters, tables)


def noise_parameters(rule: PrivateNoise, cubes: Sequence[Cube]) -> dict[Signature, Fraction]:
    """The noise parameter of each cross-tabulation: its share of the budget, divided by what one record reaches."""
    parameters = {}
    for signature, share in shares(rule.budget, cubes).items():
        touched = touched_by(signature, rule)
        parameters[signature] = share / (touched.l2_squared if rule.is_gaussian else touched.l1)
    return parameters


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


def _zero_table(law: AdditiveLaw | HellingerLaw) -> ThresholdTable:
    return row_table(law, 0) if isinstance(law, HellingerLaw) else threshold_table(law)
