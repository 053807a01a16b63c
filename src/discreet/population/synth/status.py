"""What follows from who lives together: marital, family and household status, and the types of units.

It owns LMS, FST, HST, TPH, SPH, TFN, SFN and the household's size and type; it draws only what is not implied.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.population.synth.codes import NOT_PRIVATE, leaf, leaf_numbers
from discreet.population.synth.composition import (
    CHILD,
    FEMALE,
    HOMELESS,
    OTHER,
    SECOND,
    SINGLE,
    Families,
    Households,
    Members,
    of_family,
)
from discreet.population.synth.draw import Dice, Ints, Whole, law

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


def marital_status(people: Members, nuclei: Families, dice: Dice) -> Ints:
    """LMS: implied for married couples at home, drawn by age and sex for everybody else."""
    codes = leaf("LMS")
    decade = people.age // 10
    in_couple = (people.role <= SECOND) & of_family(nuclei.couple, people)
    alone = LMS_OF_OUTCOME[dice.pick(UNPARTNERED, decade + 11 * people.sex)]
    union = LMS_OF_OUTCOME[dice.pick(UNMARRIED, decade)]
    # grown children at home have seldom been married
    single = (people.age < MARRIAGE_AGE) | ((people.role == CHILD) & dice.chance(0.9, people.age.size))
    drawn = np.where(single, codes["1"], np.where(in_couple, union, alone))
    at_home = np.where(of_family(nuclei.same_sex, people), codes["2.2"], codes["2.1"])
    return np.where(in_couple & of_family(nuclei.married, people), at_home, drawn).astype(np.int16)


def unknown_place(homes: Households, people: Members, dice: Dice) -> NDArray[np.bool_]:
    """Members of private households of whom it is not known whether they belong to a family."""
    several = homes.private[people.household] & (homes.kind[people.household] != SINGLE)
    return np.asarray(several & (people.role == OTHER) & dice.chance(0.02, people.age.size))


def family_status(people: Members, nuclei: Families, unknown: NDArray[np.bool_]) -> Ints:
    """FST: partner, lone parent, child, or none."""
    codes = leaf("FST")
    married = np.where(nuclei.same_sex, codes["1.1.2"], codes["1.1.1"])
    adult = np.where(nuclei.couple, np.where(nuclei.married, married, codes["1.2"]), codes["2"])
    child = np.where(nuclei.couple, codes["3.1"], codes["3.2"])
    outside = np.where(unknown, codes["4"], codes["5"])
    inside = np.where(people.role == CHILD, of_family(child, people), of_family(adult, people))
    return np.where(people.role == OTHER, outside, inside).astype(np.int16)


def household_status(homes: Households, people: Members, unknown: NDArray[np.bool_]) -> Ints:
    """HST: in a family, alone, with others, or outside private households."""
    codes = leaf("HST")
    kind = homes.kind[people.household]
    outside = np.where(kind == HOMELESS, codes["2.2"], codes["2.1"])
    with_others = np.where(unknown, codes["1.3"], codes["1.2.2"])
    other = np.where(
        kind == SINGLE, codes["1.2.1"], np.where(homes.private[people.household], with_others, outside)
    )
    return np.where(people.role == OTHER, other, codes["1.1"]).astype(np.int16)


def youngest_child(people: Members, count: int) -> Whole:
    """The age of the youngest child of each family."""
    youngest = np.full(count, CHILDLESS, dtype=np.int64)
    children = people.role == CHILD
    np.minimum.at(youngest, people.family[children], people.age[children].astype(np.int64))
    return youngest


def family_type(nuclei: Families, youngest: Whole) -> Ints:
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


def family_size(nuclei: Families) -> Ints:
    """SFN: the number of members."""
    by_size = leaf_numbers("SFN", "1", "1", "1", "2.1", "2.2", "2.3", *["3.1"] * 5, "3.2")
    size = nuclei.children + 1 + nuclei.couple
    return np.array(by_size, dtype=np.int16)[np.minimum(size, 11)]


def household_type(homes: Households, nuclei: Families, youngest: Whole) -> Ints:
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


def household_size(homes: Households) -> Ints:
    """SPH: the number of members, for private households."""
    by_size = leaf_numbers("HHSIZE", "1", "1", "2", "3.1", "3.2", "3.3", *["4"] * 5, "5")
    size = np.array(by_size, dtype=np.int16)[np.minimum(homes.size, 11)]
    return np.where(homes.private, size, leaf("HHSIZE")[NOT_PRIVATE]).astype(np.int16)
