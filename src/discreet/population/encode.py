"""Encodes Arrow columns as codes, keys, flags and weights: the blocks of records that are counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.io.whole_numbers import whole_numbers
from discreet.lazy import lazily, njit
from discreet.maths.cells import keys

pc = lazily("pyarrow.compute")

WEIGHT_UNIT = 1_000_000  # weights are sums of millionths, so that their order cannot change a sum

Codes = NDArray[np.unsignedinteger[Any]]


@dataclass(frozen=True, eq=False, repr=False)
class EncodedRecords:
    """A block of records of one unit, ordered by their finest geography."""

    codes: Mapping[str, Codes]  # variable -> leaf index of each record
    keys: NDArray[np.uint32]
    flags: Mapping[str, NDArray[np.bool_]]  # column -> counted or not
    weights: Mapping[str, NDArray[np.uint64]]  # column -> weight in millionths

    def __len__(self) -> int:
        return len(self.keys)


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _is_ordered(codes: Any) -> bool:
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


def ordered(block: EncodedRecords, variable: str, categories: int) -> EncodedRecords:
    """Order a block by one variable with a counting sort; an ordered block is returned unchanged."""
    codes = block.codes[variable]
    if _is_ordered(codes):
        return block
    order = _counting_order(codes, categories)
    return EncodedRecords(
        {name: column[order] for name, column in block.codes.items()},
        block.keys[order],
        {name: column[order] for name, column in block.flags.items()},
        {name: column[order] for name, column in block.weights.items()},
    )


LARGEST_WEIGHT = 1_000_000


class BadColumn(Exception):
    """A column cannot be used; the text gives the reason and the remedy, without any record's id."""

    def __init__(self, value: str, remedy: str) -> None:
        self.value, self.remedy = value, remedy
        super().__init__(value)


def code_type(categories: int) -> type[np.unsignedinteger[Any]]:
    """The smallest unsigned type for this number of leaves."""
    return np.uint8 if categories <= 256 else np.uint16 if categories <= 65536 else np.uint32


def room(categories: Mapping[str, int], rows: int) -> dict[str, Codes]:
    """Allocate the code columns of some variables in one piece: small ones would stay with the thread that made them.

    The widest come first, so that each is aligned.
    """
    kinds = {name: np.dtype(code_type(size)) for name, size in categories.items()}
    whole = np.empty(rows * sum(kind.itemsize for kind in kinds.values()), dtype=np.uint8)
    columns, start = {}, 0
    for name in sorted(kinds, key=lambda name: -kinds[name].itemsize):
        end = start + rows * kinds[name].itemsize
        columns[name] = whole[start:end].view(kinds[name])
        start = end
    return columns


def hashed_ids(column: pa.Array, secret: bytes, purpose: str) -> NDArray[np.uint64]:
    """Hash ids (64-bit integers or text) to 64 bits under the secret; a blank text is none."""
    column = _plain(column)
    if is_text(column.type) and _has_blank(column):
        raise BadColumn("ids that are blank", "give each record its own id; a field without an id is empty")
    return hashed_values(column, secret, purpose)


def _has_blank(texts: pa.Array) -> bool:
    """Whether some text is empty or blank; only those that begin with a blank, or beyond ASCII, are trimmed."""
    texts = pc.cast(texts, pa.large_string()).drop_null()
    if not len(texts):
        return False
    _, offsets, content = texts.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    if (bounds[1:] == bounds[:-1]).any():
        return True
    first = np.frombuffer(content or b"", dtype=np.uint8)[bounds[:-1]]
    suspect = (first <= ord(" ")) | (first >= 0x80)
    if not suspect.any():
        return False
    return bool(pc.any(pc.equal(pc.utf8_trim_whitespace(texts.filter(pa.array(suspect))), "")).as_py())


def hashed_values(column: pa.Array, secret: bytes, purpose: str) -> NDArray[np.uint64]:
    """Hash values (64-bit integers or text) to 64 bits under the secret."""
    column = _plain(column)
    if column.null_count:
        raise BadColumn("some records have no id", "give every record its own id")
    if pa.types.is_uint64(column.type):
        column = pc.cast(column, pa.string())  # beyond the signed range an id is hashed as text
    if pa.types.is_integer(column.type):
        return keys.hash_integers(
            secret, purpose, column.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
        )
    if not is_text(column.type):
        raise BadColumn(f"ids of type {column.type}", "give ids as 64-bit integers or text")
    column = pc.cast(column, pa.large_string())
    _, offsets, text = column.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int64)[column.offset : column.offset + len(column) + 1]
    return keys.hash_texts(secret, purpose, np.frombuffer(text or b"", dtype=np.uint8), bounds)


def integers(column: pa.Array) -> NDArray[np.integer[Any]] | None:
    """A column of whole numbers without gaps; None if it is another one."""
    column = bare(column)
    is_whole = pa.types.is_integer(column.type) and not column.null_count
    return column.to_numpy(zero_copy_only=False) if is_whole else None


def given_keys(column: pa.Array) -> NDArray[np.uint32]:
    """An office's own record keys: whole numbers from 0 to 2^32 - 1."""
    column = _plain(column)
    if is_text(column.type):
        try:
            column = whole_numbers(column)
        except pa.ArrowInvalid:
            raise BadColumn("text among the record keys", "give integers from 0 to 4294967295") from None
    if column.null_count or not pa.types.is_integer(column.type):
        raise BadColumn("record keys that are not all whole numbers", "give integers from 0 to 4294967295")
    given = column.to_numpy(zero_copy_only=False)
    if len(given) and (given.min() < 0 or int(given.max()) > 0xFFFFFFFF):
        raise BadColumn("record keys out of range", "give integers from 0 to 4294967295")
    keys_given: NDArray[np.uint32] = given.astype(np.uint32)
    return keys_given


def flags(column: pa.Array, decimal: str = ".") -> NDArray[np.bool_]:
    """A counted column: every value is 0 or 1 (or false, true)."""
    numbers = numbers_of(column, "a counted column", decimal)
    if not np.isin(numbers, (0, 1)).all():
        raise BadColumn("values other than 0 and 1 in a counted column", "recode it to 0 and 1")
    return numbers.astype(bool)


def weights(column: pa.Array, largest: Fraction | None = None, decimal: str = ".") -> NDArray[np.uint64]:
    """Survey weights in whole millionths: exact sums, whatever the order of the records.

    A weight above the declared largest one is refused: a guarantee rests on it.
    """
    numbers = numbers_of(column, "a column of weights", decimal).astype(np.float64)
    if not (np.isfinite(numbers).all() and (numbers >= 0).all() and (numbers <= LARGEST_WEIGHT).all()):
        raise BadColumn(
            "weights that are negative, infinite or huge", f"give weights from 0 to {LARGEST_WEIGHT}"
        )
    millionths = np.rint(numbers * WEIGHT_UNIT).astype(np.uint64)
    if largest is not None and len(millionths) and int(millionths.max()) > largest * WEIGHT_UNIT:
        raise BadColumn(
            "weights above noise.largest_weight",
            "declare the largest weight that is possible, or trim the weights",
        )
    return millionths


def numbers_of(column: pa.Array, what: str, decimal: str = ".") -> NDArray[Any]:
    """A column of numbers without gaps; ``decimal`` is the decimal mark of numbers in text."""
    column = _plain(column)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    if is_text(column.type) or pa.types.is_decimal(column.type):
        if is_text(column.type):
            column = pc.utf8_trim_whitespace(column.cast(pa.large_string()))
            if decimal != "." and pc.any(pc.match_substring(column, ".")).as_py():
                raise BadColumn(f"decimal points in {what}", "write all numbers with decimal commas")
            column = pc.replace_substring(column, decimal, ".")
        try:
            column = pc.cast(column, pa.float64())
        except pa.ArrowInvalid:
            raise BadColumn(f"text in {what}", "give numbers") from None
    if column.null_count or not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise BadColumn(f"missing or non-numeric values in {what}", "give a number for every record")
    numbers: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return numbers


def _plain(column: pa.Array) -> pa.Array:
    """The values without dictionaries and extension types."""
    column = bare(column)
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def bare(column: pa.Array) -> pa.Array:
    """The array without the extension types that databases use where Arrow has no type."""
    return column.storage if isinstance(column, pa.ExtensionArray) else column


def is_text(kind: pa.DataType) -> bool:
    """Whether values are text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
