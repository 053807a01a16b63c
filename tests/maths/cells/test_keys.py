import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.maths.cells import keys

SECRET = bytes(range(32))
REFERENCE_KEY = np.frombuffer(bytes(range(16)), dtype="<u8")
# Aumasson & Bernstein (2012): SipHash-2-4 of the messages (empty), 00, 00 01, ... under the key 00 .. 0f
REFERENCE = {
    0: 0x726FDB47DD0E0E31,
    1: 0x74F839C593DC67FD,
    7: 0xAB0200F58B01D137,
    8: 0x93F5F5799A932462,
    15: 0xA129CA6149BE45E5,
    63: 0x958A324CEB064572,
}


@pytest.mark.parametrize(("length", "expected"), REFERENCE.items())
def test_siphash_reference_vectors(length: int, expected: int) -> None:
    message = np.arange(64, dtype=np.uint8)
    assert int(keys.hash_bytes(message, 0, length, *REFERENCE_KEY)) == expected


def test_one_word_hashes_as_its_eight_bytes() -> None:
    word = np.frombuffer(bytes(range(8)), dtype="<u8")[0]
    assert int(keys.hash_word(word, *REFERENCE_KEY)) == REFERENCE[8]


def hashed_texts(texts: list[str]) -> np.ndarray:
    encoded = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, encoded)])
    return keys.hash_texts(SECRET, "p", np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets)


@given(st.lists(st.integers(-(2**63) + 1, 2**63 - 1), min_size=1, max_size=20))
def test_integers_hash_alike_as_numbers_and_as_text(ids: list[int]) -> None:
    assert (hashed_texts([str(i) for i in ids]) == keys.hash_integers(SECRET, "p", np.array(ids))).all()


@pytest.mark.parametrize(
    "text", ["007", "-0", "+1", " 1", "1 ", "9223372036854775808", "1e3", "", "-", "AB12"]
)
def test_other_texts_hash_as_text(text: str) -> None:
    same = {text, "7", "0", "1", "1000"}
    assert len(set(hashed_texts(sorted(same)).tolist())) == len(same)


def test_purposes_and_secrets_give_unrelated_keys() -> None:
    ids = np.arange(1000)
    one = keys.record_keys(keys.hash_integers(SECRET, "record-key/persons", ids))
    other = keys.record_keys(keys.hash_integers(SECRET, "record-key/households", ids))
    third = keys.record_keys(keys.hash_integers(bytes(32), "record-key/persons", ids))
    assert (one != other).mean() > 0.99
    assert (one != third).mean() > 0.99


def test_keys_are_uniform() -> None:
    drawn = keys.record_keys(keys.hash_integers(SECRET, "u", np.arange(200_000)))
    seen = np.bincount(drawn >> 24, minlength=256)
    chi_square = ((seen - 200_000 / 256) ** 2 / (200_000 / 256)).sum()
    assert 150 < chi_square < 380  # 255 degrees of freedom: beyond 5 standard deviations otherwise


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        keys.derive(b"short", "p")


def test_keys_made_for_a_smaller_modulus_are_recognised() -> None:
    assert keys.improbably_small(255, 2, 2**32)  # 48 bits of surprise
    assert not keys.improbably_small(255, 1, 2**32)
    assert not keys.improbably_small(2**31, 10**9, 2**32)
    assert keys.improbably_small(2**31 - 1, 40, 2**32)
    assert not keys.improbably_small(2**31 - 1, 39, 2**32)
    assert keys.improbably_small(0, 5, 256)
    assert not keys.improbably_small(0, 0, 256)


def test_a_record_key_is_the_low_half_of_the_hash() -> None:
    hashes = np.array([REFERENCE[0], REFERENCE[63], 2**64 - 1, 2**32, 5], dtype=np.uint64)
    expected = [0xDD0E0E31, 0xEB064572, 2**32 - 1, 0, 5]
    assert keys.record_keys(hashes).tolist() == expected
