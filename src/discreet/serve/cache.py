"""Caches of protected tables and of finished files, bounded in bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock

from discreet.programme.cube import Cube
from discreet.serve.http.downloads import File
from discreet.tabulate.tables import ProtectedTable

MOST_BYTES = 256 << 20
CELL_BYTES = 16  # a position and a value

Key = tuple[str, str, str, tuple[str, ...]]


def key_of(cube: Cube) -> Key:
    """What makes two tables the same: who is counted, crossed by what."""
    base = cube.base.canonical if cube.base else ""
    return cube.unit, base, cube.count or "", tuple(axis.full_name for axis in cube.axes)


class KeptTables:
    """A cache of protected tables, the least lately used forgotten first; safe for threads."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most, self._held = most_bytes, 0
        self._tables: OrderedDict[Key, ProtectedTable] = OrderedDict()
        self._lock = Lock()

    def get(self, cube: Cube) -> ProtectedTable | None:
        """The table, where it is still kept."""
        with self._lock:
            table = self._tables.get(key_of(cube))
            if table is not None:
                self._tables.move_to_end(key_of(cube))
            return table

    def has_room(self, cells: int) -> bool:
        """Whether a table of so many cells could be kept with nothing forgotten for it."""
        return self._held + CELL_BYTES * cells <= self._most

    def put(self, cube: Cube, table: ProtectedTable) -> None:
        """Keep a table; one that is too large alone is not kept."""
        if _bytes(table) > self._most:
            return
        with self._lock:
            earlier = self._tables.pop(key_of(cube), None)
            self._held += _bytes(table) - (_bytes(earlier) if earlier else 0)
            self._tables[key_of(cube)] = table
            while self._held > self._most:
                _, oldest = self._tables.popitem(last=False)
                self._held -= _bytes(oldest)


def _bytes(table: ProtectedTable) -> int:
    return table.cells.nbytes + table.values.nbytes


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
