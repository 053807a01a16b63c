"""Records in memory: data frames and Arrow tables of other libraries, read in batches and digested by their contents.

Columns are taken over through the Arrow C data interface without a copy, where the other library has them in Arrow's
layout; only batches of a bounded number of records are ever converted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from discreet.errors import Mistakes, mistake
from discreet.io.files import BATCH, Records
from discreet.programme.sources import MemorySource

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
    twice = next((column for column in table.column_names if table.column_names.count(column) > 1), None)
    if twice is not None:
        raise mistake(name, "", f"duplicate column {twice!r}", "give each column a different name")
    return table


def _taken(data: Any, name: str) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, Mapping):
        return pa.table(dict(data))
    if type(data).__module__.split(".")[0] == "pandas":
        return pa.Table.from_pandas(data, preserve_index=False)
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
        return batches(table.select(list(dict.fromkeys((*plain, *coded)))))

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


def digest_table(table: pa.Table, key: bytes) -> str:
    """BLAKE2b digest of a table's contents, keyed: of the columns by name, and of each value and gap in order.

    It does not depend on how the records are divided into chunks, on the order of the columns, on dictionaries, or on
    the width of integers, floats and text.
    """
    whole = hashlib.blake2b(digest_size=32, key=key)
    whole.update(table.num_rows.to_bytes(8, "little"))
    for name in sorted(table.column_names):
        whole.update(f"{len(name)}:{name}".encode())
        whole.update(_digest_column(table.select([name]), key))
    return whole.hexdigest()


def _digest_column(column: pa.Table, key: bytes) -> bytes:
    """The digests of kinds, gaps, lengths and values, each over the whole column, so that chunks leave no trace."""
    kind, gaps, lengths, values = (hashlib.blake2b(digest_size=32, key=key) for _ in range(4))
    first = True
    for batch in batches(column):
        name, valid, sizes, content = _canonical(batch.column(0))
        if first:
            kind.update(name.encode())
            first = False
        gaps.update(np.packbits(valid).tobytes())
        lengths.update(sizes)
        values.update(content)
    return b"".join(one.digest() for one in (kind, gaps, lengths, values))


def _canonical(column: pa.Array) -> tuple[str, NDArray[np.bool_], Any, Any]:
    """The kind of values, which are there, the lengths of texts, and the values as bytes; gaps are zeros."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    valid = np.asarray(column.is_valid())
    kind = column.type
    if pa.types.is_null(kind):
        return "null", valid, b"", b""
    if pa.types.is_boolean(kind):
        column, kind = column.cast(pa.uint8()), pa.uint8()
    if pa.types.is_integer(kind) and not pa.types.is_uint64(kind):
        return "integer", valid, b"", _numbers(column.cast(pa.int64()), 0)
    if pa.types.is_floating(kind):
        return "float", valid, b"", _numbers(column.cast(pa.float64()), 0.0)
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        column = _written(column)
    name = "text" if kind in (pa.string(), pa.large_string()) else str(kind)
    texts = (column if column.null_count == 0 else column.fill_null("")).cast(pa.large_string())
    _, offsets, content = texts.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    inside = np.frombuffer(content or b"", dtype=np.uint8)[int(bounds[0]) : int(bounds[-1])]
    return name, valid, np.diff(bounds).astype(np.uint32), np.ascontiguousarray(inside)


def _numbers(column: pa.Array, gap: float) -> NDArray[Any]:
    filled = column if column.null_count == 0 else column.fill_null(gap)
    return np.ascontiguousarray(filled.to_numpy(zero_copy_only=False))


def _written(column: pa.Array) -> pa.Array:
    """Dates, decimals and the like as text; what cannot be written has no use in a table."""
    try:
        return pc.cast(column, pa.large_string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return pa.array([repr(value) for value in column.to_pylist()], pa.large_string())
