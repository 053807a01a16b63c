"""A folder of the process: only its owner can open it, and it is removed with the object that refers to it."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path


class TemporaryFolder:
    """A new folder that exists as long as this object does."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="discreet-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
