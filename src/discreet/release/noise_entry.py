"""The noise in a manifest: numbers and codes, written from a ``Noise`` and read back to one; no sentence is parsed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    PlainSerializer,
    PlainValidator,
    SerializerFunctionWrapHandler,
    model_serializer,
)

from discreet.errors import BrokenRelease, Mistakes
from discreet.maths.noise.additive import Law, LawKind
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.named import budgeted_law, measure_of
from discreet.maths.noise.ptable import ptable_of_rows
from discreet.maths.noise.publishing import UNCHANGED, Negatives, Publishing
from discreet.maths.privacy.accounting import Neighbours
from discreet.perturb.noise import Guarantee, Noise, NoiseBudget
from discreet.programme.noise import Draw, KeptZeros, Protects, Split
from discreet.programme.release import Disclosure


def _exact(value: object) -> Fraction:
    try:
        return Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise ValueError("must be a number such as 3 or 1/3") from None


Exact = Annotated[Fraction, PlainValidator(_exact), PlainSerializer(str)]  # in JSON "n/d", or "n"


VARIANCE_DIGITS = 12  # the last digits of a float sum depend on the processor


class _Entry(BaseModel):
    """Fields that are None are left out of the JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_serializer(mode="wrap")
    def _without_empty(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in write(self).items() if value is not None}


class PublishingEntry(_Entry):
    """What is done to noisy counts before they are published."""

    negatives: Negatives
    rounding: int
    threshold: int


class ParametersEntry(_Entry):
    """What defines the law besides variance and bound: js of a p-table, or a budget and each cell's share of it."""

    js: int | None = None
    epsilon: Exact | None = None  # of the whole release
    rho: Exact | None = None
    split: Split | None = None
    cross_tabulations: int | None = None
    neighbours: Neighbours | None = None
    unit: Protects | None = None
    cell: Exact | None = None  # the epsilon or rho of a cell, for a change of one
    other_cells: dict[str, Exact] | None = None  # cross-tabulation -> that of its cells, where it differs


class GuaranteeEntry(_Entry):
    """A differential privacy guarantee: epsilon and delta, or rho, with a delta where one is declared."""

    epsilon: Exact | None = None
    rho: Exact | None = None
    delta: Exact | None = None
    neighbours: Neighbours
    unit: Protects
    largest_household: int | None = None


class NoiseEntry(_Entry):
    """What a release states about its noise; what the disclosure rule withholds is absent."""

    kind: LawKind
    disclose: Disclosure
    drawing: Draw
    zeros: KeptZeros
    variance: float | None = None  # at most this
    bound: int | None = None  # at most this
    publishing: PublishingEntry | None = None  # absent where noisy counts are published as they are
    parameters: ParametersEntry | None = None
    law: tuple[dict[int, float], ...] | None = None  # of a p-table: true count -> change -> probability
    guarantee: GuaranteeEntry | None = None
    adjusted: Literal[True] | None = (
        None  # totals add up: law, variance and bound are those of the counts before that
    )

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
            law=self._law(given),
            laws={name: self._named(amount) for name, amount in (given.other_cells or {}).items()},
            publishing=UNCHANGED if rule is None else _publishing(rule),
            budget=_budget(given),
            guarantee=None if self.guarantee is None else _guarantee(self.guarantee),
        )
        return found.of_adjusted() if self.adjusted else found

    def _law(self, given: ParametersEntry) -> Law | None:
        if self.kind is LawKind.CELL_KEY:
            return None if self.law is None else ptable_law(self.law)
        return None if given.cell is None else self._named(given.cell)

    def _named(self, amount: Fraction) -> Law:
        try:
            return budgeted_law(self.kind, amount, self.bound)
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
        variance=None if noise.variance is None else float(f"{noise.variance:.{VARIANCE_DIGITS}g}"),
        bound=noise.bound,
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
            neighbours=found.neighbours,
            unit=found.unit,
            largest_household=found.largest_household,
        ),
        adjusted=True if noise.adjusted else None,
    )


def _parameters(noise: Noise) -> ParametersEntry | None:
    if noise.law is None:
        return None
    if noise.budget is None:
        return ParametersEntry(js=noise.js)
    budget = noise.budget
    measure: dict[str, Any] = {measure_of(noise.kind): budget.total}
    return ParametersEntry(
        **measure,
        split=budget.split,
        cross_tabulations=budget.cross_tabulations,
        neighbours=budget.neighbours,
        unit=budget.unit,
        cell=noise.law.parameter,
        other_cells={name: law.parameter for name, law in noise.laws.items() if law.parameter is not None}
        or None,
    )


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
        cross_tabulations=given.cross_tabulations or 0,
        neighbours=given.neighbours,
        unit=given.unit,
    )


def _guarantee(entry: GuaranteeEntry) -> Guarantee:
    return Guarantee(
        neighbours=entry.neighbours,
        unit=entry.unit,
        largest_household=entry.largest_household,
        epsilon=entry.epsilon,
        rho=entry.rho,
        delta=entry.delta or Fraction(0),
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
