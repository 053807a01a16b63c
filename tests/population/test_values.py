"""Values and their leaves: codes as written, missing values, bands and ages, whatever type the column has."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.population.encode import BadColumn
from discreet.population.values import Coder, Wrong, ages_on
from discreet.programme.coding import Coding, band_codes, coding

CODES = ("0", "1", "17", "1.10", "007", "x y", "9")
LEAVES = {code: leaf for leaf, code in enumerate(CODES)}


def read(coder: Coder, column: pa.Array) -> list[str]:
    """The code of each value; every value must have one."""
    found = coder.encode(column)
    assert not found.wrong, found.wrong
    names = {leaf: code for code, leaf in coder._leaves.items()}
    return [names[int(leaf)] for leaf in found.codes]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["17", "17.0", " 17 ", "17.", "17.000"]),
        pa.array(["17", "17.0"]).dictionary_encode(),
        pa.array([17.0, 17.0]),
        pa.array([17.0], pa.float32()),
        pa.array([17.0]).dictionary_encode(),
        pa.array([17], pa.uint8()),
        pa.array([17.0]).cast(pa.decimal128(9, 3)),
        pa.array(["17"], pa.large_string()),
        pa.array(["17.0"], pa.string_view()),
    ],
)
def test_a_whole_number_is_its_code_however_it_is_written(column: pa.Array) -> None:
    assert set(read(Coder(LEAVES), column)) == {"17"}


def test_codes_are_never_changed() -> None:
    assert read(Coder(LEAVES), pa.array(["1.10", "007", "x y", "1"])) == ["1.10", "007", "x y", "1"]
    for other in ("1.1", "7", "007.5", "17.5", "170", "x", "017.0", "1e0", "17.0x"):
        assert Coder(LEAVES).encode(pa.array([other])).wrong == {Wrong.UNKNOWN: {other}}
    exact = {"17": 0, "17.0": 1}
    assert Coder(exact).encode(pa.array(["17.0", "17"])).codes.tolist() == [1, 0]


def test_a_decimal_comma_counts_only_where_it_is_the_mark() -> None:
    assert Coder(LEAVES).encode(pa.array(["17,0"])).wrong == {Wrong.UNKNOWN: {"17,0"}}
    assert read(Coder(LEAVES, decimal=","), pa.array(["17,0", "17.0", "17"])) == ["17"] * 3
    assert Coder(LEAVES, decimal=",").encode(pa.array(["1.000"])).wrong == {Wrong.UNKNOWN: {"1.000"}}


MISSING = [
    pa.array(["17", None, "", "  "]),
    pa.array(["17", None, ""]).dictionary_encode(),
    pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), pa.array(["17", None])),
    pa.array([17, None]),
    pa.array([17, None], pa.int8()),
    pa.array([17.0, None, float("nan")]),
    pa.array([17.0, None], pa.float32()).dictionary_encode(),
]


@pytest.mark.parametrize("column", MISSING, ids=range(len(MISSING)))
def test_missing_values_have_the_declared_code_or_are_reported(column: pa.Array) -> None:
    assert set(Coder(LEAVES).encode(column).wrong) == {Wrong.MISSING}
    assert read(Coder(LEAVES, Coding(missing="9")), column) == ["17", *["9"] * (len(column) - 1)]
    banded = coding([0, 15, 30], "none", None, None)
    leaves = {"0-14": 0, "15-29": 1, "30+": 2, "none": 3}
    assert read(Coder(leaves, banded), column) == ["15-29", *["none"] * (len(column) - 1)]
    strict = Coder({"0-14": 0, "15-29": 1, "30+": 2}, coding([0, 15, 30], None, None, None))
    assert set(strict.encode(column).wrong) == {Wrong.MISSING}


def test_missing_dates_have_the_declared_code() -> None:
    leaves, found = {"0": 0, "9": 1}, coding(None, "9", ["1900-01-01"], "2021-05-09")
    days = [date(2020, 6, 1), None, date(1900, 1, 1)]
    for column in (
        pa.array(days),
        pa.array(days).cast(pa.timestamp("ms")),
        pa.array([None if d is None else str(d) for d in days]),
    ):
        assert read(Coder(leaves, found), column) == ["0", "9", "9"]


def test_columns_without_any_value() -> None:
    for column in (pa.nulls(3), pa.array([None] * 3, pa.int8()), pa.array([], pa.string())):
        assert read(Coder(LEAVES, Coding(missing="9")), column) == ["9"] * len(column)


def test_values_that_mean_missing() -> None:
    found = coding(None, "9", ["N", -9, "x y"], None)
    assert read(Coder(LEAVES, found), pa.array(["N", "-9", "-9.0", "x y", "1", " N "])) == [
        "9",
        "9",
        "9",
        "9",
        "1",
        "9",
    ]
    assert read(Coder(LEAVES, found), pa.array([-9.0, 1.0])) == ["9", "1"]
    banded = coding([0, 15], "?", ["N", -9], None)
    leaves = {"0-14": 0, "15+": 1, "?": 2}
    assert read(Coder(leaves, banded), pa.array(["N", "-9", "-9.0", "14.9"])) == ["?", "?", "?", "0-14"]
    assert read(Coder(leaves, banded), pa.array([-9, 14])) == ["?", "0-14"]
    assert read(Coder(leaves, banded), pa.array([-9.0, 15.0], pa.float32())) == ["?", "15+"]


NUMBERS = [pa.int16(), pa.int64(), pa.uint32(), pa.float32(), pa.float64(), pa.string(), pa.decimal128(12, 2)]


@given(
    st.lists(st.integers(0, 200), min_size=1, max_size=8, unique=True).map(sorted),
    st.lists(st.integers(0, 250), min_size=1, max_size=40),
    st.sampled_from(NUMBERS),
)
def test_a_number_is_in_the_last_band_that_begins_at_or_below_it(
    limits: list[int], values: list[int], kind: pa.DataType
) -> None:
    found = coding(limits, None, None, None)
    leaves = {code: leaf for leaf, code in enumerate(band_codes(found))}
    column = pa.array([str(value) for value in values]).cast(kind)
    expected = [max((k for k, limit in enumerate(limits) if limit <= value), default=-1) for value in values]
    coded = Coder(leaves, found).encode(column)
    below = {Wrong.BELOW} if min(expected) < 0 else set()
    assert set(coded.wrong) == below
    assert coded.codes.tolist() == [max(k, 0) for k in expected]


@given(
    st.lists(st.decimals(-50, 50, places=1), min_size=1, max_size=6, unique=True).map(sorted),
    st.lists(st.decimals(-60, 60, places=2), min_size=1, max_size=30),
)
def test_decimal_bands_are_exact_at_their_limits_in_every_type(limits: list[Any], values: list[Any]) -> None:
    found = coding([float(limit) for limit in limits], None, None, None)
    leaves = {code: leaf for leaf, code in enumerate(band_codes(found))}
    assert len(leaves) == len(limits)
    expected = [max((k for k, limit in enumerate(limits) if limit <= value), default=0) for value in values]
    commas = pa.array([str(value).replace(".", ",") for value in values])
    assert Coder(leaves, found, ",").encode(commas).codes.tolist() == expected
    for kind in (pa.float32(), pa.float64(), pa.decimal128(9, 2), pa.string()):
        column = pa.array([str(value) for value in values]).cast(kind)
        assert Coder(leaves, found).encode(column).codes.tolist() == expected


def test_an_open_first_band_takes_everything_below() -> None:
    found = coding([float("-inf"), 0, 1000], None, None, None)
    leaves = {code: leaf for leaf, code in enumerate(band_codes(found))}
    assert read(Coder(leaves, found), pa.array([-(10**15), -1, 0, 1000])) == ["<0", "<0", "0-999", "1000+"]


@pytest.mark.parametrize(
    "value", ["many", "1.234,5", "1,5", "0x10", "1_000", "inf", "nan", "1e999", "--1", "१२"]
)
def test_what_is_no_number_is_reported(value: str) -> None:
    leaves = {"0+": 0}
    assert Coder(leaves, coding([0], None, None, None)).encode(pa.array([value])).wrong == {
        Wrong.NO_NUMBER: {value}
    }
    infinite = Coder(leaves, coding([0], None, None, None)).encode(pa.array([float("inf")]))
    assert set(infinite.wrong) == {Wrong.NO_NUMBER}


def test_types_that_are_no_numbers_or_dates_are_refused() -> None:
    with pytest.raises(BadColumn, match="values of type bool"):
        Coder({"0+": 0}, coding([0], None, None, None)).encode(pa.array([True]))
    with pytest.raises(BadColumn, match="values of type double"):
        Coder({"0": 0}, coding(None, None, None, "2021-05-09")).encode(pa.array([1.5]))
    with pytest.raises(BadColumn, match="values of type list"):
        Coder({"0": 0}).encode(pa.array([[1]]))


days = st.dates(date(1880, 1, 1), date(2030, 12, 31))


def completed(born: date, day: date) -> int:
    """Count birthdays one by one; that of 29 February is 1 March where there is none."""
    years = -1
    while True:
        year = born.year + years + 1
        try:
            birthday = born.replace(year=year)
        except ValueError:
            birthday = date(year, 3, 1)
        if birthday > day:
            return years
        years += 1


@given(st.lists(days, min_size=1, max_size=20), days)
def test_ages_are_completed_years_in_every_type(born: list[date], day: date) -> None:
    expected = [completed(one, day) if one <= day else -1 for one in born]
    found = ages_on(day, np.array(born, dtype="datetime64[D]"))
    assert [int(age) if age >= 0 else -1 for age in found] == expected
    leaves = {str(age): age for age in range(160)}
    coder = Coder(leaves, coding(None, None, None, day))
    texts = [one.isoformat() for one in born]
    columns = [
        pa.array(born),
        pa.array(born, pa.date64()),
        pa.array([f"{text}T23:59:00" for text in texts]).cast(pa.timestamp("us")),
        pa.array(texts),
        pa.array(texts).dictionary_encode(),
        pa.array([f"{text} 12:30:00" for text in texts]),
        pa.array([int(text.replace("-", "")) for text in texts]),
        pa.array([f"{one.day}.{one.month}.{one.year}" for one in born]),
        pa.array([f"{one.day:02}/{one.month:02}/{one.year}" for one in born]),
    ]
    for column in columns:
        coded = coder.encode(column)
        assert coded.codes.tolist() == [max(age, 0) for age in expected]
        assert (Wrong.NOT_BORN in coded.wrong) == (-1 in expected)


def test_born_on_29_february() -> None:
    born = np.array(["2000-02-29"], dtype="datetime64[D]")
    for day, age in (("2020-02-28", 19), ("2020-02-29", 20), ("2021-02-28", 20), ("2021-03-01", 21)):
        assert ages_on(date.fromisoformat(day), born).tolist() == [age]


def test_a_day_is_that_of_the_place_of_the_timestamp() -> None:
    born = datetime(2000, 5, 9, 23, 30, tzinfo=UTC) - timedelta(hours=2)
    column = pa.array([born], pa.timestamp("s", "UTC")).cast(
        pa.timestamp("s", "Asia/Tokyo")
    )  # already 10 May there
    coder = Coder({str(age): age for age in range(30)}, coding(None, None, None, "2021-05-09"))
    assert coder.encode(column).codes.tolist() == [20]
    assert coder.encode(column.cast(pa.timestamp("s", "UTC"))).codes.tolist() == [21]


@pytest.mark.parametrize(
    "value",
    ["1974", "1974-13-01", "1974-02-30", "12/31/1974", "01/03.1974", "1974-0301", "0000-01-01", "old"],
)
def test_what_is_no_date_is_reported(value: str) -> None:
    coder = Coder({"0": 0}, coding(None, None, None, "2021-05-09"))
    assert coder.encode(pa.array([value])).wrong == {Wrong.NO_DATE: {value}}


def test_everything_wrong_in_a_column_is_found_at_once() -> None:
    coder = Coder({"0-14": 0, "15+": 1}, coding([0, 15], None, None, None))
    assert coder.encode(pa.array(["3", "", None, "N", "-4", "7.5"])).wrong == {
        Wrong.MISSING: {""},
        Wrong.NO_NUMBER: {"N"},
        Wrong.BELOW: {"-4"},
    }


def test_unused_entries_of_a_dictionary_are_not_reported() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0, 0]), pa.array(["17", "other", None]))
    assert not Coder(LEAVES).encode(column).wrong


def test_a_dictionary_that_changes_between_batches_is_judged_again() -> None:
    coder = Coder({"a": 0, "b": 1, "c": 2})
    first, again = (pa.array(["a", "b", "b"]).dictionary_encode() for _ in range(2))
    other = pa.array(["c", "b", "x"]).dictionary_encode()
    assert coder.encode(first).codes.tolist() == coder.encode(again).codes.tolist() == [0, 1, 1]
    found = coder.encode(other)
    assert found.codes.tolist()[:2] == [2, 1]
    assert found.wrong == {Wrong.UNKNOWN: {"x"}}
    assert coder.encode(first).codes.tolist() == [0, 1, 1]
    assert coder.encode(other).wrong == {Wrong.UNKNOWN: {"x"}}
