"""The same cell has the same value: from records on the fly, from a release, and as it was published."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.release.reader import Release
from discreet.serve.jobs_store import Store
from discreet.serve.open import TableBuilder, serve_release
from discreet.serve.query import Axis, Group, Query
from tests.serve.conftest import cells, published, query

QUICK = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(data=st.data())
@QUICK
def test_any_part_of_a_released_cube_is_answered_with_its_values(
    builder: TableBuilder, release: Release, store: Store, data: st.DataObject
) -> None:
    over_release = serve_release(release, store)
    table = data.draw(st.sampled_from(builder.catalogue.tables))
    kept = data.draw(st.lists(st.sampled_from(table.axes), unique=True, max_size=3))
    axes = []
    for name in kept:
        variable = builder.catalogue.variables[name.partition(".")[0]]
        finest = variable.breakdowns[name]
        coarser = [n for n, b in variable.breakdowns.items() if set(b.codes) <= set(finest.codes)]
        axes.append(data.draw(st.sampled_from(coarser)))
    asked = query(*axes, where=table.base, count=table.count, unit=table.unit)
    found = cells(builder.ask(asked, "somebody", job=True))
    if all(
        over_release.catalogue.breakdown(axis) for axis in axes
    ):  # a release has published breakdowns alone
        assert cells(over_release.ask(asked, "somebody", job=True)) == found
    listed = published(release, table.id)
    places = [kept.index(axis) if axis in kept else None for axis in table.axes]
    for codes, value in found.items():
        whole = tuple("_T" if place is None else codes[place] for place in places)
        assert listed.get(whole, 0) == value


def test_a_filter_a_picked_code_and_a_group_show_the_cells_of_the_whole_table(builder: TableBuilder) -> None:
    whole = cells(builder.ask(query("SEX", "AGE.L", "GEO.M"), "u"))
    picked = Query("persons", (Axis("AGE.L", ("Y15-29", "_T")), Axis("SEX", ("1",))))
    found = cells(builder.ask(picked, "u"))
    assert found == {(age, sex): whole[sex, age, "_T"] for age, sex in found}
    assert set(found) == {("_T", "1"), ("Y15-29", "1")}
    filtered = cells(builder.ask(query("AGE.L", "GEO.M", where='SEX == "1"'), "u"))
    assert filtered == {(age, geo): whole["1", age, geo] for age, geo in filtered}
    ages = builder.catalogue.variables["AGE"].breakdowns["AGE.L"].codes[1:]
    groups = (Group("rest", tuple(ages[1:])), Group("young", (ages[0],)))
    grouped = cells(builder.ask(Query("persons", (Axis("AGE", (), groups), Axis("SEX"))), "u"))
    assert list(grouped)[:1] == [("_T", "_T")]
    assert [codes[0] for codes in list(grouped)[3::3]] == ["rest", "young"]
    assert all(grouped["young", sex] == whole[sex, ages[0], "_T"] for sex in ("_T", "1", "2"))
    assert all(grouped["_T", sex] == whole[sex, "_T", "_T"] for sex in ("_T", "1", "2"))


def test_groups_of_all_codes_of_a_level_are_that_level(builder: TableBuilder) -> None:
    ages = builder.catalogue.variables["AGE"].breakdowns["AGE.L"].codes[1:]
    groups = tuple(Group(f"group {code}", (code,)) for code in reversed(ages))
    grouped = cells(builder.ask(Query("persons", (Axis("AGE", (), groups), Axis("EDU"))), "u"))
    plain = cells(builder.ask(query("AGE.L", "EDU"), "u"))
    assert {(age.removeprefix("group "), edu): value for (age, edu), value in grouped.items()} == plain


def test_units_counts_and_tables_without_axes(builder: TableBuilder, release: Release) -> None:
    assert cells(builder.ask(query(), "u")) == {(): published(release, "wide")["_T", "_T", "_T"]}
    flagged = cells(builder.ask(query("SEX", count="works"), "u"))
    listed = published(release, "flag")
    assert flagged == {(sex,): listed["_T", sex, "_T"] for (sex,) in flagged}
    assert set(builder.catalogue.units) == {"persons", "households", "families", "dwellings"}


@given(data=st.data())
@QUICK
def test_a_cell_has_one_value_as_axis_as_filter_and_as_group(
    builder: TableBuilder, data: st.DataObject
) -> None:
    """Whoever asks for a group of people in another way gets the same noise, and learns nothing by comparing."""
    served = [one for one in builder.catalogue.variables.values() if "persons" in one.units]
    first, second = data.draw(st.lists(st.sampled_from(served), min_size=2, max_size=2, unique=True))
    axes = [data.draw(st.sampled_from(list(one.breakdowns))) for one in (first, second)]
    whole = cells(builder.ask(query(*axes), "u", job=True))
    code, other = data.draw(st.sampled_from(list(whole)))
    filters = [f'{one.name} == "{at}"' for one, at in ((first, code), (second, other)) if at != "_T"]
    value = whole[code, other]
    asked = (
        [query(where=" and ".join(filters)), query(where=f"not (not ({' and '.join(filters)}))")]
        if filters
        else []
    )
    asked += [query(axes[1], where=filters[0])] if code != "_T" else []
    for one in asked:
        found = cells(builder.ask(one, "u", job=True))
        assert found[(other,) if one.axes else ()] == value
    picked = Query("persons", (Axis(axes[1], (other,)), Axis(axes[0], (code,))))
    assert cells(builder.ask(picked, "u")) == {(other, code): value}


@given(data=st.data())
@QUICK
def test_a_group_has_one_value_under_any_name_beside_any_other_group_and_as_filter(
    builder: TableBuilder, data: st.DataObject
) -> None:
    ages = builder.catalogue.variables["AGE"].codelist
    some = data.draw(st.lists(st.sampled_from(ages.leaf_codes), min_size=2, max_size=30, unique=True))
    rest = [code for code in ages.leaf_codes if code not in some][: data.draw(st.integers(0, 20))]
    beside = (Group("rest", tuple(rest)),) if rest else ()
    sexes = {sex: value for (sex,), value in cells(builder.ask(by_filter(some), "u")).items()}
    for groups in ((Group("a", tuple(some)),), (*beside, Group("z", tuple(reversed(some))))):
        found = cells(builder.ask(Query("persons", (Axis("AGE", (), groups), Axis("SEX"))), "u"))
        assert {sex: found[groups[-1].name, sex] for sex in sexes} == sexes


def by_filter(ages: list[str]) -> Query:
    return query("SEX", where=f"AGE in ({', '.join(map(repr, ages))},)")
