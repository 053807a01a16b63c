"""What Spark writes about a run: neither the secret, a key that follows from it, nor the id of a record."""

import base64
import re
from pathlib import Path
from typing import Any

from discreet.engine.spark import SparkEngine
from discreet.maths.cells.keys import derive
from discreet.pipeline.protect import protect
from discreet.programme.programme import load_programme
from tests.engine.small_town import divide, make_town, persons
from tests.pipeline.conftest import NOON

SECRET = bytes(range(100, 132))  # of no other test


def test_the_event_log_has_neither_secret_nor_keys_nor_ids(
    spark: Any, spark_folder: Path, tmp_path: Path
) -> None:
    programme = make_town(tmp_path / "town")
    divide(persons(), tmp_path / "town", 3)
    before = {path: path.stat().st_size for path in (spark_folder / "events").rglob("*") if path.is_file()}
    protect(
        load_programme(programme),
        SECRET,
        tmp_path / "release",
        tmp_path / "private.json",
        clock=lambda: NOON,
        engine=SparkEngine(spark),
    )
    logs = [path for path in (spark_folder / "events").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in logs) > sum(before.values())
    text = b"".join(path.read_bytes() for path in logs)
    assert b"SparkListenerTaskEnd" in text
    keys = [SECRET, *(derive(SECRET, name) for name in ("manifest", "record-key/persons", "fingerprint"))]
    for key in keys:
        for form in (key, key.hex().encode(), base64.b64encode(key), repr(key)[2:-1].encode()):
            assert form not in text
    assert re.search(rb"\bP00\d{3}\b", text) is None
