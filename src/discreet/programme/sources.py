"""Sources of the records of each unit: files, a database, or a query over files; none is opened here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from glob import escape, glob
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from discreet.errors import AbsentData, Mistakes, Problem
from discreet.programme.section import Declared, Text


class DeclaredSource(Declared):
    """A table or query of a database, or a query over files."""

    uri: Text | None = None
    table: Text | None = None
    query: Text | None = None


SERVERS = ("postgresql", "postgres")
DATABASE_FILES = ("sqlite", "duckdb")
_PASSWORD_IN_QUERY = re.compile(r"://[^\s/]*:[^\s/]*@|password\s*=", re.IGNORECASE)


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
class FileSource:
    """Parquet or CSV files."""

    given: str  # as declared
    pattern: str  # absolute; may contain wildcards
    format: FileFormat

    def paths(self) -> tuple[Path, ...]:
        """The files that exist now, in the order of their names."""
        return tuple(_matches(self.pattern))

    def describe(self) -> dict[str, str]:
        """What was declared, for the manifest."""
        return {"files": self.given}


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


Source = FileSource | DatabaseSource | QuerySource


def without_user(uri: str) -> str:
    """A URI that may be shown: without user and password, and without its parameters."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return "a URI that cannot be read"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def database_file(uri: str, folder: Path) -> Path:
    """The file that ``sqlite://census.db`` (in the folder) or ``sqlite:///srv/census.db`` (anywhere) names."""
    return folder / Path(uri.partition("://")[2]).expanduser()


def resolve_source(entry: str | DeclaredSource, folder: Path, file: str, key: str) -> Source:
    """Make a source of what was declared, relative to the programme's folder."""
    if isinstance(entry, str):
        return file_source(entry, folder, file, key)
    wrong = [Problem(file, key, value, remedy) for value, remedy in _source_problems(entry)]
    absent = [Problem(file, key, value, remedy) for value, remedy in _absent_database(entry, folder)]
    if wrong or absent:
        raise (Mistakes if wrong else AbsentData)([*wrong, *absent])
    if entry.uri is None:
        return QuerySource(entry.query or "", folder)
    return DatabaseSource(entry.uri, entry.table, entry.query, folder)


def _source_problems(entry: DeclaredSource) -> Iterator[tuple[str, str]]:
    if entry.table is not None and entry.query is not None:
        yield "both a table and a query", "keep one of them"
    if entry.query is not None and _PASSWORD_IN_QUERY.search(entry.query):
        yield "a query that contains a password", "remove it and set PGPASSWORD or a .pgpass file instead"
    if entry.uri is None:
        if entry.query is None:
            yield "neither a uri nor a query", 'write { uri = "..", table = ".." } or { query = "SELECT .." }'
        return
    if entry.table is None and entry.query is None:
        yield "a uri without a table or query", 'add table = ".." or query = "SELECT .."'
    yield from _uri_problems(entry.uri)


def _uri_problems(uri: str) -> Iterator[tuple[str, str]]:
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
    if embedded and not database_file(uri, folder).is_file():
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
    if "://" in given:
        remedy = f'write {key.rpartition(".")[2]} = {{ uri = "..", table = ".." }}'
        raise Mistakes([Problem(file, key, without_user(given), remedy)])
    place = folder / Path(given).expanduser()
    if place.is_dir():
        pattern = str(Path(escape(str(place))) / "**" / "*.parquet")
    elif place.is_file():  # its name may have characters that mean something in a pattern
        pattern = escape(str(place))
    else:
        pattern = str(Path(escape(str(folder))) / Path(given).expanduser())
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


def format_of(path: Path) -> FileFormat | None:
    """The format by a file's name, or None."""
    name = path.name.lower()
    return next((kind for suffix, kind in SUFFIXES.items() if name.endswith(suffix)), None)


def _matches(pattern: str) -> list[Path]:
    found = glob(pattern, recursive=True)  # noqa: PTH207, the pattern is absolute
    return sorted(path for path in map(Path, found) if path.is_file())
