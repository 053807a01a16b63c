"""From the values of a column to the leaves of a codelist: codes as written, missing values, bands and ages.

Every distinct value of a batch is judged once. A value that is a leaf as it is written is always that leaf; only where
it is none are blanks around it ignored, and a whole number that is written as a decimal (17.0) read as that number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from enum import IntEnum
from math import inf, isfinite, isnan
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.errors import Problem
from discreet.lazy import lazily
from discreet.maths.cells.counting import recode
from discreet.population.encode import BadColumn, Codes, bare, code_type, is_text
from discreet.programme.coding import PLAIN, Coding, band_codes
from discreet.programme.variables import Variable

if TYPE_CHECKING:
    from discreet.programme import facts
else:
    facts = lazily("discreet.programme.facts")
pc = lazily("pyarrow.compute")


class Wrong(IntEnum):
    """Why a value has no leaf."""

    UNKNOWN = -1  # it is not in the codelist
    MISSING = -2  # there is none, and no code is declared for that
    NO_NUMBER = -3
    BELOW = -4  # a number below the first band
    NO_DATE = -5
    NOT_BORN = -6  # born after the reference day


@dataclass(frozen=True, eq=False, repr=False)
class Coded:
    """The leaves of a column, and the values that have none: those records have the first leaf and must not be used."""

    codes: Codes
    wrong: Mapping[Wrong, set[str]]


Leaves = NDArray[np.int64]  # distinct value -> leaf, or why there is none
Numbers = NDArray[np.float64]  # NaN: no value
Days = NDArray[np.datetime64]  # NaT: no value

_CLOSE = 1 << 12  # whole numbers in a range up to this are listed rather than hashed
_INT64_MAX = 2**63 - 1
_NO_DAY = np.datetime64("NaT", "D")
_WHOLE = {  # beside decimal commas 1.000 may be a thousand, 17.0 cannot
    ".": re.compile(r"([+-]?[0-9]+)\.0*"),
    ",": re.compile(r"([+-]?[0-9]+)(?:,0*|\.0|\.00)"),
}
_NUMBER = {
    ".": re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"),
    ",": re.compile(r"[+-]?([0-9]+,?[0-9]*|,[0-9]+)([eE][+-]?[0-9]+)?"),
}
_SIMPLE = {".": r"^-?[0-9]+([.][0-9]+)?$", ",": r"^-?[0-9]+(,[0-9]+)?$"}


class Coder:
    """Encodes the columns of one variable; ``decimal`` is the decimal mark of numbers in text."""

    def __init__(self, leaves: Mapping[str, int], coding: Coding = PLAIN, decimal: str = ".") -> None:
        self._leaves, self._coding, self._decimal = leaves, coding, decimal
        self._missing = int(Wrong.MISSING) if coding.missing is None else leaves[coding.missing]
        self._limits = np.array(coding.bands, dtype=np.float64)
        self._bands = np.array([leaves[code] for code in band_codes(coding)], dtype=np.int64)
        self._no_values = frozenset(coding.missing_values)
        self._last: tuple[pa.Array, Leaves] | None = (
            None  # the values judged last: batches of a file repeat them
        )

    @property
    def categories(self) -> int:
        """The number of leaves."""
        return len(self._leaves)

    def encode(self, column: pa.Array, out: Codes | None = None) -> Coded:
        """The leaf of each record; a column of another kind of values raises ``BadColumn``."""
        column = bare(column)
        _require_values(column.type)
        coded = column if pa.types.is_dictionary(column.type) else _with_dictionary(column)
        leaves, places = self._leaves_of(coded.dictionary), coded.indices
        if places.null_count:
            places = places.cast(pa.int64()).fill_null(len(leaves))
            leaves = np.append(leaves, self._missing)
        codes = np.empty(len(column), dtype=code_type(self.categories)) if out is None else out
        if len(leaves):
            recode(places.to_numpy(zero_copy_only=False), np.maximum(leaves, 0).astype(codes.dtype), codes)
        return Coded(codes, _wrong(leaves, places, coded.dictionary))

    def _leaves_of(self, values: pa.Array) -> Leaves:
        """The leaf of each distinct value."""
        last = self._last
        if last is None or not last[0].equals(values):
            last = self._last = values, self._judged(values)
        return last[1]

    def _judged(self, values: pa.Array) -> Leaves:
        if self._coding.reference_day is not None:
            days, wrong = self._days(values)
            ages = ages_on(self._coding.reference_day, days)
            return self._by_number(ages, np.where(ages < 0, int(Wrong.NOT_BORN), wrong))
        if self._coding.bands:
            return self._by_number(*self._numbers(values))
        return np.array([self._leaf(text) for text in _texts(values)], dtype=np.int64)

    def _leaf(self, text: str | None) -> int:
        """The leaf of a code as it is written, or of the same code as a whole number without decimals."""
        if text is None or text in self._no_values:
            return self._missing
        leaf = self._leaves.get(text)
        if leaf is not None:
            return leaf
        plain = self._plain(text)
        if not plain or plain in self._no_values:
            return self._missing
        return self._leaves.get(plain, int(Wrong.UNKNOWN))

    def _plain(self, text: str) -> str:
        """Without blanks around it, and without the zeros after the decimal mark of a whole number."""
        text = text.strip()
        whole = _WHOLE[self._decimal].fullmatch(text)
        return whole[1] if whole else text

    def _by_number(self, numbers: Numbers, wrong: Leaves) -> Leaves:
        """The leaf of each number by its band, or by its code; ``wrong`` is 0 where it can be used."""
        good = (wrong == 0) & ~np.isnan(numbers)
        leaves = np.where((wrong == 0) & ~good, self._missing, wrong)
        if self._coding.bands:
            band = np.searchsorted(self._limits, numbers[good], side="right") - 1
            leaves[good] = np.where(band < 0, int(Wrong.BELOW), self._bands[np.maximum(band, 0)])
        else:
            whole = numbers[good].astype(np.int64).tolist()
            leaves[good] = [self._leaves.get(str(number), int(Wrong.UNKNOWN)) for number in whole]
        return leaves

    def _numbers(self, values: pa.Array) -> tuple[Numbers, Leaves]:
        """The number of each value, and 0 or why it cannot be used."""
        kind = values.type
        if is_text(kind) or pa.types.is_null(kind):
            return self._numbers_in_text(values.cast(pa.large_string()))
        if not _is_number(kind):
            raise BadColumn(f"values of type {kind}", "give numbers, which bands need")
        if not (pa.types.is_integer(kind) or pa.types.is_float64(kind)):
            values = values.cast(pa.string())  # 0.1 is the same number, however it is stored
        numbers = np.array(pc.cast(values, pa.float64(), safe=False).to_numpy(zero_copy_only=False))
        return self._without_marks(numbers), np.where(np.isinf(numbers), int(Wrong.NO_NUMBER), 0)

    def _without_marks(self, numbers: Numbers) -> Numbers:
        """The numbers without those that mean that a value is missing."""
        given = [number for text in self._no_values if (number := self._number(text)) is not None]
        numbers[np.isin(numbers, given)] = np.nan
        return numbers

    def _numbers_in_text(self, texts: pa.Array) -> tuple[Numbers, Leaves]:
        """Plain numbers are parsed together, which is fast where all values are different; others one by one."""
        simple = pc.fill_null(pc.match_substring_regex(texts, _SIMPLE[self._decimal]), False)
        marked: NDArray[np.bool_] = simple.to_numpy(zero_copy_only=False)
        plain = pc.replace_substring(texts.filter(simple), self._decimal, ".")
        numbers, wrong = np.full(len(texts), np.nan), np.zeros(len(texts), dtype=np.int64)
        numbers[marked] = pc.cast(plain, pa.float64()).to_numpy(zero_copy_only=False)
        rest = texts.filter(pc.invert(simple))
        numbers[~marked], wrong[~marked] = self._read(
            rest, self._number, Wrong.NO_NUMBER, np.full(len(rest), np.nan)
        )
        wrong[np.isinf(numbers)] = Wrong.NO_NUMBER
        return self._without_marks(numbers), wrong

    def _number(self, text: str) -> float | None:
        text = self._plain(text)
        number = float(text.replace(",", ".")) if _NUMBER[self._decimal].fullmatch(text) else inf
        return number if isfinite(number) else None

    def _days(self, values: pa.Array) -> tuple[Days, Leaves]:
        """The day of each value, and 0 or why it cannot be used."""
        kind = values.type
        if is_text(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind):
            return self._read(values, _day, Wrong.NO_DATE, np.full(len(values), _NO_DAY))
        if not _is_day(kind):
            raise BadColumn(f"values of type {kind}", "give dates of birth, which reference_day needs")
        days = np.array(_local_days(values).to_numpy(zero_copy_only=False), dtype="datetime64[D]")
        given = [day for text in self._no_values if (day := _day(text)) is not None]
        days[np.isin(days, given)] = _NO_DAY
        return days, np.zeros(len(days), dtype=np.int64)

    def _read(
        self, values: pa.Array, parse: Callable[[str], object | None], failed: Wrong, found: NDArray[Any]
    ) -> tuple[NDArray[Any], Leaves]:
        """Parse texts into ``found``, which is filled with missing values."""
        wrong = np.zeros(len(found), dtype=np.int64)
        for k, text in enumerate(_texts(values)):
            plain = "" if text is None else text.strip()
            if plain and plain not in self._no_values and self._plain(plain) not in self._no_values:
                value = parse(plain)
                if value is None:
                    wrong[k] = failed
                else:
                    found[k] = value
        return found, wrong


def coder_of(variable: Variable, decimal: str = ".") -> Coder:
    """The coder of a declared variable."""
    leaves = {code: index for index, code in enumerate(variable.codelist.leaf_codes)}
    return Coder(leaves, variable.coding, decimal)


def ages_on(day: date, born: Days) -> Numbers:
    """The age in completed years: the difference of the years, less one before the birthday of that year.

    Who was born on 29 February has the birthday on 1 March where there is no 29 February.
    """
    month = born.astype("datetime64[M]")
    year = born.astype("datetime64[Y]")
    months = (month - year).astype(np.float64) + 1
    days = (born - month).astype(np.float64) + 1
    ahead = (months > day.month) | ((months == day.month) & (days > day.day))
    ages = day.year - 1970 - year.astype(np.float64) - ahead
    return np.where(np.isnat(born), np.nan, ages)


def _day(text: str) -> np.datetime64 | None:
    day = facts.day_of(text)
    return None if day is None else np.datetime64(day, "D")


def _local_days(values: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(values.type) and values.type.tz is not None:
        try:
            values = pc.local_timestamp(values)
        except pa.ArrowInvalid:
            raise BadColumn(
                f"times of the zone {values.type.tz!r}", "give dates, or a zone of the tz database"
            ) from None
    return pc.cast(values, pa.date32(), safe=False)


def _texts(values: pa.Array) -> list[str | None]:
    """The distinct values as text; None where a value is missing."""
    kind = values.type
    if pa.types.is_floating(kind):
        return [_written(number) for number in values.to_pylist()]
    if _is_day(kind):
        values = _local_days(values)
    elif is_text(kind):
        return list(values.to_pylist())
    elif pa.types.is_integer(kind):
        return [None if number is None else str(number) for number in values.to_pylist()]
    found: list[str | None] = pc.cast(values, pa.string()).to_pylist()
    return found


def _written(number: float | None) -> str | None:
    if number is None or isnan(number):
        return None
    return str(int(number)) if isfinite(number) and number.is_integer() else repr(number)


def _wrong(leaves: Leaves, places: pa.Array, values: pa.Array) -> dict[Wrong, set[str]]:
    """The values without a leaf that occur; a dictionary may have others."""
    found: dict[Wrong, set[str]] = {}
    if (leaves < 0).any():
        texts = [*_texts(values), None]
        for place in pc.unique(places).to_pylist():
            if leaves[place] < 0:
                found.setdefault(Wrong(int(leaves[place])), set()).add(texts[place] or "")
    return found


def _with_dictionary(column: pa.Array) -> pa.DictionaryArray:
    """Dictionary-encode; whole numbers in a small range by their distance from the smallest, which needs no hashing."""
    if pa.types.is_integer(column.type) and column.null_count < len(column):
        low, high = (end.as_py() for end in pc.min_max(column).values())
        if high - low < _CLOSE and high <= _INT64_MAX:
            wide = column.cast(pa.int64()) if low < 0 else column  # a narrow type would overflow
            places = pc.subtract(wide, pa.scalar(low, wide.type)) if low else wide
            return pa.DictionaryArray.from_arrays(places, pa.array(range(low, high + 1), pa.int64()))
    return column.dictionary_encode()


def _require_values(kind: pa.DataType) -> None:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if not (
        is_text(kind)
        or _is_number(kind)
        or _is_day(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_null(kind)
    ):
        raise BadColumn(f"values of type {kind}", "give codes as text or whole numbers")


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_day(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


_SHOWN = 5  # values named in a message
MOST_SHOWN = 1000  # with more values a column probably contains ids, which no message shows
_FEW = 20  # values that may be codes, however few records there are
_MEMBERS = 4  # records for each id of a household, or fewer


def look_like_ids(values: int, records: int) -> bool:
    """Whether so many wrong values of a column are rather ids than codes: very many, or few records for each."""
    return values > MOST_SHOWN or are_rare(values, records)


def are_rare(values: int, records: int) -> bool:
    """Whether a column has few records for each of its values, as one of ids has."""
    return values > _FEW and _MEMBERS * values > records


def values_problem(
    variable: Variable, why: Wrong, values: set[str], table: str, hidden: bool = False
) -> Problem:
    """What is wrong with the values of a column; hidden ones, and dates of birth, are not shown."""
    key, column = f"variables.{variable.name}", variable.column
    shown = ", ".join(repr(value) for value in sorted(values)[:_SHOWN])
    shown += ", ..." if len(values) > _SHOWN else ""
    match why:
        case Wrong.MISSING:
            remedy = 'name the code that they get, missing = "CODE", or complete the records'
            return Problem(table, key, "some records have no value", remedy)
        case Wrong.NOT_BORN:
            value = f"dates of birth in {column!r} after {variable.coding.reference_day}"
            return Problem(table, key, value, "correct reference_day or the records")
        case Wrong.UNKNOWN if hidden:
            value = f"the column {column!r} contains values that are not in the codelist"
            return Problem(table, key, value, "give the column of the codes, or complete the codelist")
        case Wrong.UNKNOWN:
            value = f"{len(values)} codes that are not leaves of the codelist: {shown}"
            return Problem(table, key, value, "add them to the codelist or correct the records")
    what, remedy = _NOT_READ[why]
    return Problem(
        table, key, f"{column!r} contains {what}" if hidden else f"{len(values)} {what}: {shown}", remedy
    )


_NOT_READ = {
    Wrong.NO_NUMBER: (
        "values that are not numbers",
        'list them as missing_values, or correct the records (a decimal comma: decimal = "," of the source)',
    ),
    Wrong.BELOW: (
        "numbers below the first band",
        "list them as missing_values, or lower the first limit (-inf for an open band)",
    ),
    Wrong.NO_DATE: (
        "values that are not dates",
        "write dates as 1974-03-01, 01.03.1974 or 01/03/1974 (day first), or list these values as missing_values",
    ),
}
