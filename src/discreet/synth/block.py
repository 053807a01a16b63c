"""One block of the synthetic census: some 200,000 persons with their households, families and dwellings, in Arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.synth import background, households, housing
from discreet.synth.draw import Dice, Ints, Whole, identifiers, leaf, tree
from discreet.synth.geography import Geography
from discreet.synth.households import FamilyNuclei, SynthHouseholds, SynthMembers
from discreet.synth.housing import Quarters, Spots

BLOCK = 1 << 18  # persons
LEVELS = ("nuts1", "nuts2", "nuts3", "lau")
UNITS = ("persons", "households", "families", "dwellings")
IDS = ("pid", "hid", "fid", "did")
_PERSON, _HOUSEHOLD, _FAMILY, _DWELLING = range(1, 5)  # kinds of identifier


@dataclass(frozen=True, eq=False)
class Country:
    """Everything that all blocks share."""

    seed: int
    geo: Geography
    mixes: background.BirthplaceMix
    workplaces: tuple[str, ...]  # leaf codes of LPW


@dataclass(frozen=True, eq=False)
class PersonBlock:
    """The persons of one block by municipality."""

    number: int
    first: int  # number of persons in earlier blocks
    lau: NDArray[np.int32]
    persons: Whole


def blocks(sizes: Whole, limit: int = BLOCK) -> Iterator[PersonBlock]:
    """Cut the persons, ordered by municipality, into blocks of at most ``limit``."""
    ends = np.cumsum(sizes)
    for number, first in enumerate(range(0, int(ends[-1]), limit)):
        last = min(first + limit, int(ends[-1]))
        low, high = np.searchsorted(ends, [first, last - 1], side="right")
        lau = np.arange(low, high + 1)
        persons = np.minimum(ends[lau], last) - np.maximum(ends[lau] - sizes[lau], first)
        yield PersonBlock(number, first, lau.astype(np.int32), persons)


def populate(
    country: Country, block: PersonBlock, drawn: Callable[[float], None] = lambda _: None
) -> dict[str, pa.Table]:
    """Draw a block; the same seed and number always give the same records. ``drawn`` receives the share done so far."""
    dice = Dice(country.seed, 1, block.number)
    geo = country.geo
    homes = households.households(geo, block.lau, block.persons, dice)
    nuclei = households.families(homes, dice)
    people = households.members(homes, nuclei, dice)
    drawn(0.3)
    place = housing.spots(geo, homes.lau, dice)
    dwellings = housing.quarters(geo, homes, place, people.age[homes.starts], dice)
    keys = _keys(country.seed, block.first, homes, nuclei, people, dwellings)
    youngest = households.youngest_child(people, nuclei.household.size)
    of_home = {
        "hhtype": households.household_type(homes, nuclei, youngest),
        "hhsize": households.household_size(homes),
    }
    drawn(0.5)
    columns = _person_codes(country, homes, nuclei, people, place, dwellings, dice)
    drawn(0.8)
    columns |= {name: values[people.household] for name, values in of_home.items()}
    persons = (
        keys.persons | _placed(geo, place, people.household) | _coded(columns, {"lpw": country.workplaces})
    )
    return {
        "persons": pa.table(persons),
        "households": pa.table(_household_columns(geo, homes, place, keys, of_home, dwellings)),
        "families": pa.table(_family_columns(geo, nuclei, youngest, place, keys)),
        "dwellings": pa.table(
            keys.dwellings | _placed(geo, dwellings.spots) | _coded(_lower(dwellings.codes))
        ),
    }


@dataclass(frozen=True, eq=False)
class _Keys:
    persons: dict[str, Any]
    households: dict[str, Any]
    families: dict[str, Any]
    dwellings: dict[str, Any]


def _keys(
    seed: int,
    first: int,
    homes: SynthHouseholds,
    nuclei: FamilyNuclei,
    people: SynthMembers,
    dwellings: Quarters,
) -> _Keys:
    """Identifiers from running numbers; there are at most as many households as persons and twice as many dwellings."""
    home = identifiers(first + np.arange(homes.size.size), seed, _HOUSEHOLD)
    family = identifiers(first + np.arange(nuclei.household.size), seed, _FAMILY)
    dwelling = identifiers(2 * first + np.arange(dwellings.household.size), seed, _DWELLING)
    person = identifiers(first + np.arange(people.age.size), seed, _PERSON)
    lived_in = dwellings.household >= 0
    of_home = np.zeros(homes.size.size, dtype=np.int64)
    of_home[dwellings.household[lived_in]] = dwelling[lived_in]
    return _Keys(
        {"pid": person, "hid": home[people.household], "fid": households.of_family(family, people)},
        {"hid": home, "did": of_home},
        {"fid": family, "hid": home[nuclei.household]},
        {"did": dwelling},
    )


def _person_codes(
    country: Country,
    homes: SynthHouseholds,
    nuclei: FamilyNuclei,
    people: SynthMembers,
    place: Spots,
    dwellings: Quarters,
    dice: Dice,
) -> dict[str, Ints]:
    unknown = households.unknown_place(homes, people, dice)
    columns = {
        "sex": people.sex,
        "age": np.minimum(people.age, 100),
        "lms": households.marital_status(people, nuclei, dice),
        "fst": households.family_status(people, nuclei, unknown),
        "hst": households.household_status(homes, people, unknown),
        "har": housing.housing_arrangement(homes, people, dwellings),
        "loc": housing.locality(country.geo, place)[people.household],
    }
    lives = background.lives(country.geo, country.mixes, homes, people, dice)
    yae = background.year_of_arrival(lives.stay, dice)
    roy = background.residence_a_year_ago(homes, people, lives.stay, dice)
    columns |= {
        "pob": lives.born,
        "coc": lives.citizen,
        "yae": yae,
        "yat": background.arrived_lately(yae),
        "roy": roy,
    }
    return columns | _work_codes(country.geo, homes, people, lives, dice)


def _work_codes(
    geo: Geography, homes: SynthHouseholds, people: SynthMembers, lives: background.Lives, dice: Dice
) -> dict[str, Ints]:
    lau = homes.lau[people.household]
    foreign_born, foreigner = lives.born != leaf("POB")["1"], lives.citizen != leaf("COC")["1"]
    persons = background.Persons(people.age, people.sex, lau, foreign_born, foreigner)
    character = geo.character[lau]
    edu = background.education(persons, character, dice)
    cas = background.activity(persons, edu, dice)
    occ, ind, sie = background.jobs(persons, edu, cas, character, dice)
    lpw = background.workplace(geo, persons, cas, dice)
    return {"edu": edu, "cas": cas, "occ": occ, "ind": ind, "sie": sie, "lpw": lpw}


def _household_columns(
    geo: Geography,
    homes: SynthHouseholds,
    place: Spots,
    keys: _Keys,
    of_home: dict[str, Ints],
    dwellings: Quarters,
) -> dict[str, Any]:
    private = np.flatnonzero(homes.private)
    ids = {name: values[private] for name, values in keys.households.items()}
    codes = {
        "tph": of_home["hhtype"][private],
        "sph": of_home["hhsize"][private],
        "tsh": housing.tenure(homes, dwellings)[private],
    }
    return (
        ids | _placed(geo, place, private) | _coded(codes) | {"persons": homes.size[private].astype(np.int32)}
    )


def _family_columns(
    geo: Geography, nuclei: FamilyNuclei, youngest: Whole, place: Spots, keys: _Keys
) -> dict[str, Any]:
    codes = {"tfn": households.family_type(nuclei, youngest), "sfn": households.family_size(nuclei)}
    return keys.families | _placed(geo, place, nuclei.household) | _coded(codes)


def _lower(codes: Mapping[str, Ints]) -> dict[str, Ints]:
    return {name.lower(): values for name, values in codes.items()}


def _coded(columns: Mapping[str, Ints], own: Mapping[str, tuple[str, ...]] | None = None) -> dict[str, Any]:
    """Dictionary columns of codes from leaf numbers."""
    own = own or {}
    return {
        name: _dictionary(values, own.get(name) or tree(name.upper()).leaf_codes)
        for name, values in columns.items()
    }


def _dictionary(values: NDArray[np.integer], codes: tuple[str, ...]) -> pa.DictionaryArray:
    kind = np.int8 if len(codes) <= 127 else np.int16 if len(codes) <= 32767 else np.int32
    return pa.DictionaryArray.from_arrays(values.astype(kind), pa.array(codes, pa.string()))


def _placed(geo: Geography, place: Spots, index: Whole | None = None) -> dict[str, Any]:
    """Region and grid columns of the given places."""
    lau, x, y = place.lau, place.x, place.y
    cells, cell = np.unique(y.astype(np.int64) << 20 | x, return_inverse=True)
    names = tuple(f"CRS3035RES1000mN{key >> 20}000E{key & 0xFFFFF}000" for key in cells.tolist())
    if index is not None:
        lau, x, y, cell = lau[index], x[index], y[index], cell[index]
    columns = {
        level: _dictionary(above[lau], codes)
        for level, above, codes in zip(LEVELS, geo.above, geo.regions, strict=True)
    }
    grid = pa.DictionaryArray.from_arrays(cell.astype(np.int32), pa.array(names, pa.string()))
    return columns | {"grid_x": x, "grid_y": y, "grid": grid}
