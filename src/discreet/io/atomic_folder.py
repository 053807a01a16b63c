"""A confidential folder that appears whole at its place or not at all; it does not know what the files say.

While it is written it stands beside its place as ``.name.partial``, locked; what a killed run left there is removed
by the next one. The folder is open to its owner only, and so are the files.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from discreet.errors import mistake

_OWNER_FOLDER = 0o700
_OWNER_FILE = 0o600


def require_free(place: Path, option: str) -> None:
    """Refuse a place where something stands, before any work is done; an empty folder is free."""
    if place.exists() and not place.is_dir():
        raise mistake(place, option, "is a file", "name a folder that does not exist yet")
    with _told(place, option):
        if place.is_dir() and any(place.iterdir()):
            raise mistake(place, option, "exists and is not empty", "name another folder, or remove it")


class WholeFolder:
    """A folder in the making; left without ``publish``, a ``with`` block removes what was written."""

    def __init__(self, place: Path, option: str) -> None:
        self.place = place.resolve()
        self._option = option
        self._partial = self.place.with_name(f".{self.place.name}.partial")
        self._lock: int | None = None

    def __enter__(self) -> Self:
        require_free(self.place, self._option)
        with _told(self.place, self._option):
            self.place.parent.mkdir(parents=True, exist_ok=True)
            self._lock = self._locked()
            for left in self._partial.iterdir():
                _remove(left)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lock is not None:
            if self._is_ours(self._lock):
                shutil.rmtree(self._partial, ignore_errors=True)
            os.close(self._lock)
            self._lock = None

    @contextmanager
    def file(self, name: str) -> Iterator[BinaryIO]:
        """Write one file, on disk when the block ends; ``name`` may have a folder before it."""
        with _told(self.place, self._option):
            (self._partial / name).parent.mkdir(mode=_OWNER_FOLDER, exist_ok=True)
            descriptor = os.open(self._partial / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_FILE)
            with os.fdopen(descriptor, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())

    def publish(self) -> None:
        """Put the folder in its place in one step; what was put there meanwhile is never replaced."""
        require_free(self.place, self._option)
        with _told(self.place, self._option):
            self._partial.rename(self.place)
            _sync(self.place.parent)

    def _locked(self) -> int:
        """Hold the partial folder; one that its holder has just moved away does not count."""
        while True:
            self._partial.mkdir(mode=_OWNER_FOLDER, exist_ok=True)
            descriptor = os.open(self._partial, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                remedy = "wait until it has ended"
                raise mistake(self.place, self._option, "another run is writing it", remedy) from None
            if self._is_ours(descriptor):
                return descriptor
            os.close(descriptor)

    def _is_ours(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(self._partial.stat(), os.fstat(descriptor))
        except FileNotFoundError:
            return False


@contextmanager
def _told(place: Path, option: str) -> Iterator[None]:
    """Tell a refusal of the operating system as a user's mistake."""
    try:
        yield
    except OSError as error:
        refusal = f"cannot be written: {error.strerror or 'refused'}"
        raise mistake(place, option, refusal, "name a folder that you may write") from error


def _remove(left: Path) -> None:
    """Remove what a killed run left."""
    if left.is_dir() and not left.is_symlink():
        shutil.rmtree(left)
    else:
        left.unlink()


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
