"""Files that appear whole: written beside their place, synced to disk, then moved there in one step."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from discreet.errors import mistake
from discreet.io.ending import putting

OWNER_ONLY_FILE = 0o600
PUBLIC_FILE = 0o666  # before the user's umask
_SHOWN = 40  # characters of a name, which with its draft's must not be too long for the file system


@contextmanager
def whole_file(path: Path, mode: int) -> Iterator[Path]:
    """A path to write a file to; it replaces ``path`` when the block ends, and is removed if the block fails."""
    _require_replaceable(path)
    draft = path.with_name(f".{path.name[:_SHOWN]}.{secrets.token_hex(8)}{path.suffix[:_SHOWN]}")
    try:
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
        yield draft
        sync(draft)
        with putting(str(path)):
            draft.replace(path)
        sync(path.parent)
    finally:
        draft.unlink(missing_ok=True)


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
