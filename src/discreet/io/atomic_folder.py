"""A folder that appears whole at its place or not at all; releases, swaps and reports are written through it.

While it is written it stands beside its place in the work folder ``.NAME.partial``, which only its owner can open; the
lock file ``.NAME.lock`` keeps a second run away. With a run id the work folder is ``.NAME.ID.partial`` and survives an
interrupted run, so that a run of the same id resumes it. Whatever else a killed run left is removed by the next one.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self
from urllib.parse import quote

from discreet.errors import Mistakes, mistake

_SUFFIX = ".partial"
_AT_FDCWD = -100  # Linux: paths are relative to the working folder
_RENAME_EXCHANGE = 2  # renameat2 on Linux
_RENAME_SWAP = 2  # renamex_np on macOS


@dataclass(frozen=True, kw_only=True)
class Permissions:
    """The modes of folders and files, before the user's umask."""

    folder: int
    file: int


OWNER_ONLY = Permissions(folder=0o700, file=0o600)
PUBLIC = Permissions(folder=0o777, file=0o666)


def require_free(place: Path, option: str) -> None:
    """Refuse a place that holds something, before any work is done; an empty folder is free."""
    if place.exists() and not place.is_dir():
        raise mistake(place, option, "is a file", "name a folder that does not exist yet")
    with _refusals_named(place, option):
        if _is_filled(place):
            raise mistake(place, option, "exists and is not empty", "name another folder, or remove it")


class AtomicFolder:
    """A folder in the making; use it in a ``with`` block, which holds the lock on its place.

    ``require_replaceable`` raises where what stands at the place must stay; by default only a free place is accepted.
    Left without ``publish``, the block removes what was written, unless a run id says that it can be resumed.
    """

    def __init__(
        self,
        place: Path,
        option: str,
        *,
        run_id: str = "",
        permissions: Permissions = OWNER_ONLY,
        require_replaceable: Callable[[Path, str], None] = require_free,
    ) -> None:
        if run_id and not run_id.isalnum():
            raise ValueError("a run id consists of letters and digits")
        self.place = place.resolve()
        self._option = option
        self._resumable = bool(run_id)
        self._permissions = permissions
        self._require_replaceable = require_replaceable
        self._work = self._beside(f".{run_id}{_SUFFIX}" if run_id else _SUFFIX)
        self._drafts = self._work / "drafts"
        self._lock: int | None = None

    @property
    def tree(self) -> Path:
        """Where the files stand until they are published."""
        return self._work / "tree"

    @property
    def records(self) -> Path:
        """Where a run that can be resumed records what it has finished; never published."""
        return self._work / "records"

    def __enter__(self) -> Self:
        with _refusals_named(self.place, self._option):
            self.place.parent.mkdir(parents=True, exist_ok=True)
            self._lock = self._locked()
        try:
            self._require_replaceable(self.place, self._option)
            with _refusals_named(self.place, self._option):
                self._remove_left_over()
                self._prepare()
            if _is_filled(self.place):
                self._require_exchange()
        except BaseException:
            self._unlock()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lock is not None and not self._resumable:
            self.discard()
        self._unlock()

    @contextmanager
    def draft(self, name: str) -> Iterator[Path]:
        """A path to write one file at; it moves to ``name`` when the block ends, whole and on disk."""
        draft = self._drafts / quote(name, safe="")
        draft.unlink(missing_ok=True)
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, self._permissions.file))
        yield draft
        final = self.tree / name
        final.parent.mkdir(mode=self._permissions.folder, parents=True, exist_ok=True)
        _move(draft, final)

    @contextmanager
    def file(self, name: str) -> Iterator[BinaryIO]:
        """Write one file of the folder; ``name`` may have a folder before it."""
        with _refusals_named(self.place, self._option), self.draft(name) as draft, draft.open("wb") as file:
            yield file

    def record(self, name: str, text: str) -> None:
        """Record something for a run that resumes this one."""
        draft = self._drafts / f"{quote(name, safe='')}.record"
        draft.write_text(text, encoding="utf-8")
        _move(draft, self.records / name)

    def keep_only(self, names: set[str]) -> None:
        """Remove every other file, and folders that are empty then."""
        for path in [Path(parent, file) for parent, _, files in os.walk(self.tree) for file in files]:
            if path.relative_to(self.tree).as_posix() not in names:
                path.unlink()
        for folder in sorted(_folders(self.tree), key=lambda path: -len(path.parts)):
            if folder != self.tree and not any(folder.iterdir()):
                folder.rmdir()

    def publish(self) -> None:
        """Put the folder at its place in one step, then remove what it replaces and the work folder."""
        self._require_replaceable(self.place, self._option)
        for folder in _folders(self.tree):
            _sync(folder)
        if _is_filled(self.place):
            exchange(self.tree, self.place, self._option)
        else:
            with _refusals_named(self.place, self._option):
                self.tree.rename(self.place)
        _sync(self.place.parent)
        shutil.rmtree(self._work)

    def discard(self) -> None:
        """Remove the work folder and leave the place as it is."""
        shutil.rmtree(self._work, ignore_errors=True)

    def _beside(self, suffix: str) -> Path:
        return self.place.with_name(f".{self.place.name}{suffix}")

    def _prepare(self) -> None:
        """Make the work folder; drafts of an earlier run are half made, and so is all that cannot be resumed."""
        shutil.rmtree(self._drafts if self._resumable else self._work, ignore_errors=True)
        self._work.mkdir(mode=OWNER_ONLY.folder, exist_ok=True)
        self._work.chmod(OWNER_ONLY.folder)
        self.tree.mkdir(mode=self._permissions.folder, exist_ok=True)
        self.records.mkdir(exist_ok=True)
        self._drafts.mkdir()

    def _remove_left_over(self) -> None:
        """Remove the work folders of other runs for this place: their owner would hold the lock."""
        prefix = f".{self.place.name}."
        for path in list(self.place.parent.iterdir()):
            run_id = path.name.removeprefix(prefix).removesuffix(_SUFFIX)
            ours = path.name == f"{prefix}{run_id}{_SUFFIX}" and "." not in run_id
            ours = ours or path == self._beside(_SUFFIX)
            if ours and path != self._work and path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)

    def _require_exchange(self) -> None:
        """Try it on two empty folders of the same file system, so that a long run does not fail at its end."""
        first, second = self._drafts / "first", self._drafts / "second"
        first.mkdir()
        second.mkdir()
        try:
            exchange(first, second, self._option)
        except Mistakes as error:
            raise _cannot_exchange(self.place, self._option) from error
        finally:
            first.rmdir()
            second.rmdir()

    def _locked(self) -> int:
        """Hold the lock file until closed; one that its holder has just removed does not count."""
        path = self._beside(".lock")
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, OWNER_ONLY.file)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                remedy = "wait until it has ended"
                raise mistake(self.place, self._option, "another run is writing it", remedy) from None
            if _is_open_at(path, descriptor):
                return descriptor
            os.close(descriptor)

    def _unlock(self) -> None:
        if self._lock is not None:
            try:
                self._beside(".lock").unlink(missing_ok=True)
            finally:
                os.close(self._lock)
                self._lock = None


def exchange(first: Path, second: Path, option: str) -> None:
    """Swap two folders of one file system; at no moment is either name missing."""
    libc = ctypes.CDLL(None, use_errno=True)
    one, two = os.fsencode(first), os.fsencode(second)
    if sys.platform == "darwin" and hasattr(libc, "renamex_np"):
        failed = libc.renamex_np(one, two, ctypes.c_uint(_RENAME_SWAP))
    elif hasattr(libc, "renameat2"):
        failed = libc.renameat2(_AT_FDCWD, one, _AT_FDCWD, two, ctypes.c_uint(_RENAME_EXCHANGE))
    else:
        raise _cannot_exchange(second, option)
    if failed:
        number = ctypes.get_errno()
        raise _cannot_exchange(second, option) from OSError(number, os.strerror(number))


def _cannot_exchange(place: Path, option: str) -> Mistakes:
    return mistake(
        place,
        option,
        "this file system cannot swap two folders in one step, so the old release cannot be replaced safely",
        "publish to a folder that does not exist yet, or remove the old release first",
    )


@contextmanager
def _refusals_named(place: Path, option: str) -> Iterator[None]:
    """Report a refusal of the operating system as a user's mistake."""
    try:
        yield
    except OSError as error:
        refusal = f"cannot be written: {error.strerror or 'refused'}"
        raise mistake(
            place, option, refusal, "name a folder that you may write, on one file system"
        ) from error


def _is_filled(place: Path) -> bool:
    return place.is_dir() and any(place.iterdir())


def _is_open_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _move(draft: Path, final: Path) -> None:
    """Put a written file at its place, both on disk."""
    _sync(draft)
    draft.replace(final)
    _sync(final.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _folders(folder: Path) -> Iterator[Path]:
    return (Path(parent) for parent, _, _ in os.walk(folder))
