"""Intervals of true counts: by the law of the noise, by its variance, or by the estimates of a hierarchical release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, floor, sqrt
from statistics import NormalDist
from typing import Protocol

from discreet.errors import Mistakes
from discreet.maths.inference.intervals import checked_level, exact_interval
from discreet.maths.noise.additive import Law
from discreet.perturb.noise import Noise
from discreet.programme.cube import Cube, Signature
from discreet.serve.answer import NoiseRange
from discreet.text.phrase import phrase


@dataclass(frozen=True)
class AskedCell:
    """One cell of an answer: its table, its code along each axis of it, and its published count."""

    cube: Cube
    codes: tuple[str, ...]
    published: int

    @property
    def signature(self) -> Signature:
        """The cross-tabulation that it belongs to."""
        cube, levels = self.cube, []
        for axis, code in zip(cube.axes, self.codes, strict=True):
            depth = int(axis.depths[axis.position[code]])
            levels += [(axis.variable, depth)] if depth else []
        base = cube.base.canonical if cube.base else ""
        return Signature(cube.unit, base, cube.count or "", tuple(sorted(levels)))


class Ranges(Protocol):
    """Where true counts are likely to be."""

    is_by_value: bool  # whether cells of one cross-tabulation with one count have one range

    def of(self, cell: AskedCell, level: float) -> NoiseRange | None:
        """The range of a cell; None where too little is public."""
        ...


class NoiseRanges:
    """Where true counts are likely to be, by the laws of a noise where they are public, else by its variance."""

    is_by_value = True

    def __init__(self, noise: Noise, law_of: Callable[[Signature], Law] | None = None) -> None:
        """``law_of`` gives the laws of cross-tabulations that no release contains."""
        self._noise, self._law_of = noise, law_of or noise.law_of
        self._is_public = noise.law is not None or law_of is not None
        self._exact = lru_cache(maxsize=10_000)(exact_interval)

    def of(self, cell: AskedCell, level: float) -> NoiseRange | None:
        """The range of a cell, by its published count."""
        return self.range_of(cell.signature, cell.published, level)

    def range_of(self, signature: Signature, published: int, level: float) -> NoiseRange | None:
        """Where the true count is likely to be; None where too little of the noise is public."""
        checked_level(level)
        if not self._is_public:
            return self._rough(published, level)
        try:
            found = self._exact(self._noise.published(self._law_of(signature)), published, level)
        except Mistakes:  # the law never publishes such a count, or spreads too far for a table of it
            return None
        message = phrase(
            "Before the noise was added, the count was from {low} to {high}: whatever it was, such a range contains "
            "it with at least {percent}% probability.",
            low=found.low,
            high=found.high,
            percent=100 * level,
        )
        return NoiseRange(found.low, found.high, level, message)

    def _rough(self, published: int, level: float) -> NoiseRange | None:
        """Normal noise of the public variance, no further than the public bound."""
        if self._noise.variance is None:
            return None
        reach = ceil(NormalDist().inv_cdf((1 + level) / 2) * sqrt(self._noise.variance))
        if self._noise.bound is not None:
            reach = min(reach, self._noise.bound)
        low, high = max(0, published - reach), published + reach
        message = phrase(
            "Before the noise was added, the count was about from {low} to {high} ({percent}%), judged by the largest "
            "variance of the noise.",
            low=low,
            high=high,
            percent=100 * level,
        )
        return NoiseRange(low, high, level, message)


class EstimateRanges:
    """Intervals of the least squares estimates of a hierarchical release, never of its whole counts."""

    is_by_value = False

    def __init__(self, estimate_of: Callable[[AskedCell], tuple[float, float] | None]) -> None:
        """``estimate_of`` gives the published estimate of a cell and its standard error."""
        self._estimate_of = estimate_of

    def of(self, cell: AskedCell, level: float) -> NoiseRange | None:
        """The whole numbers in the normal interval of the estimate; None where no estimate is published."""
        checked_level(level)
        found = self._estimate_of(cell)
        if found is None:
            return None
        estimate, error = found
        if error == 0:
            message = phrase("This count is published without noise.")
            return NoiseRange(cell.published, cell.published, level, message, estimate, error)
        reach = NormalDist().inv_cdf((1 + level) / 2) * error
        nearest = max(round(estimate), 0)
        low = min(max(ceil(estimate - reach), 0), nearest)
        high = max(floor(estimate + reach), nearest)
        message = phrase(
            "Estimated from all levels, the count before noise is {estimate} with a standard error of {error}: from "
            "{low} to {high} with {percent}% confidence. The count in the table is fitted so that all tables add up.",
            estimate=estimate,
            error=error,
            low=low,
            high=high,
            percent=100 * level,
        )
        return NoiseRange(low, high, level, message, estimate, error)
