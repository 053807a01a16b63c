"""A cluster with a master and two executors: the same bytes when executors or the driver are killed; nothing leaks."""

import base64
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pytest

from discreet.engine.spark import CSV_BYTES
from discreet.io.secret import make_secret
from discreet.maths.cells.keys import derive
from discreet.release.verify import verify
from tests.engine.java import require_java
from tests.engine.small_town import divide, make_town, persons, write_text
from tests.engine.standalone_cluster import Cluster, running_cluster
from tests.engine.test_conformance import SWAP
from tests.pipeline.conftest import contents
from tests.waiting import PATIENCE, until

ENGINE = """
[engine]
kind = "spark"
master = "{master}"
shuffle_partitions = 3
memory = {{ driver = "512m", executor = "512m" }}
wait = 300
spark.driver.host = "127.0.0.1"
spark.driver.bindAddress = "127.0.0.1"
spark.eventLog.enabled = true
spark.eventLog.compress = false
spark.eventLog.rolling.enabled = false
spark.eventLog.dir = "{events}"
"""
ENDED = "the Spark session ended during the run; run it again; the log of the driver has the reason"
JOB = "SparkListenerJobStart"
STAGE = re.compile(r'"SparkListenerStageSubmitted","Stage Info":{"Stage ID":(\d+)')


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    require_java()
    with running_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


class Office:
    """A programme for a cluster and its embedded twin, a secret, and runs of the command."""

    def __init__(
        self,
        folder: Path,
        cluster: Cluster,
        more: str = "",
        table: pa.Table | None = None,
        parts: int = 7,
        rule: str = "",
    ) -> None:
        self.folder, self.events = folder, folder / "events"
        self.events.mkdir(parents=True)
        self.twin = make_town(folder, more=rule)
        engine = ENGINE.format(master=cluster.master, events=self.events.as_uri())
        self.programme = folder / "cluster.toml"
        name = '[release]\nname = "town"\n'
        self.twin.write_text(self.twin.read_text() + name)
        self.programme.write_text(self.twin.read_text() + engine + more)
        divide(persons() if table is None else table, folder, parts, empty=True)
        self.secret = folder / "office.key"
        make_secret(self.secret)

    def command(self, programme: Path, out: Path, secret: Path | None = None) -> list[str]:
        given = [
            sys.executable,
            "-m",
            "discreet",
            "protect",
            programme,
            "--secret",
            secret or self.secret,
            "--out",
            out,
        ]
        return [str(one) for one in (*given, "--quiet")]

    @staticmethod
    def environment() -> dict[str, str]:
        """Executors run the Python of the tests unless a test has chosen another; Spark would start any python3."""
        return {"PYSPARK_PYTHON": sys.executable, **os.environ}

    def start(self, out: Path, secret: Path | None = None) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(self.programme, out, secret),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment(),
        )

    def run(self, programme: Path, out: Path, secret: Path | None = None) -> dict[str, bytes]:
        given = self.command(programme, out, secret)
        ran = subprocess.run(
            given, capture_output=True, text=True, timeout=PATIENCE, check=False, env=self.environment()
        )
        assert ran.returncode == 0, ran.stderr
        assert [line for line in ran.stderr.splitlines() if not line.startswith("Note: ")] == []
        return contents(out)

    def stages(self) -> set[str]:
        """The stages that the runs of this office have begun so far; one that is begun again counts once."""
        texts = [path.read_text(errors="ignore") for path in self.events.iterdir()]
        return {number for text in texts for number in STAGE.findall(text)}

    def jobs(self) -> int:
        """How many jobs the runs of this office have begun so far, by their event logs."""
        return sum(path.read_text(errors="ignore").count(f'"{JOB}"') for path in self.events.iterdir())


@pytest.mark.long
def test_executors_killed_in_every_stage_change_no_byte_and_nothing_leaks(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Pairing for swaps, counting, adding up and finishing; what waits on disks is encrypted."""
    office = Office(tmp_path / "office", cluster, "spark.io.encryption.enabled = true\n", rule=SWAP)
    wanted = office.run(office.twin, tmp_path / "embedded")
    out = tmp_path / "release"
    running = office.start(out)
    killed: set[int] = set()
    seen = until(office.stages)  # the first asks executors what they have installed
    while running.poll() is None:
        until(lambda before=seen: office.stages() > before or running.poll() is not None)  # type: ignore[misc]
        if running.poll() is None:
            seen = office.stages()
            killed.add(cluster.kill_an_executor(len(seen)))
    _, wrong = running.communicate(timeout=PATIENCE)
    assert running.returncode == 0, wrong
    assert len(killed) >= 4
    assert contents(out) == wanted
    assert verify(out).passed
    _require_no_leak(office, cluster)


def _require_no_leak(office: Office, cluster: Cluster) -> None:
    """Neither the secret, a key that follows from it, nor the id of a record is in any log of Spark."""
    secret = office.secret.read_bytes().strip()
    raw = bytes.fromhex(secret.decode()) if re.fullmatch(rb"[0-9a-f]{64}", secret) else secret
    keys = [raw, *(derive(raw, name) for name in ("manifest", "record-key/persons", "fingerprint"))]
    forms = [form for key in keys for form in (key, key.hex().encode(), base64.b64encode(key))]
    logs = [path for path in (*office.events.rglob("*"), *cluster.folder.rglob("*")) if path.is_file()]
    texts = [path for path in logs if path.suffix in ("", ".log") or path.name in ("stderr", "stdout")]
    assert len(texts) > 4
    for path in texts:
        content = path.read_bytes()
        assert not any(form in content for form in (*forms, secret)), path
        assert re.search(rb"\bP00\d{3}\b", content) is None, path


@pytest.mark.long
@pytest.mark.parametrize("whole", [True, False])
def test_a_killed_driver_leaves_the_old_release_and_the_next_run_makes_the_new_one(
    cluster: Cluster, tmp_path: Path, whole: bool
) -> None:
    """The driver's Python is killed, or only its Java, so that Python can report it."""
    office = Office(tmp_path / "office", cluster)
    other = tmp_path / "other.key"
    make_secret(other)
    wanted = office.run(office.twin, tmp_path / "embedded")
    out = tmp_path / "release"
    old = office.run(office.twin, out, other)
    running = office.start(out)
    until(lambda: office.jobs() >= 3 or running.poll() is not None)
    (java,) = [child for child in psutil.Process(running.pid).children() if child.name() == "java"]
    os.kill(running.pid if whole else java.pid, signal.SIGKILL)
    _, shown = running.communicate(timeout=PATIENCE)
    if whole:
        assert running.returncode == -signal.SIGKILL
    else:
        assert running.returncode == 2
        assert [line.rpartition(": ")[2] for line in shown.splitlines()] == [ENDED]
    assert contents(out) == old
    until(lambda: not cluster.executors())  # Spark's Java ends with its driver
    assert office.run(office.programme, out) == wanted


@pytest.mark.long
def test_too_little_memory_names_the_setting(cluster: Cluster, tmp_path: Path) -> None:
    office = Office(tmp_path / "office", cluster, 'spark.executor.pyspark.memory = "64m"\n')
    out = tmp_path / "release"
    running = office.start(out)
    _, wrong = running.communicate(timeout=PATIENCE)
    assert running.returncode == 2, wrong
    lines = [line for line in wrong.splitlines() if "memory" in line]
    assert any("spark.executor.memoryOverhead" in line for line in lines), wrong
    assert "Traceback" not in wrong
    assert not out.exists()


@pytest.mark.long
def test_ten_thousand_small_files_one_huge_file_and_half_the_people_in_one_place(
    cluster: Cluster, tmp_path: Path
) -> None:
    """As many empty files beside them; a CSV file that is divided has the records of the Parquet files."""
    random = np.random.default_rng(3)
    town = persons(skewed=True)
    many = pa.concat_tables([town] * 1500)
    ids = pa.array([f"Q{k:07}" for k in range(len(many))])
    many = many.set_column(0, "pid", ids).take(pa.array(random.permutation(len(many))))
    secret = tmp_path / "one.key"
    make_secret(secret)
    found = []
    for parts, name in ((1, "huge"), (10_000, "small"), (0, "text")):
        office = Office(tmp_path / name, cluster, table=many, parts=parts)
        if not parts:
            path = tmp_path / name / "persons.csv"
            write_text(many, path)
            declared = office.programme.read_text()
            office.programme.write_text(declared.replace('persons = "persons"', 'persons = "persons.csv"'))
            assert path.stat().st_size > CSV_BYTES
        made = office.run(office.programme, tmp_path / f"{name} release", secret)
        found.append({place: content for place, content in made.items() if place.endswith(".parquet")})
    assert found[0] == found[1] == found[2]
    assert found[0]
