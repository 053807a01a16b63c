"""Folders of a process: only their owner can open them, and they are removed with what refers to them."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from discreet.errors import mistake


class TemporaryFolder:
    """A new folder that exists as long as this object does, or until ``remove()``."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="discreet-"))
        self.remove = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


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
        folder = Path(tempfile.mkdtemp(prefix=".discreet-", dir=inside.resolve()))
    except OSError as error:
        value = f"cannot be written: {(error.strerror or 'refused').lower()}"
        raise mistake(
            inside, "work folder", value, "give --out in a folder that all machines share"
        ) from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
