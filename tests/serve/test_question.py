"""What a query means: its normal form, its id, and every mistake it can hold."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import Mistakes
from discreet.serve.open import TableBuilder
from discreet.serve.query import Axis, Group, Query, from_json, to_json
from discreet.serve.question import resolve
from tests.serve.conftest import query

YOUNG = Group("young", ("Y_LT15",))


def test_equal_questions_are_equal(builder: TableBuilder) -> None:
    first = Query("persons", (Axis("SEX", ("2", "1")), Axis("AGE.L")), 'not (SEX != "1") and AGE != "Y_LT15"')
    every = builder.catalogue.variables["AGE"].breakdowns["AGE.L"].codes
    second = Query(
        "persons", (Axis("AGE.L", every), Axis("SEX", ("1", "2", "1"))), 'AGE != "Y_LT15" and SEX == "1"'
    )
    one, two = builder.canonical(first), builder.canonical(second)
    assert one.id == two.id
    assert one.axes == two.axes[::-1]
    assert builder.canonical(one) == one
    assert builder.canonical(query("SEX")).id != builder.canonical(query("AGE.L")).id
    everybody = query("SEX", where='SEX in ("1", "2")')
    assert builder.canonical(everybody) == query("SEX")


def test_groups_are_known_by_their_codes(builder: TableBuilder) -> None:
    tree = builder.catalogue.variables["AGE"].codelist
    top = next(
        code
        for code, depth in zip(tree.codes, tree.depths, strict=True)
        if depth == 1 and code not in tree.leaf_codes
    )
    children = tuple(
        code for code, parent in zip(tree.codes, tree.parents, strict=True) if parent == tree.position[top]
    )
    by_parent = Query("persons", (Axis("AGE", (), (Group("g", (top,)),)),))
    by_children = Query("persons", (Axis("AGE", (), (Group("g", children[::-1]),)),))
    assert builder.canonical(by_parent) == builder.canonical(by_children)


def test_of_an_unknown_unit_no_variable_is_called_unknown(builder: TableBuilder) -> None:
    with pytest.raises(Mistakes) as caught:
        builder.canonical(query("SEX", where='AGEE == "1"', unit="person"))
    assert [problem.key for problem in caught.value.problems] == ["unit"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (query("SEX", unit="person"), "unknown unit 'person'; did you mean 'persons'"),
        (query("SX"), "unknown variable 'SX' of persons; did you mean 'SEX'"),
        (query("AGE"), "unknown breakdown 'AGE'; did you mean"),
        (query("AGE.L", "AGE.M"), "AGE is given 2 times; keep one axis of each variable"),
        (query("SEX", where='AGEE == "1"'), "unknown variable 'AGEE'"),
        (query("SEX", where='SEX == "9"'), "unknown code '9' of SEX; use one of 1, 2"),
        (query("SEX", where="__import__('os')"), "where"),
        (query("SEX", count="work"), "unknown column 'work' of persons; did you mean 'works'"),
        (Query("persons", (Axis("SEX", ("3",)),)), "unknown code '3' of SEX; use one of _T, 1, 2"),
        (
            Query("persons", (Axis("AGE", (), (Group("_T", ("Y_LT15",)),)),)),
            "name '_T'; give each group its own name",
        ),
        (Query("persons", (Axis("AGE", (), (YOUNG, Group("more", ("Y_LT15",)))),)), "'more' shares codes"),
        (Query("persons", (Axis("AGE", (), (Group("none", ()),)),)), "'none' has no codes"),
        (
            Query("persons", (Axis("AGE", (), (Group("x", ("Y_LT51",)),)),)),
            "unknown code 'Y_LT51'; did you mean",
        ),
        (Query("persons", (Axis("AGE.L", (), (YOUNG,)),)), "groups of the breakdown 'AGE.L'"),
        (query("TOB"), "unknown variable 'TOB' of persons"),
    ],
)
def test_a_mistake_names_the_alternatives(builder: TableBuilder, asked: Query, said: str) -> None:
    with pytest.raises(Mistakes) as caught:
        builder.ask(asked, "u")
    assert said in str(caught.value)


def test_all_mistakes_are_told_at_once(builder: TableBuilder) -> None:
    with pytest.raises(Mistakes) as caught:
        builder.canonical(query("SX", "AGE.X", where="nonsense"))
    assert len(caught.value.problems) == 3


def test_the_judged_table_has_the_variables_of_the_filter(builder: TableBuilder) -> None:
    declared = resolve(query("EDU", where='SEX == "1" and not AGE == "Y_LT15"'), builder.catalogue)
    assert declared.is_declared
    assert declared.judged is declared.cube
    free = resolve(query("SEX", "AGE.L", where='CAS == "2.1" and SEX == "1"'), builder.catalogue)
    assert [axis.full_name for axis in free.judged.axes] == ["AGE.L", "CAS.H", "SEX"]
    assert free.judged.base is None
    leaf = builder.catalogue.variables["AGE"].codelist.leaf_codes[4]
    finer = resolve(query("AGE.L", where=f'AGE != "{leaf}"'), builder.catalogue)
    assert [axis.full_name for axis in finer.judged.axes] == ["AGE.H"]


names = st.text(max_size=5)
axes = st.builds(
    Axis,
    names,
    st.lists(names, max_size=3).map(tuple),
    st.lists(
        st.builds(Group, names, st.lists(names, max_size=2).map(tuple)),
        max_size=2,
        unique_by=lambda g: g.name,
    ).map(tuple),
)


@given(st.builds(Query, st.text(min_size=1, max_size=5), st.lists(axes, max_size=3).map(tuple), names, names))
def test_json_and_back(asked: Query) -> None:
    assert from_json(to_json(asked)) == asked
    assert len(asked.id) == 32


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["unit", "axes", "where", "breakdown", "codes", "groups", "x"]), inner, max_size=4
        )
    ),
    max_leaves=8,
)


@given(anything)
def test_any_other_json_is_a_mistake_and_no_traceback(said: object) -> None:
    with suppress(Mistakes):
        assert isinstance(from_json(said), Query)
