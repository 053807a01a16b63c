"""Atomic publication: a release appears whole at its place or not at all, and a killed run cleans up."""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from pydantic import ValidationError

from discreet.errors import Mistakes, mistake
from discreet.programme.population import ReleaseFormat
from discreet.release.manifest import MANIFEST, CubeEntry, FileEntry, Manifest, is_release

_AT_FDCWD = -100  # Linux: paths are relative to the working folder
_RENAME_EXCHANGE = 2  # renameat2 on Linux
_RENAME_SWAP = 2  # renamex_np on macOS


def exchange(first: Path, second: Path) -> None:
    """Swap two folders of one file system; at no moment is either name missing."""
    libc = ctypes.CDLL(None, use_errno=True)
    one, two = os.fsencode(first), os.fsencode(second)
    if sys.platform == "darwin" and hasattr(libc, "renamex_np"):
        failed = libc.renamex_np(one, two, ctypes.c_uint(_RENAME_SWAP))
    elif hasattr(libc, "renameat2"):
        failed = libc.renameat2(_AT_FDCWD, one, _AT_FDCWD, two, ctypes.c_uint(_RENAME_EXCHANGE))
    else:
        raise _unable(second)
    if failed:
        number = ctypes.get_errno()
        raise _unable(second) from OSError(number, os.strerror(number))


def require_exchange(within: Path, target: Path) -> None:
    """Try it on two empty folders of the same file system, so that a long run does not fail at its end."""
    first, second = within / "first", within / "second"
    first.mkdir()
    second.mkdir()
    try:
        exchange(first, second)
    except Mistakes as error:
        raise _unable(target) from error
    finally:
        first.rmdir()
        second.rmdir()


def _unable(target: Path) -> Mistakes:
    return mistake(
        target,
        "release folder",
        "this file system cannot swap two folders in one step, so the old release cannot be replaced safely",
        "publish to a folder that does not exist yet, or remove the old release first",
    )


_SUFFIX = ".partial"


class ReleaseFolder:
    """A release in the making; use it in a ``with`` block, which holds the lock on the target."""

    def __init__(self, target: Path, run_id: str) -> None:
        if not run_id.isalnum():
            raise ValueError("a run id consists of letters and digits")
        self.target = target.resolve()
        self._work = self.target.with_name(f".{self.target.name}.{run_id}{_SUFFIX}")
        self._tree = self._work / "release"
        self._records = self._work / "records"
        self._drafts = self._work / "drafts"
        self._lock: int | None = None

    def __enter__(self) -> Self:
        with _told(self.target):
            self.target.parent.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(self._lock_path, self.target)
        try:
            _require_replaceable(self.target)
            with _told(self.target):
                self._remove_strangers()
                self._prepare()
            if self.target.exists():
                require_exchange(self._drafts, self.target)
        except BaseException:
            self._unlock()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._unlock()

    def finished(self, cube: str) -> CubeEntry | None:
        """The record of a cube that an earlier, interrupted run finished, if its files are still what it says."""
        try:
            entry = CubeEntry.model_validate_json(self._record(cube).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValidationError):
            return None
        intact = all(_matches(self._tree / file.path, file) for file in entry.files)
        return entry if intact else None

    def write(
        self, place: str, write: Callable[[Path], None], form: ReleaseFormat | None = None
    ) -> FileEntry:
        """Let ``write`` make one file of the release; it appears at its place when it is whole and on disk."""
        final = self._tree / place
        draft = self._drafts / quote(place, safe="")
        draft.unlink(missing_ok=True)
        write(draft)
        _sync(draft)
        entry = FileEntry(path=place, sha256=file_sha256(draft), bytes=draft.stat().st_size, format=form)
        final.parent.mkdir(parents=True, exist_ok=True)
        draft.replace(final)
        _sync(final.parent)
        return entry

    def finish(self, entry: CubeEntry) -> None:
        """Record that all files of a cube are in place; a later run with the same id starts from here."""
        draft = self._drafts / f"{self._record(entry.id).name}.record"
        draft.write_text(entry.model_dump_json(), encoding="utf-8")
        _sync(draft)
        draft.replace(self._record(entry.id))
        _sync(self._records)

    @property
    def tree(self) -> Path:
        """Where the files stand until they are published."""
        return self._tree

    def publish(self, manifest: Manifest) -> None:
        """Put the whole release at its place in one step, then remove what stood there and the work folder."""
        self.write(MANIFEST, lambda path: _write_text(path, manifest.to_json()))
        self._remove_unlisted({MANIFEST, *(file.path for file in manifest.all_files())})
        _require_replaceable(self.target)
        for folder in _folders(self._tree):
            _sync(folder)
        if self.target.exists() and any(self.target.iterdir()):
            exchange(self._tree, self.target)
        else:
            with _told(self.target):
                self._tree.rename(self.target)
        _sync(self.target.parent)
        shutil.rmtree(self._work)

    def discard(self) -> None:
        """Give up: remove the work folder and leave the target as it is."""
        shutil.rmtree(self._work, ignore_errors=True)

    @property
    def _lock_path(self) -> Path:
        return self.target.with_name(f".{self.target.name}.lock")

    def _record(self, cube: str) -> Path:
        return self._records / f"{quote(cube, safe='')}.json"

    def _prepare(self) -> None:
        """Keep the files of recorded cubes; whatever else an earlier run left is half made."""
        shutil.rmtree(self._drafts, ignore_errors=True)
        for folder in (self._work, self._tree, self._records, self._drafts):
            folder.mkdir(exist_ok=True)
        kept: set[str] = set()
        for record in sorted(self._records.iterdir()):
            try:
                entry = CubeEntry.model_validate_json(record.read_text(encoding="utf-8"))
            except ValidationError:
                record.unlink()
            else:
                kept.update(file.path for file in entry.files)
        self._remove_unlisted(kept)

    def _remove_unlisted(self, kept: set[str]) -> None:
        for path in _files(self._tree):
            if path.relative_to(self._tree).as_posix() not in kept:
                path.unlink()
        for folder in sorted(_folders(self._tree), key=lambda path: -len(path.parts)):
            if folder != self._tree and not any(folder.iterdir()):
                folder.rmdir()

    def _remove_strangers(self) -> None:
        """Work folders of other runs for this target are dead: their owner would hold the lock."""
        prefix = f".{self.target.name}."
        for path in list(self.target.parent.iterdir()):
            run_id = path.name.removeprefix(prefix).removesuffix(_SUFFIX)
            ours = path.name == f"{prefix}{run_id}{_SUFFIX}" and "." not in run_id
            if ours and path != self._work and path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)

    def _unlock(self) -> None:
        if self._lock is not None:
            try:
                self._lock_path.unlink(missing_ok=True)
            finally:
                os.close(self._lock)
                self._lock = None


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _matches(path: Path, entry: FileEntry) -> bool:
    return path.is_file() and path.stat().st_size == entry.bytes and file_sha256(path) == entry.sha256


@contextmanager
def _told(target: Path) -> Iterator[None]:
    """Tell a refusal of the operating system as a user's mistake."""
    try:
        yield
    except OSError as error:
        refusal = f"cannot be written: {error.strerror or 'refused'}"
        raise mistake(
            target, "release folder", refusal, "name a folder that you may write, on one file system"
        ) from error


def _require_replaceable(target: Path) -> None:
    """Nothing there, an empty folder, or a release of ours: nothing else is ever replaced."""
    if not target.exists():
        return
    if not target.is_dir():
        raise mistake(target, "release folder", "is a file", "name a folder that does not exist yet")
    if not any(target.iterdir()):
        return
    if not is_release(target):
        raise mistake(target, "release folder", "exists and is no release of Discreet", "name another folder")


def _locked(path: Path, target: Path) -> int:
    """Hold the lock file until closed; one that its holder has just removed does not count."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise mistake(
                target, "release folder", "another run is writing it", "wait until it has ended"
            ) from None
        if _still_there(path, descriptor):
            return descriptor
        os.close(descriptor)


def _still_there(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _files(folder: Path) -> Iterator[Path]:
    return (Path(parent, name) for parent, _, names in os.walk(folder) for name in names)


def _folders(folder: Path) -> Iterator[Path]:
    return (Path(parent) for parent, _, _ in os.walk(folder))
