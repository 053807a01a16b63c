"""Records as streams of Arrow batches, read from Parquet (file, folder, glob) and CSV files; digests of files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from discreet.errors import Mistakes, mistake
from discreet.programme.sources import FileFormat, FileSource

BATCH = 1 << 20  # records per batch: large enough for order to pay, small enough to stream


@dataclass(frozen=True)
class Records:
    """An opened source: its name for messages, its schema, and a function that reads some of its columns."""

    name: str
    schema: pa.Schema
    read: Callable[[Sequence[str], Sequence[str]], Iterator[pa.RecordBatch]]
    decimal: str = "."  # the decimal mark of numbers in text

    def batches(self, plain: Sequence[str], coded: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Stream ``plain`` columns as they are and ``coded`` ones dictionary-encoded where that is cheaper."""
        return self.read(plain, coded)


_CSV_BLOCK = 64 << 20
_CSV_FORM = pa_csv.ParseOptions(newlines_in_values=True)
_BROKEN = (pa.ArrowException, OSError)
_DIGEST_BLOCK = 1 << 22


def open_files(source: FileSource, key: str) -> Records:
    """Open the files of a source, which all have the same columns."""
    paths = source.paths()
    if not paths:
        raise mistake(source.given, key, "the files no longer exist", "restore them")
    return _open_csv(paths, key) if source.format is FileFormat.CSV else _open_parquet(paths, key)


def digest_files(paths: Sequence[Path], key: bytes) -> str:
    """BLAKE2b digest of the contents of files, in order, keyed by ``key``."""
    digest = hashlib.blake2b(digest_size=32, key=key)
    for path in paths:
        try:
            digest.update(path.stat().st_size.to_bytes(8, "little"))
            with path.open("rb") as file:
                while block := file.read(_DIGEST_BLOCK):
                    digest.update(block)
        except OSError as error:
            raise _unreadable(path, "", error) from None
    return digest.hexdigest()


def _unreadable(path: Path, key: str, error: OSError) -> Mistakes:
    reason = (error.strerror or "a read error").lower()
    return mistake(
        path,
        key,
        f"cannot be read: {reason}",
        "check that the file exists and that you have permission to read it",
    )


def _open_parquet(paths: Sequence[Path], key: str) -> Records:
    schemas = [_parquet_schema(path, key) for path in paths]
    _require_one_form(paths, [schema.names for schema in schemas], key)

    def read(plain: Sequence[str], coded: Sequence[str]) -> Iterator[pa.RecordBatch]:
        wanted = list(dict.fromkeys((*plain, *coded)))
        return chain.from_iterable(
            _read_parquet(path, wanted, [name for name in coded if _is_text(schema.field(name).type)], key)
            for path, schema in zip(paths, schemas, strict=True)
        )

    return Records(_name_of(paths), schemas[0], read)


def _parquet_schema(path: Path, key: str) -> pa.Schema:
    _require_readable(path, key)
    try:
        return pq.read_schema(path)
    except _BROKEN:
        raise mistake(
            path, key, "not a Parquet file", "give a Parquet file, or a CSV file with the extension .csv"
        ) from None


def _require_readable(path: Path, key: str) -> None:
    try:
        path.open("rb").close()
    except OSError as error:
        raise _unreadable(path, key, error) from None


def _require_one_form(paths: Sequence[Path], names: Sequence[list[str]], key: str) -> None:
    """Refuse files with different column names, and duplicate column names."""
    for path, columns in zip(paths, names, strict=True):
        twice = next((name for name in columns if columns.count(name) > 1), None)
        if twice is not None:
            raise mistake(path, key, f"duplicate column {twice!r}", "give each column a different name")
        if set(columns) != set(names[0]):
            odd = min(set(columns) ^ set(names[0]))
            value = f"its columns differ from those of {paths[0].name}, for example in {odd!r}"
            raise mistake(path, key, value, "give files with the same columns")


def _read_parquet(path: Path, columns: list[str], texts: list[str], key: str) -> Iterator[pa.RecordBatch]:
    try:
        with pq.ParquetFile(path, read_dictionary=texts) as file:
            yield from file.iter_batches(batch_size=BATCH, columns=columns)
    except _BROKEN:
        raise mistake(path, key, "a damaged Parquet file", "write the file again") from None


def _open_csv(paths: Sequence[Path], key: str) -> Records:
    names = [_csv_names(path, key) for path in paths]
    _require_one_form(paths, names, key)

    def read(plain: Sequence[str], coded: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return chain.from_iterable(_read_csv(path, plain, coded, key) for path in paths)

    return Records(_name_of(paths), pa.schema([(name, pa.string()) for name in names[0]]), read)


def _csv_names(path: Path, key: str) -> list[str]:
    _require_readable(path, key)
    try:
        with pa_csv.open_csv(path, parse_options=_CSV_FORM) as reader:
            names: list[str] = reader.schema.names
    except _BROKEN:
        raise mistake(path, key, "not a CSV file in UTF-8 with a header", "save it in that format") from None
    if len(names) == 1 and any(mark in names[0] for mark in ";\t|"):
        raise mistake(path, key, "its fields are not separated by commas", "save it with commas")
    return names


def _read_csv(path: Path, plain: Sequence[str], coded: Sequence[str], key: str) -> Iterator[pa.RecordBatch]:
    text, codes = pa.string(), pa.dictionary(pa.int32(), pa.string())
    types = dict.fromkeys(coded, codes) | dict.fromkeys(plain, text)
    convert = pa_csv.ConvertOptions(
        column_types=types, include_columns=list(types), strings_can_be_null=True, null_values=[""]
    )
    block = pa_csv.ReadOptions(block_size=_CSV_BLOCK)
    try:
        with pa_csv.open_csv(path, block, _CSV_FORM, convert) as reader:
            yield from reader
    except _BROKEN:
        raise mistake(
            path,
            key,
            "a line with too many or too few fields, or text that is not UTF-8",
            "check quotes, separators (commas) and the encoding",
        ) from None


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _name_of(paths: Sequence[Path]) -> str:
    return str(paths[0]) if len(paths) == 1 else f"{paths[0].parent} ({len(paths)} files)"
