"""Finished files of the last answers, up to so many bytes; it holds protected values alone.

Who may have which is the caller's matter: it is in the key.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock

from discreet.serve.http.downloads import File

OVERHEAD = 2_000  # bytes that a key and its places take
LARGEST_SHARE = 8  # a file that takes more than such a part of the room is not kept


class KeptFiles:
    """A cache of files, the least lately used forgotten first; safe for threads."""

    def __init__(self, most_bytes: int) -> None:
        self._most, self._held = most_bytes, 0
        self._files: OrderedDict[Hashable, File] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> File | None:
        """The file, where it is still kept."""
        with self._lock:
            found = self._files.get(key)
            if found is not None:
                self._files.move_to_end(key)
            return found

    def put(self, key: Hashable, file: File) -> None:
        """Keep a file."""
        size = len(file.body) + OVERHEAD
        if size > self._most // LARGEST_SHARE:
            return
        with self._lock:
            earlier = self._files.pop(key, None)
            self._held += size - (len(earlier.body) + OVERHEAD if earlier else 0)
            self._files[key] = file
            while self._held > self._most:
                _, oldest = self._files.popitem(last=False)
                self._held -= len(oldest.body) + OVERHEAD
