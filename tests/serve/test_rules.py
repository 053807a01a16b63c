"""Every rule refuses what it should and no more, is not dodged by filters or picked codes, and offers what passes."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.programme.codelist import Breakdown
from discreet.programme.cube import Cube
from discreet.programme.serve import ServeRule, SparsityRule
from discreet.serve.answer import Answer, Refusal, Rule
from discreet.serve.open import TableBuilder
from discreet.serve.query import Axis, Group, Query
from discreet.serve.question import Question
from discreet.serve.rules import Verdict, judge_cells
from discreet.tabulate.tables import ProtectedTable
from tests.release.small import AGE_L, AGE_M, GEO_M, SEX
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
    finest = ruled_builder.catalogue.variables["GEO"].breakdowns["GEO.H"]
    codes = {code for code, is_finest in zip(finest.codes, finest.finest, strict=True) if is_finest}
    assert preview.areas == len(codes) < len(areas), "regions and the total are not counted"
    assert preview.withheld == sum(area.code in codes for area in preview.blocked)


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


Nodes = tuple[int, ...]
SHARES = st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 2 / 3, 0.75, 1.0])
GROUPED = replace(AGE_L, variable="AGE~mine", grouped="AGE")  # a grouping of a user's


def verdict(axes: tuple[Breakdown, ...], values: dict[Nodes, int], rule: ServeRule) -> Verdict:
    """What the rules say of a table with these published values."""
    cube = Cube("", "persons", axes)
    held = sorted((int(np.ravel_multi_index(nodes, cube.shape)), n) for nodes, n in values.items() if n)
    where, published = np.array(held, dtype=np.int64).reshape(-1, 2).T
    question = Question(query(), cube, cube, cube, (), (), is_declared=True)
    return judge_cells(question, lambda of: ProtectedTable(of, where, published), rule)


def interior(
    axes: tuple[Breakdown, ...], values: dict[Nodes, int], place: int
) -> Iterator[tuple[Nodes, int]]:
    """The published cells whose codes are finest along all axes but the place's."""
    others = [k for k in range(len(axes)) if k != place]
    return ((nodes, n) for nodes, n in values.items() if n and all(axes[k].finest[nodes[k]] for k in others))


def is_sparse(inside: list[int], rule: SparsityRule) -> bool:
    ones, small = inside.count(1), inside.count(1) + inside.count(2)
    return ones > rule.ones * len(inside) or small > rule.ones_and_twos * len(inside)


def concentrated(axes: tuple[Breakdown, ...], inside: list[tuple[Nodes, int]], others: list[int]) -> float:
    """The largest share of groups of two or more in one category, of all groups and of those in each user's group."""
    worst = 0.0
    for k in (k for k in others if axes[k].finest.sum() > 1):
        groups: dict[Nodes, list[int]] = {}
        for nodes, n in inside:
            groups.setdefault((*nodes[:k], 0, *nodes[k + 1 :]), []).append(n)
        large = {nodes: held for nodes, held in groups.items() if sum(held) >= 2}
        parts = [list(large.values())]
        for j in (j for j in others if axes[j].is_grouping):
            parts += [[held for nodes, held in large.items() if nodes[j] == at] for at in range(len(axes[j]))]
        worst = max([worst, *(sum(len(held) == 1 for held in part) / len(part) for part in parts if part)])
    return worst


@pytest.mark.parametrize("last", [AGE_M, GROUPED], ids=["levels", "grouping"])
@given(data=st.data())
def test_every_area_is_judged_as_a_plain_count_of_its_cells_says(
    last: Breakdown, data: st.DataObject
) -> None:
    axes = (SEX, GEO_M, last)
    every = list(product(*(range(len(axis)) for axis in axes)))
    drawn = data.draw(st.lists(st.integers(0, 4), min_size=len(every), max_size=len(every)))
    values = dict(zip(every, drawn, strict=True))
    sparsity = SparsityRule(data.draw(SHARES), data.draw(SHARES))
    rule = ServeRule(
        place="GEO", area_population=2, sparsity=sparsity, attribute=data.draw(SHARES), blocked=1.0
    )
    expected: dict[str, Rule] = {}
    for node, code in enumerate(GEO_M.codes):
        inside = [(nodes, n) for nodes, n in interior(axes, values, 1) if nodes[1] == node]
        parts = [[n for _, n in inside]]
        if last is GROUPED:
            parts += [[n for nodes, n in inside if nodes[2] == group] for group in range(1, len(GROUPED))]
        if values[0, node, 0] < 2:
            expected[code] = Rule.AREA_POPULATION
        elif not inside or any(is_sparse(part, sparsity) for part in parts):
            expected[code] = Rule.SPARSITY
        elif concentrated(axes, inside, [0, 2]) > (rule.attribute or 0):
            expected[code] = Rule.ATTRIBUTE
    found = verdict(axes, values, rule)
    assert found.refusal is None
    assert found.areas == GEO_M.finest.sum()
    assert {area.code: area.rule for area in found.blocked} == expected


def test_a_table_without_a_place_is_judged_as_a_whole() -> None:
    values: dict[Nodes, int] = {(0, 0): 9, (1, 1): 1, (1, 2): 4, (2, 1): 2, (2, 2): 0}
    fine = ServeRule(place="GEO", area_population=100, sparsity=SparsityRule(1 / 3, 2 / 3), attribute=0.5)
    assert verdict((SEX, AGE_L), values, fine) == Verdict()
    for ones, ones_and_twos in ((0.33, 1.0), (1.0, 0.66)):
        sparse = replace(fine, sparsity=SparsityRule(ones, ones_and_twos), attribute=0.0)
        refusal = verdict((SEX, AGE_L), values, sparse).refusal
        assert refusal is not None
        assert refusal.rule is Rule.SPARSITY
    refusal = verdict((SEX, AGE_L), values, replace(fine, attribute=0.49)).refusal
    assert refusal is not None
    assert refusal.rule is Rule.ATTRIBUTE


def test_the_largest_share_of_blocked_areas_is_still_answered() -> None:
    """GEO has 6 areas; 2 have too few people and 1 is sparse."""
    values: dict[Nodes, int] = {(node, 0): n for node, n in enumerate((9, 9, 1, 1, 9, 9))}
    values.update({(node, sex): 5 for node in range(5) for sex in (1, 2)})
    values[5, 1] = 1
    rule = ServeRule(place="GEO", area_population=2, sparsity=SparsityRule(), blocked=0.5)
    found = verdict((GEO_M, SEX), values, rule)
    assert found.refusal is None
    assert [area.code for area in found.blocked] == [GEO_M.codes[node] for node in (2, 3, 5)]
    refusal = verdict((GEO_M, SEX), values, replace(rule, blocked=0.49)).refusal
    assert refusal is not None
    assert refusal.rule is Rule.AREA_POPULATION
    assert refusal.areas == found.blocked
    assert str(refusal.message).startswith("3 of 3 areas would be withheld")


@pytest.mark.parametrize(("small", "blocked"), [(5, False), (1, True)], ids=["passes", "sparse"])
def test_groups_pass_where_the_table_that_tells_them_apart_does(small: int, *, blocked: bool) -> None:
    """The grouping is sparse; it is withheld only if the table of the finer codes is sparse there, too."""
    grouped, told = Cube("", "persons", (GROUPED, SEX)), Cube("", "persons", (AGE_M, SEX))
    values = {
        grouped: {(1, 1): 1, (1, 2): 1, (2, 1): 9, (2, 2): 9},
        told: {(node, 1): small for node in np.flatnonzero(AGE_M.finest).tolist()},
    }

    def table_of(cube: Cube) -> ProtectedTable:
        held = [(int(np.ravel_multi_index(nodes, cube.shape)), n) for nodes, n in values[cube].items()]
        where, published = np.array(sorted(held), dtype=np.int64).T
        return ProtectedTable(cube, where, published)

    question = Question(query(), grouped, grouped, told, (), (), is_declared=True)
    found = judge_cells(question, table_of, ServeRule(sparsity=SparsityRule()))
    assert (found.refusal is not None) == blocked
    assert found.areas == 0


def test_areas_may_be_grouped_or_filtered_but_not_both(ruled: Make) -> None:
    builder = ruled(place="GEO", groupings=("GEO", "AGE"), forbidden=(("SEX", "EDU"),))
    some = builder.catalogue.variables["GEO"].breakdowns["GEO.H"].codes[-2:]
    grouped = Query("persons", (Axis("GEO", (), (Group("these", some),)),))
    assert isinstance(builder.ask(grouped, "u"), Answer)
    found = refused(builder, replace(grouped, where=f'GEO == "{some[0]}"'))
    assert found.rule is Rule.GROUPINGS
    assert "grouped and filtered" in found.message
    young = Query("persons", (Axis("AGE", (), (Group("young", ("Y_LT15",)),)),), 'AGE != "Y30-49"')
    assert isinstance(builder.ask(young, "u"), Answer)
    assert "Sex and Educational attainment may not" in refused(builder, query("EDU", "SEX")).message


def test_the_limits_themselves_are_allowed(ruled: Make, builder: TableBuilder) -> None:
    asked = query("SEX", "AGE.L")
    size = len(cells(builder.ask(asked, "u")))
    assert isinstance(ruled(axes=2, cells=size, counted=size).ask(asked, "u"), Answer)
    assert refused(ruled(axes=1), asked).rule is Rule.AXES
    found = refused(ruled(cells=size - 1, job_cells=size), asked)
    assert found.rule is Rule.CELLS
    assert "background job" in found.message
    assert "background job" not in refused(ruled(cells=size - 1, job_cells=size - 1), asked).message
    assert "background job" not in refused(ruled(cells=1, job_cells=size - 1), asked, job=True).message
    assert refused(ruled(counted=size - 1), asked).rule is Rule.COUNTED


def test_an_area_is_withheld_only_where_the_finer_table_is_broken_too() -> None:
    """Both areas are sparse by groups; by the codes that tell the groups apart only the second is."""
    grouped, told = Cube("", "persons", (GROUPED, GEO_M)), Cube("", "persons", (AGE_M, GEO_M))
    first, second = np.flatnonzero(GEO_M.finest).tolist()[:2]
    leaves = np.flatnonzero(AGE_M.finest).tolist()
    values = {
        grouped: {
            (group, area): 9 if area not in {first, second} else 1 for group in (1, 2) for area in range(6)
        },
        told: {(leaf, area): 1 if area == second else 5 for leaf in leaves for area in range(6)},
    }

    def table_of(cube: Cube) -> ProtectedTable:
        held = [(int(np.ravel_multi_index(nodes, cube.shape)), n) for nodes, n in values[cube].items()]
        where, published = np.array(sorted(held), dtype=np.int64).T
        return ProtectedTable(cube, where, published)

    question = Question(query(), grouped, grouped, told, (), (), is_declared=True)
    found = judge_cells(question, table_of, ServeRule(place="GEO", sparsity=SparsityRule()))
    assert [area.code for area in found.blocked] == [GEO_M.codes[second]]
