"""Errors of Spark as one or two lines: what failed, and which setting, file or permission to look at.

Spark's own texts quote stack traces and sometimes values of records, so that none of them is repeated; what is shown
are names of files, columns and tables, and the condition by which Spark's documentation lists an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from discreet.errors import Mistakes, mistake


@dataclass(frozen=True)
class _Known:
    """A failure that a user can do something about; ``{0}`` in the value is what the pattern found."""

    pattern: re.Pattern[str]
    value: str
    remedy: str


def _known(pattern: str, value: str, remedy: str) -> _Known:
    return _Known(re.compile(pattern, re.DOTALL), value, remedy)


_NAME = r"`([^`\n]{1,200})`"
_FILE = r"((?:[a-z][a-z0-9+.-]*:)?/[^\s\n]{1,300}?)"
_MEMORY = "raise engine.memory.executor or spark.executor.memoryOverhead, or lower spark.executor.cores"
_KNOWN = (
    _known(
        r"cancelled because SparkContext was shut down|SparkContext has been shutdown|stopped SparkContext|"
        r"\A(?:Py4JNetworkError|Connection\w*Error)|while sending or receiving|"
        r"(?:Answer|answer) from Java side is empty",
        "the Spark session ended during the run",
        "run it again; the log of the driver has the reason",
    ),
    _known(
        r"PARQUET_COLUMN_DATA_TYPE_MISMATCH.*?reading file " + _FILE + r"\. .*?Column: \[([^\]\n]+)\]",
        "{0}: column {1} has another type than in the other files",
        "write it with one schema",
    ),
    _known(
        r"FAILED_READ_FILE[^\]]*\].*?reading file " + _FILE + r"\. ",
        "{0} cannot be read",
        "check that it exists, that Spark may read it and that it is complete",
    ),
    _known(
        r"CANNOT_MERGE_SCHEMAS", "its files have columns of different types", "write them with one schema"
    ),
    _known(
        r"java\.lang\.OutOfMemoryError|exited with code 52\b|OutOfMemory",
        "an executor had too little memory",
        _MEMORY,
    ),
    _known(
        r"MemoryError|failed to map segment|[Cc]annot allocate memory|bad_alloc|"
        r"exceeding (?:physical )?memory limits|exit(?:ed with|) (?:code|status):? ?137\b|OOMKilled",
        "a Python worker of an executor had too little memory",
        "raise spark.executor.memoryOverhead (or spark.executor.pyspark.memory), or lower spark.executor.cores",
    ),
    _known(
        r"Python worker exited unexpectedly",
        "a Python worker of an executor was ended, most often for lack of memory",
        "raise spark.executor.memoryOverhead, or lower spark.executor.cores; the executor's log has the reason",
    ),
    _known(
        r"TaskFailed: (\w{1,80} in [\w.]{1,80}:\d{1,6})",
        "a task failed ({0})",
        "report it as a mistake of Discreet",
    ),
    _known(
        r"PYTHON_VERSION_MISMATCH",
        "executors have another version of Python than the driver",
        "set PYSPARK_PYTHON to the same one: docs/how-to/move-to-spark.md",
    ),
    _known(
        r"Cannot run program \"([^\"\n]{1,200})\"",
        "executors have no Python at {0}",
        "set PYSPARK_PYTHON to the Python of the executors: docs/how-to/move-to-spark.md",
    ),
    _known(
        r"No module named '?(pyspark|discreet|numpy|pyarrow|numba)",
        "executors have no package {0}",
        "ship it to them: docs/how-to/move-to-spark.md",
    ),
    _known(r"No space left on device", "a disk of the cluster is full", "free it, or set spark.local.dir"),
    _known(
        r"AccessControlException|Permission denied|AccessDenied|UnauthorizedAccess|AuthorizationPermissionMismatch",
        "access is refused",
        "ask for permission, or choose another place",
    ),
    _known(
        r"TABLE_OR_VIEW_NOT_FOUND[^\n]*?The table or view " + r"((?:`[^`\n]{1,100}`\.?)+)",
        "no table {0} in the catalog",
        "correct the name, or register the table",
    ),
    _known(
        r"SCHEMA_NOT_FOUND[^\n]*?schema " + r"((?:`[^`\n]{1,100}`\.?)+)",
        "no database {0} in the catalog",
        "correct the name",
    ),
    _known(r"PATH_NOT_FOUND[^\n]*?: " + _FILE + r"\. ", "no such path {0}", "correct the path"),
    _known(
        r"FileNotFoundException", "no such path, or a part of it is gone", "correct the path, and run again"
    ),
    _known(
        r"No FileSystem for scheme \"?([a-z0-9+.-]{1,20})|UNSUPPORTED_FILE_SYSTEM",
        "Spark has no file system {0}:",
        "name its package in engine.packages, such as org.apache.hadoop:hadoop-aws for s3a",
    ),
    _known(
        r"(?:ClassNotFoundException: (?:Class )?(org\.apache\.hadoop\.fs\.[\w.$]+))",
        "Spark has no file system of class {0}",
        "name its package in engine.packages",
    ),
    _known(
        r"DATA_SOURCE_NOT_FOUND[^\n]*?: ?(\w{1,40})",
        "Spark cannot read {0}",
        "name its package in engine.packages, such as io.delta:delta-spark_2.13 for delta",
    ),
    _known(
        r"No suitable driver|(?:ClassNotFoundException: (?:[\w.]+\.)?\w*Driver)",
        "Spark has no JDBC driver for this address",
        "name its package in engine.packages, such as org.postgresql:postgresql:42.7.4",
    ),
    _known(r"UnknownHostException: ([\w.-]{1,100})", "no such host {0}", "correct the address"),
    _known(r"Connection refused|ConnectException", "the server does not answer", "check its address"),
    _known(
        r"PARSE_SYNTAX_ERROR[^\n]*near '+([^'\n]{1,40})'",
        "not Spark SQL, near {0}",
        "correct the query or the name of the table; files are named as parquet.`/path`",
    ),
    _known(r"UNRESOLVED_COLUMN[^\n]*?with name " + _NAME, "no column {0}", "correct the name"),
    _known(
        r"DELTA_TABLE_NOT_FOUND|is not a Delta table", "not a Delta table", "correct the path, or the format"
    ),
    _known(
        r"INVALID_(DRIVER|EXECUTOR)_MEMORY|System memory \d+ must be at least",
        "too little memory for Java",
        "raise engine.memory.driver or engine.memory.executor",
    ),
    _known(
        r"unresolved dependency: ([\w.-]{1,100}#[\w.-]{1,100};[\w.-]{1,50})",
        "the package {0} is not found",
        "correct engine.packages, or copy its files to this machine and name them in spark.jars",
    ),
    _known(
        r"JAVA_GATEWAY_EXITED.*\n(?:Exception in thread \"main\" [\w.$]+:|Error:|"
        r"Error occurred during initialization of VM\n)\s*([^\n]{1,200})",
        "Java ended before Spark could start: {0}",
        "correct the settings of the engine",
    ),
    _known(
        r"JAVA_GATEWAY_EXITED",
        "Java ended before Spark could start",
        "engine.memory.driver may be more than the machine has",
    ),
    _known(
        r"All masters are unresponsive|could not connect to (?:the )?master",
        "the master does not answer",
        "start the cluster, or correct engine.master",
    ),
    _known(
        r"Could not parse Master URL|Invalid master",
        "not an address of a cluster",
        'write "local[4]", "spark://host:7077", "yarn" or "k8s://https://host:6443"',
    ),
    _known(
        r"ExecutorLostFailure",
        "executors were lost four times",
        f"look into their logs; if the system ended them for lack of memory, {_MEMORY}",
    ),
)


@contextmanager
def failures(name: str, key: str) -> Iterator[None]:
    """Report an error of Spark inside the block as a user's mistake, without Spark's own text."""
    try:
        with _unlogged():
            yield
    except Mistakes:
        raise
    except Exception as error:
        if not is_of_spark(error):
            raise
        raise explained(error, name, key) from None


@contextmanager
def finally_calling(action: Callable[[], object]) -> Iterator[None]:
    """Call something of Spark at the end of the block; an error of the block has precedence over one of the call."""
    try:
        yield
    except BaseException:
        with suppress(Exception), _unlogged():
            action()
        raise
    with failures("Spark", "engine"):
        action()


@contextmanager
def _unlogged() -> Iterator[None]:
    """Without pyspark's own log of its exceptions, which has stack traces and fragments of queries."""
    from pyspark.logger import PySparkLogger  # noqa: PLC0415

    loggers = [PySparkLogger.getLogger(f"{kind}QueryContextLogger") for kind in ("SQL", "DataFrame")]
    before = [one.disabled for one in loggers]
    for one in loggers:
        one.disabled = True
    try:
        yield
    finally:
        for one, disabled in zip(loggers, before, strict=True):
            one.disabled = disabled


def is_of_spark(error: BaseException) -> bool:
    """Whether an error was raised by Spark, its gateway to Java (also where Java has ended), or a task."""
    return isinstance(error, ConnectionError) or type(error).__module__.split(".")[0] in ("pyspark", "py4j")


def explained(error: BaseException, name: str, key: str, written: str = "") -> Mistakes:
    """The mistake of an error of Spark; ``written``: what Java has written to the terminal."""
    text = f"{_text(error)}\n{written}"
    for known in _KNOWN:
        found = known.pattern.search(text)
        if found:
            parts = [part or "" for part in found.groups()] or [""]
            return mistake(name, key, known.value.format(*parts), known.remedy)
    condition = _condition(error) or _java_class(text) or type(error).__name__
    return mistake(name, key, f"Spark failed ({condition})", "the log of its driver has the reason")


def _text(error: BaseException) -> str:
    """All that Spark and Java report, for the patterns only."""
    parts = [type(error).__name__, str(error)]
    java = getattr(error, "java_exception", None)
    depth = 0
    while java is not None and depth < 20:
        parts.append(str(java.toString()))
        java, depth = java.getCause(), depth + 1
    return "\n".join(parts)


def _condition(error: BaseException) -> str:
    """Spark's name of an error, such as DIVIDE_BY_ZERO."""
    asked = getattr(error, "getCondition", None)
    condition = asked() if callable(asked) else None
    return str(condition) if condition else ""


def _java_class(text: str) -> str:
    found = re.search(r"\b((?:[a-z]\w*\.){2,}[A-Z]\w*(?:Exception|Error))\b", text)
    return found[1] if found else ""
