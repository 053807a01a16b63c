"""Reading Parquet (file, folder, glob) and CSV files as records, and digesting them; no databases."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from discreet.engine.records import BATCH, Records
from discreet.errors import mistake
from discreet.schema.sources import FileFormat, FileSource

_CSV_BLOCK = 64 << 20
_DIGEST_BLOCK = 1 << 22


def open_files(source: FileSource, key: str) -> Records:
    """Open the files of a source, all of one form."""
    paths = source.paths()
    if not paths:
        raise mistake(source.given, key, "the files are gone", "put them back")
    return _open_csv(paths, key) if source.format is FileFormat.CSV else _open_parquet(paths, key)


def digest_files(paths: Sequence[Path], key: bytes) -> str:
    """Digest the contents of files, in order: BLAKE2b keyed by ``key``."""
    digest = hashlib.blake2b(digest_size=32, key=key)
    for path in paths:
        digest.update(path.stat().st_size.to_bytes(8, "little"))
        with path.open("rb") as file:
            while block := file.read(_DIGEST_BLOCK):
                digest.update(block)
    return digest.hexdigest()


def _open_parquet(paths: Sequence[Path], key: str) -> Records:
    schema = _parquet_schema(paths[0], key)
    for path in paths[1:]:
        other = _parquet_schema(path, key)
        if other.names != schema.names:
            raise mistake(
                path, key, f"its columns differ from those of {paths[0].name}", "give files of one form"
            )

    def read(plain: Sequence[str], coded: Sequence[str]) -> Iterator[pa.RecordBatch]:
        texts = [name for name in coded if _is_text(schema.field(name).type)]
        return chain.from_iterable(_read_parquet(path, [*plain, *coded], texts, key) for path in paths)

    return Records(_name_of(paths), schema, read)


def _parquet_schema(path: Path, key: str) -> pa.Schema:
    try:
        return pq.read_schema(path)
    except (pa.ArrowInvalid, OSError):
        raise mistake(path, key, "not a Parquet file", "give Parquet, or CSV with the ending .csv") from None


def _read_parquet(path: Path, columns: list[str], texts: list[str], key: str) -> Iterator[pa.RecordBatch]:
    try:
        with pq.ParquetFile(path, read_dictionary=texts) as file:
            yield from file.iter_batches(batch_size=BATCH, columns=columns)
    except (pa.ArrowInvalid, OSError):
        raise mistake(path, key, "a damaged Parquet file", "write the file again") from None


def _open_csv(paths: Sequence[Path], key: str) -> Records:
    names = _csv_names(paths[0], key)
    for path in paths[1:]:
        if _csv_names(path, key) != names:
            raise mistake(
                path, key, f"its columns differ from those of {paths[0].name}", "give files of one form"
            )

    def read(plain: Sequence[str], coded: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return chain.from_iterable(_read_csv(path, plain, coded, key) for path in paths)

    return Records(_name_of(paths), pa.schema([(name, pa.string()) for name in names]), read)


def _csv_names(path: Path, key: str) -> list[str]:
    try:
        with pa_csv.open_csv(path) as reader:
            names: list[str] = reader.schema.names
    except (pa.ArrowInvalid, OSError):
        raise mistake(
            path, key, "not a CSV file in UTF-8 with a header", "write it again in that form"
        ) from None
    for name in names:
        if names.count(name) > 1:
            raise mistake(path, key, f"the column {name!r} stands twice", "give each column its own name")
    return names


def _read_csv(path: Path, plain: Sequence[str], coded: Sequence[str], key: str) -> Iterator[pa.RecordBatch]:
    types = {name: pa.string() for name in plain} | {
        name: pa.dictionary(pa.int32(), pa.string()) for name in coded
    }
    convert = pa_csv.ConvertOptions(
        column_types=types, include_columns=[*plain, *coded], strings_can_be_null=True, null_values=[""]
    )
    try:
        with pa_csv.open_csv(
            path, pa_csv.ReadOptions(block_size=_CSV_BLOCK), convert_options=convert
        ) as reader:
            yield from reader
    except (pa.ArrowInvalid, OSError):
        raise mistake(
            path, key, "a line with too many or too few fields", "check quotes and separators (commas)"
        ) from None


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _name_of(paths: Sequence[Path]) -> str:
    return str(paths[0]) if len(paths) == 1 else f"{paths[0].parent} ({len(paths)} files)"
