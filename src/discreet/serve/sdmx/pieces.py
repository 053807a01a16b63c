"""Observations put together from pieces of text: each code is written once, however many cells have it.

It owns which cell has which pieces; what the pieces look like is the formats' matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from discreet.serve.sdmx.observations import Detail, Observations


def cells(
    found: Observations, keys: list[list[str]], published: str, suppressed: str
) -> Iterator[tuple[str, str]]:
    """Key and ending of each cell that is shown."""
    cells = zip(
        product(*keys), found.values.tolist(), found.withheld.tolist(), found.shown.tolist(), strict=True
    )
    for key, value, withheld, shown in cells:
        if shown:
            yield "".join(key), suppressed if withheld else published % value


def series(
    found: Observations, keys: list[list[str]], last: list[str], published: str, suppressed: str
) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Key of each series that has a cell shown, with its observations; none of them where keys alone are wanted."""
    shape = (-1, len(last))
    rows = zip(
        product(*keys[:-1]),
        found.values.reshape(shape).tolist(),
        found.withheld.reshape(shape).tolist(),
        found.shown.reshape(shape).tolist(),
        strict=True,
    )
    for key, values, hidden, shown in rows:
        if any(shown):
            pieces = [
                (at, suppressed if withheld else published % value)
                for at, value, withheld, is_shown in zip(last, values, hidden, shown, strict=True)
                if is_shown and found.detail is not Detail.KEYS
            ]
            yield "".join(key), pieces
