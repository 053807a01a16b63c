"""Files that appear whole: written beside their place, synced to disk, then moved there in one step."""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from discreet.errors import mistake
from discreet.io.ending import putting

OWNER_ONLY_FILE = 0o600
PUBLIC_FILE = 0o666  # before the user's umask
_RANDOM = 8  # bytes in the name of a draft
_SHOWN = 40  # characters of a name, which with its draft's must not be too long for the file system


@contextmanager
def whole_file(path: Path, mode: int) -> Iterator[Path]:
    """A path to write a file to; it replaces ``path`` when the block ends, and is removed if the block fails.

    A process that is killed leaves its draft, without the lock on it; the next one that writes the file removes it.
    """
    _require_replaceable(path)
    _remove_abandoned(path)
    draft, lock = _locked_draft(path, mode)
    try:
        yield draft
        sync(draft)
        with putting(str(path)):
            draft.replace(path)
        sync(path.parent)
    finally:
        draft.unlink(missing_ok=True)
        os.close(lock)


def _locked_draft(path: Path, mode: int) -> tuple[Path, int]:
    """A new file beside the path, and the descriptor that has its lock, where the file system has locks."""
    while True:
        draft = path.with_name(f"{_beginning(path)}{secrets.token_hex(_RANDOM)}{path.suffix[:_SHOWN]}")
        lock = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        if draft.exists():
            return draft, lock
        os.close(lock)  # taken for abandoned before it was locked


def _remove_abandoned(path: Path) -> None:
    """Remove the drafts of a file that no process has locked."""
    with suppress(OSError), os.scandir(path.parent) as entries:
        for entry in entries:
            middle = entry.name.removeprefix(_beginning(path)).removesuffix(path.suffix[:_SHOWN])
            is_draft = entry.name == f"{_beginning(path)}{middle}{path.suffix[:_SHOWN]}" and _is_random(
                middle
            )
            if is_draft and entry.is_file(follow_symlinks=False):
                _remove_unlocked(Path(entry.path))


def _remove_unlocked(draft: Path) -> None:
    with suppress(OSError):
        lock = os.open(draft, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            draft.unlink()
        finally:
            os.close(lock)


def _beginning(path: Path) -> str:
    return f".{path.name[:_SHOWN]}."


def _is_random(text: str) -> bool:
    return len(text) == 2 * _RANDOM and set(text) <= set("0123456789abcdef")


def _require_replaceable(path: Path) -> None:
    """Refuse what is no file, such as /dev/null, and links to what is open, such as /dev/stdout.

    A user who may write to their folder would move the file into their place, for all programs of the machine.
    """
    is_open = path.is_symlink() and path.readlink().is_relative_to("/proc")
    if is_open or is_special(path):
        raise mistake(path, "", "is a device or a pipe", "give the name of a file")


def is_special(path: Path) -> bool:
    """Whether a device, a pipe or a socket is there."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


@contextmanager
def new_file(path: Path, mode: int) -> Iterator[int]:
    """The descriptor of a file that must not exist yet; it is removed if the block fails."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with putting(str(path)):
            yield descriptor
            os.fsync(descriptor)
    except BaseException:
        path.unlink()
        raise
    finally:
        os.close(descriptor)


def sync(path: Path) -> None:
    """Let a file or folder be on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
