"""Questions that try to get round the rules and the books: by groups, filters below the breakdowns, other names."""

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from discreet.errors import Mistakes
from discreet.io.register import Register
from discreet.perturb.ledger import Ledger
from discreet.programme.codelist import Code, codelist
from discreet.programme.filter import parse_filter
from discreet.programme.programme import Programme
from discreet.programme.serve import HistoryRule, ServeRule, SparsityRule
from discreet.serve.answer import Answer, Refusal, Rule
from discreet.serve.budget import account_of
from discreet.serve.jobs_store import Store
from discreet.serve.open import TableBuilder, serve_programme
from discreet.serve.query import Axis, Group, Query
from discreet.serve.question import grouped, resolve
from tests.serve.conftest import NOON, SECRET, cells, query
from tests.serve.test_budget import GEOMETRIC, declared

Make = Callable[..., TableBuilder]


def refused(found: Answer | Refusal) -> Refusal:
    assert isinstance(found, Refusal), found
    return found


def groups(variable: str, **codes: str | tuple[str, ...]) -> Axis:
    held = (Group(name, (one,) if isinstance(one, str) else one) for name, one in codes.items())
    return Axis(variable, (), tuple(held))


def smallest_area(builder: TableBuilder) -> tuple[str, int]:
    areas = {geo: value for (geo,), value in cells(builder.ask(query("GEO.H"), "u")).items()}
    return min(areas.items(), key=lambda pair: pair[1])


def test_a_group_of_areas_is_an_area_and_is_judged_alone(ruled: Make, builder: TableBuilder) -> None:
    small, people = smallest_area(builder)
    leaves = builder.catalogue.variables["GEO"].codelist.leaf_codes
    rest = tuple(code for code in leaves if code != small)
    guarded = ruled(place="GEO", area_population=people + 1, blocked=1.0, groupings=("GEO",))
    pair = groups("GEO", alone=small, rest=rest)
    answer = guarded.ask(Query("persons", (pair, Axis("SEX"))), "u")
    assert isinstance(answer, Answer)
    assert [area.code for area in answer.blocked] == ["alone"]
    assert not any(codes[0] == "alone" for codes in cells(answer))
    assert guarded.preview(Query("persons", (pair,)), "u").blocked == answer.blocked


def test_areas_are_not_grouped_and_filtered_at_once(ruled: Make, builder: TableBuilder) -> None:
    small, people = smallest_area(builder)
    region = builder.catalogue.variables["GEO"].breakdowns["GEO.L"].codes[1]
    guarded = ruled(place="GEO", area_population=people + 1, blocked=1.0, groupings=("GEO",))
    asked = Query("persons", (groups("GEO", all=region), Axis("SEX")), f'GEO == "{small}"')
    assert refused(guarded.ask(asked, "u")).rule is Rule.GROUPINGS


def test_a_table_that_is_too_sparse_is_not_had_group_by_group(ruled: Make) -> None:
    guarded = ruled(sparsity=SparsityRule(), groupings=("AGE",))
    leaves = guarded.catalogue.variables["AGE"].codelist.leaf_codes
    assert refused(guarded.ask(query("AGE.H", "CAS.H", "EDU"), "u")).rule is Rule.SPARSITY
    assert refused(guarded.ask(query("CAS.H", "EDU", where=f'AGE == "{leaves[85]}"'), "u"))
    for few in (leaves[85:86], leaves[85:87]):
        rest = [code for code in leaves if code not in few]
        dense = {f"g{place}": tuple(rest[place::6]) for place in range(6)}
        asked = Query("persons", (groups("AGE", few=few, **dense), Axis("CAS.H"), Axis("EDU")))
        assert refused(guarded.ask(asked, "u")).rule is Rule.SPARSITY


def test_groups_that_only_add_up_an_allowed_table_are_allowed(ruled: Make) -> None:
    guarded = ruled(sparsity=SparsityRule(0.2, 0.4), attribute=0.5, groupings=("AGE",))
    ages = guarded.catalogue.variables["AGE"].breakdowns["AGE.L"].codes[1:]
    assert isinstance(guarded.ask(query("AGE.L", "SEX"), "u"), Answer)
    halves = groups("AGE", young=tuple(ages[:3]), old=tuple(ages[3:]))
    assert isinstance(guarded.ask(Query("persons", (halves, Axis("SEX"))), "u"), Answer)
    same = groups("AGE", **{f"g{place}": code for place, code in enumerate(ages)})
    assert isinstance(guarded.ask(Query("persons", (same, Axis("SEX"))), "u"), Answer)


def test_a_forbidden_breakdown_is_not_had_as_groups_nor_inside_a_finer_one(ruled: Make) -> None:
    guarded = ruled(forbidden=(("AGE.M", "LMS"),), groupings=("AGE",))
    ages = guarded.catalogue.variables["AGE"].breakdowns["AGE.M"]
    five = [code for code, finest in zip(ages.codes, ages.finest, strict=True) if finest]
    same = groups("AGE", a=five[4], b=five[5])
    for axes in ((Axis("AGE.M"),), (Axis("AGE.H"),), (Axis("AGE.H", ("_T", five[4])),), (same,)):
        found = refused(guarded.ask(Query("persons", (*axes, Axis("LMS.L"))), "u"))
        assert found.rule is Rule.FORBIDDEN
    assert refused(guarded.ask(query("LMS.L", where=f'AGE == "{five[4]}"'), "u")).rule is Rule.FORBIDDEN
    coarse = groups("AGE", a="Y_LT15", b="Y15-29")
    assert isinstance(guarded.ask(Query("persons", (coarse, Axis("LMS.L"))), "u"), Answer)


def without(programme: Programme, variable: str, *names: str) -> Programme:
    """A programme with fewer breakdowns of a variable; its records and codelist stay."""
    one = programme.variables[variable]
    kept = {name: axis for name, axis in one.breakdowns.items() if name not in names}
    return replace(
        programme, cubes=(), variables={**programme.variables, variable: replace(one, breakdowns=kept)}
    )


def test_a_filter_finer_than_every_breakdown_is_judged_by_all_codes(
    programme: Programme, store: Store, builder: TableBuilder
) -> None:
    small, people = smallest_area(builder)
    rule = ServeRule(place="GEO", area_population=people + 1, blocked=1.0)
    coarse = replace(without(programme, "GEO", "M", "H"), serve=rule)
    guarded = serve_programme(coarse, SECRET, store)
    assert "GEO.H" not in guarded.catalogue.variables["GEO"].breakdowns
    found = refused(guarded.ask(query("SEX", where=f'GEO == "{small}"'), "u"))
    assert found.rule is Rule.AREA_POPULATION


def test_the_judged_axis_tells_the_filter_and_holds_the_axis(builder: TableBuilder) -> None:
    """Cuts of a codelist need not lie inside each other: the judged axis must hold all codes of the axis asked for."""
    declared = filtered = 0
    refused_codes: set[tuple[str, str]] = set()
    for name, variable in builder.catalogue.variables.items():
        for axis in variable.breakdowns.values():
            for code in variable.codelist.codes[::7]:
                unit = variable.units[0]
                try:
                    found = resolve(
                        Query(unit, (Axis(axis.full_name),), f'{name} == "{code}"'), builder.catalogue
                    )
                except Mistakes:
                    refused_codes.add((name, code))
                    continue
                judged = next(one for one in found.judged.axes if one.variable == name)
                assert judged.position.keys() >= axis.position.keys()
                assert found.is_declared or code in judged.position
                declared += found.is_declared
                filtered += not found.is_declared
    everybody = {(name, one.codelist.codes[0]) for name, one in builder.catalogue.variables.items()}
    assert refused_codes <= everybody  # a code of everybody is no filter
    assert filtered > 100
    assert declared < filtered


def test_a_history_is_not_divided_among_filters(ruled: Make) -> None:
    """Every table by SEX tells of men, whether SEX is an axis or a filter: half of them each way is as much."""
    builder = ruled(history=HistoryRule(success=0.5), axes=6)
    names = ("AGE.L", "EDU", "CAS.L", "LMS.L", "HAR", "LOC", "OCC", "SIE")
    by_axis = [builder.ask(query("SEX", name, "GEO.L"), "ann") for name in names]
    by_both = [
        builder.ask(
            query("SEX", name, "GEO.L") if turn % 2 else query(name, "GEO.L", where='SEX == "1"'), "bob"
        )
        for turn, name in enumerate(names)
    ]
    answered = [sum(isinstance(one, Answer) for one in some) for some in (by_axis, by_both)]
    assert 0 < answered[1] <= answered[0] < len(names)


def test_the_name_of_a_grouping_cannot_be_met_by_chance(builder: TableBuilder) -> None:
    """Whoever finds two groupings of one name gets the second with the first one's noise, and free of charge."""
    variable = builder.catalogue.variables["AGE"]
    axis, problems = grouped(variable, groups("AGE", a=variable.codelist.leaf_codes[0]), "axes[0]")
    assert not problems
    assert axis is not None
    digest = axis.full_name.partition("~")[2]
    assert len(bytes.fromhex(digest)) >= 32, "two of 2^128 tries"


@pytest.mark.parametrize(
    "asked",
    [
        Query("persons", (Axis("GEO.H", tuple(f"x{n}" for n in range(20_000))),)),
        Query("persons", (groups("AGE", a=tuple(f"x{n}" for n in range(20_000))),)),
        Query("persons", (), f"GEO in ({', '.join(repr(f'x{n}') for n in range(2_000))})"),
    ],
    ids=["codes", "groups", "filter"],
)
def test_many_mistakes_cost_no_more_than_a_few(builder: TableBuilder, asked: Query) -> None:
    """Each unknown code is compared with those that exist, which takes long: of many, few are told."""
    with pytest.raises(Mistakes) as found:
        builder.canonical(asked)
    assert len(found.value.problems) <= 20


def test_no_value_of_a_blocked_area_is_left_in_an_answer(ruled: Make, builder: TableBuilder) -> None:
    _, people = smallest_area(builder)
    guarded = ruled(place="GEO", area_population=people * 4, blocked=1.0)
    answer = guarded.ask(query("GEO.H", "SEX", "AGE.L"), "u")
    assert isinstance(answer, Answer)
    assert answer.withheld.any()
    assert not answer.values[answer.withheld].any()
    assert all(answer.noise_range(int(cell)) is None for cell in np.flatnonzero(answer.withheld)[:20])


def nested(levels: int) -> str:
    """A filter that nests and cannot be written flatter."""
    text = 'SEX == "1"'
    for level in range(levels):
        text = f'EDU == "{level % 3 + 1}" {"or" if level % 2 else "and"} ({text})'
    return text


def test_a_filter_that_nests_too_deep_to_be_compared_is_not_let_through(ruled: Make) -> None:
    builder = ruled(history=HistoryRule(difference=40))
    small, people = smallest_area(builder)
    assert people < 40
    deepest = 0
    for levels in range(30, 45):
        deep = nested(levels)
        without = query("SEX", where=f'({deep}) and GEO != "{small}"')
        try:
            builder.canonical(without)
        except Mistakes:
            break
        deepest = levels
        assert isinstance(builder.ask(query("SEX", where=deep), f"u{levels}"), Answer)
        found = refused(builder.ask(without, f"u{levels}"))
        assert found.rule is Rule.DIFFERENCE
    assert deepest > 30


def test_a_long_filter_over_many_codes_is_read_by_looking_them_up() -> None:
    """The 1,700 further codes cost some calls of functions each, not some for each of the 400 comparisons."""
    few, many = (calls_of_reading(areas) for areas in (300, 2_000))
    assert many - few < 50 * 1_700


def calls_of_reading(areas: int) -> int:
    codes = [Code(f"R{number}", "", "") for number in range(100)]
    codes += [Code(f"a{number}", f"R{number % 100}", "") for number in range(areas)]
    trees = {"GEO": codelist("GEO", codes), "SEX": codelist("SEX", [Code("1", "", ""), Code("2", "", "")])}
    text = " or ".join(f'(GEO == "a{n}" and SEX == "1")' for n in range(200))
    parse_filter(text, trees)  # what a tree knows once is not counted
    calls: Counter[str] = Counter()
    sys.setprofile(lambda frame, event, argument: calls.update([event]))
    try:
        found = parse_filter(text, trees)
    finally:
        sys.setprofile(None)
    assert found.variables == ("GEO", "SEX")
    return calls["call"] + calls["c_call"]


def test_the_noise_of_a_group_outlives_the_server_and_knows_no_names(
    census: Path, tmp_path: Path, store: Store
) -> None:
    """Noise that is paid for once must not be drawn anew under another name, in another order, after a restart."""
    serve = 'groupings = ["AGE"]\naccount = { each = 1, user = 100 }'
    programme = declared(census, tmp_path / "c", GEOMETRIC, serve)
    ledger = Ledger.create(tmp_path / "ledger.sqlite", lambda: NOON)
    register = Register.of(tmp_path / "register", SECRET)
    young, middle = ("Y_LT15",), ("Y15-29", "Y30-49")
    asked = (
        Query("persons", (groups("AGE", a=young, b=middle), Axis("SEX"))),
        Query("persons", (Axis("SEX"), groups("AGE", y=tuple(reversed(middle)), z=young))),
    )
    first, second = (
        cells(serve_programme(programme, SECRET, store, ledger=ledger, register=register).ask(one, "ann"))
        for one in asked
    )
    names = {"_T": "_T", "a": "z", "b": "y"}
    assert second == {(sex, names[age]): value for (age, sex), value in first.items()}
    assert len(ledger.entries(account_of("ann"))) == 1
