"""What single columns are, judged by their values: ages, dates of birth, years, codes, amounts, weights.

The hints for names are few and in several languages: they only settle what the values leave open.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from discreet.programme.amounts import is_named_amount
from discreet.programme.facts import ColumnFacts, Kind, number_of

MOST_CODES = 5_000  # a column with more distinct values is no variable, unless it is a place
FEW_NUMBERS = 30  # whole numbers with so few values are codes
OLDEST = range(60, 131)  # the highest age in years
HEAPED = 0.12  # share of one value that no single year of age has
MAGNITUDE = 10_000  # amounts reach such numbers
YEARS = (1800, 2100)
SENTINELS = {
    -1,
    -2,
    -3,
    -7,
    -8,
    -9,
    -66,
    -77,
    -88,
    -97,
    -98,
    -99,
    -999,
}  # numbers below zero that mean no value

# beginnings of words; those of one or two letters are whole words
PLACES = """
geo nuts lau reg prov county kreis distr munic commun komm gemein kanton canton tract blk block ward parish oa lsoa msoa
lad sa zip postc plz ags town city ort stadt area zone taz dep state land
"""
ELSEWHERE = "birth born work citizen origin prev type name size occ ind edu job sector branch naiss geburt nasc ethnic"
UNITS = {
    "persons": "person pers pid people indiv resident",
    "households": "household hh hid haush menage hogar serial",
    "families": "famil fid",
    "dwellings": "dwelling housing did wohnung logement vivienda",
}
AGES = "age alter edad leeftijd eta idade"
WEIGHTS = "weight pweight hweight wgt wt pwgt hwgt gewicht hochr poids peso pond"
COUNTS = "count n freq obs pop population value anzahl effectif persons number total"
NAMES = "name label desc bez"


def words_of(name: str) -> list[str]:
    """The words of a column's name: SA2_CODE_2021 as sa, code."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return [word for word in re.split(r"[^a-z]+", spaced.lower()) if word]


def plain_name(column: str) -> str:
    """The name of a variable for a column: letters without accents, digits and _; it begins with a letter."""
    plain = unicodedata.normalize("NFKD", column.replace("ß", "ss"))  # Größe as Gro + an accent + sse
    letters = "".join(sign for sign in plain if not unicodedata.combining(sign))
    word = re.sub(r"[^A-Za-z0-9]+", "_", letters).strip("_")
    return word if re.match(r"[A-Za-z]", word) else f"v_{word}".rstrip("_")


def unused_name(name: str, names: Iterable[str]) -> str:
    """The name, with a number where it is taken: codelists become files, where capital letters may not matter."""
    taken, number, found = {one.lower() for one in names}, 2, name
    while found.lower() in taken:
        found, number = f"{name}_{number}", number + 1
    return found


def named(name: str, hints: str) -> bool:
    """Whether a word of a column's name begins with one of the hints."""
    words = words_of(name)
    return any(
        word.startswith(hint) if len(hint) > 2 else word == hint for word in words for hint in hints.split()
    )


def is_place_name(name: str) -> bool:
    """Whether a column is named as a place of residence."""
    return named(name, PLACES) and not named(name, ELSEWHERE)


def unit_of(file_name: str) -> str | None:
    """The unit that a file's name refers to."""
    name = file_name.lower()
    return next(
        (unit for unit, words in UNITS.items() if any(word in name for word in words.split()[:2])), None
    )


def is_age_name(name: str) -> bool:
    """AGE, age_years, AGEP: the word itself, or with one letter more."""
    return any(
        word == hint or (word[:-1] == hint and len(word) == len(hint) + 1)
        for word in words_of(name)
        for hint in AGES.split()
    )


def steps_of(column: ColumnFacts) -> tuple[float, ...]:
    """The numbers of a column, without values below zero that mean "no value"."""
    found = sorted(n for value in column.values or () if (n := number_of(value)) is not None)
    proper = [n for n in found if n not in SENTINELS]
    return tuple(proper if proper and proper[0] >= 0 else found)


def no_values(column: ColumnFacts) -> tuple[str, ...]:
    """The values of a column of numbers that mean "no value": -9, N."""
    others = column.numbers.others if column.numbers else ()
    kept = set(steps_of(column))
    below = [v for v in column.values or () if (n := number_of(v)) is not None and n not in kept]
    return (*others, *below)


def years_in(column: ColumnFacts) -> dict[str, int]:
    """Value -> age in years, where values are 17, 17.0 or Y17, or close the list as 90+ does; else nothing."""
    found: dict[str, int] = {}
    leads: set[str] = set()
    for value in column.values or ():
        match = re.fullmatch(
            r"\s*([A-Za-z_]{0,3})(\d{1,3})(?:[.,]0+)?\s*(\+?|years?|and over|or more)\s*", value
        )
        if match:
            found[value] = int(match[2])
            leads.add(match[1])
    proper = len(column.values or ()) - len(no_values(column))
    return found if found and len(leads) <= 2 and len(found) >= 0.9 * proper else {}


def may_be_age(column: ColumnFacts) -> bool:
    """Whether the values may be ages in years: whole numbers, the highest from 60 to 130."""
    if column.values is None or column.kind not in (Kind.WHOLE, Kind.TEXT):
        return False
    years = years_in(column)
    distinct = set(years.values())
    return bool(years) and max(distinct) in OLDEST and len(distinct) >= len(years) - 3


def is_plainly_age(column: ColumnFacts) -> bool:
    """Whether the values can hardly be anything but ages: nearly every year occurs, and none is heaped."""
    if not may_be_age(column) or column.largest > HEAPED or column.missing >= 0.2:
        return False
    years = set(years_in(column).values())
    return min(years) <= 20 and len(years) >= max(40, 0.7 * (max(years) - min(years) + 1))


def is_birth(column: ColumnFacts) -> bool:
    """Whether dates are dates of birth: they span the lives of a population."""
    if column.kind is not Kind.DATE or column.days is None:
        return False
    first, last = column.days
    return OLDEST.start <= last.year - first.year <= OLDEST.stop


def is_year(column: ColumnFacts) -> bool:
    """Whether whole numbers are calendar years."""
    steps = steps_of(column)
    return (
        column.kind is Kind.WHOLE
        and len(steps) > FEW_NUMBERS
        and YEARS[0] <= steps[0]
        and steps[-1] <= YEARS[1]
        and len(steps) >= 0.3 * (steps[-1] - steps[0] + 1)
    )


def is_codes(column: ColumnFacts) -> bool:
    """Whether the values of a column are codes, and not amounts."""
    values = column.values
    if values is None or column.kind in (Kind.DATE, Kind.OTHER) or not 1 <= len(values) <= MOST_CODES:
        return False
    if column.kind is Kind.TEXT:
        return True
    numbers = column.numbers
    if column.kind is Kind.DECIMAL:  # 1.1, 1.2, 2: a classification of sections, where they are few
        return (
            len(values) <= FEW_NUMBERS and column.largest > 0.1 and all(len(value) <= 4 for value in values)
        )
    if numbers is not None and (numbers.padded or is_year(column)):
        return numbers.padded
    numerals = {len(value) for value in values if number_of(value) is not None}
    same_length = len(numerals) == 1 and min(numerals) >= 2
    if len(values) <= FEW_NUMBERS:
        return same_length or abs(numbers.high if numbers else 0) < MAGNITUDE
    return same_length and (numbers is None or numbers.round < 0.5)


def is_amount(column: ColumnFacts) -> bool:
    """Whether numbers are amounts, such as incomes: they reach the ten thousands and are no years, or are named so."""
    numbers = column.numbers
    if numbers is not None and is_named_amount(column.name):
        return True
    return (
        numbers is not None and not is_year(column) and max(abs(numbers.low), abs(numbers.high)) >= MAGNITUDE
    )


def may_be_weight(column: ColumnFacts) -> bool:
    """Whether numbers could be survey weights: all positive, none far from the others, not rounded as amounts are."""
    numbers = column.numbers
    return (
        numbers is not None
        and not column.missing
        and not numbers.others
        and numbers.low >= 0
        and numbers.zeros < 0.5
        and numbers.median > 0
        and numbers.high <= 100 * max(numbers.median, 1)
        and numbers.round < 0.3
        and column.distinct > 1
        and not is_named_amount(column.name)
    )
