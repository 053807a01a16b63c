"""The noise in a manifest: numbers and codes, written from a ``Noise`` and read back to one; no sentence is parsed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    SerializerFunctionWrapHandler,
    model_serializer,
)

from discreet.errors import BrokenRelease, Mistakes
from discreet.lazy import lazily
from discreet.maths.exact_numbers import fraction
from discreet.maths.noise.additive import Law, LawKind
from discreet.maths.noise.exponential import UtilityRow, UtilityTable
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.named import budgeted_law, measure_of
from discreet.maths.noise.ptable import ptable_of_rows
from discreet.maths.noise.publishing import UNCHANGED, Negatives, Publishing
from discreet.maths.privacy.accounting import Neighbours
from discreet.maths.privacy.composition import Composition
from discreet.maths.privacy.sensitivity import Reach
from discreet.perturb.noise import Amplified, Guarantee, Noise, NoiseBudget, ScaledWeights, SumOf, WeightNoise
from discreet.programme.hierarchical import BoundsRule, HierarchyRule, Output
from discreet.programme.noise import Draw, KeptZeros, Protects, Split
from discreet.programme.population import SampleMethod
from discreet.programme.release import Disclosure

if TYPE_CHECKING:
    from discreet.programme import strategy as strategies
else:
    strategies = lazily("discreet.programme.strategy")  # few releases have one


def _exact(value: object) -> Fraction:
    try:
        return fraction(str(value))
    except ValueError:
        raise ValueError("must be a number such as 3 or 1/3") from None


Exact = Annotated[Fraction, PlainValidator(_exact), PlainSerializer(str)]  # in JSON "n/d", or "n"


VARIANCE_DIGITS = 12  # the last digits of a float sum depend on the processor


class _Entry(BaseModel):
    """Fields that are None are left out of the JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    @model_serializer(mode="wrap")
    def _without_empty(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in write(self).items() if value is not None}


class PublishingEntry(_Entry):
    """What is done to noisy counts before they are published."""

    negatives: Negatives
    rounding: int
    threshold: int


class UtilityRowEntry(_Entry):
    """The utilities of publishing first, first + 1, .. for one true count."""

    first: int
    utilities: tuple[Exact, ...]


class SumEntry(_Entry):
    """A cross-tabulation whose cells are sums of published ones: of which, of how many at most, and their variance."""

    of: str
    cells: int
    variance: float


class WeightEntry(_Entry):
    """Noise on sums of weights: the largest weight of a record, and the unit of the noise and of ``other_cells``."""

    largest: Exact
    unit: Exact


class ScaledEntry(_Entry):
    """Noise of weighted sums under the cell key method: what scales it, and its reach where that is disclosed."""

    scale: Literal["largest-weight"] = "largest-weight"
    reach: float | None = None


class ParametersEntry(_Entry):
    """What defines the law besides variance and bound: js of a p-table, or a budget and each cell's share of it."""

    js: int | None = None
    utility: tuple[UtilityRowEntry, ...] | None = (
        None  # by true count; the last serves all larger ones, moved along
    )
    epsilon: Exact | None = None  # of the whole release
    rho: Exact | None = None
    split: Split | None = None
    spent: Exact | None = None  # of the epsilon or rho, where the shares leave a part of it
    shares: dict[str, Exact] | None = None  # as declared, where the split is not even
    cross_tabulations: int | None = None
    neighbours: Neighbours | None = None
    unit: Protects | None = None
    cell: Exact | None = None  # the epsilon or rho of a cell, for a change of one
    other_cells: dict[str, Exact] | None = None  # cross-tabulation -> that of its cells, where it differs


class SampleEntry(_Entry):
    """The same guarantee for the population that a secret sample was drawn from."""

    method: SampleMethod
    rate: Exact
    unit: str
    epsilon: Exact
    delta: Exact


class GuaranteeEntry(_Entry):
    """A differential privacy guarantee: epsilon and delta, or rho, with a delta where one is declared."""

    epsilon: Exact | None = None
    rho: Exact | None = None
    delta: Exact | None = None
    distance: Exact | None = (
        None  # of rho: total variation between what is drawn and the discrete Gaussian law
    )
    composition: Composition | None = None  # of the cross-tabulations; absent where losses are added up
    neighbours: Neighbours
    unit: Protects
    largest_household: int | None = None
    fixed: tuple[str, ...] | None = None  # variables that count as unchanged for all who stay
    fixed_families: bool | None = None
    sample: SampleEntry | None = None


class AxisOfHistogram(_Entry):
    """One variable of the histogram: its breakdown (absent: its finest codes) and its number of categories."""

    variable: str
    breakdown: str | None = None
    categories: int


class GroupingEntry(_Entry):
    """A coarser version of a variable that queries use: the group of each category."""

    name: str
    variable: str
    groups: tuple[int, ...]


class LevelEntry(_Entry):
    """One level of the tree: its depth in the codelist of the geography, its share and that of each query."""

    level: str
    depth: int
    share: Exact
    queries: dict[str, Exact]


class BoundsEntry(_Entry):
    """Public bounds: of which query, and the SHA-256 of their file."""

    query: str
    sha256: str


class ReachEntry(_Entry):
    """How far neighbours differ: sums of absolute and squared differences, the largest one."""

    l1: int
    l2_squared: int
    largest: int


class HierarchyEntry(_Entry):
    """The measurements of a hierarchical release: enough to compute every variance again."""

    strategy: str | None = None  # the name of a built-in one
    unit: str
    geography: str
    histogram: tuple[AxisOfHistogram, ...]
    groupings: tuple[GroupingEntry, ...] = ()
    zeros: tuple[dict[str, tuple[int, ...]], ...] = ()  # categories of each variable, of cells that are empty
    budget: Exact  # rho of discrete Gaussian noise, epsilon of geometric noise
    neighbours: Neighbours
    reach: ReachEntry  # how far neighbours differ in a query
    levels: tuple[LevelEntry, ...]
    totals: tuple[str, ...] = ()  # levels whose totals are exact
    bounds: BoundsEntry | None = None
    outputs: tuple[Output, ...]
    fit: str
    spine: bool  # whether areas that equal their only child are bypassed

    def rule(self, kind: LawKind) -> HierarchyRule:
        """The rule as it was declared; an invalid one means a damaged release."""
        try:
            histogram = strategies.Histogram(
                tuple(strategies.Axis(one.variable, one.categories) for one in self.histogram),
                tuple(strategies.Grouping(one.name, one.variable, one.groups) for one in self.groupings),
                tuple(strategies.StructuralZero(tuple(zero.items())) for zero in self.zeros),
            )
            levels = tuple(
                strategies.LevelShare(one.level, one.share, tuple(one.queries.items())) for one in self.levels
            )
            reach = Reach(**self.reach.model_dump())
            strategy = strategies.Strategy(histogram, self.budget, levels, kind, self.neighbours, reach)
        except (Mistakes, ValueError) as wrong:
            raise BrokenRelease(f"noise hierarchy: {wrong}") from None
        return HierarchyRule(
            self.strategy or "",
            self.unit,
            self.geography,
            tuple(one.depth for one in self.levels),
            tuple((one.variable, one.breakdown or "") for one in self.histogram),
            strategy,
            self.totals,
            None if self.bounds is None else BoundsRule(self.bounds.query, "", self.bounds.sha256),
            self.outputs,
            self.fit,
            self.spine,
        )


def hierarchy_entry(rule: HierarchyRule) -> HierarchyEntry:
    """What a manifest states of a hierarchical release."""
    histogram = rule.strategy.histogram
    return HierarchyEntry(
        strategy=rule.name or None,
        unit=rule.unit,
        geography=rule.geography,
        histogram=tuple(
            AxisOfHistogram(variable=variable, breakdown=name or None, categories=axis.size)
            for (variable, name), axis in zip(rule.axes, histogram.axes, strict=True)
        ),
        groupings=tuple(
            GroupingEntry(name=one.name, variable=one.variable, groups=one.groups)
            for one in histogram.groupings
        ),
        zeros=tuple(dict(zero.categories) for zero in histogram.zeros),
        budget=rule.strategy.budget,
        neighbours=rule.strategy.neighbours,
        reach=ReachEntry(
            l1=rule.strategy.sensitivity,
            l2_squared=rule.strategy.squared_sensitivity,
            largest=1 if rule.strategy.reach is None else rule.strategy.reach.largest,
        ),
        levels=tuple(
            LevelEntry(level=one.level, depth=depth, share=one.share, queries=dict(one.queries))
            for one, depth in zip(rule.strategy.levels, rule.depths, strict=True)
        ),
        totals=rule.totals,
        bounds=None
        if rule.bounds is None
        else BoundsEntry(query=rule.bounds.query, sha256=rule.bounds.sha256),
        outputs=rule.outputs,
        fit=rule.fit,
        spine=rule.bypass,
    )


class NoiseEntry(_Entry):
    """What a release states about its noise; what the disclosure rule withholds is absent."""

    kind: LawKind
    disclose: Disclosure
    drawing: Draw
    zeros: KeptZeros
    variance: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None  # at most this
    bound: Annotated[int, Field(ge=0)] | None = None  # at most this
    sums: dict[str, SumEntry] | None = None  # cross-tabulation -> what its cells add up
    public_totals: dict[str, int] | None = None  # unit -> its total, published exactly and not protected
    weights: WeightEntry | None = None
    weighted: ScaledEntry | None = None
    publishing: PublishingEntry | None = None  # absent where noisy counts are published as they are
    parameters: ParametersEntry | None = None
    law: tuple[dict[int, float], ...] | None = None  # of a p-table: true count -> change -> probability
    guarantee: GuaranteeEntry | None = None
    adjusted: Literal[True] | None = (
        None  # totals add up: law, variance and bound are those of the counts before that
    )
    hierarchy: HierarchyEntry | None = None  # what was measured, where tables are fitted to marginals

    @property
    def keeps_negatives(self) -> bool:
        """Whether negative noisy counts are published as they are."""
        kept = self.publishing is None or self.publishing.negatives is Negatives.KEEP
        return kept and self.kind is not LawKind.CELL_KEY

    def noise(self) -> Noise:
        """The noise as an outsider knows it; an invalid law means a damaged release."""
        given, rule = self.parameters or ParametersEntry(), self.publishing
        found = Noise(
            kind=self.kind,
            drawing=self.drawing,
            zeros=self.zeros,
            disclosed=self.disclose,
            variance=self.variance,
            bound=self.bound,
            utility=self._utility,
            law=self._law(given),
            laws={name: self._named(amount) for name, amount in (given.other_cells or {}).items()},
            publishing=UNCHANGED if rule is None else _publishing(rule),
            sums={name: SumOf(one.of, one.cells) for name, one in (self.sums or {}).items()},
            totals=self.public_totals or {},
            weights=None if self.weights is None else WeightNoise(self.weights.largest, self.weights.unit),
            weighted=None if self.weighted is None else ScaledWeights(self.weighted.reach),
            budget=_budget(given),
            guarantee=None if self.guarantee is None else _guarantee(self.guarantee),
            hierarchy=None if self.hierarchy is None else self.hierarchy.rule(self.kind),
        )
        return found.of_adjusted() if self.adjusted else found

    def _law(self, given: ParametersEntry) -> Law | None:
        if self.kind is LawKind.CELL_KEY:
            return None if self.law is None else ptable_law(self.law)
        return None if given.cell is None else self._named(given.cell)

    @property
    def _utility(self) -> UtilityTable | None:
        rows = self.parameters.utility if self.parameters else None
        if rows is None:
            return None
        try:
            return UtilityTable(tuple(UtilityRow(row.first, row.utilities) for row in rows))
        except Mistakes as mistakes:
            raise BrokenRelease(f"noise utility: {mistakes}") from None

    def _named(self, amount: Fraction) -> Law:
        try:
            return budgeted_law(self.kind, amount, self.bound, self._utility)
        except Mistakes as mistakes:
            raise BrokenRelease(f"noise law {self.kind.value} {amount}: {mistakes}") from None


def entry_of(noise: Noise) -> NoiseEntry:
    """The entry for a noise that has been reduced to what is public (``Noise.public``)."""
    rule, found = noise.publishing, noise.guarantee
    return NoiseEntry(
        kind=noise.kind,
        disclose=noise.disclosed,
        drawing=noise.drawing,
        zeros=noise.zeros,
        variance=None if noise.variance is None else _rounded(noise.variance),
        bound=noise.bound,
        sums=_sums(noise) or None,
        public_totals=dict(noise.totals) or None,
        weights=None
        if noise.weights is None
        else WeightEntry(largest=noise.weights.largest, unit=noise.weights.unit),
        weighted=None
        if noise.weighted is None
        else ScaledEntry(reach=None if noise.weighted.reach is None else _rounded(noise.weighted.reach)),
        publishing=None
        if rule == UNCHANGED
        else PublishingEntry(negatives=rule.negatives, rounding=rule.rounding, threshold=rule.threshold),
        parameters=_parameters(noise),
        law=noise.listed() if isinstance(noise.law, PTableLaw) else None,
        guarantee=None
        if found is None
        else GuaranteeEntry(
            epsilon=found.epsilon,
            rho=found.rho,
            delta=found.delta if found.rho is None or found.delta else None,
            distance=found.distance or None,
            composition=None if found.composition is Composition.BASIC else found.composition,
            neighbours=found.neighbours,
            unit=found.unit,
            largest_household=found.largest_household,
            fixed=found.fixed or None,
            fixed_families=found.fixed_families or None,
            sample=None if found.sample is None else SampleEntry(**asdict(found.sample)),
        ),
        adjusted=True if noise.adjusted else None,
        hierarchy=None if noise.hierarchy is None else hierarchy_entry(noise.hierarchy),
    )


def _rounded(variance: float) -> float:
    return float(f"{variance:.{VARIANCE_DIGITS}g}")


def _sums(noise: Noise) -> dict[str, SumEntry]:
    return {
        name: SumEntry(of=one.finest, cells=one.cells, variance=_rounded(noise.variance_of_sum(one)))
        for name, one in sorted(noise.sums.items())
    }


def _parameters(noise: Noise) -> ParametersEntry | None:
    if noise.law is None:
        return None
    if noise.budget is None:
        return ParametersEntry(js=noise.js)
    budget = noise.budget
    measure: dict[str, Any] = {measure_of(noise.kind): budget.total, "utility": _utility_rows(noise.utility)}
    return ParametersEntry(
        **measure,
        split=budget.split,
        spent=budget.spent,
        shares=dict(budget.shares) or None,
        cross_tabulations=budget.cross_tabulations,
        neighbours=budget.neighbours,
        unit=budget.unit,
        cell=noise.law.parameter,
        other_cells={name: law.parameter for name, law in noise.laws.items() if law.parameter is not None}
        or None,
    )


def _utility_rows(utility: UtilityTable | None) -> tuple[UtilityRowEntry, ...] | None:
    if utility is None:
        return None
    return tuple(UtilityRowEntry(first=row.first, utilities=row.values) for row in utility.rows)


def _publishing(entry: PublishingEntry) -> Publishing:
    try:
        return Publishing(entry.negatives, entry.rounding, entry.threshold)
    except Mistakes as mistakes:
        raise BrokenRelease(f"noise: {mistakes}") from None


def _budget(given: ParametersEntry) -> NoiseBudget | None:
    total = given.epsilon if given.rho is None else given.rho
    if total is None or given.split is None or given.neighbours is None or given.unit is None:
        return None
    return NoiseBudget(
        total=total,
        split=given.split,
        spent=given.spent,
        shares=given.shares or {},
        cross_tabulations=given.cross_tabulations or 0,
        neighbours=given.neighbours,
        unit=given.unit,
    )


def _guarantee(entry: GuaranteeEntry) -> Guarantee:
    return Guarantee(
        neighbours=entry.neighbours,
        unit=entry.unit,
        largest_household=entry.largest_household,
        fixed=entry.fixed or (),
        fixed_families=bool(entry.fixed_families),
        epsilon=entry.epsilon,
        rho=entry.rho,
        delta=entry.delta or Fraction(0),
        distance=entry.distance or Fraction(0),
        composition=entry.composition or Composition.BASIC,
        sample=None
        if (sample := entry.sample) is None
        else Amplified(
            method=sample.method,
            rate=sample.rate,
            unit=sample.unit,
            epsilon=sample.epsilon,
            delta=sample.delta,
        ),
    )


def ptable_law(law: Iterable[Mapping[int, float]]) -> PTableLaw:
    """A p-table of published changes."""
    rows = []
    for count, changes in enumerate(law):
        kept = sorted((count + change, p) for change, p in changes.items() if p > 0)
        rows.append(([target for target, _ in kept], [p for _, p in kept]))
    try:
        return PTableLaw(ptable_of_rows(rows))
    except Mistakes as mistakes:
        raise BrokenRelease(f"noise law: {mistakes}") from None
