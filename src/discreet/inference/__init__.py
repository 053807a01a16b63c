"""Inference for users of a release: tests, intervals and models that allow for its published noise.

    from discreet.inference import independence, noise_of
    noise = noise_of("release")
    independence(frame, noise)

The formulas are in ``discreet.maths``; only the public files are used.
"""

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
