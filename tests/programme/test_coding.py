"""Declared missing values, bands and reference days: what they make, their mistakes, and that they identify."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import Mistakes
from discreet.programme import eu2021
from discreet.programme.amounts import AmountsSeen, is_named_amount
from discreet.programme.codelist import codelist
from discreet.programme.coding import Coding, band_codes, coding, made_codes, with_bands_of
from discreet.programme.programme import Programme, load_programme
from discreet.programme.statistic import statistics

AGES = "code,parent,label\nyoung,,Young\n0-14,young,\n15-29,young,\n30+,,\n"

Load = Callable[..., Programme]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Load a programme with one variable, AGE, and a cube by it."""

    def of(
        declared: str, codelist: str | None = None, source: str = '"persons.csv"', more: str = ""
    ) -> Programme:
        (tmp_path / "persons.csv").write_text("pid,age\n1,3\n")
        if codelist is not None:
            (tmp_path / "age.csv").write_text(codelist)
            declared += '\ncodelist = "age.csv"'
        path = tmp_path / "programme.toml"
        path.write_text(
            f'[population]\npersons = {source}\nperson_id = "pid"\n{more}\n[variables.AGE]\n{declared}\n'
            '[[cubes]]\nid = "c"\naxes = ["AGE"]\n[noise]\nkind = "cell-key"\nV = 2.0\nD = 5\n'
        )
        return load_programme(path)

    return of


def said(load: Load, *given: str) -> str:
    with pytest.raises(Mistakes) as caught:
        load(*given)
    return str(caught.value)


@pytest.mark.parametrize(
    ("bands", "codes", "labels"),
    [
        (
            [0, 15, 30, 65],
            ["0-14", "15-29", "30-64", "65+"],
            ["0 to 14", "15 to 29", "30 to 64", "65 and over"],
        ),
        ([0, 1, 5], ["0", "1-4", "5+"], ["0", "1 to 4", "5 and over"]),
        ([float("-inf"), 0, 10], ["<0", "0-9", "10+"], ["below 0", "0 to 9", "10 and over"]),
        (
            [0.0, 18.5, 25],
            ["0-18.5", "18.5-25", "25+"],
            ["0 to less than 18.5", "18.5 to less than 25", "25 and over"],
        ),
        ([-10, 0], ["-10--1", "0+"], ["-10 to -1", "0 and over"]),
    ],
)
def test_bands_have_clear_codes_and_labels(bands: list[float], codes: list[str], labels: list[str]) -> None:
    rows = made_codes(coding(bands, None, None, None))
    assert [row.code for row in rows] == codes
    assert [row.label for row in rows] == labels


limits = st.lists(
    st.one_of(st.integers(-(10**6), 10**6), st.floats(-1e6, 1e6, allow_nan=False)), min_size=1, max_size=12
)


@given(limits, limits)
def test_other_bands_have_other_codes_and_another_identity(one: list[float], two: list[float]) -> None:
    first, second = (coding(sorted(set(bands)), None, None, None) for bands in (one, two))
    codes = band_codes(first)
    assert len(set(codes)) == len(codes) == len(first.bands)
    if first.bands != second.bands:
        assert codes != band_codes(second)
        assert first.canonical() != second.canonical()


def test_the_codelist_is_made_or_completed(load: Load) -> None:
    made = load('bands = [0, 15, 30]\nmissing = "?"').variables["AGE"].codelist
    assert made.codes == ("0-14", "15-29", "30+", "?")
    assert made.labels[-1] == "Not stated"
    found = load("bands = [0, 15, 30]", AGES).variables["AGE"]
    assert found.codelist.leaf_codes == ("0-14", "15-29", "30+")
    assert found.codelist.labels[0] == "Young"
    dated = load(
        'reference_day = 2021-05-09\nbands = [0, 15, 30]\nmissing_values = ["N", -9]\nmissing = "30+"', AGES
    )
    coded = dated.variables["AGE"].coding
    assert str(coded.reference_day) == "2021-05-09"
    assert coded.missing_values == ("N", "-9")


@pytest.mark.parametrize(
    ("declared", "codelist", "expected"),
    [
        ("bands = [15, 0]", None, "variables.AGE.bands: limits that do not rise"),
        ("bands = [0, 0]", None, "limits that do not rise"),
        ("bands = [0, inf]", None, "a limit that is no number"),
        ("bands = [nan]", None, "a limit that is no number"),
        ("bands = [-inf]", None, "one band of all numbers"),
        ("bands = [0, 1e300]", None, "a limit beyond 2^53"),
        ("bands = []", None, "variables.AGE.bands: is empty"),
        ('bands = "codelists"', AGES, "variables.AGE.bands"),
        ('bands = ["0"]', None, "variables.AGE.bands"),
        ("bands = [0, 15]", AGES, "the codelist lacks the bands 15+"),
        ("bands = [0, 15, 30]", AGES + "old,,\n", "the codelist has the leaf 'old', which is no band"),
        ('missing = "9"', AGES, "variables.AGE.missing: code '9' is not in the codelist"),
        ('missing = "young"', AGES, "code 'young' is not a leaf"),
        ('missing = "_T"', AGES, "that is the total"),
        ('missing_values = ["N"]', AGES, "variables.AGE.missing_values: given without missing"),
        ('reference_day = "9.5.2021"', AGES, 'write a day as "2021-05-09"'),
        ('reference_day = "2021-02-30"', AGES, 'write a day as "2021-05-09"'),
        ("reference_day = 2021-05-09T12:00:00", AGES, "reference_day"),
        ('reference_day = "2021-05-09"', None, "or bands of numbers"),
    ],
)
def test_wrong_declarations_are_named(load: Load, declared: str, codelist: str | None, expected: str) -> None:
    assert expected in said(load, declared, *([codelist] if codelist else []))


@pytest.mark.parametrize(
    ("leaves", "limits"),
    [
        (["Y_LT15", "Y15-29", "Y30T64", "Y_GE65"], [0, 15, 30, 65]),
        (["0", "1-4", "5+"], [0, 1, 5]),
        (["65+", "0-64"], [0, 65]),
        (["Y0", "Y1", "Y_GE2", "?"], [0, 1, 2]),
    ],
)
def test_the_leaves_of_a_codelist_name_the_bands(load: Load, leaves: list[str], limits: list[float]) -> None:
    listed = "code\n" + "".join(f"{code}\n" for code in leaves)
    missing = '\nmissing = "?"' if "?" in leaves else ""
    found = load(f'bands = "codelist"{missing}', listed).variables["AGE"].coding
    assert found.bands == tuple(limits)
    assert set(found.names) == set(leaves) - {"?"}
    assert identity(load(f'bands = "codelist"{missing}', listed)) != identity(load(missing, listed))


@pytest.mark.parametrize(
    ("leaves", "expected"),
    [
        (["0-14", "16+"], "leaves '0-14' and '16+' overlap or leave a gap"),
        (["0-14", "14+"], "overlap or leave a gap"),
        (["0-14", "15-29"], "the last leaf '15-29' is not open"),
        (["young", "15+"], "leaf 'young' names no band"),
        (["15-14", "15+"], "leaf '15-14' names no band"),
    ],
)
def test_leaves_that_are_no_bands_are_named(load: Load, leaves: list[str], expected: str) -> None:
    assert expected in said(load, 'bands = "codelist"', "code\n" + "".join(f"{code}\n" for code in leaves))


def test_ages_of_the_built_in_programme_follow_from_dates_of_birth() -> None:
    tree = codelist("AGE", eu2021.codelist_rows("AGE"))
    found = with_bands_of(coding("codelist", None, None, "2021-05-09"), tree)
    assert found.bands == tuple(range(101))
    assert (found.names[0], found.names[17], found.names[-1]) == ("Y0", "Y17", "Y_GE100")


def identity(programme: Programme) -> str:
    cube = programme.cubes[0]
    return statistics(programme).identity(cube, cube.signature((1,)))


def test_every_coding_is_another_statistic(load: Load) -> None:
    """The codelist and the column are the same throughout: only what its values mean differs."""
    flat = "code,parent,label\n0-14,,\n15-29,,\n30+,,\n?,,\n"
    csv = '{ file = "persons.csv", encoding = "latin-1" }'
    found = [
        identity(load("", flat)),
        identity(load('missing = "?"', flat)),
        identity(load('missing = "30+"', flat)),
        identity(load('missing = "?"\nmissing_values = ["-9"]', flat)),
        identity(load('missing = "?"\nbands = [0, 15, 30]', flat)),
        identity(load('missing = "?"\nbands = [0, 15, 30]\nreference_day = "2021-05-09"', flat)),
        identity(load('missing = "?"\nbands = [0, 15, 30]\nreference_day = "2021-05-10"', flat)),
        identity(load('reference_day = "2021-05-10"', flat)),
        identity(load("", flat, csv)),
        identity(load("", flat, '{ file = "persons.csv", decimal = "," }')),
    ]
    assert len(set(found)) == len(found)
    assert identity(load('label = "Age"', flat)) == found[0]
    assert identity(load("", flat, '{ file = "persons.csv" }')) == found[0]


def test_parameters_have_the_coding(load: Load) -> None:
    flat = "code,parent,label\n0,,\n?,,\n"
    assert load("", flat).canonical() != load('missing = "?"', flat).canonical()
    assert Coding().is_plain


NAMED = [
    "income",
    "INCOME_2020",
    "hhIncome",
    "PINCP",
    "WAGP",
    "wages",
    "netWage",
    "turnover",
    "floor_area",
    "rent",
    "Umsatz",
]
OTHERS = [
    "weight",
    "pweight",
    "PWGTP",
    "income_weight",
    "w",
    "factor",
    "sex",
    "area_weight",
    "grossing",
    "pid",
    "wager",
]


def test_amounts_are_known_by_their_names() -> None:
    assert [name for name in NAMED if not is_named_amount(name)] == []
    assert [name for name in OTHERS if is_named_amount(name)] == []


def test_a_weight_that_is_named_like_an_amount_is_refused_until_it_is_stated(load: Load) -> None:
    declared = 'bands = [0, 15, 30]\n[[cubes]]\nid = "w"\nweight = "income"\naxes = ["AGE"]'
    text = said(load, declared)
    assert "cubes[0].weight: column 'income' is named like an amount" in text
    assert "population.weights" in text
    assert load(declared, None, '"persons.csv"', 'weights = ["income"]').cubes[0].weight == "income"


@pytest.mark.parametrize(
    ("values", "amounts"),
    [
        ([100.0] * 50, False),  # a simple random sample of 1 %
        ([100.0, 250.0, 400.0, 37.5] * 20, False),
        ([float(1 + k % 7) for k in range(100)], False),
        ([0.0] * 90 + [812.3 + k for k in range(10)], False),
        ([900.0 + 100 * k for k in range(30)], True),
        ([23_456.7 + k for k in range(30)], True),
        ([], False),
    ],
)
def test_amounts_are_known_by_their_values(values: list[float], amounts: bool) -> None:
    seen = AmountsSeen()
    seen.add(np.array(values[:20]))
    seen.add(np.array(values[20:]))
    assert seen.look_like_amounts is amounts
