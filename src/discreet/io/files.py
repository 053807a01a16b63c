"""Records as streams of Arrow batches, read from Parquet (file, folder, glob) and CSV files; digests of files."""

from __future__ import annotations

import codecs
import hashlib
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby, pairwise
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from discreet.errors import Mistakes, mistake
from discreet.io.csv_form import LATIN, UTF8, CsvForm, csv_form, first_rows
from discreet.io.csv_parts import FileRange, record_starts
from discreet.io.dictionary_pages import CodedColumn, coded_columns
from discreet.io.header import headerless, is_record, may_be_shown
from discreet.programme.sources import Dialect, FileFormat, FileSource

BATCH = 1 << 18  # records at a time: enough for order to pay, few enough to stay near the processor
FEWEST = (
    1 << 16
)  # records of a row group whose codes are read from its pages: Arrow reads smaller ones faster
Reader = Callable[[Sequence[str], Sequence[str]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class Records:
    """An opened source: its name for messages, its schema, and a function that reads some of its columns."""

    name: str
    schema: pa.Schema
    read: Reader
    forms: tuple[CsvForm, ...] = ()  # of CSV files
    paths: tuple[Path, ...] = ()  # of CSV files
    root: Path | None = None  # of Parquet files: folders NAME=VALUE below it are columns

    @property
    def decimal(self) -> str:
        """The decimal mark of numbers in text; a file without decimals may be beside one with decimal commas."""
        return "," if any(form.decimal == "," for form in self.forms) else "."

    def form_of(self, path: Path) -> CsvForm:
        """How one of the CSV files is written."""
        return self.forms[self.paths.index(path)]

    def batches(self, plain: Sequence[str], coded: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Stream ``plain`` columns as they are and ``coded`` ones dictionary-encoded where that is cheaper."""
        return self.read(plain, coded)

    def small_batches(self, plain: Sequence[str], coded: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The same with at most ``BATCH`` records at a time, however large the source's batches are."""
        for batch in self.read(plain, coded):
            for start in range(0, batch.num_rows, BATCH):
                yield batch.slice(start, BATCH)


_CSV_BLOCK = 64 << 20
_CSV_HEAD = 1 << 20
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # what Hive and Spark write for a gap
UNREADABLE = (pa.ArrowException, OSError, EOFError, UnicodeError, zlib.error)  # what damaged files raise
_DIGEST_BLOCK = 1 << 18  # one for all files: it stays near the processor
_BUFFER = 1 << 16  # bytes of a column read at a time: whole row groups at once would be new memory for each


def open_files(source: FileSource, key: str) -> Records:
    """Open the files of a source, which all have the same columns."""
    paths = source.paths()
    if not paths:
        raise mistake(source.given, key, "the files no longer exist", "restore them")
    return (
        _open_csv(paths, source.dialect, key)
        if source.format is FileFormat.CSV
        else _open_parquet(paths, source.root, key)
    )


@dataclass(frozen=True)
class FilePart:
    """A part of a file that can be read by itself: some row groups of a Parquet file, or some bytes of a CSV file."""

    path: Path
    first: int  # row group, or byte at which a record begins
    last: int  # the one after it
    size: int  # bytes
    is_whole: bool = False  # a whole CSV file


def file_parts(source: FileSource, key: str) -> Iterator[FilePart]:
    """The parts of the files of a source, in the order of their records; only the ends of Parquet files are read."""
    for path in source.paths():
        if source.format is FileFormat.CSV:
            size = path.stat().st_size
            yield FilePart(path, 0, size, size, is_whole=True)
            continue
        try:
            with pq.ParquetFile(path.absolute()) as file:
                sizes = [
                    file.metadata.row_group(k).total_byte_size for k in range(file.metadata.num_row_groups)
                ]
        except UNREADABLE:
            raise _damaged(path, key) from None
        yield from (FilePart(path, k, k + 1, size) for k, size in enumerate(sizes))


def divided_csv(part: FilePart, form: CsvForm, most: int) -> list[FilePart]:
    """The parts of a CSV file, of at most about ``most`` bytes where records begin; the whole file is read."""
    try:
        edges = [0, *record_starts(part.path, form, most), part.size]
    except OSError as error:
        raise _unreadable(part.path, "", error) from None
    if len(edges) == 2:
        return [part]
    return [FilePart(part.path, first, last, last - first) for first, last in pairwise(edges)]


def open_parts(whole: Records, parts: Sequence[FilePart], key: str) -> Records:
    """Some parts of the files of an opened source, as records."""

    def read(plain: Sequence[str], coded: Sequence[str]) -> Iterator[pa.RecordBatch]:
        wanted = list(dict.fromkeys((*plain, *coded)))
        for part in parts:
            if whole.forms:
                yield from _read_csv_part(part, whole.form_of(part.path), plain, coded, key)
                continue
            schema = _parquet_schema(part.path, whole.root, key)
            _require_one_type(part.path, schema, whole.schema, plain, key)
            texts = _texts(schema, coded)
            groups = range(part.first, part.last)
            yield from _read_parquet(part.path, whole.root, wanted, texts, key, groups)

    return replace(whole, read=read)


def digest_files(paths: Sequence[Path], key: bytes) -> str:
    """BLAKE2b digest of the contents of files, in order, keyed by ``key``."""
    digest, block = hashlib.blake2b(digest_size=32, key=key), memoryview(bytearray(_DIGEST_BLOCK))
    for path in paths:
        try:
            digest.update(path.stat().st_size.to_bytes(8, "little"))
            with path.open("rb", buffering=0) as file:
                while size := file.readinto(block):
                    digest.update(block[:size])
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


def _open_parquet(paths: Sequence[Path], root: Path, key: str) -> Records:
    schemas = [_parquet_schema(path, root, key) for path in paths]
    _require_one_form(paths, [schema.names for schema in schemas], key)

    def read(plain: Sequence[str], coded: Sequence[str]) -> Iterator[pa.RecordBatch]:
        wanted = list(dict.fromkeys((*plain, *coded)))
        for path, schema in zip(paths, schemas, strict=True):
            _require_one_type(path, schema, schemas[0], plain, key)
        return chain.from_iterable(
            _read_parquet(
                path,
                root,
                wanted,
                _texts(schema, coded),
                key,
            )
            for path, schema in zip(paths, schemas, strict=True)
        )

    return Records(_name_of(paths), schemas[0], read, root=root)


def _parquet_schema(path: Path, root: Path | None, key: str) -> pa.Schema:
    """The columns of a file, and those that its folders name."""
    _require_readable(path, key)
    try:
        schema = pq.read_schema(path.absolute())  # a relative one such as census:2021 is taken for an address
    except MemoryError:
        raise _too_large(path, key) from None
    except UNREADABLE:
        raise mistake(
            path, key, "not a Parquet file", "give a Parquet file, or a CSV file with the extension .csv"
        ) from None
    for k, field in enumerate(schema):
        if pa.types.is_string_view(field.type):
            schema = schema.set(k, field.with_type(pa.string()))
    for name in _partition(path, root).keys() - set(schema.names):
        schema = schema.append(pa.field(name, pa.string()))
    return schema


def _partition(path: Path, root: Path | None) -> dict[str, str | None]:
    """The columns that folders name, as Spark and Hive write them: ``region=01/part.parquet`` has the region 01."""
    if root is None or not path.is_relative_to(root):
        return {}
    pairs = (part.partition("=") for part in path.relative_to(root).parts[:-1])
    found = {unquote(name): unquote(value) for name, mark, value in pairs if name and mark}
    return {name: None if value == _NO_VALUE else value for name, value in found.items()}


def _require_one_type(
    path: Path, schema: pa.Schema, first: pa.Schema, plain: Sequence[str], key: str
) -> None:
    """Refuse a file in which ids, flags or weights are of another kind than in the first file.

    One id would have two keys as a number and as text. Codes may be either: they are compared as text.
    """
    for name in plain:
        kind, usual = (_kind(one.field(name).type) for one in (schema, first))
        if kind != usual and "null" not in (kind, usual):
            value = f"column {name!r} has the type {kind}, and {usual} in the first file"
            raise mistake(path, key, value, "write all files with one schema")


def _texts(schema: pa.Schema, coded: Sequence[str]) -> list[str]:
    """The columns of codes that are text, which Arrow is asked to read as dictionaries.

    A file may declare them so, with indices of some width: unless asked, Arrow would check and convert each.
    """
    kinds = {name: schema.field(name).type for name in coded}
    return [
        name
        for name, kind in kinds.items()
        if _is_text(kind.value_type if pa.types.is_dictionary(kind) else kind)
    ]


def _kind(kind: pa.DataType) -> str:
    """What values of a type are, whatever their width."""
    if pa.types.is_dictionary(kind):
        return _kind(kind.value_type)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        return "number"
    return "text" if _is_text(kind) or pa.types.is_string_view(kind) else str(kind)


def _require_readable(path: Path, key: str) -> None:
    try:
        path.open("rb").close()
    except OSError as error:
        raise _unreadable(path, key, error) from None


def _require_one_form(
    paths: Sequence[Path], names: Sequence[list[str]], key: str, forms: Sequence[CsvForm] = ()
) -> None:
    """Refuse files with different column names, and duplicate column names."""
    for k, columns in enumerate(names):
        twice, differ = repeated(columns), set(columns) ^ set(names[0])
        if twice is None and not differ:
            continue
        for one in {0, k} if forms else ():
            if is_record(names[one], first_rows(paths[one], forms[one])[1:]):
                raise headerless(paths[one], key)
        if twice is not None:
            raise mistake(paths[k], key, duplicate(twice), "give each column a different name")
        shown = sorted(filter(may_be_shown, differ))
        example = f", for example in {shown[0]!r}" if shown else ""
        value = f"its columns differ from those of {paths[0].name}{example}"
        raise mistake(paths[k], key, value, "give files with the same columns")


def duplicate(name: str) -> str:
    """What is wrong with a name that occurs twice."""
    return f"duplicate column {name!r}" if may_be_shown(name) else "two columns of the same name"


def repeated(names: Iterable[str]) -> str | None:
    """The first name that occurs twice; files may have thousands of columns."""
    return next((name for name, times in Counter(names).items() if times > 1), None)


def _read_parquet(
    path: Path,
    root: Path | None,
    columns: list[str],
    texts: list[str],
    key: str,
    row_groups: Iterable[int] | None = None,
) -> Iterator[pa.RecordBatch]:
    folders = {name: value for name, value in _partition(path, root).items() if name in columns}
    try:
        metadata = pq.read_metadata(path.absolute())
        groups = list(range(metadata.num_row_groups) if row_groups is None else row_groups)
        places = _text_places(path, metadata, set(texts) - folders.keys(), groups)
        with pq.ParquetFile(
            path.absolute(),
            metadata=metadata,
            read_dictionary=list(places),
            buffer_size=_BUFFER,
            pre_buffer=False,
        ) as file:
            own = set(file.schema_arrow.names)
            named = {name: value for name, value in folders.items() if name not in own}
            read = [name for name in columns if name not in named]
            for batch in _read_groups(path, file, read, places, groups):
                yield _with_columns(batch, named, texts) if named else batch
    except MemoryError:
        raise _too_large(path, key) from None
    except UNREADABLE:
        raise _damaged(path, key) from None


def _read_groups(
    path: Path, file: pq.ParquetFile, columns: list[str], places: Mapping[str, int], groups: Sequence[int]
) -> Iterator[pa.RecordBatch]:
    """Read some row groups: columns of codes from the pages of large ones where that is possible, all else by Arrow."""
    with path.open("rb") as pages:
        for is_large, some in groupby(groups, lambda group: _records(file, [group]) >= FEWEST):
            if not is_large:
                yield from _read_by_arrow(file, columns, list(some))
                continue
            for group in some:
                own = coded_columns(pages, file.metadata, group, places)
                others = _read_by_arrow(file, [name for name in columns if name not in own], [group])
                yield from _with_coded(others, own) if own else others


def _with_coded(
    batches: Iterable[pa.RecordBatch], coded: Mapping[str, CodedColumn]
) -> Iterator[pa.RecordBatch]:
    """The batches of a row group, with its columns that are read from their pages."""
    first = 0
    for batch in batches:
        found = dict(zip(batch.schema.names, batch.columns, strict=True))
        found |= {name: column.read(first, batch.num_rows) for name, column in coded.items()}
        yield pa.RecordBatch.from_arrays(list(found.values()), names=list(found))
        first += batch.num_rows


def _read_by_arrow(file: pq.ParquetFile, columns: list[str], groups: list[int]) -> Iterator[pa.RecordBatch]:
    """Some columns of row groups as Arrow reads them; batches without columns have a number of records, too."""
    records = 0
    for batch in file.iter_batches(batch_size=BATCH, columns=columns, row_groups=groups):
        batch = _with_plain_texts(batch)
        require_sound(batch)
        records += batch.num_rows
        yield batch
    if records != _records(file, groups):
        raise pa.ArrowInvalid("fewer records than stated")


def _records(file: pq.ParquetFile, groups: Iterable[int]) -> int:
    return sum(file.metadata.row_group(group).num_rows for group in groups)


def _with_plain_texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Views of texts as texts: Arrow has few functions for views."""
    for k, field in enumerate(batch.schema):
        if pa.types.is_string_view(field.type):
            batch = batch.set_column(k, field.name, batch.column(k).cast(pa.string()))
    return batch


def _text_places(
    path: Path, metadata: pq.FileMetaData, names: Collection[str], groups: Sequence[int]
) -> dict[str, int]:
    """The columns that Arrow can read with dictionaries: it refuses to where texts are stored as differences.

    Their numbers in the file; a column inside another one may have the same path.
    """
    columns = (metadata.schema.column(k) for k in range(metadata.num_columns)) if names else ()
    places = {
        column.path: k
        for k, column in enumerate(columns)
        if column.path in names and column.path == column.name
    }
    if places:
        _require_described(path, metadata, list(places.values()), groups)
    for group in groups if places else ():
        stored = metadata.row_group(group)
        for name, k in list(places.items()):
            if any("DELTA" in one for one in stored.column(k).encodings):
                del places[name]
    return places


def _require_described(
    path: Path, metadata: pq.FileMetaData, columns: list[int], groups: Sequence[int]
) -> None:
    """Let Arrow open columns in each row group, and read nothing: it refuses those that are wrongly described.

    Where Python looks at such a description, Arrow raises an exception in C++ that ends the process.
    """
    with pq.ParquetFile(path.absolute(), metadata=metadata, pre_buffer=False) as file:
        for group in groups:
            for _ in file.reader.iter_batches(0, row_groups=[group], column_indices=columns):
                pass


def require_sound(batch: pa.RecordBatch) -> None:
    """Refuse what Arrow reads from damaged pages: values beyond their dictionary, and texts that are not UTF-8.

    Kernels would count other memory, and functions on texts would fail later.
    """
    for column in batch.columns:
        if _is_text(column.type):
            column.validate(full=True)
        if pa.types.is_dictionary(column.type):
            if _largest(column.indices) >= len(column.dictionary):
                raise pa.ArrowInvalid("values beyond the dictionary")
            column.dictionary.validate(full=True)


def _largest(indices: pa.Array) -> int:
    """The largest of some indices, -1 of none; a negative one counts as a huge one."""
    if indices.null_count:
        indices = indices.drop_null()
    numbers = indices.to_numpy(zero_copy_only=False)
    return int(numbers.view(f"u{numbers.itemsize}").max()) if len(numbers) else -1


def _with_columns(
    batch: pa.RecordBatch, named: Mapping[str, str | None], coded: Sequence[str]
) -> pa.RecordBatch:
    """A batch with columns of one value each."""
    arrays, names = list(batch.columns), list(batch.schema.names)
    for name, value in named.items():
        places = pa.array(np.zeros(batch.num_rows, dtype=np.int32))
        column = pa.DictionaryArray.from_arrays(places, pa.array([value], pa.string()))
        arrays.append(column if name in coded and value is not None else column.dictionary_decode())
        names.append(name)
    return pa.RecordBatch.from_arrays(arrays, names=names)


def _too_large(path: Path, key: str) -> Mistakes:
    value = "needs more memory than there is, or is damaged"
    return mistake(path, key, value, "give Discreet more memory, or write the file again")


def _damaged(path: Path, key: str) -> Mistakes:
    return mistake(path, key, "a damaged Parquet file", "write the file again")


def _open_csv(paths: Sequence[Path], dialect: Dialect, key: str) -> Records:
    forms = [_csv_form(path, dialect, key) for path in paths]
    names = [_csv_names(path, form, key) for path, form in zip(paths, forms, strict=True)]
    _require_one_form(paths, names, key, forms)

    def read(plain: Sequence[str], coded: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return chain.from_iterable(
            _read_csv(path, form, plain, coded, key) for path, form in zip(paths, forms, strict=True)
        )

    schema = pa.schema([(name, pa.string()) for name in names[0]])
    return Records(_name_of(paths), schema, read, tuple(forms), paths=tuple(paths))


def _csv_form(path: Path, dialect: Dialect, key: str) -> CsvForm:
    _require_readable(path, key)
    try:
        return csv_form(path, dialect)
    except MemoryError:
        raise _too_large(path, key) from None
    except UNREADABLE:
        raise _not_csv(path, key) from None


def _not_csv(path: Path, key: str) -> Mistakes:
    return mistake(path, key, "not a CSV file with a header", "save it as CSV, or give a Parquet file")


def _csv_names(path: Path, form: CsvForm, key: str) -> list[str]:
    try:
        with pa_csv.open_csv(path, _transcoded(form, _CSV_HEAD), _parsed(form)) as reader:
            names: list[str] = reader.schema.names
    except MemoryError:
        raise _too_large(path, key) from None
    except UNREADABLE as error:
        raise _broken_csv(path, form, key, error) or _not_csv(path, key) from None
    return names


def _transcoded(form: CsvForm, block: int, *, threads: bool = True) -> pa_csv.ReadOptions:
    return pa_csv.ReadOptions(block_size=block, encoding=form.encoding, use_threads=threads)


def _parsed(form: CsvForm, found: list[pa_csv.InvalidRow] | None = None) -> pa_csv.ParseOptions:
    """How to parse a file; the first line with another number of fields is put into ``found``."""

    if (
        found is None
    ):  # pyarrow decodes such a line for a handler, and complains of wrong bytes on standard error
        return pa_csv.ParseOptions(delimiter=form.delimiter, newlines_in_values=True)

    def note(row: pa_csv.InvalidRow) -> str:
        found.append(row)
        return "error"

    return pa_csv.ParseOptions(delimiter=form.delimiter, newlines_in_values=True, invalid_row_handler=note)


def _read_csv(
    path: Path, form: CsvForm, plain: Sequence[str], coded: Sequence[str], key: str
) -> Iterator[pa.RecordBatch]:
    options = _transcoded(form, _CSV_BLOCK)
    yield from _streamed_csv(path, path, options, form, plain, coded, key)


def _read_csv_part(
    part: FilePart, form: CsvForm, plain: Sequence[str], coded: Sequence[str], key: str
) -> Iterator[pa.RecordBatch]:
    """The records of some bytes of a CSV file; only the first bytes have the header."""
    if part.is_whole:
        yield from _read_csv(part.path, form, plain, coded, key)
        return
    options = _transcoded(form, _CSV_BLOCK)
    if part.first:
        options.column_names = _csv_names(part.path, form, key)
    with FileRange(part.path, part.first, part.last) as some:
        yield from _streamed_csv(part.path, some, options, form, plain, coded, key)


def _streamed_csv(
    path: Path,
    source: Path | FileRange,
    options: pa_csv.ReadOptions,
    form: CsvForm,
    plain: Sequence[str],
    coded: Sequence[str],
    key: str,
) -> Iterator[pa.RecordBatch]:
    text, codes = pa.string(), pa.dictionary(pa.int32(), pa.string())
    types = dict.fromkeys(coded, codes) | dict.fromkeys(plain, text)
    convert = pa_csv.ConvertOptions(
        column_types=types, include_columns=list(types), strings_can_be_null=True, null_values=[""]
    )
    try:
        with pa_csv.open_csv(source, options, _parsed(form), convert) as reader:
            yield from reader
    except MemoryError:
        raise _too_large(path, key) from None
    except UNREADABLE as error:
        if broken := _broken_csv(path, form, key, error):
            raise broken from None
        value = f"text that is not {form.encoding}, or quotes that are not closed"
        remedy = "correct the file, or declare its encoding and delimiter"
        raise mistake(path, key, value, remedy) from None


def _broken_csv(path: Path, form: CsvForm, key: str, error: Exception) -> Mistakes | None:
    """The first line with another number of fields than the header, if that is what is wrong; its text is not shown.

    Lines are numbered only where a file is read without threads, so that it is read again; UTF-8 as Latin-1, in which
    no byte is wrong and separators are the same.
    """
    if not isinstance(error, pa.ArrowInvalid):
        return None
    found: list[pa_csv.InvalidRow] = []
    lenient = replace(form, encoding=LATIN) if codecs.lookup(form.encoding).name == UTF8 else form
    try:
        with pa_csv.open_csv(
            path, _transcoded(lenient, _CSV_BLOCK, threads=False), _parsed(form, found)
        ) as reader:
            for _ in reader:
                pass
    except UNREADABLE:
        pass
    if not found:
        return None
    row = found[0]
    value = f"record {row.number - 1} has {row.actual_columns} fields instead of {row.expected_columns}"
    remedy = f"check its quotes and separators ({form})"
    return mistake(path, key, value, remedy)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _name_of(paths: Sequence[Path]) -> str:
    return str(paths[0]) if len(paths) == 1 else f"{paths[0].parent} ({len(paths)} files)"
