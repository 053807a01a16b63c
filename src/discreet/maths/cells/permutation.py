"""A secret permutation of cell keys, between the sum of record keys and the p-table.

Sums of record keys add up: the key of a total is the sum of its parts' keys, so that the noises of the parts show
something of the noise of the total. A pseudo-random permutation of the sums, which only the secret determines,
leaves nothing of that: equal sums still have equal keys (the same people have the same noise), every key is still
equally likely (the law of the noise is exact), and sums of permuted keys mean nothing.

It is a Feistel network (Luby & Rackoff 1988) over the two halves of a key, whose round functions are tables filled by
SipHash-2-4 under keys of their own: six table lookups for a cell. Keys below a modulus that is not the square of a
power of two are permuted by walking the cycle of the next larger one (Black & Rogaway 2002).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import njit
from discreet.maths.cells.keys import hash_key, hash_words
from discreet.maths.cells.lookup import KEYS

ROUNDS = 6  # an even number


@dataclass(frozen=True, eq=False)
class KeyPermutation:
    """A permutation of the keys below a modulus, which is a power of two; without rounds it changes nothing."""

    modulus: int
    rounds: NDArray[np.uint16] = field(
        repr=False
    )  # [round, half of a key] -> what is added to the other half

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arguments of ``permute`` after the keys."""
        return self.rounds, np.uint32(_half(self.modulus)), np.uint32(self.modulus - 1)

    @property
    def is_plain(self) -> bool:
        """Whether keys are left as they are."""
        return len(self.rounds) == 0


def secret_permutation(secret: bytes, modulus: int = KEYS) -> KeyPermutation:
    """The permutation that the secret determines; it does not depend on the p-table."""
    halves = np.arange(1 << _half(modulus))
    rounds = np.empty((ROUNDS, len(halves)), dtype=np.uint16)
    for number in range(ROUNDS):
        hashes = hash_words(hash_key(secret, f"cell-key-permutation/{number}"), halves)
        rounds[number] = hashes & np.uint64(len(halves) - 1)
    rounds.setflags(write=False)
    return KeyPermutation(modulus, rounds)


def no_permutation(modulus: int = KEYS) -> KeyPermutation:
    """Plain sums, as other software has them."""
    return KeyPermutation(modulus, np.empty((0, 1), dtype=np.uint16))


def _half(modulus: int) -> int:
    """Bits of one half of a key, rounded up."""
    return modulus.bit_length() // 2


@njit(inline="always")  # type: ignore[untyped-decorator]
def _twice(word: Any, even: Any, odd: Any, half: Any, low: Any) -> Any:
    """Two rounds: (left, right) -> (left', right ^ odd[left']) with left' = left ^ even[right]."""
    right = word & low
    left = (word >> half) ^ np.uint32(even[right])
    return (left << half) | (right ^ np.uint32(odd[left]))


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def permute(keys: Any, rounds: Any, half: Any, last: Any) -> None:
    """Permute keys in place: (uint32 keys, *permutation.arrays), for use inside other kernels.

    All keys pass two rounds before any passes the next ones: their two tables stay in a cache, and a processor overlaps
    lookups that no branch separates.
    """
    for k in range(keys.size):
        keys[k] &= last
    if rounds.shape[0] == 0:
        return
    low = np.uint32(rounds.shape[1] - 1)
    for number in range(0, ROUNDS, 2):
        even, odd = rounds[number], rounds[number + 1]
        for k in range(keys.size):
            keys[k] = _twice(keys[k], even, odd, half, low)
    for k in range(keys.size):
        while keys[k] > last:
            for number in range(0, ROUNDS, 2):
                keys[k] = _twice(keys[k], rounds[number], rounds[number + 1], half, low)


def permuted(permutation: KeyPermutation, keys: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Permute some keys."""
    out = np.array(keys, dtype=np.uint32)
    permute(out, *permutation.arrays)
    return out
