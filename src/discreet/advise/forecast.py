"""Forecast of a programme: expected errors of each cross-tabulation and cell size under each candidate noise."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import prod

import numpy as np

from discreet.errors import Mistakes, mistake
from discreet.hierarchy.blocks import blocks_of
from discreet.hierarchy.errors import AdjustedError, adjusted_errors
from discreet.maths.cells.lookup import Lookup
from discreet.maths.noise.additive import AdditiveLaw, LawKind, exact
from discreet.maths.noise.hellinger import HellingerLaw
from discreet.maths.noise.law import Pmf, Symmetric, checked_support
from discreet.maths.noise.ptable_solver import PTableParameters
from discreet.maths.noise.thresholds import BITS, GUARD_BITS
from discreet.maths.privacy.accounting import largest_rho
from discreet.maths.privacy.composition import Composition
from discreet.maths.privacy.sensitivity import Reach
from discreet.maths.utility import CellError, expected_error
from discreet.perturb.budget import law_of, noise_parameters, plan
from discreet.perturb.choose import cell_key_mechanism
from discreet.perturb.reach import neighbour_problems, reach
from discreet.programme.cube import Cube, Depths, Signature, signatures
from discreet.programme.noise import BudgetRule, CellKeyNoise, Claim, Draw, KeptZeros, PrivateNoise
from discreet.programme.programme import Programme, attributes_of
from discreet.programme.split import summed_cells

SIZES = (0, 1, 2, 3, 5, 10, 20, 50, 100, 1000)  # true counts of the cells that are forecast
REPORTED_BITS = 64  # infinite laws are summed down to tails of 2^-64, below the rounding of floats


@dataclass(frozen=True, eq=False)
class LawForecast:
    """The expected errors of cells under one law; none if the law is too wide to be drawn (too much noise)."""

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


def private_law(rule: PrivateNoise, parameter: Fraction, added: int = 1) -> LawForecast:
    """Noise of a law at one parameter, or a sum of such; only its standard deviation where it cannot be drawn."""
    try:
        rows = _rows(rule, parameter)
    except Mistakes:
        return LawForecast(parameter, wide_deviation(rule.kind, parameter) * math.sqrt(added), ())
    if added > 1:
        rows = [
            sum_of(row.shifted(-size), added).shifted(size) for row, size in zip(rows, SIZES, strict=True)
        ]
    return LawForecast(
        parameter, math.sqrt(rows[-1].variance), tuple(map(_error, rows, SIZES, [rule] * len(rows)))
    )


SPREAD = 12  # standard deviations of a sum beyond which its law is left out


def sum_of(change: Pmf, added: int) -> Pmf:
    """The law of a sum of independent noises: the power of their Fourier transform, out to twelve deviations."""
    reach = max(abs(change.first), abs(change.last))
    reach = min(added * reach, max(reach, math.ceil(SPREAD * math.sqrt(added * change.variance))))
    size = 2 * reach + 1
    one = np.zeros(size)
    np.add.at(one, change.values % size, change.p)
    p = np.clip(np.fft.irfft(np.fft.rfft(one) ** added, size), 0, None)
    return Pmf(-reach, np.roll(p, reach) / p.sum())


def _error(row: Pmf, size: int, rule: PrivateNoise) -> CellError:
    if size == 0 and rule.keep_zeros is KeptZeros.ALL:
        return expected_error(0, np.zeros(1, dtype=np.int64), np.ones(1))
    return expected_error(size, rule.published.publish(row.values), row.p)


def _rows(rule: PrivateNoise, parameter: Fraction) -> list[Pmf]:
    """The laws of the noisy counts of SIZES; noise that could not be drawn raises."""
    law = law_of(rule, parameter)
    if isinstance(law, HellingerLaw):
        for size in SIZES:
            law.last_target(size, BITS + GUARD_BITS)
        return [law.row(size) for size in SIZES]
    if not isinstance(law, AdditiveLaw):
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


@dataclass(frozen=True)
class Unavailable:
    """Noise that is not available, and why."""

    reason: str


CandidateNoise = Lookup | PrivateNoise | Unavailable
Layout = Mapping[
    tuple[str, int, Fraction, int], tuple[int, int]
]  # (cube, axes, weight, cells that are added up) -> (cross-tabulations, cells)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A noise to forecast: the lookup of a p-table, or a law with a budget for the whole programme."""

    name: str
    noise: CandidateNoise
    notes: tuple[str, ...] = ()  # why protect would refuse it, or further parameters


@dataclass(frozen=True, eq=False)
class MarginForecast:
    """The cross-tabulations of a cube with the same number of axes and the same law."""

    cube: str
    axes: int  # 0 is the grand total
    crosstabs: int
    cells: int
    law: LawForecast


@dataclass(frozen=True, eq=False)
class CandidateForecast:
    """The forecast of one candidate for every margin of every cube."""

    candidate: Candidate
    margins: tuple[MarginForecast, ...]  # none where the noise is not available

    @cached_property
    def laws(self) -> tuple[LawForecast, ...]:
        """The different laws, ordered by their number of cross-tabulations, largest first."""
        uses: Counter[LawForecast] = Counter()
        for margin in self.margins:
            uses[margin.law] += margin.crosstabs
        return tuple(law for law, _ in uses.most_common())


@dataclass(frozen=True, eq=False)
class Forecast:
    """The forecasts of all candidates for one programme."""

    programme: str
    crosstabs: int  # different ones: a budget is divided over them
    candidates: tuple[CandidateForecast, ...]
    adjusted: tuple[AdjustedError, ...] = ()  # of the declared noise, where totals are to add up

    def only(self, cubes: Collection[str]) -> Forecast:
        """The forecast of only some cubes; the budget is still that of the whole programme."""
        selected = (
            CandidateForecast(one.candidate, tuple(margin for margin in one.margins if margin.cube in cubes))
            for one in self.candidates
        )
        adjusted = tuple(error for error in self.adjusted if error.cube in cubes)
        return replace(self, candidates=tuple(selected), adjusted=adjusted)


def forecast(programme: Programme, candidates: Sequence[Candidate]) -> Forecast:
    """Forecast the errors of every cube, margin and cell size under each candidate."""
    budgeted = budgeted_cubes(programme)
    cubes = [cube for cube in budgeted if not cube.weight]
    parts = [part for cube in cubes for part in _parts(cube)]
    whole = [part for cube in cubes for part in _parts(replace(cube, shown=None))]  # of the cell key method
    layouts: dict[Hashable, Layout] = {}  # candidates that divide their budgets in the same way share one
    forecasts = []
    for candidate in candidates:
        noise = candidate.noise
        key = _division(noise)
        if key not in layouts:
            used = whole if isinstance(noise, Lookup) else parts
            layouts[key] = _layout(
                used, _weights(noise, budgeted, {one for part in used for one in part.measured})
            )
        margins = _margins(layouts[key], _laws(noise, layouts[key]))
        forecasts.append(CandidateForecast(candidate, margins))
    return Forecast(programme.name, len(signatures(budgeted)), tuple(forecasts), _adjusted(programme))


def _adjusted(programme: Programme) -> tuple[AdjustedError, ...]:
    """Errors of the declared noise before and after totals are made to add up, where they are."""
    if not programme.release.consistent:
        return ()
    noise = programme.noise
    if isinstance(noise, PrivateNoise):
        parameters = noise_parameters(noise, programme.cubes)
        by_parameter = {p: private_law(noise, p).deviation ** 2 for p in set(parameters.values())}
        variance = {signature: by_parameter[p] for signature, p in parameters.items()}
    else:
        largest = cell_key_mechanism(noise, NO_KEY).variance
        variance = dict.fromkeys(signatures(programme.cubes), largest)
    variances = {
        cube.id: np.array([variance[signature] for signature in signatures([cube])]).reshape(
            [int(axis.depths.max()) + 1 for axis in cube.axes]
        )
        for cube in programme.cubes
    }
    return adjusted_errors(blocks_of(programme), variances)


@dataclass(frozen=True)
class _Part:
    """A cross-tabulation in a cube: measured, or a sum of at most so many measured cells."""

    cube: str
    axes: int
    measured: tuple[Signature, ...]  # itself, or what it adds up
    cells: int
    added: int = 1


def _parts(cube: Cube) -> list[_Part]:
    """The published cross-tabulations of a cube but public totals, those of fewest axes first."""
    shown = cube.shown
    found = [_part(cube, depths, depths) for depths in cube.measured]
    if shown is not None:
        found += [_part(cube, depths, *cube.interior) for depths in sorted(shown.summed)]
    return sorted(found, key=lambda part: part.axes)


def _part(cube: Cube, depths: Depths, *measured: Depths) -> _Part:
    widths = [int((axis.depths == depth).sum()) for axis, depth in zip(cube.axes, depths, strict=True)]
    added = 1 if measured == (depths,) else summed_cells(cube, depths)
    signatures = tuple(cube.signature(one) for one in measured)
    return _Part(cube.id, sum(map(bool, depths)), signatures, prod(widths), added)


def _division(noise: CandidateNoise) -> Hashable:
    """The settings that decide each cross-tabulation's part of a budget, except the amount and the law."""
    if not isinstance(noise, PrivateNoise):
        return isinstance(noise, Lookup)
    rule = noise.budget
    split = (rule.split, frozenset(rule.shares.items()), rule.margins, frozenset(rule.public.items()))
    whose = (noise.largest_weight, noise.neighbours, noise.protects, noise.largest_household)
    if noise.composition is Composition.BASIC:
        return (split, noise.is_gaussian, *whose)
    amounts = (noise.kind, noise.bound, noise.utility, noise.budget.total, noise.delta)
    return (split, noise.composition, *amounts, *whose)  # a parameter is then not proportional to the budget


def _weights(
    noise: CandidateNoise, cubes: Sequence[Cube], crosstabs: Collection[Signature]
) -> Mapping[Signature, Fraction]:
    """The noise parameter of each cross-tabulation for a budget of 1; it grows with the budget."""
    if isinstance(noise, Unavailable):
        return {}
    if isinstance(noise, Lookup):
        return dict.fromkeys(crosstabs, Fraction(1))
    if noise.composition is not Composition.BASIC:
        whole = noise_parameters(_supposed(noise), cubes)
        return {one: amount / noise.budget.total for one, amount in whole.items()}
    return noise_parameters(_supposed(replace(noise, budget=replace(noise.budget, total=Fraction(1)))), cubes)


def _supposed(rule: PrivateNoise) -> PrivateNoise:
    """The rule for a forecast: what it lacks to be guaranteed is noted, and supposed not to change anything."""
    return replace(rule, claim=Claim.NONE)


def budgeted_cubes(programme: Programme) -> list[Cube]:
    """The cubes over which a budget is divided; without a largest weight as if they had no weights.

    With one, sums of weights have their part of the budget, but they are not counts and not forecast.
    """
    noise = programme.noise
    if isinstance(noise, PrivateNoise) and noise.largest_weight is not None:
        return list(programme.cubes)
    return [replace(cube, weight=None) for cube in programme.cubes]


def _layout(parts: Sequence[_Part], weights: Mapping[Signature, Fraction]) -> Layout:
    layout: dict[tuple[str, int, Fraction, int], tuple[int, int]] = {}
    for part in parts if weights else ():
        widest = min(weights[one] for one in part.measured)
        group = (part.cube, part.axes, widest, part.added)
        crosstabs, cells = layout.get(group, (0, 0))
        layout[group] = (crosstabs + 1, cells + part.cells)
    return layout


Drawn = tuple[Fraction, int]  # weight, and how many noises of it are added up


def _laws(noise: CandidateNoise, layout: Layout) -> dict[Drawn, LawForecast]:
    """The law of each weight, and of sums of such noise, computed once."""
    drawn = {(weight, added) for _, _, weight, added in layout}
    if isinstance(noise, PrivateNoise):
        return {
            (weight, added): private_law(noise, weight * noise.budget.total, added) for weight, added in drawn
        }
    return {one: ptable_law(noise) for one in drawn if isinstance(noise, Lookup)}


def _margins(layout: Layout, laws: Mapping[Drawn, LawForecast]) -> tuple[MarginForecast, ...]:
    return tuple(
        MarginForecast(cube, axes, crosstabs, cells, laws[weight, added])
        for (cube, axes, weight, added), (crosstabs, cells) in layout.items()
    )


EPSILONS = (Fraction(1), Fraction(5), Fraction(20))
DELTA = Fraction(1, 10**9)
LARGEST_EPSILON = 500  # e^epsilon stays a float
LARGEST_BOUND = 100_000  # as programme files allow
USUAL = PTableParameters(D=5, V=2.0, js=0)
RHO_DIGITS = 4  # of a rho that is proposed
NO_KEY = bytes(32)  # the law of a lookup does not depend on the order that a key gives it

COMPOSED = {
    Composition.ADVANCED: "advanced composition",
    Composition.PLD: "privacy-loss distributions",
}
Uses = Mapping[tuple[Reach, Fraction], int]  # (reach, noise parameter) -> number of cross-tabulations


def candidates_for(programme: Programme, epsilons: Sequence[Fraction] = EPSILONS) -> tuple[Candidate, ...]:
    """The declared noise first, then the usual cell key method, then each law at each budget."""
    return tuple(
        replace(one, notes=(*one.notes, *_weighted_cubes(programme, one), *_undeclared(programme, one)))
        for one in _every(programme, epsilons)
    )


def read_epsilons(text: str) -> tuple[Fraction, ...]:
    """Distinct budgets in ascending order, from comma-separated numbers or fractions."""
    found = {exact("--epsilon", part.strip()) for part in text.split(",") if part.strip()}
    if not found or not all(0 < epsilon <= LARGEST_EPSILON for epsilon in found):
        remedy = f"give budgets above 0 and at most {LARGEST_EPSILON}, separated by commas, such as 1,5,20"
        raise mistake("", "--epsilon", repr(text), remedy)
    return tuple(sorted(found))


def _every(programme: Programme, epsilons: Sequence[Fraction]) -> Iterator[Candidate]:
    noise = programme.noise
    yield declared(programme)
    if not (isinstance(noise, CellKeyNoise) and noise.table == USUAL):
        yield _cell_key("cell-key, V 2, D 5", CellKeyNoise(USUAL))
    attributes = attributes_of(programme.variables, programme.population)
    template = (
        noise
        if isinstance(noise, PrivateNoise)
        else PrivateNoise(LawKind.GEOMETRIC, BudgetRule(DELTA), attributes=attributes)
    )
    unit = replace(
        template,
        kind=LawKind.GEOMETRIC,
        utility=None,
        composition=Composition.BASIC,
        budget=replace(template.budget, total=Fraction(1)),
    )
    uses = _uses(unit, budgeted_cubes(programme))
    for epsilon in epsilons:
        at = {(touched, parameter * epsilon): times for (touched, parameter), times in uses.items()}
        yield from _bought(template, epsilon, at)


def declared(programme: Programme) -> Candidate:
    """The noise that the programme declares; a p-table file is read."""
    noise = programme.noise
    if isinstance(noise, CellKeyNoise):
        return _cell_key("declared: cell-key", noise)
    budget = f"{'rho' if noise.is_gaussian else 'epsilon'} {shown(noise.budget.total)}"
    composed = "" if noise.composition is Composition.BASIC else f", {noise.composition.value}"
    name = f"declared: {noise.kind.value}, {budget}{composed}"
    return Candidate(name, noise, tuple(_excess(programme, noise)))


def shown(number: Fraction) -> str:
    """A budget as a short decimal."""
    return f"{float(number):.6g}"


def _cell_key(name: str, noise: CellKeyNoise) -> Candidate:
    made = cell_key_mechanism(noise, NO_KEY)
    return Candidate(name, made.lookup, made.notes)


def _excess(programme: Programme, noise: PrivateNoise) -> Iterator[str]:
    if noise.claim is Claim.NONE or (noise.bound is None and noise.utility is None):
        return
    if noise.utility is None and noise.composition is Composition.BASIC:
        spent = programme_delta(noise, _uses(noise, budgeted_cubes(programme)))
    else:
        spent = float(plan(_supposed(noise), budgeted_cubes(programme)).delta())
    if spent > noise.delta:
        yield f"truncation costs a delta of {spent:.3g}, but {float(noise.delta):.3g} is declared: protect refuses it"


def _weighted_cubes(programme: Programme, candidate: Candidate) -> Iterator[str]:
    weighted = [cube.id for cube in programme.cubes if cube.weight]
    if weighted and isinstance(candidate.noise, PrivateNoise):
        if candidate.noise.largest_weight is None:
            yield f"weights in {', '.join(weighted)}: protect refuses them without noise.largest_weight"
        else:
            yield f"sums of weights in {', '.join(weighted)} are not forecast; they have their share of the budget"


def _undeclared(programme: Programme, candidate: Candidate) -> Iterator[str]:
    if isinstance(candidate.noise, PrivateNoise):
        for problem in neighbour_problems(signatures(programme.cubes), candidate.noise, ""):
            yield f"as if no one else changed; protect refuses it: {problem.key}: {problem.value}"


def _bought(template: PrivateNoise, epsilon: Fraction, uses: Uses) -> Iterator[Candidate]:
    """The candidates of one budget: each law, with the template's neighbours, splits and post-processing."""
    text, budget = f"epsilon {shown(epsilon)}", replace(template.budget, total=epsilon)
    plain = replace(
        template,
        kind=LawKind.GEOMETRIC,
        budget=budget,
        bound=None,
        utility=None,
        delta=Fraction(0),
        draw=Draw.DESCRIPTION,
        keep_zeros=KeptZeros.STRUCTURAL,
        claim=Claim.DP,
        composition=Composition.BASIC,
    )
    yield Candidate(f"geometric, {text}", plain)
    for composition in (Composition.ADVANCED, Composition.PLD):
        composed = replace(plain, composition=composition, delta=DELTA)
        note = f"delta {float(DELTA):g}, composed by {COMPOSED[composition]}"
        yield Candidate(f"geometric, {text}, {composition.value}", composed, (note,))
    for kind in (LawKind.LAPLACE, LawKind.NORMAL):
        yield _truncated(replace(plain, kind=kind, delta=DELTA), uses, text)
    rho = rho_for(epsilon, DELTA)
    gaussian = replace(plain, kind=LawKind.DISCRETE_GAUSSIAN, budget=replace(budget, total=rho), delta=DELTA)
    yield Candidate(f"discrete-gaussian, {text}", gaussian, (f"rho {shown(rho)} at delta {float(DELTA):g}",))


def _truncated(rule: PrivateNoise, uses: Uses, text: str) -> Candidate:
    name, bound = f"{rule.kind.value}, {text}", bound_for(rule, uses, DELTA)
    if bound is None:
        reason = f"a delta of {float(DELTA):g} needs a bound above {LARGEST_BOUND}"
        return Candidate(name, Unavailable(reason))
    return Candidate(name, replace(rule, bound=bound), (f"bound {bound:,}, delta {float(DELTA):g}",))


def bound_for(rule: PrivateNoise, uses: Uses, delta: Fraction) -> int | None:
    """The smallest bound whose truncation costs less than delta over the programme; None where none is allowed."""
    low, high = 0, LARGEST_BOUND + 1
    while high - low > 1:
        middle = (low + high) // 2
        if programme_delta(replace(rule, bound=middle), uses) < delta:
            high = middle
        else:
            low = middle
    return high if high <= LARGEST_BOUND else None


def _uses(rule: PrivateNoise, cubes: Sequence[Cube]) -> Uses:
    supposed = _supposed(rule)
    every = noise_parameters(supposed, cubes)
    return Counter(
        (reach(signature, supposed), parameter)
        for signature, parameter in every.items()
        if not signature.weight
    )


def programme_delta(rule: PrivateNoise, uses: Uses) -> float:
    """What truncation at m costs over the programme at its epsilon; floats, where NoisePlan.delta certifies.

    A cell in which neighbours differ by k costs Pr[v > m - k]: the values that only one of the two can have, for
    inside no ratio exceeds e^(k epsilon). Together they cost at most the sum of all k times the largest of these / k.
    """
    return sum(
        times * touched.l1 * _per_change(rule, parameter, touched.largest)
        for (touched, parameter), times in uses.items()
    )


def _per_change(rule: PrivateNoise, parameter: Fraction, largest: int) -> float:
    """The largest Pr[v > m - k] / k of a truncated law; 0 for others."""
    law = law_of(rule, parameter)
    if not isinstance(law, AdditiveLaw) or not isinstance(law.exponents, Symmetric) or law.bound is None:
        return 0.0
    v = np.arange(-law.bound, law.bound + 1, dtype=np.float64)
    p = np.exp(-(float(law.exponents.linear) * np.abs(v) + float(law.exponents.quadratic) * v * v))
    outermost = np.cumsum(np.append(p, np.zeros(max(0, largest - len(p)))))[:largest]
    return float(np.max(outermost / np.arange(1, largest + 1)) / p.sum())


def rho_for(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho, rounded down to a few digits, that implies at most this epsilon at this delta."""
    return largest_rho(epsilon, delta, RHO_DIGITS)
