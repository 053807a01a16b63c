"""A cache bounded in bytes: of protected tables, and of finished files."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import lru_cache
from threading import Lock
from typing import Generic, TypeVar

from discreet.programme.cube import Cube
from discreet.tabulate.tables import ProtectedTable

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """A cache that drops the least recently used values first; safe for threads."""

    def __init__(self, most_bytes: int, size_of: Callable[[V], int], *, largest_share: int = 1) -> None:
        """Cache at most ``most_bytes``; a value above the ``largest_share``-th part of them is not cached."""
        self._most, self._largest, self._size_of = most_bytes, most_bytes // largest_share, size_of
        self._used = 0
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = Lock()

    def get(self, key: K) -> V | None:
        """The value, where it is still cached."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def has_room(self, size: int) -> bool:
        """Whether ``size`` bytes could be cached without dropping anything."""
        return self._used + size <= self._most

    def put(self, key: K, value: V) -> None:
        """Cache a value; the same key again takes no more room."""
        size = self._size_of(value)
        if size > self._largest:
            return
        with self._lock:
            earlier = self._values.pop(key, None)
            self._used += size - (0 if earlier is None else self._size_of(earlier))
            self._values[key] = value
            while self._used > self._most:
                _, oldest = self._values.popitem(last=False)
                self._used -= self._size_of(oldest)


TABLE_BYTES = 256 << 20
CELL_BYTES = 16  # a position and a value

MOST_KEYS = 100
TableKey = tuple[str, str, str, tuple[str, ...]]
TableCache = LruCache[TableKey, ProtectedTable]


@lru_cache(maxsize=MOST_KEYS)  # a question needs it several times
def key_of(cube: Cube) -> TableKey:
    """What makes two tables the same: who is counted, crossed by what."""
    base = cube.base.canonical if cube.base else ""
    return cube.unit, base, cube.count or "", tuple(axis.full_name for axis in cube.axes)


def table_cache(most_bytes: int = TABLE_BYTES) -> TableCache:
    """A cache of protected tables."""
    return LruCache(most_bytes, lambda table: table.cells.nbytes + table.values.nbytes)
