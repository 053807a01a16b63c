"""The forecast of a programme: the expected error of every kind of cell under each candidate noise.

It owns which cells have which law; it needs the declaration alone: no data, no secret, no budget, no file. What a
law does to a cell is forecast_laws', which candidates to compare is candidates'.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import prod

from discreet.maths.lookup import Lookup
from discreet.perturb.budget import noise_parameters
from discreet.pipeline.forecast_laws import LawForecast, private_law, ptable_law
from discreet.schema.crosstab import Signature, signatures
from discreet.schema.cube import Cube
from discreet.schema.noise import PrivateNoise
from discreet.schema.programme import Programme


@dataclass(frozen=True)
class Unavailable:
    """Noise that cannot be had, and why."""

    reason: str


CandidateNoise = Lookup | PrivateNoise | Unavailable
Layout = Mapping[
    tuple[str, int, Fraction], tuple[int, int]
]  # (cube, axes, weight) -> (cross-tabulations, cells)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A noise to forecast: the lookup of a p-table, or a law with a budget for the whole programme."""

    name: str
    noise: CandidateNoise
    notes: tuple[str, ...] = ()  # why protect would refuse it, or what else must be known


@dataclass(frozen=True, eq=False)
class MarginForecast:
    """The cross-tabulations of a cube that have so many axes and the same law."""

    cube: str
    axes: int  # 0 is the grand total
    crosstabs: int
    cells: int
    law: LawForecast


@dataclass(frozen=True, eq=False)
class CandidateForecast:
    """What one candidate does to every margin of every cube."""

    candidate: Candidate
    margins: tuple[MarginForecast, ...]  # none where the noise is not available

    @cached_property
    def laws(self) -> tuple[LawForecast, ...]:
        """The different laws, the one of most cross-tabulations first."""
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

    def only(self, cubes: Collection[str]) -> Forecast:
        """The part of some cubes; the budget is still that of the whole programme."""
        kept = (
            CandidateForecast(one.candidate, tuple(margin for margin in one.margins if margin.cube in cubes))
            for one in self.candidates
        )
        return replace(self, candidates=tuple(kept))


def forecast(programme: Programme, candidates: Sequence[Candidate]) -> Forecast:
    """Forecast the errors of every cube, margin and cell size under each candidate."""
    parts = [part for cube in programme.cubes for part in _parts(cube)]
    crosstabs = {part.signature for part in parts}
    layouts: dict[Hashable, Layout] = {}  # candidates that divide their budgets alike share one
    told = []
    for candidate in candidates:
        noise = candidate.noise
        key = _division(noise)
        if key not in layouts:
            layouts[key] = _layout(parts, _weights(noise, programme.cubes, crosstabs))
        margins = _margins(layouts[key], _laws(noise, layouts[key]))
        told.append(CandidateForecast(candidate, margins))
    return Forecast(programme.name, len(crosstabs), tuple(told))


@dataclass(frozen=True)
class _Part:
    """A cross-tabulation in a cube."""

    cube: str
    signature: Signature
    cells: int


def _parts(cube: Cube) -> list[_Part]:
    """The cross-tabulations of a cube, those of fewest axes first."""
    widths = {axis.variable: Counter(map(int, axis.depths)) for axis in cube.axes}
    found = sorted(signatures([cube]), key=lambda signature: len(signature.levels))
    return [_Part(cube.id, one, prod(widths[name][depth] for name, depth in one.levels)) for one in found]


def _division(noise: CandidateNoise) -> Hashable:
    """What decides which part of a budget each cross-tabulation gets, the amount and the law aside."""
    if not isinstance(noise, PrivateNoise):
        return isinstance(noise, Lookup)
    split = (noise.budget.split, frozenset(noise.budget.shares.items()))
    return (split, noise.is_gaussian, noise.neighbours, noise.protects, noise.largest_household)


def _weights(
    noise: CandidateNoise, cubes: Sequence[Cube], crosstabs: Collection[Signature]
) -> Mapping[Signature, Fraction]:
    """The noise parameter of each cross-tabulation for a budget of 1; it grows with the budget."""
    if isinstance(noise, Unavailable):
        return {}
    if isinstance(noise, Lookup):
        return dict.fromkeys(crosstabs, Fraction(1))
    return noise_parameters(replace(noise, budget=replace(noise.budget, total=Fraction(1))), cubes)


def _layout(parts: Sequence[_Part], weights: Mapping[Signature, Fraction]) -> Layout:
    layout: dict[tuple[str, int, Fraction], tuple[int, int]] = {}
    for part in parts if weights else ():
        group = (part.cube, len(part.signature.levels), weights[part.signature])
        crosstabs, cells = layout.get(group, (0, 0))
        layout[group] = (crosstabs + 1, cells + part.cells)
    return layout


def _laws(noise: CandidateNoise, layout: Layout) -> dict[Fraction, LawForecast]:
    """The law of each weight, worked out once."""
    weights = {weight for _, _, weight in layout}
    if isinstance(noise, PrivateNoise):
        return {weight: private_law(noise, weight * noise.budget.total) for weight in weights}
    return {weight: ptable_law(noise) for weight in weights if isinstance(noise, Lookup)}


def _margins(layout: Layout, laws: Mapping[Fraction, LawForecast]) -> tuple[MarginForecast, ...]:
    return tuple(
        MarginForecast(cube, axes, crosstabs, cells, laws[weight])
        for (cube, axes, weight), (crosstabs, cells) in layout.items()
    )
