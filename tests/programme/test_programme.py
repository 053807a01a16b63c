"""The programme file: what loads, and every mistake it can hold."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.errors import Mistakes, Problem
from discreet.maths.noise.ptable_solver import PTableParameters
from discreet.programme import reading
from discreet.programme.noise import CellKeyNoise, KeyKind
from discreet.programme.programme import Disclosure, Programme, ReleaseFormat, load_programme
from discreet.programme.sources import DatabaseSource, FileFormat, FileSource, QuerySource

GOOD = """
[population]
persons = "persons.parquet"
households = "households.csv"
person_id = "pid"
household_id = "hid"
geography = ["region", "town"]

[variables.GEO]
column = "town"
codelist = "codelists/geo.csv"
breakdowns = { N = 0, L = 1, H = 2 }

[variables.SEX]
units = ["persons"]
codelist = "codelists/sex.csv"

[variables.AGE]
codelist = "codelists/age.hrc"
breakdowns = { L = 1, H = 2, SPLIT = ["Y0", "1", "2"] }

[[cubes]]
id = "1"
title = "Residents"
axes = ["GEO.L", "SEX", "AGE.L"]

[[cubes]]
id = "2"
unit = "households"
axes = ["GEO.H"]

[[cubes]]
id = "3"
axes = ["SEX", "AGE.SPLIT"]
base = 'AGE.L != "Y0"'
count = "flag"
weight = "w"

[[structural_zeros]]
where = 'AGE.L == "Y0" and SEX == "2"'

[noise]
kind = "cell-key"
V = 2.0
D = 5
"""

FILES = {
    "codelists/geo.csv": "code,parent,label\nN,,North\nN1,N,\nN2,N,\nS,,South\nS1,S,\n",
    "codelists/sex.csv": "code,parent,label\n1,,men\n2,,women\n",
    "codelists/age.hrc": "Y0\n@0a\n@0b\nY1\n@1\n@2\n",
    "persons.parquet": "",
    "households.csv": "",
    "ready.parquet": "",
}

Load = Callable[[str], Programme]
Complain = Callable[[str], list[str]]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    def from_text(text: str) -> Programme:
        (tmp_path / "p.toml").write_text(text)
        return load_programme(tmp_path / "p.toml")

    return from_text


@pytest.fixture
def complaints(load: Load) -> Complain:
    def of(text: str) -> list[str]:
        with pytest.raises(Mistakes) as caught:
            load(text)
        return [
            f"{problem.key}: {problem.value}; {problem.remedy}"
            if problem.key
            else f"{problem.value}; {problem.remedy}"
            for problem in caught.value.problems
        ]

    return of


def test_a_good_programme(load: Load, tmp_path: Path) -> None:
    programme = load(GOOD)
    assert programme.name == "p"
    assert [cube.id for cube in programme.cubes] == ["1", "2", "3"]
    assert programme.cubes[0].shape == (3, 3, 3)
    assert [axis.codes for axis in programme.cubes[2].axes] == [
        ("_T", "1", "2"),
        ("_T", "Y0", "Y1", "1", "2"),
    ]
    base = programme.cubes[2].base
    assert base is not None
    assert base.variables == ("AGE",)
    assert (programme.cubes[2].count, programme.cubes[2].weight) == ("flag", "w")
    assert programme.variables["GEO"].column == "town"
    assert programme.variables["SEX"].column == "sex"
    assert programme.variables["SEX"].units == ("persons",)
    assert len(programme.variables["GEO"].breakdowns["N"]) == 1
    population = programme.population
    assert population is not None
    assert list(population.units) == ["persons", "households"]
    persons = population.units["persons"]
    assert persons.id_column == "pid"
    assert isinstance(persons.source, FileSource)
    assert persons.source.paths() == (tmp_path / "persons.parquet",)
    assert persons.source.format is FileFormat.PARQUET
    assert population.geography == ("region", "town")
    assert programme.noise == CellKeyNoise(PTableParameters(5, 2.0), KeyKind.PERMUTED)
    assert programme.release.formats == (ReleaseFormat.PARQUET,)
    assert programme.release.disclose is Disclosure.VARIANCE
    assert programme.limits.cells == 200_000_000


def test_release_and_noise_choices(load: Load, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("i,j,p\n")
    text = GOOD.replace("V = 2.0\nD = 5", 'ptable = "t.csv"\nkeys = "plain"')
    programme = load(
        text
        + '[release]\nname = "c21"\nagency = "NSI"\nversion = "2.1"\nformats = ["csv", "csv"]\ndisclose = "law"\n'
    )
    assert programme.noise == CellKeyNoise(tmp_path / "t.csv", KeyKind.PLAIN)
    assert programme.name == programme.release.name == "c21"
    assert programme.release.formats == (ReleaseFormat.PARQUET, ReleaseFormat.CSV)


def test_sources(load: Load, tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    for number in "21":
        (tmp_path / "parts" / f"{number}.parquet").touch()

    def source(entry: str) -> object:
        population = load(GOOD.replace('"persons.parquet"', entry)).population
        assert population is not None
        return population.units["persons"].source

    folder, pattern = source('"parts"'), source('"parts/*.parquet"')
    assert isinstance(folder, FileSource)
    assert isinstance(pattern, FileSource)
    assert [path.name for path in folder.paths()] == ["1.parquet", "2.parquet"]
    assert folder.paths() == pattern.paths()
    assert source('{ uri = "postgresql://me@db:5432/census", table = "p" }') == DatabaseSource(
        "postgresql://me@db:5432/census", "p", None, tmp_path
    )
    (tmp_path / "census.db").touch()
    embedded = source('{ uri = "sqlite://census.db", table = "p" }')
    assert isinstance(embedded, DatabaseSource)
    assert embedded.file == tmp_path / "census.db"
    assert embedded.describe() == {"uri": "sqlite://census.db", "table": "p"}
    absolute = source(f'{{ uri = "duckdb://{tmp_path}/census.db", table = "p" }}')
    assert isinstance(absolute, DatabaseSource)
    assert absolute.file == tmp_path / "census.db"
    assert source("{ query = \"SELECT * FROM 'persons.parquet'\" }") == QuerySource(
        "SELECT * FROM 'persons.parquet'", tmp_path
    )


def test_a_folder_whose_name_is_a_pattern(tmp_path: Path) -> None:
    odd = tmp_path / "a[b]*"
    odd.mkdir()
    for name, text in FILES.items():
        (odd / name).parent.mkdir(exist_ok=True)
        (odd / name).write_text(text)
    (odd / "p.toml").write_text(GOOD)
    population = load_programme(odd / "p.toml").population
    assert population is not None
    source = population.units["persons"].source
    assert isinstance(source, FileSource)
    assert source.paths() == (odd / "persons.parquet",)


def test_ready_made_counts_need_no_population(load: Load) -> None:
    text = GOOD[GOOD.index("[variables.GEO]") : GOOD.index("[[cubes]]")] + (
        '[[cubes]]\nid = "r"\naxes = ["SEX"]\n'
        'counts = { file = "ready.parquet", count = "n", key = "k", modulus = 256 }\n'
    )
    programme = load(text + GOOD[GOOD.index("[noise]") :])
    assert programme.population is None
    ready = programme.ready_made["r"]
    assert (ready.count, ready.key, ready.modulus) == ("n", "k", 256)


def test_record_keys_replace_ids(load: Load) -> None:
    text = GOOD.replace('person_id = "pid"', 'record_key = "rkey"')
    population = load(text).population
    assert population is not None
    assert population.record_key == "rkey"
    assert population.units["persons"].id_column is None
    with pytest.raises(Mistakes, match="household_id: is missing"):
        load(text.replace('household_id = "hid"', ""))


def test_a_base_that_lets_all_pass_is_none(load: Load) -> None:
    assert load(GOOD.replace("""'AGE.L != "Y0"'""", """'SEX in ("1", "2")'""")).cubes[2].base is None


def test_the_standard_programme(load: Load, tmp_path: Path) -> None:
    nested = [("a", ""), ("aa", "a"), ("aaa", "aa"), ("aaaa", "aaa")]
    (tmp_path / "codelists/lau.csv").write_text("code,parent\n" + "".join(f"{c},{p}\n" for c, p in nested))
    text = """
[population]
persons = "persons.parquet"
person_id = "pid"
[variables.GEO]
codelist = "codelists/lau.csv"
[variables.SEX]
column = "gender"
[standard]
programme = "eu-census-2021"
tables = ["1", "9.2"]
[noise]
kind = "cell-key"
V = 2
D = 5
"""
    programme = load(text)
    assert [cube.id for cube in programme.cubes] == ["1.1", "1.2", "1.3", "1.4", "9.2"]
    assert programme.variables["SEX"].column == "gender"
    assert programme.variables["AGE"].column == "age"
    with pytest.raises(Mistakes, match="no table or group '99'"):
        load(text.replace('"9.2"', '"99"'))
    with pytest.raises(Mistakes, match=r"declare \[variables.GEO\]"):
        load(text.replace("variables.GEO", "variables.PLACE"))
    (tmp_path / "codelists/lau.csv").write_text("code,parent\na,\n")
    with pytest.raises(Mistakes, match="unknown breakdown 'GEO"):
        load(text)


def test_canonical_is_stable_json_and_tells_differences(load: Load, tmp_path: Path) -> None:
    first = load(GOOD).canonical()
    assert json.loads(json.dumps(first)) == first
    assert load(GOOD.replace("AGE.L != ", "not AGE.L == ")).canonical() == first
    for old, new in [
        ("V = 2.0", "V = 3.0"),
        ('"flag"', '"other"'),
        ('title = "Residents"', ""),
        ("L = 1", "L = 2"),
    ]:
        assert load(GOOD.replace(old, new, 1)).canonical() != first
    (tmp_path / "codelists/sex.csv").write_text("code,parent,label\n1,,men\n2,,Women\n")
    assert load(GOOD).canonical() != first


def test_canonical_never_holds_a_user(load: Load) -> None:
    entry = '{ uri = "postgresql://secretuser@db/census", table = "p" }'
    assert "secretuser" not in json.dumps(load(GOOD.replace('"persons.parquet"', entry)).canonical())


MISTAKES = [
    ("persons = ", "person = ", "population: unknown key 'person'; did you mean 'persons'?"),
    ('"persons.parquet"', '"nope.parquet"', "population.persons: no file 'nope.parquet'"),
    ('"persons.parquet"', '"codelists/age.hrc"', "use files that all end in one of .parquet"),
    ('"persons.parquet"', "5", "population.persons: 5; write a table of keys and values"),
    ('"persons.parquet"', "{}", "neither a file nor a uri nor a query"),
    ('"persons.parquet"', "{ uri = 'postgresql://h/d' }", "a uri without a table or query"),
    (
        '"persons.parquet"',
        "{ uri = 'postgresql://h/d', table = 'a', query = 'b' }",
        "both a table and a query",
    ),
    ('"persons.parquet"', "{ uri = 'oracle://h/d', table = 'a' }", "a uri of an unknown kind"),
    ('"persons.parquet"', "'postgresql://h/d'", "write persons = { uri = "),
    ('"persons.parquet"', "{ query = 'ATTACH postgres://u:pw@h/d' }", "a query that contains a password"),
    ('person_id = "pid"', "", "population.person_id: is missing"),
    ('person_id = "pid"', 'person_id = "hid"', "column 'hid' is named for 2 purposes"),
    ('"region", "town"', '"town", "town"', "population.geography: column 'town' occurs 2 times"),
    ('["region", "town"]', '"town"', "population.geography: 'town'; it should be a valid list"),
    ('codelist = "codelists/sex.csv"', "", "variables.SEX.codelist: is missing"),
    ("codelists/sex.csv", "codelists/none.csv", "variables.SEX.codelist: no file 'codelists/none.csv'"),
    ("[variables.SEX]", "[variables.not]", "variables.not: name 'not'; start with a letter"),
    ("L = 1, H = 2 }", "L = 1, H = 3 }", "variables.GEO.breakdowns.H: level 3; the codelist has 2 levels"),
    (
        "L = 1, H = 2 }",
        "L = 1, H = -1 }",
        "variables.GEO.breakdowns.H: -1; it should be greater than or equal to 0",
    ),
    ("L = 1, H = 2 }", 'L = 1, "H 2" = 2 }', "name 'H 2'; start with a letter"),
    ('["Y0", "1", "2"]', '["Y0", "1"]', "variables.AGE.breakdowns.SPLIT: 1 codes are left out: 2"),
    ('["Y0", "1", "2"]', '["Y0", "Y1", "1"]', "code '1' lies under 'Y1'"),
    ('["Y0", "1", "2"]', '["Y0", "Y1", "Y1"]', "code 'Y1' occurs 2 times"),
    ('["Y0", "1", "2"]', '["Y0", "Y11"]', "unknown code 'Y11'; did you mean 'Y1'?"),
    ('id = "2"', 'id = "1"', "cubes[1].id: id '1' occurs twice"),
    ('id = "2"', 'id = "a/b"', "cubes[1].id: 'a/b' does not fit"),
    ('id = "2"', "id = 2", "cubes[1].id: 2; it should be a valid string"),
    ('id = "2"', "", "cubes[1].id: is missing; add it"),
    ('"AGE.L"]', '"AGE.L", "AGE.H"]', "cubes[0].axes: AGE occurs 2 times (AGE.H, AGE.L)"),
    ('"AGE.L"]', '"AGE.L", "SEX"]', "cubes[0].axes: SEX occurs 2 times"),
    ('"AGE.L"]', '"AGE.M"]', "cubes[0].axes: unknown breakdown 'AGE.M'; did you mean 'AGE."),
    ('"AGE.L"]', '"AGE"]', "use one of AGE.L, AGE.H, AGE.SPLIT"),
    ('"AGE.L"]', '"AGES.L"]', "cubes[0].axes: unknown variable 'AGES'; did you mean 'AGE'?"),
    ('["GEO.L", "SEX", "AGE.L"]', "[]", "cubes[0].axes: is empty"),
    ('unit = "households"', 'unit = "household"', "cubes[1].unit: 'household'; use 'persons', 'households'"),
    ('unit = "households"', 'unit = "dwellings"', "no table of dwellings"),
    (
        'axes = ["GEO.H"]',
        'axes = ["GEO.H", "SEX"]',
        "SEX is a variable of persons, the cube counts households",
    ),
    ("""'AGE.L != "Y0"'""", """'AGE.L != "Y9"'""", "cubes[2].base: unknown code 'Y9' of AGE.L"),
    ("""'AGE.L != "Y0"'""", """'AGE.L >'""", "cubes[2].base: 'AGE.L >' is not a filter"),
    ("""and SEX == "2"'""", """and SEX == "3"'""", "structural_zeros[0].where: unknown code '3' of SEX"),
    ("where = ", "wher = ", "structural_zeros[0]: unknown key 'wher'; did you mean 'where'?"),
    ("[noise]", "[nois]", "unknown key 'nois'; did you mean 'noise'?"),
    ('kind = "cell-key"', 'kind = "gaussian"', "noise.kind: 'gaussian'; use 'cell-key'"),
    ("V = 2.0", 'V = "2"', "noise.V: '2'; it should be a valid number"),
    ("V = 2.0", "V = nan", "noise.V: nan; it should be"),
    ("V = 2.0", "V = 30.0", "noise.V: 30.0; a change of at most D = 5"),
    ("D = 5", "", "noise.D: is missing"),
    ("D = 5", 'D = 5\nptable = "p.toml"', "noise.D: is given together with ptable"),
    ("V = 2.0\nD = 5", 'ptable = "none.csv"', "noise.ptable: no file 'none.csv'"),
    ("D = 5", "D = 5\n[release]\nformats = ['pdf']", "release.formats[0]: 'pdf'; use 'parquet', 'csv'"),
    ("D = 5", "D = 5\n[release]\nversion = 1.0", "release.version: 1.0; it should be a valid string"),
    ("D = 5", "D = 5\n[release]\nagency = 'a b'", "write an SDMX agency"),
    (
        "D = 5",
        "D = 5\n[limits]\ncells = 20",
        "cubes[0]: 27 cells (GEO.L 3 x SEX.SEX 3 x AGE.L 3) are more than limits.cells",
    ),
    ("D = 5", f"D = 5\n[limits]\ncells = {2**62 + 1}", "limits.cells: 4611686018427387905; it should be"),
    ("D = 5", "D = = 5", "line 45, column 5: is not TOML"),
    ("D = 5", "D = 5\nV = 3", "is not TOML: Cannot overwrite a value"),
    ("D = 5", "D = 5\n[standard]\nprogramme = 'us'", "standard.programme: 'us'; use 'eu-census-2021'"),
    ('count = "flag"', 'counts = { file = "none.parquet" }', "cubes[2].counts.file: no file 'none.parquet'"),
    (
        'count = "flag"',
        'counts = { file = "ready.parquet" }',
        "cubes[2].weight: is given together with counts",
    ),
    (
        'count = "flag"',
        'counts = { file = "ready.parquet", modulus = 1 }',
        "cubes[2].counts.modulus: 1; it should",
    ),
]


@pytest.mark.parametrize(("old", "new", "said"), MISTAKES)
def test_each_mistake(complaints: Complain, old: str, new: str, said: str) -> None:
    assert old in GOOD
    assert any(said in line for line in complaints(GOOD.replace(old, new, 1))), complaints(
        GOOD.replace(old, new, 1)
    )


@pytest.mark.parametrize(("old", "new", "said"), MISTAKES)
def test_one_mistake_is_told_once(complaints: Complain, old: str, new: str, said: str) -> None:
    """A wrong variable must not also be reported as unknown by every cube that uses it."""
    lines = complaints(GOOD.replace(old, new, 1))
    misspelt = (
        old in ("persons = ", "where = ", "[noise]") or "ptable" in new
    )  # a key both unknown and missing
    expected = 4 if old == "[variables.SEX]" else 2 if misspelt or "none.parquet" in new else 1
    assert len(lines) <= expected, lines


def test_many_mistakes_at_once(complaints: Complain) -> None:
    text = GOOD
    chosen = [MISTAKES[place] for place in (1, 12, 15, 17, 24, 30, 40, 45)]
    for old, new, _ in chosen:
        text = text.replace(old, new, 1)
    lines = complaints(text)
    for _, _, said in chosen:
        assert any(said in line for line in lines), (said, lines)


def test_a_name_that_no_file_can_have_is_an_absent_file(complaints: Complain) -> None:
    name = "n" * 400
    text = GOOD.replace("persons.parquet", name, 1).replace("codelists/sex.csv", name, 1)
    lines = complaints(text.replace("V = 2.0\nD = 5", f'ptable = "{name}"', 1))
    for key in ("population.persons", "variables.SEX.codelist", "noise.ptable"):
        assert any(f"{key}: no file 'nnn" in line for line in lines), (key, lines)


def test_arrays_in_arrays_without_end_are_refused(complaints: Complain) -> None:
    (line,) = complaints(GOOD + "\nx = " + "[" * 3000)
    assert "nested too deeply" in line


@pytest.mark.parametrize("number", ["9" * 5000, "0x" + "9" * 5000])
def test_numbers_of_thousands_of_digits_are_refused(complaints: Complain, number: str) -> None:
    (line,) = complaints(GOOD.replace("D = 5", f"D = {number}", 1))
    assert "a number of thousands of digits" in line


def test_a_broken_section_does_not_hide_the_others(complaints: Complain) -> None:
    text = (
        GOOD.replace("V = 2.0", "V = []").replace('"AGE.L"]', '"AGE.X"]').replace("geography", "geographie")
    )
    lines = complaints(text)
    assert len(lines) == 3, lines


@pytest.mark.parametrize(
    "uri",
    [
        "postgresql://me:hunter2@db/census",
        "postgresql://me:hunter2@db:notaport/census",
        "postgresql://db/census?user=me&password=hunter2",
        "postgresql://[me:hunter2@db/census",
        "me:hunter2@db",
        "host=db password=hunter2",
    ],
)
@pytest.mark.parametrize("entry", ["{{ uri = '{}', table = 'p' }}", "'{}'", "{{ uri = '{}', tabel = 'p' }}"])
def test_a_password_is_refused_and_never_shown(complaints: Complain, uri: str, entry: str) -> None:
    lines = "\n".join(complaints(GOOD.replace('"persons.parquet"', entry.format(uri))))
    assert "hunter2" not in lines
    assert "me:" not in lines
    if entry.endswith("table = 'p' }}") and uri.startswith("postgresql"):
        assert "PGPASSWORD" in lines


def test_no_cubes_no_population_no_noise(complaints: Complain) -> None:
    assert complaints("") == [
        'noise: is missing; declare how counts are protected: [noise] kind = "cell-key", V = 2.0, D = 5, js = 0',
        "cubes: none declared; add a [[cubes]] entry or a [standard] section",
    ]
    start, end = GOOD.index("[population]"), GOOD.index("[variables.GEO]")
    lines = complaints(GOOD[:start] + GOOD[end:])
    assert len(lines) == 1
    assert lines[0].startswith("population: is missing")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(Mistakes, match="cannot be read"):
        load_programme(tmp_path / "none.toml")
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(Mistakes, match="is not UTF-8"):
        load_programme(tmp_path / "x.toml")
    (tmp_path / "y.toml").write_text("a = " + "[" * 5000)
    with pytest.raises(Mistakes):
        load_programme(tmp_path / "y.toml")


SCALARS = st.one_of(
    st.booleans(),
    st.integers(-5, 2**70),
    st.floats(),
    st.text(max_size=5),
    st.just("a://b:c@d"),
    st.dates(),
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["uri", "id", "L", "x y"]), inner, max_size=3),
    ),
    max_leaves=5,
)


def places(part: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inside = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    return [path, *(place for key, value in inside for place in places(value, (*path, key)))]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_nothing_but_mistakes_is_ever_raised(
    load: Load, monkeypatch: pytest.MonkeyPatch, data: st.DataObject
) -> None:
    """Whatever stands in the file instead of what should, the answer is a list of problems."""
    whole = tomllib.loads(GOOD)
    for _ in range(data.draw(st.integers(1, 3))):
        *way, last = data.draw(st.sampled_from(places(whole)[1:]))
        part: Any = whole
        for step in way:
            part = part[step]
        part[last] = data.draw(ANYTHING)
    monkeypatch.setattr(reading, "read_toml", lambda path: whole)
    problems: tuple[Problem, ...] = ()
    try:
        load(GOOD)
    except Mistakes as mistakes:
        problems = mistakes.problems
    assert not any("b:c" in str(problem) for problem in problems if problem.key.startswith("population"))


def test_wrong_codelists_are_told_with_their_file(complaints: Complain, tmp_path: Path, load: Load) -> None:
    (tmp_path / "codelists/geo.csv").write_text("code,parent\nA,B\nB,A\nC,D\n")
    with pytest.raises(Mistakes) as caught:
        load(GOOD)
    assert {problem.file for problem in caught.value.problems} == {str(tmp_path / "codelists/geo.csv")}
    assert len(caught.value.problems) == 3
