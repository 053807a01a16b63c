"""What one noise law does to cells of given sizes, post-processing included, computed from the law itself.

It owns the errors of a law; which cells of a programme have which law is forecast's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from discreet.errors import Mistakes
from discreet.maths.balls import BITS
from discreet.maths.cell_error import CellError, expected_error
from discreet.maths.exponents import Symmetric, checked_support
from discreet.maths.laws import AdditiveLaw, LawKind
from discreet.maths.lookup import Lookup
from discreet.maths.pmf import Pmf
from discreet.maths.row_laws import HellingerLaw
from discreet.maths.thresholds import GUARD_BITS
from discreet.perturb.budget import law_of
from discreet.perturb.private import post_processed
from discreet.schema.noise import KeptZeros, PrivateNoise

SIZES = (0, 1, 2, 3, 5, 10, 20, 50, 100, 1000)  # true counts of the cells that are forecast
REPORTED_BITS = 64  # infinite laws are summed down to tails of 2^-64, below the rounding of floats


@dataclass(frozen=True, eq=False)
class LawForecast:
    """What one law does to cells; it has no errors where it is too wide to be drawn: too much noise."""

    parameter: Fraction | None  # the epsilon or rho of one cell; None for a p-table
    deviation: float  # the standard deviation of the noise of a large cell, before post-processing
    errors: tuple[CellError, ...]  # by SIZES

    @property
    def too_much(self) -> bool:
        """Whether the noise is too wide to be drawn."""
        return not self.errors

    def error(self, size: int) -> CellError | None:
        """The expected errors of a cell of this size; None where there is too much noise."""
        return next((error for error in self.errors if error.count == size), None)


def ptable_law(lookup: Lookup) -> LawForecast:
    """The cell key method: the rows of its lookup; zeros stay zero and nothing negative is published."""
    errors = []
    for size in SIZES:
        lengths = lookup.lengths(_row_of(lookup, size)) if size else {0: lookup.modulus}
        published = np.maximum(np.array(list(lengths)) + size, 0)
        errors.append(expected_error(size, published, np.array(list(lengths.values())) / lookup.modulus))
    return LawForecast(None, errors[-1].rmse, tuple(errors))


def _row_of(lookup: Lookup, count: int) -> int:
    beyond = count - lookup.wrap_from
    return count if count <= lookup.last_row else lookup.wrap_from + beyond % lookup.wrap_length


def private_law(rule: PrivateNoise, parameter: Fraction) -> LawForecast:
    """Noise of a law at one parameter, or its standard deviation alone where it cannot be drawn."""
    try:
        rows = _rows(rule, parameter)
    except Mistakes:
        return LawForecast(parameter, wide_deviation(rule.kind, parameter), ())
    return LawForecast(
        parameter, math.sqrt(rows[-1].variance), tuple(map(_error, rows, SIZES, [rule] * len(rows)))
    )


def _error(row: Pmf, size: int, rule: PrivateNoise) -> CellError:
    if size == 0 and rule.keep_zeros is KeptZeros.ALL:
        return expected_error(0, np.zeros(1, dtype=np.int64), np.ones(1))
    return expected_error(size, post_processed(row.values, rule.published), row.p)


def _rows(rule: PrivateNoise, parameter: Fraction) -> list[Pmf]:
    """The laws of the noisy counts of SIZES; noise that could not be drawn raises."""
    law = law_of(rule, parameter)
    if isinstance(law, HellingerLaw):
        for size in SIZES:
            law.last_target(size, BITS + GUARD_BITS)
        return [law.row(size) for size in SIZES]
    pmf = _changes(law)
    return [pmf.shifted(size) for size in SIZES]


def _changes(law: AdditiveLaw) -> Pmf:
    shape = law.exponents
    if not isinstance(shape, Symmetric):
        return law.pmf
    checked_support(2 * shape.reach(BITS + GUARD_BITS) + 1)  # what a table of thresholds is made of
    return replace(shape, bound=shape.reach(REPORTED_BITS)).pmf()


def wide_deviation(kind: LawKind, parameter: Fraction) -> float:
    """The standard deviation of wide noise by formula.

    Discrete Laplace: sqrt(2 a)/(1 - a), a = e^-epsilon. Discrete Gaussian: 1/sqrt(2 rho), to all digits where it is
    wide. Hellinger-type: the root mean square of j in an empty cell, where u = sqrt j has about the density
    c^2 u e^(-c u), c = epsilon/2, so that E j^2 = 5!/c^4.
    """
    value = float(parameter)
    if kind is LawKind.DISCRETE_GAUSSIAN:
        return 1 / math.sqrt(2 * value)
    if kind is LawKind.HELLINGER:
        return math.sqrt(120) / (value / 2) ** 2
    return math.sqrt(2 * math.exp(-value)) / -math.expm1(-value)
