"""Which population bases lie inside which, as anybody can tell from the published codes and filters.

It owns that comparison; subtracting their tables is differencing's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import permutations
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.audit.published import Universe
from discreet.errors import Mistakes
from discreet.schema.codelist import Codelist
from discreet.schema.expression import Filter, parse_filter

MOST_COMBINATIONS = 1_000_000  # of codes that two filters are compared on


def nested(universes: Iterable[Universe]) -> Iterator[tuple[Universe, Universe]]:
    """All pairs of universes (outer, inner) of which the inner counts some of the outer's records."""
    for outer, inner in permutations(universes, 2):
        counted = outer.count in ("", inner.count)
        if outer.unit == inner.unit and counted and _holds(outer, inner):
            yield outer, inner


def _holds(outer: Universe, inner: Universe) -> bool:
    """Whether every record of the inner base is surely in the outer one."""
    if outer.base in ("", inner.base):
        return True
    if not inner.base:
        return False
    try:
        filters = [parse_filter(base, outer.codelists) for base in (outer.base, inner.base)]
    except Mistakes:  # codes that no table shows: what both say in the same words is still known
        return _says_more(inner.base, outer.base)
    columns = _combinations(filters, outer.codelists)
    if columns is None:
        return _says_more(inner.base, outer.base)
    wide, narrow = (one.mask(columns) for one in filters)
    return bool((wide | ~narrow).all())


def _says_more(inner: str, outer: str) -> bool:
    """Whether a filter has all conditions of another; filters with alternatives are not compared."""
    if " or " in inner or " or " in outer:
        return False
    return set(outer.split(" and ")) <= set(inner.split(" and "))


def _combinations(
    filters: Iterable[Filter], codelists: Mapping[str, Codelist]
) -> dict[str, NDArray[np.uint32]] | None:
    """Every combination of leaves of the variables that filters name; None where there are too many."""
    names = sorted({name for one in filters for name in one.variables})
    sizes = [len(codelists[name].leaves) for name in names]
    if prod(sizes) > MOST_COMBINATIONS:
        return None
    grid = np.indices(sizes, dtype=np.uint32).reshape(len(sizes), -1)
    return dict(zip(names, grid, strict=True))
