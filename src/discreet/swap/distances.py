"""How far swapped households went, from coordinates that follow the place; it reads no records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.swap.result import SwapResult

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_BINS = 24
_NAMED = {"easting": "northing"}


@dataclass(frozen=True)
class Distances:
    """The distances between partners, in the unit of the coordinates."""

    columns: tuple[str, str]
    mean: float
    quantiles: Mapping[str, float]  # "5 %" .. "95 %" -> distance
    edges: tuple[float, ...]  # of a histogram
    households: tuple[int, ...]


def coordinate_columns(values: Mapping[str, pa.Array]) -> tuple[str, str] | None:
    """Two columns of numbers that are named alike but for x and y, or easting and northing."""
    for name in values:
        lower = name.lower()
        other = _NAMED.get(lower) or (lower[:-1] + "y" if lower.endswith("x") else None)
        match = next((column for column in values if column.lower() == other), None)
        if match is not None and _is_number(values[name]) and _is_number(values[match]):
            return name, match
    return None


def distances_of(result: SwapResult) -> Distances | None:
    """The distances; None where no coordinates are carried along or nobody has them."""
    values = result.moves.values
    columns = coordinate_columns(values)
    if columns is None:
        return None
    moved = np.flatnonzero(result.partner >= 0)  # in the order of the moves
    partner = np.searchsorted(moved, result.partner[moved])
    x, y = (_numbers(values[column]) for column in columns)
    gone = np.hypot(x - x[partner], y - y[partner])  # the partner's donor is oneself
    gone = gone[np.isfinite(gone)]
    if not len(gone):
        return None
    counts, edges = np.histogram(gone, bins=_BINS, range=(0, float(gone.max()) or 1.0))
    quantiles = {f"{100 * share:.0f} %": float(np.quantile(gone, share)) for share in QUANTILES}
    return Distances(columns, float(gone.mean()), quantiles, tuple(edges.tolist()), tuple(counts.tolist()))


def _is_number(column: pa.Array) -> bool:
    return bool(pa.types.is_integer(column.type) or pa.types.is_floating(column.type))


def _numbers(column: pa.Array) -> NDArray[np.float64]:
    """Numbers, with NaN where there is none."""
    numbers: NDArray[np.float64] = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return numbers
