"""What Spark must not see: the secret, keys and ids are in no event log, setting or file that is left behind."""

import base64
import re
from pathlib import Path
from typing import Any

from discreet.engine.spark import SparkEngine
from discreet.maths.cells.keys import derive
from discreet.pipeline.protect import protect
from discreet.programme.programme import load_programme
from tests.engine.small_town import divide, make_town, persons
from tests.engine.test_conformance import SWAP
from tests.pipeline.conftest import NOON

SECRET = bytes(range(100, 132))  # of no other test
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
