"""A synthetic census of blocks for the hierarchical release: the 2,016 cells of the US redistricting data, sparse."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from discreet.hierarchy.integers import Bounds
from discreet.hierarchy.spine import Spine, spine_of
from discreet.programme.strategy import HOUSING_TYPES, NURSING

LEVELS = ("State", "County", "Tract", "Block_Group", "Block")
BLOCKS_OF_A_GROUP = 36.0
PERSONS_OF_A_BLOCK = 37.0
EMPTY = 0.3  # of the blocks
RACES = 63
MOST_IN_A_FACILITY = 99_999


@dataclass(frozen=True, eq=False)
class TreeCensus:
    """Nested areas, their counts and the public numbers of facilities."""

    parents: tuple[NDArray[np.int64], ...]  # level but the first -> area -> its parent
    spine: Spine
    counts: csr_array  # (block, cell of 8 x 2 x 2 x 63)
    bounds: Bounds

    @property
    def persons(self) -> int:
        return int(self.counts.sum())


def tree_census(blocks: int, seed: int, groups_of_a_county: int = 200) -> TreeCensus:
    """Areas of random sizes; races and ages vary by tract, a block in thirty has group quarters."""
    rng = np.random.default_rng(seed)
    groups = max(int(blocks / BLOCKS_OF_A_GROUP), 1)
    tracts, counties = max(groups // 3, 1), max(groups // groups_of_a_county, 1)
    county_of = np.sort(_every(rng, tracts, counties))
    tract_of = np.sort(_every(rng, groups, tracts))
    group_of = np.sort(_every(rng, blocks, groups))
    parents = (np.zeros(counties, dtype=np.int64), county_of, tract_of, group_of)
    spine = spine_of(LEVELS, parents)
    counts, facilities = _persons(rng, blocks, tract_of[group_of], tracts)
    bounds = Bounds("hhgq", facilities, facilities * MOST_IN_A_FACILITY)
    return TreeCensus(parents, spine, counts, bounds)


def _every(rng: np.random.Generator, children: int, parents: int) -> NDArray[np.int64]:
    """A parent for each child, at least one child for each parent."""
    return np.concatenate([np.arange(parents), rng.integers(0, parents, children - parents)])


def _persons(
    rng: np.random.Generator, blocks: int, tract_of: NDArray[np.int64], tracts: int
) -> tuple[csr_array, NDArray[np.int64]]:
    lived_in = rng.random(blocks) >= EMPTY
    size = np.where(lived_in, rng.gamma(1.1, PERSONS_OF_A_BLOCK / (1 - EMPTY) / 1.1, blocks), 0).astype(
        np.int64
    )
    quarters = np.where(rng.random(blocks) < 1 / 30, rng.integers(1, HOUSING_TYPES, blocks), 0)
    residents = np.where(quarters > 0, rng.geometric(1 / 40, blocks), 0)
    base = 1 / np.arange(1, RACES + 1) ** 2.2
    races = rng.dirichlet(60 * base / base.sum() + 0.002, tracts)
    hispanic, minors = rng.beta(1.2, 8, tracts), rng.beta(20, 65, tracts)
    block = np.repeat(np.arange(blocks), size + residents)
    housing = np.repeat(
        np.stack([np.zeros_like(quarters), quarters], axis=1).reshape(-1),
        np.stack([size, residents], axis=1).reshape(-1),
    )
    tract = tract_of[block]
    adult = (rng.random(len(block)) >= minors[tract]) | (housing == NURSING)
    latin = rng.random(len(block)) < hispanic[tract]
    upto = np.cumsum(races, axis=1)
    race = np.empty(len(block), dtype=np.int64)
    for start in range(0, len(block), 1 << 20):
        here = slice(start, start + (1 << 20))
        race[here] = (upto[tract[here]] < rng.random(len(tract[here]))[:, None]).sum(axis=1)
    race = np.minimum(race, RACES - 1)
    cell = ((housing * 2 + adult) * 2 + latin) * RACES + race
    codes, count = np.unique(block * 2016 + cell, return_counts=True)
    counts = csr_array((count.astype(np.int64), (codes // 2016, codes % 2016)), shape=(blocks, 2016))
    facilities = np.zeros((blocks, HOUSING_TYPES), dtype=np.int64)
    facilities[:, 0] = 0
    facilities[np.arange(blocks), quarters] = np.where(quarters > 0, 1 + residents // 200, 0)
    return counts, _with_households(facilities, size)


def _with_households(facilities: NDArray[np.int64], size: NDArray[np.int64]) -> NDArray[np.int64]:
    """Occupied units bound the persons in households: at least one person each."""
    facilities[:, 0] = -(-size // 3)
    return facilities
