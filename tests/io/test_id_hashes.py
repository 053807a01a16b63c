"""Hashes of ids beyond what memory holds: what repeats is found, and no file is left."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import Mistakes
from discreet.io.id_hashes import Ascending, IdHashes

HASHES = st.integers(0, 40).map(
    lambda n: n * 0x0613_FFFF_0000_0001 % 2**64
)  # in many ranges, and often the same


@given(st.lists(st.lists(HASHES, max_size=30), max_size=6), st.integers(1, 50), st.integers(2, 5))
def test_what_occurs_is_found_whatever_fits_into_memory(
    parts: list[list[int]], most: int, times: int
) -> None:
    hashes = IdHashes(most)
    for part in parts:
        hashes.add(np.array(part, dtype=np.uint64))
    every = [one for part in parts for one in part]
    assert sorted(hashes.all().tolist()) == sorted(every)
    assert hashes.occurs(times) == any(every.count(one) >= times for one in every)
    assert hashes.occurs(times) == hashes.occurs(times)
    hashes.add(np.array(every * times, dtype=np.uint64))
    assert hashes.occurs(times) == bool(every)


@given(st.lists(st.none() | st.lists(st.integers(0, 9), max_size=4).map(sorted), max_size=4))
def test_numbers_that_increase_through_all_batches_are_different(parts: list[list[int] | None]) -> None:
    ascending = Ascending()
    for part in parts:
        ascending.add(None if part is None else np.array(part, dtype=np.int64))
    every = [one for part in parts for one in part or ()]
    assert bool(ascending) == (None not in parts and every == sorted(set(every)))


def test_the_file_has_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    hashes = IdHashes(10)
    hashes.add(np.arange(100, dtype=np.uint64))
    assert hashes._file is not None
    opened = Path(f"/proc/self/fd/{hashes._file.fileno()}").readlink()
    assert opened.parent == tmp_path
    assert list(tmp_path.iterdir()) == []
    assert not hashes.occurs(2)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    hashes = IdHashes(1)
    with pytest.raises(Mistakes, match=r"nowhere.*cannot be written.*TMPDIR"):
        hashes.add(np.arange(3, dtype=np.uint64))
