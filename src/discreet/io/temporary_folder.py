"""A folder of the process: only its owner can open it, and it is removed with the object that refers to it."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
