"""Hadoop file systems through Spark's Java: listing and copying files, and publishing a release whole or not at all.

A release is made on this machine and then published at its address. Where a folder can be renamed in one step (hdfs,
viewfs, file) it is uploaded beside its destination and renamed; the old release is moved aside first, and moved back
by the next run if this one is killed in between. Object stores rename object by object: there the manifest is removed
first and written last, and a folder without its manifest is no release to any reader. A marker names an upload that
has begun, so that the next run removes what is left of it and nothing else.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.engine.failures import failures
from discreet.errors import Mistakes, mistake
from discreet.io.ending import putting
from discreet.io.temporary_folder import TemporaryFolder
from discreet.programme.sources import hadoop_scheme
from discreet.release.manifest import MANIFEST

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UNFINISHED = "_discreet_unfinished"
_RENAMED_BY_OBJECT = ("s3a", "s3", "gs", "abfss", "abfs", "wasbs", "wasb", "oss", "obs", "cosn", "dbfs")
_AT_ONCE = 8  # copies
_OPTION = "release folder"


@dataclass(frozen=True, order=True)
class RemoteFile:
    """A file as its file system lists it."""

    uri: str
    size: int
    modified: int  # milliseconds


class Hadoop:
    """The file systems that a Spark session reaches."""

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext
        self._jvm: Any = context._jvm  # noqa: SLF001
        self._configuration = context._jsc.hadoopConfiguration()  # noqa: SLF001

    def files(self, uri: str) -> list[RemoteFile]:
        """The file, the files below a folder, or those that a pattern matches, by name; empty if there are none."""
        path, system = self._at(uri)
        found: list[RemoteFile] = []
        for root in system.globStatus(path) or ():
            listed = system.listFiles(root.getPath(), True)
            while listed.hasNext():
                one = listed.next()
                name = one.getPath().toString()
                found.append(RemoteFile(name, int(one.getLen()), int(one.getModificationTime())))
        return sorted(found)

    def states(self, uris: list[str]) -> list[RemoteFile]:
        """The state of some files, listed folder by folder; those that are gone are left out."""
        wanted = {self._path(uri).toString() for uri in uris}
        found: list[RemoteFile] = []
        for folder in sorted({uri.rpartition("/")[0] for uri in wanted}):
            path, system = self._at(folder)
            listed = ((one.getPath().toString(), one) for one in system.listStatus(path))
            found.extend(
                RemoteFile(name, int(one.getLen()), int(one.getModificationTime()))
                for name, one in listed
                if name in wanted
            )
        return sorted(found)

    def exists(self, uri: str) -> bool:
        """Whether there is a file or a folder."""
        path, system = self._at(uri)
        return bool(system.exists(path))

    def is_folder(self, uri: str) -> bool:
        """Whether there is a folder."""
        path, system = self._at(uri)
        return bool(system.exists(path)) and bool(system.getFileStatus(path).isDirectory())

    def download(self, uri: str, place: Path) -> None:
        """Copy one file to this machine."""
        path, system = self._at(uri)
        place.parent.mkdir(parents=True, exist_ok=True)
        system.copyToLocalFile(False, path, self._path(local_address(place)), True)

    def upload(self, place: Path, uri: str) -> None:
        """Copy one file from this machine, and compare its size."""
        path, system = self._at(uri)
        system.mkdirs(path.getParent())
        system.copyFromLocalFile(False, True, self._path(local_address(place)), path)
        if int(system.getFileStatus(path).getLen()) != place.stat().st_size:
            raise mistake(uri, _OPTION, "was not written completely", "check the space that is left there")

    def write(self, uri: str, content: str) -> None:
        """Write a small file, or replace it."""
        path, system = self._at(uri)
        stream = system.create(path, True)
        stream.write(content.encode())
        stream.close()

    def make_folder(self, uri: str) -> None:
        """Make a folder and those above it."""
        path, system = self._at(uri)
        system.mkdirs(path)

    def remove(self, uri: str) -> None:
        """Remove a file or a folder with all that is in it, if it exists."""
        path, system = self._at(uri)
        system.delete(path, True)

    def rename(self, uri: str, other: str) -> None:
        """Rename a folder to a name that does not exist."""
        path, system = self._at(uri)
        if system.exists(self._path(other)) or not system.rename(path, self._path(other)):
            raise mistake(
                other, _OPTION, "the folder cannot be renamed", "check the permissions of the folder above"
            )

    def _at(self, uri: str) -> tuple[Any, Any]:
        path = self._path(uri)
        return path, path.getFileSystem(self._configuration)

    def _path(self, uri: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(uri)


def local_address(place: Path) -> str:
    """The address of a path of this machine as Hadoop reads it: nothing in it is escaped."""
    return f"file://{place.absolute()}"


def is_address(out: str) -> bool:
    """Whether a release is to be published on a file system of Hadoop."""
    return hadoop_scheme(out) is not None


@contextmanager
def published_at(spark: SparkSession, target: str, folder: Path | None = None) -> Iterator[Path]:
    """A folder of this machine to make a release in; when the block ends well, the release is at the target.

    The release that is there now is copied into the folder first, so that it is compared and replaced as any other.
    ``folder`` is where the copy is made; a killed run continues in it.
    """
    hadoop, target = Hadoop(spark), target.rstrip("/")
    work = _work_folder(target, folder)
    local = work / "release"
    with failures(target, _OPTION):
        _repair(hadoop, target)
        _require_place(hadoop, target)
        if not local.exists():
            _copy_down(hadoop, target, local)
    yield local
    with failures(target, _OPTION):
        _publish(hadoop, local, target)
    shutil.rmtree(work)


@contextmanager
def copied_release(spark: SparkSession, address: str, folder: Path | None = None) -> Iterator[Path]:
    """A copy of a release at an address, in a folder of this machine, as long as the block lasts."""
    hadoop, address = Hadoop(spark), address.rstrip("/")
    copy = TemporaryFolder(folder, "discreet-release-")
    try:
        local = copy.path / (address.rpartition("/")[2] or "release")
        with failures(address, "release"):
            if not hadoop.exists(f"{address}/{MANIFEST}"):
                raise mistake(address, "release", "no release there", "give the address of a release folder")
            _download_all(hadoop, hadoop.files(address), address, local)
        yield local
    finally:
        copy.remove()


def _work_folder(target: str, folder: Path | None) -> Path:
    name = hashlib.sha256(target.encode()).hexdigest()[:16]
    work = (folder or Path(tempfile.gettempdir())) / f"discreet-{os.getuid()}-{name}"
    try:
        work.mkdir(mode=0o700, parents=True, exist_ok=True)
        if work.is_symlink() or work.stat().st_uid != os.getuid():
            raise mistake(work, "engine.folder", "belongs to another user", "set engine.folder")
        work.chmod(0o700)
    except OSError as error:
        reason = (error.strerror or "refused").lower()
        raise mistake(work, "engine.folder", f"cannot be written: {reason}", "set engine.folder") from None
    return work


def _beside(target: str, suffix: str) -> str:
    above, _, name = target.rpartition("/")
    return f"{above}/.{name}{suffix}"


def _repair(hadoop: Hadoop, target: str) -> None:
    """Undo what a killed run has left: move the old release back, and remove what was not finished.

    Beside the marker of an upload a manifest is that of a whole release: the old one, of which nothing was removed
    yet, or the new one.
    """
    old, partial = _beside(target, ".old"), _beside(target, ".partial")
    if hadoop.exists(old):
        if hadoop.exists(target):
            hadoop.remove(old)
        else:
            hadoop.rename(old, target)
    hadoop.remove(partial)
    if hadoop.exists(f"{target}/{UNFINISHED}"):
        hadoop.remove(f"{target}/{UNFINISHED}" if hadoop.exists(f"{target}/{MANIFEST}") else target)


def _require_place(hadoop: Hadoop, target: str) -> None:
    """Refuse a target that is no release, or where nothing can be written, before any work is done."""
    if hadoop.exists(target) and not hadoop.is_folder(target):
        raise mistake(target, _OPTION, "is a file", "choose a folder that does not exist yet")
    if hadoop.files(target) and not hadoop.exists(f"{target}/{MANIFEST}"):
        raise mistake(target, _OPTION, "exists and is not a release of Discreet", "give another folder")
    probe = _beside(target, ".probe")
    hadoop.write(probe, "")
    hadoop.remove(probe)


def _copy_down(hadoop: Hadoop, target: str, local: Path) -> None:
    if not hadoop.exists(f"{target}/{MANIFEST}"):
        return
    draft = local.with_name("earlier")
    shutil.rmtree(draft, ignore_errors=True)
    _download_all(hadoop, hadoop.files(target), target, draft)
    draft.rename(local)


def _download_all(hadoop: Hadoop, found: list[RemoteFile], base: str, folder: Path) -> None:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for _ in pool.map(lambda one: hadoop.download(one.uri, folder / relative(one.uri, base)), found):
            pass


def relative(uri: str, folder: str) -> str:
    """The path of a file below a folder; addresses may differ in the part before the path."""
    path = (
        folder.partition("://")[2].partition("/")[2].rstrip("/")
        if "://" in folder
        else folder.partition(":")[2]
    )
    return uri[uri.index(f"/{path.strip('/')}/") + len(path.strip("/")) + 2 :]


def _publish(hadoop: Hadoop, local: Path, target: str) -> None:
    names = sorted(path.relative_to(local).as_posix() for path in local.rglob("*") if path.is_file())
    if MANIFEST not in names:
        raise mistake(local, _OPTION, "has no manifest", "make the release again")
    with putting(target):
        if hadoop_scheme(target) in _RENAMED_BY_OBJECT:
            _publish_objects(hadoop, local, target, names)
        else:
            _publish_by_rename(hadoop, local, target, names)


def _publish_by_rename(hadoop: Hadoop, local: Path, target: str, names: list[str]) -> None:
    partial, old = _beside(target, ".partial"), _beside(target, ".old")
    hadoop.remove(partial)
    _upload_all(hadoop, local, partial, names)
    replaced = hadoop.exists(target)
    if replaced:
        hadoop.rename(target, old)
    try:
        hadoop.rename(partial, target)
    except Mistakes:
        if replaced:
            hadoop.rename(old, target)
        raise
    hadoop.remove(old)


def _publish_objects(hadoop: Hadoop, local: Path, target: str, names: list[str]) -> None:
    hadoop.write(f"{target}/{UNFINISHED}", "\n".join(names))
    hadoop.remove(f"{target}/{MANIFEST}")
    for one in hadoop.files(target):
        name = relative(one.uri, target)
        if name not in names and name != UNFINISHED:
            hadoop.remove(one.uri)
    _upload_all(hadoop, local, target, [name for name in names if name != MANIFEST])
    hadoop.upload(local / MANIFEST, f"{target}/{MANIFEST}")
    hadoop.remove(f"{target}/{UNFINISHED}")


def _upload_all(hadoop: Hadoop, local: Path, folder: str, names: list[str]) -> None:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for _ in pool.map(lambda name: hadoop.upload(local / name, f"{folder}/{name}"), names):
            pass
