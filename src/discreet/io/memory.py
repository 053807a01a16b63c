"""Records in memory: data frames and Arrow tables of other libraries, read in batches and digested by their contents.

Columns are taken over through the Arrow C data interface without a copy, where the other library has them in Arrow's
layout; only batches of a bounded number of records are ever converted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.errors import Mistakes, mistake
from discreet.io.files import BATCH, Records, duplicate, repeated, require_sound
from discreet.lazy import lazily
from discreet.maths.cells.first_seen import NONE, first_seen, first_seen_texts
from discreet.programme.sources import MemorySource

pc = lazily("pyarrow.compute")

Part = tuple[bytes | memoryview, ...]  # digested one after the other, without a copy
_LOOK = 4096  # values that show whether a column has few distinct ones
_REMEDY = (
    "give a pandas or polars data frame, an Arrow table, a DuckDB relation, a path or a database address"
)


def arrow_table(data: Any, name: str) -> pa.Table:
    """Any table in memory as an Arrow table; messages never quote a value."""
    try:
        table = _taken(data, name)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        value = "a column with values of several types, or of a type without an Arrow one"
        raise mistake(name, "", value, "give each column one type: text, numbers or dates") from None
    if (twice := repeated(table.column_names)) is not None:
        raise mistake(name, "", duplicate(twice), "give each column a different name")
    return table


def _taken(data: Any, name: str) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, Mapping):
        return pa.table(dict(data))
    if type(data).__module__.split(".")[0] == "pandas" and hasattr(data, "columns"):
        return pa.Table.from_pandas(data, preserve_index=False)
    if type(data).__name__ == "Series":  # has the interface of Arrow, and is no table
        raise _unknown(data, name)
    if hasattr(data, "collect") and type(data).__module__.split(".")[0] == "polars":
        data = data.collect()
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return pa.table(data)
    if hasattr(data, "to_table"):  # a dataset of Arrow
        return data.to_table()
    raise _unknown(data, name)


def _unknown(data: object, name: str) -> Mistakes:
    return mistake(name, "", f"an object of type {type(data).__name__}", _REMEDY)


def open_memory(source: MemorySource) -> Records:
    """Open a table in memory."""
    table = source.table

    def read(plain: Sequence[str], coded: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for batch in batches(table.select(list(dict.fromkeys((*plain, *coded))))):
            try:
                require_sound(batch)
            except pa.ArrowException:
                value, remedy = (
                    "values beyond their dictionary, or texts that are not UTF-8",
                    "read its file again",
                )
                raise mistake(source.name, "", value, remedy) from None
            yield batch

    schema = pa.schema([pa.field(one.name, _plain_type(one.type)) for one in table.schema])
    return Records(source.name, schema, read)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of a column as ``_one_array`` gives it."""
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_run_end_encoded(kind):
        return kind.value_type
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _plain_type(kind.value_type), kind.ordered)
    return kind


def batches(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """The records in batches of the usual size; small chunks are joined, large ones are not copied."""
    for start in range(0, table.num_rows, BATCH):
        part = table.slice(start, BATCH)
        columns = [_one_array(column) for column in part.columns]
        yield pa.RecordBatch.from_arrays(columns, names=part.column_names)


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    """The values of a batch in one array, in a layout that every reader knows."""
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
        array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        if isinstance(array, pa.ChunkedArray):
            array = pa.concat_arrays(array.chunks)
        values = _plain_layout(array.dictionary)
        if values is array.dictionary:
            return array
        return pa.DictionaryArray.from_arrays(array.indices, values, ordered=array.type.ordered)
    if column.num_chunks == 1:
        return _plain_layout(column.chunk(0))
    return _plain_layout(pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type))


def _plain_layout(values: pa.Array) -> pa.Array:
    """Text in views (polars), and runs, in the layout of other libraries; anything else unchanged."""
    if pa.types.is_string_view(values.type):
        return pc.cast(values, pa.large_string())
    if pa.types.is_run_end_encoded(values.type):
        return pc.run_end_decode(values)
    return values


def encoded_texts(columns: Mapping[str, pa.ChunkedArray]) -> dict[str, pa.ChunkedArray]:
    """Columns of text with dictionaries: a code of two bytes for each record, or Arrow's where the texts are many."""
    with ThreadPoolExecutor() as pool:  # pieces of all columns side by side
        codes = {name: np.empty(len(column), dtype=np.int16) for name, column in columns.items()}
        numbered = {
            name: [
                (place, pool.submit(_number, piece, codes[name][place])) for place, piece in _pieces(column)
            ]
            for name, column in columns.items()
        }
        return {
            name: _with_dictionary([(place, one.result()) for place, one in pieces], codes[name])
            or columns[name].cast(_coded_type(columns[name].type)).dictionary_encode()
            for name, pieces in numbered.items()
        }


def _pieces(column: pa.ChunkedArray) -> Iterator[tuple[slice, pa.Array]]:
    """The values in arrays of at most a batch, and their places."""
    before = 0
    for chunk in column.chunks:
        for start in range(0, len(chunk), BATCH):
            piece = chunk.slice(start, BATCH)
            yield slice(before, before + len(piece)), piece
            before += len(piece)


def _number(texts: pa.Array, codes: NDArray[np.int16]) -> pa.Array | None:
    """Number texts by their first occurrence; return the distinct ones, or None where they are too many."""
    texts = texts.cast(_coded_type(texts.type))
    _, offsets, content = texts.buffers()
    kind = "int64" if pa.types.is_large_string(texts.type) else "int32"
    bounds: NDArray[np.int32 | np.int64] = np.frombuffer(offsets, dtype=kind)[
        texts.offset : texts.offset + len(texts) + 1
    ]
    present = np.asarray(texts.is_valid()) if texts.null_count else np.empty(0, dtype=bool)
    found = first_seen_texts(np.frombuffer(content or b"", dtype=np.uint8), bounds, present, codes)
    return None if found is None else texts.take(pa.array(found))


def _with_dictionary(
    pieces: Sequence[tuple[slice, pa.Array | None]], codes: NDArray[np.int16]
) -> pa.ChunkedArray | None:
    """The codes of all pieces in one dictionary; None where the texts are too many for codes of two bytes."""
    distinct = [texts for _, texts in pieces if texts is not None]
    if len(distinct) < len(pieces) or not pieces:
        return None
    merged = pa.concat_arrays(distinct).dictionary_encode()
    if len(merged.dictionary) > np.iinfo(np.int16).max:
        return None
    places = np.append(merged.indices.to_numpy(), NONE).astype(np.int16)  # a gap, -1, is the last
    before = 0
    for (place, _), texts in zip(pieces, distinct, strict=True):
        own = np.append(places[before : before + len(texts)], places[-1:])
        codes[place] = own[codes[place]]
        before += len(texts)
    indices = pa.array(codes, mask=codes < 0) if (codes < 0).any() else pa.array(codes)
    return pa.chunked_array([pa.DictionaryArray.from_arrays(indices, merged.dictionary)])


def _coded_type(kind: pa.DataType) -> pa.DataType:
    """The layout of text in a dictionary: that of views is known to few readers."""
    return pa.large_string() if pa.types.is_string_view(kind) else kind


def digest_table(table: pa.Table, key: bytes) -> str:
    """BLAKE2b digest of a table's contents, keyed: of the columns by name, and of each value and gap in order.

    It does not depend on how the records are divided into chunks, on the order of the columns, on dictionaries, or on
    the width of integers, floats and text.
    """
    whole = hashlib.blake2b(digest_size=32, key=key)
    whole.update(table.num_rows.to_bytes(8, "little"))
    names = sorted(table.column_names)
    with ThreadPoolExecutor() as pool:
        digests = pool.map(lambda name: _digest_column(table.select([name]), key), names)
        for name, digest in zip(names, digests, strict=True):
            whole.update(f"{len(name)}:{name}".encode())
            whole.update(digest)
    return whole.hexdigest()


def _digest_column(column: pa.Table, key: bytes) -> bytes:
    digest = hashlib.blake2b(digest_size=32, key=key)
    for batch in batches(column):  # always of the same records, whatever the chunks
        for part in _canonical(batch.column(0)):
            digest.update(sum(memoryview(piece).nbytes for piece in part).to_bytes(8, "little"))
            for piece in part:
                digest.update(piece)
    return digest.digest()


def _canonical(column: pa.Array) -> Iterator[Part]:
    """The values of a batch as bytes that follow from its content only: their kind, the gaps, and the values."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_boolean(kind) or (pa.types.is_integer(kind) and not pa.types.is_uint64(kind)):
        numbers = _decoded(column)
        yield (b"integer",)
        yield _gaps(numbers)
        filled = numbers.cast(pa.int8() if pa.types.is_boolean(kind) else kind).fill_null(0)
        yield _narrow(filled.to_numpy(zero_copy_only=False))
    elif pa.types.is_floating(kind):
        numbers = _decoded(column)
        yield (b"float",)
        yield _gaps(numbers)
        floats = numbers.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
        yield (np.ascontiguousarray(floats).data,)
    else:
        is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        yield (b"text" if is_text else str(kind).encode(),)
        yield from _texts(column if is_text else _written(_decoded(column)))


def _texts(column: pa.Array) -> Iterator[Part]:
    """Text with few distinct values as these, in the order in which they occur, and their places; else as it is."""
    if len(_encoded(column.slice(0, _LOOK))[1]) > _LOOK // 2:
        plain = _decoded(column)
        yield _gaps(plain)
        yield from _layout(plain.fill_null(""))
        return
    places, values = _encoded(column)
    yield from _layout(values)
    yield _narrow(places)


def _encoded(column: pa.Array) -> tuple[NDArray[Any], pa.Array]:
    """The place of each value among those that occur, in the order in which they do; -1 for a gap."""
    if not pa.types.is_dictionary(column.type):
        coded = column.dictionary_encode()
        return _without_gaps(coded.indices), coded.dictionary
    # a dictionary of another library may have other values, in any order
    places, used = first_seen(_without_gaps(column.indices), len(column.dictionary))
    values = column.dictionary.take(pa.array(used))
    if values.null_count or len(values.unique()) < len(values):
        return _encoded(_decoded(column))
    return places, values


def _without_gaps(places: pa.Array) -> NDArray[Any]:
    if places.null_count:
        places = places.cast(pa.int64()).fill_null(-1)
    found: NDArray[Any] = places.to_numpy(zero_copy_only=False)
    return found


def _layout(texts: pa.Array) -> Iterator[Part]:
    """The lengths of texts without gaps, and their bytes."""
    texts = texts.cast(pa.large_string())
    _, offsets, content = texts.buffers()
    bounds = np.frombuffer(offsets or bytes(8), dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    yield _narrow(np.diff(bounds))
    yield (memoryview(content or b"")[int(bounds[0]) : int(bounds[-1])],)


def _decoded(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _gaps(column: pa.Array) -> Part:
    return (np.packbits(np.asarray(column.is_valid())).data,) if column.null_count else (b"",)


def _narrow(numbers: NDArray[Any]) -> Part:
    """Whole numbers in the narrowest type that has room for all of them, after its name."""
    low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    kinds = (np.dtype(name) for name in ("int8", "int16", "int32"))
    kind = next(
        (one for one in kinds if np.iinfo(one).min <= low <= high <= np.iinfo(one).max), np.dtype("int64")
    )
    return kind.name.encode(), np.ascontiguousarray(numbers, dtype=kind).data


def _written(column: pa.Array) -> pa.Array:
    """Dates, decimals and the like as text; what cannot be written has no use in a table."""
    try:
        return pc.cast(column, pa.large_string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return pa.array([repr(value) for value in column.to_pylist()], pa.large_string())
