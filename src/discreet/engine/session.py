"""The Spark session of a run: opened by the programme's settings or given by the caller, and checked before any work.

What is checked: pyspark and Java are there, the cluster answers within a bounded time, and every executor that it has
by then runs the same code of this package on the same versions of the libraries that decide the bytes of a release.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from discreet.engine.daemon import MODULES, loaded_here
from discreet.engine.failures import explained, failures, finally_calling, is_of_spark
from discreet.errors import Mistakes, Problem, mistake
from discreet.programme.engine import WAIT, EngineRule

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from pyspark.sql import SparkSession

JAVA = 17
PYSPARK = 4
DAEMON = "discreet.engine.daemon"
SHIP = "ship the package of the driver to them: docs/how-to/move-to-spark.md"

_KEY = "engine.kind"
_STDERR = 2
_CONNECT = 5  # seconds for the address of a standalone master
_SAME = ("numpy", "numba", "pyarrow")  # their versions decide the bytes of files and the code of kernels
_DEFAULTS = {
    "spark.master": "local[*]",
    "spark.app.name": "discreet",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_LOG_LEVEL = {"spark.log.level": "ERROR"}  # where the office has its own configuration of Spark's log
_MASTER = re.compile(r"local(\[([1-9]\d*|\*)(,\d+)?\])?$|local-cluster\[|spark://|yarn$|k8s://")
_HADOOP_SETTINGS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
_DAEMON = "spark.python.daemon.module"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_SHORT_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_REQUIRED = {
    "spark.sql.session.timeZone": "UTC",  # a date must not depend on where the driver runs
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",  # the code 01 of a folder is no number
}


def require_spark() -> None:
    """Refuse a machine without pyspark 4 or without Java 17, in one line each."""
    # pyspark repeats it whenever Arrow is used; nothing uses pandas through it
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    try:
        import pyspark  # noqa: PLC0415
        import pyspark.sql  # noqa: PLC0415
    except ImportError:
        raise mistake("Spark", _KEY, "pyspark is not installed", "pip install 'discreet[spark]'") from None
    if int(pyspark.__version__.partition(".")[0]) < PYSPARK:
        value = f"pyspark {pyspark.__version__}, and {PYSPARK} or newer is required"
        raise mistake("Spark", _KEY, value, "pip install --upgrade 'discreet[spark]'")
    java = _java(os.environ)
    if java is None:
        where = "in JAVA_HOME" if os.environ.get("JAVA_HOME") else "on this machine"
        remedy = f"install a Java runtime, version {JAVA} or newer, or set JAVA_HOME to one"
        raise mistake("Spark", _KEY, f"no Java {where}", remedy)
    version = _java_version(java)
    if version is None or version < JAVA:
        found = "an unknown version of Java" if version is None else f"Java {version}"
        remedy = f"install Java {JAVA} or newer, or set JAVA_HOME to one"
        raise mistake("Spark", _KEY, f"{java} is {found}, and {JAVA} or newer is required", remedy)


def _java(environment: Mapping[str, str]) -> str | None:
    """The Java that Spark would start, as its own scripts choose it."""
    if home := environment.get("JAVA_HOME"):
        return shutil.which(str(Path(home) / "bin" / "java"))
    return shutil.which("java", path=environment.get("PATH"))


def _java_version(java: str) -> int | None:
    """17 of ``openjdk version "17.0.15"``, 8 of ``"1.8.0_392"``."""
    try:
        asked = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', asked.stderr + asked.stdout)
    return int(found[1]) if found else None


@contextmanager
def open_session(rule: EngineRule) -> Iterator[SparkSession]:
    """A session of this process by the settings of a programme, checked; it is stopped at the end of the block."""
    require_spark()
    from pyspark.sql import SparkSession  # noqa: PLC0415

    if os.environ.get("SPARK_REMOTE") or os.environ.get("SPARK_CONNECT_MODE_ENABLED"):
        raise _connect("SPARK_REMOTE is set")
    if SparkSession.getActiveSession() is not None or _context_exists():
        remedy = "pass it: protect(.., engine=SparkEngine(spark))"
        raise mistake("Spark", _KEY, "this process has a Spark session already", remedy)
    settings = {**_DEFAULTS, **_office_defaults(), **rule.settings}
    master = settings["spark.master"]
    settings = {**_with_java_options(settings), **_REQUIRED}
    require_master(master)
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        spark = _started(builder, master)
    finally:
        # what a session was built with must not reach the next one of this process
        builder._options.clear()  # noqa: SLF001
    with finally_calling(spark.stop):
        yield checked_session(spark, rule.wait)


def _started(builder: SparkSession.Builder, master: str) -> SparkSession:
    written: list[str] = []
    try:
        with _java_output(written), _python_of(master):
            spark = builder.getOrCreate()
    except Exception as error:
        if not is_of_spark(error):
            raise
        raise explained(error, f"Spark at {master}", "engine.master", "".join(written)) from None
    # where Java ends during a run this thread of pyspark would write a traceback; the run itself reports it
    server: Any = spark.sparkContext._accumulatorServer  # noqa: SLF001
    server.handle_error = lambda *_: None
    return spark


@contextmanager
def _java_output(written: list[str]) -> Iterator[None]:
    """Collect the lines that Java writes to the terminal while it starts; later ones are passed on to it."""
    started = Event()
    read, write = os.pipe()
    terminal = os.dup(_STDERR)

    def pass_on() -> None:
        with os.fdopen(read, errors="replace") as output, os.fdopen(terminal, "w") as shown:
            for line in output:
                if started.is_set():
                    shown.write(line)
                    shown.flush()
                else:
                    written.append(line)

    passing = Thread(target=pass_on, daemon=True)
    passing.start()
    os.dup2(write, _STDERR)
    os.close(write)
    try:
        yield
        started.set()
    finally:
        os.dup2(terminal, _STDERR)  # Java has its own end of the pipe
        if not started.is_set():
            passing.join(1)


@contextmanager
def _python_of(master: str) -> Iterator[None]:
    """On this machine tasks run in the environment of this command, and load what it has loaded.

    Spark would start any ``python3``, and its workers one after another would load everything.
    """
    wanted = {"PYSPARK_PYTHON": sys.executable, MODULES: loaded_here()} if _is_local(master) else {}
    added = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def _is_local(master: str) -> bool:
    return master.startswith("local")


def _context_exists() -> bool:
    from pyspark import SparkContext  # noqa: PLC0415

    return SparkContext._active_spark_context is not None  # noqa: SLF001


def _office_defaults() -> dict[str, str]:
    """What ``spark-defaults.conf`` of this machine declares of the keys that have a default here."""
    folder = os.environ.get("SPARK_CONF_DIR") or str(Path(os.environ.get("SPARK_HOME", "")) / "conf")
    try:
        lines = (Path(folder) / "spark-defaults.conf").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    pairs = (
        re.split(r"[\s=]+", line.strip(), maxsplit=1) for line in lines if not line.lstrip().startswith("#")
    )
    known = (*_DEFAULTS, *_LOG_LEVEL, _DAEMON, _JAVA_OPTIONS)
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and pair[0] in known}


def _with_java_options(settings: Mapping[str, str]) -> dict[str, str]:
    """Options of Java and the daemon of workers, unless the office has its own.

    Spark's driver writes only errors to the terminal. Java on this machine compiles as little as it can: it moves
    arrays that others have counted, for some minutes, and its own optimiser would take more CPU time than that.
    """
    local = _is_local(settings["spark.master"])
    found = {_DAEMON: DAEMON, **settings} if local else dict(settings)
    own = Path(__file__).with_name("log4j2.properties")
    chosen = [_SHORT_JAVA] if local else []
    if "SPARK_CONF_DIR" not in os.environ and "SPARK_HOME" not in os.environ and own.is_file():
        chosen.append(f"-Dlog4j2.configurationFile={own.as_uri()}")
    else:
        found = {**_LOG_LEVEL, **found}
    return {_JAVA_OPTIONS: " ".join(chosen), **found} if chosen else found


def require_master(master: str) -> None:
    """Refuse what is no cluster before Java is started, and a standalone master that does not answer.

    Spark itself would try for minutes.
    """
    if not _MASTER.match(master):
        remedy = 'write "local[4]", "spark://host:7077", "yarn" or "k8s://https://host:6443"'
        raise mistake("Spark", "engine.master", f"{master} is not a cluster", remedy)
    if master == "yarn" and not any(map(os.environ.get, _HADOOP_SETTINGS)):
        value = f"yarn, and neither {' nor '.join(_HADOOP_SETTINGS)} is set"
        raise mistake("Spark", "engine.master", value, "set one to the folder of the cluster's settings")
    if not master.startswith("spark://"):
        return
    tried = master.removeprefix("spark://").split(",")
    for address in tried:
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT).close()
        except (OSError, ValueError):
            continue
        return
    remedy = "start the cluster, or correct the address: spark://host:7077"
    raise mistake("Spark", "engine.master", f"{master} does not answer", remedy)


def checked_session(spark: SparkSession, wait: int = WAIT) -> SparkSession:
    """A session that can be used: not of Spark Connect, alive, with executors that run the same code."""
    require_classic(spark)
    problems = list(_differences(_here(), _asked(spark, wait)))
    if problems:
        raise Mistakes(problems)
    return spark


@contextmanager
def required_settings(spark: SparkSession) -> Iterator[None]:
    """The settings that decide values, as long as the block lasts; a session of the caller then has its own again."""
    before = {name: str(spark.conf.get(name)) for name in _REQUIRED}
    _set_all(spark, _REQUIRED)
    try:
        yield
    finally:
        with suppress(Exception):  # of a session that has ended
            _set_all(spark, before)


def _set_all(spark: SparkSession, settings: Mapping[str, str]) -> None:
    for name, value in settings.items():
        spark.conf.set(name, value)


def require_classic(spark: SparkSession) -> None:
    """Refuse a session of Spark Connect, and one that is stopped."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise _connect("the session is of Spark Connect")
    if spark.sparkContext._jsc is None or spark.sparkContext._jsc.sc().isStopped():  # noqa: SLF001
        raise mistake("Spark", _KEY, "the session is stopped", "open a new one")


def _connect(what: str) -> Mistakes:
    remedy = "use a classic session: keys reach executors as a broadcast, which Spark Connect does not have"
    return mistake("Spark", _KEY, f"{what}, and Spark Connect is not supported", remedy)


@dataclass(frozen=True, order=True)
class Installed:
    """What one Python process has: its machine, the digest of this package's code, versions of libraries."""

    host: str
    python: str
    code: str  # empty where the package is missing
    versions: tuple[str, ...]  # in the order of ``_SAME``; empty texts where missing


def _here() -> Installed:
    return Installed(*_question()())


def _question() -> Callable[[], tuple[str, str, str, tuple[str, ...]]]:
    """A function that executors can run without this package: it is sent as code, so it imports what it uses."""
    names = _SAME

    def ask() -> tuple[str, str, str, tuple[str, ...]]:
        import hashlib  # noqa: PLC0415
        import platform  # noqa: PLC0415
        from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415
        from importlib.resources import files  # noqa: PLC0415

        def version_of(name: str) -> str:
            try:
                return version(name)
            except PackageNotFoundError:
                return ""

        def sources(folder: Traversable, place: str) -> Iterator[tuple[str, Traversable]]:
            for entry in folder.iterdir():
                if entry.is_dir():
                    yield from sources(entry, f"{place}/{entry.name}")
                elif entry.name.endswith(".py"):
                    yield f"{place}/{entry.name}", entry

        digest = hashlib.sha256()
        try:
            found = sorted(sources(files("discreet"), ""), key=lambda one: one[0])
        except ModuleNotFoundError:
            found = []
        for place, entry in found:
            digest.update(place.encode())
            digest.update(hashlib.sha256(entry.read_bytes()).digest())
        code = digest.hexdigest()[:16] if found else ""
        return platform.node(), platform.python_version(), code, tuple(version_of(name) for name in names)

    return ask


def _answer(
    ask: Callable[[], tuple[str, str, str, tuple[str, ...]]],
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The task that asks; like the question it is sent as code."""

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        import json  # noqa: PLC0415

        import pyarrow as pa  # noqa: PLC0415

        for _ in batches:
            pass
        yield pa.RecordBatch.from_arrays([pa.array([json.dumps(ask())], pa.string())], names=["answer"])

    return task


def _asked(spark: SparkSession, wait: int) -> list[Installed]:
    """What the executors have that are there; raises where no task has run within the time."""
    context = spark.sparkContext
    tasks = 2 * max(context.defaultParallelism, 1)
    ask, group = _question(), "discreet: what executors have installed"
    found: list[Installed] = []
    raised: list[Exception] = []

    def run() -> None:
        context.setJobGroup(group, group, interruptOnCancel=True)
        try:
            with failures("Spark", "executors"):
                told = spark.range(0, tasks, 1, tasks).mapInArrow(_answer(ask), "answer string").collect()
            found.extend(
                Installed(host, python, code, tuple(versions))
                for host, python, code, versions in map(json.loads, {row.answer for row in told})
            )
        except Exception as error:
            raised.append(error)

    asking = Thread(target=run, daemon=True)
    asking.start()
    asking.join(wait)
    if asking.is_alive():
        context.cancelJobGroup(group)
        value = f"no task was run within {wait} seconds"
        remedy = (
            "check that the cluster has free executors of this memory, or allow more time with engine.wait"
        )
        raise mistake(f"Spark at {context.master}", "engine.wait", value, remedy)
    if raised:
        raise raised[0]
    return sorted(set(found))


def _differences(here: Installed, found: list[Installed]) -> Iterator[Problem]:
    missing = sorted({one.host for one in found if not one.code})
    if missing:
        yield Problem("Spark", "executors", f"no package discreet on {_listed(missing)}", SHIP)
    other = sorted({one.host for one in found if one.code and one.code != here.code})
    if other:
        value = f"another version of discreet on {_listed(other)}"
        yield Problem("Spark", "executors", value, SHIP)
    for k, name in enumerate(_SAME):
        odd = sorted({one.versions[k] or "none" for one in found if one.versions[k] != here.versions[k]})
        if odd:
            value = f"{name} {', '.join(odd)} on executors, and {here.versions[k]} on the driver"
            remedy = "install the same version: it decides the bytes of a release"
            yield Problem("Spark", "executors", value, remedy)


def _listed(hosts: list[str]) -> str:
    return ", ".join(hosts[:3]) + (f" and {len(hosts) - 3} other hosts" if len(hosts) > 3 else "")
