"""Where people come from: birth, citizenship, arrival and last move; it does not touch their work or housing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.population.synth.codes import leaf, tree
from discreet.population.synth.composition import Households, Members
from discreet.population.synth.draw import Dice, Flags, Ints, Law, Whole, law
from discreet.population.synth.geography import Geography

CENSUS_YEAR = 2021
FIRST_YEAR = 1980  # arrivals before have no year of their own
NEVER = -1  # years since the arrival of those who never lived abroad
MEAN_STAY, LONGEST_STAY = 14.0, 70

# how many come from where; all others share the rest
LARGE_ORIGINS = {
    "RO": 9, "PL": 9, "DE": 7, "IT": 5, "UK": 5, "BG": 3, "PT": 3, "HU": 3, "HR": 3, "FR": 4, "ES": 3, "EL": 2,
    "TR": 9, "UA": 8, "RS": 4, "BA": 4, "RU": 4, "AL": 3, "XK": 2, "MK": 2, "CH": 2, "MD": 1.5, "MA": 6, "DZ": 3,
    "TN": 2, "NG": 1.5, "SO": 1.5, "ER": 1, "EG": 1, "BR": 3, "CO": 1.5, "VE": 1.5, "US": 2, "SY": 6, "AF": 4,
    "IQ": 3, "IN": 4, "CN": 3, "VN": 2, "PH": 1.5, "PK": 2, "IR": 1.5, "BD": 1, "TH": 1, "AU": 0.5,
}  # fmt: skip
SMALL_ORIGIN = 0.06
TERRITORY_OF = {
    **dict.fromkeys(
        ("GI", "GG", "IM", "JE", "CQ", "IO", "AI", "VG", "KY", "FK", "MS", "GS", "TC", "BM"), "UK"
    ),
    **dict.fromkeys(("PM", "PF", "NC", "WF"), "FR"),
    **dict.fromkeys(("VI", "PR", "AS", "GU", "MP"), "US"),
}


@dataclass(frozen=True, eq=False)
class Origins:
    """The mix of countries of birth in each NUTS 2 region, and the citizenship that goes with each birthplace."""

    mix: Law  # (NUTS 2 region, POB leaf)
    citizenship: Ints  # POB leaf -> COC leaf


@dataclass(frozen=True, eq=False)
class Lives:
    """Where the persons of a block come from; ``stay`` is the years since they arrived, or NEVER."""

    born: Ints
    citizen: Ints
    stay: Ints


def origins(geo: Geography, dice: Dice) -> Origins:
    """Draw a country mix for each region and pair birthplaces with citizenships."""
    codes = tree("POB").leaf_codes
    foreign = [code.isalpha() and code != geo.country for code in codes]
    weights = np.where(foreign, [LARGE_ORIGINS.get(code, SMALL_ORIGIN) for code in codes], 0.0)
    mix = weights * dice.lognormal(0.7, (len(geo.regions[1]), len(codes)))
    known = leaf("COC")
    home = {geo.country: "1"}
    states = [home.get(state, state) for state in (TERRITORY_OF.get(code, code) for code in codes)]
    return Origins(law(mix), np.array([known[state] for state in states], dtype=np.int16))


def lives(geo: Geography, mixes: Origins, homes: Households, people: Members, dice: Dice) -> Lives:
    """Draw the origin by household, then let each member share it or not.

    Whoever is younger than the household's stay was born after it arrived, hence in the country.
    """
    count, born_here = people.age.size, leaf("POB")["1"]
    from_abroad = homes.private & dice.chance(geo.foreign[homes.lau], homes.size.size)
    region = geo.nuts2[homes.lau]
    home_origin, home_stay = dice.pick(mixes.mix, region), _stays(homes.size.size, dice)
    own = np.array([0.02, 0.12, 0.004, 0.08])[people.role]
    # a partner often, a child hardly ever has another origin than the household
    apart = dice.chance(own, count)
    foreign = from_abroad[people.household] ^ apart
    origin = np.where(apart, dice.pick(mixes.mix, region[people.household]), home_origin[people.household])
    stay = np.where(apart, _stays(count, dice), home_stay[people.household])
    abroad = foreign & (people.age >= stay)
    returned = ~abroad & (people.age >= stay) & dice.chance(0.035, count)
    born = np.where(abroad, origin, born_here)
    lived = np.where(abroad | returned, stay, NEVER)
    return Lives(
        _blurred_birth(born, dice),
        _citizenship(mixes, born, lived, foreign, origin, dice),
        lived.astype(np.int16),
    )


def _stays(count: int, dice: Dice) -> Ints:
    years = -MEAN_STAY * np.log1p(-dice.uniform(count))
    return np.minimum(years, LONGEST_STAY).astype(np.int16)


def _blurred_birth(born: Ints, dice: Dice) -> Ints:
    codes = leaf("POB")
    u = dice.uniform(born.size)
    return np.select([u < 0.002, u < 0.0022], [codes["4"], codes["3"]], born).astype(np.int16)


def _citizenship(mixes: Origins, born: Ints, lived: Whole, foreign: Flags, origin: Ints, dice: Dice) -> Ints:
    """Citizenship of the birthplace until naturalised; half the children born here keep their parents'."""
    codes = leaf("COC")
    u = dice.uniform(born.size)
    foreign_born = (lived != NEVER) & (born != leaf("POB")["1"])
    keeps = np.where(foreign_born, u > np.clip(0.02 * lived, 0.0, 0.75), foreign & (u < 0.4))
    keeps |= u < 0.001
    citizen = np.where(keeps, mixes.citizenship[origin], codes["1"])
    v = dice.uniform(born.size)
    return np.select([v < 0.0015, (v < 0.004) & keeps], [codes["4"], codes["3"]], citizen).astype(np.int16)


def year_of_arrival(stay: Ints, dice: Dice) -> Ints:
    """YAE: single years, then bands; who never lived abroad stands with those who came before 1980."""
    codes = leaf("YAE")
    by_stay = np.full(LONGEST_STAY + 1, codes["2"], dtype=np.int16)
    labels = dict(zip(tree("YAE").labels, tree("YAE").codes, strict=True))
    for label, code in labels.items():
        first, _, last = label.partition(" to ")
        if code in codes and first.isdigit():
            for year in range(int(first), int(last or first) + 1):
                by_stay[CENSUS_YEAR - year] = codes[code]
    known = np.where(stay == NEVER, codes["2"], by_stay[np.maximum(stay, 0)])
    return np.where(dice.chance(0.003, stay.size), codes["3"], known).astype(np.int16)


def arrived_lately(year: Ints) -> Ints:
    """YAT, which follows from YAE: since 2010 or not."""
    codes, table = leaf("YAT"), np.empty(len(leaf("YAE")), dtype=np.int16)
    for code, number in leaf("YAE").items():
        recent = code.startswith(("1.1", "1.2", "1.3"))
        table[number] = codes["3"] if code == "3" else codes["1"] if recent else codes["2"]
    return table[year]


def residence_a_year_ago(homes: Households, people: Members, stay: Ints, dice: Dice) -> Ints:
    """ROY: households move together; who arrived within the year came from abroad."""
    codes = leaf("ROY")
    head = people.age[homes.starts]
    moved_home = dice.chance(
        np.interp(head, [18, 25, 35, 50, 70, 90], [0.25, 0.3, 0.15, 0.06, 0.03, 0.04]), head.size
    )
    far_home = dice.chance(0.4, head.size)
    moved = moved_home[people.household] ^ dice.chance(0.02, people.age.size)
    inside = np.where(far_home[people.household], codes["2.1.2"], codes["2.1.1"])
    u = dice.uniform(people.age.size)
    return np.select(
        [people.age < 1, stay == 0, u < 0.003, moved],
        [codes["4"], codes["2.2"], codes["3"], inside],
        codes["1"],
    ).astype(np.int16)
