"""Intervals for a true count, a difference, a ratio and a total, in words; the laws behind them are in maths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.errors import mistake
from discreet.inference.noise import Noise
from discreet.inference.results import CellResult, Range, RatioResult, SumResult
from discreet.inference.tables import counts_in
from discreet.maths.noisy_intervals import Flat, Interval, Prior, infer_cell
from discreet.maths.noisy_prior import estimated_prior
from discreet.maths.noisy_sums import SumInference, infer_ratio, infer_sum

MANY = 20  # cells from which their prior can be estimated
BY_NOISE = "by the law of the summed noise alone: right whatever the true counts are"
BY_POSTERIOR = "by the posterior"


def interval(published: Any, noise: Noise, level: float = 0.95, prior: Prior = Flat()) -> CellResult:
    """The true count behind one published count."""
    count = _single(published)
    found = infer_cell(noise.counts, count, level, prior)
    exact, held = _range(found.exact), _range(found.credible)
    sentence = (
        f"Published {count}: the true count lies between {exact.low} and {exact.high} with at least {level:.0%} "
        f"confidence; given the prior, between {held.low} and {held.high} with probability {held.level:.1%}."
    )
    return CellResult(
        count, found.most_likely, exact, found.posterior.mean, held, found.posterior.at(0), prior.name, noise.name,
        sentence, noise.caveats_for(np.array([count])),
    )  # fmt: skip


def difference(
    first: Any, second: Any, noise: Noise, level: float = 0.95, prior: Prior = Flat()
) -> SumResult:
    """The difference of two true counts of different groups, whose noise is independent."""
    pair = [_single(first), _single(second)]
    found = infer_sum(noise.counts, pair, [1, -1], level, prior)
    return _told("difference", found, noise, prior.name, pair)


def total(
    cells: Any,
    noise: Noise,
    level: float = 0.95,
    prior: Prior | None = None,
    weights: Sequence[int] | None = None,
    published: int | None = None,
) -> SumResult:
    """The true total of cells with independent noise; a total ``published`` with its own noise helps.

    A group that stands in several of the cells has the same noise there: give it once, with its number as weight.
    Without a prior one is estimated from the cells where there are enough of them, and is flat where there are few.
    """
    counts = counts_in(cells, "cells").ravel().tolist()
    factors = [1] * len(counts) if weights is None else counts_in(weights, "weights").ravel().tolist()
    extra, used = 0.0, prior
    if used is None and len(counts) >= MANY and weights is None:
        estimate = estimated_prior(noise.counts, counts)
        used, extra = estimate.prior, estimate.total_variance
    used = used or Flat()
    found = infer_sum(noise.counts, counts, factors, level, used, published, extra)
    return _told("total", found, noise, used.name, counts, helped=published is not None)


def ratio(count: Any, base: Any, noise: Noise, level: float = 0.95, prior: Prior = Flat()) -> RatioResult:
    """The ratio of two true counts of different groups."""
    found = infer_ratio(noise.counts, _single(count), _single(base), level, prior)
    upper = f"{found.high:.4g}" if np.isfinite(found.high) else "any larger value, for the base may be empty"
    sentence = (
        f"The true ratio lies between {found.low:.4g} and {upper} with probability {level:.0%}; its median is "
        f"{found.median:.4g}{_as_normal(found.is_exact)}."
    )
    return RatioResult(
        found.published, found.median, found.low, found.high, level, found.is_exact, prior.name, noise.name, sentence,
        noise.caveats_for(np.array([_single(count), _single(base)])),
    )  # fmt: skip


def _told(
    what: str, found: SumInference, noise: Noise, prior: str, counts: list[int], helped: bool = False
) -> SumResult:
    """The interval by the noise alone where there is one and nothing more is known, else the posterior's."""
    held = _range(found.credible)
    alone = None if helped or found.noise_only is None else _range(found.noise_only)
    shown, method = (held, BY_POSTERIOR) if alone is None else (alone, BY_NOISE)
    estimate = found.posterior_mean
    if alone is not None:
        estimate = (alone.low + alone.high) / 2
    sentence = (
        f"The published {what} is {found.published}; the true {what} lies between {shown.low} and {shown.high} "
        f"({shown.level:.1%}, {method}){_as_normal(found.is_exact)}."
    )
    return SumResult(
        found.published, estimate, shown, method, found.posterior_mean, held, found.is_exact, prior, noise.name,
        sentence, noise.caveats_for(np.array(counts)),
    )  # fmt: skip


def _as_normal(is_exact: bool) -> str:
    return "" if is_exact else ", by the normal law because the exact one is too large"


def _range(found: Interval) -> Range:
    return Range(found.low, found.high, found.level)


def _single(value: Any) -> int:
    counts = counts_in(value, "count")
    if counts.size != 1:
        raise mistake("", "count", f"{counts.size} values", "give one published count")
    return int(counts.flat[0])
