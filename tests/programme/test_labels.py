"""Labels of variables, breakdowns and units: what a programme declares and what readers see."""

from pathlib import Path

import pytest

from discreet.errors import Mistakes
from discreet.programme import eu2021
from discreet.programme.labels import NO_LABELS, Labels
from discreet.programme.programme import load_declaration

LABELS = Labels({"AGE": "Age", "SEX": "Sex"}, {"AGE.M": "five-year groups"}, {"persons": "residents"})

PROGRAMME = """
[population]
persons = "persons.csv"
person_id = "pid"
[variables.AGE]
codelist = "age.csv"
breakdowns = { L = 1, M = 2 }
%s
[variables.SEX]
codelist = "sex.csv"
%s
[[cubes]]
id = "one"
axes = ["AGE.M", "SEX"]
[noise]
kind = "cell-key"
V = 2.0
D = 5
js = 0
%s
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "age.csv").write_text("code,parent,label\nA,,young\nA1,A,\nA2,A,\nB,,old\n")
    (tmp_path / "sex.csv").write_text("code,parent,label\n1,,\n2,,\n")
    (tmp_path / "persons.csv").write_text("pid,age,sex\n1,A1,1\n")
    return tmp_path


def declared(folder: Path, age: str = "", sex: str = "", release: str = "") -> Path:
    path = folder / "programme.toml"
    path.write_text(PROGRAMME % (age, sex, release))
    return path


def problems(path: Path) -> list[tuple[str, str, str]]:
    with pytest.raises(Mistakes) as caught:
        load_declaration(path)
    return [(one.key, one.value, one.remedy) for one in caught.value.problems]


@pytest.mark.parametrize(
    ("full_name", "level", "axis"),
    [
        ("AGE.M", "five-year groups", "Age (five-year groups)"),
        ("AGE.L", "L", "Age (L)"),
        ("SEX", "Sex", "Sex"),
        ("GEO.H", "H", "GEO.H"),
        ("LOC", "LOC", "LOC"),
    ],
)
def test_a_breakdown_is_shown_by_its_labels_or_its_name(full_name: str, level: str, axis: str) -> None:
    assert (LABELS.breakdown(full_name), LABELS.axis(full_name)) == (level, axis)


def test_without_labels_everything_is_shown_by_its_name() -> None:
    assert NO_LABELS.title(NO_LABELS.counted("persons", "works"), ["AGE.M", "SEX"], 'SEX == "1"') == (
        'persons with works = 1 by AGE.M, SEX where SEX == "1"'
    )
    assert not NO_LABELS


def test_a_title_uses_labels() -> None:
    assert LABELS.title(LABELS.counted("persons"), ["SEX", "AGE.M"]) == (
        "residents by Sex, Age (five-year groups)"
    )


def test_only_the_labels_of_what_is_published_are_kept() -> None:
    assert LABELS.only(["SEX", "AGE.L"], ["households"]) == Labels({"AGE": "Age", "SEX": "Sex"}, {}, {})


def test_a_programme_declares_labels(folder: Path) -> None:
    age = 'label = "Age in years"\nbreakdown_labels = { M = "five-year groups" }'
    release = '[release]\ntitle = "A census"\nunit_labels = { persons = "residents" }'
    programme = load_declaration(declared(folder, age, release=release))
    assert programme.labels == Labels(
        {"AGE": "Age in years"}, {"AGE.M": "five-year groups"}, {"persons": "residents"}
    )
    assert programme.release.title == "A census"


def test_labels_are_part_of_what_identifies_a_release_and_their_absence_is_not(folder: Path) -> None:
    without = load_declaration(declared(folder)).canonical()
    labelled = load_declaration(declared(folder, 'label = "Age"')).canonical()
    assert "labels" not in without
    assert "title" not in without["release"]
    assert {**without, "labels": labelled["labels"]} == labelled


@pytest.mark.parametrize(
    ("age", "key", "value", "remedy"),
    [
        ("label = 5", "variables.AGE.label", "5", "it should be a valid string"),
        ('label = " "', "variables.AGE.label", "' '", "write one line"),
        ('label = "a\\nb"', "variables.AGE.label", "'a\\nb'", "write one line"),
        ('label = "SEX"', "variables.SEX.label", "'SEX' is also shown for AGE", "a different label"),
        (
            'breakdown_labels = { N = "all" }',
            "variables.AGE.breakdown_labels.N",
            "unknown breakdown 'N'",
            "L, M",
        ),
        ("breakdown_labels = { M = 5 }", "variables.AGE.breakdown_labels.M", "5", "valid string"),
    ],
)
def test_a_label_that_does_not_fit_is_told_with_its_key(
    folder: Path, age: str, key: str, value: str, remedy: str
) -> None:
    found = problems(declared(folder, age))
    assert [(one, said) for one, said, _ in found] == [(key, value)]
    assert remedy in found[0][2]


def test_only_units_have_unit_labels(folder: Path) -> None:
    (found,) = problems(declared(folder, release='[release]\nunit_labels = { people = "residents" }'))
    assert found[0] == "release.unit_labels.people"
    assert "'persons'" in found[2]


def test_the_built_in_programme_labels_all_its_variables_and_breakdowns_apart() -> None:
    names = eu2021.variables()
    assert len({eu2021.texts(name).label for name in names}) == len(names)
    for name in names:
        cuts = set(eu2021.breakdowns(name)) - {name}
        labels = eu2021.breakdown_labels(name)
        assert set(labels) == cuts
        assert len(set(labels.values())) == len(cuts)


def test_the_built_in_labels_hold_unless_others_are_declared(folder: Path) -> None:
    standard = '[standard]\nprogramme = "eu-census-2021"\ntables = ["3.1"]\n'
    geo = '[variables.GEO]\ncodelist = "geo.csv"\n'
    (folder / "geo.csv").write_text("code,parent,label\nA,,\nB,A,\nC,B,\nD,C,\n")
    programme = load_declaration(declared(folder, 'label = "Alter"', geo, standard))
    labels = programme.labels
    assert (labels.axis("SEX"), labels.axis("GEO.H")) == (
        "Sex",
        "Place of usual residence (local administrative units)",
    )
    # its breakdowns are its own here, so that the built-in words for M would be untrue
    assert labels.axis("AGE.M") == "Alter (M)"
    assert programme.cubes[0].title == (
        "Persons by place of usual residence (local administrative units), sex, Alter (M)"
    )
