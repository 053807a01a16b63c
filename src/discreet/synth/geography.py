"""The synthetic country: nested regions, their sizes, territories and character."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.errors import mistake
from discreet.programme.codelist import Code
from discreet.synth.draw import Dice, leaf
from discreet.text.phrase import translated

FICTIONAL = "XX"
PER_KM2 = 100.0  # inhabitants
WEST, SOUTH = 4200.0, 2600.0  # the south-west corner, in km of EPSG:3035
SPREAD = 1.25  # of the logarithm of the size of the municipalities
LETTERS = "123456789ABCDEFGHIJKLMNPQRSTUVWXYZ"
LOCALITY_STEPS = (200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000)
RURAL, TOWN, CITY = 0, 1, 2

# country -> NUTS 1, NUTS 2, NUTS 3 (NUTS 2021) and LAU regions (approximate)
COUNTRIES: Mapping[str, tuple[int, int, int, int]] = {
    "BE": (3, 11, 44, 581),
    "BG": (2, 6, 28, 265),
    "CZ": (1, 8, 14, 6258),
    "DK": (1, 5, 11, 99),
    "DE": (16, 38, 401, 10994),
    "EE": (1, 1, 5, 79),
    "IE": (1, 3, 8, 166),
    "EL": (4, 13, 52, 6137),
    "ES": (7, 19, 59, 8131),
    "FR": (14, 27, 101, 34965),
    "HR": (1, 4, 21, 556),
    "IT": (5, 21, 107, 7903),
    "CY": (1, 1, 1, 615),
    "LV": (1, 1, 6, 119),
    "LT": (1, 2, 10, 60),
    "LU": (1, 1, 1, 102),
    "HU": (3, 8, 20, 3155),
    "MT": (1, 1, 2, 68),
    "NL": (4, 12, 40, 352),
    "AT": (3, 9, 35, 2095),
    "PL": (7, 17, 73, 2477),
    "PT": (3, 7, 25, 3092),
    "RO": (4, 8, 42, 3181),
    "SI": (1, 2, 12, 212),
    "SK": (1, 4, 8, 2927),
    "FI": (2, 5, 19, 309),
    "SE": (3, 8, 21, 290),
}


@dataclass(frozen=True, eq=False)
class Geography:
    """One country; every array has one entry per municipality (LAU), ordered by region."""

    country: str
    regions: tuple[tuple[str, ...], ...]  # codes of NUTS 1, NUTS 2, NUTS 3 and LAU
    above: tuple[NDArray[np.int32], ...]  # LAU -> position of its NUTS 1, NUTS 2, NUTS 3 region and itself
    persons: NDArray[np.int64]
    west: NDArray[np.float64]  # the territory's rectangle, km
    east: NDArray[np.float64]
    south: NDArray[np.float64]
    north: NDArray[np.float64]
    character: NDArray[np.int16]  # rural, town, city
    main_locality: NDArray[np.int16]  # LOC of the main town ...
    other_locality: NDArray[np.int16]  # ... and of the villages around it
    foreign: NDArray[np.float64]  # share of households from abroad

    @property
    def nuts2(self) -> NDArray[np.int32]:
        """The NUTS 2 region of each municipality."""
        return self.above[1]

    def rows(self) -> list[Code]:
        """The codelist of the regions."""
        names = ("Region", "Province", "District", "Municipality")
        german = ("Region", "Provinz", "Bezirk", "Gemeinde")
        rows = []
        for depth, codes in enumerate(self.regions):
            parents = _parents(self.above, depth)
            for number, code in enumerate(codes):
                parent = self.regions[depth - 1][parents[number]] if depth else ""
                label = translated(f"{names[depth]} {number + 1}", {"de": f"{german[depth]} {number + 1}"})
                rows.append(Code(code, parent, label))
        return rows


def geography(persons: int, country: str, dice: Dice) -> Geography:
    """Generate a country for a number of persons, which decides the numbers of regions unless a country is given."""
    counts = region_counts(persons, country)
    above = _nested(counts)
    sizes = _sizes(persons, counts[-1], dice)
    character = _character(sizes)
    west, east, south, north = _territories(sizes)
    main = (sizes * np.array([0.55, 0.75, 0.95])[character]).astype(np.int64)
    villages = np.minimum(main, 500 * dice.lognormal(0.9, sizes.shape)).astype(np.int64)
    mean_foreign = np.array([0.04, 0.08, 0.17])[character]
    foreign = np.minimum(0.6, mean_foreign * dice.lognormal(0.45, sizes.shape))
    return Geography(
        country, _codes(country, counts, above), above, sizes, west, east, south, north,
        character, _locality(main), _locality(villages), foreign,
    )  # fmt: skip


def region_counts(persons: int, country: str) -> tuple[int, int, int, int]:
    """The number of regions of each level; at most the number of persons."""
    if country == FICTIONAL:
        scale = persons / 1e7
        shape = tuple(
            max(1, round(n * scale**power)) for n, power in ((3, 0.35), (11, 0.45), (44, 0.55), (1500, 0.8))
        )
    elif country in COUNTRIES:
        shape = COUNTRIES[country]
    else:
        known = ", ".join((FICTIONAL, *COUNTRIES))
        raise mistake("", "country", f"no country {country!r}", f"use one of {known}")
    lau = min(shape[3], persons)
    nuts3 = min(shape[2], lau)
    nuts2 = min(shape[1], nuts3)
    return min(shape[0], nuts2), nuts2, nuts3, lau


def _nested(counts: tuple[int, ...]) -> tuple[NDArray[np.int32], ...]:
    lau = np.arange(counts[-1], dtype=np.int64)
    levels = [lau]
    for finer, coarser in zip(counts[:0:-1], counts[-2::-1], strict=True):
        levels.append(levels[-1] * coarser // finer)
    return tuple(level.astype(np.int32) for level in reversed(levels))


def _parents(above: tuple[NDArray[np.int32], ...], depth: int) -> NDArray[np.int32]:
    _, first = np.unique(above[depth], return_index=True)
    return above[max(depth - 1, 0)][first]


def _codes(
    country: str, counts: tuple[int, ...], above: tuple[NDArray[np.int32], ...]
) -> tuple[tuple[str, ...], ...]:
    levels: list[tuple[str, ...]] = []
    for depth in range(3):
        parents = _parents(above, depth) if depth else np.zeros(counts[0], dtype=np.int32)
        rank = np.arange(counts[depth]) - np.searchsorted(parents, parents)
        upper = levels[-1] if levels else (country,)
        levels.append(tuple(upper[parent] + LETTERS[k] for parent, k in zip(parents, rank, strict=True)))
    return (*levels, tuple(f"{country}_{number + 1:05d}" for number in range(counts[3])))


def _sizes(persons: int, count: int, dice: Dice) -> NDArray[np.int64]:
    weights = dice.lognormal(SPREAD, (count,))
    weights[count // 2] += 0.06 * weights.sum()  # the capital
    free = persons - count  # every municipality gets one inhabitant first
    exact = np.cumsum(weights / weights.sum() * free)
    steps = np.rint(exact).astype(np.int64)
    steps[-1] = free
    return np.asarray(np.diff(steps, prepend=0) + 1)


def _character(sizes: NDArray[np.int64]) -> NDArray[np.int16]:
    order = np.argsort(-sizes, kind="stable")
    share_above = np.empty(sizes.size)
    share_above[order] = (np.cumsum(sizes[order]) - sizes[order]) / sizes.sum()
    return np.select([share_above < 0.35, share_above < 0.7], [CITY, TOWN], RURAL).astype(np.int16)


def _locality(sizes: NDArray[np.int64]) -> NDArray[np.int16]:
    largest_first = [leaf("LOC")[str(13 - step)] for step in range(13)]
    return np.array(largest_first, dtype=np.int16)[np.searchsorted(LOCALITY_STEPS, sizes, side="right")]


def _territories(sizes: NDArray[np.int64]) -> tuple[NDArray[np.float64], ...]:
    """Cut a square in halves of equal area, along its longer side, until each municipality has its rectangle.

    The cuts do not follow the km grid, so that neighbours share cells as real municipalities do.
    """
    area = sizes.astype(np.float64) ** 0.45
    area *= sizes.sum() / PER_KM2 / area.sum()
    bounds = np.empty((4, sizes.size))
    side = float(np.sqrt(area.sum()))
    cumulative = np.concatenate(([0.0], np.cumsum(area)))
    stack = [(0, sizes.size, WEST, WEST + side, SOUTH, SOUTH + side)]
    while stack:
        first, last, west, east, south, north = stack.pop()
        if last - first == 1:
            bounds[:, first] = west, east, south, north
            continue
        half = (cumulative[first] + cumulative[last]) / 2
        cut = int(np.clip(np.searchsorted(cumulative, half), first + 1, last - 1))
        share = (cumulative[cut] - cumulative[first]) / (cumulative[last] - cumulative[first])
        if east - west > north - south:
            line = west + share * (east - west)
            stack += [(first, cut, west, line, south, north), (cut, last, line, east, south, north)]
        else:
            line = south + share * (north - south)
            stack += [(first, cut, west, east, south, line), (cut, last, west, east, line, north)]
    return tuple(bounds)
