"""Codes that follow from the columns of records."""

from typing import Any

import pyarrow as pa
import pytest

from discreet.errors import Mistakes
from discreet.io.memory import open_memory
from discreet.population.codes import column_values, flat_codes, nested_codes, with_missing
from discreet.programme.codelist import Code
from discreet.programme.sources import MemorySource


def opened(**columns: Any) -> Any:
    return open_memory(MemorySource("persons", pa.table(columns)))


@pytest.mark.parametrize(
    ("values", "codes", "has_gaps"),
    [
        (["b", "a", "b"], ("a", "b"), False),
        (["b", " a ", None, "b"], ("a", "b"), True),
        (["b", "  ", "a"], ("a", "b"), True),
        ([10, 9, 2], ("2", "9", "10"), False),
        ([2.0, 1.0, float("nan")], ("1", "2"), True),
        ([True, False], ("false", "true"), False),
        (pa.DictionaryArray.from_arrays([1, 0], ["low", "high"], ordered=True), ("low", "high"), False),
        (pa.DictionaryArray.from_arrays([1, 1], ["low", "high"]), ("high", "low"), False),
        (
            pa.DictionaryArray.from_arrays(pa.array([1, None]), ["low", "high"], ordered=True),
            ("low", "high"),
            True,
        ),
        (pa.DictionaryArray.from_arrays(pa.array([1, 0]), ["", "high"]), ("high",), True),
        (pa.DictionaryArray.from_arrays(pa.array([1, 1]), ["", "high"]), ("high",), False),
    ],
)
def test_values_become_codes_in_the_order_of_a_codelist(
    values: Any, codes: tuple[str, ...], has_gaps: bool
) -> None:
    found = column_values(opened(x=values), ["x"])["x"]
    assert found.codes == codes
    assert found.has_gaps is has_gaps


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([1.5, 2.0], "decimal numbers, which are no codes; band it: bands('x', 0, 10, 20)"),
        (list(range(2000)), "more than 1,000 distinct values"),
        (pa.array([1, 2], pa.date32()), "values of type date32"),
    ],
)
def test_columns_that_have_no_codes_are_refused(values: Any, said: str) -> None:
    with pytest.raises(Mistakes) as refused:
        column_values(opened(x=values), ["x"])
    assert said in str(refused.value)


def test_columns_that_nest_are_a_tree() -> None:
    rows, has_gaps = nested_codes([opened(big=["B", "A", "B"], small=["b1", "a1", "b2"])], ["big", "small"])
    assert not has_gaps
    assert rows == [
        Code("A", "", "A"), Code("B", "", "B"), Code("a1", "A", "a1"), Code("b1", "B", "b1"), Code("b2", "B", "b2")
    ]  # fmt: skip


def test_a_code_below_two_others_is_refused() -> None:
    with pytest.raises(
        Mistakes, match=r"small 'x' is in big '[AB]' and in another; name the columns coarse to fine, or"
    ):
        nested_codes([opened(big=["B", "A"], small=["x", "x"])], ["big", "small"])
    with pytest.raises(Mistakes, match="is in big"):  # also in another table
        nested_codes([opened(big=["B"], small=["x"]), opened(big=["A"], small=["x"])], ["big", "small"])


def test_a_code_of_two_levels_is_refused() -> None:
    with pytest.raises(Mistakes, match="code '1' is also in big; write the codes of the levels differently"):
        nested_codes([opened(big=["1"], small=["1"])], ["big", "small"])


def test_missing_values_have_a_code_of_their_own() -> None:
    values = column_values(opened(x=["a", None]), ["x"]).values()
    assert [row.code for row in flat_codes(values, "unknown")] == ["a", "unknown"]
    assert with_missing([Code("a", "", "a")], "a") == [Code("a", "", "a")]
