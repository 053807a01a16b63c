"""Every rule refuses what it should and no more, is not dodged by filters or picked codes, and offers what passes."""

from collections.abc import Callable

import numpy as np
import pytest

from discreet.programme.serve import ServeRule, SparsityRule
from discreet.serve.answer import Answer, Refusal, Rule
from discreet.serve.open import TableBuilder
from discreet.serve.query import Axis, Group, Query
from tests.serve.conftest import cells, query

Make = Callable[..., TableBuilder]
SPARSE = ("AGE.H", "CAS.H", "EDU")


def refused(builder: TableBuilder, asked: Query, **more: bool) -> Refusal:
    found = builder.ask(asked, "u", **more)
    assert isinstance(found, Refusal), found
    preview = builder.preview(asked, "u")
    if found.rule is Rule.CELLS:
        assert preview.needs_job
    else:
        assert preview.refusal is not None
        assert preview.refusal.rule is found.rule
    for near in found.nearest:
        assert isinstance(builder.ask(near.query, "u"), Answer), near
        assert near.message
    return found


def test_axes_sizes_and_combinations(ruled: Make) -> None:
    builder = ruled(
        axes=3, cells=100, job_cells=1000, counted=1100, forbidden=(("SEX", "EDU"), ("AGE.H", "LMS"))
    )
    found = refused(builder, query("SEX", "AGE.L", "CAS.L", "LMS.L"))
    assert found.rule is Rule.AXES
    assert found.nearest
    assert refused(builder, query("AGE.L", "CAS.L", "LMS.L", where='SEX == "1"')).rule is Rule.AXES
    assert refused(builder, query("EDU", "SEX")).rule is Rule.FORBIDDEN
    assert refused(builder, query("EDU", where='SEX == "1"')).rule is Rule.FORBIDDEN
    assert refused(builder, query("AGE.H", "LMS.L")).rule is Rule.FORBIDDEN
    assert isinstance(builder.ask(query("AGE.L", "LMS.L"), "u"), Answer)
    large = query("SEX", "AGE.M", "LMS.L")
    found = refused(builder, large)
    assert found.rule is Rule.CELLS
    assert "background job" in found.message
    assert builder.preview(query("SEX", "AGE.M"), "u").needs_job is False
    assert isinstance(builder.ask(large, "u", job=True), Answer)
    picked = Query("persons", (Axis("SEX"), Axis("AGE.M", ("_T",)), Axis("LMS.L")))
    assert isinstance(builder.ask(picked, "u"), Answer)
    whole = Query("persons", (Axis("GEO.H", ("_T",)), Axis("AGE.M", ("_T",)), Axis("SEX", ("_T",))))
    assert refused(builder, whole).rule is Rule.COUNTED


def test_filters_and_groupings_only_where_allowed(ruled: Make) -> None:
    builder = ruled(filters=False)
    assert refused(builder, query("SEX", where='EDU == "1"')).rule is Rule.FILTERS
    assert isinstance(builder.ask(query("EDU", where='AGE != "Y_LT15" and SEX == "1"'), "u"), Answer)
    grouped = Query("persons", (Axis("AGE", (), (Group("young", ("Y_LT15",)),)),))
    found = refused(builder, grouped)
    assert found.rule is Rule.GROUPINGS
    assert "no variable may" in found.message


def test_small_areas_are_withheld_and_not_shown_as_zero(ruled: Make, builder: TableBuilder) -> None:
    free = cells(builder.ask(query("GEO.H", "SEX"), "u"))
    areas = {geo: value for (geo, sex), value in free.items() if sex == "_T"}
    least = sorted(areas.values())[len(areas) // 5]
    ruled_builder = ruled(place="GEO", area_population=least, blocked=0.9)
    answer = ruled_builder.ask(query("SEX", "GEO.H"), "u")
    assert isinstance(answer, Answer)
    assert {area.code for area in answer.blocked} == {geo for geo, value in areas.items() if value < least}
    assert all(area.rule is Rule.AREA_POPULATION for area in answer.blocked)
    shown = cells(answer)
    assert shown == {(sex, geo): free[geo, sex] for sex, geo in shown}
    assert {geo for _, geo in shown} == {geo for geo, value in areas.items() if value >= least}
    assert not answer.values[answer.withheld].any()
    assert answer.noise_range(int(np.flatnonzero(answer.withheld)[0])) is None
    preview = ruled_builder.preview(query("SEX", "GEO.H"), "u")
    assert preview.blocked == answer.blocked
    assert preview.areas == len(areas)


def test_a_filter_does_not_open_a_blocked_area(ruled: Make, builder: TableBuilder) -> None:
    areas = {geo: value for (geo,), value in cells(builder.ask(query("GEO.H"), "u")).items()}
    smallest, largest = min(areas, key=areas.__getitem__), "_T"
    assert areas[smallest] < areas[largest]
    guarded = ruled(place="GEO", area_population=areas[smallest] + 1, blocked=1.0)
    for axes in (("SEX",), ("GEO.L", "SEX"), ()):
        found = refused(guarded, query(*axes, where=f'GEO == "{smallest}"'))
        assert found.rule is Rule.AREA_POPULATION
        assert [area.code for area in found.areas] == [smallest]
    assert isinstance(guarded.ask(query("SEX", where='EDU == "1"'), "u"), Answer)


def test_too_many_blocked_areas_refuse_the_table_and_larger_areas_are_offered(ruled: Make) -> None:
    builder = ruled(place="GEO", sparsity=SparsityRule(0.05, 0.1), blocked=0.1, axes=6)
    found = refused(builder, query("GEO.H", "AGE.M", "EDU"))
    assert found.rule is Rule.SPARSITY
    assert len(found.areas) > 10
    assert found.nearest
    assert "areas would be withheld" in found.message


@pytest.mark.parametrize(
    ("of_ones", "of_ones_and_twos", "expected"),
    [(1.001, 1.001, False), (0.999, 1.001, True), (1.001, 0.999, True)],
)
def test_sparsity_counts_interior_cells_that_are_not_empty(
    ruled: Make, builder: TableBuilder, of_ones: float, of_ones_and_twos: float, expected: bool
) -> None:
    """Limits a little above and below the shares of this very table part what is answered from what is refused."""
    asked = query(*SPARSE)
    axes = [builder.catalogue.variables[name.partition(".")[0]].breakdowns[name] for name in SPARSE]
    finest = [{code for code, leaf in zip(axis.codes, axis.finest, strict=True) if leaf} for axis in axes]
    table = cells(builder.ask(asked, "u"))
    values = [v for codes, v in table.items() if v and all(map(set.__contains__, finest, codes))]
    ones, twos = values.count(1) / len(values), values.count(2) / len(values)
    assert 0 < ones < ones + twos < 1
    found = ruled(sparsity=SparsityRule(of_ones * ones, of_ones_and_twos * (ones + twos))).ask(asked, "u")
    assert isinstance(found, Refusal) == expected


def test_picked_codes_do_not_dodge_sparsity(ruled: Make) -> None:
    builder = ruled(sparsity=SparsityRule(0.05, 0.1))
    assert refused(builder, query("AGE.H", "CAS.H", "EDU")).rule is Rule.SPARSITY
    picked = Query("persons", (Axis("AGE.H", ("_T",)), Axis("CAS.H", ("_T",)), Axis("EDU")))
    assert refused(builder, picked).rule is Rule.SPARSITY
    assert refused(builder, query("AGE.H", "CAS.H", where='EDU == "1"')).rule is Rule.SPARSITY
    assert isinstance(builder.ask(query("EDU"), "u"), Answer)


def test_groups_that_share_one_category_are_found(ruled: Make, builder: TableBuilder) -> None:
    """Everybody under 15 has the same economic status: the group AGE < 15 is concentrated in one category."""
    asked = query("AGE.L", "CAS.H")
    found = {codes: v for codes, v in cells(builder.ask(asked, "u")).items() if v}
    rows = builder.catalogue.variables["AGE"].breakdowns["AGE.L"]
    finest = {code for code, is_finest in zip(rows.codes, rows.finest, strict=True) if is_finest}
    cas = builder.catalogue.variables["CAS"].breakdowns["CAS.H"]
    leaves = {code for code, is_finest in zip(cas.codes, cas.finest, strict=True) if is_finest}
    groups: dict[str, list[int]] = {}
    for (age, status), value in found.items():
        if age in finest and status in leaves:
            groups.setdefault(age, []).append(value)
    large = [values for values in groups.values() if sum(values) >= 2]
    by_age = sum(len(values) == 1 for values in large) / len(large)
    assert by_age > 0
    assert refused(ruled(attribute=by_age * 0.99), asked).rule is Rule.ATTRIBUTE
    assert isinstance(ruled(attribute=1.0).ask(asked, "u"), Answer)


def test_no_rule_looks_at_cells_unless_it_is_declared() -> None:
    assert not ServeRule().looks_at_cells
    assert ServeRule(attribute=0.0).looks_at_cells
