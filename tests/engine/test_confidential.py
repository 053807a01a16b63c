"""What Spark must not see: the secret, keys and ids are in no event log, setting or file that is left behind."""

import base64
import subprocess
import sys
from pathlib import Path
from typing import Any

from discreet.engine.spark import SparkEngine
from discreet.maths.cells.keys import derive
from tests.engine.small_town import divide, make_town, persons
from tests.engine.test_conformance import SWAP, made
from tests.pipeline.conftest import SECRET


def written(secret: bytes) -> set[bytes]:
    """Ways in which bytes can be in a file."""
    return {
        secret,
        secret.hex().encode(),
        base64.b64encode(secret),
        repr(secret)[2:-1].encode(),
        str(list(secret))[1:-1].encode(),
    }


def test_the_secret_is_in_nothing_that_spark_writes(spark: Any, spark_folder: Path, tmp_path: Path) -> None:
    programme = make_town(tmp_path / "town", more=SWAP)
    divide(persons(), tmp_path / "town", 3)
    made(programme, tmp_path / "release", SparkEngine(spark))
    forbidden = written(SECRET) | written(derive(SECRET, "manifest")) | {b"P00017"}
    logs = [path for path in (spark_folder / "events").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in logs) > 10_000
    left = [path for path in Path(spark.sparkContext._temp_dir).rglob("*") if path.is_file()]
    for path in (*logs, *left):
        content = path.read_bytes()
        assert not [one for one in forbidden if one in content], path
    settings = repr(spark.sparkContext.getConf().getAll()).encode()
    assert not [one for one in forbidden if one in settings]


def test_nothing_imports_pyspark_before_a_session_is_opened() -> None:
    code = (
        "import sys\n"
        "import discreet.cli.protect, discreet.cli.audit, discreet.cli.check, discreet.cli.swap\n"
        "import discreet.engine.spark\n"
        "assert 'pyspark' not in sys.modules and 'py4j' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
