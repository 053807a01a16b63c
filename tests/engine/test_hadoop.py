"""A release on a file system of Hadoop appears whole or not at all; the next run removes an interrupted one."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from discreet.engine import hadoop as hadoop_module
from discreet.engine.failures import explained
from discreet.engine.hadoop import UNFINISHED, Hadoop, is_address, published_at
from discreet.errors import Mistakes
from discreet.release.manifest import MANIFEST


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


@pytest.mark.parametrize("step", ["write", "upload", "rename", "remove"])
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
