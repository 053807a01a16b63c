"""A declared size of the largest household that the records contradict is refused, and their sizes are not shown."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.population.household_sizes import household_problems
from discreet.programme.programme import load_programme

PROGRAMME = """
[population]
persons = "persons.parquet"
families = "families.parquet"
person_id = "pid"
family_id = "fid"
household_id = "{column}"

[variables.X]
codelist = "x.csv"
of = "household"

[[cubes]]
id = "x"
axes = ["X"]

[noise]
kind = "geometric"
epsilon = 1
{noise}
"""


def found(
    folder: Path, households: pa.Array, noise: str, column: str = "hid", families: int = 1
) -> list[str]:
    (folder / "x.csv").write_text("code,parent,label\na,,\n")
    (folder / "p.toml").write_text(PROGRAMME.format(column=column, noise=noise))
    people = len(households)
    persons = {"pid": pa.array(range(people)), "hid": households, "x": pa.array(["a"] * people)}
    pq.write_table(pa.table(persons), folder / "persons.parquet")
    kin = {
        "fid": pa.array(range(families), pa.int64()),
        "hid": pa.chunked_array([households[:1]] * families, households.type),
    }
    pq.write_table(pa.table(kin), folder / "families.parquet")
    programme = load_programme(folder / "p.toml")
    return [f"{one.key}: {one.value}" for one in household_problems(programme, {"persons"})]


TEN = pa.array([7] * 10 + [8] * 3)
TOO_SMALL = "noise.largest_household: {} is too small: a household has more members than that"


@pytest.mark.parametrize(
    "households",
    [
        TEN,
        pa.array([f"h{number}" for number in TEN.to_pylist()]),
        TEN.cast(pa.uint64()),
        TEN.dictionary_encode(),
    ],
)
def test_a_larger_household_is_refused_and_its_size_is_not_shown(
    tmp_path: Path, households: pa.Array
) -> None:
    for declared in (2, 9):
        said = found(tmp_path, households, f"largest_household = {declared}")
        assert said == [TOO_SMALL.format(declared)]
    assert found(tmp_path, households, "largest_household = 10") == []
    assert found(tmp_path, households, "largest_household = 14") == []


def test_a_household_with_more_families_is_refused(tmp_path: Path) -> None:
    (problem,) = found(tmp_path, pa.array([1, 2]), "largest_household = 2", families=3)
    assert problem == TOO_SMALL.format(2).replace("members", "families")


def test_persons_without_a_household_live_by_themselves(tmp_path: Path) -> None:
    alone = pa.array([None] * 5 + [1, 1], pa.int64())
    assert found(tmp_path, alone, "largest_household = 2", families=0) == []


def test_a_size_that_cannot_be_compared_with_the_records_is_refused(tmp_path: Path) -> None:
    (problem,) = found(tmp_path, TEN, "largest_household = 10", column="home")
    assert problem.startswith("noise.largest_household: cannot be checked")


def test_nothing_is_compared_where_no_size_is_declared_or_nothing_is_claimed(tmp_path: Path) -> None:
    assert found(tmp_path, TEN, "", column="home") == []
    assert found(tmp_path, TEN, 'largest_household = 2\nclaim = "none"') == []
