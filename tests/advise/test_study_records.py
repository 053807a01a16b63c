"""The records of the study: what can exist, where people live and how zip codes are cut."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from discreet.advise.prior_knowledge import (
    ATTRIBUTES,
    SHAPE,
    ZIP_RECORDS,
    StudyRecords,
    make_records,
    structural_zeros,
    zip_codes,
)
from discreet.programme.programme import Programme, load_programme
from discreet.synth import generate


@pytest.fixture(scope="module")
def programme(tmp_path_factory: pytest.TempPathFactory) -> Programme:
    folder = tmp_path_factory.mktemp("study") / "census"
    generate(500, 1, folder, tables=("1",))
    return load_programme(Path(folder) / "programme.toml")


@pytest.fixture(scope="module")
def records() -> StudyRecords:
    return make_records(6_000, 3)


def test_188_combinations_exist(programme: Programme) -> None:
    excluded = structural_zeros(programme).reshape(SHAPE)
    employed, last = 0, [size - 1 for size in SHAPE]
    for place in product(*(range(size) for size in SHAPE)):
        jobless = [place[axis] == last[axis] for axis in (3, 4, 5)]
        expected = not any(jobless) if place[2] == employed else all(jobless)
        assert excluded[place] != expected, place
    assert (~excluded).sum() == 188


def test_no_code_is_in_two_groups(programme: Programme) -> None:
    for attribute in ATTRIBUTES:
        tree = programme.variables[attribute.variable].codelist
        marks = [tree.leaves_under(code) for codes in attribute.groups for code in codes]
        assert np.sum(marks, axis=0).max() == 1


def test_nearly_all_persons_are_fully_observed(records: StudyRecords) -> None:
    assert 0.97 < records.cell.size / records.persons < 1
    assert records.cell.max() < records.possible.size == 188


def test_members_of_a_household_live_at_one_place(records: StudyRecords) -> None:
    places, members = np.unique(records.points, axis=0, return_counts=True)
    assert 1.8 < members.mean() < 2.6  # persons per household
    assert len(np.unique(np.column_stack([records.points, records.zips]), axis=0)) == len(places)


def test_the_same_seed_gives_the_same_records(records: StudyRecords) -> None:
    again = make_records(6_000, 3)
    assert (again.points == records.points).all()
    assert (again.cell == records.cell).all()
    assert (make_records(6_000, 4).points[:50] != records.points[:50]).any()


def test_zip_codes_stay_inside_municipalities_and_near_their_size() -> None:
    rng = np.random.default_rng(1)
    lau = np.repeat([0, 1, 2], [300, 40_000, 5_000])
    zips = zip_codes(lau, rng.random((lau.size, 2)))
    assert len(np.unique(np.column_stack([lau, zips]), axis=0)) == zips.max() + 1
    sizes = np.bincount(zips)
    assert sizes[0] == 300
    assert (np.abs(sizes[1:] - ZIP_RECORDS) < 0.3 * ZIP_RECORDS).all()
