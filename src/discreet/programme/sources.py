"""Sources of the records of each unit: files, databases, queries over files, tables in memory; none is opened here."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from enum import Enum
from glob import escape, glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn
from urllib.parse import parse_qsl, unquote, urlsplit

from discreet.errors import AbsentData, Mistakes, Problem, mistake
from discreet.programme.section import Declared, Text, is_file, with_home

if TYPE_CHECKING:
    import pyarrow as pa


class DeclaredSource(Declared):
    """Files with the form of their text, a table or query of a database, or a query over files."""

    file: Text | None = None
    delimiter: Text | None = None
    encoding: Text | None = None
    decimal: Literal[".", ","] | None = None
    uri: Text | None = None
    table: Text | None = None
    query: Text | None = None


SERVERS = ("postgresql", "postgres")
HADOOP = (  # file systems that Spark reads and writes
    *(
        "hdfs",
        "viewfs",
        "webhdfs",
        "swebhdfs",
        "s3a",
        "s3",
        "abfss",
        "abfs",
        "wasbs",
        "wasb",
        "adl",
        "gs",
        "dbfs",
    ),
    *("oss", "obs", "cosn", "ofs", "o3fs", "maprfs"),
)
JDBC = "jdbc:"
DELTA_LOG = "_delta_log"  # the folder by which a Delta table is known
MOST_FILES = 200_000  # of one source, folders included
DATABASE_FILES = ("sqlite", "duckdb")
_PASSWORD_IN_QUERY = re.compile(r"://[^\s/]*:[^\s/]*@|password\s*=", re.IGNORECASE)
_PASSWORD_IN_JDBC = re.compile(r"://[^\s/]*:[^\s/]*@|passw\w*\s*=|:[^/:@\s]+/[^/@\s]+@", re.IGNORECASE)


class FileFormat(Enum):
    """How the records are written in a file."""

    PARQUET = "parquet"
    CSV = "csv"


SUFFIXES = {
    ".parquet": FileFormat.PARQUET,
    ".pq": FileFormat.PARQUET,
    ".csv": FileFormat.CSV,
    ".csv.gz": FileFormat.CSV,
}


@dataclass(frozen=True)
class Dialect:
    """How the text of CSV files is written, as far as it is declared; None is found in the file."""

    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None

    def describe(self) -> dict[str, str]:
        """What was declared."""
        return {key: value for key, value in asdict(self).items() if value is not None}


def _plain(part: str) -> str:
    """A part of a pattern without the brackets that ``glob.escape`` puts around characters with a meaning."""
    return re.sub(r"\[([*?[])\]", r"\1", part) if re.fullmatch(r"(?:\[[*?[]\]|[^*?[])*", part) else part


@dataclass(frozen=True)
class FileSource:
    """Parquet or CSV files."""

    given: str  # as declared
    pattern: str  # absolute; may contain wildcards
    format: FileFormat
    dialect: Dialect = Dialect()
    copy_of: ClusterSource | None = None  # what an engine has copied into the files, in an order of its own

    @property
    def root(self) -> Path:
        """The folder above the first wildcard of the pattern."""
        return _root(self.pattern)

    def paths(self) -> tuple[Path, ...]:
        """The files that exist now, in the order of their names."""
        return tuple(_matches(self.pattern))

    def describe(self) -> dict[str, str]:
        """What was declared, for the manifest."""
        if self.copy_of is not None:
            return self.copy_of.describe()
        return {"files": self.given, **self.dialect.describe()}


@dataclass(frozen=True)
class DatabaseSource:
    """A table or a query of a database; the URI never contains a password."""

    uri: str
    table: str | None = None
    query: str | None = None
    folder: Path = Path()  # that a relative file of the URI starts from

    @property
    def scheme(self) -> str:
        """The kind of database."""
        return self.uri.partition("://")[0]

    @property
    def file(self) -> Path:
        """The file of an embedded database."""
        return database_file(self.uri, self.folder)

    def describe(self) -> dict[str, str]:
        """What was declared, for the manifest, without the user."""
        asked = {"table": self.table} if self.table else {"query": self.query or ""}
        return {"uri": without_user(self.uri), **asked}


@dataclass(frozen=True)
class QuerySource:
    """A query over files, whose names are relative to a folder."""

    query: str
    folder: Path

    def describe(self) -> dict[str, str]:
        """What was declared, for the manifest."""
        return {"query": self.query}


@dataclass(frozen=True)
class ClusterSource:
    """What only Spark reads: a path of its file systems, a table of its catalog, or a database by JDBC."""

    path: str | None = None
    table: str | None = None
    query: str | None = None
    uri: str | None = None  # of JDBC
    dialect: Dialect = Dialect()
    given: str | None = None  # the path as declared, where it is another

    @property
    def name(self) -> str:
        """What it is, in messages."""
        if self.uri is not None:
            return shown_jdbc(self.uri)
        return self.given or self.path or (f"table {self.table}" if self.table else "query")

    def describe(self) -> dict[str, str]:
        """What was declared, for the manifest, without the user."""
        if self.path is not None:
            return {"files": self.given or self.path, **self.dialect.describe()}
        asked = {"table": self.table} if self.table else {"query": self.query or ""}
        return asked if self.uri is None else {"uri": shown_jdbc(self.uri), **asked}


@dataclass(frozen=True, eq=False, repr=False)
class MemorySource:
    """A table in memory, identified by its contents; no copy of it can be made through this object."""

    name: str  # in messages
    table: pa.Table
    used: frozenset[str] | None = None  # the columns that identify it; None: all

    @property
    def content(self) -> pa.Table:
        """The columns that are used."""
        names = [name for name in self.table.column_names if self.used is None or name in self.used]
        return self.table.select(names)

    def describe(self) -> dict[str, str]:
        """What was declared, for the manifest."""
        return {"memory": self.name}

    def __reduce__(self) -> NoReturn:
        raise TypeError("records in memory are confidential and cannot be pickled")


Source = FileSource | DatabaseSource | QuerySource | MemorySource | ClusterSource


def hadoop_scheme(given: str) -> str | None:
    """The file system of an address such as ``hdfs://host/path``; None for a path of this machine."""
    scheme = given.partition(":/")[0]
    return scheme if ":/" in given and scheme in HADOOP else None


def local_place(out: str) -> Path:
    """A path of this machine; any other address would become folders of its name."""
    if re.match(r"[a-z][a-z0-9+.-]+:/", out):
        remedy = f"give a path without file:, or an address of {', '.join(HADOOP[:5])} and the like"
        raise mistake(out, "--out", "neither a path nor an address that Spark writes to", remedy)
    return Path(out)


def shown_jdbc(uri: str) -> str:
    """An address of JDBC that may be shown: without user and parameters."""
    address = re.split(r"[?;]", uri, maxsplit=1)[0]
    begin = re.match(r"jdbc:[a-z0-9]+:(?:thin:|oci:)?(?://)?", address, re.IGNORECASE)
    return address if begin is None or "@" not in address else begin[0] + address.rpartition("@")[2]


def without_user(uri: str) -> str:
    """A URI that may be shown: without user and password, and without its parameters."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return "a URI that cannot be read"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def database_file(uri: str, folder: Path) -> Path:
    """The file that ``sqlite://census.db`` (in the folder) or ``sqlite:///srv/census.db`` (anywhere) names.

    SQLAlchemy writes an absolute path after one slash more.
    """
    path = re.sub("^/+", "/", uri.partition("://")[2])
    return folder / with_home(path)


def resolve_source(entry: str | DeclaredSource, folder: Path, file: str, key: str) -> Source:
    """Make a source of what was declared, relative to the programme's folder."""
    if isinstance(entry, str):
        return _path_source(entry, Dialect(), folder) or file_source(entry, folder, file, key)
    if entry.file is not None or _dialect(entry) != Dialect():
        return _declared_file(entry, folder, file, key)
    wrong = [Problem(file, key, value, remedy) for value, remedy in _source_problems(entry)]
    absent = [Problem(file, key, value, remedy) for value, remedy in _absent_database(entry, folder)]
    if wrong or absent:
        raise (Mistakes if wrong else AbsentData)([*wrong, *absent])
    if entry.uri is None:
        return ClusterSource(table=entry.table) if entry.table else QuerySource(entry.query or "", folder)
    if entry.uri.startswith(JDBC):
        return ClusterSource(table=entry.table, query=entry.query, uri=entry.uri)
    return DatabaseSource(entry.uri, entry.table, entry.query, folder)


def _dialect(entry: DeclaredSource) -> Dialect:
    return Dialect(entry.delimiter, entry.encoding, entry.decimal)


def _path_source(given: str, dialect: Dialect, folder: Path) -> ClusterSource | None:
    """The source of a path that only Spark reads: of a file system of Hadoop, or of a Delta table.

    The Parquet files of a Delta table include those of its earlier states, so that it is never read as a folder.
    """
    if hadoop_scheme(given):
        return ClusterSource(path=given, dialect=dialect)
    local = unquote(urlsplit(given).path) if given.startswith("file:/") else given
    place = folder / with_home(local)
    is_delta = "://" not in local and _is_folder(place / DELTA_LOG)
    return (
        ClusterSource(path=f"file://{place.absolute()}", given=given, dialect=dialect) if is_delta else None
    )


def _declared_file(entry: DeclaredSource, folder: Path, file: str, key: str) -> FileSource | ClusterSource:
    wrong = [Problem(file, f"{key}.{own}", value, remedy) for own, value, remedy in _dialect_problems(entry)]
    if entry.file is None or {entry.uri, entry.table, entry.query} != {None}:
        remedy = 'write { file = "persons.csv", .. } without uri, table and query'
        wrong.append(
            Problem(file, key, "the form of a CSV file without a file, or beside a database", remedy)
        )
    if wrong or entry.file is None:
        raise Mistakes(wrong)
    if elsewhere := _path_source(entry.file, _dialect(entry), folder):
        return elsewhere
    found = file_source(entry.file, folder, file, key)
    if found.format is not FileFormat.CSV and _dialect(entry) != Dialect():
        remedy = "leave delimiter, encoding and decimal out: they describe CSV files"
        raise Mistakes([Problem(file, key, f"files {entry.file!r}, which are not CSV", remedy)])
    return replace(found, dialect=_dialect(entry))


def _dialect_problems(entry: DeclaredSource) -> Iterator[tuple[str, str, str]]:
    mark = entry.delimiter
    if mark is not None and (len(mark) != 1 or not mark.isascii() or mark.isalnum() or mark in "\"'\r\n.-+"):
        yield "delimiter", repr(mark), 'give one character, such as ";" or "\\t"'
    if mark is not None and mark == entry.decimal:
        yield "decimal", repr(mark), "give another mark than the delimiter"
    if entry.encoding is not None and not _is_encoding(entry.encoding):
        yield "encoding", repr(entry.encoding), 'give one such as "utf-8", "windows-1252" or "iso-8859-2"'


def _is_encoding(name: str) -> bool:
    try:
        return isinstance("a".encode(name), bytes) and codecs.lookup(name).name not in ("idna", "punycode")
    except (LookupError, ValueError):
        return False


def _source_problems(entry: DeclaredSource) -> Iterator[tuple[str, str]]:
    if entry.table is not None and entry.query is not None:
        yield "both a table and a query", "keep one of them"
    if entry.query is not None and _PASSWORD_IN_QUERY.search(entry.query):
        yield "a query that contains a password", "remove it and set PGPASSWORD or a .pgpass file instead"
    if entry.uri is None:
        if entry.query is None and entry.table is None:
            yield (
                "neither a file nor a uri nor a query",
                'write { file = ".." }, { uri = "..", table = ".." }, { query = "SELECT .." } or { table = ".." }',
            )
        return
    if entry.table is None and entry.query is None:
        yield "a uri without a table or query", 'add table = ".." or query = "SELECT .."'
    yield from _uri_problems(entry.uri)


def _uri_problems(uri: str) -> Iterator[tuple[str, str]]:
    if uri.startswith(JDBC):
        if _PASSWORD_IN_JDBC.search(uri):
            remedy = "remove it and set the environment variable DISCREET_JDBC_PASSWORD instead"
            yield f"{shown_jdbc(uri)} contains a password", remedy
        return
    scheme, separator, _ = uri.partition("://")
    if not separator or scheme not in (*SERVERS, *DATABASE_FILES):
        # what is no URI may still contain a password, so it is not shown
        yield (
            "a uri of an unknown kind",
            f"write {SERVERS[0]}://host:port/database, sqlite://file or duckdb://file",
        )
    elif scheme in SERVERS and _holds_password(uri):
        remedy = "remove it and set PGPASSWORD or a .pgpass file instead"
        yield f"{without_user(uri)} contains a password", remedy


def _absent_database(entry: DeclaredSource, folder: Path) -> Iterator[tuple[str, str]]:
    uri = entry.uri or ""
    embedded = uri.partition("://")[0] in DATABASE_FILES and "://" in uri
    if embedded and not is_file(database_file(uri, folder)):
        yield "no such database file", f"put it into {folder} or correct the uri"


def _holds_password(uri: str) -> bool:
    try:
        parts = urlsplit(uri)
        secret = {"password", "passfile", "sslpassword"} & {
            name.lower() for name, _ in parse_qsl(parts.query)
        }
        return bool(parts.password is not None or secret - {"passfile"})
    except ValueError:
        return True  # unreadable: refuse rather than show


def file_source(given: str, folder: Path, file: str, key: str) -> FileSource:
    """Find the files that were declared; a folder means the Parquet files in it."""
    if given.startswith("file:/"):
        return replace(file_source(unquote(urlsplit(given).path), folder, file, key), given=given)
    if given.startswith(("http://", "https://")):
        remedy = "fetch the file, and give its path"
        raise Mistakes([Problem(file, key, f"{without_user(given)} is a web address", remedy)])
    if "://" in given:
        remedy = f'write {key.rpartition(".")[2]} = {{ uri = "..", table = ".." }}'
        raise Mistakes([Problem(file, key, without_user(given), remedy)])
    place = folder / with_home(given)
    if _is_folder(place):
        pattern = str(Path(escape(str(place))) / "**" / "*.parquet")
    elif is_file(place):  # its name may have characters that mean something in a pattern
        pattern = escape(str(place))
    else:
        pattern = str(Path(escape(str(folder))) / with_home(given))
    if _is_endless(pattern):
        value = f"{given!r} has more than {MOST_FILES:,} files and folders below it"
        raise Mistakes([Problem(file, key, value, "name the folder of the records")])
    found = _matches(pattern)
    if not found:
        # what was meant as an address of a database may contain a password
        shown = "no such file" if "@" in given or "password" in given.lower() else f"no file {given!r}"
        raise AbsentData([Problem(file, key, shown, f"put it into {folder} or correct the name")])
    formats = {format_of(path) for path in found}
    kind = formats.pop()
    if formats or kind is None:
        remedy = f"use files that all end in one of {', '.join(SUFFIXES)}"
        raise Mistakes([Problem(file, key, f"files {given!r}", remedy)])
    return FileSource(given, pattern, kind)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name that nothing can have
        return False


def format_of(path: Path) -> FileFormat | None:
    """The format by a file's name, or None."""
    name = path.name.lower()
    return next((kind for suffix, kind in SUFFIXES.items() if name.endswith(suffix)), None)


def _root(pattern: str) -> Path:
    parts = Path(pattern).parts
    first = next((k for k, part in enumerate(parts) if part in ("**", "*") or has_magic(_plain(part))), -1)
    return Path(*(_plain(part) for part in parts[:first]))


def _is_endless(pattern: str) -> bool:
    """Whether a pattern of files at any depth leads to more of them than records have, or to links in a circle."""
    if "**" not in pattern:
        return False
    seen = 0
    for _, folders, files in os.walk(_root(pattern), followlinks=True):
        seen += len(folders) + len(files)
        if seen > MOST_FILES:
            return True
    return False


def _matches(pattern: str) -> list[Path]:
    found = glob(pattern, recursive=True)  # noqa: PTH207, the pattern is absolute
    return sorted(path for path in map(Path, found) if path.is_file())
