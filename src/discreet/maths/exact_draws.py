"""Drawing from threshold tables: random bits from AES-256-CTR and the kernels that turn them into noise.

It owns the stream of bits and the lookup; the tables are thresholds', and the key is the caller's (32 bytes from the
operating system for fresh noise). The running time depends on what is drawn; no claim of constant time is made.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numba import njit
from numpy.typing import NDArray

from discreet.maths.row_laws import HellingerLaw
from discreet.maths.thresholds import ThresholdTable, row_table

KEY_BYTES = 32
CHUNK = 2**16  # values drawn at a time: their bits and results stay in the cache
BLOCK = 2**20  # bytes of zeros that are encrypted at a time

Words = NDArray[np.uint64]


class BitSource:
    """A stream of bits that only its key determines: AES-256 in counter mode from counter zero on.

    One key, one stream: give each thread a source with a key of its own, and never use a key twice.
    """

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes")
        self._stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        self._zeros = memoryview(bytes(BLOCK))

    def fill(self, out: NDArray[Any]) -> None:
        """Fill an array of unsigned integers with the next bits, little-endian on every machine."""
        view = out.view(np.uint8).data
        for start in range(0, len(view), BLOCK):
            part = view[start : start + BLOCK]
            self._stream.update_into(self._zeros[: len(part)], part)
        if sys.byteorder == "big":
            out.byteswap(inplace=True)

    def words(self, n: int) -> Words:
        """The next n words of 64 bits."""
        out = np.empty(n, dtype=np.uint64)
        self.fill(out)
        return out


def draw(table: ThresholdTable, n: int, bits: BitSource) -> NDArray[np.int32]:
    """Draw n independent values whose law is exactly the table's numbers / 2^128.

    16 bits choose a slot. Where no threshold falls into it they decide; otherwise 48 more bits are drawn (the rest of
    their word is thrown away) and compared with the thresholds' upper halves; on a tie 64 more are drawn, and then all
    128 bits are known and the integer thresholds decide. There is nothing beyond them: the integers are the law.
    """
    out = np.empty(n, dtype=np.int32)
    draw_into(out, table, bits)
    return out


def draw_into(out: NDArray[np.int32], table: ThresholdTable, bits: BitSource) -> None:
    """Fill an array as ``draw`` does; fresh memory costs more than noise, so arrays that exist are worth reusing."""
    size = min(len(out), CHUNK)
    unsettled, room = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.uint16)
    for start in range(0, len(out), CHUNK):
        part = out[start : start + CHUNK]
        slots = room[: len(part)]
        bits.fill(slots)
        left = _by_slot(slots, table.guide, table.first, part, unsettled)
        if left:
            _settle(table, slots, part, unsettled[:left], bits)


def _settle(
    table: ThresholdTable,
    slots: NDArray[np.uint16],
    part: NDArray[np.int32],
    unsettled: NDArray[np.int64],
    bits: BitSource,
) -> None:
    ties = np.empty(len(unsettled), dtype=np.int64)
    upper = bits.words(len(unsettled))
    tied = _by_upper_half(slots, unsettled, upper, table.guide, table.hi, table.first, part, ties)
    if tied:
        at = ties[:tied]
        lower = bits.words(tied)
        _by_both_halves(upper[at], lower, table.guide, table.hi, table.lo, table.first, unsettled[at], part)


def from_words(table: ThresholdTable, words: Words) -> NDArray[np.int32]:
    """The values that given 128-bit words draw: words[n, 2] holds the upper and the lower half of each."""
    out = np.empty(len(words), dtype=np.int32)
    upper, lower = np.ascontiguousarray(words[:, 0]), np.ascontiguousarray(words[:, 1])
    _by_both_halves(
        upper, lower, table.guide, table.hi, table.lo, table.first, np.arange(len(words), dtype=np.int64), out
    )
    return out


def draw_published(law: HellingerLaw, counts: NDArray[np.int64], bits: BitSource) -> NDArray[np.int64]:
    """Draw the published counts of a law that depends on the count, with one table for each different count."""
    different, which = np.unique(counts, return_inverse=True)
    out = np.empty(len(counts), dtype=np.int64)
    for at, count in enumerate(different.tolist()):
        cells = which == at
        out[cells] = draw(row_table(law, count), int(cells.sum()), bits)
    return out


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _by_slot(slots: Any, guide: Any, first: Any, out: Any, unsettled: Any) -> Any:
    left = 0
    for at in range(slots.size):
        entry = guide[slots[at]]
        out[at] = first + (entry >> 1)
        unsettled[left] = at  # overwritten by the next one unless it counts, which spares a branch
        left += entry & 1
    return left


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _by_upper_half(
    slots: Any, unsettled: Any, words: Any, guide: Any, hi: Any, first: Any, out: Any, ties: Any
) -> Any:
    tied = 0
    for at in range(unsettled.size):
        slot = np.uint64(slots[unsettled[at]])
        upper = (slot << np.uint64(48)) | (words[at] >> np.uint64(16))
        words[at] = upper
        k = _first_from(hi, upper, guide, slot)
        if k < hi.size and hi[k] == upper:
            ties[tied] = at
            tied += 1
        out[unsettled[at]] = first + k
    return tied


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _by_both_halves(
    upper: Any, lower: Any, guide: Any, hi: Any, lo: Any, first: Any, places: Any, out: Any
) -> None:
    for at in range(upper.size):
        slot = upper[at] >> np.uint64(48)
        k = np.int64(guide[slot] >> 1)
        if guide[slot] & 1:
            k = _first_from(hi, upper[at], guide, slot)
            while k < hi.size and hi[k] == upper[at] and lo[k] <= lower[at]:
                k += 1
        out[places[at]] = first + k


@njit(cache=True, nogil=True, inline="always")  # type: ignore[untyped-decorator]
def _first_from(hi: Any, upper: Any, guide: Any, slot: Any) -> Any:
    """Find the first threshold of a slot whose upper half is not below the given one."""
    low = np.int64(guide[slot] >> 1)
    high = np.int64(guide[slot + np.uint64(1)] >> 1) if slot < np.uint64(65535) else hi.size
    while low < high:
        middle = (low + high) >> 1
        if hi[middle] < upper:
            low = middle + 1
        else:
            high = middle
    return low
