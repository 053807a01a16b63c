"""The living quarters of a block, their cells of the km grid, the dwelling variables and HAR."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.synth.draw import Dice, Flags, Ints, Whole, law, leaf, leaf_numbers
from discreet.synth.geography import Geography
from discreet.synth.households import HOMELESS, SynthHouseholds, SynthMembers

# conventional, other unit, collective (never here), not stated: of private households
QUARTERS = law([0.988, 0.009, 0.0, 0.003])
# one, two, three or more dwellings, non-residential, not stated; (rural, town, city) x (alone, two, more)
BUILDING = law([
    [0.52, 0.17, 0.28, 0.020, 0.01], [0.62, 0.18, 0.17, 0.020, 0.01], [0.70, 0.17, 0.10, 0.020, 0.01],
    [0.25, 0.15, 0.57, 0.015, 0.01], [0.35, 0.17, 0.45, 0.015, 0.01], [0.45, 0.18, 0.34, 0.015, 0.01],
    [0.05, 0.04, 0.88, 0.015, 0.01], [0.09, 0.05, 0.83, 0.015, 0.01], [0.14, 0.07, 0.76, 0.015, 0.01],
])  # fmt: skip
# period of construction, by building
PERIOD = law([
    [0.13, 0.08, 0.10, 0.25, 0.24, 0.11, 0.05, 0.03, 0.01], [0.14, 0.10, 0.12, 0.28, 0.22, 0.08, 0.03, 0.02, 0.01],
    [0.12, 0.08, 0.11, 0.30, 0.18, 0.09, 0.06, 0.05, 0.01], [0.25, 0.12, 0.12, 0.22, 0.15, 0.07, 0.03, 0.02, 0.02],
    [0.10, 0.08, 0.10, 0.22, 0.15, 0.06, 0.03, 0.02, 0.24],
])  # fmt: skip
# owner, rented, cooperative, other, not stated; building x head's age (under 35, 35 to 64, 65 and over)
TENURE = law([
    [0.55, 0.36, 0.005, 0.07, 0.01], [0.82, 0.13, 0.005, 0.04, 0.01], [0.90, 0.05, 0.005, 0.04, 0.01],
    [0.40, 0.48, 0.01, 0.10, 0.01], [0.62, 0.30, 0.01, 0.06, 0.01], [0.74, 0.18, 0.01, 0.06, 0.01],
    [0.17, 0.72, 0.07, 0.03, 0.01], [0.36, 0.52, 0.08, 0.03, 0.01], [0.46, 0.42, 0.09, 0.02, 0.01],
    [0.15, 0.65, 0.01, 0.17, 0.02], [0.35, 0.45, 0.01, 0.17, 0.02], [0.45, 0.35, 0.01, 0.17, 0.02],
    [0.30, 0.40, 0.03, 0.07, 0.20], [0.45, 0.28, 0.03, 0.05, 0.19], [0.52, 0.22, 0.03, 0.05, 0.18],
])  # fmt: skip
TENURE_OF_HOUSEHOLD = np.array(leaf_numbers("TSH", "1", "2", "3", "3", "4"), dtype=np.int16)
# lacking by period of construction: water, toilet, bath, heating
LACKING = np.array([
    [0.004, 0.003, 0.002, 0.001, 0.0005, 0.0003, 0.0002, 0.0002, 0.003],
    [0.012, 0.010, 0.006, 0.002, 0.0010, 0.0005, 0.0003, 0.0003, 0.006],
    [0.015, 0.012, 0.008, 0.003, 0.0015, 0.0007, 0.0005, 0.0005, 0.008],
    [0.160, 0.150, 0.120, 0.070, 0.0400, 0.0250, 0.0150, 0.0120, 0.080],
])  # fmt: skip
AMENITIES = ("WSS", "TOI", "BAT", "TOH")
FLOOR = np.array([112.0, 92.0, 66.0, 70.0, 80.0])  # median m2, by building
FLOOR_STEPS = (30, 40, 50, 60, 80, 100, 120, 150)
FLOOR_PER_OCCUPANT_STEPS = (10, 15, 20, 30, 40, 60, 80)
ROOMS_PER_OCCUPANT_STEPS = (0.5, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0)
OCCUPANTS = leaf_numbers("NOC", "1", "1", "2", "3.1", "3.2", "3.3", *(f"4.1.{k}" for k in range(1, 6)), "4.2")
EMPTY_SHARE = np.array([0.16, 0.10, 0.07])  # of dwellings, by rural, town, city


@dataclass(frozen=True, eq=False)
class Spots:
    """A place: municipality and km grid cell."""

    lau: NDArray[np.int32]
    x: NDArray[np.int32]
    y: NDArray[np.int32]
    in_town: Flags


@dataclass(frozen=True, eq=False)
class Quarters:
    """Living quarters ordered by municipality; ``household`` is -1 where they are empty."""

    household: Whole
    spots: Spots
    codes: dict[str, Ints]  # variable -> leaf number


def spots(geo: Geography, lau: NDArray[np.int32], dice: Dice) -> Spots:
    """Draw places inside the territories, most of them around the middle of the main town."""
    in_town = dice.chance(np.array([0.55, 0.75, 0.95])[geo.character[lau]], lau.size)
    along = _along(geo.west[lau], geo.east[lau], in_town, dice)
    up = _along(geo.south[lau], geo.north[lau], in_town, dice)
    return Spots(lau, along.astype(np.int32), up.astype(np.int32), in_town)


def _along(
    low: NDArray[np.float64], high: NDArray[np.float64], near: Flags, dice: Dice
) -> NDArray[np.float64]:
    middle = 0.5 + 0.15 * dice.normal(low.size)
    share = np.where(near & (np.abs(middle - 0.5) < 0.5), middle, dice.uniform(low.size))
    return low + share * (high - low)


def locality(geo: Geography, place: Spots) -> Ints:
    """LOC: the size of the main town, or of the villages around it."""
    return np.where(place.in_town, geo.main_locality[place.lau], geo.other_locality[place.lau]).astype(
        np.int16
    )


def quarters(
    geo: Geography, homes: SynthHouseholds, home_spots: Spots, head_age: Ints, dice: Dice
) -> Quarters:
    """One dwelling for each household that is not homeless, and empty dwellings."""
    housed = np.flatnonzero(homes.kind != HOMELESS)
    empty_lau = _empty(geo, homes, dice)
    empty_spots = spots(geo, empty_lau, dice)
    household = np.concatenate([housed, np.full(empty_lau.size, -1)])
    lau = np.concatenate([homes.lau[housed], empty_lau])
    order = np.argsort(lau, kind="stable")
    x = np.concatenate([home_spots.x[housed], empty_spots.x])[order]
    y = np.concatenate([home_spots.y[housed], empty_spots.y])[order]
    town = np.concatenate([home_spots.in_town[housed], empty_spots.in_town])[order]
    household, place = household[order], Spots(lau[order], x, y, town)
    return Quarters(household, place, _attributes(geo, homes, household, place, head_age, dice))


def _empty(geo: Geography, homes: SynthHouseholds, dice: Dice) -> NDArray[np.int32]:
    chosen = homes.private & dice.chance(EMPTY_SHARE[geo.character[homes.lau]], homes.size.size)
    return homes.lau[chosen]


def _attributes(
    geo: Geography, homes: SynthHouseholds, household: Whole, place: Spots, head_age: Ints, dice: Dice
) -> dict[str, Ints]:
    lived_in = household >= 0
    private = lived_in & homes.private[household]
    occupants = np.where(private, homes.size[household], 0)
    type_ = _quarters_type(lived_in, private, dice)
    band = np.clip(np.where(lived_in, occupants, 2) - 1, 0, 2)
    tob = dice.pick(BUILDING, geo.character[place.lau] * 3 + band)
    poc = dice.pick(PERIOD, tob)
    age = np.where(lived_in, head_age[household], 50)
    ows = dice.pick(TENURE, tob * 3 + np.searchsorted((35, 65), age, side="right"))
    codes = {"TLQ": type_, "TOB": tob, "POC": poc, "OWS": np.where(private, ows, leaf("OWS")["5"])}
    codes |= _occupancy(lived_in, occupants, dice) | _space(tob, occupants, private, dice)
    codes |= {name: _amenity(name, poc, dice) for name in AMENITIES}
    return _only_of_dwellings(codes)


def _quarters_type(lived_in: Flags, private: Flags, dice: Dice) -> Ints:
    drawn = dice.pick_many(QUARTERS, lived_in.size)
    usual = np.where(lived_in, drawn, leaf("TLQ")["1"])  # empty living quarters are dwellings or not listed
    return np.where(lived_in & ~private, leaf("TLQ")["3"], usual).astype(np.int16)


def _occupancy(lived_in: Flags, occupants: Whole, dice: Dice) -> dict[str, Ints]:
    known = np.where(lived_in, leaf("OCS")["1"], leaf("OCS")["2"])
    unsure = ~lived_in & dice.chance(0.03, lived_in.size)
    number = np.array(OCCUPANTS, dtype=np.int16)[np.minimum(occupants, len(OCCUPANTS) - 1)]
    return {"OCS": np.where(unsure, leaf("OCS")["3"], known).astype(np.int16), "NOC": number}


def _space(tob: Ints, occupants: Whole, private: Flags, dice: Dice) -> dict[str, Ints]:
    """Floor space and rooms, with their densities; the densities of empty dwellings are not stated."""
    people = np.maximum(occupants, 1)
    floor = FLOOR[tob] * people**0.28 * np.exp(0.33 * dice.normal(tob.size) - 0.15)
    rooms = np.maximum(1, np.rint(floor / 24 + 0.6 * dice.normal(tob.size)))
    floor_known, rooms_known = dice.chance(0.985, tob.size), dice.chance(0.985, tob.size)
    steps = {
        "UFS": (FLOOR_STEPS, floor, floor_known),
        "DFS": (FLOOR_PER_OCCUPANT_STEPS, floor / people, floor_known & private),
        "DRM": (ROOMS_PER_OCCUPANT_STEPS, rooms / people, rooms_known & private),
    }
    codes = {
        name: np.where(known, np.searchsorted(edges, value, side="right"), len(edges) + 1).astype(np.int16)
        for name, (edges, value, known) in steps.items()
    }
    codes["NOR"] = np.where(rooms_known, np.minimum(rooms, 9) - 1, leaf("NOR")["10"]).astype(np.int16)
    return codes


def _amenity(name: str, poc: Ints, dice: Dice) -> Ints:
    lacking = LACKING[AMENITIES.index(name)][poc]
    u = dice.uniform(poc.size)
    return np.select([u < 0.004, u < 0.004 + lacking], [2, 1], 0).astype(np.int16)


def _only_of_dwellings(codes: dict[str, Ints]) -> dict[str, Ints]:
    """Set building, period and equipment to their last code for living quarters other than conventional dwellings."""
    dwelling = codes["TLQ"] == leaf("TLQ")["1"]
    unstated = {name: max(leaf(name).values()) for name in codes if name not in {"TLQ", "OCS", "NOC"}}
    return {
        name: np.where(dwelling, values, unstated[name]).astype(np.int16) if name in unstated else values
        for name, values in codes.items()
    }


def tenure(homes: SynthHouseholds, dwellings: Quarters) -> Ints:
    """TSH of each household, from the ownership of its dwelling."""
    result = np.full(homes.size.size, leaf("TSH")["4"], dtype=np.int16)
    lived_in = dwellings.household >= 0
    result[dwellings.household[lived_in]] = TENURE_OF_HOUSEHOLD[dwellings.codes["OWS"][lived_in]]
    return result


def housing_arrangement(homes: SynthHouseholds, people: SynthMembers, dwellings: Quarters) -> Ints:
    """HAR of each person, from the type of the living quarters; the homeless count as in other housing units."""
    by_type = np.array(leaf_numbers("HAR", "1.1", "2", "1.2", "3"), dtype=np.int16)
    of_home = np.full(homes.size.size, leaf("HAR")["2"], dtype=np.int16)
    lived_in = dwellings.household >= 0
    of_home[dwellings.household[lived_in]] = by_type[dwellings.codes["TLQ"][lived_in]]
    return of_home[people.household]
