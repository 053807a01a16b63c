"""Opening a session: what is missing is reported in one line, and executors must run the same code."""

import gc
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import discreet
from discreet.engine import session as opened
from discreet.engine.failures import explained, failures, finally_calling
from discreet.engine.session import Installed, checked_session, open_session, require_master, require_spark
from discreet.errors import Mistakes
from discreet.programme.engine import EngineRule
from discreet.programme.engine_kind import EngineKind
from tests.engine.java import require_java
from tests.waiting import PATIENCE


def fake_java(folder: Path, version: str) -> Path:
    """A program that answers ``-version`` as that version of Java does."""
    (folder / "bin").mkdir(parents=True)
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2024-01-16' >&2\n")
    java.chmod(0o755)
    return folder


def test_no_java_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        Mistakes, match=r"^Spark: engine\.kind: no Java on this machine; install .* 17 or newer"
    ):
        require_spark()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(Mistakes, match="no Java in JAVA_HOME"):
        require_spark()


@pytest.mark.parametrize(("version", "number"), [("1.8.0_392", "8"), ("11.0.22", "11"), ("16", "16")])
def test_an_old_java_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, number: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "jdk", version)))
    with pytest.raises(
        Mistakes, match=rf"bin/java is Java {number}, and 17 or newer is required; .*JAVA_HOME"
    ):
        require_spark()


@pytest.mark.long
def test_tests_without_a_usable_java_report_loudly_that_spark_is_not_tested(tmp_path: Path) -> None:
    """As ``make test`` runs them: the process that prints the summary does not load the conftest of a folder."""
    tests = Path(__file__).parents[1]
    given = ["-q", "-n", "1", "-p", "no:cacheprovider", "-k", "test_a_session_is_open_and_checked"]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *given, "--ignore-glob", f"{tests}/[!e]*", "tests"],
        env={**os.environ, "JAVA_HOME": str(fake_java(tmp_path / "jdk", "11.0.22"))},
        cwd=tests.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    assert "!!!! Spark !!!!" in ran.stdout
    assert re.search(r"^SPARK IS NOT TESTED HERE: .*is Java 11, and 17 or newer", ran.stdout, re.MULTILINE)
    assert "1 skipped" in ran.stdout


@pytest.mark.parametrize("version", ["17.0.15", "21", "25-ea"])
def test_a_new_java_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "jdk", version)))
    require_spark()


def test_an_absent_pyspark_is_reported_and_is_imported_by_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "pyspark.py").write_text("raise ImportError('absent')\n")
    commands = ", ".join(f"discreet.cli.{name}" for name in ("protect", "audit", "check", "swap", "verify"))
    asked = f"import {commands}, discreet.engine.spark, discreet.engine.session as s\ns.require_spark()"
    source = str(Path(discreet.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), source])}
    ran = subprocess.run(
        [sys.executable, "-c", asked], env=environment, capture_output=True, text=True, check=False
    )
    assert ran.stderr.splitlines()[-1].endswith(
        "Spark: engine.kind: pyspark is not installed; pip install 'discreet[spark]'"
    )


def test_a_master_that_does_not_answer_is_reported_at_once() -> None:
    with pytest.raises(
        Mistakes, match=r"engine\.master: spark://127\.0\.0\.1:1 does not answer; start the cluster"
    ):
        require_master("spark://127.0.0.1:1")
    for master in ("local", "local[2]", "local[*]", "local[2,3]", "k8s://https://host:6443"):
        require_master(master)


@pytest.mark.parametrize("master", ["foo", "local[0]", "local[x]", "mesos://host", "http://host:7077", ""])
def test_what_is_no_cluster_is_refused_before_java_is_started(master: str) -> None:
    with pytest.raises(
        Mistakes, match=r'engine\.master: .* is not a cluster; write "local\[4\]", "spark://host'
    ):
        require_master(master)


def test_yarn_needs_the_settings_of_its_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    with pytest.raises(Mistakes, match="yarn, and neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set; set one"):
        require_master("yarn")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    require_master("yarn")


START = """
import os, sys
from discreet.engine.session import open_session
from discreet.errors import Mistakes
from discreet.programme.engine import EngineRule
from discreet.programme.engine_kind import EngineKind

settings = {"spark.master": "local[1]", "spark.driver.host": "127.0.0.1", **dict([sys.argv[1].split("=")])}
try:
    with open_session(EngineRule(EngineKind.SPARK, settings, 300)) as spark:
        spark._jvm.System.err.println("from Java, later")
except Mistakes as wrong:
    print(wrong)
os.write(2, b"from Python\\n")
"""


@pytest.mark.parametrize(
    ("setting", "message", "shown"),
    [
        (
            "spark.executor.cores=x",
            r"before Spark could start: Executor cores must be a positive number; correct",
            ["from Python"],
        ),
        pytest.param("spark.app.name=town", "", ["from Java, later", "from Python"], marks=pytest.mark.long),
    ],
)
def test_java_writes_nothing_to_the_terminal_while_it_starts(
    setting: str, message: str, shown: list[str]
) -> None:
    """Neither its notices nor its stack traces; what it writes later is shown."""
    require_java()
    ran = subprocess.run(
        [sys.executable, "-c", START, setting], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    assert re.search(message, ran.stdout)
    assert ran.stdout.count("\n") == (1 if message else 0)
    assert ran.stderr.splitlines() == shown


def test_spark_connect_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    remote = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(Mistakes, match="Spark Connect is not supported; use a classic session"):
        checked_session(remote)
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setattr(opened, "require_spark", lambda: None)
    monkeypatch.setenv("SPARK_REMOTE", "sc://host")
    with pytest.raises(Mistakes, match="SPARK_REMOTE is set"), open_session(EngineRule(EngineKind.SPARK)):
        pass


def test_the_same_package_has_the_same_digest_in_an_archive(tmp_path: Path) -> None:
    """A package that is shipped as a zip file is recognised and can be loaded; one changed byte is not."""
    package = Path(discreet.__file__).parent
    archive = tmp_path / "discreet.zip"
    with zipfile.ZipFile(archive, "w") as zipped:
        for path in sorted(package.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                zipped.write(path, path.relative_to(package.parent))
    here = opened._here()
    assert here.code
    code = "import sys; sys.path.insert(0, sys.argv[1]); sys.path.insert(0, sys.argv[2])\n"
    code += "from discreet.engine.session import _here; print(_here().code)\n"
    load = "import discreet.engine.tasks, discreet.pipeline.protect as protect; print(protect.__file__)"
    ran = subprocess.run(
        [sys.executable, "-c", code + load, str(package.parent), str(archive)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "numba")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.split() == [here.code, str(archive / "discreet" / "pipeline" / "protect.py")]
    copy = tmp_path / "copy" / "discreet"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "errors.py").write_text((copy / "errors.py").read_text() + "\n")
    ran = subprocess.run(
        [sys.executable, "-c", code, str(package.parent), str(copy.parent)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.strip() not in ("", here.code)


def test_differences_of_executors_are_reported() -> None:
    here = Installed("driver", "3.11.2", "aa", ("2.4", "0.68", "26.0"))
    found = [
        Installed("one", "3.11.2", "", ("2.4", "0.68", "26.0")),
        Installed("two", "3.11.2", "bb", ("2.4", "0.68", "25.0")),
        here,
    ]
    texts = [str(problem) for problem in opened._differences(here, found)]
    assert [text.partition(";")[0] for text in texts] == [
        "Spark: executors: no package discreet on one",
        "Spark: executors: another version of discreet on two",
        "Spark: executors: pyarrow 25.0 on executors, and 26.0 on the driver",
    ]
    assert list(opened._differences(here, [here])) == []


def test_a_session_is_open_and_checked(spark: Any) -> None:
    assert checked_session(spark) is spark
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    with opened.required_settings(spark):
        assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"  # as the caller has set it
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert spark.conf.get("spark.ui.enabled") == "false"
    assert opened._asked(spark, 300) == [opened._here()]
    with (
        pytest.raises(Mistakes, match=r"has a Spark session already; pass it"),
        open_session(EngineRule(EngineKind.SPARK)),
    ):
        pass


def test_an_executor_with_other_code_is_refused(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        opened, "_here", lambda: Installed("driver", "3", "other", opened._asked(spark, 300)[0].versions)
    )
    with pytest.raises(Mistakes, match=r"another version of discreet on .*; ship the package"):
        checked_session(spark)


def test_a_cluster_without_free_executors_is_not_waited_for_forever(spark: Any) -> None:
    with pytest.raises(Mistakes, match=r"engine\.wait: no task was run within 0 seconds; .*engine\.wait"):
        checked_session(spark, 0)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT * FROM nowhere.persons", "no table `nowhere`.`persons` in the catalog"),
        ("SELEC 1", "not Spark SQL, near SELEC"),
        ("SELECT age FROM range(3)", "no column age"),
        ("SELECT * FROM parquet.`/no/such/folder`", "no such path file:/no/such/folder"),
        ("SELECT raise_error('hunter2')", r"Spark failed \(USER_RAISED_EXCEPTION\)"),
    ],
)
def test_errors_of_spark_become_one_line(
    spark: Any, query: str, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Mistakes, match=rf"^here: key: {message}") as refused, failures("here", "key"):
        spark.sql(query).collect()
    assert "hunter2" not in str(refused.value)
    assert "\n" not in str(refused.value)
    assert "Traceback" not in capfd.readouterr().err


def test_an_error_of_a_task_is_not_quoted(spark: Any) -> None:
    def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise ValueError("person 4711")

    with pytest.raises(Mistakes) as refused, failures("here", "key"):
        spark.range(0, 1, 1, 1).mapInArrow(fail, "id long").collect()
    assert "4711" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        (
            "Job aborted: ExecutorLostFailure (executor 1 exited) java.lang.OutOfMemoryError: Java heap",
            "memory.executor",
        ),
        ("ExecutorLostFailure: Command exited with code 52", "engine.memory.executor"),
        ("Container killed by YARN for exceeding physical memory limits. 5.5 GB of 5.5 GB", "memoryOverhead"),
        ("Python worker exited unexpectedly (crashed)", "spark.executor.memoryOverhead"),
        ("[INVALID_DRIVER_MEMORY] System memory 64487424 must be at least", "engine.memory.driver"),
        ("numpy._core._exceptions._ArrayMemoryError: Unable to allocate", "memoryOverhead"),
        ("ImportError: _multiarray_umath.so: failed to map segment from shared object", "memoryOverhead"),
    ],
)
def test_too_little_memory_names_the_setting(text: str, setting: str) -> None:
    assert setting in str(explained(RuntimeError(text), "Spark", "executors"))


def test_a_session_that_ends_during_a_run_is_one_line_whatever_else_then_fails() -> None:
    def gone() -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    with (
        pytest.raises(
            Mistakes, match=r"^Spark: engine: the Spark session ended during the run; run it again"
        ),
        finally_calling(gone),
    ):
        pass
    with pytest.raises(KeyError), finally_calling(gone):
        raise KeyError("what happened first")
    called: list[int] = []
    with finally_calling(lambda: called.append(1)):
        pass
    assert called == [1]


def test_java_and_workers_on_this_machine_are_set_up_for_short_runs_unless_the_office_has_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    monkeypatch.delenv("SPARK_HOME", raising=False)
    options, daemon = "spark.driver.extraJavaOptions", "spark.python.daemon.module"
    found = opened._with_java_options({"spark.master": "local[2]"})
    assert "TieredStopAtLevel=1" in found[options]
    assert "log4j2" in found[options]
    assert found[daemon] == "discreet.engine.daemon"
    found = opened._with_java_options({"spark.master": "spark://host:7077"})
    assert "Tiered" not in found[options]
    assert daemon not in found
    own = {"spark.master": "local[2]", options: "-Xint", daemon: "own"}
    assert opened._with_java_options(own) == own


def test_workers_are_forked_from_a_process_with_one_thread_that_has_loaded_everything(spark: Any) -> None:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        parent = Path(f"/proc/{os.getppid()}")
        name = parent.joinpath("cmdline").read_text().replace("\0", " ")
        threads, frozen = len(list(parent.joinpath("task").iterdir())), gc.get_freeze_count()
        archive = "pyspark.zip" in str(sys.modules["pyspark"].__file__)
        told = json.dumps([name, threads, frozen, archive, "discreet.population.reading" in sys.modules])
        yield pa.RecordBatch.from_arrays([pa.array([told])], names=["told"])

    if not Path("/proc/self/task").exists():
        pytest.skip("no /proc on this system")
    (row,) = spark.range(0, 1, 1, 1).mapInArrow(task, "told string").collect()
    name, threads, frozen, archive, loaded = json.loads(row.told)
    assert "discreet.engine.daemon" in name
    assert threads == 1
    assert frozen > 10_000
    assert not archive
    assert loaded


def test_tasks_on_this_machine_run_in_the_environment_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that is started by its path, without an activated environment, has another ``python3`` in its PATH."""
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    with opened._python_of("local[2]"):
        assert os.environ["PYSPARK_PYTHON"] == sys.executable
    assert "PYSPARK_PYTHON" not in os.environ
    with opened._python_of("spark://127.0.0.1:7077"):
        assert "PYSPARK_PYTHON" not in os.environ
    monkeypatch.setenv("PYSPARK_PYTHON", "own")
    with opened._python_of("local[2]"):
        assert os.environ["PYSPARK_PYTHON"] == "own"
