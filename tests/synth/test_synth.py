"""A synthetic census hangs together: codes, households, families, dwellings, places and the rules it declares."""

from __future__ import annotations

import hashlib
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from discreet.errors import Mistakes
from discreet.programme.codelist import Codelist
from discreet.programme.programme import Programme, load_programme
from discreet.synth import Census, generate
from discreet.synth.block import blocks
from tests.cases import few

UNITS = ("persons", "households", "families", "dwellings")


class Made:
    """A census read back whole."""

    def __init__(self, census: Census) -> None:
        self.census, self.folder = census, census.folder
        self.tables = {unit: pq.read_table(self.folder / f"{unit}.parquet") for unit in UNITS}
        self.programme: Programme = load_programme(self.folder / "programme.toml")

    def column(self, unit: str, name: str) -> NDArray[Any]:
        return np.asarray(self.tables[unit][name].combine_chunks().to_numpy(zero_copy_only=False))

    def leaves(self, unit: str, variable: str) -> NDArray[np.int64]:
        declared = self.programme.variables[variable]
        order = {code: index for index, code in enumerate(declared.codelist.leaf_codes)}
        coded = self.tables[unit][declared.column].unify_dictionaries().combine_chunks()
        table = np.array([order.get(code, -1) for code in coded.dictionary.to_pylist()])
        return np.asarray(table[coded.indices.to_numpy()])

    def ages(self) -> NDArray[np.int64]:
        return self.leaves("persons", "AGE")  # the leaves of AGE are the single years in order


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(generate(120_000, 7, tmp_path_factory.mktemp("synth") / "census"))


def variables_of(made: Made, unit: str) -> list[str]:
    names = set(made.tables[unit].column_names)
    return [name for name, variable in made.programme.variables.items() if variable.column in names]


@pytest.mark.parametrize("unit", UNITS)
def test_every_code_is_a_leaf_of_its_codelist(made: Made, unit: str) -> None:
    assert len(variables_of(made, unit)) >= 3
    for name in variables_of(made, unit):
        assert made.leaves(unit, name).min() >= 0, name


def test_the_programme_selects_all_tables_and_every_variable_has_its_columns(made: Made) -> None:
    assert len(made.programme.cubes) == 119
    for cube in made.programme.cubes:
        columns = {made.programme.variables[axis.variable].column for axis in cube.axes}
        assert columns <= set(made.tables[cube.unit].column_names), cube.id


def test_every_variable_declares_whose_attribute_it_is(made: Made) -> None:
    """What a household decides about a person is fixed in the file, where users see it."""
    programme = made.programme
    assert all(variable.attribute.of for variable in programme.variables.values())
    for name in ("FST", "HST", "HHSIZE", "HHTYPE", "GEO"):
        assert programme.variables[name].attribute.fixed
    assert not any(programme.variables[name].attribute.fixed for name in ("SEX", "TPH", "SFN", "NOC"))
    assert programme.population is not None
    assert programme.population.fixed_families


def test_no_unit_has_nulls(made: Made) -> None:
    assert {
        unit: sum(c.null_count for c in table.columns) for unit, table in made.tables.items()
    } == dict.fromkeys(UNITS, 0)


def test_nearly_every_category_occurs(made: Made) -> None:
    rare = {"POB", "COC", "GEO", "LOC"}  # a small country has neither all nationalities nor large cities
    for unit in UNITS:
        for name in set(variables_of(made, unit)) - rare:
            tree: Codelist = made.programme.variables[name].codelist
            seen = len(np.unique(made.leaves(unit, name)))
            assert seen >= len(tree.leaves) - 2, name


def test_declared_structural_zeros_hold(made: Made) -> None:
    tested = 0
    for rule in made.programme.structural_zeros:
        for unit in UNITS:
            if set(rule.variables) <= set(variables_of(made, unit)):
                columns = {name: made.leaves(unit, name).astype(np.uint16) for name in rule.variables}
                assert not rule.mask(columns).any(), rule.text
                tested += 1
    assert tested >= len(made.programme.structural_zeros)


@pytest.mark.parametrize(
    ("unit", "key"), [("persons", "pid"), ("households", "hid"), ("families", "fid"), ("dwellings", "did")]
)
def test_identifiers_are_unique_and_out_of_order(made: Made, unit: str, key: str) -> None:
    ids = made.column(unit, key)
    assert np.unique(ids).size == ids.size
    assert ids.min() > 0
    assert abs(np.corrcoef(np.arange(ids.size), ids.astype(float))[0, 1]) < 0.02


def test_a_household_lives_in_one_place(made: Made) -> None:
    places = made.tables["persons"].select(["hid", "lau", "grid"])
    distinct = places.group_by("hid").aggregate([("lau", "count_distinct"), ("grid", "count_distinct")])
    assert pc.max(distinct["lau_count_distinct"]).as_py() == 1
    assert pc.max(distinct["grid_count_distinct"]).as_py() == 1


def test_private_households_are_those_of_the_persons_in_them(made: Made) -> None:
    private = pc.starts_with(made.tables["persons"]["hst"].cast(pa.string()), "1")
    counted = made.tables["persons"].filter(private).group_by("hid").aggregate([("pid", "count")])
    found = dict(zip(counted["hid"].to_pylist(), counted["pid_count"].to_pylist(), strict=True))
    listed = dict(
        zip(
            made.column("households", "hid").tolist(),
            made.column("households", "persons").tolist(),
            strict=True,
        )
    )
    assert found == listed


def test_household_size_and_type_follow_from_the_members(made: Made) -> None:
    persons, size, sph, tph = (made.column("households", name) for name in ("hid", "persons", "sph", "tph"))
    expected = np.array(["", "1", "2", "3.1", "3.2", "3.3", "4", "4", "4", "4", "4", "5"])[
        np.minimum(size, 11)
    ]
    assert (sph == expected).all()
    families = np.bincount(
        np.searchsorted(np.sort(persons), made.column("families", "hid")), minlength=persons.size
    )
    families = families[np.searchsorted(np.sort(persons), persons)]
    kind = np.array([str(code)[0] for code in tph])
    assert (kind == np.array(["1", "2", "3"])[np.minimum(families, 2)]).all()


def test_families_are_those_of_the_persons_in_them(made: Made) -> None:
    fid = made.column("persons", "fid")
    ids, counts = np.unique(fid[fid > 0], return_counts=True)
    order = np.argsort(made.column("families", "fid"))
    assert (made.column("families", "fid")[order] == ids).all()
    expected = np.array(["", "", "1", "2.1", "2.2", "2.3", *["3.1"] * 5, "3.2"])[np.minimum(counts, 11)]
    assert (made.column("families", "sfn")[order] == expected).all()
    in_family = made.column("persons", "hst") == "1.1"
    assert ((fid > 0) == in_family).all()


def test_parents_are_18_to_45_years_older_than_their_children(made: Made) -> None:
    fid, fst, age = made.column("persons", "fid"), made.column("persons", "fst"), made.ages()
    child = np.isin(fst, ["3.1", "3.2"]) & (age < 60)
    parent = (fid > 0) & ~np.isin(fst, ["3.1", "3.2"]) & (age < 100)
    oldest_parent: dict[int, int] = {}
    youngest_parent: dict[int, int] = {}
    for family, years in zip(fid[parent].tolist(), age[parent].tolist(), strict=True):
        oldest_parent[family] = max(years, oldest_parent.get(family, years))
        youngest_parent[family] = min(years, youngest_parent.get(family, years))
    for family, years in zip(fid[child].tolist(), age[child].tolist(), strict=True):
        if family in oldest_parent:
            assert youngest_parent[family] - years >= 18
            assert oldest_parent[family] - years <= 45


def test_family_type_counts_the_youngest_child(made: Made) -> None:
    fid, fst, age = made.column("persons", "fid"), made.column("persons", "fst"), made.ages()
    grown: dict[int, int] = {}
    for family, status, years in zip(fid.tolist(), fst.tolist(), age.tolist(), strict=True):
        if status.startswith("3"):
            grown[family] = min(years, grown.get(family, years))
    stage = {
        "1.1": 0,
        "1.2": 1,
        "1.3": 2,
        "2.1": 0,
        "2.2": 1,
        "2.3": 2,
        "3.1": 1,
        "3.2": 2,
        "4.1": 1,
        "4.2": 2,
    }
    for family, kind in zip(
        made.column("families", "fid").tolist(), made.column("families", "tfn").tolist(), strict=True
    ):
        youngest = grown.get(family)
        assert stage[kind[:3]] == (0 if youngest is None else 1 if youngest < 25 else 2)


def test_each_household_has_its_own_dwelling_in_the_same_cell(made: Made) -> None:
    homes = made.tables["households"].select(["did", "lau", "grid", "persons"])
    joined = homes.join(made.tables["dwellings"], "did", join_type="inner", right_suffix="_d")
    assert joined.num_rows == homes.num_rows
    for name in ("lau", "grid"):
        left, right = joined[name].cast(pa.string()), joined[f"{name}_d"].cast(pa.string())
        assert pc.all(pc.equal(left, right)).as_py()
    assert set(joined["ocs"].to_pylist()) == {"1"}


@pytest.mark.parametrize("unit", UNITS)
def test_files_stand_in_the_order_of_the_regions_which_nest(made: Made, unit: str) -> None:
    lau = made.leaves(unit, "GEO")
    assert (np.diff(lau) >= 0).all()
    tree = made.programme.variables["GEO"].codelist
    for level, code, parent in (("nuts1", "nuts2", 1), ("nuts2", "nuts3", 1), ("nuts3", "lau", 1)):
        pairs = made.tables[unit].select([level, code]).group_by([level, code]).aggregate([])
        for upper, lower in zip(pairs[level].to_pylist(), pairs[code].to_pylist(), strict=True):
            assert tree.codes[tree.ancestors(tree.position[lower])[parent]] == upper


def test_grid_cells_are_named_by_their_corner_and_some_belong_to_two_municipalities(made: Made) -> None:
    x, y, grid = (made.column("dwellings", name) for name in ("grid_x", "grid_y", "grid"))
    assert grid[0] == f"CRS3035RES1000mN{y[0]}000E{x[0]}000"
    cells = made.tables["dwellings"].group_by("grid").aggregate([("lau", "count_distinct")])
    shared = np.array(cells["lau_count_distinct"].to_pylist()) > 1
    assert 0.02 < shared.mean() < 0.5


def test_the_same_seed_gives_the_same_bytes_whatever_the_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the package exports a function of the module's name
    monkeypatch.setattr(sys.modules[generate.__module__], "blocks", partial(blocks, limit=3_000))
    for name, seed, threads in (("a", 1, 1), ("b", 1, 3), ("c", 2, 1)):
        generate(20_000, seed, tmp_path / name, threads=threads)
    first, again, other = (hashes(tmp_path / name) for name in "abc")
    assert first == again
    assert set(first) == set(other)
    assert all(first[f"{unit}.parquet"] != other[f"{unit}.parquet"] for unit in UNITS)


def hashes(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("persons", few([1, 2, 3, 10, 57, 999, 10_000], 0, 3, 6))
def test_any_size_works(tmp_path: Path, persons: int) -> None:
    census = generate(persons, 3, tmp_path / "census")
    small = Made(census)
    assert small.tables["persons"].num_rows == census.rows["persons"] == persons
    for name in variables_of(small, "persons"):
        assert small.leaves("persons", name).min() >= 0


def test_a_real_country_lends_its_regions_but_not_its_citizens(tmp_path: Path) -> None:
    census = generate(30_000, 3, tmp_path / "census", country="AT", tables=["3", "9.2"])
    assert census.regions == {"NUTS 1": 3, "NUTS 2": 9, "NUTS 3": 35, "LAU": 2095}
    austria = Made(census)
    assert [cube.id for cube in austria.programme.cubes] == ["3.1", "3.2", "3.3", "9.2"]
    assert "AT" not in set(austria.column("persons", "pob"))
    assert "AT" not in set(austria.column("persons", "coc"))


def test_progress_is_told_up_to_the_last_person(tmp_path: Path) -> None:
    told: list[int] = []
    generate(5_000, 3, tmp_path / "census", progress=told.append)
    assert told[-1] == 5_000


def test_nothing_is_left_when_the_work_breaks_off(tmp_path: Path) -> None:
    def break_off(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate(5_000, 3, tmp_path / "census", progress=break_off)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_folder_is_taken_and_a_full_one_refused_untouched(tmp_path: Path) -> None:
    (tmp_path / "census").mkdir()
    generate(100, 3, tmp_path / "census")
    before = hashes(tmp_path)
    with pytest.raises(Mistakes, match="not an empty folder"):
        generate(100, 4, tmp_path / "census")
    assert hashes(tmp_path) == before


def test_everything_wrong_is_told_at_once_and_nothing_written(tmp_path: Path) -> None:
    with pytest.raises(Mistakes) as raised:
        generate(0, -1, tmp_path / "census", tables=["99"], country="ZZ", threads=0)
    assert [problem.key for problem in raised.value.problems] == [
        "persons",
        "seed",
        "threads",
        "tables",
        "country",
    ]
    with pytest.raises(Mistakes, match="1000000000"):
        generate(10**9 + 1, 1, tmp_path / "census")
    assert list(tmp_path.iterdir()) == []
