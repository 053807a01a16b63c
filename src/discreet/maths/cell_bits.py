"""128 uniform-looking bits for each cell, which the secret and the cell's description alone determine.

It owns the keyed function; how a cell is described in 128 bits is its caller's, what the bits draw exact_draws'.
"""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from discreet.maths.keys import derive

BLOCK_BYTES = 16
PART_BYTES = 2**30  # the library takes less than 2^31 bytes at a time

Words = NDArray[np.uint64]


def cell_bits(secret: bytes, purpose: str, codes: Words) -> Words:
    """Encrypt each 128-bit code (codes[n, 2]: upper and lower half) by AES-256 under a key for this purpose.

    A block cipher on single blocks is a keyed permutation: different codes get different words, equal codes equal
    ones, and n of them are told from independent uniform words with an advantage of at most n^2 / 2^129. Different
    purposes (a release, a unit of count) have unrelated keys. The halves are little-endian words on every machine.
    """
    encryptor = Cipher(algorithms.AES(derive(secret, f"cell-bits/{purpose}")), modes.ECB()).encryptor()  # noqa: S305
    plain = np.ascontiguousarray(codes, dtype="<u8").view(np.uint8).reshape(-1)
    out = np.empty(
        len(plain) + BLOCK_BYTES - 1, dtype=np.uint8
    )  # the library asks for the room of one block more
    for start in range(0, len(plain), PART_BYTES):
        encryptor.update_into(plain.data[start : start + PART_BYTES], out.data[start:])
    return out[: len(plain)].view("<u8").astype(np.uint64, copy=False).reshape(codes.shape)
