"""Origin, education and work of the people of the synthetic census."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.synth.draw import ConditionalLaw, Dice, Flags, Ints, Whole, law, leaf, tree
from discreet.synth.geography import Geography
from discreet.synth.households import SynthHouseholds, SynthMembers

CENSUS_YEAR = 2021
FIRST_YEAR = 1980  # earlier arrivals have no year
NEVER = -1  # years since the arrival of those who never lived abroad
MEAN_STAY, LONGEST_STAY = 14.0, 70

# shares of the countries of birth; all others share the rest
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
class BirthplaceMix:
    """The mix of countries of birth in each NUTS 2 region, and the citizenship of each birthplace."""

    mix: ConditionalLaw  # (NUTS 2 region, POB leaf)
    citizenship: Ints  # POB leaf -> COC leaf


@dataclass(frozen=True, eq=False)
class Lives:
    """Where the persons of a block come from; ``stay`` is the years since they arrived, or NEVER."""

    born: Ints
    citizen: Ints
    stay: Ints


def origins(geo: Geography, dice: Dice) -> BirthplaceMix:
    """Draw a country mix for each region and pair birthplaces with citizenships."""
    codes = tree("POB").leaf_codes
    foreign = [code.isalpha() and code != geo.country for code in codes]
    weights = np.where(foreign, [LARGE_ORIGINS.get(code, SMALL_ORIGIN) for code in codes], 0.0)
    mix = weights * dice.lognormal(0.7, (len(geo.regions[1]), len(codes)))
    known = leaf("COC")
    home = {geo.country: "1"}
    states = [home.get(state, state) for state in (TERRITORY_OF.get(code, code) for code in codes)]
    return BirthplaceMix(law(mix), np.array([known[state] for state in states], dtype=np.int16))


def lives(
    geo: Geography, mixes: BirthplaceMix, homes: SynthHouseholds, people: SynthMembers, dice: Dice
) -> Lives:
    """Draw the origin of each household, then whether each member shares it.

    A member younger than the household's stay was born after its arrival, hence in the country.
    """
    count, born_here = people.age.size, leaf("POB")["1"]
    from_abroad = homes.private & dice.chance(geo.foreign[homes.lau], homes.size.size)
    region = geo.nuts2[homes.lau]
    home_origin, home_stay = dice.pick(mixes.mix, region), _stays(homes.size.size, dice)
    own = np.array([0.02, 0.12, 0.004, 0.08])[people.role]
    # a partner often has another origin than the household, a child hardly ever
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


def _citizenship(
    mixes: BirthplaceMix, born: Ints, lived: Whole, foreign: Flags, origin: Ints, dice: Dice
) -> Ints:
    """Draw citizenships: that of the birthplace until naturalised; of children born here 40 % have their parents'."""
    codes = leaf("COC")
    u = dice.uniform(born.size)
    foreign_born = (lived != NEVER) & (born != leaf("POB")["1"])
    keeps = np.where(foreign_born, u > np.clip(0.02 * lived, 0.0, 0.75), foreign & (u < 0.4))
    keeps |= u < 0.001
    citizen = np.where(keeps, mixes.citizenship[origin], codes["1"])
    v = dice.uniform(born.size)
    return np.select([v < 0.0015, (v < 0.004) & keeps], [codes["4"], codes["3"]], citizen).astype(np.int16)


def year_of_arrival(stay: Ints, dice: Dice) -> Ints:
    """YAE: single years, then bands; people who never lived abroad count as arrived before 1980."""
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


def residence_a_year_ago(homes: SynthHouseholds, people: SynthMembers, stay: Ints, dice: Dice) -> Ints:
    """ROY: households move together; people who arrived within the year came from abroad."""
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


WORKING_AGE = 15
LOW, MIDDLE, HIGH = 0, 1, 2  # education

# ISCED 0 to 8 and not stated, by cohort: 15-19, 20-24, 25-44, 45-64, 65 and over
_SCHOOL = np.array([
    [0.010, 0.060, 0.700, 0.210, 0.015, 0.005, 0.000, 0.000, 0.000, 0.004],
    [0.006, 0.015, 0.130, 0.560, 0.050, 0.050, 0.160, 0.025, 0.000, 0.008],
    [0.006, 0.020, 0.110, 0.390, 0.050, 0.070, 0.170, 0.160, 0.014, 0.010],
    [0.008, 0.040, 0.180, 0.450, 0.060, 0.060, 0.090, 0.095, 0.012, 0.010],
    [0.015, 0.180, 0.270, 0.360, 0.040, 0.035, 0.040, 0.045, 0.006, 0.015],
])  # fmt: skip
_COHORT_ENDS = (20, 25, 45, 65)
_STEP = np.array([-3, -2, -1, 0, 0.3, 0.8, 1.2, 1.8, 2.2, 0])  # rank of each education level

# employed, unemployed, pension, student, other, not stated by age: 15-19, 20-24, ..., 65-69, 70 and over
_ACTIVITY = np.array([
    [0.170, 0.040, 0.000, 0.740, 0.040, 0.006], [0.560, 0.070, 0.001, 0.300, 0.060, 0.006],
    [0.800, 0.060, 0.002, 0.060, 0.070, 0.005], [0.840, 0.050, 0.004, 0.015, 0.080, 0.005],
    [0.855, 0.045, 0.007, 0.005, 0.080, 0.005], [0.865, 0.040, 0.010, 0.003, 0.075, 0.005],
    [0.865, 0.040, 0.015, 0.001, 0.070, 0.005], [0.840, 0.042, 0.035, 0.001, 0.075, 0.005],
    [0.740, 0.045, 0.120, 0.000, 0.090, 0.005], [0.380, 0.025, 0.500, 0.000, 0.090, 0.005],
    [0.100, 0.002, 0.870, 0.000, 0.025, 0.004], [0.025, 0.000, 0.960, 0.000, 0.012, 0.003],
])  # fmt: skip
_WOMAN = np.array([0.88, 0.95, 1.0, 1.05, 2.1, 1.0])
_BY_EDUCATION = np.array(
    [[0.72, 1.7, 1.1, 1.0, 1.7, 1.2], [1.0, 1, 1, 1, 1, 1], [1.15, 0.6, 0.9, 1.1, 0.6, 0.8]]
)
_FOREIGN = np.array([0.92, 1.8, 0.7, 1.0, 1.4, 1.5])

# occupations 1 to 10 and not stated, by education
_OCCUPATION = np.array([
    [0.020, 0.010, 0.040, 0.060, 0.240, 0.050, 0.190, 0.130, 0.245, 0.003, 0.012],
    [0.045, 0.040, 0.180, 0.130, 0.220, 0.045, 0.170, 0.090, 0.065, 0.006, 0.009],
    [0.100, 0.500, 0.190, 0.090, 0.060, 0.010, 0.020, 0.008, 0.012, 0.004, 0.006],
])  # fmt: skip
_OCCUPATION_OF_WOMEN = np.array([0.55, 1.25, 1.05, 1.9, 1.7, 0.5, 0.14, 0.25, 1.2, 0.12, 1])
_OCCUPATION_OF_FOREIGNERS = np.array([0.7, 0.8, 0.7, 0.8, 1.2, 0.5, 1.3, 1.4, 2.4, 0.1, 1.3])
_OCCUPATION_IN_THE_COUNTRY = np.array([0.8, 0.7, 0.9, 0.9, 1, 3.0, 1.3, 1.3, 1.1, 1, 1])
_OCCUPATION_IN_THE_CITY = np.array([1.2, 1.4, 1.1, 1.1, 1.0, 0.08, 0.7, 0.7, 1.0, 1, 1.1])

# sections A B C D E F G H I J K L M N O P Q R S T U and not stated, by occupation 1 to 10 and not stated
_INDUSTRY = np.array([
    [1, 0.3, 16, 1, 1, 7, 18, 5, 9, 6, 5, 2, 8, 4, 7, 4, 6, 2, 2, 0.0, 0.1, 0.5],
    [0.4, 0.2, 8, 1, 0.4, 2, 4, 1, 0.4, 12, 5, 0.6, 15, 2, 9, 24, 16, 2.5, 1.5, 0.0, 0.2, 0.4],
    [0.5, 0.3, 16, 1.5, 0.8, 5, 12, 4, 1, 5, 8, 2, 9, 3, 11, 3, 17, 3, 1.5, 0.0, 0.1, 0.4],
    [0.5, 0.2, 12, 1, 1, 4, 16, 11, 4, 4, 7, 2, 6, 6, 13, 4, 6, 2, 2, 0.0, 0.1, 0.5],
    [0.3, 0.0, 3, 0.1, 0.2, 0.6, 40, 4, 17, 0.4, 0.3, 0.3, 0.7, 5, 5, 5, 16, 2, 7, 1.0, 0.0, 0.6],
    [90, 0.1, 1, 0.1, 0.1, 0.5, 1, 0.2, 0.2, 0, 0, 0.1, 0.3, 3, 0.8, 0.3, 0.3, 0.8, 0.3, 0.1, 0, 0.6],
    [1, 1, 40, 2, 2, 36, 11, 2, 1, 0.5, 0.1, 0.3, 1, 2, 1, 0.4, 0.5, 0.4, 1.5, 0.0, 0, 0.5],
    [1, 2, 45, 0.7, 3, 5, 7, 32, 0.6, 0.2, 0, 0.1, 0.5, 3, 1, 0.2, 0.5, 0.2, 0.5, 0.0, 0, 0.6],
    [5, 0.4, 14, 0.3, 3, 8, 13, 8, 14, 0.4, 0.3, 0.8, 1, 17, 4, 4, 5, 1.5, 2, 3.0, 0.0, 0.9],
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0, 0, 0, 0.1, 0.1],
    [2, 0.3, 12, 0.5, 1, 7, 14, 6, 7, 3, 2, 1, 4, 5, 7, 6, 9, 2, 3, 0.6, 0.1, 40],
])  # fmt: skip
_WOMEN_IN = np.array(
    [0.6, 0.25, 0.6, 0.4, 0.4, 0.25, 1.2, 0.5, 1.3, 0.6, 1.1, 1.1, 1, 1, 1, 2.2, 2.8, 1, 1.9, 5, 1, 1]
)

# employee, employer, own account, other, not stated, by occupation 1 to 10 and not stated
_STATUS = np.array([
    [60, 26, 13, 0.6, 0.4], [84, 4, 11.5, 0.2, 0.3], [88, 3, 8.5, 0.2, 0.3], [96.5, 0.8, 2, 0.4, 0.3],
    [85, 4, 10, 0.7, 0.3], [30, 8, 50, 11.6, 0.4], [80, 6, 13, 0.6, 0.4], [91, 1.5, 6.8, 0.3, 0.4],
    [93.5, 0.5, 4, 1.4, 0.6], [100, 0, 0, 0, 0], [80, 3, 10, 1, 6],
])  # fmt: skip

# own region, another region, unknown region, abroad, no fixed place, not stated; by rural, town, city
WORKPLACE = law([
    [0.840, 0.105, 0.008, 0.012, 0.030, 0.005],
    [0.880, 0.070, 0.007, 0.010, 0.028, 0.005],
    [0.920, 0.040, 0.006, 0.005, 0.024, 0.005],
])  # fmt: skip


def _by_sex(women: NDArray[np.float64], sex: int) -> NDArray[np.float64]:
    """Weights of an occupation or industry for one sex, from those for women."""
    return women if sex else np.maximum(0.2, 2.0 - women)


def _school_law() -> ConditionalLaw:
    """Rows cohort x sex x character x (born here, abroad)."""
    rows = [
        cohort
        * np.exp(
            _STEP * (0.07 * sex * (k < 3) - 0.06 * sex * (k >= 3) + 0.22 * (character - 1) - 0.12 * foreign)
        )
        for k, cohort in enumerate(_SCHOOL)
        for sex in range(2)
        for character in range(3)
        for foreign in range(2)
    ]
    return law(rows)


def _activity_law() -> ConditionalLaw:
    """Rows age band x sex x education x (citizen, foreigner)."""
    rows = [
        band * _WOMAN**sex * _BY_EDUCATION[education] * _FOREIGN**foreign
        for band in _ACTIVITY
        for sex in range(2)
        for education in range(3)
        for foreign in range(2)
    ]
    return law(rows)


def _occupation_law() -> ConditionalLaw:
    """Rows education x sex x character x (citizen, foreigner)."""
    place = (_OCCUPATION_IN_THE_COUNTRY, np.ones(11), _OCCUPATION_IN_THE_CITY)
    rows = [
        _OCCUPATION[education]
        * _by_sex(_OCCUPATION_OF_WOMEN, sex)
        * place[character]
        * _OCCUPATION_OF_FOREIGNERS**foreign
        for education in range(3)
        for sex in range(2)
        for character in range(3)
        for foreign in range(2)
    ]
    return law(rows)


SCHOOL, ACTIVITY, OCCUPATION = _school_law(), _activity_law(), _occupation_law()
INDUSTRY = law([row * _by_sex(_WOMEN_IN, sex) for row in _INDUSTRY for sex in range(2)])
STATUS = law(
    [row * np.array([1, 0.25 + 0.35 * band, 0.4 + 0.3 * band, 1, 1]) for row in _STATUS for band in range(3)]
)


@dataclass(frozen=True, eq=False)
class Persons:
    """What is known of the persons before education and work are drawn."""

    age: Ints
    sex: Ints
    lau: NDArray[np.int32]
    foreign_born: Flags
    foreigner: Flags


def education(people: Persons, character: Ints, dice: Dice) -> Ints:
    """EDU: by cohort, sex, place and birthplace; not applicable to children."""
    cohort = np.searchsorted(_COHORT_ENDS, people.age, side="right")
    row = ((cohort * 2 + people.sex) * 3 + character) * 2 + people.foreign_born
    return np.where(people.age < WORKING_AGE, leaf("EDU")["11"], dice.pick(SCHOOL, row)).astype(np.int16)


def education_group(edu: Ints) -> Ints:
    """Low, middle or high; not stated counts as middle."""
    group = np.array([LOW] * 3 + [MIDDLE] * 2 + [HIGH] * 4 + [MIDDLE, LOW], dtype=np.int16)
    return group[edu]


def activity(people: Persons, edu: Ints, dice: Dice) -> Ints:
    """CAS: by age, sex, education and citizenship; children are below the working age."""
    codes = leaf("CAS")
    outcome = np.array([codes[code] for code in ("1.1", "1.2", "2.2", "2.3", "2.4", "3")], dtype=np.int16)
    band = np.clip((people.age - WORKING_AGE) // 5, 0, len(_ACTIVITY) - 1)
    row = ((band * 2 + people.sex) * 3 + education_group(edu)) * 2 + people.foreigner
    return np.where(people.age < WORKING_AGE, codes["2.1"], outcome[dice.pick(ACTIVITY, row)]).astype(
        np.int16
    )


def jobs(people: Persons, edu: Ints, cas: Ints, character: Ints, dice: Dice) -> tuple[Ints, Ints, Ints]:
    """OCC, IND and SIE of the employed; not applicable to all others."""
    columns = [
        np.full(cas.size, leaf(name)[code], dtype=np.int16)
        for name, code in (("OCC", "12"), ("IND", "12"), ("SIE", "6"))
    ]
    at_work = np.flatnonzero(cas == leaf("CAS")["1.1"])
    sex, age, foreigner = people.sex[at_work], people.age[at_work], people.foreigner[at_work]
    row = ((education_group(edu[at_work]) * 2 + sex) * 3 + character[at_work]) * 2 + foreigner
    occupation = dice.pick(OCCUPATION, row)
    columns[0][at_work] = occupation
    columns[1][at_work] = dice.pick(INDUSTRY, occupation * 2 + sex)
    columns[2][at_work] = dice.pick(STATUS, occupation * 3 + np.clip((age - 20) // 15, 0, 2))
    return columns[0], columns[1], columns[2]


def workplace(geo: Geography, people: Persons, cas: Ints, dice: Dice) -> Ints:
    """LPW: mostly the home NUTS 2 region, else the next one; the regions' leaves come first, then 1.y and 2 to 5."""
    regions = len(geo.regions[1])
    place = np.full(cas.size, regions + 4, dtype=np.int16)
    at_work = np.flatnonzero(cas == leaf("CAS")["1.1"])
    lau = people.lau[at_work]
    home = geo.nuts2[lau]
    outcome = dice.pick(WORKPLACE, geo.character[lau])
    step = np.where(dice.chance(0.5, home.size), 1, regions - 1)
    place[at_work] = np.where(
        outcome == 0, home, np.where(outcome == 1, (home + step) % regions, regions - 2 + outcome)
    )
    return place
