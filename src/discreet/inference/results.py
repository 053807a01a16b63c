"""What is inferred, with a plain sentence and a summary ready for JSON; it computes nothing."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any


def _finite(value: Any) -> Any:
    """JSON knows no infinity."""
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class _Summed:
    """A result that tells itself as a dictionary."""

    def summary(self) -> dict[str, Any]:
        """All that was found, ready for JSON; what is infinite is null."""
        found = _finite(asdict(self))  # type: ignore[call-overload]
        return dict(found)


@dataclass(frozen=True)
class Pair:
    """A p-value that allows for the noise beside one that takes the published counts for true ones."""

    noise_aware: float
    naive: float


@dataclass(frozen=True)
class IndependenceResult(_Summed):
    """Tests of independence in a two-way table."""

    rows: int
    columns: int
    df: int
    statistic: float  # likelihood ratio
    p_value: float
    naive_statistic: float
    naive_p_value: float
    chi_square: float
    chi_square_p: Pair
    settled: bool
    noise: str
    sentence: str
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True)
class BinomialResult(_Summed):
    """The test of p = p0 from one published count of n."""

    n: int
    published: int
    p0: float
    estimate: float
    low: float
    high: float
    level: float
    statistic: float
    p_value: float  # exact, by enumeration
    asymptotic_p_value: float
    naive_p_value: float
    naive_estimate: float
    size_at_5_percent: float  # of the test that rejects beyond the chi-square limit
    power: float | None
    noise: str
    sentence: str
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True)
class Range:
    """From low to high, both included, with what it holds."""

    low: int
    high: int
    level: float


@dataclass(frozen=True)
class CellResult(_Summed):
    """The true count behind a published one."""

    published: int
    most_likely: tuple[int, int]
    interval: Range  # exact coverage, whatever the truth
    posterior_mean: float
    credible: Range
    empty: float  # posterior probability that the true count is 0
    prior: str
    noise: str
    sentence: str
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True)
class SumResult(_Summed):
    """A total or a difference."""

    published: int
    estimate: float
    interval: Range  # the one to quote
    method: str
    posterior_mean: float
    credible: Range
    exact: bool
    prior: str
    noise: str
    sentence: str
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True)
class RatioResult(_Summed):
    """A ratio of two counts; an infinite limit is null in the summary."""

    published: float | None
    median: float
    low: float
    high: float
    level: float
    exact: bool
    prior: str
    noise: str
    sentence: str
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True)
class Effect:
    """A parameter of a log-linear model."""

    name: str
    estimate: float
    standard_error: float  # inf: the data cannot tell it
    p_value: float
    naive_estimate: float
    naive_standard_error: float


@dataclass(frozen=True)
class LogLinearResult(_Summed):
    """A fitted log-linear model; the deviance tests it against the saturated one."""

    terms: tuple[str, ...]
    effects: tuple[Effect, ...]
    deviance: float
    df: int
    p_value: float
    naive_deviance: float
    naive_p_value: float
    settled: bool
    noise: str
    sentence: str
    caveats: tuple[str, ...] = ()
