"""Atomic folders: written completely, then published in one step; used for releases, swaps and reports.

The folder is built next to its destination in the work folder ``.NAME.partial``, which only its owner can open; the
lock file ``.NAME.lock`` blocks a second run. With a run id the work folder is ``.NAME.ID.partial`` and survives an
interrupted run, so that a run of the same id resumes it. Other leftovers of a killed run are removed by the next one.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import secrets
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
from discreet.io.ending import putting
from discreet.io.whole_file import sync

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
    """Refuse a destination that is a file or a non-empty folder, before any work is done."""
    if place.exists() and not place.is_dir():
        raise mistake(place, option, "is a file", "choose a folder that does not exist yet")
    with _os_errors_as_mistakes(place, option):
        if _is_filled(place):
            raise mistake(place, option, "exists and is not empty", "choose another folder, or remove it")


class AtomicFolder:
    """A folder that is being written; the ``with`` block holds the lock on its destination.

    ``require_replaceable`` raises if the existing folder must not be replaced; by default the destination must be free.
    Without ``publish``, the block removes what was written at its end, unless a run id makes it resumable.
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
        self._work = self._sibling(f".{run_id}{_SUFFIX}" if run_id else _SUFFIX)
        self._drafts = self._work / "drafts"
        self._lock: int | None = None

    @property
    def tree(self) -> Path:
        """The folder of the files until they are published."""
        return self._work / "tree"

    @property
    def records(self) -> Path:
        """The folder in which a resumable run records its finished steps; never published."""
        return self._work / "records"

    @property
    def private(self) -> Path:
        """A folder for confidential files of a run; never published, and removed with the work folder."""
        return self._work / "private"

    def __getstate__(self) -> dict[str, object]:
        """A copy, perhaps on another machine, writes files into the work folder; the lock stays where it is."""
        return {**vars(self), "_lock": None}

    def __enter__(self) -> Self:
        with _os_errors_as_mistakes(self.place, self._option):
            self.place.parent.mkdir(parents=True, exist_ok=True)
            self._lock = self._locked()
        try:
            self._require_replaceable(self.place, self._option)
            with _os_errors_as_mistakes(self.place, self._option):
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
        """A path to write one file to; when the block ends, the file is synced to disk and moved to ``name``."""
        # two attempts at one task of an engine may write the same file at once
        draft = self._drafts / f"{quote(name, safe='')}.{secrets.token_hex(8)}"
        with _os_errors_as_mistakes(self.place, self._option):
            os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, self._permissions.file))
            yield draft
            final = self.tree / name
            final.parent.mkdir(mode=self._permissions.folder, parents=True, exist_ok=True)
            _move(draft, final)

    @contextmanager
    def file(self, name: str) -> Iterator[BinaryIO]:
        """Open one file of the folder for writing; ``name`` may include a subfolder."""
        with self.draft(name) as draft, draft.open("wb") as file:
            yield file

    def record(self, name: str, content: bytes) -> None:
        """Store a record for a run that resumes this one."""
        draft = self._drafts / f"{quote(name, safe='')}.{secrets.token_hex(8)}"
        with _os_errors_as_mistakes(self.place, self._option):
            draft.write_bytes(content)
            _move(draft, self.records / name)

    def keep_only(self, names: set[str]) -> None:
        """Remove all other files, then empty folders."""
        for path in [Path(parent, file) for parent, _, files in os.walk(self.tree) for file in files]:
            if path.relative_to(self.tree).as_posix() not in names:
                path.unlink()
        for folder in sorted(_folders(self.tree), key=lambda path: -len(path.parts)):
            if folder != self.tree and not any(folder.iterdir()):
                folder.rmdir()

    def publish(self) -> None:
        """Move the folder to its destination in one step, then remove the replaced folder and the work folder."""
        self._require_replaceable(self.place, self._option)
        for folder in _folders(self.tree):
            sync(folder)
        with putting(str(self.place)):
            if _is_filled(self.place):
                exchange(self.tree, self.place, self._option)
            else:
                with _os_errors_as_mistakes(self.place, self._option):
                    self.tree.rename(self.place)
        sync(self.place.parent)
        shutil.rmtree(self._work)

    def discard(self) -> None:
        """Remove the work folder and leave the destination unchanged."""
        shutil.rmtree(self._work, ignore_errors=True)

    def _sibling(self, suffix: str) -> Path:
        return self.place.with_name(f".{self.place.name}{suffix}")

    def _prepare(self) -> None:
        """Create the work folder, without drafts of an earlier run and, if not resumable, without anything of it."""
        for left in (self._drafts, self.private) if self._resumable else (self._work,):
            shutil.rmtree(left, ignore_errors=True)
        self._work.mkdir(mode=OWNER_ONLY.folder, exist_ok=True)
        self._work.chmod(OWNER_ONLY.folder)
        self.tree.mkdir(mode=self._permissions.folder, exist_ok=True)
        self.records.mkdir(exist_ok=True)
        self._drafts.mkdir()
        self.private.mkdir(mode=OWNER_ONLY.folder)

    def _remove_left_over(self) -> None:
        """Remove work folders of other runs for this destination; a running one would hold the lock."""
        prefix = f".{self.place.name}."
        for path in list(self.place.parent.iterdir()):
            run_id = path.name.removeprefix(prefix).removesuffix(_SUFFIX)
            ours = path.name == f"{prefix}{run_id}{_SUFFIX}" and "." not in run_id
            ours = ours or path == self._sibling(_SUFFIX)
            if ours and path != self._work and path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)

    def _require_exchange(self) -> None:
        """Try the exchange on two empty folders first, so that a long run does not fail at its end."""
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
        """Lock the lock file and return its descriptor; retry if its previous holder has just removed it."""
        path = self._sibling(".lock")
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, OWNER_ONLY.file)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                remedy = "wait until it ends"
                raise mistake(self.place, self._option, "another run is writing it", remedy) from None
            if _is_open_at(path, descriptor):
                return descriptor
            os.close(descriptor)

    def _unlock(self) -> None:
        if self._lock is not None:
            try:
                self._sibling(".lock").unlink(missing_ok=True)
            finally:
                os.close(self._lock)
                self._lock = None


def exchange(first: Path, second: Path, option: str) -> None:
    """Exchange two folders of one file system atomically."""
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
        "this file system cannot exchange two folders in one step, so the old release cannot be replaced safely",
        "publish to a folder that does not exist yet, or remove the old release first",
    )


@contextmanager
def _os_errors_as_mistakes(place: Path, option: str) -> Iterator[None]:
    """Report an error of the operating system as a user's mistake."""
    try:
        yield
    except OSError as error:
        # Arrow's errors have a sentence around the reason
        refusal = (
            f"cannot be written: {os.strerror(error.errno) if error.errno else error.strerror or 'refused'}"
        )
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        remedy = "make room" if full else "choose a folder that you can write to, on one file system"
        raise mistake(place, option, refusal, remedy) from error


def _is_filled(place: Path) -> bool:
    return place.is_dir() and any(place.iterdir())


def _is_open_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _move(draft: Path, final: Path) -> None:
    """Move a written file to its final path and sync both to disk."""
    sync(draft)
    draft.replace(final)
    sync(final.parent)


def _folders(folder: Path) -> Iterator[Path]:
    return (Path(parent) for parent, _, _ in os.walk(folder))
