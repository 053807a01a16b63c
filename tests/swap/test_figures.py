"""The auditor's figures against counts made one by one."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.programme.programme import load_programme
from discreet.swap.figures import (
    RiskMembers,
    SwapFigures,
    coordinate_columns,
    distances_of,
    figures_of,
    read_members,
)
from discreet.swap.result import Moves, SwapHouseholds, SwapResult, Why
from tests.swap.village_files import HOMES, SECRET, TOWNS, build, swapped, tables

PAIRS = [(0, 1), (2, 7), (5, 10), (22, 20)]
K = 3


def result_of(area: list[int], pairs: list[tuple[int, int]]) -> SwapResult:
    """Households in eight small regions of two large ones."""
    number = len(area)
    partner = np.full(number, -1, dtype=np.int64)
    for one, two in pairs:
        partner[one], partner[two] = two, one
    moved = partner >= 0
    fine = np.array(area, dtype=np.int32)
    households = SwapHouseholds(
        np.arange(number, dtype=np.uint64),
        ("large", "small"),
        (("A", "B"), tuple(f"r{code}" for code in range(8))),
        np.stack([fine // 4, fine]),
        np.ones(number, dtype=np.int32),
        np.ones((2, number)),
        np.full(number, -1, dtype=np.int8),
        np.zeros(number, dtype=np.uint8),
        np.zeros((1, number), dtype=np.int32),
    )
    level = np.where(moved, 1, -1).astype(np.int8)
    why = np.where(moved, Why.RATE, Why.NOT_SWAPPED).astype(np.uint8)
    moves = Moves(households.ids[moved], {})
    return SwapResult(
        households, partner, level, np.where(moved, 0, -1).astype(np.int8), moved, why, (), moves
    )


@st.composite
def swaps(draw: st.DrawFn) -> tuple[SwapResult, RiskMembers]:
    homes = draw(st.integers(2, 20))
    area = draw(st.lists(st.integers(0, 7), min_size=homes, max_size=homes))
    order = draw(st.permutations(range(homes)))
    pairs = [(one, two) for one, two in zip(order[::2], order[1::2], strict=False) if area[one] != area[two]]
    result = result_of(area, pairs[: draw(st.integers(0, homes))])
    persons = draw(st.integers(0, 40))
    household = np.array(
        draw(st.lists(st.integers(-1, homes - 1), min_size=persons, max_size=persons)), dtype=np.int64
    )
    codes = st.lists(st.integers(0, 2), min_size=persons, max_size=persons)
    outside = np.array(draw(st.lists(st.integers(0, 7), min_size=persons, max_size=persons)), dtype=np.int32)
    fine = np.where(household >= 0, result.households.area[1][household], outside).astype(np.int32)
    values = {name: np.array(draw(codes), dtype=np.int32) for name in ("AGE", "SEX")}
    return result, RiskMembers(household, np.stack([fine // 4, fine]), values)


@given(swaps())
def test_risk_uniques_and_changes_are_those_counted_one_by_one(swap: tuple[SwapResult, RiskMembers]) -> None:
    result, members = swap
    figures = figures_of(result, members, K, ["SIZE"])
    for number in range(2):
        before, after = [], []
        for person, home in enumerate(members.household):
            values = (int(members.codes["AGE"][person]), int(members.codes["SEX"][person]))
            here = there = int(members.region[number, person])
            if home >= 0 and result.partner[home] >= 0:
                there = int(result.households.area[number, result.partner[home]])
            before.append((here, *values))
            after.append((there, *values))
        one, two = Counter(before), Counter(after)
        homes = [int(home) for home in members.household]
        found = figures.levels[number]
        assert found.at_risk_before == len(
            {h for h, c in zip(homes, before, strict=True) if h >= 0 and one[c] < K}
        )
        assert found.at_risk_after == len(
            {h for h, c in zip(homes, after, strict=True) if h >= 0 and two[c] < K}
        )
        assert found.uniques_before == sum(one[cell] == 1 for cell in before)
        assert found.uniques_after == sum(two[cell] == 1 for cell in after)
        assert found.true_uniques == sum(one[cell] == 1 and two[cell] == 1 for cell in after)
        same = sum(x == y and one[x] == 1 and two[y] == 1 for x, y in zip(before, after, strict=True))
        assert found.same_persons == same
        change = next(c for c in figures.tables if c.level == found.level and c.table == "AGE x SEX")
        cells = one.keys() | two.keys()
        total = sum(abs(one[cell] - two[cell]) for cell in cells)
        assert change.cells == len(cells)
        assert change.mean_absolute * max(1, len(cells)) == pytest.approx(total)
        assert change.changed == sum(one[cell] != two[cell] for cell in cells)
    assert sum(figures.shared.values()) == figures.swapped == result.swapped


@given(swaps())
def test_nothing_changes_at_a_level_that_all_partners_share(swap: tuple[SwapResult, RiskMembers]) -> None:
    result, members = swap
    area = result.households.area.copy()
    area[0] = 0
    inside = replace(result, households=replace(result.households, area=area))
    region = members.region.copy()
    region[0] = 0
    figures = figures_of(inside, replace(members, region=region), K, ["SIZE"])
    assert all(change.mean_absolute == 0 for change in figures.tables if change.level == "large")
    assert figures.levels[0].at_risk_before == figures.levels[0].at_risk_after


def figures_of_village(folder: Path) -> SwapFigures:
    programme, result = build(folder), swapped(PAIRS)
    return figures_of(result, read_members(programme, result.households, SECRET), K, ["SIZE"])


def test_members_are_read_with_their_households_places_and_values(tmp_path: Path) -> None:
    result = swapped(PAIRS)
    members = read_members(build(tmp_path), result.households, SECRET)
    persons = tables()["persons"]
    assert len(members) == 2 * HOMES
    assert [TOWNS[code] for code in members.region[1]] == persons["town"].to_pylist()
    assert [str(code) for code in members.codes["SEX"]] == persons["sex"].to_pylist()
    assert (np.bincount(members.household) == 2).all()


def test_persons_outside_households_count_where_they_live(tmp_path: Path) -> None:
    persons = tables()["persons"]
    ids = [None, *persons["hid"].to_pylist()[1:]]
    programme = build(tmp_path, persons=persons.set_column(6, "hid", pa.array(ids, pa.int64())))
    members = read_members(programme, swapped(PAIRS).households, SECRET)
    assert members.household[0] == -1
    assert [TOWNS[code] for code in members.region[1]] == persons["town"].to_pylist()


def test_a_risk_variable_of_households_reaches_their_members(tmp_path: Path) -> None:
    build(tmp_path)
    text = (tmp_path / "programme.toml").read_text()
    (tmp_path / "programme.toml").write_text(text.replace('risk = ["SEX"]', 'risk = ["SEX", "SIZE"]'))
    programme = load_programme(tmp_path / "programme.toml")
    members = read_members(programme, swapped(PAIRS).households, SECRET)
    assert set(members.codes["SIZE"].tolist()) == {2}


def test_figures_of_the_village(tmp_path: Path) -> None:
    figures = figures_of_village(tmp_path)
    assert (figures.households, figures.persons, figures.swapped) == (HOMES, 2 * HOMES, 2 * len(PAIRS))
    assert figures.reasons == {"at risk": 4, "donor": 4}
    assert [(one.level, one.why, one.households) for one in figures.unswapped] == [("region", "no donor", 1)]
    assert figures.shared == {"none": 4, "region": 4}
    assert [level.swapped for level in figures.levels] == [0, 8]


def test_distances_are_those_between_partners(tmp_path: Path) -> None:
    found = distances_of(swapped([(0, 1), (2, 7)]))
    assert found is not None
    assert found.columns == ("grid_x", "grid_y")
    assert found.mean == pytest.approx(np.sqrt(2) * (1 + 5) / 2)
    assert sum(found.households) == 4
    missing = distances_of(swapped([(5, 10), (0, 1)]))  # home 5 has no coordinates
    assert missing is not None
    assert sum(missing.households) == 2
    assert distances_of(swapped([])) is None


def test_coordinates_are_known_by_their_names_and_types() -> None:
    number, text = pa.array([1]), pa.array(["a"])
    assert coordinate_columns({"X": number, "y": number}) == ("X", "y")
    assert coordinate_columns({"Northing": number, "Easting": number}) == ("Easting", "Northing")
    assert coordinate_columns({"sex": number, "grid_x": text, "grid_y": text}) is None


def test_supplied_risks_end_with_a_swap_only() -> None:
    result = result_of([0, 1, 2], [(0, 1)])
    at_risk = np.array([1, -1, 1], dtype=np.int8)
    result = replace(result, households=replace(result.households, at_risk_level=at_risk))
    members = RiskMembers(np.arange(3), result.households.area, {})
    levels = figures_of(result, members, K, ["SIZE"]).levels
    assert [(level.at_risk_before, level.at_risk_after) for level in levels] == [(0, 0), (2, 1)]
