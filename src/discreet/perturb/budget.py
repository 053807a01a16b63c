"""How much noise each cross-tabulation gets, and the guarantee of the whole programme; nothing is drawn here.

Neighbours differ by one person or one household. A person is in one cell of every cross-tabulation of persons; a
person added or removed can move their household, family or dwelling from one cell to another: two cells. A household
of at most M members moves up to M persons and families, perhaps all in one cell, one household, and one dwelling
between two cells. Substituting one for another doubles the sum of all changes. What leaves and what comes differ in
sign, so that the squares double, too; but two households that each move from one cell to another may move alike, and
change both cells by two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil

from discreet.errors import mistake
from discreet.maths.noise.additive import AdditiveLaw
from discreet.maths.noise.hellinger import HellingerLaw
from discreet.maths.noise.named import budgeted_law
from discreet.maths.noise.thresholds import ThresholdTable, delta_between, row_table, threshold_table
from discreet.maths.privacy.accounting import EpsilonDelta, epsilon_of_rho
from discreet.programme.cube import Cube, Signature
from discreet.programme.noise import BudgetRule, PrivateNoise, Protects
from discreet.programme.split import allotted

ARITHMETIC = Fraction(1, 10**18)  # a delta below this is rounding: stated, but it needs no declaration
UNITS_OF_WEIGHT = 10  # sums of weights are published in tenths, and so is their noise
FIRST_ROWS = 4  # neighbouring counts differ most where they are smallest


@dataclass(frozen=True)
class Reach:
    """How far neighbours differ in a cross-tabulation: sums of absolute and squared differences, the largest one."""

    l1: int
    l2_squared: int
    largest: int


def reach(unit: str, rule: PrivateNoise) -> Reach:
    """How much one person or household changes a cross-tabulation of a unit."""
    times = rule.neighbours.cells
    moved = Reach(2 * times, 2 * times**2, times)
    if rule.protects is Protects.PERSON:
        return Reach(times, times, 1) if unit == "persons" else moved
    members = rule.largest_household or 0
    if unit in ("persons", "families"):
        return Reach(members * times, members**2 * times, members)
    return Reach(times, times, 1) if unit == "households" else moved


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

    def table(self, signature: Signature) -> ThresholdTable:
        """The table that draws the noise of a cross-tabulation."""
        return self.tables[self.parameters[signature]]

    def delta(self) -> Fraction:
        """The certified delta of the whole programme at its nominal epsilon; basic composition, rounded up."""
        if self.rule.is_gaussian:
            return self.rule.delta
        certified: dict[tuple[Fraction, Reach], Fraction] = {}
        total = Fraction(0)
        for signature, parameter in self.parameters.items():
            touched = touched_by(signature, self.rule)
            if (parameter, touched) not in certified:
                certified[parameter, touched] = self._certified(parameter, touched)
            total += certified[parameter, touched]
        return total

    def _certified(self, parameter: Fraction, touched: Reach) -> Fraction:
        """The delta of one cross-tabulation: records spread over cells, or all in one; the worse of the two counts.

        The delta of a shift by k grows faster than k, so that no division of the records in between is worse.
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
        table = self.tables[parameter]
        spread = table.certified_delta(parameter) * touched.l1
        piles = Fraction(touched.l1, touched.largest)
        piled = table.certified_delta(parameter * touched.largest, touched.largest) * piles
        return max(spread, piled)

    def epsilon(self) -> float:
        """The epsilon of the whole programme: the budget itself, or that of rho at the declared delta."""
        if self.rule.is_gaussian:
            return epsilon_of_rho(self.rule.budget.spent, self.rule.delta or ARITHMETIC)
        return float(self.rule.budget.spent)


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
    counted = reach(signature.unit, rule)
    if not signature.weight:
        return counted
    if rule.largest_weight is None:
        remedy = "state noise.largest_weight: a sum of unbounded weights has no bounded sensitivity"
        raise mistake("", f"weights {signature.weight}", "without a largest weight", remedy)
    units = ceil(rule.largest_weight * UNITS_OF_WEIGHT)
    return Reach(counted.l1 * units, counted.l2_squared * units**2, counted.largest * units)


def _zero_table(law: AdditiveLaw | HellingerLaw) -> ThresholdTable:
    return row_table(law, 0) if isinstance(law, HellingerLaw) else threshold_table(law)
