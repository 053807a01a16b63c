"""Whole numbers in text: decimal digits only, whereas Arrow reads 0x1F as 31."""

from __future__ import annotations

import pyarrow as pa

from discreet.lazy import lazily

pc = lazily("pyarrow.compute")


def whole_numbers(texts: pa.Array) -> pa.Array:
    """Texts as 64-bit integers; ArrowInvalid where one is no whole number in decimal digits."""
    numbers = pc.cast(texts, pa.int64())
    if pc.any(pc.match_substring_regex(texts, "[xX]")).as_py():
        raise pa.ArrowInvalid("a number in hexadecimal digits")
    return numbers
