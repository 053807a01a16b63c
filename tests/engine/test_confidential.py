"""What Spark must not see, and what the driver must not: secret, keys and ids are in nothing that Spark writes, and
neither records nor cells reach the driver."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.engine.spark import SparkEngine
from discreet.errors import Mistakes
from discreet.maths.cells.keys import derive
from discreet.pipeline.protect import protect
from discreet.programme.programme import load_programme
from tests.engine.small_town import divide, make_town, persons
from tests.engine.test_conformance import SWAP
from tests.pipeline.conftest import NOON

SECRET = bytes(range(100, 132))  # of no other test
PLACES = """
[population]
persons = "persons.parquet"
person_id = "pid"
[variables.PLACE]
column = "place"
codelist = "place.csv"
[[cubes]]
id = "places"
axes = ["PLACE"]
[noise]
kind = "cell-key"
V = 2.0
D = 5
js = 0
"""
KEYS = (SECRET, *(derive(SECRET, name) for name in ("manifest", "record-key/persons", "fingerprint")))


def written(secret: bytes) -> set[bytes]:
    """Ways in which bytes can be in a file."""
    return {
        secret,
        secret.hex().encode(),
        base64.b64encode(secret),
        repr(secret)[2:-1].encode(),
        str(list(secret))[1:-1].encode(),
    }


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_neither_secret_nor_keys_nor_ids_are_in_anything_that_spark_writes(
    spark: Any, spark_folder: Path, tmp_path: Path
) -> None:
    programme = make_town(tmp_path / "town", more=SWAP)
    divide(persons(), tmp_path / "town", 3)
    before = b"".join(files(spark_folder / "events").values())
    protect(
        load_programme(programme),
        SECRET,
        tmp_path / "release",
        tmp_path / "private.json",
        clock=lambda: NOON,
        engine=SparkEngine(spark),
    )
    logs = files(spark_folder / "events")
    told = b"".join(logs.values())
    assert len(told) > len(before) + 10_000
    assert b"SparkListenerTaskEnd" in told
    settings = {Path("settings"): repr(spark.sparkContext.getConf().getAll()).encode()}
    forbidden = [form for key in KEYS for form in written(key)]
    for path, content in {**logs, **files(Path(spark.sparkContext._temp_dir)), **settings}.items():
        assert not [one for one in forbidden if one in content], path
        assert re.search(rb"\bP00\d{3}\b", content) is None, path


def test_the_text_of_an_unexpected_error_is_not_in_the_event_log(spark: Any, spark_folder: Path) -> None:
    with pytest.raises(
        Mistakes, match=r"^Spark: engine: a task failed \(ValueError in \w+\.py:\d+\); report it"
    ):
        SparkEngine(spark).call(int, "P00123 is not a number")
    (text,) = events(spark, spark_folder)
    assert "TaskFailed: ValueError in" in text
    assert "P00123" not in text


def events(spark: Any, spark_folder: Path) -> list[str]:
    """The event logs, when all events are in them."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    return [path.read_text() for path in (spark_folder / "events").rglob("events_*")]


def received(spark: Any, spark_folder: Path) -> int:
    """How many bytes tasks have returned to the driver so far."""
    ended = [
        json.loads(line)
        for text in events(spark, spark_folder)
        for line in text.splitlines()
        if '"SparkListenerTaskEnd"' in line
    ]
    return sum(one["Task Metrics"]["Result Size"] for one in ended if one.get("Task Metrics"))


def test_the_driver_receives_as_much_whatever_the_number_of_records_and_cells(
    spark: Any, spark_folder: Path, tmp_path: Path
) -> None:
    sizes = []
    for records, codes in ((600, 20), (15_000, 10_000)):
        folder = tmp_path / str(records)
        folder.mkdir()
        places = [f"{k:05}" for k in range(codes)]
        (folder / "place.csv").write_text(
            "code,parent,label\n" + "".join(f"{one},,{one}\n" for one in places)
        )
        (folder / "programme.toml").write_text(PLACES)
        table = {"pid": range(records), "place": [places[k % codes] for k in range(records)]}
        pq.write_table(pa.table(table), folder / "persons.parquet", row_group_size=records // 3)
        before = received(spark, spark_folder)
        done = protect(
            load_programme(folder / "programme.toml"),
            SECRET,
            folder / "release",
            folder / "private.json",
            clock=lambda: NOON,
            engine=SparkEngine(spark),
        )
        sizes.append(received(spark, spark_folder) - before)
        assert done.cells > codes / 2
    assert sizes[0] > 1000
    assert abs(sizes[1] - sizes[0]) < 20_000  # the cells are 160,000 bytes, the ids 120,000
