import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.maths.cells import counting


@given(st.lists(st.integers(0, 2**32 - 1), max_size=50))
def test_an_accumulator_holds_count_and_key_sum(keys: list[int]) -> None:
    total = counting.increments(np.array(keys, dtype=np.uint32)).sum(dtype=np.uint64, keepdims=True)
    assert counting.counts_of(total)[0] == len(keys)
    assert counting.keys_of(total)[0] == sum(keys) % 2**32


@given(st.lists(st.tuples(st.integers(0, 2**32 - 1), st.sampled_from([0, 0, 1, 7, 2**32 - 1]))))
def test_occupied_cells_are_those_whose_count_is_not_zero(cells: list[tuple[int, int]]) -> None:
    sums = np.array([(key << 32) + count for key, count in cells], dtype=np.uint64)
    here, counts, records = counting.occupied(sums)
    assert here.tolist() == [at for at, (_, count) in enumerate(cells) if count]
    assert counts.tolist() == [count for _, count in cells if count]
    assert (records == sums[here]).all()


@given(st.integers(0, 2**32 - 1), st.integers(1, 20_000))
@settings(max_examples=25)
def test_counting_equals_bincount(seed: int, records: int) -> None:
    rng = np.random.default_rng(seed)
    narrow = rng.integers(0, 5, (2, records)).astype(np.uint8)
    wide = rng.integers(0, 300, (1, records)).astype(np.uint32)
    cells = np.zeros(5 * 5 * 300, dtype=np.uint64)
    rows, strides = np.array([0, 1]), np.array([1500, 300], dtype=np.uint32)
    added = counting.increments(rng.integers(0, 2**32, records).astype(np.uint32))
    one, unit = np.array([0]), np.array([1], dtype=np.uint32)
    half = records // 2
    for first, last in ((half, records), (0, half)):
        counting.count_cube(cells, added, narrow, rows, strides, wide, one, unit, first, last)
    position = narrow[0] * np.int64(1500) + narrow[1] * np.int64(300) + wide[0]
    assert (counting.counts_of(cells) == np.bincount(position, minlength=cells.size)).all()
    expected = np.zeros(cells.size, dtype=np.uint64)
    np.add.at(expected, position, added)
    assert (cells == expected).all()


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(2, 60), min_size=1, max_size=6).filter(lambda shape: math.prod(shape) <= 1 << 21),
    st.lists(st.booleans(), min_size=6, max_size=6),
    st.booleans(),
)
def test_positions_are_exact_below_and_above_16_bits(
    seed: int, shape: list[int], are_wide: list[bool], is_corner: bool
) -> None:
    rng = np.random.default_rng(seed)
    nodes = [
        np.full(100, size - 1) if is_corner and rng.random() < 0.5 else rng.integers(0, size, 100)
        for size in shape
    ]
    strides = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    order = rng.permutation(len(shape))
    narrow, wide = ([k for k in order if are_wide[k] is kind] for kind in (False, True))
    records = [
        column
        for some, kind in ((narrow, np.uint8), (wide, np.uint32))
        for column in (
            np.array([nodes[k] for k in some], dtype=kind).reshape(len(some), 100),
            np.arange(len(some)),
            np.array([strides[k] for k in some], dtype=np.uint32),
        )
    ]
    cells = np.zeros(math.prod(shape), dtype=np.uint64)
    counting.count_cube(cells, np.ones(100, dtype=np.uint64), *records, 0, 100)
    position = sum(node * stride for node, stride in zip(nodes, strides, strict=True))
    assert (cells == np.bincount(position, minlength=cells.size)).all()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 12), st.booleans(), st.sampled_from([1, 3_000, 40_000]))
def test_several_grids_are_counted_as_each_by_itself(
    seed: int, grids: int, short: bool, records: int
) -> None:
    random = np.random.default_rng(seed)
    added = random.integers(0, 2**63, records, dtype=np.uint64)
    narrow = random.integers(0, 20, (2, records), dtype=np.uint8)
    broad = 160 if short else 300
    wide = random.integers(0, broad, (1, records), dtype=np.uint32)
    outer = np.sort(random.integers(0, 3, records, dtype=np.uint32))
    bounds = counting.runs_of(outer, 3)
    assert bounds is not None
    size = 3 * 400 * broad
    strides = np.array([random.permutation([1, 20]) for _ in range(grids)], dtype=np.uint32)
    begin = np.arange(grids + 1, dtype=np.uint64) * np.uint64(size)
    cells = np.zeros(grids * size, dtype=np.uint64)
    counting.count_parents(
        *(*counting.room_for_grids(short), cells, begin, added),
        *(bounds, np.array([outer[bounds[:-1]]]), np.zeros(grids, dtype=np.int64)),
        np.full(grids, size // 3, dtype=np.uint64),
        *(narrow, 2 * np.arange(grids + 1), np.tile([0, 1], grids), strides.ravel()),
        *(wide, np.arange(grids + 1), np.zeros(grids, dtype=np.int64), np.full(grids, 400, dtype=np.uint32)),
    )
    for k, (one, two) in enumerate(strides.astype(np.int64)):
        position = outer * (size // 3) + narrow[0] * one + narrow[1] * two + wide[0] * 400
        expected = np.zeros(size, dtype=np.uint64)
        np.add.at(expected, position, added)
        assert np.array_equal(cells[k * size : (k + 1) * size], expected)


@given(st.lists(st.integers(0, 2), max_size=300), st.integers(0, 300))
def test_runs_begin_where_codes_change(codes: list[int], most: int) -> None:
    begin = [r for r in range(len(codes)) if r == 0 or codes[r] != codes[r - 1]]
    found = counting.runs_of(np.repeat(np.array(codes, dtype=np.uint8), 3), most)
    wanted = [3 * r for r in (*begin, len(codes))] if 0 < len(begin) <= most else None
    assert (None if found is None else found.tolist()) == wanted


@given(st.integers(0, 2**32 - 1), st.integers(1, 20_000), st.booleans(), st.sampled_from([300, 7_000]))
@settings(max_examples=40)
def test_counting_from_keys_equals_counting_what_they_add(
    seed: int, records: int, is_filtered: bool, codes: int
) -> None:
    rng = np.random.default_rng(seed)
    narrow = rng.integers(0, 5, (3, records)).astype(np.uint8)
    wide = rng.integers(0, codes, (2, records)).astype(np.uint32)
    keys = rng.integers(0, 2**32, records).astype(np.uint32)
    inside = rng.random(records) < 0.3 if is_filtered else np.zeros(0, dtype=bool)
    rows, strides = np.array([2, 0]), np.array([5 * codes, codes], dtype=np.uint32)
    one, unit = np.array([1]), np.array([1], dtype=np.uint32)
    from_keys, from_sums = (np.zeros(5 * 5 * codes, dtype=np.uint64) for _ in range(2))
    counting.count_keys(from_keys, keys, inside, narrow, rows, strides, wide, one, unit)
    added = counting.increments(keys) * (inside if is_filtered else np.uint64(1))
    counting.count_cube(from_sums, added, narrow, rows, strides, wide, one, unit, 0, records)
    assert (from_keys == from_sums).all()


PARENTS = (np.array([-1, 0, 1, 1, 0], dtype=np.int32), np.array([-1, 0, 0], dtype=np.int32))
FINEST = ([2, 3, 4], [1, 2])


def filled(rng: np.random.Generator) -> np.ndarray:
    cells = np.zeros((5, 3), dtype=np.uint64)
    cells[np.ix_(*FINEST)] = rng.integers(0, 2**63, (3, 2), dtype=np.uint64)
    return cells


def test_rolling_up_adds_children_to_parents() -> None:
    cells = filled(np.random.default_rng(1))
    finest = cells.copy()
    for axis in (0, 1):
        counting.roll_up(cells.reshape(-1), (5, 3), axis, PARENTS[axis])
    assert cells[0, 0] == finest.sum()
    assert cells[1, 1] == finest[2, 1] + finest[3, 1]
    assert cells[0, 2] == finest[:, 2].sum()
    assert cells[4, 2] == finest[4, 2]


@given(st.sets(st.integers(0, 2**40)), st.integers(0, 2**32 - 1))
def test_sums_are_aligned_with_the_positions_of_their_cells(cells: set[int], seed: int) -> None:
    positions = np.array(sorted(cells), dtype=np.int64)
    some = np.flatnonzero(np.random.default_rng(seed).integers(0, 2, len(positions)))
    aligned = np.zeros(len(positions), dtype=np.uint64)
    counting.align(aligned, positions, positions[some], some.astype(np.uint64) + np.uint64(1))
    assert np.flatnonzero(aligned).tolist() == some.tolist()
    assert aligned[some].tolist() == (some + 1).tolist()


@given(st.lists(st.tuples(st.integers(0, 2**40 - 1), st.integers(0, 2**64 - 1)), max_size=100))
def test_aggregate_sorts_and_adds(pairs: list[tuple[int, int]]) -> None:
    expected: dict[int, int] = {}
    for place, value in pairs:
        expected[place] = (expected.get(place, 0) + value) % 2**64
    given_pairs = np.array(pairs, dtype=np.uint64).reshape(-1, 2)
    position, sums = counting.aggregate(given_pairs[:, 0].copy(), given_pairs[:, 1].copy(), 2**40)
    assert dict(zip(position.tolist(), sums.tolist(), strict=True)) == expected
    assert position.tolist() == sorted(expected)


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.lists(st.integers(0, 10**9), max_size=30),
    st.booleans(),
)
def test_nodes_are_those_of_unravelled_positions(shape: list[int], cells: list[int], ascending: bool) -> None:
    size = int(np.prod(shape))
    some = np.array([cell % size for cell in cells], dtype=np.int64)
    some = np.sort(some) if ascending else some
    found = counting.nodes_along(some, tuple(shape))
    assert found.dtype == np.int32
    assert np.array_equal(found, np.array(np.unravel_index(some, shape)))


def test_a_table_without_axes_has_no_nodes() -> None:
    assert counting.nodes_along(np.zeros(1, dtype=np.int64), ()).shape == (0, 1)
