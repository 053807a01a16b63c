"""Encoded records: what counting needs of them and nothing more; ids are gone once the keys are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

WEIGHT_UNIT = 1_000_000  # weights are sums of millionths, so that their order cannot change a sum

Codes = NDArray[np.unsignedinteger[Any]]


@dataclass(frozen=True, eq=False, repr=False)
class Block:
    """Some records of one unit, ordered by their finest geography."""

    codes: Mapping[str, Codes]  # variable -> leaf index of each record
    keys: NDArray[np.uint32]
    flags: Mapping[str, NDArray[np.bool_]]  # column -> counted or not
    weights: Mapping[str, NDArray[np.uint64]]  # column -> weight in millionths

    def __len__(self) -> int:
        return len(self.keys)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _is_ordered(codes: Any) -> Any:
    ordered_so_far = True
    for r in range(1, codes.size):
        ordered_so_far &= codes[r] >= codes[r - 1]
    return ordered_so_far


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _counting_order(codes: Any, categories: Any) -> Any:
    begin = np.zeros(categories + 1, dtype=np.int64)
    for r in range(codes.size):
        begin[codes[r] + 1] += 1
    for c in range(categories):
        begin[c + 1] += begin[c]
    order = np.empty(codes.size, dtype=np.int64)
    for r in range(codes.size):
        order[begin[codes[r]]] = r
        begin[codes[r]] += 1
    return order


def ordered(block: Block, variable: str, categories: int) -> Block:
    """Order a block by one variable with a counting sort; an ordered one is returned as it is."""
    codes = block.codes[variable]
    if _is_ordered(codes):
        return block
    order = _counting_order(codes, categories)
    return Block(
        {name: column[order] for name, column in block.codes.items()},
        block.keys[order],
        {name: column[order] for name, column in block.flags.items()},
        {name: column[order] for name, column in block.weights.items()},
    )
