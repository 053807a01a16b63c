"""Inference for users of a release: tests, intervals and models that allow for its published noise.

    from discreet.inference import independence, noise_of
    noise = noise_of("release")
    independence(frame, noise)

The formulas are in ``discreet.maths``; only the public files are used.

Each name is imported when it is first used: a table of the library knows its noise, and few tables are tested.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.inference.estimates import (
        BinomialResult,
        CellResult,
        IndependenceResult,
        LogLinearResult,
        Pair,
        ProportionResult,
        RatioResult,
        SumResult,
        binomial,
        difference,
        independence,
        independence_of_many,
        interval,
        loglinear,
        proportion,
        ratio,
        total,
    )
    from discreet.inference.hierarchy import (
        CombinedResult,
        EstimatedIndependence,
        EstimateResult,
        QuotientResult,
        estimated,
        estimated_difference,
        estimated_independence,
        estimated_proportion,
        estimated_ratio,
        estimated_total,
    )
    from discreet.inference.noise import KnownLaw, noise_by, noise_of, noise_of_law, noise_of_ptable_file
    from discreet.inference.released import ReleasedCube, ReleasedTable, cross_table, released_cube
    from discreet.inference.tables import CrossTable
    from discreet.inference.weighted import WeightedResult, weighted

_HOMES = {
    "BinomialResult": "estimates",
    "CellResult": "estimates",
    "CombinedResult": "hierarchy",
    "CrossTable": "tables",
    "EstimateResult": "hierarchy",
    "EstimatedIndependence": "hierarchy",
    "IndependenceResult": "estimates",
    "KnownLaw": "noise",
    "LogLinearResult": "estimates",
    "Pair": "estimates",
    "ProportionResult": "estimates",
    "QuotientResult": "hierarchy",
    "RatioResult": "estimates",
    "ReleasedCube": "released",
    "ReleasedTable": "released",
    "SumResult": "estimates",
    "WeightedResult": "weighted",
    "binomial": "estimates",
    "cross_table": "released",
    "difference": "estimates",
    "estimated": "hierarchy",
    "estimated_difference": "hierarchy",
    "estimated_independence": "hierarchy",
    "estimated_proportion": "hierarchy",
    "estimated_ratio": "hierarchy",
    "estimated_total": "hierarchy",
    "independence": "estimates",
    "independence_of_many": "estimates",
    "interval": "estimates",
    "loglinear": "estimates",
    "noise_by": "noise",
    "noise_of": "noise",
    "noise_of_law": "noise",
    "noise_of_ptable_file": "noise",
    "proportion": "estimates",
    "ratio": "estimates",
    "released_cube": "released",
    "total": "estimates",
    "weighted": "weighted",
}

__all__ = [
    "BinomialResult",
    "CellResult",
    "CombinedResult",
    "CrossTable",
    "EstimateResult",
    "EstimatedIndependence",
    "IndependenceResult",
    "KnownLaw",
    "LogLinearResult",
    "Pair",
    "ProportionResult",
    "QuotientResult",
    "RatioResult",
    "ReleasedCube",
    "ReleasedTable",
    "SumResult",
    "WeightedResult",
    "binomial",
    "cross_table",
    "difference",
    "estimated",
    "estimated_difference",
    "estimated_independence",
    "estimated_proportion",
    "estimated_ratio",
    "estimated_total",
    "independence",
    "independence_of_many",
    "interval",
    "loglinear",
    "noise_by",
    "noise_of",
    "noise_of_law",
    "noise_of_ptable_file",
    "proportion",
    "ratio",
    "released_cube",
    "total",
    "weighted",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no {name!r}; it has {', '.join(__all__)}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return list(__all__)
