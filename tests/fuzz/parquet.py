"""Parquet files damaged in depth: the end of the file, headers and bodies of pages, in the forms of several writers.

A file is taken apart into its pages and the tree of its end, one or two of these are changed, and it is put together
again; mostly with the places and sizes that the changed pages have, so that readers get as far as the change. Bodies
are changed inside their compression.
"""

import io
import random
import tempfile
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from tests.fuzz.damage import damaged
from tests.fuzz.thrift import BINARY, LIST, Field, Struct, change, field_of, read_struct, write_struct

MARK = b"PAR1"
CODECS = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}  # numbers of the format
ROW_GROUPS, COLUMNS, COLUMN, NUM_ROWS = 4, 1, 3, 3  # fields of the end, of a row group and of a column in one
CODEC, COLUMN_SIZE, FIRST_PAGE, DICTIONARY = 4, 7, 9, 11  # fields of the description of such a column
KIND, SIZE, STORED, OF_DATA, OF_DICTIONARY, OF_DATA_2 = 1, 2, 3, 5, 7, 8  # fields of a header
MOST = 1 << 20  # bytes of a body that is decompressed


@dataclass
class Page:
    """A header and its body, as stored."""

    header: Struct
    body: bytes


@dataclass
class Chunk:
    """The pages of a column in a row group, and its description in the end of the file."""

    pages: list[Page]
    about: Struct
    has_dictionary: bool


@dataclass
class Parts:
    """A file that is taken apart."""

    end: Struct
    chunks: list[Chunk]


def taken_apart(content: bytes) -> Parts:
    """The end of a sound file, and its pages."""
    size = int.from_bytes(content[-8:-4], "little")
    end, _ = read_struct(content, len(content) - 8 - size)
    chunks = []
    for group in _elements(end, ROW_GROUPS):
        for column in _elements(group, COLUMNS):
            about = _value(column, COLUMN)
            places = [_value(about, number) for number in (FIRST_PAGE, DICTIONARY) if field_of(about, number)]
            at, pages = min(place for place in places if place > 0), []
            last = at + _value(about, COLUMN_SIZE)
            while at < last:
                header, begin = read_struct(content, at)
                at = begin + _value(header, STORED)
                pages.append(Page(header, content[begin:at]))
            chunks.append(Chunk(pages, about, _value(pages[0].header, KIND) == 2))
    return Parts(end, chunks)


def put_together(parts: Parts, *, places: bool) -> bytes:
    """The file; ``places``: columns are described where they are now, otherwise where they were."""
    out = bytearray(MARK)
    for chunk in parts.chunks:
        begin = len(out)
        starts = []
        for page in chunk.pages:
            starts.append(len(out))
            out += write_struct(page.header) + page.body
        if places:
            first = starts[1] if chunk.has_dictionary and len(starts) > 1 else begin
            now = {COLUMN_SIZE: len(out) - begin, FIRST_PAGE: first, DICTIONARY: begin}
            for number, value in now.items():
                if (field := field_of(chunk.about, number)) and field.kind == 6:
                    field.value = value
    end = write_struct(parts.end)
    return bytes(out) + end + len(end).to_bytes(4, "little") + MARK


def _value(struct: Struct, number: int) -> Any:
    field = field_of(struct, number)
    assert field is not None
    return field.value


def _elements(struct: Struct, number: int) -> list[Struct]:
    found: list[Struct] = _value(struct, number)[1]
    return found


def _change_end(parts: Parts, dice: random.Random) -> str:
    """A field anywhere in the end of the file: of its schema, row groups, columns, statistics and metadata."""
    if (
        dice.random() < 0.5
    ):  # what Arrow keeps of its own schema is most of it by number of bytes, not of fields
        return f"end {change(parts.end, dice)}"
    return f"column {change(dice.choice(parts.chunks).about, dice)}"


def _change_schema(parts: Parts, dice: random.Random) -> str:
    """An element of the schema: its type, name, repetition, children."""
    return f"schema {change(dice.choice(_elements(parts.end, 2)), dice)}"


def _change_header(parts: Parts, dice: random.Random) -> str:
    page = dice.choice(dice.choice(parts.chunks).pages)
    return f"header {change(page.header, dice)}"


def _change_body(parts: Parts, dice: random.Random) -> str:
    """The content of a page: levels, widths, runs, lengths and texts; compressed again as it was."""
    chunk = dice.choice(parts.chunks)
    page = dice.choice(chunk.pages)
    field = field_of(chunk.about, CODEC)
    codec = CODECS.get(field.value) if field and field.kind == 5 else None
    size = field_of(page.header, SIZE)
    packed = (
        codec is not None and field_of(page.header, OF_DATA_2) is None
    )  # levels of version 2 are not compressed
    if not packed or size is None or dice.random() < 0.2:
        page.body = _changed_bytes(page.body, dice)
    else:
        try:
            content = pa.Codec(codec).decompress(page.body, min(int(size.value), MOST)).to_pybytes()
        except (
            pa.ArrowException,
            OSError,
            TypeError,
            ValueError,
            OverflowError,
            MemoryError,
        ):  # damaged before
            content = page.body
        content = _changed_bytes(content, dice)
        page.body = pa.Codec(codec).compress(content).to_pybytes()
        if dice.random() < 0.9:
            size.value = len(content)
    if (stored := field_of(page.header, STORED)) and dice.random() < 0.9:
        stored.value = len(page.body)
    if not packed and size is not None and codec is None:
        size.value = len(page.body)
    return "body"


def _changed_bytes(content: bytes, dice: random.Random) -> bytes:
    """Mostly the first bytes, which have lengths, widths and the first run."""
    if not content or dice.random() < 0.1:
        return dice.choice((b"", b"\x00", b"\xff" * 20, content * 2))
    if dice.random() < 0.2:
        return damaged(content, dice)
    at = (
        min(int(dice.expovariate(0.2)), len(content) - 1)
        if dice.random() < 0.7
        else dice.randrange(len(content))
    )
    value = dice.choice((0, 1, 127, 128, 255, content[at] ^ 1 << dice.randrange(8), dice.randrange(256)))
    many = dice.choice((1, 1, 1, 2, 4, 8))
    return content[:at] + bytes([value]) * many + content[at + many :]


def _change_pages(parts: Parts, dice: random.Random) -> str:
    """Pages that are left out, repeated, empty, of another kind, in another order, or of another column."""
    chunk = dice.choice(parts.chunks)
    at = dice.randrange(len(chunk.pages))
    page, note = chunk.pages[at], f"page {at}"
    match dice.randrange(6):
        case 0 if len(chunk.pages) > 1:
            del chunk.pages[at]
            return f"{note} left out"
        case 1:
            chunk.pages[at:at] = [deepcopy(page)] * dice.choice((1, 1, 5))
            return f"{note} repeated"
        case 2:
            chunk.pages[at : at + dice.randrange(2)] = [_emptied(page, dice)]
            return f"{note} empty"
        case 3 if field := field_of(page.header, KIND):
            field.value = dice.choice((0, 1, 2, 3, 4, 7, -1, 100))
            return f"{note} of another kind"
        case 4:
            chunk.pages.reverse()
            return "pages the other way round"
    chunk.pages[at] = deepcopy(dice.choice(dice.choice(parts.chunks).pages))
    return f"{note} of another column"


def _emptied(page: Page, dice: random.Random) -> Page:
    """A page without values, with or without its body."""
    empty = Page(deepcopy(page.header), b"" if dice.random() < 0.5 else page.body)
    for number in (OF_DATA, OF_DATA_2, OF_DICTIONARY):
        if field := field_of(empty.header, number):
            _zero(field.value, 1)
    if not empty.body:
        _zero(empty.header, SIZE)
        _zero(empty.header, STORED)
    return empty


def _change_groups(parts: Parts, dice: random.Random) -> str:
    """Row groups that are left out, repeated, cut, without records, or of another number of records."""
    groups = _elements(parts.end, ROW_GROUPS)
    if not groups:
        return "no row groups"
    at = dice.randrange(len(groups))
    group = groups[at]
    match dice.randrange(6):
        case 0:
            del groups[at]
            return f"row group {at} left out"
        case 1:
            groups[at:at] = [group] * dice.choice((1, 1, 3, 200))
            return f"row group {at} repeated"
        case 2:
            columns = _elements(group, COLUMNS)
            del columns[dice.randrange(len(columns)) :]
            return f"row group {at} cut"
        case 3:
            empty = deepcopy(group)
            _zero(empty, NUM_ROWS)
            for column in _elements(empty, COLUMNS):
                _zero(_value(column, COLUMN), 5)
            groups.insert(at, empty)
            return f"row group {at} empty before"
        case 4:
            columns = _elements(group, COLUMNS)
            dice.shuffle(columns)
            return f"row group {at} in another order"
        case _:
            return f"row group {at}: {change(group, dice)}"


def _zero(struct: Struct, number: int) -> None:
    if field := field_of(struct, number):
        field.value = 0


def _change_metadata(parts: Parts, dice: random.Random) -> str:
    """The schema that Arrow keeps among the metadata of its files, a message of its own."""
    found = field_of(parts.end, 5)
    if found is None or found.kind != LIST or not isinstance(found.value[1], list):
        return _change_end(parts, dice)
    for pair in found.value[1]:
        for field in pair if isinstance(pair, list) else ():
            if isinstance(field, Field) and field.kind == BINARY and len(field.value) > 40:
                at = dice.randrange(len(field.value))
                letter = dice.choice(b"ABCDEFabcdef0123456789+/=")
                field.value = field.value[:at] + bytes([letter]) + field.value[at + 1 :]
    return "metadata"


CHANGES: tuple[tuple[int, Callable[[Parts, random.Random], str]], ...] = (
    (6, _change_end),
    (2, _change_schema),
    (5, _change_header),
    (7, _change_body),
    (3, _change_pages),
    (3, _change_groups),
    (1, _change_metadata),
)


def damaged_in_depth(sound: bytes, dice: random.Random) -> tuple[bytes, str]:
    """A Parquet file, written in one of several ways, with one to three changes; and which."""
    forms = written(sound)
    form, content = dice.choice(forms) if dice.random() < 0.8 else forms[0]
    if dice.random() < 0.08:
        return damaged(content, dice), f"{form}: bytes"
    parts, notes = taken_apart(content), [form]
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        (kind,) = dice.choices([kind for _, kind in CHANGES], [often for often, _ in CHANGES])
        try:
            notes.append(kind(parts, dice))
        except (AssertionError, TypeError, ValueError, IndexError, AttributeError):  # damaged before
            notes.append("impossible")
    try:
        whole = put_together(parts, places=dice.random() < 0.85)
    except (TypeError, ValueError, AttributeError, OverflowError):
        return damaged(content, dice), f"{form}: bytes"
    if dice.random() < 0.03:  # a wrong size of the end
        size = dice.choice((0, 1, len(whole), 2**31, 2**32 - 1))
        whole = whole[:-8] + size.to_bytes(4, "little") + whole[-4:]
    return whole, "; ".join(notes)


@cache
def written(sound: bytes) -> tuple[tuple[str, bytes], ...]:
    """A sound file as several programs write it; the first is the file itself."""
    table = pq.read_table(io.BytesIO(sound))
    forms = [("as it is", sound)]
    for compression in ("none", "snappy", "gzip", "zstd", "brotli", "lz4"):
        for version in ("1.0", "2.0"):
            ways = {"compression": compression, "data_page_version": version}
            forms.append((f"Arrow {compression} {version}", _by_arrow(table, **ways)))
    texts = [field.name for field in table.schema if pa.types.is_string(field.type)]
    numbers = [field.name for field in table.schema if pa.types.is_integer(field.type)]
    floats = [field.name for field in table.schema if pa.types.is_floating(field.type)]
    for name, encodings in (
        ("plain", {}),
        (
            "differences",
            dict.fromkeys(texts, "DELTA_BYTE_ARRAY") | dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
        ),
        (
            "lengths",
            dict.fromkeys(texts, "DELTA_LENGTH_BYTE_ARRAY")
            | dict.fromkeys((*numbers, *floats), "BYTE_STREAM_SPLIT"),
        ),
    ):
        for version in ("1.0", "2.0"):
            written_so = _by_arrow(
                table, use_dictionary=False, column_encoding=encodings or None, data_page_version=version
            )
            forms.append((f"{name} {version}", written_so))
    small = {"data_page_size": 20, "write_batch_size": 9}
    half = [name for k, name in enumerate(table.column_names) if k % 2]
    required = pa.schema([field.with_nullable(False) for field in table.schema])
    gaps = table.set_column(
        0, table.column_names[0], pa.array([None, *table.column(0).to_pylist()[1:]], table.schema[0].type)
    )
    forms += [
        ("small pages", _by_arrow(table, **small)),
        ("small pages of version 2", _by_arrow(table, **small, data_page_version="2.0", compression="zstd")),
        ("row groups of 7", _by_arrow(table, row_group_size=7)),
        ("a full dictionary", _by_arrow(table, **small, dictionary_pagesize_limit=8, compression="none")),
        ("half with dictionaries", _by_arrow(table, use_dictionary=half)),
        ("numbers as text", _by_arrow(_as_text(table), use_dictionary=half)),
        ("required", _by_arrow(table.cast(required), compression="none")),
        ("gaps", _by_arrow(gaps, compression="none")),
        ("checksums and indices", _by_arrow(table, write_page_checksum=True, write_page_index=True)),
        ("without a schema of Arrow", _by_arrow(table, store_schema=False, version="1.0")),
        ("an empty row group", _with_empty_group(table)),
        ("no records", _by_arrow(table.slice(0, 0))),
        *_by_others(table),
    ]
    return tuple(forms)


def _by_arrow(table: pa.Table, **ways: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **ways)
    return out.getvalue()


def _as_text(table: pa.Table) -> pa.Table:
    """Whole numbers, as ids are, written as text."""
    for at, field in enumerate(table.schema):
        if pa.types.is_integer(field.type):
            table = table.set_column(at, field.name, table.column(at).cast(pa.string()))
    return table


def _with_empty_group(table: pa.Table) -> bytes:
    out = io.BytesIO()
    with pq.ParquetWriter(out, table.schema) as writer:
        for some in (table.slice(0, 0), table, table.slice(0, 0)):
            writer.write_table(some)
    return out.getvalue()


def _by_others(table: pa.Table) -> list[tuple[str, bytes]]:
    """As Polars and DuckDB write it."""
    forms = []
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as database:
        path = Path(folder, "a.parquet")
        for compression in ("zstd", "snappy", "gzip"):
            frame.write_parquet(path, compression=compression)
            forms.append((f"Polars {compression}", path.read_bytes()))
            path.unlink()
        database.register("given", table)
        for compression in ("zstd", "snappy", "uncompressed"):
            for version in ("v1", "v2"):
                database.execute(
                    f"COPY given TO '{path}' (FORMAT parquet, CODEC {compression}, PARQUET_VERSION {version})"
                )
                forms.append((f"DuckDB {compression} {version}", path.read_bytes()))
                path.unlink()
    return forms
