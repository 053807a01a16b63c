from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.audit.differencing_areas import Crossing, crossing_of_codes, read_crossing
from discreet.io.files import Records
from tests.audit.made import flat

rows = st.lists(
    st.tuples(st.sampled_from(["N1", "N2", "S1", "é"]), st.integers(-2, 3), st.integers(0, 5)), min_size=1
)


def as_records(table: pa.Table, size: int) -> Records:
    def read(plain: Sequence[str], coded: Sequence[str]) -> Iterator[pa.RecordBatch]:
        yield from table.select([*plain, *coded]).to_batches(max_chunksize=size)

    return Records("here", table.schema, read)


def pieces(crossing: Crossing) -> dict[tuple[str, str], int]:
    places = zip(crossing.a.tolist(), crossing.b.tolist(), crossing.counts.tolist(), strict=True)
    return {(crossing.codes[0][a], crossing.codes[1][b]): count for a, b, count in places}


@settings(max_examples=60, deadline=None)
@given(rows, st.integers(1, 7), st.booleans())
def test_pieces_are_added_up_over_batches_whatever_their_size(
    given_rows: list[tuple[str, int, int]], size: int, coded: bool
) -> None:
    a, b, n = (list(column) for column in zip(*[*given_rows, ("N1", 0, 1)], strict=True))
    grid = pa.array(a).dictionary_encode() if coded else pa.array(a)
    table = pa.table({"grid": grid, "lau": b, "n": n})
    wanted: Counter[tuple[str, str]] = Counter()
    for first, second, count in zip(a, b, n, strict=True):
        wanted[first, str(second)] += count
    summed = read_crossing(as_records(table, size), "grid", "lau", "n")
    assert pieces(summed) == {piece: count for piece, count in wanted.items() if count}
    every = read_crossing(as_records(table, size), "grid", "lau")
    assert pieces(every) == Counter((first, str(second)) for first, second in zip(a, b, strict=True))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=1), min_size=1, max_size=4)
)
def test_encoded_records_give_the_same_pieces(blocks: list[list[tuple[int, int]]]) -> None:
    arrays = [np.array(block, dtype=np.uint8).T for block in blocks]
    found = crossing_of_codes(flat("GRID", 3), flat("LAU", 4), [(a, b) for a, b in arrays])
    assert found.names == ("GRID", "LAU")
    assert pieces(found) == Counter((f"GRID{a}", f"LAU{b}") for block in blocks for a, b in block)
