"""The identity of a statistic: everything that decides what is counted changes it, names that people read do not."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from discreet.programme.codelist import Breakdown, breakdown, codelist
from discreet.programme.codelist import Code as Line
from discreet.programme.cube import Cube
from discreet.programme.filter import parse_filter
from discreet.programme.programme import load_programme
from discreet.programme.statistic import Statistics, statistics, together

AGE = codelist(
    "AGE", [Line(*row) for row in (("Y", "", "Young"), ("1", "Y", ""), ("2", "Y", ""), ("O", "", ""))]
)
SEX = codelist("SEX", [Line("f", "", "Female"), Line("m", "", "Male")])
MEANT = Statistics({"AGE": AGE, "SEX": SEX}, {"AGE": "age_at_census"})


def axis_of(tree: object, cut: tuple[int, ...]) -> Breakdown:
    return breakdown(tree.name, tree.name, tree, cut)  # type: ignore[attr-defined, arg-type]


AGES, SEXES = axis_of(AGE, AGE.leaves), axis_of(SEX, SEX.leaves)
CUBE = Cube("c", "persons", (SEXES, AGES))


def identity(cube: Cube = CUBE, meant: Statistics = MEANT, depths: tuple[int, ...] = (1, 2)) -> str:
    return meant.identity(cube, cube.signature(depths))


def filtered(text: str, meant: Statistics = MEANT) -> Cube:
    return replace(CUBE, base=parse_filter(text, meant.codelists))


def with_ages(*rows: tuple[str, str]) -> Statistics:
    return replace(MEANT, codelists={"SEX": SEX, "AGE": codelist("AGE", [Line(*row, "") for row in rows])})


MOVED = with_ages(("Y", ""), ("1", "Y"), ("O", ""), ("2", "O"))
REORDERED = with_ages(("Y", ""), ("2", "Y"), ("1", "Y"), ("O", ""))
RENAMED = with_ages(("Y", ""), ("1", "Y"), ("2a", "Y"), ("O", ""))


@pytest.mark.parametrize(
    "other",
    [
        identity(replace(CUBE, unit="households")),
        identity(replace(CUBE, count="works")),
        identity(replace(CUBE, weight="works")),
        identity(depths=(1, 1)),
        identity(depths=(0, 2)),
        identity(depths=(1, 0)),
        identity(filtered('AGE == "1"')),
        identity(meant=MOVED),
        identity(meant=REORDERED),
        identity(meant=RENAMED),
        identity(meant=replace(MEANT, columns={"AGE": "age_at_birthday"})),
        identity(meant=replace(MEANT, columns={})),
        identity(meant=replace(MEANT, structural_zeros=(parse_filter('AGE == "O"', MEANT.codelists),))),
        identity(meant=replace(MEANT, swap="some")),
        identity(replace(CUBE, source="c"), replace(MEANT, sources={"c": "a file"})),
        identity(replace(CUBE, source="c"), replace(MEANT, sources={"c": "another file"})),
    ],
)
def test_another_thing_that_is_counted_has_another_identity(other: str) -> None:
    assert other != identity()


def test_all_of_them_differ_from_each_other() -> None:
    (mark,) = test_another_thing_that_is_counted_has_another_identity.pytestmark  # type: ignore[attr-defined]
    assert len(set(mark.args[1])) == len(mark.args[1])


def test_names_that_people_read_are_no_part_of_it() -> None:
    assert identity(replace(CUBE, id="d", title="Residents")) == identity()
    plain = with_ages(("Y", ""), ("1", "Y"), ("2", "Y"), ("O", ""))
    assert AGE.labels != plain.codelists["AGE"].labels
    assert identity(meant=plain) == identity()
    assert identity(filtered('AGE == "1"')) == identity(filtered('not AGE in ("2", "O")'))


def test_neither_is_the_table_around_it() -> None:
    """The same cross-tabulation inside another cube: other axes, their order, codes that end earlier."""
    other = Cube("d", "persons", (AGES, SEXES))
    assert identity(other, depths=(2, 1)) == identity()
    coarse = Cube("d", "persons", (axis_of(AGE, (0, 3)),))
    assert identity(coarse, depths=(1,)) == identity(depths=(0, 1))
    assert identity(meant=MOVED, depths=(1, 0)) == identity(depths=(1, 0)), "ages are not crossed"


def test_a_filter_counts_by_what_its_variables_mean() -> None:
    """By name both bases are young persons, crossed by sex alone."""
    young, moved = filtered('AGE == "Y"'), filtered('AGE == "Y"', MOVED)
    assert young.signature((1, 0)) == moved.signature((1, 0))
    assert identity(young, depths=(1, 0)) != identity(moved, MOVED, (1, 0))


def test_structural_zeros_count_in_any_order_and_by_their_meaning() -> None:
    rules = [parse_filter(f'AGE == "{code}"', MEANT.codelists) for code in ("O", "1")]
    one, other = (replace(MEANT, structural_zeros=tuple(order)) for order in (rules, rules[::-1]))
    assert identity(meant=one) == identity(meant=other) != identity(meant=replace(one, structural_zeros=()))
    elsewhere = replace(one, codelists=MOVED.codelists)
    assert identity(meant=one, depths=(1, 0)) != identity(meant=elsewhere, depths=(1, 0))


def grouping(groups: list[int], names: tuple[str, ...] = ("a", "b")) -> Cube:
    nodes = np.array(groups, dtype=np.int32)
    parents = np.array([-1, 0, 0], dtype=np.int32)
    labels = ("_T", *names)
    return Cube("q", "persons", (Breakdown("AGE~", "AGE~", labels, labels, parents, nodes, grouped="AGE"),))


def test_groups_count_by_their_leaves_and_not_by_their_names() -> None:
    first = identity(grouping([1, 1, 2]), depths=(1,))
    assert identity(grouping([1, 1, 2], ("x", "y")), depths=(1,)) == first
    assert identity(grouping([1, 2, 2]), depths=(1,)) != first
    assert identity(grouping([1, 1, 2]), MOVED, (1,)) != first


def test_several_are_one_in_any_order_and_however_often() -> None:
    assert together(["a", "b"]) == together(iter(["b", "a", "b"])) != together(["a"])
    assert together(["ab"]) != together(["a", "b"])


def test_it_is_the_same_in_every_version() -> None:
    """A snapshot has its noise by it: another digest would draw new noise for what is published already."""
    tree = codelist("ORT", [Line("Köln", "", ""), Line("Ålborg", "", "")])
    found = identity(Cube("c", "persons", (axis_of(tree, tree.leaves),)), Statistics({"ORT": tree}), (1,))
    assert found == "9731108d546110b0af967308bc3902cdc6c4f7e834b2c243574cc05ba5c398d0"


def test_what_a_programme_counts_can_be_a_key() -> None:
    assert len({MEANT, MEANT, replace(MEANT)}) == 2


PROGRAMME = """
[population]
persons = "persons.parquet"
person_id = "pid"
household_id = "hid"
geography = ["region", "town"]

[variables.SEX]
codelist = "sex.csv"

[variables.AGE]
column = "years"
codelist = "age.csv"
breakdowns = { L = 1, H = 2 }

[[cubes]]
id = "people"
axes = ["SEX"]

[[cubes]]
id = "ready"
axes = ["SEX"]
counts = { file = "counts.csv", count = "n", key = "k" }

[noise]
kind = "geometric"
epsilon = 1
claim = "none"
"""
SWAP = '[swap]\nk = 3\nrisk = ["AGE.L"]\nsimilar = [["SEX"], [{ composition = ["AGE.H"] }]]\nexclude = \'AGE == "O"\'\n'
FILES = {
    "programme.toml": PROGRAMME + SWAP,
    "age.csv": "code,parent,label\nY,,\n1,Y,\n2,Y,\nO,,\n",
    "sex.csv": "code,parent,label\nf,,\nm,,\n",
    "persons.parquet": "",
    "counts.csv": "",
    "other.csv": "",
}


def declared(folder: Path, cube: int = 0, old: str = "", new: str = "") -> str:
    """The identity of a cube by sex, with some text replaced in all files."""
    assert any(old in text for text in FILES.values())
    for name, text in FILES.items():
        (folder / name).write_text(text.replace(old, new) if old else text)
    programme = load_programme(folder / "programme.toml")
    asked = programme.cubes[cube]
    return statistics(programme).identity(asked, asked.signature((1,)))


@pytest.mark.parametrize(
    ("cube", "old", "new"),
    [
        (0, SWAP, ""),
        (0, "k = 3", "k = 4"),
        (0, "{ L = 1, H = 2 }", "{ L = 2, H = 1 }"),
        (0, 'column = "years"', 'column = "age"'),
        (0, "2,Y", "2,O"),
        (0, 'AGE == "O"', 'AGE == "Y"'),
        (1, "counts.csv", "other.csv"),
        (1, '"n"', '"number"'),
    ],
)  # fmt: skip
def test_what_a_programme_declares_is_part_of_it(tmp_path: Path, cube: int, old: str, new: str) -> None:
    """Also the ages, which the cube does not cross: they decide which households are swapped."""
    assert declared(tmp_path, cube, old, new) != declared(tmp_path, cube)


def test_labels_titles_and_cell_keys_of_a_programme_are_not(tmp_path: Path) -> None:
    for cube in (0, 1):
        plain = declared(tmp_path, cube)
        assert declared(tmp_path, cube, "f,,", "f,,Women") == plain
        unused = '[variables.BIRTH]\ncodelist = "age.csv"\n[variables.SEX]'
        assert declared(tmp_path, cube, "[variables.SEX]", unused) == plain
        assert declared(tmp_path, cube, 'axes = ["SEX"]', 'title = "People"\naxes = ["SEX"]') == plain
    assert declared(tmp_path, 0) != declared(tmp_path, 1)
    assert declared(tmp_path, 1, '"k"', '"key"') == declared(tmp_path, 1)
