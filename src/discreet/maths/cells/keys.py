"""Record keys: 32-bit integers from a keyed hash of a record's stable id.

The hash is SipHash-2-4 (Aumasson & Bernstein 2012, a pseudorandom function), written as a kernel because ten million
ids must cost a tenth of a second; its published test vectors are asserted in the tests. Its 128-bit key is derived from
the office's secret by keyed BLAKE2b (RFC 7693) with a purpose, so that keys of different units and uses are unrelated.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

SECRET_BYTES = 32
_DOUBT = 40  # bits
_U8 = np.uint64(8)
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


@njit(cache=True, nogil=True, inline="always")  # type: ignore[untyped-decorator]
def _rotate(word: Any, bits: Any) -> Any:
    return (word << np.uint64(bits)) | (word >> np.uint64(64 - bits))


@njit(cache=True, nogil=True, inline="always")  # type: ignore[untyped-decorator]
def _round(v0: Any, v1: Any, v2: Any, v3: Any) -> Any:
    v0 += v1
    v1 = _rotate(v1, 13) ^ v0
    v0 = _rotate(v0, 32)
    v2 += v3
    v3 = _rotate(v3, 16) ^ v2
    v0 += v3
    v3 = _rotate(v3, 21) ^ v0
    v2 += v1
    v1 = _rotate(v1, 17) ^ v2
    v2 = _rotate(v2, 32)
    return v0, v1, v2, v3


@njit(cache=True, nogil=True, inline="always")  # type: ignore[untyped-decorator]
def _start(k0: Any, k1: Any) -> Any:
    return (
        k0 ^ np.uint64(0x736F6D6570736575),
        k1 ^ np.uint64(0x646F72616E646F6D),
        k0 ^ np.uint64(0x6C7967656E657261),
        k1 ^ np.uint64(0x7465646279746573),
    )


@njit(cache=True, nogil=True, inline="always")  # type: ignore[untyped-decorator]
def _absorb(v0: Any, v1: Any, v2: Any, v3: Any, word: Any) -> Any:
    v3 ^= word
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0 ^ word, v1, v2, v3


@njit(cache=True, nogil=True, inline="always")  # type: ignore[untyped-decorator]
def _finish(v0: Any, v1: Any, v2: Any, v3: Any) -> Any:
    v2 ^= np.uint64(0xFF)
    for _ in range(4):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0 ^ v1 ^ v2 ^ v3


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def hash_word(word: Any, k0: Any, k1: Any) -> Any:
    """SipHash-2-4 of the eight little-endian bytes of one word."""
    v0, v1, v2, v3 = _start(k0, k1)
    v0, v1, v2, v3 = _absorb(v0, v1, v2, v3, word)
    v0, v1, v2, v3 = _absorb(v0, v1, v2, v3, np.uint64(8) << np.uint64(56))
    return _finish(v0, v1, v2, v3)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def hash_bytes(text: Any, first: Any, last: Any, k0: Any, k1: Any) -> Any:
    """SipHash-2-4 of the bytes text[first:last]."""
    v0, v1, v2, v3 = _start(k0, k1)
    length = last - first
    whole = length - length % 8
    for block in range(first, first + whole, 8):
        word = np.uint64(0)
        for byte in range(8):
            word |= np.uint64(text[block + byte]) << np.uint64(8 * byte)
        v0, v1, v2, v3 = _absorb(v0, v1, v2, v3, word)
    word = np.uint64(length & 0xFF) << np.uint64(56)
    for byte in range(length - whole):
        word |= np.uint64(text[first + whole + byte]) << np.uint64(8 * byte)
    v0, v1, v2, v3 = _absorb(v0, v1, v2, v3, word)
    return _finish(v0, v1, v2, v3)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _hash_integers(ids: Any, k0: Any, k1: Any, out: Any) -> None:
    for r in range(ids.size):
        out[r] = hash_word(np.uint64(ids[r]), k0, k1)


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
    k0, k1 = hash_key(secret, purpose + "/integer")
    out = np.empty(len(ids), dtype=np.uint64)
    _hash_integers(ids, k0, k1, out)
    return out


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
