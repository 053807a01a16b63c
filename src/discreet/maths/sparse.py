"""Sparse accumulators: cells of cubes too large to be dense, as sorted positions with sums; linear-time kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

_DIGIT = 11
_BUCKETS = 1 << _DIGIT

Positions = NDArray[np.uint64]
Sums = NDArray[np.uint64]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _radix_pass(position: Any, added: Any, position_out: Any, added_out: Any, shift: Any) -> None:
    begin = np.zeros(_BUCKETS + 1, dtype=np.int64)
    mask = np.uint64(_BUCKETS - 1)
    for r in range(position.size):
        begin[((position[r] >> shift) & mask) + np.uint64(1)] += 1
    for b in range(_BUCKETS):
        begin[b + 1] += begin[b]
    for r in range(position.size):
        bucket = (position[r] >> shift) & mask
        place = begin[bucket]
        begin[bucket] = place + 1
        position_out[place] = position[r]
        added_out[place] = added[r]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _add_equal(position: Any, added: Any) -> Any:
    kept = 0
    for r in range(1, position.size):
        if position[r] == position[kept]:
            added[kept] += added[r]
        else:
            kept += 1
            position[kept] = position[r]
            added[kept] = added[r]
    return kept + 1


def ordered(position: Positions, added: Sums, size: int) -> tuple[Positions, Sums]:
    """Sort by position (below ``size``), least significant digits first; equal ones keep their order.

    The given arrays are used as room to work in and hold nothing of use afterwards.
    """
    spare = np.empty_like(position), np.empty_like(added)
    for shift in range(0, max(1, (size - 1).bit_length()), _DIGIT):
        _radix_pass(position, added, *spare, np.uint64(shift))
        (position, added), spare = spare, (position, added)
    return position, added


def aggregate(position: Positions, added: Sums, size: int) -> tuple[Positions, Sums]:
    """Sort by position and add up equal ones in one sweep; the given arrays are used up."""
    if len(position) == 0:
        return position, added
    position, added = ordered(position, added, size)
    kept = _add_equal(position, added)
    return position[:kept].copy(), added[:kept].copy()


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _absent(wanted: Any, held: Any, out: Any) -> None:
    at = 0
    for w in range(wanted.size):
        while at < held.size and held[at] < wanted[w]:
            at += 1
        out[w] = at == held.size or held[at] != wanted[w]


def absent(wanted: NDArray[np.int64], held: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark the wanted numbers that are not held; both ascending."""
    out = np.empty(len(wanted), dtype=bool)
    _absent(wanted, held, out)
    return out


def roll_up(
    position: Positions, added: Sums, shape: tuple[int, ...], axis: int, parents: NDArray[np.int32]
) -> tuple[Positions, Sums]:
    """Add the ancestors along one axis of cells that are still finest on it."""
    stride = int(np.prod(shape[axis + 1 :], dtype=np.int64))
    size = int(np.prod(shape, dtype=np.int64))
    node = ((position // np.uint64(stride)) % np.uint64(shape[axis])).astype(np.int64)
    at, sums, pieces = position, added, [(position, added)]
    while True:
        above = parents[node]
        kept = above >= 0
        if not kept.any():
            break
        at, sums, node, above = at[kept], sums[kept], node[kept], above[kept].astype(np.int64)
        at = at - (node - above).astype(np.uint64) * np.uint64(stride)
        at, sums = aggregate(at, sums, size)
        node = ((at // np.uint64(stride)) % np.uint64(shape[axis])).astype(np.int64)
        pieces.append((at, sums))
    together = np.concatenate([p for p, _ in pieces]), np.concatenate([s for _, s in pieces])
    return aggregate(*together, size)
