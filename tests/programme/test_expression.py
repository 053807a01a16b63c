"""Filters: grammar, mistakes, normal form, masks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import Mistakes
from discreet.programme.codelist import Breakdown, Code, Codelist, breakdown, codelist
from discreet.programme.filter import Filter, mentioned, parse_filter

AGE = codelist(
    "AGE",
    [
        Code(code, parent, "")
        for code, parent in [
            ("Y_LT15", ""),
            ("0", "Y_LT15"),
            ("1", "Y_LT15"),
            ("Y15", ""),
            ("15", "Y15"),
            ("16", "Y15"),
            ("90", ""),
        ]
    ],
)
SEX = codelist("SEX", [Code("1", "", "men"), Code("2", "", "women")])
LMS = codelist("LMS", [Code(code, "", "") for code in ("1", "2", 'odd "code"', "it's")])
TREES: dict[str, Codelist] = {"AGE": AGE, "SEX": SEX, "LMS": LMS}
AXES: dict[str, dict[str, Breakdown]] = {
    "AGE": {"L": breakdown("AGE", "L", AGE, AGE.level(1)), "H": breakdown("AGE", "H", AGE, AGE.leaves)},
    "SEX": {"SEX": breakdown("SEX", "SEX", SEX, SEX.leaves)},
    "LMS": {"LMS": breakdown("LMS", "LMS", LMS, LMS.leaves)},
}

# every combination of leaves, as columns of leaf indices
GRID = np.meshgrid(*(np.arange(len(tree.leaves), dtype=np.uint8) for tree in TREES.values()), indexing="ij")
COLUMNS = dict(zip(TREES, (column.ravel() for column in GRID), strict=True))


def read(text: str) -> Filter:
    return parse_filter(text, TREES, "p.toml", "base", AXES)


def complaint(text: str) -> str:
    with pytest.raises(Mistakes) as caught:
        read(text)
    assert all(problem.file == "p.toml" and problem.key == "base" for problem in caught.value.problems)
    return str(caught.value)


def test_an_upper_code_means_its_subtree() -> None:
    passed = read('AGE == "Y_LT15"').mask(COLUMNS)
    assert {AGE.leaf_codes[index] for index in COLUMNS["AGE"][passed]} == {"0", "1"}


def test_a_breakdown_may_be_named_and_means_the_same() -> None:
    assert read('AGE.L != "Y_LT15"') == read('AGE in ("Y15", "90")')


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('AGE == "0" or AGE == "1"', 'AGE == "Y_LT15"'),
        ('not (SEX == "1" or LMS == "1")', 'LMS != "1" and SEX == "2"'),
        ('SEX == "1" and LMS == "2" and SEX == "1"', '(LMS == "2") and SEX in ("1",)'),
        ('LMS in ("2", "1")', 'LMS in ["1", "2", "2"]'),
        ('not not SEX == "1"', 'SEX in ("1")'),
        ("SEX=1", 'SEX == "1"'),
        ("AGE=Y_LT15 and not SEX = 2", 'AGE == "Y_LT15" and SEX != "2"'),
        ("AGE.L in (Y_LT15, '90')", 'AGE in ("90", "Y_LT15")'),
        ("AGE not in [Y15,90] or SEX!=1", 'AGE not in ("Y15", "90") or SEX != "1"'),
        ("""LMS == 'odd "code"'""", r'LMS == "odd \"code\""'),
        ("(LMS = 1 or LMS = 2)", 'LMS in ("1", "2")'),
        ('SEX == "1" or (LMS == "1" and LMS == "2")', 'SEX == "1"'),
        ('SEX == "1" and (LMS == "1" or LMS != "1")', 'SEX == "1"'),
        ('(SEX == "1" or LMS == "1") and (LMS == "1" or SEX == "1")', 'SEX == "1" or LMS == "1"'),
    ],
)
def test_equal_filters_compare_equal(one: str, other: str) -> None:
    assert read(one) == read(other)
    assert len({read(one), read(other)}) == 1
    assert read(one).canonical == read(other).canonical


def test_different_filters_differ() -> None:
    assert read('SEX == "1"') != read('SEX == "2"')
    assert read('SEX == "1" and LMS == "1"') != read('SEX == "1" or LMS == "1"')


def test_a_filter_that_lets_everything_pass_says_so() -> None:
    assert read('SEX == "1" or SEX == "2"').passes_all
    assert not read('SEX == "1"').passes_all


def test_names_are_told() -> None:
    assert read('SEX == "1" and AGE.L == "90"').variables == ("AGE", "SEX")
    assert mentioned('SEX == "1" or NEW.L == "x"') == {"SEX", "NEW"}
    assert mentioned("(") == set()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('SEXX == "1"', "did you mean 'SEX'"),
        ('AGE.K == "90"', "unknown breakdown 'K' of AGE; use one of H, L"),
        ('AGE == "Y_LT16"', "did you mean 'Y_LT15'"),
        ('AGE.L == "0"', "unknown code '0' of AGE.L"),
        ('AGE == "_T"', "unknown code '_T'"),
        ("SEX == 3", "unknown code '3' of SEX"),
        ("SEX = AGE", "unknown code 'AGE' of SEX"),
        ('SEX = b"1"', "one quoted code"),
        ("SEX == and", "is not a filter"),
        ("SEX == 1 2", "is not a filter"),
        ('SEX in (1 "2")', "is not a filter"),
        ('SEX == "1" 2', "is not a filter"),
        ("SEX in (1 2)", "is not a filter"),
        ("SEX := 1", "is not a filter"),
        ("SEX <= 1", "only ==, !=, in and not in"),
        ("SEX in ()", "a list of quoted codes"),
        ('SEX == ("1", "2")', "one quoted code"),
        ('SEX < "1"', "only ==, !=, in and not in"),
        ('"1" == SEX', "the left side must be the name of a variable"),
        ('SEX.L.M == "1"', "the left side must be the name of a variable"),
        ('SEX == "1" == "1"', "write comparisons like"),
        ("SEX", "write comparisons like"),
        ('__import__("os")', "write comparisons like"),
        ('[SEX for SEX in ("1",)]', "write comparisons like"),
        ('SEX == "1" and', "is not a filter (line 1"),
        ("", "is not a filter"),
        ('SEX == "\\d"', "is not a filter"),
        ("SEX == '1'\0", "is not a filter"),
        ("(" * 500 + 'SEX == "1"' + ")" * 500, "is not a filter"),
        ("not " * 100_000, "a filter of 400,000 characters"),
        ("not " * 9_000 + 'SEX == "1"', "is not a filter"),
        ("not " * 60 + 'SEX == "1"', "is nested too deeply"),
        ('SEX == "1" and SEX == "2"', "no record can pass"),
    ],
)
def test_what_does_not_fit_is_refused(text: str, said: str) -> None:
    assert said in complaint(text)


def test_all_mistakes_are_told_at_once() -> None:
    said = complaint('SEXX == "1" and AGE == "nope" or not (LMS == 3)')
    assert said.count("\n") == 2
    assert all(part in said for part in ("SEXX", "nope", "'3'"))


def comparisons() -> st.SearchStrategy[str]:
    def write(name: str, codes: list[str], word: str) -> str:
        if word in ("==", "!="):
            return f"{name} {word} {codes[0]!r}"
        return f"{name} {word} ({', '.join(map(repr, codes))},)"

    one = [
        st.builds(
            write,
            st.just(name),
            st.lists(st.sampled_from(tree.codes), min_size=1, max_size=4),
            st.sampled_from(["==", "!=", "in", "not in"]),
        )
        for name, tree in TREES.items()
    ]
    return st.one_of(one)


EXPRESSIONS = st.recursive(
    comparisons(),
    lambda inner: st.one_of(
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} or {})".format, inner, inner),
        st.builds("(not {})".format, inner),
    ),
    max_leaves=8,
)


class Subtree:
    """A value that equals its own code and every code above it, so that Python evaluates the filter."""

    def __init__(self, tree: Codelist, leaf: int) -> None:
        self.codes = {tree.codes[index] for index in tree.ancestors(tree.leaves[leaf])}

    def __eq__(self, other: object) -> bool:
        return other in self.codes

    __hash__ = None  # type: ignore[assignment]


@given(EXPRESSIONS)
def test_the_mask_is_what_python_says_record_by_record(text: str) -> None:
    expected = [
        bool(
            eval(
                text, {}, {name: Subtree(TREES[name], leaf) for name, leaf in zip(TREES, leaves, strict=True)}
            )
        )
        for leaves in zip(*COLUMNS.values(), strict=True)
    ]
    try:
        found = read(text)
    except Mistakes:  # a filter that no record can pass is refused
        assert not any(expected)
        return
    assert found.mask(COLUMNS).tolist() == expected


@given(EXPRESSIONS)
def test_the_normal_form_reads_back_as_itself(text: str) -> None:
    try:
        found = read(text)
    except Mistakes:
        return
    if not found.passes_all:
        assert read(found.canonical) == found
        assert read(f"not (not ({text}))") == found
