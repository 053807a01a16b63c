"""The [engine] section: what it resolves to, every mistake it can hold, and that it changes no digest."""

import re
from pathlib import Path

import pytest

from discreet.errors import Mistakes
from discreet.programme.engine import EMBEDDED, EngineRule, is_credential
from discreet.programme.engine_kind import EngineKind
from discreet.programme.programme import load_programme
from tests.programme.test_swap_rule import GOOD, programme

FULL = """[engine]
kind = "spark"
master = "spark://host:7077"
packages = ["io.delta:delta-spark_2.13:4.0.0", "org.postgresql:postgresql:42.7.4"]
shuffle_partitions = 64
memory = { driver = "2g", executor = "8g" }
wait = 30
spark.executor.cores = 4
spark.eventLog.enabled = true
spark."executor.memoryOverhead" = "2g"
"""


def engine(folder: Path, text: str) -> EngineRule:
    path = programme(folder, GOOD)
    path.write_text(path.read_text() + text)
    return load_programme(path).engine


def test_a_programme_computes_in_its_own_process_by_default(tmp_path: Path) -> None:
    assert engine(tmp_path, "") == EMBEDDED
    assert engine(tmp_path, '[engine]\nkind = "embedded"\n') == EMBEDDED


def test_every_key_becomes_a_setting_of_spark(tmp_path: Path) -> None:
    rule = engine(tmp_path, FULL)
    assert (rule.kind, rule.wait) == (EngineKind.SPARK, 30)
    assert rule.settings == {
        "spark.master": "spark://host:7077",
        "spark.jars.packages": "io.delta:delta-spark_2.13:4.0.0,org.postgresql:postgresql:42.7.4",
        "spark.sql.shuffle.partitions": "64",
        "spark.driver.memory": "2g",
        "spark.executor.memory": "8g",
        "spark.executor.cores": "4",
        "spark.eventLog.enabled": "true",
        "spark.executor.memoryOverhead": "2g",
    }
    assert rule.of_kind(EngineKind.EMBEDDED).settings == rule.settings


def test_the_engine_is_in_no_digest(tmp_path: Path) -> None:
    path = programme(tmp_path, GOOD)
    before = load_programme(path).canonical()
    path.write_text(path.read_text() + FULL)
    assert load_programme(path).canonical() == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('master = "yarn"', r"engine\.kind: is missing"),
        ('kind = "dask"', r"engine\.kind: 'dask'; use 'embedded' or 'spark'"),
        ('kind = "embedded"\nmaster = "yarn"', r"engine\.master: has no meaning beside kind = \"embedded\""),
        ('kind = "spark"\nmemory = { executor = "8 GB" }', r"engine\.memory\.executor: .*\"8g\""),
        ('kind = "spark"\npackages = ["delta"]', r"engine\.packages\[0\]: .*group:artifact:version"),
        ('kind = "spark"\nshuffle_partitions = 0', r"engine\.shuffle_partitions: 0"),
        ('kind = "spark"\nmaster = "sc://host"', r"engine\.master: .*Spark Connect"),
        (
            'kind = "spark"\nmaster = "yarn"\nspark.master = "local"',
            r"engine\.spark\.master: is declared twice; leave it out, or leave out engine\.master",
        ),
        ('kind = "spark"\nspark.x = [1]', r"engine\.spark\.x: a list or a date"),
        ('kind = "spark"\ncores = 4', r"engine: unknown key 'cores'"),
    ],
)
def test_mistakes_are_reported(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(Mistakes, match=message):
        engine(tmp_path, f"[engine]\n{text}\n")


@pytest.mark.parametrize(
    "name",
    [
        "spark.hadoop.fs.s3a.secret.key",
        "spark.hadoop.fs.s3a.access.key",
        "spark.hadoop.fs.azure.account.key.census.dfs.core.windows.net",
        "spark.hadoop.fs.azure.account.oauth2.client.secret",
        "spark.hadoop.fs.azure.sas.fixed.token",
        "spark.ssl.keyPassword",
        "spark.authenticate.secret",
        "spark.kubernetes.authenticate.submission.oauthToken",
    ],
)
def test_credentials_are_refused_and_not_shown(tmp_path: Path, name: str) -> None:
    with pytest.raises(Mistakes, match="credentials do not belong") as refused:
        engine(tmp_path, f'[engine]\nkind = "spark"\n{name} = "hunter2"\n')
    assert "hunter2" not in str(refused.value)
    assert re.search("instance role, spark-defaults.conf", str(refused.value))


def test_credentials_inside_values_are_refused_and_names_of_places_are_not() -> None:
    assert is_credential("spark.driver.extraJavaOptions", "-Djavax.net.ssl.trustStorePassword=hunter2")
    assert is_credential("spark.sql.catalog.c.uri", "https://census:hunter2@host/")
    for name in (
        "spark.hadoop.hadoop.security.credential.provider.path",
        "spark.hadoop.fs.s3a.aws.credentials.provider",
        "spark.kubernetes.authenticate.submission.oauthTokenFile",
        "spark.executor.cores",
    ):
        assert not is_credential(name, "value"), name
