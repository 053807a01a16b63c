"""A synthetic census looks like one: shares by age, sex, education, origin and place are plausible."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from discreet.synth import generate


class Columns:
    """One unit's columns as arrays of codes."""

    def __init__(self, path: Path) -> None:
        self.table = pq.read_table(path)

    def __getattr__(self, name: str) -> NDArray[Any]:
        return np.asarray(self.table[name].combine_chunks().to_numpy(zero_copy_only=False))

    @property
    def years(self) -> NDArray[np.int64]:
        return np.array([int(code.removeprefix("Y_GE").removeprefix("Y")) for code in self.age])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate(150_000, 11, tmp_path_factory.mktemp("synth") / "census").folder


@pytest.fixture(scope="module")
def persons(folder: Path) -> Columns:
    return Columns(folder / "persons.parquet")


def share(among: NDArray[Any], wanted: NDArray[Any]) -> float:
    return float(wanted[among].mean())


def test_ages_and_sexes(persons: Columns) -> None:
    age, women = persons.years, persons.sex == "2"
    everyone = np.ones(age.size, dtype=bool)
    assert 0.13 < share(everyone, age < 15) < 0.20
    assert 0.15 < share(everyone, age >= 65) < 0.26
    assert 0.49 < share(everyone, women) < 0.53
    assert 0.55 < share(age >= 85, women) < 0.75


def test_marriage_by_age(persons: Columns) -> None:
    age, married = persons.years, np.isin(persons.lms, ["2.1", "2.2"])
    by_age = [share((age >= low) & (age < low + 10), married) for low in (15, 25, 35, 45)]
    assert by_age == sorted(by_age)
    assert by_age[0] < 0.1
    assert by_age[-1] > 0.5
    assert share(age >= 80, persons.lms == "3") > 0.25


def test_work_by_age_and_education(persons: Columns) -> None:
    age, cas, edu = persons.years, persons.cas, persons.edu
    prime = (age >= 25) & (age < 55)
    assert 0.7 < share(prime, cas == "1.1") < 0.9
    assert 0.03 < share(np.isin(cas, ["1.1", "1.2"]), cas == "1.2") < 0.12
    low, high = np.isin(edu, ["1", "2", "3"]), np.isin(edu, ["7", "8", "9"])
    assert share(prime & high, cas == "1.1") > share(prime & low, cas == "1.1") + 0.1
    employed = cas == "1.1"
    assert share(employed & high, persons.occ == "2") > 5 * share(employed & low, persons.occ == "2")
    assert share(employed & (persons.occ == "6"), persons.ind == "1") > 0.7
    assert share(age >= 75, cas == "2.2") > 0.9


def test_women_and_men_work_in_different_trades(persons: Columns) -> None:
    employed, women = persons.cas == "1.1", persons.sex == "2"
    assert share(employed & ~women, persons.ind == "3") > 3 * share(employed & women, persons.ind == "3")
    assert share(employed & women, persons.ind == "9.3") > 2 * share(employed & ~women, persons.ind == "9.3")


def test_foreigners_cluster_and_have_come_from_somewhere(persons: Columns) -> None:
    abroad = ~np.isin(persons.pob, ["1", "3", "4"])
    assert 0.05 < abroad.mean() < 0.2
    lau, position = np.unique(persons.lau, return_inverse=True)
    shares = np.bincount(position, abroad) / np.bincount(position)
    assert shares[np.bincount(position) > 200].std() > 0.02
    arrived = np.array([code.startswith("1") for code in persons.yae])
    assert share(abroad, arrived) > 0.9
    assert share(~abroad, arrived) < 0.06
    assert share(persons.pob == "1", persons.coc == "1") > 0.95
    assert share(abroad, persons.coc == "1") < 0.4
    assert lau.size > 10


def test_members_of_a_household_share_their_origin(persons: Columns) -> None:
    abroad = ~np.isin(persons.pob, ["1", "3", "4"]) & (persons.years >= 18)
    couples = persons.fst == "1.1.1"
    order = np.flatnonzero(couples)
    first, second = order[:-1], order[1:]
    pairs = persons.fid[first] == persons.fid[second]
    assert share(abroad[first] & pairs, abroad[second]) > 4 * share(~abroad[first] & pairs, abroad[second])


def test_most_people_work_in_their_own_region(persons: Columns) -> None:
    employed = persons.cas == "1.1"
    own = persons.lpw == np.char.add("1.", persons.nuts2.astype(str))
    assert 0.8 < share(employed, own) < 0.97


def test_dwellings_fit_their_place_and_age(folder: Path) -> None:
    dwellings = Columns(folder / "dwellings.parquet")
    occupied = (dwellings.tlq == "1") & (dwellings.ocs == "1")
    assert 0.8 < occupied.mean() < 0.95
    detached, block = occupied & (dwellings.tob == "1.1"), occupied & (dwellings.tob == "1.3")
    assert share(detached, dwellings.ows == "1") > share(block, dwellings.ows == "1") + 0.2
    assert share(detached, np.isin(dwellings.ufs, ["8", "9"])) > share(
        block, np.isin(dwellings.ufs, ["8", "9"])
    )
    old, new = occupied & (dwellings.poc == "1"), occupied & np.isin(dwellings.poc, ["6", "7", "8"])
    assert share(old, dwellings.toh == "2") > 2 * share(new, dwellings.toh == "2")


def test_households_are_of_plausible_sizes(folder: Path) -> None:
    homes = Columns(folder / "households.parquet")
    assert 0.28 < (homes.sph == "1").mean() < 0.45
    assert 2.0 < homes.persons.mean() < 2.5
    assert 0.4 < (homes.tsh == "1").mean() < 0.75
