"""What columns are, judged by their facts: no file is read here."""

from __future__ import annotations

from datetime import date

import pytest

from discreet.errors import Mistakes
from discreet.programme.draft import programme_text
from discreet.programme.facts import ColumnFacts, GroupFacts, Kind, Numbers, TableFacts, kind_of_texts
from discreet.programme.inference import Inferred, Role, Stated, infer
from discreet.programme.proposal import propose

RECORDS = 10_000


def numbers(low: float, high: float, *, round_: float = 0.0, others: tuple[str, ...] = ()) -> Numbers:
    deciles = tuple(low + (high - low) * tenth / 10 for tenth in range(1, 10))
    return Numbers(low, high, deciles, round_, 0.0, (low + high) / 2, others=others)


def codes(
    name: str, values: list[str] | int, *, largest: float = 0.1, runs: int = 5000, missing: float = 0.0
) -> ColumnFacts:
    listed = [f"{name[:1]}{n:03d}" for n in range(values)] if isinstance(values, int) else values
    return ColumnFacts(
        name=name,
        kind=Kind.TEXT,
        values=tuple(listed),
        distinct=len(listed),
        largest=largest,
        runs=runs,
        missing=missing,
    )


def whole(
    name: str, values: range | list[int], *, largest: float = 0.02, missing: float = 0.0
) -> ColumnFacts:
    listed = tuple(map(str, values))
    return ColumnFacts(
        name=name, kind=Kind.WHOLE, values=listed, distinct=len(listed), largest=largest, runs=9000,
        missing=missing, numbers=numbers(min(values), max(values)),
    )  # fmt: skip


def decimal(name: str, low: float, high: float, round_: float = 0.0) -> ColumnFacts:
    return ColumnFacts(
        name=name,
        kind=Kind.DECIMAL,
        values=None,
        distinct=9000,
        repeated=0.2,
        numbers=numbers(low, high, round_=round_),
    )


def dates(first: date, last: date) -> ColumnFacts:
    return ColumnFacts(name="q", kind=Kind.DATE, values=None, distinct=3000, days=(first, last))


def unique(name: str) -> ColumnFacts:
    return ColumnFacts(
        name=name,
        kind=Kind.WHOLE,
        values=None,
        distinct=RECORDS,
        unique=True,
        repeated=0,
        numbers=numbers(1, RECORDS),
    )


def nested(coarse: ColumnFacts, fine: ColumnFacts) -> dict[tuple[str, str], dict[str, str]]:
    above, below = coarse.values or (), fine.values or ()
    return {
        (coarse.name, fine.name): {code: above[n * len(above) // len(below)] for n, code in enumerate(below)}
    }


def table(*columns: ColumnFacts, unit: str = "persons", **facts: object) -> TableFacts:
    return TableFacts(unit, f"{unit}.parquet", RECORDS, columns, **facts)  # type: ignore[arg-type]


def roles(found: Inferred, unit: str = "persons") -> dict[str, Role]:
    return {one.column: one.role for one in found.decisions if one.unit == unit}


PID, SEX = unique("x1"), whole("x9", [1, 2], largest=0.5)
STATE, COUNTY, TOWN = codes("c1", 4), codes("c2", 30), codes("c3", 240)
CHAIN = nested(STATE, COUNTY) | nested(COUNTY, TOWN) | nested(STATE, TOWN)


def test_columns_that_nest_and_predict_little_are_places_whatever_their_names() -> None:
    found = infer([table(PID, STATE, COUNTY, TOWN, SEX, within=CHAIN)])
    assert found.geography == ("c1", "c2", "c3")
    assert found.ids == {"persons": "x1"}
    assert roles(found)["x9"] is Role.CODES


@pytest.mark.parametrize(
    ("name", "found"), [("region", ("region",)), ("quarter", ()), ("region_of_birth", ())]
)
def test_one_column_of_few_areas_is_a_geography_where_it_is_named_so(
    name: str, found: tuple[str, ...]
) -> None:
    areas = codes(name, ["N", "S", "E", "W"], largest=0.3)
    judged = infer([table(unique("pid"), areas, codes("sex", ["1", "2"]))])
    assert judged.geography == found
    assert ("No column was taken for a place" in programme_text(propose(judged))) == (not found)


def test_a_nesting_classification_is_no_geography() -> None:
    """It predicts much about other columns, or differs among the members of a household."""
    predicts = {("c1", "x9"): 0.6}
    found = infer([table(PID, STATE, COUNTY, TOWN, SEX, within=CHAIN, predicts=predicts)])
    assert found.geography == ()
    household = ColumnFacts(name="x2", kind=Kind.TEXT, values=None, distinct=4000, repeated=0.9, runs=4000)
    group = GroupFacts(2.5, 6, frozenset({"r1", "r2"}))
    region, area = codes("r1", 5), codes("r2", 50, runs=50)
    within = CHAIN | nested(region, area)
    found = infer(
        [table(PID, household, region, area, STATE, COUNTY, TOWN, SEX, within=within, groups={"x2": group})]
    )
    assert found.geography == ("r1", "r2")
    assert found.ids == {"persons": "x1", "households": "x2"}


def test_codes_that_begin_with_the_code_above_are_levels_of_one_variable() -> None:
    major = codes("k1", [str(n) for n in range(1, 9)], largest=0.5)
    minor = codes("k2", [f"{n}{m}" for n in range(1, 9) for m in range(5)], largest=0.5)
    within = {("k1", "k2"): {code: code[0] for code in minor.values or ()}}
    found = infer([table(PID, major, minor, SEX, within=within, predicts={("k1", "x9"): 0.5})])
    assert found.geography == ()
    assert roles(found) == {"x1": Role.ID, "k1": Role.LEVEL, "k2": Role.CODES, "x9": Role.CODES}


def test_names_beside_codes_label_them() -> None:
    names = codes("c3_name", [f"Town number {n}" for n in range(240)])
    both = {(names.name, "c3"): dict(zip(TOWN.values or (), names.values or (), strict=True))}
    both |= {("c3", names.name): dict(zip(names.values or (), TOWN.values or (), strict=True))}
    within = CHAIN | both | {("c1", names.name): {}, ("c2", names.name): {}}
    found = infer([table(PID, STATE, COUNTY, TOWN, names, SEX, within=within)])
    assert found.geography == ("c1", "c2", "c3")
    assert roles(found)["c3_name"] is Role.LABELS


@pytest.mark.parametrize(
    ("column", "role"),
    [
        (whole("q", range(98)), Role.AGE),
        (whole("q", range(98), largest=0.4), Role.BANDS),  # hours of work are heaped at 40
        (whole("q", range(1900, 2021)), Role.BANDS),
        (whole("q", [1, 2, 3, -9]), Role.CODES),
        (whole("q", range(1111, 9111, 20)), Role.CODES),  # four digits each
        (whole("q", range(0, 400_000, 100)), Role.LEFT_OUT),
        (decimal("q", 0, 90_000), Role.LEFT_OUT),
        (decimal("q", 15, 45), Role.BANDS),
        (decimal("q", 0.5, 1.5), Role.LEFT_OUT),  # may be a weight
        (decimal("rent", 200, 1900), Role.LEFT_OUT),
        (decimal("pweight", 0.6, 3.1), Role.WEIGHT),
        (codes("q", 12, missing=0.002), Role.CODES),
        (codes("q", ["a", "_T"]), Role.LEFT_OUT),
        (dates(date(1920, 1, 1), date(2021, 1, 1)), Role.BIRTH),
        (dates(date(2011, 1, 1), date(2021, 1, 1)), Role.LEFT_OUT),
        (ColumnFacts(name="q", kind=Kind.TEXT, values=None, distinct=9000, repeated=0.1), Role.LEFT_OUT),
        (ColumnFacts(name="q", kind=Kind.OTHER, values=None, distinct=9000), Role.LEFT_OUT),
        (ColumnFacts(name="q", kind=Kind.TEXT, values=(), distinct=0, missing=1.0), Role.LEFT_OUT),
    ],
)  # fmt: skip
def test_single_columns(column: ColumnFacts, role: Role) -> None:
    found = infer([table(PID, SEX, column)])
    assert roles(found)[column.name] is role
    assert all(one.reason for one in found.decisions)


def test_ages_by_their_name_and_in_other_forms() -> None:
    few = whole("AGEP", [3, 40, 77])
    assert roles(infer([table(PID, SEX, few)]))["AGEP"] is Role.AGE
    lettered = codes("x", [f"Y{n}" for n in range(101)], largest=0.02)
    assert roles(infer([table(PID, SEX, lettered)]))["x"] is Role.AGE
    closed = codes("age", [*map(str, range(90)), "90+"], largest=0.02)
    assert roles(infer([table(PID, SEX, closed)]))["age"] is Role.AGE
    groups = whole("age_band", [1, 2, 8])
    assert roles(infer([table(PID, SEX, groups)]))["age_band"] is Role.CODES


def test_a_member_number_identifies_persons_within_households() -> None:
    home = ColumnFacts(name="s", kind=Kind.TEXT, values=None, distinct=4000, repeated=0.9, runs=4000)
    number = whole("o", range(1, 13), largest=0.4)
    group = GroupFacts(2.5, 6, frozenset(), ("o",))
    found = infer([table(home, number, SEX, groups={"s": group})])
    assert found.numbered == ("s", "o")
    assert found.ids == {"persons": None, "households": "s"}


def test_a_finest_place_is_no_household() -> None:
    """Its codes begin with those of the places above it."""
    area = codes("a", [f"2{n}" for n in range(50)])
    fine = ColumnFacts(
        name="f", kind=Kind.TEXT, values=tuple(f"2{n // 50}{n:04d}" for n in range(2500)), distinct=2500, runs=2500
    )  # fmt: skip
    within = {("a", "f"): {code: code[:2] if code[2:3] == "0" else code[:3] for code in fine.values or ()}}
    within["a", "f"] = {
        code: next(a for a in reversed(area.values or ()) if code.startswith(a)) for code in fine.values or ()
    }
    found = infer(
        [table(PID, area, fine, SEX, within=within, groups={"f": GroupFacts(4.0, 9, frozenset({"a"}))})]
    )
    assert "households" not in found.ids
    assert found.geography == ("a", "f")


def test_replicates_of_a_weight_are_left_out() -> None:
    found = infer([table(PID, SEX, decimal("wgt", 1, 9), decimal("wgt1", 1, 9), decimal("wgt2", 1, 9))])
    assert found.weight == "wgt"
    assert [one.column for one in found.decisions if one.role is Role.LEFT_OUT] == ["wgt1", "wgt2"]


def test_a_key_of_another_table_is_left_out() -> None:
    seed = whole("seed", range(1, 3001))
    others = [codes(f"v{n}", 5, largest=0.4) for n in range(6)]
    within: dict[tuple[str, str], dict[str, str]] = {(one.name, "seed"): {} for one in others}
    found = infer([table(PID, seed, *others, SEX, within=within)])
    assert roles(found)["seed"] is Role.LEFT_OUT
    assert found.geography == ()


def test_units_never_share_an_id() -> None:
    own = unique("id")
    tables = [table(own, SEX, unit=unit) for unit in ("persons", "households", "dwellings")]
    assert list(infer(tables).ids.values()).count("id") == 1


def test_a_table_of_counts() -> None:
    count = whole("q", [*range(30), 400])
    cells = table(STATE, COUNTY, SEX, count, within=nested(STATE, COUNTY), counted=("q",))
    found = infer([cells])
    assert found.counts is None  # evenly spread numbers prove nothing
    called = whole("n", range(30))
    found = infer([table(STATE, COUNTY, SEX, called, within=nested(STATE, COUNTY), counted=("n",))])
    assert found.counts == "n"
    assert found.ids == {}


def test_what_is_stated_overrides() -> None:
    area = codes("other", 60)
    stated = Stated(geography=("other",), person_id="x1", household_id="h", age="q", weight="w")
    home = codes("h", 500)
    ages = whole("q", range(98), largest=0.4)
    found = infer(
        [table(PID, home, area, STATE, COUNTY, TOWN, ages, decimal("w", 5, 45), within=CHAIN)], stated
    )
    assert found.geography == ("other",)
    assert found.ids == {"persons": "x1", "households": "h"}
    assert found.weight == "w"
    assert roles(found)["q"] is Role.AGE


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        (Stated(age="agee"), r"--age: unknown column 'agee'; the columns are x1, c1, c3, x9"),
        (Stated(geography=("c3", "c1")), r"--geography: 'c1' does not lie within 'c3'"),
        (Stated(age="c3"), r"--age: 'c3' has other values"),
    ],
)
def test_what_is_stated_wrongly_is_a_mistake(stated: Stated, message: str) -> None:
    with pytest.raises(Mistakes, match=message):
        infer([table(PID, STATE, TOWN, SEX, within=nested(STATE, TOWN))], stated)


def test_kinds_of_text() -> None:
    assert kind_of_texts(["17.0", "3", "4,0"]) is Kind.WHOLE
    assert kind_of_texts(["17.5", "3"]) is Kind.DECIMAL
    assert kind_of_texts(["2020-01-31", "1974-03-01"]) is Kind.DATE
    assert kind_of_texts(["31.1.2020"]) is Kind.DATE
    assert kind_of_texts([*map(str, range(40)), "N"]) is Kind.WHOLE
    assert kind_of_texts(["1", "2", "N"]) is Kind.TEXT
    assert kind_of_texts(["1.1.2", "3"]) is Kind.TEXT
