"""Tables that are added up from cells counted ahead are those that would be counted."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from itertools import combinations, product
from math import prod

import numpy as np
import pytest

from discreet.maths.cells.counting import SMALL_GRID
from discreet.programme.codelist import Breakdown
from discreet.programme.cube import Cube
from discreet.programme.filter import parse_filter
from discreet.programme.programme import Programme
from discreet.programme.serve import ServeRule
from discreet.serve import ahead, records
from discreet.serve.ahead import likely_cubes
from discreet.serve.jobs_store import Store
from discreet.serve.open import TableBuilder, serve_programme
from discreet.serve.query import Axis, Group, Query
from discreet.serve.question import resolve
from discreet.serve.records import EncodedUnit, MicrodataSource
from discreet.tabulate.counter import CubeCounter
from tests.serve.conftest import SECRET, cells, query
from tests.serve.test_encoded_unit import block_of, pieces, whole

NAMES = ("AGE", "EDU", "GEO", "SEX")


@pytest.fixture
def axes(programme: Programme) -> list[Breakdown]:
    return [axis for name in NAMES for axis in programme.variables[name].breakdowns.values()]


@pytest.fixture
def unit(programme: Programme, axes: list[Breakdown], monkeypatch: pytest.MonkeyPatch) -> EncodedUnit:
    """In two parts."""
    monkeypatch.setattr(records, "PART", 1000)
    finest = [max(programme.variables[name].breakdowns.values(), key=len) for name in NAMES]
    block = block_of(programme, Cube("", "persons", tuple(finest), count="works"))
    return EncodedUnit(pieces(block, [1500]), axes)


def every_cube(programme: Programme) -> list[Cube]:
    """All crosses of up to three variables, at every level."""
    known = {name: tuple(programme.variables[name].breakdowns.values()) for name in NAMES}
    return [
        Cube("", "persons", chosen)
        for number in range(4)
        for names in combinations(NAMES, number)
        for chosen in product(*(known[name] for name in names))
    ]


@pytest.mark.parametrize("small", [200, 3_000, 1 << 15])
def test_tables_are_added_up_as_they_are_counted(
    programme: Programme,
    axes: list[Breakdown],
    unit: EncodedUnit,
    monkeypatch: pytest.MonkeyPatch,
    small: int,
) -> None:
    monkeypatch.setattr(ahead, "SMALL_GRID", small)
    asked = every_cube(programme)
    direct = [whole(unit.count(cube)) for cube in asked]
    assert {unit.reads(cube) for cube in asked} == {len(unit)}
    unit.prepare(likely_cubes("persons", axes, ("GEO",)))
    added_up = [cube for cube in asked if unit.reads(cube) == 0]
    for cube, expected in zip(asked, direct, strict=True):
        assert np.array_equal(whole(unit.count(cube)), expected)
    by_place = [cube for cube in added_up if len(cube.axes) == 3]
    assert all("GEO" in {axis.variable for axis in cube.axes} for cube in by_place)
    assert 10 < len(added_up) < len(asked)
    if small > 10_000:
        assert len(by_place) > 20


def test_filters_flags_and_groups_are_counted(
    programme: Programme, axes: list[Breakdown], unit: EncodedUnit
) -> None:
    unit.prepare(likely_cubes("persons", axes, ("GEO",)))
    sex = next(axis for axis in axes if axis.variable == "SEX")
    plain = Cube("", "persons", (sex,))
    lists = {name: programme.variables[name].codelist for name in NAMES}
    assert unit.reads(plain) == 0
    for other in (
        replace(plain, count="works"),
        replace(plain, base=parse_filter('EDU != "1"', lists, key="base")),
        replace(plain, axes=(replace(sex, grouped="SEX"),)),
    ):
        assert unit.reads(other) == len(unit)


def test_likely_cubes_are_as_fine_as_a_small_grid_allows(axes: list[Breakdown]) -> None:
    found = list(likely_cubes("persons", axes, ("GEO",)))
    crosses = [tuple(axis.variable for axis in cube.axes) for cube in found]
    assert set(crosses) == {("AGE", "EDU", "GEO"), ("AGE", "GEO", "SEX"), ("EDU", "GEO", "SEX")}
    assert len(crosses) > 3, "a cross that is finer along one axis, and one that is finer along another"
    assert len(set(found)) == len(found)
    for cube in found:
        assert cube.size <= SMALL_GRID
        finer = [
            min(
                (one for one in axes if one.variable == axis.variable and len(one) > len(axis)),
                key=len,
                default=axis,
            )
            for axis in cube.axes
        ]
        larger = [
            prod(len(finer[k] if k == at else axis) for k, axis in enumerate(cube.axes)) for at in range(3)
        ]
        assert all(size == cube.size or size > SMALL_GRID for size in larger)
    without = list(likely_cubes("persons", [axis for axis in axes if axis.variable != "GEO"], ("GEO",)))
    assert [len(cube.axes) for cube in without] == [2, 2, 2]
    assert [len(cube.axes) for cube in likely_cubes("persons", axes[:1], ())] == [1]


def test_cells_that_are_added_meanwhile_are_not_mixed_with_others(
    axes: list[Breakdown], unit: EncodedUnit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two steps of a question a finer cube may take the place of the one that it began with."""
    of = {(axis.variable, len(axis)): axis for axis in axes}
    sex, *ages = (
        of[key] for key in sorted(of, key=lambda key: (key[0] == "AGE", key)) if key[0] in ("AGE", "SEX")
    )
    coarse, fine = (Cube("", "persons", (age, sex)) for age in (ages[0], ages[-1]))
    expected = whole(unit.count(coarse))
    unit.prepare([coarse])
    compare = ahead._coarser

    def slow(*both: Breakdown) -> object:
        monkeypatch.setattr(ahead, "_coarser", compare)
        unit.prepare([fine])
        return compare(*both)

    monkeypatch.setattr(ahead, "_coarser", slow)
    assert np.array_equal(whole(unit.count(coarse)), expected)
    assert ahead._coarser is compare
    assert fine in [one.cube for one in unit._ahead._of[frozenset(("AGE", "SEX"))]]


def test_every_small_table_of_a_place_and_two_variables_is_added_up(
    programme: Programme, axes: list[Breakdown], unit: EncodedUnit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "SMALL_GRID", 3_000)
    unit.prepare(likely_cubes("persons", axes, ("GEO",)))
    small = [
        cube
        for cube in every_cube(programme)
        if len(cube.axes) == 3 and "GEO" in {axis.variable for axis in cube.axes} and cube.size <= 3_000
    ]
    assert len(small) > 10
    assert {unit.reads(cube) for cube in small} == {0}


def test_a_table_is_added_up_from_the_fewest_cells(
    programme: Programme, axes: list[Breakdown], unit: EncodedUnit
) -> None:
    unit.prepare(likely_cubes("persons", axes, ("GEO",)))
    for cube in every_cube(programme):
        found = unit._ahead._finer(cube)
        enough = [
            len(one.cells)
            for some in unit._ahead._of.values()
            for one in some
            if {axis.variable for axis in one.cube.axes} >= {axis.variable for axis in cube.axes}
            and ahead._maps(one.cube, cube) is not None
        ]
        assert (found is None) == (not enough)
        assert found is None or len(found[0].cells) == min(enough)


def test_crosses_that_are_large_at_every_level_are_left_out(
    axes: list[Breakdown], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "SMALL_GRID", 60)
    found = list(likely_cubes("persons", axes, ("GEO",)))
    assert len(found) < 3
    assert all(cube.size <= 60 for cube in found)


def test_counting_ahead_ends_when_it_is_stopped(
    axes: list[Breakdown], unit: EncodedUnit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "AT_ONCE", 1)
    likely = list(likely_cubes("persons", axes, ("GEO",)))
    unit.prepare(likely, lambda: unit.reads(likely[0]) == 0)
    assert [unit.reads(cube) for cube in likely] == [0, *(len(unit) for _ in likely[1:])]


def test_cells_of_some_of_the_records_are_never_used(
    axes: list[Breakdown], unit: EncodedUnit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that ends counts only a part of its records into the cubes at hand."""
    monkeypatch.setattr(records, "BLOCK", 100)
    likely = list(likely_cubes("persons", axes, ("GEO",)))
    looks = iter([False, False, True, True])
    unit.prepare(likely, lambda: next(looks))
    assert {unit.reads(cube) for cube in likely} == {len(unit)}


def test_no_more_is_counted_ahead_than_there_is_room_for_and_nothing_twice(
    axes: list[Breakdown], unit: EncodedUnit, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[Cube] = []

    class Counting(CubeCounter):
        def __init__(self, cubes: Sequence[Cube], pool: Executor, room: int) -> None:
            counted.extend(cubes)
            super().__init__(cubes, pool, room)

    monkeypatch.setattr(records, "CubeCounter", Counting)
    likely = list(likely_cubes("persons", axes, ("GEO",)))
    monkeypatch.setattr(ahead, "MOST_BYTES", ahead.CELL_BYTES * likely[0].size)
    for _ in range(2):
        unit.prepare(likely)
    assert counted[0] is likely[0]
    assert len(counted) < len(likely)
    assert len(set(counted)) == len(counted)
    assert unit._ahead._bytes <= ahead.MOST_BYTES


@pytest.fixture
def ruled(programme: Programme, store: Store) -> Callable[..., TableBuilder]:
    """Each reads the records itself."""
    return lambda **rules: serve_programme(replace(programme, serve=ServeRule(**rules)), SECRET, store)


def test_answers_are_the_same_whether_cells_were_counted_ahead_or_not(
    ruled: Callable[..., TableBuilder], monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = ruled(groupings=("AGE",))
    prepared.prepare()
    monkeypatch.setattr(records, "likely_cubes", lambda *_given: iter(()))
    usual = ruled(groupings=("AGE",))
    assert isinstance(prepared._source, MicrodataSource)
    group = Axis("AGE", groups=(Group("young", ("Y_LT15",)),))
    asked = [
        query("GEO.M", "SEX", "EDU"),
        query("AGE.M"),
        query("LOC", unit="persons"),
        Query("persons", (group,)),
    ]
    assert prepared._source.seconds(resolve(asked[0], prepared.catalogue).cube) < usual.seconds(asked[0])
    for one in asked:
        assert cells(prepared.ask(one, "u")) == cells(usual.ask(one, "u"))


def test_tables_are_answered_at_once_as_they_are_counted(
    ruled: Callable[..., TableBuilder], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cells are counted ahead while the records are read; small tables need nothing more, those with a filter do."""
    quick = ruled()
    monkeypatch.setattr(records, "likely_cubes", lambda *_given: iter(()))
    usual = ruled()
    for asked in (query("SEX", "AGE.M"), query("GEO.M", "SEX", "EDU"), query("AGE.M")):
        assert usual.ask_at_once(asked, "u") is None, "records are read"
        found = quick.ask_at_once(asked, "u")
        assert found is not None
        assert found.stored is None, "there is no history"
        assert cells(found.answer) == cells(usual.ask(asked, "u"))
    filtered = query("CAS.H", "EDU", where='AGE != "Y_LT15" and SEX == "1"')
    assert quick.ask_at_once(filtered, "u") is None
