"""Who lives together in the synthetic census, and the marital, family and household status that follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.synth.draw import (
    NOT_PRIVATE,
    OLDEST,
    Dice,
    Flags,
    Ints,
    Whole,
    age_law,
    law,
    leaf,
    leaf_numbers,
)
from discreet.synth.geography import Geography

# kinds of household
(
    SINGLE,
    SHARED,
    COUPLE,
    PARENTS,
    LONE,
    PARENTS_AND_OTHER,
    TWO_FAMILIES,
    CARE,
    HALL,
    OTHER_INSTITUTION,
    HOMELESS,
) = range(11)
INSTITUTIONS = (CARE, HALL, OTHER_INSTITUTION)
# roles of a person
FIRST, SECOND, CHILD, OTHER = range(4)
MALE, FEMALE = 0, 1

YOUNGEST_PARENT, OLDEST_PARENT = 18, 45  # years between parent and child
LARGEST_GAP = 15  # years between partners; below OLDEST_PARENT - YOUNGEST_PARENT
MEAN_SIZE = 2.1  # a little below the mean, so that enough households are drawn

# (rural, town, city) x kinds up to two families
KINDS = law([
    [0.290, 0.020, 0.280, 0.285, 0.085, 0.022, 0.018],
    [0.330, 0.025, 0.270, 0.255, 0.095, 0.013, 0.012],
    [0.440, 0.050, 0.215, 0.185, 0.095, 0.008, 0.007],
])  # fmt: skip
# number of children: of parents, of lone parents, of the second family of a household
CHILDREN = law([
    [0, 0.40, 0.43, 0.125, 0.03, 0.009, 0.003, 0.0015, 0.0008, 0.0004, 0.0002],
    [0, 0.60, 0.30, 0.08, 0.015, 0.003, 0.001, 0.0005, 0, 0, 0],
    [0.45, 0.35, 0.15, 0.04, 0.01, 0, 0, 0, 0, 0, 0],
])  # fmt: skip
# further members: of shared households (from two on), of families with another person
FURTHER = law([
    [0, 0, 0.76, 0.14, 0.06, 0.02, 0.008, 0.004, 0.003, 0.002, 0.001, 0.001, 0.0005, 0.0005],
    [0, 0.86, 0.12, 0.02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
])  # fmt: skip
INSTITUTION_KINDS = law([0.6, 0.2, 0.2])

# age of the first partner or lone parent: couple without children, parents, lone parent, second family
FAMILY_AGES = age_law(
    [(18, 29, 0.16), (30, 44, 0.14), (45, 59, 0.22), (60, 74, 0.32), (75, 84, 0.13), (85, 94, 0.03)],
    [(19, 24, 0.02), (25, 29, 0.09), (30, 49, 0.68), (50, 59, 0.15), (60, 69, 0.04), (70, 85, 0.02)],
    [(19, 24, 0.03), (25, 34, 0.18), (35, 49, 0.44), (50, 64, 0.20), (65, 79, 0.10), (80, 92, 0.05)],
    [(20, 29, 0.25), (30, 44, 0.35), (45, 64, 0.20), (65, 84, 0.20)],
)
# age of anyone outside a family: alone, sharing, with a family, care home, hall, other institution, homeless
OTHER_AGES = age_law(
    [
        (18, 24, 0.07),
        (25, 34, 0.17),
        (35, 49, 0.17),
        (50, 64, 0.21),
        (65, 79, 0.22),
        (80, 89, 0.13),
        (90, OLDEST, 0.03),
    ],
    [(18, 24, 0.36), (25, 34, 0.36), (35, 64, 0.20), (65, 85, 0.08)],
    [(18, 39, 0.25), (40, 64, 0.15), (65, 79, 0.35), (80, 99, 0.25)],
    [(40, 64, 0.05), (65, 79, 0.25), (80, 89, 0.42), (90, OLDEST, 0.28)],
    [(17, 20, 0.45), (21, 25, 0.45), (26, 34, 0.10)],
    [(0, 14, 0.08), (15, 19, 0.12), (20, 39, 0.45), (40, 64, 0.25), (65, 90, 0.10)],
    [(0, 17, 0.04), (18, 34, 0.35), (35, 54, 0.41), (55, 80, 0.20)],
)
OTHER_AGES_ROW = np.array([0, 1, 2, 2, 2, 2, 2, 3, 4, 5, 6])  # kind -> row
# until which age children stay at home
STAYS_UNTIL = law([0.5, 0.3, 0.15, 0.05])
STAYS_AGES = np.array([21, 25, 31, 60], dtype=np.int16)
# share of women outside families by age // 10
WOMEN = np.array([0.48, 0.48, 0.44, 0.37, 0.38, 0.47, 0.57, 0.66, 0.72, 0.78, 0.84])


@dataclass(frozen=True, eq=False)
class FamilyNuclei:
    """The family nuclei of a block, ordered by household."""

    household: Whole
    couple: Flags
    children: Ints
    ages: tuple[Ints, Ints]  # first and second partner; twice the age of a lone parent
    sexes: tuple[Ints, Ints]
    married: Flags

    @property
    def same_sex(self) -> Flags:
        """Couples of two men or two women."""
        return np.asarray(self.couple & (self.sexes[0] == self.sexes[1]))


@dataclass(frozen=True, eq=False)
class SynthHouseholds:
    """All households, including institutions and the homeless, ordered by municipality."""

    lau: NDArray[np.int32]
    kind: Ints
    size: Whole
    members: NDArray[
        np.int16
    ]  # (household, first family's adults, its children, second's, its children, others)

    @property
    def private(self) -> Flags:
        """Which are private households."""
        return self.kind <= TWO_FAMILIES

    @property
    def starts(self) -> Whole:
        """Where the members of each household begin among the persons."""
        return np.cumsum(self.size) - self.size


@dataclass(frozen=True, eq=False)
class SynthMembers:
    """The persons of a block, ordered by household."""

    household: Whole
    family: Whole  # -1 outside a family
    role: Ints
    age: Ints
    sex: Ints


def of_family(values: NDArray[Any], people: SynthMembers) -> NDArray[Any]:
    """A family's value for each of its members; zero outside families."""
    return np.append(values, values.dtype.type(0))[people.family]  # family -1 meets the appended zero


def households(geo: Geography, lau: NDArray[np.int32], persons: Whole, dice: Dice) -> SynthHouseholds:
    """Fill each municipality of a block with households of exactly its number of persons."""
    large = persons >= 200
    wanted = np.where(large, dice.binomial(persons, 0.011), 0)
    stretch, kind, members = _institutions(wanted, dice)
    homeless = np.where(large, dice.binomial(persons, 0.0006), 0)
    room = persons - homeless - np.bincount(stretch, members[:, 4], persons.size).astype(np.int64)
    drawn_stretch, drawn_kind, drawn = _drawn(geo.character[lau], room, dice)
    fitting = _that_fit(drawn_stretch, drawn.sum(axis=1), room)
    drawn_stretch, drawn_kind, drawn = drawn_stretch[fitting], drawn_kind[fitting], drawn[fitting]
    left = room - np.bincount(drawn_stretch, drawn.sum(axis=1), persons.size).astype(np.int64)
    single = np.repeat(np.arange(persons.size), left)
    outside = np.repeat(np.arange(persons.size), homeless)
    one = np.array([0, 0, 0, 0, 1], dtype=np.int16)
    stretches = np.concatenate([drawn_stretch, single, stretch, outside])
    kinds = np.concatenate([drawn_kind, np.full(single.size, SINGLE), kind, np.full(outside.size, HOMELESS)])
    counts = np.concatenate([drawn, np.tile(one, (single.size, 1)), members, np.tile(one, (outside.size, 1))])
    order = np.argsort(stretches, kind="stable")
    sizes = counts[order].sum(axis=1, dtype=np.int64)
    return SynthHouseholds(lau[stretches[order]], kinds[order].astype(np.int16), sizes, counts[order])


def _institutions(wanted: Whole, dice: Dice) -> tuple[Whole, Ints, NDArray[np.int16]]:
    """Institutions of about 15 to 150 persons for the given number of persons per municipality."""
    number = (wanted + 44) // 45
    stretch = np.repeat(np.arange(wanted.size), number)
    weight = 0.3 + dice.uniform(stretch.size)
    total = np.bincount(stretch, weight, wanted.size)
    size = np.maximum(1, wanted[stretch] * weight / np.maximum(total[stretch], 1e-9)).astype(np.int16)
    members = np.zeros((stretch.size, 5), dtype=np.int16)
    members[:, 4] = size
    return stretch, (CARE + dice.pick_many(INSTITUTION_KINDS, stretch.size)).astype(np.int16), members


def _drawn(character: Ints, room: Whole, dice: Dice) -> tuple[Whole, Ints, NDArray[np.int16]]:
    """More households than fit, each with the numbers of its members by role."""
    number = (room / MEAN_SIZE).astype(np.int64) + 20
    stretch = np.repeat(np.arange(room.size), number)
    kind = dice.pick(KINDS, character[stretch])
    adults = np.array([0, 0, 2, 2, 1, 2, 2], dtype=np.int16)[kind]
    children_row = np.array([-1, -1, -1, 0, 1, 0, 0])[kind]
    children = np.where(children_row < 0, 0, dice.pick(CHILDREN, np.maximum(children_row, 0)))
    second = kind == TWO_FAMILIES
    second_children = np.where(second, dice.pick(CHILDREN, np.full(kind.size, 2)), 0)
    lone_parent = second & (second_children > 0) & dice.chance(0.6, kind.size)
    second_adults = np.where(second, 2 - lone_parent, 0)
    further = dice.pick(FURTHER, (kind != SHARED).astype(np.int32))
    others = np.select([kind == SINGLE, np.isin(kind, (SHARED, PARENTS_AND_OTHER))], [1, further], 0)
    members = np.stack([adults, children, second_adults, second_children, others], axis=1)
    return stretch, kind, members.astype(np.int16)


def _that_fit(stretch: Whole, size: Whole, room: Whole) -> Flags:
    filled = np.cumsum(size)
    before = np.concatenate(([0], filled))[np.searchsorted(stretch, np.arange(room.size))]
    return filled - before[stretch] <= room[stretch]


def families(homes: SynthHouseholds, dice: Dice) -> FamilyNuclei:
    """The family nuclei with their adults; the first of a couple is the woman unless both are men."""
    adults = homes.members[:, [0, 2]].reshape(-1)
    where = np.flatnonzero(adults)
    household, second = where // 2, where % 2 == 1
    couple, children = adults[where] == 2, homes.members[:, [1, 3]].reshape(-1)[where]
    row = np.where(second, 3, np.where(~couple, 2, (children > 0).astype(np.int16)))
    first_age = dice.pick(FAMILY_AGES, row)
    gap = np.clip(np.rint(2.0 + 3.6 * dice.normal(where.size)), -LARGEST_GAP, LARGEST_GAP).astype(np.int16)
    second_age = np.where(couple, np.clip(first_age + gap, YOUNGEST_PARENT, OLDEST), first_age).astype(
        np.int16
    )
    same = couple & dice.chance(0.012, where.size)
    men = np.where(couple, same & dice.chance(0.5, where.size), dice.chance(0.17, where.size))
    first_sex = np.where(men, MALE, FEMALE).astype(np.int16)
    second_sex = np.where(same | ~couple, first_sex, MALE).astype(np.int16)
    likely = np.clip(0.20 + (first_age - 20) * 0.022, 0.12, 0.95) + 0.10 * (children > 0) - 0.25 * same
    married = couple & dice.chance(likely, where.size)
    return FamilyNuclei(
        household, couple, children, (first_age, second_age), (first_sex, second_sex), married
    )


def members(homes: SynthHouseholds, nuclei: FamilyNuclei, dice: Dice) -> SynthMembers:
    """Everyone in a block with household, family, role, age and sex."""
    household = np.repeat(np.arange(homes.size.size), homes.size)
    slot = np.arange(household.size) - np.repeat(homes.starts, homes.size)
    ends = np.cumsum(homes.members[:, :4], axis=1, dtype=np.int64)
    place = (slot >= ends[household, 0]).astype(np.int16)
    for column in range(1, 4):
        place += slot >= ends[household, column]
    in_place = slot - np.where(place > 0, ends[household, np.maximum(place - 1, 0)], 0)
    role = np.where(
        place == 4, OTHER, np.where(place % 2 == 1, CHILD, np.where(in_place == 0, FIRST, SECOND))
    )
    first_family = np.searchsorted(nuclei.household, np.arange(homes.size.size))
    family = np.where(place == 4, -1, first_family[household] + (place >= 2))
    age, sex = _ages_and_sexes(homes.kind[household], nuclei, family, role, dice)
    return SynthMembers(household, family, role.astype(np.int16), age, sex)


def _ages_and_sexes(
    kind: Ints, nuclei: FamilyNuclei, family: Whole, role: Whole, dice: Dice
) -> tuple[Ints, Ints]:
    age, sex = np.empty(role.size, dtype=np.int16), np.empty(role.size, dtype=np.int16)
    for which in (FIRST, SECOND):
        adults = np.flatnonzero(role == which)
        age[adults], sex[adults] = nuclei.ages[which][family[adults]], nuclei.sexes[which][family[adults]]
    children = np.flatnonzero(role == CHILD)
    age[children] = _children_ages(nuclei, family[children], dice)
    sex[children] = dice.chance(0.487, children.size)
    others = np.flatnonzero(role == OTHER)
    age[others] = dice.pick(OTHER_AGES, OTHER_AGES_ROW[kind[others]])
    sex[others] = dice.chance(WOMEN[age[others] // 10], others.size)
    return age, sex


def _children_ages(nuclei: FamilyNuclei, family: Whole, dice: Dice) -> Ints:
    """Ages of children whose parents are both between 18 and 45 years older."""
    older, younger = np.maximum(*nuclei.ages)[family], np.minimum(*nuclei.ages)[family]
    low, high = np.maximum(0, older - OLDEST_PARENT), younger - YOUNGEST_PARENT
    leaves = STAYS_AGES[dice.pick_many(STAYS_UNTIL, family.size)]
    high = np.maximum(low, np.minimum(high, leaves))
    drawn = (low + dice.uniform(family.size) * (high - low + 1)).astype(np.int16)
    return np.asarray(np.minimum(drawn, high))  # a product just below the next year may be rounded up


GROWN = 25  # from this age on, a resident child no longer counts as young
MARRIAGE_AGE = 16
CHILDLESS = 999  # the youngest child's age where there is none

# without a partner at home: never married, married, widowed, divorced, not stated; by (men, women) x age // 10
UNPARTNERED = law([
    [1.0, 0, 0, 0, 0], [1.0, 0, 0, 0, 0], [0.965, 0.020, 0.0003, 0.012, 0.003], [0.840, 0.040, 0.002, 0.115, 0.003],
    [0.620, 0.060, 0.010, 0.307, 0.003], [0.450, 0.070, 0.040, 0.437, 0.003], [0.300, 0.070, 0.140, 0.487, 0.003],
    [0.180, 0.070, 0.400, 0.347, 0.003], [0.090, 0.070, 0.690, 0.147, 0.003], [0.060, 0.050, 0.840, 0.047, 0.003],
    [0.050, 0.030, 0.890, 0.027, 0.003],
    [1, 0, 0, 0, 0], [1, 0, 0, 0, 0], [0.940, 0.030, 0.0007, 0.026, 0.003], [0.750, 0.050, 0.006, 0.191, 0.003],
    [0.510, 0.060, 0.030, 0.397, 0.003], [0.350, 0.060, 0.110, 0.477, 0.003], [0.190, 0.050, 0.330, 0.427, 0.003],
    [0.100, 0.040, 0.610, 0.247, 0.003], [0.070, 0.020, 0.820, 0.087, 0.003], [0.070, 0.010, 0.880, 0.037, 0.003],
    [0.070, 0.005, 0.900, 0.022, 0.003],
])  # fmt: skip
# in a consensual union: the same, by age // 10
UNMARRIED = law([
    [1, 0, 0, 0, 0], [0.996, 0, 0, 0.001, 0.003], [0.970, 0, 0.001, 0.026, 0.003], [0.820, 0, 0.004, 0.173, 0.003],
    [0.620, 0, 0.010, 0.367, 0.003], [0.430, 0, 0.040, 0.527, 0.003], [0.250, 0, 0.150, 0.597, 0.003],
    [0.130, 0, 0.350, 0.517, 0.003], [0.080, 0, 0.500, 0.417, 0.003], [0.050, 0, 0.600, 0.347, 0.003],
    [0.050, 0, 0.600, 0.347, 0.003],
])  # fmt: skip
LMS_OF_OUTCOME = np.array(leaf_numbers("LMS", "1", "2.1", "3", "4", "5"), dtype=np.int16)


def marital_status(people: SynthMembers, nuclei: FamilyNuclei, dice: Dice) -> Ints:
    """LMS: implied for married couples at home, drawn by age and sex for all others."""
    codes = leaf("LMS")
    decade = people.age // 10
    in_couple = (people.role <= SECOND) & of_family(nuclei.couple, people)
    unpartnered = LMS_OF_OUTCOME[dice.pick(UNPARTNERED, decade + 11 * people.sex)]
    union = LMS_OF_OUTCOME[dice.pick(UNMARRIED, decade)]
    # grown children at home have seldom been married
    single = (people.age < MARRIAGE_AGE) | ((people.role == CHILD) & dice.chance(0.9, people.age.size))
    drawn = np.where(single, codes["1"], np.where(in_couple, union, unpartnered))
    at_home = np.where(of_family(nuclei.same_sex, people), codes["2.2"], codes["2.1"])
    return np.where(in_couple & of_family(nuclei.married, people), at_home, drawn).astype(np.int16)


def unknown_place(homes: SynthHouseholds, people: SynthMembers, dice: Dice) -> NDArray[np.bool_]:
    """Members of private households whose family status is not stated."""
    several = homes.private[people.household] & (homes.kind[people.household] != SINGLE)
    return np.asarray(several & (people.role == OTHER) & dice.chance(0.02, people.age.size))


def family_status(people: SynthMembers, nuclei: FamilyNuclei, unknown: NDArray[np.bool_]) -> Ints:
    """FST: partner, lone parent, child, or none."""
    codes = leaf("FST")
    married = np.where(nuclei.same_sex, codes["1.1.2"], codes["1.1.1"])
    adult = np.where(nuclei.couple, np.where(nuclei.married, married, codes["1.2"]), codes["2"])
    child = np.where(nuclei.couple, codes["3.1"], codes["3.2"])
    outside = np.where(unknown, codes["4"], codes["5"])
    inside = np.where(people.role == CHILD, of_family(child, people), of_family(adult, people))
    return np.where(people.role == OTHER, outside, inside).astype(np.int16)


def household_status(homes: SynthHouseholds, people: SynthMembers, unknown: NDArray[np.bool_]) -> Ints:
    """HST: in a family, one-person household, with others, or outside private households."""
    codes = leaf("HST")
    kind = homes.kind[people.household]
    outside = np.where(kind == HOMELESS, codes["2.2"], codes["2.1"])
    with_others = np.where(unknown, codes["1.3"], codes["1.2.2"])
    other = np.where(
        kind == SINGLE, codes["1.2.1"], np.where(homes.private[people.household], with_others, outside)
    )
    return np.where(people.role == OTHER, other, codes["1.1"]).astype(np.int16)


def youngest_child(people: SynthMembers, count: int) -> Whole:
    """The age of the youngest child of each family."""
    youngest = np.full(count, CHILDLESS, dtype=np.int64)
    children = people.role == CHILD
    np.minimum.at(youngest, people.family[children], people.age[children].astype(np.int64))
    return youngest


def family_type(nuclei: FamilyNuclei, youngest: Whole) -> Ints:
    """TFN: couple or lone parent, by the youngest child's age."""
    number = leaf("TFN")
    stage = np.where(youngest == CHILDLESS, 0, np.where(youngest < GROWN, 1, 2))
    married = np.array([leaf_numbers("TFN", f"1.{k}.1", f"1.{k}.2") for k in (1, 2, 3)])
    union = np.array(leaf_numbers("TFN", "2.1", "2.2", "2.3"))
    father = np.array([number["3.1"], number["3.1"], number["3.2"]])
    mother = np.array([number["4.1"], number["4.1"], number["4.2"]])
    lone = np.where(nuclei.sexes[0] == FEMALE, mother[stage], father[stage])
    couple = np.where(nuclei.married, married[stage, nuclei.same_sex.astype(np.int64)], union[stage])
    return np.where(nuclei.couple, couple, lone).astype(np.int16)


def family_size(nuclei: FamilyNuclei) -> Ints:
    """SFN: the number of members."""
    by_size = leaf_numbers("SFN", "1", "1", "1", "2.1", "2.2", "2.3", *["3.1"] * 5, "3.2")
    size = nuclei.children + 1 + nuclei.couple
    return np.array(by_size, dtype=np.int16)[np.minimum(size, 11)]


def household_type(homes: SynthHouseholds, nuclei: FamilyNuclei, youngest: Whole) -> Ints:
    """TPH: by the number of families and, for one family, its type; institutions are not private households."""
    number = leaf("HHTYPE")
    stage = np.where(youngest == CHILDLESS, 0, np.where(youngest < GROWN, 1, 2))
    couple = np.array(leaf_numbers("HHTYPE", "2.1.1", "2.1.2", "2.1.3"))
    father = np.array(leaf_numbers("HHTYPE", "2.2.1", "2.2.1", "2.2.2"))
    mother = np.array(leaf_numbers("HHTYPE", "2.3.1", "2.3.1", "2.3.2"))
    lone = np.where(nuclei.sexes[0] == FEMALE, mother[stage], father[stage])
    of_family = np.where(nuclei.couple, couple[stage], lone)
    result = np.where(homes.size == 1, number["1.1"], number["1.2"])
    result[nuclei.household] = of_family
    result[np.bincount(nuclei.household, minlength=result.size) > 1] = number["3"]
    return np.where(homes.private, result, number[NOT_PRIVATE]).astype(np.int16)


def household_size(homes: SynthHouseholds) -> Ints:
    """SPH: the number of members, for private households."""
    by_size = leaf_numbers("HHSIZE", "1", "1", "2", "3.1", "3.2", "3.3", *["4"] * 5, "5")
    size = np.array(by_size, dtype=np.int16)[np.minimum(homes.size, 11)]
    return np.where(homes.private, size, leaf("HHSIZE")[NOT_PRIVATE]).astype(np.int16)
