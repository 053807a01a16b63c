"""Hashes of the ids of a table, in bounded memory: whether one occurs too often, and how many different ones there are.

Ids that only increase are all different, which is seen without comparing their hashes.

The ids of a hundred million persons have 0.8 GB of hashes. Beyond ``MOST`` they are sorted and written to a temporary
file without a name: no other process can open it, and it is gone with this one, however it ends.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import mistake

MOST = 1 << 24  # hashes in memory: 134 MB
RANGES = 256  # of hashes by their first bits; some of them are compared at a time

Hashes = NDArray[np.uint64]


class Ascending:
    """Whether whole numbers that are added batch by batch increase from each to the next: then no two are equal."""

    def __init__(self) -> None:
        self._last: int | None = None
        self._so_far = True

    def __bool__(self) -> bool:
        return self._so_far

    def add(self, numbers: NDArray[np.integer[Any]] | None) -> None:
        """Look at the next numbers; None where they are none, such as ids that are text."""
        if not self._so_far or numbers is None:
            self._so_far = False
        elif len(numbers):
            follows = self._last is None or self._last < int(numbers[0])
            self._so_far = follows and bool((numbers[1:] > numbers[:-1]).all())
            self._last = int(numbers[-1])


class IdHashes:
    """The hashes of the ids of one table, added in any order; ``most``: how many are in memory at once."""

    def __init__(self, most: int = MOST) -> None:
        self._most, self._used = most, 0
        self._pending = self._room()
        self._file: IO[bytes] | None = None
        self._runs: list[NDArray[np.int64]] = []  # run -> range -> where it begins in the file, in hashes

    def add(self, hashes: Hashes) -> None:
        """Add the hashes of some records."""
        while len(hashes):
            if self._used == self._most:
                self._store()
            some = hashes[: self._most - self._used]
            self._pending[self._used : self._used + len(some)] = some
            self._used += len(some)
            hashes = hashes[len(some) :]

    def all(self) -> Hashes:
        """All hashes added so far, in some order."""
        stored = [self._read(run, 0, RANGES) for run in self._runs]
        return np.concatenate([*stored, self._pending[: self._used]])

    def occurs(self, times: int) -> bool:
        """Whether an id was added so many times, by its hash: n different ids collide with probability n^2/2^65."""
        return any(
            len(some) >= times and bool((some[times - 1 :] == some[: len(some) - times + 1]).any())
            for some in self._ascending()
        )

    def distinct(self) -> int:
        """The number of different hashes."""
        return sum(min(1, len(some)) + int((some[1:] != some[:-1]).sum()) for some in self._ascending())

    def _ascending(self) -> Iterator[Hashes]:
        """All hashes in ascending order, some at a time: equal ones are together."""
        if not self._runs:
            some = self._pending[: self._used]
            some.sort()
            yield some
            return
        self._store()
        total = sum(int(run[-1] - run[0]) for run in self._runs)
        at_once = max(1, RANGES * self._most // total)
        self._pending = self._room()
        for first in range(0, RANGES, at_once):
            some = np.concatenate([self._read(run, first, first + at_once) for run in self._runs])
            some.sort()
            yield some

    def _room(self) -> Hashes:
        return np.empty(self._most, dtype=np.uint64)  # memory is only taken where it is written to

    def _store(self) -> None:
        """Write the hashes in memory to the file, sorted, as its next run."""
        run = self._pending[: self._used]
        run.sort()
        edges = np.arange(1, RANGES, dtype=np.uint64) << np.uint64(56)
        begin = int(self._runs[-1][-1]) if self._runs else 0
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="discreet-")  # noqa: SIM115
                weakref.finalize(self, self._file.close)
            self._file.write(run.data)
        except OSError as error:
            value = f"cannot be written: {(error.strerror or 'refused').lower()}"
            remedy = "set TMPDIR to a folder with room for 8 bytes of each record"
            raise mistake(tempfile.gettempdir(), "temporary file", value, remedy) from None
        self._runs.append(begin + np.concatenate([[0], np.searchsorted(run, edges), [len(run)]]))
        self._used = 0

    def _read(self, run: NDArray[np.int64], first: int, last: int) -> Hashes:
        """The hashes of some ranges of a run."""
        begin, end = int(run[first]), int(run[min(last, RANGES)])
        assert self._file is not None
        self._file.seek(8 * begin)
        return np.frombuffer(self._file.read(8 * (end - begin)), dtype=np.uint64)
