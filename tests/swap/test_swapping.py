"""Swapping from files: what must hold of every population, and where other software is known to go wrong."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import Mistakes
from discreet.io import files
from discreet.population.encode import hashed_ids
from discreet.programme.programme import Programme, load_programme
from discreet.swap.households import grouped
from discreet.swap.result import HOUSEHOLD, Excluded, SwapResult, Why
from discreet.swap.swapping import swap
from tests.swap.hamlets import SECRET, SWAP, Tables, build, shuffled, tables

RISKS = 'k = 2\nrisk_column = "danger"\nsimilar = [[{ composition = [] }]]\n'
LISTED = (Why.NO_DONOR, Why.EXCLUDED, Why.CAP, Why.QUOTA)


def swapped(held: Tables, rule: str = SWAP, secret: bytes = SECRET) -> SwapResult:
    with TemporaryDirectory() as folder:
        return swap(build(Path(folder), held, rule), secret, 2)


def moves(result: SwapResult) -> dict[int, tuple[object, ...]]:
    """Household -> what its records now hold."""
    columns = [values.to_pylist() for values in result.moves.values.values()]
    return dict(zip(result.moves.ids.tolist(), zip(*columns, strict=True), strict=True))


def rows_of(result: SwapResult, ids: pa.ChunkedArray) -> np.ndarray:
    return np.searchsorted(result.households.ids, hashed_ids(ids.combine_chunks(), SECRET, HOUSEHOLD))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 120), st.booleans(), st.booleans())
def test_what_holds_of_every_population(seed: int, homes: int, text: bool, one_table: bool) -> None:
    held = tables(seed, homes, text)
    if one_table:
        held = {"persons": held["persons"]}
    result = swapped(held)
    rows = np.flatnonzero(result.partner >= 0)
    assert (result.partner[result.partner[rows]] == rows).all()
    assert (result.partner[rows] != rows).all()
    area, level = result.households.area, result.level[rows]
    assert (area[level, rows] != area[level, result.partner[rows]]).all()
    at_risk = result.households.at_risk_level >= 0
    assert (np.isin(result.why, LISTED) == (at_risk & (result.partner < 0))).all()
    assert result.swapped >= 0.1 * homes or any("rate" in text for text in result.conflicts)
    assert len(result.households) == homes


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6))
def test_risk_is_that_of_a_plain_count(seed: int) -> None:
    held = tables(seed)
    result, persons = swapped(held), held["persons"]
    home = rows_of(result, persons["hid"])
    for level, column in enumerate(("country", "region", "town")):
        keys = list(zip(*(persons[name].to_pylist() for name in (column, "age", "sex")), strict=True))
        count = Counter(keys)
        least = np.full(len(result.households), 10**9)
        np.minimum.at(least, home, [count[key] for key in keys])
        assert np.allclose(result.households.risk[level], 1 / least)
        if level == 2:
            assert ((result.households.at_risk_level >= 0) == (least < 3)).all()
    assert result.households.size.sum() == len(persons)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10**6))
def test_row_order_unrelated_columns_and_a_second_run_change_nothing(seed: int) -> None:
    held = tables(seed)
    first = swapped(held)
    extra = shuffled(held, seed + 1)
    extra["persons"] = extra["persons"].append_column("noise", pa.array(range(len(extra["persons"]))))
    again = swapped(extra)
    assert moves(again) == moves(first)
    assert (again.why == first.why).all()
    assert moves(swapped(held)) == moves(first)
    assert first.swapped


def test_where_batches_end_changes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Some households end in the batch after that in which they begin."""
    programme = build(tmp_path, tables(5))
    whole = moves(swap(programme, SECRET))
    monkeypatch.setattr(files, "BATCH", 7)
    assert moves(swap(programme, SECRET)) == whole
    assert whole


def test_one_table_or_two_and_integers_or_text_make_the_same_swaps() -> None:
    held = tables(4)
    as_text = {
        name: table.set_column(table.schema.get_field_index("hid"), "hid", pc.cast(table["hid"], pa.string()))
        for name, table in held.items()
    }
    first = moves(swapped(held))
    assert moves(swapped({"persons": held["persons"]})) == first
    assert moves(swapped(as_text)) == first


def test_csv_files_make_the_same_swaps(tmp_path: Path) -> None:
    held = tables(4)
    build(tmp_path, held)
    for name, table in held.items():
        pa_csv.write_csv(table, tmp_path / f"{name}.csv")
    text = (tmp_path / "programme.toml").read_text()
    (tmp_path / "programme.toml").write_text(text.replace(".parquet", ".csv"))
    result = swap(load_programme(tmp_path / "programme.toml"), SECRET)
    assert moves(result) == moves(swapped(held))


def test_places_may_stand_in_the_table_of_households_alone() -> None:
    held = tables(4)
    placeless = held["persons"].drop_columns(["country", "region", "town", "grid"])
    assert moves(swapped(held | {"persons": placeless})) == moves(swapped(held))


def test_the_secret_decides() -> None:
    held = tables(5)
    assert moves(swapped(held, secret=bytes(32))) != moves(swapped(held))


def test_everything_that_follows_the_place_comes_from_the_same_donor() -> None:
    held = tables(6)
    result, homes = swapped(held), held["households"].to_pylist()
    place = {home["grid"]: (home["country"], home["region"], home["town"], home["grid"]) for home in homes}
    own = dict(zip(rows_of(result, held["households"]["hid"]).tolist(), homes, strict=True))
    for row, moved in zip(np.flatnonzero(result.partner >= 0), moves(result).values(), strict=True):
        donor = own[int(result.partner[row])]
        assert moved == place[donor["grid"]]


def test_tables_of_regions_stay_when_all_donors_come_from_inside() -> None:
    held = tables(7, 400)
    rule = 'k = 3\nrisk = ["AGE", "SEX"]\nsimilar = [[{ composition = [] }]]\nrate = 0.2\n'
    result, persons = swapped(held, rule), held["persons"]
    member = rows_of(result, persons["hid"])
    partner, region = result.partner, result.households.area[1]
    assert result.inside[partner >= 0].all()
    inside = np.where(partner >= 0, region[partner], region)
    values = list(zip(persons["age"].to_pylist(), persons["sex"].to_pylist(), strict=True))
    before = Counter(zip(region[member].tolist(), values, strict=True))
    assert Counter(zip(inside[member].tolist(), values, strict=True)) == before
    assert result.swapped >= 80


def with_danger(held: Tables, unit: str, danger: np.ndarray) -> Tables:
    return held | {unit: held[unit].append_column("danger", pa.array(danger))}


def test_supplied_risks_stay_with_their_household_whatever_the_row_order() -> None:
    held = tables(8)
    danger = np.zeros(80)
    danger[[3, 50]] = 0.9
    held = with_danger(held, "households", danger)
    for seed in range(3):
        result = swapped(shuffled(held, seed), RISKS)
        at = rows_of(result, held["households"]["hid"])
        assert set(np.flatnonzero(result.households.at_risk_level >= 0)) == {at[3], at[50]}
        assert (result.why[at[[3, 50]]] != Why.NOT_SWAPPED).all()


def test_a_household_has_the_largest_supplied_risk_of_its_members() -> None:
    held = tables(9)
    danger = np.linspace(0, 0.4, len(held["persons"]))
    result = swapped(with_danger(held, "persons", danger), RISKS)
    largest = np.zeros(80)
    np.maximum.at(largest, rows_of(result, held["persons"]["hid"]), danger)
    assert np.allclose(result.households.risk[-1], largest)


def test_households_of_zero_risk_can_be_excluded_for_certain() -> None:
    held = with_danger(tables(10, 200), "households", np.where(np.arange(200) % 2, 0.6, 0.0))
    rule = RISKS + "rate = 0.9\nexclude_zero_risk = true\n"
    result = swapped(held, rule)
    at = rows_of(result, held["households"]["hid"])
    assert (result.partner[at[::2]] < 0).all()
    assert (result.households.excluded[at[::2]] == Excluded.ZERO_RISK).all()
    assert result.swapped
    assert "the rate of 0.9 is not reached because of a lack of similar households" in result.conflicts


def test_a_cap_below_what_is_at_risk_is_reported() -> None:
    result = swapped(tables(11), SWAP.replace("rate = 0.1", "rate = 0.02\ncap = 0.05"))
    assert result.swapped <= 4
    assert (result.why == Why.CAP).any()
    assert result.conflicts == ("the cap of 0.05 leaves some households at risk unswapped",)


def test_similarity_looks_at_all_members_not_only_the_first() -> None:
    held = tables(12, 300)
    result, persons = swapped(held), held["persons"]
    members: dict[int, Counter[object]] = {}
    for home, age, sex in zip(
        rows_of(result, persons["hid"]).tolist(),
        persons["age"].to_pylist(),
        persons["sex"].to_pylist(),
        strict=True,
    ):
        members.setdefault(home, Counter())[age, sex] += 1
    alike = np.flatnonzero(result.profile == 0)
    assert len(alike)
    for row in alike.tolist():
        assert members[row] == members[int(result.partner[row])]


def test_group_quarters_stay_and_are_listed() -> None:
    result = swapped(tables(13), SWAP + "exclude = 'TENURE == \"rent\"'\n")
    rented = result.households.excluded == Excluded.RULE
    assert rented.any()
    assert (result.partner[rented] < 0).all()
    assert (result.why[rented & (result.households.at_risk_level >= 0)] == Why.EXCLUDED).all()


def test_persons_outside_households_are_counted_and_stay() -> None:
    held = tables(14)
    hids = held["persons"]["hid"].to_pylist()
    hids[:5] = [None] * 5
    persons = held["persons"].set_column(
        held["persons"].schema.get_field_index("hid"), "hid", pa.array(hids, pa.int64())
    )
    result = swapped({"persons": persons})
    assert result.households.size.sum() == len(persons) - 5


def test_quotas_of_regions_hold() -> None:
    held = tables(15, 300)
    result = swapped(held, SWAP.replace("0.1", "0.5") + "quotas = { regions = { town = 0.1 } }\n")
    area = result.households.area[-1]
    moved = np.bincount(area[result.partner >= 0], minlength=6)
    assert (moved <= np.bincount(area, minlength=6) * 0.1).all()
    assert any("quota" in text for text in result.conflicts)


def test_households_that_the_table_of_households_lacks_stay() -> None:
    held = tables(18)
    result = swapped(held | {"households": held["households"].slice(10)})
    absent = rows_of(result, held["households"]["hid"].slice(0, 10))
    assert (result.households.excluded[absent] == Excluded.NOT_LISTED).all()
    assert (result.partner[absent] < 0).all()
    assert result.swapped


def with_dwellings(folder: Path, dwellings: list[str], linked: bool = True) -> Programme:
    held = tables(19)
    homes = held["households"]
    if linked:
        held["households"] = homes.append_column("did", pa.array(dwellings))
    columns = homes.select(["country", "region", "town", "grid"])
    held["dwellings"] = columns.append_column("did", pa.array([f"d{home}" for home in range(80)]))
    named = 'person_id = "pid"\ndwellings = "dwellings.parquet"\ndwelling_id = "did"'
    return build(folder, held, change=lambda text: text.replace('person_id = "pid"', named))


def test_households_that_share_a_dwelling_stay_because_it_could_not_follow_both(tmp_path: Path) -> None:
    shared = [f"d{home // 2 if home < 20 else home}" for home in range(80)]
    result = swap(with_dwellings(tmp_path, shared), SECRET)
    crowded = rows_of(result, tables(19)["households"]["hid"].slice(0, 20))
    assert (result.households.excluded[crowded] == Excluded.SHARED_DWELLING).all()
    assert (result.households.excluded == Excluded.SHARED_DWELLING).sum() == 20
    assert result.swapped


def test_dwellings_that_cannot_follow_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Mistakes, match="places that cannot move with swapped households"):
        swap(with_dwellings(tmp_path, [], linked=False), SECRET)


def put(held: Tables, unit: str, column: str, values: Sequence[object]) -> Tables:
    table = held[unit]
    place = table.schema.get_field_index(column)
    return held | {unit: table.set_column(place, column, pa.array(values))}


def changed(held: Tables, unit: str, column: str, value: object) -> Tables:
    values = held[unit][column].to_pylist()
    return put(held, unit, column, [value, *values[1:]])


def no_column(held: Tables, unit: str, column: str) -> Tables:
    return held | {unit: held[unit].drop_columns([column])}


HELD = tables(16)


def in_two_places() -> Tables:
    persons = HELD["persons"]
    hids = persons["hid"].to_pylist()
    row = next(r for r in range(1, len(hids)) if persons["town"][r] != persons["town"][0])
    hids[row] = hids[0]
    return put(HELD, "persons", "hid", hids)


@pytest.mark.parametrize(
    ("held", "rule", "told"),
    [
        (in_two_places(), SWAP, "a household is in two places"),
        (
            changed(
                {"persons": HELD["persons"]},
                "persons",
                "region",
                "S" if HELD["persons"]["region"][0].as_py() == "N" else "N",
            ),
            SWAP,
            r"town '\w\d' is in region '\w' and in '\w'; make the geography nest",
        ),
        (HELD, SWAP.replace("grid", "grit"), "unknown column 'grit'; did you mean 'grid'"),
        (no_column(HELD, "persons", "age"), SWAP, "unknown column 'age'"),
        (no_column(HELD, "persons", "hid"), SWAP, "unknown column 'hid'"),
        (no_column(HELD, "households", "hid"), SWAP, "unknown column 'hid'"),
        (
            HELD,
            SWAP.replace("[{ composition = [] }]", '["SEX"]'),
            r'compare them by { composition = \["SEX"\] }',
        ),
        (HELD, RISKS, "unknown column 'danger'"),
        (with_danger(HELD, "households", np.full(80, 1.5)), RISKS, "not from 0 to 1"),
        (changed(HELD, "persons", "sex", "7"), SWAP, "codes that are not leaves of the codelist: '7'"),
        (changed(HELD, "persons", "sex", None), SWAP, "some records have no value"),
        (changed(HELD, "households", "tenure", None), SWAP, "some records have no value"),
        ({"persons": HELD["persons"].slice(0, 0)}, SWAP, "no records"),
        (
            put(
                HELD,
                "households",
                "hid",
                [*HELD["households"]["hid"].to_pylist()[:79], HELD["households"]["hid"][0].as_py()],
            ),
            SWAP,
            "duplicate ids",
        ),
    ],
)
def test_bad_input_is_told_without_ids(held: Tables, rule: str, told: str, tmp_path: Path) -> None:
    programme = build(tmp_path, held, rule)
    with pytest.raises(Mistakes, match=told) as caught:
        swap(programme, SECRET)
    ids = {str(value) for table in HELD.values() for value in table["hid"].to_pylist()}
    assert not any(value in str(caught.value) for value in ids)


def test_members_who_differ_in_what_is_carried_are_refused() -> None:
    persons = HELD["persons"]
    grids = [f"g{row}" for row in range(len(persons))]
    with pytest.raises(Mistakes, match="differ in 'grid'"):
        swapped(put({"persons": persons}, "persons", "grid", grids))


def test_a_population_where_nobody_is_alike_is_listed_not_refused() -> None:
    held = tables(17, 6)
    result = swapped({"persons": held["persons"]}, SWAP)
    lonely = (result.households.at_risk_level >= 0) & (result.partner < 0)
    assert (result.why[lonely] == Why.NO_DONOR).all()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 6), max_size=30))
def test_households_are_numbered_by_their_first_record(households: list[int]) -> None:
    """0 is a record without a household; members may be scattered."""
    hashes = np.array([0, *np.random.default_rng(1).integers(1, 2**64 - 1, 6, dtype=np.uint64)], np.uint64)
    rows = np.array(households, dtype=np.int64)
    ids, number, member = grouped(hashes[rows], rows > 0)
    seen = list(dict.fromkeys(one for one in households if one))
    assert member.tolist() == [seen.index(one) if one else -1 for one in households]
    assert ids.tolist() == sorted(int(hashes[one]) for one in seen)
    assert [int(hashes[seen[place]]) for place in number] == ids.tolist()
