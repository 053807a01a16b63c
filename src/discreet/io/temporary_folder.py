"""Folders of a process: only their owner can open them, and they are removed with what refers to them.

A killed process cannot remove its folder. A folder is therefore locked as long as its process lives, and the next one
that is made in the same place removes those that no process has locked.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from discreet.errors import mistake

PREFIX = "discreet-"
_LOCK = ".lock"


class TemporaryFolder:
    """A new folder that exists as long as this object does, or until ``remove()``."""

    def __init__(self, inside: Path | None = None, prefix: str = PREFIX) -> None:
        place = Path(tempfile.gettempdir()) if inside is None else inside.resolve()
        _remove_abandoned(place, prefix)
        self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
        self.remove = weakref.finalize(self, _remove, self.path, _locked(self.path))


@contextmanager
def temporary_folder(needed: bool = True) -> Iterator[TemporaryFolder | None]:
    """A new folder that survives its block only if the block does; None where none is needed.

    An exception keeps the frames that refer to a folder, in a notebook until the next one: it is removed at once.
    """
    folder = TemporaryFolder() if needed else None
    try:
        yield folder
    except BaseException:
        if folder is not None:
            folder.remove()
        raise


@contextmanager
def private_folder(inside: Path) -> Iterator[Path]:
    """A new folder for confidential files that several machines share, removed at the end of the block."""
    try:
        folder = TemporaryFolder(inside, f".{PREFIX}")
    except OSError as error:
        value = f"cannot be written: {(error.strerror or 'refused').lower()}"
        raise mistake(
            inside, "work folder", value, "give --out in a folder that all machines share"
        ) from None
    try:
        yield folder.path
    finally:
        folder.remove()


def _locked(folder: Path) -> int:
    """Lock a folder; the lock's file has its name only when it is locked."""
    draft = folder / f"{_LOCK}.new"
    descriptor = os.open(draft, os.O_RDWR | os.O_CREAT, 0o600)
    with suppress(OSError):  # a file system without locks: nothing made there is taken to be abandoned
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        draft.rename(folder / _LOCK)
    return descriptor


def _remove(folder: Path, descriptor: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    os.close(descriptor)


def _remove_abandoned(place: Path, prefix: str) -> None:
    """Remove the folders of this user whose process has ended without removing them."""
    for lock in place.glob(f"{prefix}*/{_LOCK}"):
        with suppress(OSError):
            if not _is_own(lock.parent):
                continue
            descriptor = os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
            try:
                if os.fstat(descriptor).st_uid == os.getuid():
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(lock.parent, ignore_errors=True)
            finally:
                os.close(descriptor)


def _is_own(folder: Path) -> bool:
    """Whether this user made it, and others cannot: in a place that all can write to, a link may lead anywhere."""
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
