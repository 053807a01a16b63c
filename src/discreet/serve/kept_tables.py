"""The last protected tables that were asked for, up to so many bytes; a confidential one has no place here."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from discreet.perturb.table import ProtectedTable
from discreet.schema.cube import Cube

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
