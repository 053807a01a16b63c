"""Intervals of true counts: by the law of the noise, by its variance, or by the estimates of a hierarchical release."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import ceil, sqrt
from statistics import NormalDist
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.errors import Mistakes
from discreet.maths.inference.intervals import checked_level, exact_interval
from discreet.maths.noise.additive import Law
from discreet.perturb.noise import Noise
from discreet.programme.cube import Cube, Signature
from discreet.serve.answer import NoiseRange
from discreet.text.phrase import phrase

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Ends = tuple[Floats, Floats]  # lows and highs, nan where too little is public


@dataclass(frozen=True, eq=False)
class AskedCells:
    """Cells of an answer: their table, their nodes along each of its axes, and the published count of each cross."""

    cube: Cube
    nodes: tuple[Integers, ...]
    published: Integers  # (nodes along the first axis, ..)

    def crosstabs(self) -> Iterator[tuple[Signature, Any]]:
        """The cross-tabulations that they belong to, and where their published counts are."""
        depths = [axis.depths[nodes] for axis, nodes in zip(self.cube.axes, self.nodes, strict=True)]
        for levels in product(*(np.unique(along).tolist() for along in depths)):
            here = (np.flatnonzero(along == level) for along, level in zip(depths, levels, strict=True))
            yield self.cube.signature(levels), np.ix_(*here)


class Ranges(Protocol):
    """Where true counts are likely to be."""

    def of(self, cell: AskedCells, level: float) -> NoiseRange | None:
        """The range of a single cell; None where too little is public."""
        ...

    def all(self, cells: AskedCells, level: float) -> Ends:
        """The ends of the ranges of all cells, in the shape of the published counts."""
        ...


class NoiseRanges:
    """Where true counts are likely to be, by the laws of a noise where they are public, else by its variance."""

    def __init__(self, noise: Noise, law_of: Callable[[Signature], Law] | None = None) -> None:
        """``law_of`` gives the laws of cross-tabulations that no release contains."""
        self._noise, self._law_of = noise, law_of or noise.law_of
        self._is_public = noise.law is not None or law_of is not None
        self._exact = lru_cache(maxsize=10_000)(exact_interval)

    def of(self, cell: AskedCells, level: float) -> NoiseRange | None:
        """The range of a cell, by its published count; None where too little of the noise is public."""
        low, high = (end.item() for end in self.all(cell, level))
        if np.isnan(low):
            return None
        return NoiseRange(int(low), int(high), level, self._message(int(low), int(high), 100 * level))

    def _message(self, low: int, high: int, percent: float) -> str:
        if self._is_public:
            return phrase(
                "Before the noise was added, the count was from {low} to {high}: whatever it was, such a range "
                "contains it with at least {percent}% probability.",
                low=low,
                high=high,
                percent=percent,
            )
        return phrase(
            "Before the noise was added, the count was about from {low} to {high} ({percent}%), judged by the "
            "largest variance of the noise.",
            low=low,
            high=high,
            percent=percent,
        )

    def all(self, cells: AskedCells, level: float) -> Ends:
        """The ends of the ranges of all cells, by their published counts."""
        checked_level(level)
        if not self._is_public:
            return self._rough(cells.published, level)
        low, high = np.full((2, *cells.published.shape), np.nan)
        for signature, here in cells.crosstabs():
            low[here], high[here] = self._exact_ends(signature, cells.published[here], level)
        return low, high

    def _exact_ends(self, signature: Signature, published: Integers, level: float) -> Ends:
        """By the law of the noise; large counts differ from a settled one by as much as their ranges do."""
        try:
            law = self._noise.published(self._law_of(signature))
            beyond = np.maximum(published - law.settled_published, 0)
        except Mistakes:  # the law spreads too far for a table of it
            return np.full(published.shape, np.nan), np.full(published.shape, np.nan)
        distinct, back = np.unique(published - beyond, return_inverse=True)
        ends = np.full((2, len(distinct)), np.nan)
        for k, count in enumerate(distinct.tolist()):
            try:
                found = self._exact(law, count, level)
            except Mistakes:  # the law never publishes such a count
                continue
            ends[:, k] = found.low, found.high
        low, high = ends[:, back.reshape(published.shape)] + beyond
        return low, high

    def _rough(self, published: Integers, level: float) -> Ends:
        """Normal noise of the public variance, no further than the public bound."""
        if self._noise.variance is None:
            return np.full(published.shape, np.nan), np.full(published.shape, np.nan)
        reach = ceil(NormalDist().inv_cdf((1 + level) / 2) * sqrt(self._noise.variance))
        if self._noise.bound is not None:
            reach = min(reach, self._noise.bound)
        counts = published.astype(np.float64)
        return np.maximum(counts - reach, 0.0), counts + reach


class EstimateRanges:
    """Intervals of the least squares estimates of a hierarchical release, never of its whole counts."""

    def __init__(self, estimates_of: Callable[[AskedCells], Ends | None]) -> None:
        """``estimates_of`` gives the published estimates of cells and their standard errors."""
        self._estimates_of = estimates_of

    def of(self, cell: AskedCells, level: float) -> NoiseRange | None:
        """The whole numbers in the normal interval of the estimate; None where no estimate is published."""
        found = self._estimates_of(cell)
        if found is None:
            return None
        estimate, error = (one.item() for one in found)
        low, high = (int(end.item()) for end in self.all(cell, level))
        if error == 0:
            message = phrase("This count is published without noise.")
            return NoiseRange(low, high, level, message, estimate, error)
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

    def all(self, cells: AskedCells, level: float) -> Ends:
        """The whole numbers in the normal intervals of the estimates; a count without noise is its own range."""
        checked_level(level)
        found = self._estimates_of(cells)
        if found is None:
            return np.full(cells.published.shape, np.nan), np.full(cells.published.shape, np.nan)
        estimate, error = found
        reach = NormalDist().inv_cdf((1 + level) / 2) * error
        nearest = np.maximum(np.rint(estimate), 0.0)
        low = np.minimum(np.maximum(np.ceil(estimate - reach), 0.0), nearest)
        high = np.maximum(np.floor(estimate + reach), nearest)
        return np.where(error == 0, cells.published, low), np.where(error == 0, cells.published, high)
