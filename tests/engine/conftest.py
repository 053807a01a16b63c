"""One Spark session for all tests of this package, where Java is found."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from discreet.engine.session import _SHORT_JAVA, open_session
from discreet.programme.engine import EngineRule
from discreet.programme.engine_kind import EngineKind
from tests.engine.java import require_java


@pytest.fixture(scope="session")
def spark_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="session")
def spark(spark_folder: Path) -> Iterator[object]:
    """A session with two cores, its catalog and its logs in a folder of the tests."""
    require_java()
    (spark_folder / "events").mkdir()
    (spark_folder / "view").mkdir()
    settings = {
        "spark.master": "local[2]",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.warehouse.dir": (spark_folder / "warehouse").as_uri(),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (spark_folder / "events").as_uri(),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # a second file system of Hadoop, with a scheme of its own, over a folder
        "spark.hadoop.fs.viewfs.mounttable.census.link./data": (spark_folder / "view").as_uri(),
        # the same with the scheme of an object store
        "spark.hadoop.fs.s3a.impl": "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme",
        "spark.hadoop.fs.viewfs.overload.scheme.target.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
        "spark.hadoop.fs.viewfs.mounttable.bucket.link./data": (spark_folder / "view").as_uri(),
        "spark.driver.extraJavaOptions": f"{_SHORT_JAVA} -Dderby.system.home={spark_folder / 'derby'}",
    }
    with open_session(EngineRule(EngineKind.SPARK, settings, 300)) as session:
        yield session
