"""Record keys: 32-bit integers from a keyed hash of a record's stable id.

The hash is SipHash-2-4 (Aumasson & Bernstein 2012, a pseudorandom function), written as a kernel because ten million
ids must cost a tenth of a second; its published test vectors are asserted in the tests. Its 128-bit key is derived from
the office's secret by keyed BLAKE2b (RFC 7693) with a purpose, so that keys of different units and uses are unrelated.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import njit

SECRET_BYTES = 32
_DOUBT = 40  # bits
_EIGHT_BYTES = np.uint64(8 << 56)  # how the last word of a message states its length
_START = tuple(
    map(np.uint64, (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573))
)
_MASK32 = np.uint64(0xFFFFFFFF)
_LARGEST = np.uint64(9223372036854775807)


def derive(secret: bytes, purpose: str, size: int = 32) -> bytes:
    """Derive bytes for one purpose: BLAKE2b keyed by the secret over the purpose's name."""
    if len(secret) != SECRET_BYTES:
        raise ValueError(f"a secret has {SECRET_BYTES} bytes")
    return hashlib.blake2b(purpose.encode(), digest_size=size, key=secret, person=b"discreet-derive").digest()


def hash_key(secret: bytes, purpose: str) -> NDArray[np.uint64]:
    """Derive the two 64-bit words that key one SipHash."""
    return np.frombuffer(derive(secret, purpose, 16), dtype="<u8").astype(np.uint64)


@njit(inline="always")  # type: ignore[untyped-decorator]
def hash_word(word: Any, k0: Any, k1: Any) -> Any:
    """SipHash-2-4 of the eight little-endian bytes of one word.

    Inlined and written out: Numba then hashes several words at once with vector instructions.
    """
    v0, v1, v2, v3 = k0 ^ _START[0], k1 ^ _START[1], k0 ^ _START[2], k1 ^ _START[3] ^ word
    for number in range(8):
        if number == 2:  # after two rounds the word is absorbed, and the length follows
            v0 ^= word
            v3 ^= _EIGHT_BYTES
        elif number == 4:  # four rounds finish
            v0 ^= _EIGHT_BYTES
            v2 ^= np.uint64(0xFF)
        v0 += v1
        v1 = ((v1 << np.uint64(13)) | (v1 >> np.uint64(51))) ^ v0
        v0 = (v0 << np.uint64(32)) | (v0 >> np.uint64(32))
        v2 += v3
        v3 = ((v3 << np.uint64(16)) | (v3 >> np.uint64(48))) ^ v2
        v0 += v3
        v3 = ((v3 << np.uint64(21)) | (v3 >> np.uint64(43))) ^ v0
        v2 += v1
        v1 = ((v1 << np.uint64(17)) | (v1 >> np.uint64(47))) ^ v2
        v2 = (v2 << np.uint64(32)) | (v2 >> np.uint64(32))
    return v0 ^ v1 ^ v2 ^ v3


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def hash_bytes(text: Any, first: Any, last: Any, k0: Any, k1: Any) -> Any:
    """SipHash-2-4 of the bytes text[first:last]: two rounds for each word of eight bytes, and four to finish."""
    v0, v1, v2, v3 = k0 ^ _START[0], k1 ^ _START[1], k0 ^ _START[2], k1 ^ _START[3]
    length = last - first
    words = length // 8 + 1  # the last one has the rest and the length
    for number in range(words + 2):
        at = first + 8 * number
        word = np.uint64(length & 0xFF) << np.uint64(56) if number == words - 1 else np.uint64(0)
        for byte in range(min(8, last - at)):
            word |= np.uint64(text[at + byte]) << np.uint64(8 * byte)
        v3 ^= word
        if number == words:
            v2 ^= np.uint64(0xFF)
        for _ in range(2):
            v0 += v1
            v1 = ((v1 << np.uint64(13)) | (v1 >> np.uint64(51))) ^ v0
            v0 = (v0 << np.uint64(32)) | (v0 >> np.uint64(32))
            v2 += v3
            v3 = ((v3 << np.uint64(16)) | (v3 >> np.uint64(48))) ^ v2
            v0 += v3
            v3 = ((v3 << np.uint64(21)) | (v3 >> np.uint64(43))) ^ v0
            v2 += v1
            v1 = ((v1 << np.uint64(17)) | (v1 >> np.uint64(47))) ^ v2
            v2 = (v2 << np.uint64(32)) | (v2 >> np.uint64(32))
        v0 ^= word
    return v0 ^ v1 ^ v2 ^ v3


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _hash_words(words: Any, k0: Any, k1: Any, out: Any) -> None:
    for r in range(words.size):
        out[r] = hash_word(np.uint64(words[r]), k0, k1)


def hash_words(key: NDArray[np.uint64], words: NDArray[np.int64]) -> NDArray[np.uint64]:
    """SipHash-2-4 of each word, under the key of ``hash_key``."""
    words = words.view()
    words.flags.writeable = False  # Arrow's columns are read-only, and one kernel is enough
    out = np.empty(len(words), dtype=np.uint64)
    _hash_words(words, key[0], key[1], out)
    return out


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _as_integer(text: Any, first: Any, last: Any) -> Any:
    """Read a canonical decimal integer (no leading zero, sign or blank beyond '-'); return whether it is one."""
    negative = last > first and text[first] == 45
    digits = first + 1 if negative else first
    length = last - digits
    if length < 1 or length > 19 or (text[digits] == 48 and (length > 1 or negative)):
        return False, np.uint64(0)
    value = np.uint64(0)
    for position in range(digits, last):
        digit = text[position]
        if digit < 48 or digit > 57:
            return False, np.uint64(0)
        value = value * np.uint64(10) + np.uint64(digit - 48)
    if value > _LARGEST:
        return False, np.uint64(0)
    return True, (~value + np.uint64(1) if negative else value)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _hash_texts(text: Any, offsets: Any, ki: Any, kt: Any, out: Any) -> None:
    for r in range(out.size):
        is_integer, word = _as_integer(text, offsets[r], offsets[r + 1])
        if is_integer:
            out[r] = hash_word(word, ki[0], ki[1])
        else:
            out[r] = hash_bytes(text, offsets[r], offsets[r + 1], kt[0], kt[1])


def hash_integers(secret: bytes, purpose: str, ids: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Hash integer ids to 64 bits under one purpose."""
    return hash_words(hash_key(secret, purpose + "/integer"), ids)


def hash_texts(
    secret: bytes, purpose: str, text: NDArray[np.uint8], offsets: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """Hash text ids to 64 bits; a text that is a canonical integer hashes as that integer.

    So a population keeps its keys when its ids move from an integer column to a text column (CSV, a database).
    """
    out = np.empty(len(offsets) - 1, dtype=np.uint64)
    _hash_texts(
        text, offsets, hash_key(secret, purpose + "/integer"), hash_key(secret, purpose + "/text"), out
    )
    return out


def record_keys(hashes: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """The record keys, uniform on [0, 2^32): the low half of the hash."""
    return (hashes & _MASK32).astype(np.uint32)


def improbably_small(largest: int, number: int, modulus: int) -> bool:
    """Whether uniform keys below the modulus M would all stay so small with probability at most 2^-40.

    n of them all stay below M / 2^s with probability 2^-(n s): keys that do were made for a smaller modulus.
    """
    return number * ((modulus // (largest + 1)).bit_length() - 1) >= _DOUBT


_NEAR = 14  # bits of the number of hashes that are ordered at a time: they stay in the processor's cache
_WITHIN = 12  # further bits by which they are counted


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _hash_order(hashes: Any, bits: Any, order: Any, ascending: Any) -> None:
    shift = np.uint64(64 - bits)
    begin = np.zeros((1 << bits) + 1, dtype=np.int64)
    for r in range(hashes.size):
        begin[(hashes[r] >> shift) + np.uint64(1)] += 1
    most = begin.max()
    begin = begin.cumsum()
    following = begin[:-1].copy()
    for r in range(hashes.size):
        at = following[hashes[r] >> shift]
        following[hashes[r] >> shift] = at + 1
        order[at], ascending[at] = r, hashes[r]
    rows, words = np.empty(most, dtype=np.int32), np.empty(most, dtype=np.uint64)
    inner = np.empty((1 << _WITHIN) + 1, dtype=np.int64)
    shift, mask = shift - np.uint64(_WITHIN), np.uint64((1 << _WITHIN) - 1)
    for b in range(begin.size - 1):
        low, high = begin[b], begin[b + 1]
        inner[:] = 0
        for at in range(low, high):
            rows[at - low], words[at - low] = order[at], ascending[at]
            inner[((ascending[at] >> shift) & mask) + np.uint64(1)] += 1
        inner[0] = low
        for i in range(1, inner.size):
            inner[i] += inner[i - 1]
        for r in range(high - low):
            at = inner[(words[r] >> shift) & mask]
            inner[(words[r] >> shift) & mask] = at + 1
            order[at], ascending[at] = rows[r], words[r]
        for at in range(low + 1, high):  # only neighbours within one beginning are out of order
            row, word, to = order[at], ascending[at], at
            while to > low and ascending[to - 1] > word:
                order[to], ascending[to] = order[to - 1], ascending[to - 1]
                to -= 1
            order[to], ascending[to] = row, word


def hash_order(hashes: NDArray[np.uint64]) -> tuple[NDArray[np.int32], NDArray[np.uint64]]:
    """The stable order of some hashes, and the hashes in it.

    Hashes are spread evenly, so that two counting sorts by their first bits leave little to be exchanged; after the
    first, each part is near the processor.
    """
    bits = max(1, len(hashes).bit_length() - _NEAR)
    order, ascending = np.empty(len(hashes), dtype=np.int32), np.empty(len(hashes), dtype=np.uint64)
    _hash_order(hashes, bits, order, ascending)
    return order, ascending
