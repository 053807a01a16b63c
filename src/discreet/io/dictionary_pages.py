"""Columns of codes in Parquet files, decoded from their pages: a number for each record, and the texts once.

Columns of few different texts are stored as a dictionary of the texts and, for each record, its place in it. Arrow
decodes the places through builders of whole arrays, a context for decompressing each page and levels for each record,
which takes several times as long as unpacking them. This module unpacks them, from columns that are not nested and
whose every page has places; it judges that by the headers of the pages, and Arrow reads all other columns. What
Parquet defines: https://parquet.apache.org/docs/file-format/ (pages, RLE and bit-packed hybrid, compact Thrift).

Kernels have no bounds checks, and a damaged file may state anything: each number that it states is compared with what
there is before it is used, and what is allocated for it has a limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from discreet.lazy import njit

MOST_BYTES = 1 << 24  # of a column in a row group, compressed; Arrow reads larger ones piece by piece
MOST_CONTENT = 1 << 26  # bytes of the same, decompressed
MOST_VALUES = 1 << 20  # of a page, which is decoded for each batch that has some; texts of a dictionary
CODECS = {"UNCOMPRESSED": 0, "SNAPPY": 1, "ZSTD": 2}  # compressed pages that state the size of their content
ENCODINGS = {"PLAIN", "PLAIN_DICTIONARY", "RLE", "RLE_DICTIONARY"}
FEWEST = 16  # bytes of a page and its header

# of a page: where its body begins, its bytes, those decompressed, its values
BODY, STORED, SIZE, VALUES = range(4)
DATA_PAGE, DICTIONARY_PAGE = 0, 2  # kinds of pages
PLAIN, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY = 0, 2, 3, 8  # encodings
UNCOMPRESSED, SNAPPY, ZSTD = CODECS.values()
STOP, TRUE, FALSE, I16, I32, I64, BINARY, STRUCT = 0, 1, 2, 4, 5, 6, 8, 12  # types of Thrift

Bytes = NDArray[np.uint8]


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _number(data: Any, at: Any) -> Any:
    """An unsigned number of seven bits a byte, and where it ends; -1 where it does not."""
    found, shift = np.int64(0), 0
    while 0 <= at < data.size and shift < 63:
        byte = np.int64(data[at])
        at += 1
        found |= (byte & 127) << shift
        if byte < 128:
            return found, at
        shift += 7
    return 0, -1


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _field(data: Any, at: Any, before: Any) -> Any:
    """The next field of a struct: its number, its type and where its value begins; -1 after the last one."""
    if not 0 <= at < data.size:
        return 0, STOP, -1
    byte = np.int64(data[at])
    at += 1
    if byte == STOP:
        return 0, STOP, at
    if byte >> 4:
        return before + (byte >> 4), byte & 15, at
    number, at = _number(data, at)
    return (number >> 1) ^ -(number & 1), byte & 15, at


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _after(data: Any, at: Any, kind: Any) -> Any:
    """Where a value that is not a struct ends; -1 where it does not, or is of a type that headers do not have."""
    if kind in (TRUE, FALSE):
        return at
    if kind in (I16, I32, I64):
        return _number(data, at)[1]
    if kind == BINARY:
        length, at = _number(data, at)
        return at + length if at >= 0 and length <= data.size else -1
    return -1


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _after_struct(data: Any, at: Any) -> Any:
    """Where a struct ends, with those inside it."""
    depth = 1
    while depth:
        _, kind, at = _field(data, at, 0)
        if kind == STOP:
            depth -= 1
        elif kind == STRUCT:
            depth += 1
        else:
            at = _after(data, at, kind)
    return at


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _struct(data: Any, at: Any, wanted: Any) -> Any:
    """The numbers that are fields 1, 2 and 3 of a struct, where the struct ``wanted`` in it begins, and its end."""
    one, two, three, inside = -1, -1, -1, -1
    number, kind, at = _field(data, at, 0)
    while kind != STOP:
        if kind == I32:
            found, at = _number(data, at)
            found = (found >> 1) ^ -(found & 1)
            one = found if number == 1 else one
            two = found if number == 2 else two
            three = found if number == 3 else three
        else:
            inside = at if number == wanted and kind == STRUCT else inside
            at = _after_struct(data, at) if kind == STRUCT else _after(data, at, kind)
        number, kind, at = _field(data, at, number)
    return one, two, three, inside, at


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _page(data: Any, at: Any, is_first: Any) -> Any:
    """The header of a page: bytes stored, bytes decompressed, values, and where the body begins.

    The first page has the dictionary and all others have places in it; -1 where a page is another one.
    """
    kind, size, stored, described, at = _struct(data, at, 7 if is_first else 5)
    values, encoding, levels, _, _ = _struct(data, described, 0)
    if is_first:
        is_known = kind == DICTIONARY_PAGE and encoding in (PLAIN, PLAIN_DICTIONARY)
    else:
        is_known = kind == DATA_PAGE and encoding in (PLAIN_DICTIONARY, RLE_DICTIONARY) and levels == RLE
    is_possible = 0 <= stored <= data.size - at and 0 <= size <= MOST_CONTENT and 0 <= values <= MOST_VALUES
    return stored, size, values, at if is_known and is_possible else -1


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _list_pages(data: Any, pages: Any) -> int:
    """List the pages of a column in a row group; the number of pages, or -1 where one of them is of another kind."""
    at, listed = 0, 0
    while at < data.size:
        stored, size, values, at = _page(data, at, listed == 0)
        if at < 0 or listed == len(pages):
            return -1
        pages[listed, BODY], pages[listed, STORED] = at, stored
        pages[listed, SIZE], pages[listed, VALUES] = size, values
        at += stored
        listed += 1
    return listed


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _list_texts(data: Any, ends: Any, content: Any) -> int:
    """Separate the texts of a dictionary from their lengths; the number of their bytes, or -1."""
    at, end = np.int64(0), np.int64(0)
    for k in range(ends.size):
        if at + 4 > data.size:
            return -1
        length = np.int64(0)
        for byte in range(4):
            length |= np.int64(data[at + byte]) << (8 * byte)
        at += 4
        if at + length > data.size:
            return -1
        for byte in range(length):
            content[end + byte] = data[at + byte]
        at += length
        end += length
        ends[k] = end
    return int(end)


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _unpack(data: Any, at: Any, width: Any, out: Any) -> None:
    """Numbers of ``width`` bits that follow one another, the lowest bits first."""
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    whole = out.size // 8 if width <= 8 else 0  # eight numbers at a time, which begin with a byte
    for group in range(whole):
        word = np.uint64(0)
        for byte in range(width):
            word |= np.uint64(data[at + byte]) << np.uint64(8 * byte)
        for k in range(8):
            out[8 * group + k] = (word >> np.uint64(k * width)) & mask
        at += width
    word, bits = np.uint64(0), 0
    for k in range(8 * whole, out.size):
        while bits < width:
            word |= np.uint64(data[at]) << np.uint64(bits)
            at += 1
            bits += 8
        out[k] = word & mask
        word >>= np.uint64(width)
        bits -= width


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _are_below(numbers: Any, limit: Any) -> Any:
    largest = np.int64(-1)
    for k in range(numbers.size):
        largest = max(largest, np.int64(numbers[k]))
    return largest < limit


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _hybrid(data: Any, at: Any, end: Any, width: Any, limit: Any, out: Any) -> bool:
    """Fill ``out`` with numbers, stored as runs of one number and runs of packed ones; whether all are below a limit.

    ``out`` has room for numbers of ``width`` bits; that of a run has whole bytes, and is compared before it is put in.
    """
    k = 0
    while k < out.size:
        header, at = _number(data, at)
        count = min(header >> 1, out.size)  # a run may be longer than what there is room for
        if not 0 <= at <= end or count == 0:
            return False
        if header & 1:
            left = min(8 * count, out.size - k)
            if at + (left * width + 7) // 8 > end:  # some writers leave out the rest of the last eight
                return False
            packed = out[k : k + left]
            _unpack(data, at, width, packed)
            if not _are_below(packed, limit):
                return False
            at += count * width
        else:
            left, number, size = min(count, out.size - k), np.int64(0), (width + 7) // 8
            if at + size > end:
                return False
            for byte in range(size):
                number |= np.int64(data[at + byte]) << (8 * byte)
            if number >= limit:
                return False
            out[k : k + left] = number
            at += size
        k += left
    return True


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _levels(data: Any, at: Any, end: Any, levels: Any) -> Any:
    """Which records have a value: how many, and where the levels end; -1 where all have one, -2 where it is unsound."""
    if at + 4 > end:
        return -2, end
    length = np.int64(0)
    for byte in range(4):
        length |= np.int64(data[at + byte]) << (8 * byte)
    at += 4
    after = at + length
    if after > end:
        return -2, end
    header, begin = _number(data, at)
    if 0 <= begin < after and not header & 1 and header >> 1 >= levels.size and data[begin] == 1:
        return -1, after
    if not _hybrid(data, at, after, 1, 2, levels):
        return -2, end
    present = 0
    for k in range(levels.size):
        present += levels[k]
    return present, after


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _with_gaps(levels: Any, found: Any, first: Any, texts: Any, out: Any) -> Any:
    """Put the places of records that have a value among those that have none; the number of the latter."""
    used, gaps = 0, 0
    for r in range(first):
        used += levels[r]
    for r in range(out.size):
        if levels[first + r]:
            out[r] = found[used]
            used += 1
        else:
            out[r] = texts
            gaps += 1
    return gaps


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _decode_page(
    data: Any,
    at: Any,
    end: Any,
    count: Any,
    first: Any,
    is_nullable: Any,
    texts: Any,
    narrow: Any,
    levels: Any,
    spare: Any,
    out: Any,
) -> Any:
    """Fill ``out`` with the places of a page of ``count`` records from the ``first`` on; see ``_decode``."""
    present = -1
    if is_nullable:
        present, at = _levels(data, at, end, levels[:count])
    numbers = count if present < 0 else present
    width = np.int64(data[at]) if numbers and at < end else 0
    if present == -2 or width > 32 or (numbers and at >= end):
        return -1
    is_direct = present < 0 and out.size == count and width <= narrow
    if is_direct:
        return 0 if _hybrid(data, at + 1, end, width, texts, out) else -1
    found = spare[:numbers]
    if not _hybrid(data, at + 1, end, width, texts, found):
        return -1
    if present >= 0:
        return _with_gaps(levels, found, first, texts, out)
    for r in range(out.size):
        out[r] = found[first + r]
    return 0


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _decode(
    data: Any,
    starts: Any,
    sizes: Any,
    values: Any,
    skipped: Any,
    is_nullable: Any,
    texts: Any,
    narrow: Any,
    levels: Any,
    spare: Any,
    out: Any,
) -> int:
    """Fill ``out`` with the places of records, after the first ``skipped`` of the first page.

    A record without a value has the place ``texts``, which is their number. Numbers of up to ``narrow`` bits fit into
    ``out``; ``levels`` and ``spare`` have room for a page. The number of records without a value, or -1 where pages are
    unsound.
    """
    k, gaps = 0, 0
    for page in range(starts.size):
        first = skipped if page == 0 else 0
        at, end, count = starts[page], starts[page] + sizes[page], values[page]
        taken = min(count - first, out.size - k)
        place = out[k : k + taken]
        found = _decode_page(data, at, end, count, first, is_nullable, texts, narrow, levels, spare, place)
        if found < 0:
            return -1
        gaps += found
        k += taken
    return gaps if k == out.size else -1


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _stated_size(data: Any, at: Any, end: Any, codec: Any) -> Any:
    """The size that a compressed page states of its content; -1 where it does not."""
    if codec == SNAPPY:
        size, at = _number(data, at)
        return size if 0 <= at <= end else -1
    if (
        at + 6 > end
        or data[at] != 0x28
        or data[at + 1] != 0xB5
        or data[at + 2] != 0x2F
        or data[at + 3] != 0xFD
    ):
        return -1
    described = np.int64(data[at + 4])
    is_single = described >> 5 & 1  # without the size of a window
    length = (1 << (described >> 6)) if described >> 6 else is_single
    at += 6 - is_single + ((1 << (described & 3)) >> 1)  # after the number of a dictionary
    if length == 0 or at + length > end:
        return -1
    size = np.int64(256 if length == 2 else 0)
    for byte in range(length):
        size += np.int64(data[at + byte]) << (8 * byte)
    return size


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _are_of_stated_size(data: Any, pages: Any, codec: Any) -> bool:
    """Whether compressed pages state the size of their content, as their headers do.

    Zstandard and Snappy refuse contents of another size; Arrow does not report how much of it there was.
    """
    for page in range(len(pages)):
        at, stored = pages[page, BODY], pages[page, STORED]
        if _stated_size(data, at, at + stored, codec) != pages[page, SIZE]:
            return False
    return True


class DamagedPages(pa.ArrowInvalid):  # type: ignore[misc]
    """Pages have other contents than their headers state."""


@dataclass(frozen=True, eq=False, repr=False)
class CodedColumn:
    """A column of codes in one row group; confidential: it has the values of records."""

    chunk: Bytes  # its pages, as they are stored
    pages: NDArray[np.int64]  # page of places -> BODY, STORED, SIZE, VALUES
    ends: NDArray[np.int64]  # page -> the record after its last one
    texts: pa.Array
    codec: int
    is_nullable: bool

    def read(self, first: int, records: int) -> pa.DictionaryArray:
        """Some records of the row group, at least one."""
        if first + records > self.ends[-1]:
            raise DamagedPages("more records than stated")
        begin, end = np.searchsorted(self.ends, [first, first + records - 1], side="right")
        pages = self.pages[begin : end + 1]
        data, starts = _bodies(self.chunk, pages, self.codec)
        number = len(self.texts)
        is_small = number < 1 << 15
        places = np.empty(records, dtype=np.dtype("i2" if is_small else "i4"))
        most = int(pages[:, VALUES].max())
        skipped = first - int(self.ends[begin] - pages[0, VALUES])
        gaps = _decode(
            data,
            starts,
            pages[:, SIZE].copy(),
            pages[:, VALUES].copy(),
            skipped,
            self.is_nullable,
            number,
            15 if is_small else 31,
            np.empty(most if self.is_nullable else 0, dtype=np.uint8),
            np.empty(most, dtype=np.int64),
            places,
        )
        if gaps < 0:
            raise DamagedPages("damaged pages")
        missing = places == number if gaps else None
        if missing is not None:
            places[missing] = 0  # Arrow also looks at places that are masked
        found = pa.array(places, mask=missing)
        return pa.DictionaryArray.from_arrays(found, self.texts, safe=False)  # the places are judged


def coded_columns(
    file: BinaryIO, metadata: pq.FileMetaData, group: int, places: Mapping[str, int]
) -> dict[str, CodedColumn]:
    """Those of some columns of text of a row group that can be read here; ``places``: their numbers in the file."""
    found = {name: _coded_column(file, metadata, group, number) for name, number in places.items()}
    return {name: column for name, column in found.items() if column is not None}


def _coded_column(file: BinaryIO, metadata: pq.FileMetaData, group: int, number: int) -> CodedColumn | None:
    kind, stored = metadata.schema.column(number), metadata.row_group(group).column(number)
    start, size, records = stored.dictionary_page_offset, stored.total_compressed_size, stored.num_values
    is_flat = kind.max_repetition_level == 0 and kind.max_definition_level <= 1
    is_known = (
        is_flat
        and stored.physical_type == "BYTE_ARRAY"
        and stored.compression in CODECS
        and set(stored.encodings) <= ENCODINGS
    )
    if not is_known or not stored.has_dictionary_page or stored.file_path or not 0 < size <= MOST_BYTES:
        return None
    if (
        start is None
        or not 0 < start <= stored.data_page_offset
        or records != metadata.row_group(group).num_rows
    ):
        return None
    file.seek(start)
    chunk = np.frombuffer(file.read(size), dtype=np.uint8)
    pages = np.empty((len(chunk) // FEWEST + 2, 4), dtype=np.int64)
    listed = _list_pages(chunk, pages) if len(chunk) == size else -1
    if listed < 2:
        return None
    pages = pages[:listed].copy()
    ends = np.cumsum(pages[1:, VALUES])
    if ends[-1] != records or (pages[1:, VALUES] == 0).any() or pages[:, SIZE].sum() > MOST_CONTENT:
        return None
    codec = CODECS[stored.compression]
    if codec == UNCOMPRESSED:
        pages[:, SIZE] = pages[:, STORED]
    elif not _are_of_stated_size(chunk, pages, codec):
        return None
    data, starts = _bodies(chunk, pages[:1], codec)
    texts = _texts(data[starts[0] : starts[0] + pages[0, SIZE]], int(pages[0, VALUES]))
    return CodedColumn(chunk, pages[1:], ends, texts, codec, kind.max_definition_level == 1)


def _bodies(chunk: Bytes, pages: NDArray[np.int64], codec: int) -> tuple[Bytes, NDArray[np.int64]]:
    """The contents of pages, and where each begins."""
    if codec == UNCOMPRESSED:
        return chunk, pages[:, BODY].copy()
    stored = [chunk[at : at + size].data for at, size in pages[:, [BODY, STORED]].tolist()]
    sizes = pages[:, SIZE]
    if codec == ZSTD:
        content = _streamed(b"".join(stored), int(sizes.sum()))
    else:
        parts = zip(stored, sizes.tolist(), strict=True)
        content = b"".join(_snappy().decompress(pa.py_buffer(one), size) for one, size in parts)
    return np.frombuffer(content, dtype=np.uint8), np.cumsum(sizes) - sizes


@cache
def _snappy() -> pa.Codec:
    return pa.Codec("snappy")


def _streamed(frames: bytes, size: int) -> bytes:
    """The content of Zstandard frames, with one context for all of them."""
    with pa.input_stream(pa.py_buffer(frames), compression="zstd") as stream:
        content: bytes = stream.read(size)
        if len(content) != size or stream.read(1):
            raise DamagedPages("damaged pages")
    return content


def _texts(body: Bytes, number: int) -> pa.Array:
    """The texts of a dictionary."""
    ends, content = np.zeros(number + 1, dtype=np.int32), np.empty(len(body), dtype=np.uint8)
    size = _list_texts(body, ends[1:], content)
    if size < 0:
        raise DamagedPages("a damaged dictionary")
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(content[:size])]
    texts = pa.Array.from_buffers(pa.string(), number, buffers)
    texts.validate(full=True)
    return texts
