"""The secret permutation of cell keys: a bijection of every modulus, which the secret decides."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from discreet.maths.cells.keys import hash_key, hash_word
from discreet.maths.cells.lookup import KEYS
from discreet.maths.cells.permutation import ROUNDS, no_permutation, permuted, secret_permutation

SECRET = bytes(range(7, 39))


def undone(keys: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The inverse for 2^32 keys: the rounds backwards, their functions hashed again."""
    left, right = keys >> 16, keys & 0xFFFF
    for number in reversed(range(ROUNDS)):
        k0, k1 = hash_key(SECRET, f"cell-key-permutation/{number}")
        added = np.array([int(hash_word(np.uint64(half), k0, k1)) & 0xFFFF for half in left.tolist()])
        left, right = right ^ added.astype(np.uint32), left
    return ((left << 16) | right).astype(np.uint32)


@pytest.mark.parametrize("bits", [0, 1, 2, 3, 8, 12, 13, 16, 17])
def test_every_key_of_a_modulus_has_one_image_and_no_two_the_same(bits: int) -> None:
    keys = np.arange(1 << bits, dtype=np.uint32)
    found = permuted(secret_permutation(SECRET, 1 << bits), keys)
    assert sorted(found.tolist()) == keys.tolist()
    assert bits < 8 or (found != keys).mean() > 0.9


def test_the_permutation_of_all_keys_can_be_undone() -> None:
    keys = np.concatenate(
        [np.arange(500), np.random.default_rng(1).integers(0, KEYS, 2000), [KEYS - 1]]
    ).astype(np.uint32)
    assert (undone(permuted(secret_permutation(SECRET), keys)) == keys).all()


def test_keys_are_reduced_modulo_the_modulus_first() -> None:
    keys = np.random.default_rng(2).integers(0, KEYS, 1000, dtype=np.uint32)
    one = secret_permutation(SECRET, 4096)
    assert (permuted(one, keys) == permuted(one, keys % 4096)).all()
    assert (permuted(no_permutation(4096), keys) == keys % 4096).all()


def test_the_secret_decides() -> None:
    keys = np.arange(1000, dtype=np.uint32)
    assert (permuted(secret_permutation(SECRET), keys) == permuted(secret_permutation(SECRET), keys)).all()
    assert (permuted(secret_permutation(SECRET), keys) != permuted(secret_permutation(bytes(32)), keys)).all()


@pytest.mark.parametrize("step", [1, 1 << 16, 0x10001])
def test_neighbouring_keys_have_unrelated_images(step: int) -> None:
    """The differences of the images of equal differences are uniform, as of a random permutation."""
    keys = (np.arange(1 << 17, dtype=np.uint64) * 7919).astype(np.uint32)
    one = secret_permutation(SECRET)
    apart = permuted(one, keys + np.uint32(step)) - permuted(one, keys)
    for bits in (apart >> 26, apart & 63):
        assert stats.chisquare(np.bincount(bits, minlength=64)).pvalue > 1e-4
