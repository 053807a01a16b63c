"""Records that only Spark can read, copied into files that every task can read.

Files of a Hadoop file system are copied as they are, so that their values, messages and digest are those of the same
files on this machine. Tables of a catalog, Delta tables, queries and databases by JDBC are read once by Spark and
written as Parquet: the run then sees one state of them, whatever happens to them meanwhile. Such a copy has no order
of its own, so that its content has no digest; it is identified by its declaration, as a database is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.engine.failures import failures
from discreet.engine.hadoop import Hadoop, RemoteFile, local_address, relative
from discreet.engine.tasks import without_text
from discreet.errors import Mistakes, Problem, mistake
from discreet.io.databases import open_source
from discreet.io.temporary_folder import TemporaryFolder
from discreet.programme.engine import EngineRule
from discreet.programme.population import Unit
from discreet.programme.programme import Programme
from discreet.programme.sources import (
    DELTA_LOG,
    SUFFIXES,
    ClusterSource,
    DatabaseSource,
    FileFormat,
    FileSource,
    MemorySource,
    QuerySource,
    Source,
    format_of,
    without_user,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_AT_ONCE = 8  # files
_HIDDEN = ("_", ".")  # how the names of files begin that are no data
_LONG = 18  # digits of a 64-bit integer


@contextmanager
def readable(programme: Programme, spark: SparkSession, rule: EngineRule) -> Iterator[Programme]:
    """The programme with sources that every task can read; copies are removed at the end."""
    units = programme.population.units if programme.population else {}
    wanted = {name: unit for name, unit in units.items() if not isinstance(unit.source, FileSource)}
    if not wanted or programme.population is None:
        yield programme
        return
    folder = _copies(rule)
    try:
        copied = {name: _copied(unit, programme, spark, folder.path / name) for name, unit in wanted.items()}
        population = replace(programme.population, units={**units, **copied})
        yield replace(programme, population=population)
    finally:
        folder.remove()


def _copies(rule: EngineRule) -> TemporaryFolder:
    """A new folder that only its owner can open and all executors see."""
    if rule.folder is None and not rule.is_local:
        remedy = "name a folder that the driver and all executors see"
        raise mistake(
            "Spark", "engine.folder", "is missing, and records must be copied for the executors", remedy
        )
    try:
        if rule.folder is not None:
            rule.folder.mkdir(parents=True, exist_ok=True)
        return TemporaryFolder(rule.folder, "discreet-records-")
    except OSError as error:
        reason = (error.strerror or "refused").lower()
        remedy = "name a folder that you can write to"
        raise mistake(rule.folder or "", "engine.folder", f"cannot be written: {reason}", remedy) from None


def _copied(unit: Unit, programme: Programme, spark: SparkSession, folder: Path) -> Unit:
    source, key = unit.source, f"population.{unit.name}"
    columns = columns_of(programme)
    if isinstance(source, MemorySource | FileSource):
        remedy = "write them to Parquet files that all executors see"
        raise mistake(programme.path, key, "records in memory, with the engine Spark", remedy)
    if isinstance(source, DatabaseSource):
        return replace(unit, source=_copied_database(spark, source, columns, folder, key))
    hadoop = Hadoop(spark)
    with failures(name_of(source), key):
        if isinstance(source, ClusterSource) and source.path is not None:
            if not _is_delta(hadoop, source.path):
                return replace(unit, source=_copied_files(hadoop, source, folder, key))
            frame = spark.read.format("delta").load(source.path)
        else:
            frame = open_frame(spark, source)
        copy = ClusterSource(query=source.query) if isinstance(source, QuerySource) else source
        written = _written(hadoop, frame, columns, folder, name_of(source), key)
    return replace(unit, source=replace(written, copy_of=copy))


def _copied_database(
    spark: SparkSession, source: DatabaseSource, columns: frozenset[str], folder: Path, key: str
) -> FileSource:
    """Let one task read a database as the embedded engine reads it; a statement is one state of its tables."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        problems: list[tuple[str, str, str, str]] = []
        try:
            copy_database(source, columns, folder, key)
        except Mistakes as wrong:
            problems = [(one.file, one.key, one.value, one.remedy) for one in wrong.problems]
        answer = pa.array([json.dumps(problems)], pa.string())
        yield pa.RecordBatch.from_arrays([answer], names=["problems"])

    with failures(without_user(source.uri), key):
        (row,) = spark.range(0, 1, 1, 1).mapInArrow(without_text(task), "problems string").collect()
    problems = [Problem(*one) for one in json.loads(row.problems)]
    if problems:
        raise Mistakes(problems)
    pattern = str(Path(escape(str(folder))) / "*.parquet")
    copy = ClusterSource(table=source.table, query=source.query, uri=without_user(source.uri))
    return FileSource(without_user(source.uri), pattern, FileFormat.PARQUET, copy_of=copy)


def copy_database(source: DatabaseSource, columns: frozenset[str], folder: Path, key: str) -> None:
    """Write the columns of a database that are used as one Parquet file."""
    records = open_source(source, key)
    names = [name for name in records.schema.names if name in columns]
    folder.mkdir(mode=0o700)
    with pq.ParquetWriter(
        folder / "records.parquet", pa.schema([records.schema.field(name) for name in names])
    ) as writer:
        for batch in records.batches(names, ()):
            writer.write_batch(batch)


def name_of(source: Source) -> str:
    """What a source is, in messages."""
    return source.name if isinstance(source, ClusterSource) else "query"


def _is_delta(hadoop: Hadoop, path: str) -> bool:
    return "*" not in path and hadoop.exists(f"{path.rstrip('/')}/{DELTA_LOG}")


def columns_of(programme: Programme) -> frozenset[str]:
    """Every column that a programme may read."""
    rule = programme.population
    if rule is None:
        return frozenset()
    names = {variable.column for variable in programme.variables.values()}
    names |= {*rule.ids.values(), *rule.geography, *rule.flags, *rule.weights}
    names |= {name for cube in programme.cubes for name in (cube.count, cube.weight) if name}
    names |= {unit.id_column for unit in rule.units.values() if unit.id_column}
    return frozenset(names | ({rule.record_key} if rule.record_key else set()))


def _copied_files(hadoop: Hadoop, source: ClusterSource, folder: Path, key: str) -> FileSource:
    """Copy the files of a path; what changes meanwhile is detected."""
    assert source.path is not None
    found = _data_files(hadoop, source.path)
    kinds = {format_of(Path(one.uri)) for one in found}
    if not found:
        raise mistake(source.path, key, "no file there", "correct the path")
    if len(kinds) != 1 or None in kinds:
        raise mistake(
            source.path,
            key,
            "files of several kinds",
            f"use files that all end in one of {', '.join(SUFFIXES)}",
        )
    kind = kinds.pop() or FileFormat.PARQUET
    if kind is FileFormat.PARQUET and source.dialect.describe():
        remedy = "leave delimiter, encoding and decimal out: they describe CSV files"
        raise mistake(source.path, key, "files that are not CSV", remedy)
    base = _base(source.path, hadoop)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for _ in pool.map(lambda one: hadoop.download(one.uri, folder / relative(one.uri, base)), found):
            pass
    if _data_files(hadoop, source.path) != found:
        raise _changed(source.path, key)
    suffix = ".parquet" if kind is FileFormat.PARQUET else ".csv*"
    pattern = str(Path(escape(str(folder))) / "**" / f"*{suffix}")
    return FileSource(source.path, pattern, kind, source.dialect)


def _data_files(hadoop: Hadoop, path: str) -> list[RemoteFile]:
    """The files below a path without those that systems write beside data, such as _SUCCESS."""
    base = _base(path, hadoop)
    return [
        one
        for one in hadoop.files(path)
        if not any(
            part.startswith(_HIDDEN) and "=" not in part for part in relative(one.uri, base).split("/")
        )
    ]


def _base(path: str, hadoop: Hadoop) -> str:
    """The folder from which the names of files are relative."""
    plain = path.partition("*")[0]
    return path.rstrip("/") if plain == path and hadoop.is_folder(path) else plain.rpartition("/")[0]


def _changed(name: str, key: str) -> Mistakes:
    return mistake(name, key, "changed while it was read", "run again when nothing writes it")


def open_frame(spark: SparkSession, source: ClusterSource | QuerySource) -> DataFrame:
    """A table of the catalog, a query, or a database by JDBC, as a data frame of Spark."""
    if isinstance(source, QuerySource):
        return spark.sql(source.query)
    if source.uri is None:
        return spark.table(source.table or "")
    reader = spark.read.format("jdbc").option("url", source.uri)
    # one statement is one state of the table; several connections would see several
    reader = (
        reader.option("dbtable", source.table) if source.table else reader.option("query", source.query or "")
    )
    for name, value in _jdbc_login(os.environ).items():
        reader = reader.option(name, value)
    return reader.load()


def _jdbc_login(environment: Mapping[str, str]) -> dict[str, str]:
    """User and password from the environment of the driver; Spark hides the password in its plans."""
    found = {name: environment.get(f"DISCREET_JDBC_{name.upper()}", "") for name in ("user", "password")}
    return {name: value for name, value in found.items() if value}


def _written(
    hadoop: Hadoop, frame: DataFrame, columns: frozenset[str], folder: Path, name: str, key: str
) -> FileSource:
    """Let Spark write the columns of a frame as Parquet; files that change meanwhile are detected."""
    before = _input_state(hadoop, frame)
    plain(frame, columns).write.mode("error").parquet(local_address(folder))
    if _input_state(hadoop, frame) != before:
        raise _changed(name, key)
    pattern = str(Path(escape(str(folder))) / "**" / "*.parquet")
    return FileSource(name, pattern, FileFormat.PARQUET)


def _input_state(hadoop: Hadoop, frame: DataFrame) -> list[RemoteFile]:
    """The files behind a frame; empty where Spark reads something else."""
    return hadoop.states([unquote(uri) for uri in frame.inputFiles()])


def plain(frame: DataFrame, columns: frozenset[str]) -> DataFrame:
    """The columns that are used, with whole numbers instead of decimals without places."""
    from pyspark.sql import functions  # noqa: PLC0415
    from pyspark.sql.types import DecimalType  # noqa: PLC0415

    def column(field: Any) -> Any:
        found = functions.col(f"`{field.name.replace('`', '``')}`")
        kind = field.dataType
        if isinstance(kind, DecimalType) and kind.scale == 0:
            return found.cast("bigint" if kind.precision <= _LONG else "string").alias(field.name)
        return found

    used = [field for field in frame.schema.fields if field.name in columns]
    return frame.select(*(column(field) for field in (used or frame.schema.fields)))
