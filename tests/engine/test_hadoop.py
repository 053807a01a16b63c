"""A release on a file system of Hadoop appears whole or not at all; the next run removes an interrupted one."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from discreet.engine import hadoop as hadoop_module
from discreet.engine.computing import Computing
from discreet.engine.failures import explained
from discreet.engine.hadoop import UNFINISHED, Hadoop, is_address, published_at
from discreet.engine.spark import SparkEngine
from discreet.engine.verifying import verified
from discreet.errors import Mistakes
from discreet.io.secret import make_secret
from discreet.programme.programme import load_programme
from discreet.programme.sources import local_place
from discreet.release.manifest import MANIFEST
from discreet.release.verify import verify
from tests.cases import few
from tests.cli.called import discreet
from tests.engine.java import require_java
from tests.engine.small_town import divide, make_town, persons
from tests.release.small import publish
from tests.waiting import PATIENCE


class Killed(Exception):
    """The driver ends here."""


@pytest.fixture(params=["viewfs://census", "s3a://bucket"])
def place(request: pytest.FixtureRequest, spark_folder: Path) -> Iterator[tuple[str, Path]]:
    """The address of a folder that is renamed, or in an object store, and the folder that is behind it."""
    folder = spark_folder / "view" / "releases"
    folder.mkdir()
    yield f"{request.param}/data/releases/2031", folder / "2031"
    shutil.rmtree(folder)


def write(local: Path, **files: str) -> None:
    """Make a release as ``protect`` does: the folder appears whole."""
    shutil.rmtree(local, ignore_errors=True)
    for name, text in {MANIFEST: "{}", **files}.items():
        (local / name).parent.mkdir(parents=True, exist_ok=True)
        (local / name).write_text(text)


def contents(folder: Path) -> dict[str, str]:
    names = (path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(".crc"))
    return {path.relative_to(folder).as_posix(): path.read_text() for path in names}


def release(spark: Any, address: str, work: Path, **files: str) -> None:
    with published_at(spark, address, work) as local:
        write(local, **files)


def test_addresses_are_told_from_paths() -> None:
    assert is_address("hdfs://nn/releases/2031")
    assert is_address("s3a://bucket/2031")
    assert not is_address("/srv/releases/2031")
    assert not is_address("releases/hdfs")
    assert local_place("releases/2031") == Path("releases/2031")


@pytest.mark.parametrize("out", ["file:///srv/2031", "file:/srv/2031", "ftp://host/2031"])
def test_an_address_of_another_kind_is_no_folder(out: str) -> None:
    with pytest.raises(Mistakes, match=r"--out: neither a path nor an address .*; give a path without file:"):
        local_place(out)


def test_a_release_is_published_and_replaced(spark: Any, place: tuple[str, Path], tmp_path: Path) -> None:
    address, behind = place
    release(spark, address, tmp_path, a="1", b="2")
    assert contents(behind) == {MANIFEST: "{}", "a": "1", "b": "2"}
    with published_at(spark, address, tmp_path) as local:
        assert contents(local) == contents(behind)  # what is replaced is compared with
        write(local, **{"a": "3", "data/c": "4"})
        assert contents(behind)["a"] == "1"
    assert contents(behind) == {MANIFEST: "{}", "a": "3", "data/c": "4"}
    assert sorted(path.name for path in behind.parent.iterdir()) == ["2031"]
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_fails_leaves_the_old_release(spark: Any, place: tuple[str, Path], tmp_path: Path) -> None:
    address, behind = place
    release(spark, address, tmp_path, a="1")
    with pytest.raises(Killed), published_at(spark, address, tmp_path):
        raise Killed
    assert contents(behind) == {MANIFEST: "{}", "a": "1"}


@pytest.mark.parametrize(
    "step",
    few(["write", "upload", "rename", "remove"], "upload"),
)
def test_a_killed_upload_is_no_release_and_the_next_run_starts_from_there(
    spark: Any, place: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Kill the run at each call of each kind; a reader sees the old release, none, or the new one, always whole."""
    address, behind = place
    whole = [{MANIFEST: "{}", "a": "1", "b": "1"}, {MANIFEST: "{}", "a": "2", "c": "2"}]
    for call in range(12):
        shutil.rmtree(behind, ignore_errors=True)
        release(spark, address, tmp_path, a="1", b="1")
        done = getattr(Hadoop, step)
        left = [call]

        def once(self: Hadoop, *given: Any, done: Any = done, left: list[int] = left) -> None:
            if left[0] == 0:
                raise Killed
            left[0] -= 1
            done(self, *given)

        with monkeypatch.context() as patch:
            patch.setattr(Hadoop, step, once)
            patch.setattr(hadoop_module, "_AT_ONCE", 1)
            try:
                release(spark, address, tmp_path, a="2", c="2")
            except Killed:
                pass
            else:
                assert call > 0 or address.startswith("s3a")  # an object store renames nothing
                break
        if (behind / MANIFEST).exists():
            assert {name: text for name, text in contents(behind).items() if name != UNFINISHED} in whole
        release(spark, address, tmp_path, a="2", c="2")
        assert contents(behind) == whole[1]
        assert sorted(path.name for path in behind.parent.iterdir()) == ["2031"]
    else:
        pytest.fail("the run has more steps than this test")


@pytest.mark.parametrize(("step", "left"), few([("remove", "1"), ("upload", None), ("last", "2")], 1))
def test_a_release_that_is_whole_survives_a_killed_upload_and_a_next_run_that_fails(
    spark: Any,
    place: tuple[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    left: str | None,
) -> None:
    """Beside the marker of an object store a manifest is that of the old release, or of the new one, both whole."""
    address, behind = place
    release(spark, address, tmp_path, a="1")
    done = getattr(Hadoop, "remove" if step == "last" else step)

    def once(self: Hadoop, *given: Any) -> None:
        if step != "last" or given[0].endswith((UNFINISHED, ".old")):
            raise Killed
        done(self, *given)

    with published_at(spark, address, tmp_path) as local, monkeypatch.context() as patch:
        write(local, a="2")
        patch.setattr(Hadoop, done.__name__, once)
        with pytest.raises(Killed):
            hadoop_module._publish(Hadoop(spark), local, address)
        patch.undo()
        shutil.rmtree(local)
        with pytest.raises(Killed), published_at(spark, address, tmp_path / "other"):
            raise Killed
        renamed = not address.startswith("s3a")
        found = {MANIFEST: "{}", "a": left or "1"} if left or renamed else {}
        assert contents(behind) == found
        write(local, a="2")


def test_a_release_is_verified_at_its_address_and_in_a_task(
    spark: Any, place: tuple[str, Path], tmp_path: Path
) -> None:
    address, behind = place
    engine, work = SparkEngine(spark, tmp_path / "work"), tmp_path / "work"
    with published_at(spark, address, work) as local:
        publish(local)  # with a table whose name has a space and a slash
        wanted = verify(local)
    publish(tmp_path / "here")
    assert wanted.passed
    assert verified(address, given=engine) == verified(str(tmp_path / "here"), given=engine) == wanted
    (behind / "README.md").unlink()
    assert verified(f"{address}/", given=engine).problems == ("README.md: missing",)
    assert list(work.iterdir()) == []
    with pytest.raises(Mistakes, match=r"2032: release: no release there; give the address"):
        verified(address.replace("2031", "2032"), given=engine)
    with pytest.raises(Mistakes, match=r"release: only Spark can read there; add --engine spark"):
        verified(address)


def test_nothing_that_is_not_a_release_is_replaced(
    spark: Any, place: tuple[str, Path], tmp_path: Path
) -> None:
    address, behind = place
    behind.mkdir()
    (behind / "thesis.txt").write_text("mine")
    with pytest.raises(Mistakes, match="exists and is not a release of Discreet"):
        release(spark, address, tmp_path, a="1")
    assert contents(behind) == {"thesis.txt": "mine"}
    shutil.rmtree(behind)
    behind.write_text("a file")
    with pytest.raises(Mistakes, match="is a file; choose a folder"):
        release(spark, address, tmp_path, a="1")


def test_no_write_access_is_reported_before_any_work(
    spark: Any, place: tuple[str, Path], tmp_path: Path
) -> None:
    address, _ = place
    root = "/".join(address.split("/")[:3])  # which has only mounted folders
    with pytest.raises(Mistakes, match="release folder: no such path"):
        release(spark, f"{root}/nowhere/2031", tmp_path, a="1")
    assert not any(tmp_path.rglob(MANIFEST))
    java = "org.apache.hadoop.security.AccessControlException: Permission denied: user=census, access=WRITE"
    assert "access is refused; ask for permission" in str(explained(RuntimeError(java), address, "--out"))


def test_a_release_at_an_address_is_read_from_a_copy_that_goes(
    spark: Any, place: tuple[str, Path], tmp_path: Path
) -> None:
    address, behind = place
    release(spark, address, tmp_path, a="1")
    programme = make_town(tmp_path / "town")
    divide(persons(), programme.parent, 1)
    where = Computing(load_programme(programme), SparkEngine(spark, tmp_path))
    with where.published_release(address) as folder:
        assert folder.name == "2031"
        assert contents(folder) == contents(behind)
    assert not folder.exists()
    with where.published_release(str(behind)) as folder:
        assert folder == behind
    with pytest.raises(Mistakes, match=r"release: only Spark can read there; add --engine spark"):
        Computing(where.programme, None).published_release(address)


@pytest.mark.long
def test_the_commands_publish_verify_and_audit_at_an_address(tmp_path: Path) -> None:
    require_java()
    behind, settings = tmp_path / "view", tmp_path / "settings"
    behind.mkdir()
    settings.mkdir()
    (settings / "spark-defaults.conf").write_text(
        f"spark.master local[2]\nspark.hadoop.fs.viewfs.mounttable.census.link./data {behind.as_uri()}\n"
    )
    programme = make_town(tmp_path / "town")
    divide(persons(), programme.parent, 2)
    secret = tmp_path / "office.key"
    make_secret(secret)
    address = "viewfs://census/data/2031"
    # reconstruction reports seconds
    given = ["--programme", str(programme), "--secret", str(secret), "--without", "reconstruction"]

    def ran(*words: str | Path) -> str:
        found = subprocess.run(
            [sys.executable, "-m", "discreet", *map(str, words), "--engine", "spark"],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            env={**os.environ, "SPARK_CONF_DIR": str(settings), "TMPDIR": str(tmp_path)},
        )
        assert found.returncode == 0, found.stderr
        return found.stdout

    ran("protect", programme, "--secret", secret, "--out", address)
    assert f"{address}: passed." in ran("verify", address)
    ran("audit", address, *given, "--out", tmp_path / "audit")
    here = discreet("audit", behind / "2031", *given, "--out", tmp_path / "here")
    assert here.returncode == 0, here.stderr
    assert (tmp_path / "audit" / "audit.json").read_bytes() == (tmp_path / "here" / "audit.json").read_bytes()
    assert list(tmp_path.glob("discreet-*")) == []
    refused = discreet("audit", address, *given)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "only Spark can read there; add --engine spark" in refused.stderr
