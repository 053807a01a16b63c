"""Files that appear whole: written beside their place, synced to disk, then moved there in one step."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from discreet.io.ending import putting

OWNER_ONLY_FILE = 0o600
PUBLIC_FILE = 0o666  # before the user's umask
_SHOWN = 40  # characters of a name, which with its draft's must not be too long for the file system


@contextmanager
def whole_file(path: Path, mode: int) -> Iterator[Path]:
    """A path to write a file to; it replaces ``path`` when the block ends, and is removed if the block fails."""
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
